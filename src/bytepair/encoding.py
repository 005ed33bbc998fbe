"""Text to ids, by the compiled kernel where there is one and in Python elsewhere; both the same.

Special tokens are not known here: tokenizer.py cuts them out.
"""

from __future__ import annotations

from array import array
from bisect import bisect_left, bisect_right
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from bytepair.chunks import cut
from bytepair.kernel import library
from bytepair.kernel.encode import SLACK, Encoder
from bytepair.kernel.scan import is_utf8 as kernel_is_utf8
from bytepair.merging import merge_chunk
from bytepair.patterns import Pattern
from bytepair.scanning import kernel_scanner

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Words repeat, so their ids are remembered: this many chunks of at most that many characters, then
# the memory starts afresh. English prose finds 97 % of its chunks there.
MAX_CACHED_CHUNKS = 1 << 16
MAX_CACHED_LENGTH = 128

# Bytes of text below which a thread more costs more than it saves.
LEAST_FOR_A_THREAD = 1 << 18


class PythonEncoder:
    """Encodes in Python; safe to share between threads."""

    def __init__(self, merges: Sequence[tuple[int, int]], pattern: Pattern) -> None:
        self._ids = {pair: 256 + rank for rank, pair in enumerate(merges)}
        self._pattern = pattern.compiled()
        self._cache: dict[str, list[int]] = {}

    def encode(self, text: str) -> list[int]:
        """The ids of a text without lone surrogates."""
        cache = self._cache
        ids: list[int] = []
        for chunk in cut(text, self._pattern):
            known = cache.get(chunk)
            if known is None:
                known = merge_chunk(chunk.encode("utf-8"), self._ids)
                if len(chunk) <= MAX_CACHED_LENGTH:
                    if len(cache) >= MAX_CACHED_CHUNKS:
                        cache.clear()
                    cache[chunk] = known
            ids += known
        return ids

    def encode_into(
        self, text: bytes, ends: array[int], ids: NDArray[Any], *, threads: int
    ) -> array[int]:
        """See KernelEncoder; one thread does it all."""
        del threads
        return _encode_each(self.encode, text, ends, ids)


class KernelEncoder:
    """Encodes with the kernel; a pattern that the kernel does not know is cut in Python."""

    def __init__(self, merges: Sequence[tuple[int, int]], pattern: Pattern) -> None:
        self._scanner = kernel_scanner(pattern)
        self._pattern = None if self._scanner else pattern.compiled()
        self._cuts = self._pattern is None
        self._encoder = Encoder(merges, self._scanner)

    def encode(self, text: str) -> list[int]:
        """The ids of a text without lone surrogates."""
        if self._cuts:
            return self._encoder.encode(text.encode("utf-8"))
        chunks = cut(text, self._pattern)
        return self._encoder.encode_chunks([chunk.encode("utf-8") for chunk in chunks])

    def encode_into(
        self, text: bytes, ends: array[int], ids: NDArray[Any], *, threads: int
    ) -> array[int]:
        """Write the ids of texts that are joined to the front of `ids`.

        Args:
            text: UTF-8.
            ends: where each text ends in `text`, unsigned 64 bits.
            ids: (n,), uint16 or uint32, n at least len(text) + SLACK.
            threads: the most to use; each beyond the first needs SLACK more ids of room.

        Returns:
            where the ids of each text end in `ids`.
        """
        if not self._cuts:
            return _encode_each(self.encode, text, ends, ids)
        most = min(threads, len(text) // LEAST_FOR_A_THREAD, (len(ids) - len(text)) // SLACK)
        cuts = self._safe_cuts(text, ends, most)
        if not cuts:
            return self._encoder.encode_into(text, ends, ids, ids.itemsize)
        return self._encode_segments(text, ends, ids, cuts)

    def _safe_cuts(self, text: bytes, ends: array[int], segments: int) -> list[int]:
        """Where to cut texts into about as many segments of about the same size."""
        view, cuts = memoryview(text), [0]
        for number in range(1, segments):
            target = len(text) * number // segments
            before = bisect_right(ends, target)
            start = max(cuts[-1], ends[before - 1] if before else 0)
            inside = self._scanner.safe_cut(view[start:target]) if self._scanner else 0
            if start + inside > cuts[-1]:
                cuts.append(start + inside)
        return cuts[1:]

    def _encode_segments(
        self, text: bytes, ends: array[int], ids: NDArray[Any], cuts: list[int]
    ) -> array[int]:
        """A thread encodes a segment to a place of its own; then the places are joined."""
        from concurrent.futures import ThreadPoolExecutor

        parts, added = array("Q", ends), []
        for cut_at in cuts:
            place = bisect_left(parts, cut_at)
            if place == len(parts) or parts[place] != cut_at:
                parts.insert(place, cut_at)
                added.append(place)
        view, starts, stops = memoryview(text), [0, *cuts], [*cuts, len(text)]

        def encode(number: int) -> array[int]:
            start, stop, room = starts[number], stops[number], number * SLACK
            first = bisect_right(parts, start) if number else 0
            own = array("Q", [end - start for end in parts[first : bisect_right(parts, stop)]])
            place = ids[start + room : stop + room + SLACK]
            return self._encoder.encode_into(view[start:stop], own, place, ids.itemsize)

        with ThreadPoolExecutor(len(starts)) as pool:
            found = list(pool.map(encode, range(len(starts))))
        id_ends = array("Q")
        total = 0
        for number, own in enumerate(found):
            begin, length = starts[number] + number * SLACK, own[-1]
            ids[total : total + length] = ids[begin : begin + length]
            id_ends.extend(total + end for end in own)
            total += length
        for place in reversed(added):
            del id_ends[place]
        return id_ends


def _encode_each(
    encode: Callable[[str], list[int]], text: bytes, ends: array[int], ids: NDArray[Any]
) -> array[int]:
    id_ends = array("Q")
    start = written = 0
    for end in ends:
        found = encode(text[start:end].decode("utf-8"))
        ids[written : written + len(found)] = found
        start, written = end, written + len(found)
        id_ends.append(written)
    return id_ends


def is_utf8(text: bytes) -> bool:
    """Whether bytes are a text."""
    if library() is not None:
        return kernel_is_utf8(text)
    try:
        text.decode("utf-8")
    except UnicodeDecodeError:
        return False
    return True


def make_encoder(
    merges: Sequence[tuple[int, int]], pattern: Pattern
) -> PythonEncoder | KernelEncoder:
    """The quicker of the two that can be had."""
    return (PythonEncoder if library() is None else KernelEncoder)(merges, pattern)
