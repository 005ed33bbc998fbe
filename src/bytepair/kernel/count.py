"""Counting chunks with the kernel."""

from __future__ import annotations

from array import array
from collections.abc import Iterator, Mapping
from typing import Any

from bytepair.kernel import check, library
from bytepair.kernel.scan import Scanner


class PackedCounts(Mapping[bytes, int]):
    """Chunk counts as the kernel gives them; a mapping like any other to all else.

    Attributes:
        chunks: the distinct chunks' bytes, one after the other.
        ends: where each ends, unsigned 64 bits.
        numbers: how often each occurs, unsigned 64 bits.
    """

    def __init__(self, chunks: bytearray, ends: array[int], numbers: array[int]) -> None:
        self.chunks, self.ends, self.numbers = chunks, ends, numbers
        self._index: dict[bytes, int] | None = None

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


class Counter:
    """Counts the chunks of texts fed to it; one thread at a time may use it."""

    def __init__(self, scanner: Scanner) -> None:
        loaded = library()
        if loaded is None:
            raise RuntimeError("there is no kernel")
        self._ffi, self._lib = loaded
        self._scanner = scanner  # must outlive the counter
        made = self._ffi.new("bp_counter **")
        check(self._lib, self._lib.bp_counter_new(scanner.pointer, made))
        self._counter = self._ffi.gc(made[0], self._lib.bp_counter_free)

    def feed(self, text: bytes | bytearray | memoryview, *, last: bool = True) -> None:
        """Count a text, or a piece of one with more to come."""
        data = self._ffi.from_buffer("uint8_t[]", text)
        check(self._lib, self._lib.bp_counter_feed(self._counter, data, len(data), last))

    def feed_texts(self, text: bytes | bytearray, ends: array[int]) -> None:
        """Count several texts, joined; text i ends at ends[i] (unsigned 64 bits)."""
        data = self._ffi.from_buffer("uint8_t[]", text)
        given = self._ffi.from_buffer("uint64_t[]", ends)
        check(
            self._lib,
            self._lib.bp_counter_feed_texts(self._counter, data, len(data), given, len(ends)),
        )

    def merge(self, other: Counter) -> None:
        """Add what another has counted."""
        check(self._lib, self._lib.bp_counter_merge(self._counter, other._counter))

    def take(self) -> PackedCounts:
        """What was counted; the counter's memory is given back."""
        distinct, size = self._ffi.new("size_t *"), self._ffi.new("size_t *")
        self._lib.bp_counter_size(self._counter, distinct, size)
        chunks = bytearray(size[0])
        ends, numbers = (array("Q", bytes(8 * distinct[0])) for _ in range(2))
        self._lib.bp_counter_take(
            self._counter,
            *(
                self._buffer(kind, values)
                for kind, values in (
                    ("uint8_t[]", chunks),
                    ("uint64_t[]", ends),
                    ("uint64_t[]", numbers),
                )
            ),
        )
        self._ffi.release(self._counter)
        return PackedCounts(chunks, ends, numbers)

    def _buffer(self, kind: str, values: Any) -> Any:
        return self._ffi.from_buffer(kind, values, require_writable=True)
