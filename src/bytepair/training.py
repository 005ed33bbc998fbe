"""From chunk counts to merges, exactly and incrementally.

The rule: count every pair of adjacent ids inside chunks (overlapping windows: `aaaa` has three),
weighted by how often the chunk occurs; take the pair with the highest count, and of equals the
smallest (left id, right id); give it the next id; replace it left to right, without overlap.

Counting again after every merge is reference.py. Here a merge touches only the places where its
pair stands. That rests on one observation: a pair (a, b) gains occurrences only while the younger
of a and b is being made; from then on it can only lose them. So

- the list of a pair's positions is made once, in order, and never grows; stale positions are
  recognised when they are visited;
- a heap needs one entry a pair: an entry's count is never too low, so an entry that is right is
  the best, and one that is too high goes back with the right count.

The compiled kernel does the same where there is one (kernel/train.c); `train_in_python` is this
file's own, serves everywhere else, and gives the same answer.

What is not here: cutting text (chunks.py), and what a tokenizer is (tokenizer.py).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from heapq import heapify, heappop, heappush, heapreplace
from itertools import pairwise

from bytepair.errors import TrainingError
from bytepair.kernel.train import train as train_in_kernel

Pair = tuple[int, int]

_EDGE = -1  # stands before, between and after chunks
_INNER = -2  # stands where a token neither begins nor ends any more


@dataclass(frozen=True)
class Training:
    """What training found.

    Attributes:
        merges: pairs of ids in rank order; merge number n makes id 256 + n.
        pair_counts: the count of each merge's pair when it was chosen.
        lengths: tokens in the text after 0, 1, 2, ... merges (one more than there are merges).
    """

    merges: list[Pair]
    pair_counts: list[int]
    lengths: list[int]

    def curve(self, points: int = 256) -> list[dict[str, float]]:
        """Bytes per token against the number of merges, at most about `points` of them, to plot.

        Tokens inside documents only: separators come later, with encoding.
        """
        step = -(-len(self.lengths) // points)
        last = len(self.merges)
        return [
            {"merges": merges, "bytes_per_token": round(self.lengths[0] / self.lengths[merges], 6)}
            for merges in sorted({*range(0, last, step), last})
        ]


def train(counts: Mapping[bytes, int], *, merges: int, min_count: int = 2) -> Training:
    """Find up to `merges` merges; fewer if no pair is left that occurs `min_count` times.

    >>> train({b"low": 4, b" low": 3}, merges=2).merges
    [(108, 111), (256, 119)]

    Raises:
        TrainingError: there is no chunk at all, or min_count is below 1.
    """
    if type(min_count) is not int or min_count < 1:
        raise TrainingError(f"min_count is {min_count!r}: it must be a whole number from 1 on.")
    if not counts:
        raise TrainingError("the corpus is empty: there is nothing to train on.")
    found = train_in_kernel(counts, merges=merges, min_count=min_count)
    if found is not None:
        return Training(*found)
    return train_in_python(counts, merges=merges, min_count=min_count)


def train_in_python(counts: Mapping[bytes, int], *, merges: int, min_count: int) -> Training:
    """The same without the kernel, and without checking the arguments."""
    text = _Text(counts, min_count)
    found = Training([], [], [text.length])
    while len(found.merges) < merges:
        best = text.pop_best_pair()
        if best is None:
            break
        pair, count = best
        text.merge(pair, 256 + len(found.merges))
        found.merges.append(pair)
        found.pair_counts.append(count)
        found.lengths.append(text.length)
    return found


def count_merges(vocab_size: int, special_tokens: Sequence[str]) -> int:
    """The number of merges that `vocab_size` leaves room for.

    Raises:
        TrainingError: there is no room for the bytes and the special tokens.
    """
    if type(vocab_size) is not int:
        raise TrainingError(f"vocab_size must be an integer, got {vocab_size!r}.")
    least = 256 + len(special_tokens)
    if vocab_size < least:
        raise TrainingError(
            f"vocab_size is {vocab_size}, but 256 bytes and {len(special_tokens)} special tokens "
            f"need at least {least}."
        )
    return vocab_size - least


class _Text:
    """The distinct chunks laid out flat, with the pairs that stand in them.

    `symbols` has a place for each byte. A token's id stands at the first and at the last place of
    its span, so its neighbours are found by lengths alone: the next token begins `size[id]` places
    on, and the place before its first holds the id of the one before it.
    """

    def __init__(self, counts: Mapping[bytes, int], min_count: int) -> None:
        self.min_count = min_count
        self.sizes = [1] * 256
        self.symbols = [_EDGE]
        self.weights = [0]
        for chunk, weight in counts.items():
            self.symbols.extend(chunk)
            self.symbols.append(_EDGE)
            self.weights.extend([weight] * (len(chunk) + 1))
        self.length = sum(len(chunk) * weight for chunk, weight in counts.items())
        self.pair_counts: defaultdict[Pair, int] = defaultdict(int)
        self.positions: defaultdict[Pair, list[int]] = defaultdict(list)
        self._count_windows()
        self.heap = [(-count, pair) for pair, count in self.pair_counts.items()]
        heapify(self.heap)

    def _count_windows(self) -> None:
        pair_counts, positions = self.pair_counts, self.positions
        pairs = pairwise(self.symbols)
        for position, (pair, weight) in enumerate(zip(pairs, self.weights, strict=False)):
            pair_counts[pair] += weight
            positions[pair].append(position)
        for pair in [pair for pair in pair_counts if _EDGE in pair]:
            del pair_counts[pair], positions[pair]

    def pop_best_pair(self) -> tuple[Pair, int] | None:
        """The pair to merge next and its count; None if none occurs often enough."""
        heap, pair_counts = self.heap, self.pair_counts
        while heap:
            stored, pair = heap[0]
            count = pair_counts[pair]
            if count < self.min_count:
                heappop(heap)
                self.positions.pop(pair, None)
            elif count == -stored:
                heappop(heap)
                return pair, count
            else:
                heapreplace(heap, (-count, pair))
        return None

    def merge(self, pair: Pair, new: int) -> None:
        """Replace `pair` by the id `new` wherever it still stands."""
        symbols, weights, sizes = self.symbols, self.weights, self.sizes
        left, right = pair
        left_size = sizes[left]
        size = left_size + sizes[right]
        sizes.append(size)
        changes: defaultdict[Pair, int] = defaultdict(int)
        positions: defaultdict[Pair, list[int]] = defaultdict(list)
        merged = 0
        for start in self.positions.pop(pair):
            middle = start + left_size
            if symbols[start] != left or symbols[middle] != right:
                continue
            weight = weights[start]
            merged += weight
            before = symbols[start - 1]
            end = start + size
            after = symbols[end]
            symbols[middle - 1] = symbols[middle] = _INNER
            symbols[start] = symbols[end - 1] = new
            if before != _EDGE:
                changes[before, left] -= weight
                changes[before, new] += weight
                positions[before, new].append(start - sizes[before])
            if after != _EDGE:
                changes[right, after] -= weight
                changes[new, after] += weight
                positions[new, after].append(start)
        self.length -= merged
        changes.pop(pair, None)
        del self.pair_counts[pair]
        self._apply(changes, positions)

    def _apply(self, changes: Mapping[Pair, int], positions: Mapping[Pair, list[int]]) -> None:
        pair_counts = self.pair_counts
        for pair, change in changes.items():
            if pair in pair_counts:
                pair_counts[pair] += change
            elif change >= self.min_count:  # a pair that starts below it never gets there
                pair_counts[pair] = change
                self.positions[pair] = positions[pair]
                heappush(self.heap, (-change, pair))
