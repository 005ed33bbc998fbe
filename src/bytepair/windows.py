"""Batches for training: windows of ids, the same for a step on any machine, in any process.

Nothing is drawn from a generator that has a state. A batch is computed from the seed and its step
alone, so a run that restarts at step n goes on as if it had never ended, and workers need not
agree on anything. The numbers come from SHAKE256 and from 64-bit integers, never from NumPy's
generators, whose distributions may change with a release (NEP 19).
"""

from __future__ import annotations

import hashlib
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Order = Literal["random", "epochs"]
Batch = tuple[NDArray[np.int64], NDArray[np.int64]]
Words = NDArray[np.uint64]

ROUNDS = 8


class Source(Protocol):
    """What windows are cut from: bytepair.tokens.Tokens."""

    @property
    def ids(self) -> NDArray[np.unsignedinteger[Any]]:
        """(tokens,)"""

    @property
    def starts(self) -> NDArray[np.uint64]:
        """(documents,): where each document starts; it ends, separator included, at the next."""


class Windows:
    """Batches of windows of `length` ids and, as targets, the ids that follow each of them.

    Args:
        source: where the ids are.
        length: ids in a window, from 1.
        batch_size: windows in a batch, from 1.
        seed: any whole number; another one gives another sequence of batches.
        order: "random" draws each window anew, from every place where one can start. "epochs"
            lays windows end to end and deals each of them once an epoch, in an order of that
            epoch's own; a batch may hold the end of one epoch and the beginning of the next.
        within_documents: a window and its targets lie in one document and the separator after it.
            Documents with too few ids for a window are left out.

    Raises:
        ValueError: an argument is out of range, or not one window fits.

    Attributes:
        count: how many windows there are: places to start at, or windows of an epoch.
    """

    def __init__(
        self,
        source: Source,
        length: int,
        *,
        batch_size: int,
        seed: int,
        order: Order = "random",
        within_documents: bool = False,
    ) -> None:
        _check_whole("length", length, 1)
        _check_whole("batch", batch_size, 1)
        _check_whole("seed", seed)
        if order not in ("random", "epochs"):
            raise ValueError(f"order must be 'random' or 'epochs', but is {order!r}.")
        self.source, self.length, self.batch_size = source, int(length), int(batch_size)
        self.seed, self.order, self.within_documents = int(seed), order, within_documents

        starts = source.starts.astype(np.int64) if within_documents else np.zeros(1, np.int64)
        sizes = np.diff(starts, append=len(source.ids))
        if order == "random":
            self._stride, counts = 1, np.maximum(sizes - self.length, 0)
        else:
            self._stride, counts = self.length, np.maximum(sizes - 1, 0) // self.length
        self._starts, self._before = starts, np.concatenate([[0], np.cumsum(counts)])
        self.count = int(self._before[-1])
        if not self.count:
            raise ValueError(
                f"length is {length}, so a window needs {length + 1} ids in a row, targets "
                f"included, but there are at most {max(sizes, default=0)}. Make it shorter."
            )

    def batch(self, step: int) -> Batch:
        """The inputs and targets of a step, counted from 0: each (batch_size, length), int64.

        With several processes, let the one of rank r of n take `batch(step * n + r)`.
        """
        shape = (self.batch_size, self.length)
        inputs, targets = np.empty(shape, np.int64), np.empty(shape, np.int64)
        for row, start in enumerate(self.starts(step).tolist()):
            inputs[row] = self.source.ids[start : start + self.length]
            targets[row] = self.source.ids[start + 1 : start + 1 + self.length]
        return inputs, targets

    __getitem__ = batch  # so that torch's DataLoader takes it, with steps as its sampler

    def starts(self, step: int) -> NDArray[np.int64]:
        """Where in the ids the windows of a step start: (batch_size,)."""
        if step < 0:
            raise IndexError(f"step {step}: steps are counted from 0")
        if self.order == "random":
            drawn = _uniform(f"random {self.seed} {step}", self.batch_size) % self.count
        else:
            drawn = self._dealt(int(step) * self.batch_size)
        numbers = drawn.astype(np.int64)
        document = np.searchsorted(self._before, numbers, side="right") - 1
        found: NDArray[np.int64] = (
            self._starts[document] + (numbers - self._before[document]) * self._stride
        )
        return found

    def _dealt(self, first: int) -> Words:
        """The numbers of the windows from `first` on, all epochs counted in a row."""
        parts, left = [], self.batch_size
        while left:
            epoch, place = divmod(first, self.count)
            taken = min(left, self.count - place)
            places = np.arange(place, place + taken, dtype=np.uint64)
            parts.append(permuted(places, self.count, f"epochs {self.seed} {epoch}"))
            first, left = first + taken, left - taken
        return np.concatenate(parts)


def permuted(places: Words, size: int, key: str) -> Words:
    """What stands at `places` of a permutation of 0 to `size` - 1 that `key` chooses: same shape.

    Nothing of `size` is ever held. A Feistel network permutes the numbers of an even number of
    bits, at least as many as `size` has and less than four times `size` of them; a number that
    leads outside is led on until it comes back in (Black and Rogaway, "Ciphers with Arbitrary
    Finite Domains", 2002). It is a shuffle for training, no cipher.
    """
    half = max((size - 1).bit_length() + 1 >> 1, 1)
    keys = _uniform(key, ROUNDS)
    values = places.copy()
    inside = np.zeros(len(values), np.bool_)
    while not inside.all():
        values[~inside] = _feistel(values[~inside], half, keys)
        inside = values < size
    return values


def _feistel(values: Words, half: int, keys: Words) -> Words:
    shift, mask = np.uint64(half), np.uint64((1 << half) - 1)
    left, right = values >> shift, values & mask
    for key in keys:
        left, right = right, left ^ (_mixed(right + key) & mask)
    return (left << shift) | right


def _mixed(values: Words) -> Words:
    """Every bit depends on every bit: the finalizer of SplitMix64 (Steele et al., 2014)."""
    values = (values ^ (values >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    values = (values ^ (values >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return values ^ (values >> np.uint64(31))


def _uniform(key: str, number: int) -> Words:
    digest = hashlib.shake_256(f"bytepair windows 1 {key}".encode()).digest(8 * number)
    return np.frombuffer(digest, "<u8").astype(np.uint64)


def _check_whole(name: str, value: Any, lowest: int | None = None) -> None:
    whole = isinstance(value, (int, np.integer)) and not isinstance(value, bool)
    if not whole or (lowest is not None and value < lowest):
        limit = "" if lowest is None else f" from {lowest} on"
        raise ValueError(f"{name} must be a whole number{limit}, but is {value!r}.")
