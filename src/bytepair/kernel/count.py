"""Counting chunks with the kernel."""

from __future__ import annotations

import sys
from array import array
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache
from typing import Any

from bytepair.errors import BytepairError

# The kernel's numbers for patterns, bytepair.h, and for classes, scan.h.
PATTERNS = {"words": 0, "notebook": 1, "gpt2-ascii": 2, "gpt2": 3, "cl100k": 4, "o200k": 5}
LETTER, DIGIT, UPPER, LOWER, MARK, SPACE, LINE = range(1, 8)


class PackedCounts(Mapping[bytes, int]):
    """Chunk counts as the kernel holds them; a mapping like any other to all else.

    Attributes:
        chunks: the distinct chunks' bytes, one after the other.
        ends: where each ends.
        numbers: how often each occurs.
    """

    def __init__(self, chunks: bytearray, ends: array[int], numbers: array[int]) -> None:
        self.chunks, self.ends, self.numbers = chunks, ends, numbers
        self._index: dict[bytes, int] | None = None

    def __len__(self) -> int:
        return len(self.ends)

    def __iter__(self) -> Iterator[bytes]:
        start = 0
        chunks = bytes(self.chunks)
        for end in self.ends:
            yield chunks[start:end]
            start = end

    def __getitem__(self, chunk: bytes) -> int:
        if self._index is None:
            self._index = dict(zip(self, self.numbers, strict=True))
        return self._index[chunk]


def check(lib: Any, status: int) -> None:
    """Turn a status of the kernel into an exception."""
    if status == lib.BP_NO_MEMORY:
        raise MemoryError("the kernel could not allocate memory")
    if status != lib.BP_OK:
        raise BytepairError(f"the kernel refused its input (status {status}).")
