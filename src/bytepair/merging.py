"""Merging one chunk: from its bytes to its ids.

The rule: merge the lowest-ranked pair that is there, all its occurrences left to right, and
repeat. Since a merge only makes pairs of a higher rank than its own, ranks can be worked off in
ascending order.
"""

from __future__ import annotations

from collections.abc import Mapping
from heapq import heapify, heappop, heappush
from itertools import pairwise

Pair = tuple[int, int]

# Scanning all pairs for each merge costs length x merges, which is the quickest way for words;
# from about this many bytes on a heap of ranks is quicker, and it grows near-linearly.
LONG_CHUNK = 48

_GONE = -1


def merge_chunk(chunk: bytes, ids: Mapping[Pair, int]) -> list[int]:
    """The ids of a chunk; `ids` gives for each pair the id it becomes (ids ascend with ranks).

    >>> merge_chunk(b"aaaaa", {(97, 97): 256, (256, 256): 257})
    [257, 97]
    """
    if len(chunk) >= LONG_CHUNK:
        return _merge_long_chunk(chunk, ids)
    tokens = list(chunk)
    while len(tokens) > 1:
        found = [(ids[pair], pair) for pair in pairwise(tokens) if pair in ids]
        if not found:
            break
        new, (left, right) = min(found)
        position = 0
        end = len(tokens) - 1
        while position < end:
            if tokens[position] == left and tokens[position + 1] == right:
                tokens[position : position + 2] = [new]
                end -= 1
            position += 1
    return tokens


def _merge_long_chunk(chunk: bytes, ids: Mapping[Pair, int]) -> list[int]:
    """The same with a doubly linked list, and for each pair the places where it stands."""
    tokens = list(chunk)
    following = list(range(1, len(tokens) + 1))
    preceding = list(range(-1, len(tokens)))
    tokens.append(_GONE)  # follows the last place and, as place -1, precedes the first
    places: dict[Pair, list[int]] = {}
    for place, pair in enumerate(pairwise(chunk)):
        if pair in ids:
            places.setdefault(pair, []).append(place)
    queue = [(ids[pair], pair) for pair in places]
    heapify(queue)
    while queue:
        new, pair = heappop(queue)
        left, right = pair
        for place in sorted(places.pop(pair)):
            after = following[place]
            if tokens[place] != left or tokens[after] != right:
                continue
            before, beyond = preceding[place], following[after]
            tokens[place], tokens[after] = new, _GONE
            following[place], preceding[beyond] = beyond, place
            for start, made in ((before, (tokens[before], new)), (place, (new, tokens[beyond]))):
                if made in places:
                    places[made].append(start)
                elif made in ids:
                    places[made] = [start]
                    heappush(queue, (ids[made], made))
    return [token for token in tokens if token != _GONE]
