"""Counting chunks with the kernel."""

from __future__ import annotations

from array import array
from typing import Any

from bytepair.kernel import check, library
from bytepair.kernel.scan import Scanner
from bytepair.packed import PackedCounts


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

    def memory(self) -> int:
        """How many bytes of memory it has."""
        return self._lib.bp_counter_memory(self._counter)  # type: ignore[no-any-return]

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
