"""Encoding with the kernel."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from bytepair.kernel import check, library


class Encoder:
    """Turns text into ids; safe to share between threads, each of which takes one of its encoders.

    An encoder remembers chunks, at most 655,360 short and 327,680 long ones, in about 120 MB.

    Attributes:
        slack: room that an array of ids needs beyond the bytes of the text.
    """

    def __init__(
        self,
        merges: Sequence[tuple[int, int]],
        scanner: tuple[int, tuple[tuple[int, int, int], ...]] | None,
    ) -> None:
        loaded = library()
        if loaded is None:
            raise RuntimeError("there is no kernel")
        self._ffi, self._lib = loaded
        self._pairs = array("I", [token for pair in merges for token in pair])
        self._merges = len(merges)
        self._scanner = scanner
        self.slack: int = self._lib.BP_SLACK
        self._idle: list[Any] = []
        self._new = self._ffi.new_allocator(should_clear_after_alloc=False)

    def encode(self, text: bytes) -> list[int]:
        """The ids of a text, cut by the scanner; without one it is a single chunk."""
        ids = self._new("uint32_t[]", len(text) + self._lib.BP_SLACK)
        return self._ffi.unpack(ids, self.encode_into(text, ids, 4))  # type: ignore[no-any-return]

    def encode_into(self, text: bytes, ids: Any, width: int) -> int:
        """Write ids of `width` bytes, with room for len(text) + slack of them; returns how many."""
        if not isinstance(ids, self._ffi.CData):
            kind = "uint16_t[]" if width == 2 else "uint32_t[]"
            ids = self._ffi.from_buffer(kind, ids, require_writable=True)
        written = self._ffi.new("size_t *")
        encoder = self._take()
        try:
            data = self._ffi.from_buffer("uint8_t[]", text)
            status = self._lib.bp_encode(
                encoder, data, len(data), ids, width, len(data) + self._lib.BP_SLACK, written
            )
        finally:
            self._idle.append(encoder)
        check(self._lib, status)
        return written[0]  # type: ignore[no-any-return]

    def encode_chunks(self, chunks: Sequence[bytes]) -> list[int]:
        """The ids of a text that is cut already."""
        text = b"".join(chunks)
        ends = array("Q", accumulate(map(len, chunks)))
        ids = self._new("uint32_t[]", len(text) + self._lib.BP_SLACK)
        written = self._ffi.new("size_t *")
        encoder = self._take()
        try:
            status = self._lib.bp_encode_chunks(
                encoder,
                self._ffi.from_buffer("uint8_t[]", text),
                len(text),
                self._ffi.from_buffer("uint64_t[]", ends),
                len(ends),
                ids,
                4,
                len(text) + self._lib.BP_SLACK,
                written,
            )
        finally:
            self._idle.append(encoder)
        check(self._lib, status)
        return self._ffi.unpack(ids, written[0])  # type: ignore[no-any-return]

    def _take(self) -> Any:
        try:
            return self._idle.pop()
        except IndexError:
            return self._make()

    def _make(self) -> Any:
        made = self._ffi.new("bp_encoder **")
        pairs = self._ffi.from_buffer("uint32_t[]", self._pairs)
        check(self._lib, self._lib.bp_encoder_new(pairs, self._merges, made))
        encoder = self._ffi.gc(made[0], self._lib.bp_encoder_free)
        if self._scanner is not None:
            number, ranges = self._scanner
            given = self._ffi.new("bp_range[]", list(ranges))
            check(self._lib, self._lib.bp_encoder_cut_by(encoder, number, given, len(ranges)))
        return encoder
