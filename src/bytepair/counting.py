"""Counting chunks with the kernel: text in blocks, on several threads.

Text is cut where that changes no chunk: at special tokens, which are no part of it, and where a
word ends in white space, which no named pattern keeps in one chunk. So a file larger than memory
can be counted, and neither the size of blocks nor the number of threads changes the counts.
"""

from __future__ import annotations

import io
import re
from array import array
from collections.abc import Iterable, Iterator
from itertools import accumulate
from threading import Lock
from typing import BinaryIO

from bytepair.kernel.count import Counter
from bytepair.kernel.scan import Scanner, is_utf8
from bytepair.packed import PackedCounts

BLOCK = 1 << 20  # bytes that a thread takes at a time


class NotUtf8Error(ValueError):
    """Somewhere in the streams; where, finds whoever knows what they are."""


def count_streams(
    streams: Iterable[BinaryIO],
    scanner: Scanner,
    special_tokens: Iterable[str],
    *,
    threads: int,
    block: int = BLOCK,
) -> PackedCounts:
    """Count the chunks of streams of UTF-8, each a document of its own."""
    specials = _Specials(special_tokens)
    units = _units(
        (piece for stream in streams for piece in _pieces(stream, scanner, specials, block)), block
    )
    return _count_units(units, scanner, threads)


def count_in_parts(
    texts: Iterable[bytes], scanner: Scanner, special_tokens: Iterable[str], *, memory: int
) -> Iterator[PackedCounts]:
    """Count the chunks of UTF-8 texts, each a document, and give the counts out in parts.

    A part ends where the tables have `memory` bytes, so a part and what it takes to give it out
    need about three times as much. Added up, parts are the counts of all texts.
    """
    specials = _Specials(special_tokens)
    counter = Counter(scanner)
    pieces = (piece for text in texts for piece in _text_pieces(text, scanner, specials))
    for unit in _units(pieces, BLOCK):
        counter.feed_texts(b"".join(unit), array("Q", accumulate(map(len, unit))))
        if counter.memory() >= memory:
            yield counter.take()
            counter = Counter(scanner)
    yield counter.take()


class _Specials:
    """Special tokens in UTF-8; `split` cuts a text at them, the longest at each place."""

    def __init__(self, special_tokens: Iterable[str]) -> None:
        encoded = sorted((text.encode("utf-8") for text in special_tokens), key=len, reverse=True)
        self.longest = len(encoded[0]) if encoded else 1
        self._pattern = re.compile(b"|".join(map(re.escape, encoded))) if encoded else None

    def split(self, text: bytes, certain: int) -> tuple[list[bytes], int]:
        """What stands before and between special tokens that begin before `certain`.

        And where the last of these ends: what follows is not split yet.
        """
        parts: list[bytes] = []
        end = 0
        for match in self._pattern.finditer(text) if self._pattern else ():
            if match.start() >= certain:
                break
            parts.append(text[end : match.start()])
            end = match.end()
        return parts, end


def _pieces(stream: BinaryIO, scanner: Scanner, specials: _Specials, block: int) -> Iterator[bytes]:
    """A document in pieces whose chunks are the document's, without its special tokens."""
    rest, size = b"", block
    while read := stream.read(size):
        text = rest + read
        certain = len(text) - specials.longest + 1  # one that begins before is whole
        parts, end = specials.split(text, certain)
        yield from parts
        cut = scanner.safe_cut(memoryview(text)[end : max(end, certain)])
        yield text[end : end + cut]
        rest = text[end + cut :]
        size = max(block, len(rest))  # a long chunk is searched a few times, not once a block
    parts, end = specials.split(rest, len(rest))
    yield from parts
    yield rest[end:]


def _text_pieces(text: bytes, scanner: Scanner, specials: _Specials) -> Iterable[bytes]:
    if len(text) > BLOCK:
        return _pieces(io.BytesIO(text), scanner, specials, BLOCK)
    parts, end = specials.split(text, len(text))
    return [*parts, text[end:]] if parts else (text,)


def _units(pieces: Iterable[bytes], block: int) -> Iterator[list[bytes]]:
    """Pieces that are some of them empty, in lists of `block` bytes and more."""
    unit: list[bytes] = []
    size = 0
    for piece in pieces:
        if piece:
            unit.append(piece)
            size += len(piece)
        if size >= block:
            yield unit
            unit, size = [], 0
    if unit:
        yield unit


def _count_units(units: Iterator[list[bytes]], scanner: Scanner, threads: int) -> PackedCounts:
    """Each thread takes the next list when it is done with one; their counts are added."""
    lock = Lock()

    def count() -> Counter:
        counter = Counter(scanner)
        while True:
            with lock:
                unit = next(units, None)
            if unit is None:
                return counter
            text = b"".join(unit)  # of a single one it is that itself
            if not is_utf8(text):
                raise NotUtf8Error
            counter.feed_texts(text, array("Q", accumulate(map(len, unit))))

    if threads == 1:
        return count().take()
    from concurrent.futures import ThreadPoolExecutor

    with ThreadPoolExecutor(threads) as pool:
        first, *others = (
            future.result() for future in [pool.submit(count) for _ in range(threads)]
        )
    for other in others:
        first.merge(other)
    return first.take()
