"""Encoding with the kernel."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from itertools import accumulate, chain
from typing import Any

from bytepair.kernel import check, library
from bytepair.kernel.scan import Scanner

# Room that an array of ids needs beyond one for each byte of the text: BP_SLACK in bytepair.h.
SLACK = 16


class Encoder:
    """Turns text into ids; safe to share between threads, each of which takes one of its encoders.

    An encoder remembers chunks, at most 655,360 short and 327,680 long ones, in about 120 MB.

    Args:
        merges: pairs of ids in rank order.
        scanner: cuts texts; without one a text is a single chunk.
    """

    def __init__(self, merges: Sequence[tuple[int, int]], scanner: Scanner | None) -> None:
        loaded = library()
        if loaded is None:
            raise RuntimeError("there is no kernel")
        self._ffi, self._lib = loaded
        self._pairs = array("I", chain.from_iterable(merges))
        self._merges = len(merges)
        self._scanner = scanner
        self._idle: list[Any] = []
        self._new = self._ffi.new_allocator(should_clear_after_alloc=False)

    def encode(self, text: bytes) -> list[int]:
        """The ids of a text."""
        ids = self._new("uint32_t[]", len(text) + SLACK)
        written = self._ffi.new("size_t *")
        data = self._ffi.from_buffer("uint8_t[]", text)
        self._call(self._lib.bp_encode, data, len(data), ids, 4, len(data) + SLACK, written)
        return self._ffi.unpack(ids, written[0])  # type: ignore[no-any-return]

    def encode_into(
        self, text: bytes | memoryview, ends: array[int], ids: Any, width: int
    ) -> array[int]:
        """Write the ids of texts that are joined, text i ending at ends[i] (unsigned 64 bits).

        Args:
            text: UTF-8.
            ends: ascending, the last at the end of `text`.
            ids: a writable buffer with room for len(text) + SLACK ids.
            width: of an id, 2 or 4 bytes.

        Returns:
            where the ids of each text end in `ids`.
        """
        data = self._ffi.from_buffer("uint8_t[]", text)
        room = self._ffi.from_buffer(
            "uint16_t[]" if width == 2 else "uint32_t[]", ids, require_writable=True
        )
        id_ends = array("Q", bytes(8 * len(ends)))
        self._call(
            self._lib.bp_encode_texts,
            data,
            len(data),
            self._ffi.from_buffer("uint64_t[]", ends),
            len(ends),
            room,
            width,
            len(room),
            self._ffi.from_buffer("uint64_t[]", id_ends, require_writable=True),
        )
        return id_ends

    def encode_chunks(self, chunks: Sequence[bytes]) -> list[int]:
        """The ids of a text that is cut already."""
        text = b"".join(chunks)
        ends = array("Q", accumulate(map(len, chunks)))
        ids = self._new("uint32_t[]", len(text) + SLACK)
        written = self._ffi.new("size_t *")
        self._call(
            self._lib.bp_encode_chunks,
            self._ffi.from_buffer("uint8_t[]", text),
            len(text),
            self._ffi.from_buffer("uint64_t[]", ends),
            len(ends),
            ids,
            4,
            len(text) + SLACK,
            written,
        )
        return self._ffi.unpack(ids, written[0])  # type: ignore[no-any-return]

    def _call(self, function: Any, *arguments: Any) -> None:
        """Call a function of the kernel with an encoder that no other thread has."""
        try:
            encoder = self._idle.pop()
        except IndexError:
            encoder = self._make()
        try:
            status = function(encoder, *arguments)
        finally:
            self._idle.append(encoder)
        check(self._lib, status)

    def _make(self) -> Any:
        made = self._ffi.new("bp_encoder **")
        pairs = self._ffi.from_buffer("uint32_t[]", self._pairs)
        scanner = self._ffi.NULL if self._scanner is None else self._scanner.pointer
        check(self._lib, self._lib.bp_encoder_new(scanner, pairs, self._merges, made))
        return self._ffi.gc(made[0], self._lib.bp_encoder_free)
