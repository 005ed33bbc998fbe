"""Merging sorted runs of counts with the kernel."""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from typing import Any

from bytepair.errors import ArtifactError
from bytepair.kernel import check, library


class Merger:
    """Adds up the counts of runs, each seen through a window that is moved along it.

    Args:
        names: of the runs, for messages.
        size_room: bytes of chunks that come out at a time, at most; grows for a longer chunk.
        room: how many chunks come out at a time, at most.
    """

    def __init__(self, names: Sequence[str], *, size_room: int, room: int) -> None:
        loaded = library()
        if loaded is None:
            raise RuntimeError("there is no kernel")
        self._ffi, self._lib = loaded
        self._names = names
        self._runs = self._ffi.new("bp_run[]", len(names))
        self._windows: dict[int, Any] = {}  # cffi's views keep the arrays where they are
        self._chunks = bytearray(size_room)
        self._ends, self._counts = (array("Q", bytes(8 * room)) for _ in range(2))
        self._end = 0

    def show(
        self,
        number: int,
        chunks: bytes | memoryview,
        ends: array[int],
        counts: array[int],
        *,
        origin: int,
        is_last: bool,
    ) -> None:
        """The next window of a run; chunk i of it ends at ends[i] - origin in `chunks`."""
        self._windows[number] = views = (
            self._ffi.from_buffer("uint8_t[]", chunks),
            self._ffi.from_buffer("uint64_t[]", ends),
            self._ffi.from_buffer("uint64_t[]", counts),
        )
        run = self._runs[number]
        run.chunks, run.ends, run.counts = views
        run.size, run.number, run.taken = len(chunks), len(ends), 0
        run.origin, run.last = origin, is_last

    def taken(self) -> list[int]:
        """The runs whose windows have been taken and must be followed by others."""
        return [i for i, run in enumerate(self._runs) if run.taken == run.number and not run.last]

    def merge(self) -> tuple[memoryview, array[int], array[int]]:
        """The next sums: the chunks' bytes, where each ends in the whole result, and the counts.

        Comes to a stop where a window has been taken; nothing comes when all is done.

        Raises:
            ArtifactError: a run is not sorted, or a sum needs more than 64 bits.
        """
        culprit = self._ffi.new("size_t *")
        while True:
            merged, _views = self._room()
            status = self._lib.bp_counts_merge(self._runs, len(self._names), merged, culprit)
            if status != self._lib.BP_NO_ROOM:
                break
            self._chunks = bytearray(2 * len(self._chunks))
        if status == self._lib.BP_TOO_LARGE:
            raise too_large(self._names[culprit[0]])
        if status == self._lib.BP_BAD_INPUT:
            raise not_sorted(self._names[culprit[0]])
        check(self._lib, status)
        self._end += merged.size
        chunks = memoryview(self._chunks)[: merged.size]
        return chunks, self._ends[: merged.number], self._counts[: merged.number]

    def _room(self) -> tuple[Any, Any]:
        views = tuple(
            self._ffi.from_buffer(kind, values, require_writable=True)
            for kind, values in (
                ("uint8_t[]", self._chunks),
                ("uint64_t[]", self._ends),
                ("uint64_t[]", self._counts),
            )
        )
        merged = self._ffi.new("bp_merged *")
        merged.chunks, merged.ends, merged.counts = views
        merged.size_room, merged.room, merged.origin = len(self._chunks), len(self._ends), self._end
        return merged, views


def too_large(name: str) -> ArtifactError:
    """What is raised for a sum that 64 bits do not hold."""
    return ArtifactError(
        f"{name}: with it, a chunk occurs 2^64 times or more. Count fewer shards together."
    )


def not_sorted(name: str) -> ArtifactError:
    """What is raised for a run that no counting has written."""
    return ArtifactError(
        f"{name}: its chunks are not in order, or their ends do not fit. Delete it and run again."
    )
