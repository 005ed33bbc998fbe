"""The slow, obvious version of the whole tokenizer: the oracle in tests, never used at run time.

Everything is counted again after every merge, and nothing is remembered. If this file and the
fast one disagree, this one is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import pairwise

Pair = tuple[int, int]


def merge(ids: Sequence[int], pair: Pair, new: int) -> list[int]:
    """Replace `pair` by `new`, left to right, without overlap.

    >>> merge([1, 2, 3, 1, 2, 3, 1, 2], (1, 2), 99)
    [99, 3, 99, 3, 99]
    """
    merged = []
    position = 0
    while position < len(ids):
        if tuple(ids[position : position + 2]) == pair:
            merged.append(new)
            position += 2
        else:
            merged.append(ids[position])
            position += 1
    return merged


def train(counts: Mapping[bytes, int], *, merges: int, min_count: int = 2) -> list[Pair]:
    """Count all pairs, merge the best one everywhere, and begin again."""
    texts = [(list(chunk), count) for chunk, count in counts.items()]
    found: list[Pair] = []
    while len(found) < merges:
        pairs: Counter[Pair] = Counter()
        for ids, count in texts:
            for pair in pairwise(ids):
                pairs[pair] += count
        if not pairs:
            break
        best = min(pairs, key=lambda pair: (-pairs[pair], pair))
        if pairs[best] < min_count:
            break
        texts = [(merge(ids, best, 256 + len(found)), count) for ids, count in texts]
        found.append(best)
    return found


def encode(chunk: bytes, merges: Sequence[Pair]) -> list[int]:
    """Merge the lowest-ranked pair that is there, everywhere in the chunk, until none is."""
    ids = list(chunk)
    while True:
        ranks = [merges.index(pair) for pair in pairwise(ids) if pair in merges]
        if not ranks:
            return ids
        ids = merge(ids, merges[min(ranks)], 256 + min(ranks))


def decode(ids: Iterable[int], merges: Sequence[Pair]) -> bytes:
    """Take merges apart until only bytes are left."""
    return b"".join(bytes([i]) if i < 256 else decode(merges[i - 256], merges) for i in ids)
