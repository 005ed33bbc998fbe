"""Merging sorted runs of counts on disk, however large, within a stated memory.

A run is what ChunkCounts.save writes, without the index: chunks.bin, ends.bin and counts.bin. Each
is read through a window that is moved along it, so memory depends on the number of runs merged at a
time and not on their sizes; if that number is too large for the memory, groups of runs are merged
to runs on disk first. Sums do not depend on the order, so neither do the bytes that come out.
"""

from __future__ import annotations

import hashlib
import heapq
import io
from array import array
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import Any, BinaryIO, Self

import numpy as np

from bytepair.errors import ArtifactError
from bytepair.fields import COUNT, SHA256, check_fields
from bytepair.files import StrPath
from bytepair.kernel import library
from bytepair.kernel.merge_counts import Merger, not_sorted, too_large
from bytepair.packed import PackedCounts, from_little_endian, little_endian

RUN_FILES = ("chunks.bin", "ends.bin", "counts.bin")
LEAST_WINDOW = 256 << 10  # bytes; below, reading takes more calls than time
LARGEST_WINDOW = 8 << 20
AT_ONCE = 64  # runs, of three files each: a process may have 256 open on some systems
_ENTRY = 16  # bytes of an end and a count
_BATCH = 1 << 16  # chunks that Python, without the kernel, writes at a time


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFacts:
    """What is known of a run: sizes in chunks and bytes, and the hash of each file."""

    distinct: int
    total: int
    size: int
    longest: int
    sha256: Mapping[str, str]

    def to_json(self) -> dict[str, Any]:
        """As it stands in a receipt."""
        return {
            "distinct": self.distinct,
            "total": self.total,
            "bytes": self.size,
            "longest": self.longest,
            "files": dict(self.sha256),
        }

    @classmethod
    def from_json(cls, value: Any, path: StrPath) -> RunFacts:
        """What `to_json` gave.

        Raises:
            ArtifactError: it is something else; the message names `path` and the field.
        """
        fields = dict.fromkeys(("distinct", "total", "bytes", "longest"), COUNT)
        check_fields(value, {**fields, "files": dict.fromkeys(RUN_FILES, SHA256)}, path)
        return cls(
            distinct=value["distinct"],
            total=value["total"],
            size=value["bytes"],
            longest=value["longest"],
            sha256=value["files"],
        )


@dataclass(frozen=True, slots=True)
class SortedRun:
    """Sorted counts that lie somewhere.

    Attributes:
        name: for messages.
        facts: what they are held to.
        open: from the name of a file to a stream of its bytes.
    """

    name: str
    facts: RunFacts
    open: Callable[[str], BinaryIO]

    @classmethod
    def in_folder(cls, folder: Path, facts: RunFacts) -> SortedRun:
        """A run in a folder of this machine."""
        return cls(str(folder), facts, partial(_open_in, folder))


class RunWriter:
    """Writes a run into a folder, in pieces; `close` tells what was written."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._stack = ExitStack()
        self._files = {
            name: self._stack.enter_context((folder / name).open("wb")) for name in RUN_FILES
        }
        self._hashes = {name: hashlib.sha256() for name in RUN_FILES}
        self._distinct = self._total = self._size = self._longest = 0

    def write(
        self, chunks: bytes | bytearray | memoryview, ends: array[int], counts: array[int]
    ) -> None:
        """The next chunks in order; `ends` are places in the whole run."""
        if not ends:
            return
        numbers, places = np.frombuffer(counts, np.uint64), np.frombuffer(ends, np.uint64)
        longest = int(np.diff(places).max(initial=0))
        self._longest = max(self._longest, ends[0] - self._size, longest)
        high, low = numbers >> np.uint64(32), numbers & np.uint64(0xFFFFFFFF)
        self._total += (int(high.sum()) << 32) + int(low.sum())  # the sum may need 65 bits
        self._distinct += len(numbers)
        self._size += len(chunks)
        data = (chunks, little_endian(ends), little_endian(counts))
        for name, piece in zip(RUN_FILES, data, strict=True):
            self._files[name].write(piece)
            self._hashes[name].update(piece)

    def close(self) -> RunFacts:
        """Close the files."""
        self._stack.close()
        return RunFacts(
            distinct=self._distinct,
            total=self._total,
            size=self._size,
            longest=self._longest,
            sha256={name: digest.hexdigest() for name, digest in self._hashes.items()},
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()


def write_run(folder: Path, counts: PackedCounts) -> RunFacts:
    """Write counts that are in order."""
    with RunWriter(folder) as writer:
        writer.write(counts.chunks, counts.ends, counts.numbers)
        return writer.close()


def merge_runs(runs: Sequence[SortedRun], folder: Path, *, memory: int, scratch: Path) -> RunFacts:
    """Merge runs into one in `folder`, adding the counts of equal chunks.

    Args:
        runs: any number, also none.
        folder: where the files of the result are written.
        memory: bytes that buffers may have together. Chunks longer than that still get their room,
            one of each of two runs at least.
        scratch: where runs between the first and the last are kept, if the memory asks for them.

    Raises:
        ArtifactError: a run is not what its facts say, or a sum needs more than 64 bits.
    """
    longest = max((run.facts.longest for run in runs), default=0)
    at_a_time = min(AT_ONCE, max(2, memory // 2 // max(LEAST_WINDOW, longest)))
    made: list[Path] = []
    while len(runs) > at_a_time:
        groups = [runs[i : i + at_a_time] for i in range(0, len(runs), at_a_time)]
        before, made, runs = made, [], []
        for group in groups:
            target = scratch / f"run-{len(made):06}-of-{len(groups):06}"
            facts = _merge_at_once(group, target, memory)
            made.append(target)
            runs.append(SortedRun.in_folder(target, facts))
        _remove(before)
    facts = _merge_at_once(runs, folder, memory)
    _remove(made)
    return facts


def _remove(folders: Sequence[Path]) -> None:
    for folder in folders:
        for name in RUN_FILES:
            (folder / name).unlink()
        folder.rmdir()


def _merge_at_once(runs: Sequence[SortedRun], folder: Path, memory: int) -> RunFacts:
    window = min(LARGEST_WINDOW, max(LEAST_WINDOW, memory // 2 // max(1, len(runs))))
    merge = _merge_in_python if library() is None else _merge_in_kernel
    with ExitStack() as stack, RunWriter(folder) as writer:
        readers = [stack.enter_context(_Reader(run, window)) for run in runs]
        room = min(LARGEST_WINDOW, max(LEAST_WINDOW, memory // 8))
        for piece in merge(readers, room):
            writer.write(*piece)
        return writer.close()


Piece = tuple[bytes | memoryview, "array[int]", "array[int]"]  # chunks, ends, counts


class _Reader:
    """A run, window after window; at the end its hashes are compared."""

    def __init__(self, run: SortedRun, window: int) -> None:
        self.run = run
        self.name = run.name
        self._room = window // 2  # bytes of chunks
        self._entries = window // 2 // _ENTRY
        self._stack = ExitStack()
        self._files: dict[str, BinaryIO] = {}
        self._hashes = {name: hashlib.sha256() for name in RUN_FILES}
        self._left = run.facts.distinct
        self._ends, self._counts = array("Q"), array("Q")  # read, but beyond the window before
        self._end = 0
        self._last_chunk = b""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            for name in RUN_FILES:
                self._files[name] = stack.enter_context(self.run.open(name))
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def next(self) -> tuple[bytes, array[int], array[int], int, bool]:
        """Chunks, ends, counts, where the first chunk begins, and whether this is the last window.

        Raises:
            ArtifactError: the run ends early, is damaged, or is not in order.
        """
        wanted = min(self._left, max(0, self._entries - len(self._ends)))
        self._left -= wanted
        self._ends += from_little_endian(self._read("ends.bin", 8 * wanted))
        self._counts += from_little_endian(self._read("counts.bin", 8 * wanted))
        begin, limit = self._end, self._end + self._room
        number = bisect_right(self._ends, limit)
        if not number and self._ends:  # a chunk longer than the window
            number = 1
        ends, counts = self._ends[:number], self._counts[:number]
        self._ends, self._counts = self._ends[number:], self._counts[number:]
        if ends:
            places = np.frombuffer(ends, np.uint64)
            if not (begin < ends[0] and (places[:-1] < places[1:]).all()):
                raise not_sorted(self.name)
            self._end = ends[-1]
        if self._end > self.run.facts.size:
            raise not_sorted(self.name)
        chunks = self._read("chunks.bin", self._end - begin)
        self._check_order(chunks, ends, begin)
        is_last = not self._left and not self._ends
        if is_last:
            self._check_hashes()
        return chunks, ends, counts, begin, is_last

    def _read(self, name: str, size: int) -> bytes:
        data = self._files[name].read(size)
        while len(data) < size:
            more = self._files[name].read(size - len(data))
            if not more:
                raise ArtifactError(
                    f"{self.name}/{name}: ends before it should. Delete its folder and run again."
                )
            data += more
        self._hashes[name].update(data)
        return data

    def _check_order(self, chunks: bytes, ends: array[int], begin: int) -> None:
        """Hold the first chunk against the last of the window before."""
        if ends:
            if chunks[: ends[0] - begin] <= self._last_chunk:
                raise not_sorted(self.name)
            self._last_chunk = chunks[ends[-2] - begin if len(ends) > 1 else 0 :]

    def _check_hashes(self) -> None:
        for name, expected in self.run.facts.sha256.items():
            found = self._hashes[name].hexdigest()
            if found != expected or self._files[name].read(1):
                raise ArtifactError(
                    f"{self.name}/{name}: sha256 is {found}, but {expected} is on record. "
                    "It was changed after it was made: delete its folder and run again."
                )


def _merge_in_kernel(readers: Sequence[_Reader], room: int) -> Iterator[Piece]:
    names = [reader.name for reader in readers]
    merger = Merger(names, size_room=room, room=room // _ENTRY)
    taken: Sequence[int] = range(len(readers))
    while True:
        for number in taken:
            chunks, ends, counts, origin, is_last = readers[number].next()
            merger.show(number, chunks, ends, counts, origin=origin, is_last=is_last)
        chunks_out, ends_out, counts_out = merger.merge()
        if not ends_out:
            return
        yield chunks_out, ends_out, counts_out
        taken = merger.taken()


def _merge_in_python(readers: Sequence[_Reader], room: int) -> Iterator[Piece]:
    """The same, slowly."""
    end, size = 0, 0
    chunks, ends, counts = io.BytesIO(), array("Q"), array("Q")
    entries = heapq.merge(*(_entries(reader) for reader in readers), key=itemgetter(0))
    for chunk, same in groupby(entries, itemgetter(0)):
        total = 0
        for _, count, name in same:
            total += count
            if total >= 1 << 64:
                raise too_large(name)
        end += len(chunk)
        size += chunks.write(chunk)
        ends.append(end)
        counts.append(total)
        if size >= room or len(ends) >= _BATCH:
            yield chunks.getvalue(), ends, counts
            chunks, ends, counts, size = io.BytesIO(), array("Q"), array("Q"), 0
    yield chunks.getvalue(), ends, counts


def _entries(reader: _Reader) -> Iterator[tuple[bytes, int, str]]:
    is_last = False
    while not is_last:
        chunks, ends, counts, start, is_last = reader.next()
        if not PackedCounts(
            chunks, array("Q", (end - start for end in ends)), counts
        ).is_in_order():
            raise not_sorted(reader.name)
        begin = 0
        for end, count in zip(ends, counts, strict=True):
            yield chunks[begin : end - start], count, reader.name
            begin = end - start


def _open_in(folder: Path, name: str) -> BinaryIO:
    try:
        return (folder / name).open("rb", buffering=0)
    except FileNotFoundError:
        raise ArtifactError(f"{folder / name}: no such file. Run again.") from None
