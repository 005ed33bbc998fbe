"""Chunk counts in three flat arrays, as the kernel has them and as they are stored."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterator, Mapping
from itertools import accumulate, pairwise

from bytepair.kernel import check, library


class PackedCounts(Mapping[bytes, int]):
    """From chunks to how often each occurs; a mapping like any other to all else.

    Attributes:
        chunks: the distinct chunks' bytes, one after the other.
        ends: where each ends, unsigned 64 bits.
        numbers: how often each occurs, unsigned 64 bits.
    """

    def __init__(self, chunks: bytes | bytearray, ends: array[int], numbers: array[int]) -> None:
        self.chunks, self.ends, self.numbers = chunks, ends, numbers
        self._index: dict[bytes, int] | None = None

    @classmethod
    def of(cls, counts: Mapping[bytes, int]) -> PackedCounts:
        """The same counts, packed.

        Raises:
            OverflowError, TypeError: a count is no whole number of 64 bits.
        """
        if isinstance(counts, cls):
            return counts
        ends = array("Q", accumulate(map(len, counts)))
        return cls(b"".join(counts), ends, array("Q", counts.values()))

    def __len__(self) -> int:
        return len(self.ends)

    def __iter__(self) -> Iterator[bytes]:
        chunks = bytes(self.chunks)
        start = 0
        for end in self.ends:
            yield chunks[start:end]
            start = end

    def __getitem__(self, chunk: bytes) -> int:
        if self._index is None:
            self._index = dict(zip(self, self.numbers, strict=True))
        return self._index[chunk]

    def in_order(self) -> PackedCounts:
        """The same counts, sorted by chunk bytes."""
        loaded = library()
        if loaded is None:
            return self.of(dict(sorted(zip(self, self.numbers, strict=True))))
        ffi, lib = loaded
        chunks = bytearray(len(self.chunks))
        ends, numbers = (array("Q", bytes(8 * len(self))) for _ in range(2))
        status = lib.bp_counts_sort(
            ffi.from_buffer("uint8_t[]", self.chunks),
            ffi.from_buffer("uint64_t[]", self.ends),
            ffi.from_buffer("uint64_t[]", self.numbers),
            len(self),
            ffi.from_buffer("uint8_t[]", chunks, require_writable=True),
            ffi.from_buffer("uint64_t[]", ends, require_writable=True),
            ffi.from_buffer("uint64_t[]", numbers, require_writable=True),
        )
        check(lib, status)
        return PackedCounts(chunks, ends, numbers)

    def is_in_order(self) -> bool:
        """Whether chunks ascend, none is empty, no count is 0, and the ends fit the bytes."""
        loaded = library()
        if len(self.numbers) != len(self.ends):
            return False
        if loaded is not None:
            ffi, lib = loaded
            return bool(
                lib.bp_counts_are_sorted(
                    ffi.from_buffer("uint8_t[]", self.chunks),
                    len(self.chunks),
                    ffi.from_buffer("uint64_t[]", self.ends),
                    ffi.from_buffer("uint64_t[]", self.numbers),
                    len(self),
                )
            )
        edges = [0, *self.ends]
        return (
            all(start < end for start, end in pairwise(edges))
            and edges[-1] == len(self.chunks)
            and all(chunk < following for chunk, following in pairwise(self))
            and 0 not in self.numbers
        )


def little_endian(numbers: array[int]) -> bytes:
    """Numbers of 64 bits as they are stored."""
    if sys.byteorder == "big":
        numbers = numbers[:]
        numbers.byteswap()
    return numbers.tobytes()


def from_little_endian(data: bytes) -> array[int]:
    """Numbers of 64 bits as they were stored."""
    numbers = array("Q")
    numbers.frombytes(data)
    if sys.byteorder == "big":
        numbers.byteswap()
    return numbers
