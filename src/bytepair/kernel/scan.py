"""Where the chunks of a text begin, by the kernel."""

from __future__ import annotations

from typing import Any

from bytepair.kernel import check, library

Ranges = tuple[tuple[int, int, int], ...]  # first and last code point, class


class Scanner:
    """A named pattern, as the kernel knows it; never changed, so threads share it.

    Args:
        number: the pattern's in bytepair.h.
        ranges: its classes, those of scan.h; what is in no range is of class 0.
    """

    def __init__(self, number: int, ranges: Ranges) -> None:
        loaded = library()
        if loaded is None:
            raise RuntimeError("there is no kernel")
        self._ffi, self._lib = loaded
        made = self._ffi.new("bp_scanner **")
        given = self._ffi.new("bp_range[]", list(ranges))
        check(self._lib, self._lib.bp_scanner_new(number, given, len(ranges), made))
        self.pointer: Any = self._ffi.gc(made[0], self._lib.bp_scanner_free)

    def safe_cut(self, text: bytes | bytearray | memoryview) -> int:
        """The length of the longest beginning after which a chunk begins for certain, or 0."""
        data = self._ffi.from_buffer("uint8_t[]", text)
        return self._lib.bp_safe_cut(self.pointer, data, len(data))  # type: ignore[no-any-return]


def is_utf8(text: bytes | bytearray | memoryview) -> bool:
    """Whether all of the bytes are UTF-8; needs the kernel."""
    loaded = library()
    if loaded is None:
        raise RuntimeError("there is no kernel")
    ffi, lib = loaded
    data = ffi.from_buffer("uint8_t[]", text)
    return lib.bp_valid_utf8(data, len(data)) == len(data)  # type: ignore[no-any-return]
