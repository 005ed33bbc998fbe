"""A text in pieces that can be encoded one by one, so that it may be larger than memory."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Protocol

from bytepair.errors import TextError
from bytepair.patterns import Pattern
from bytepair.scanning import kernel_scanner

BLOCK = 1 << 16


class Stream(Protocol):
    """What is read: a file, or a pipe, which gives what it has."""

    def read1(self, size: int, /) -> bytes: ...


def pieces(
    stream: Stream,
    name: str,
    pattern: Pattern,
    special_tokens: Sequence[str] = (),
    *,
    block: int = BLOCK,
) -> Iterator[str]:
    """Pieces of UTF-8 whose ids, one after the other, are those of the whole text.

    With a pattern of one's own, with none, and without the kernel, nobody knows where a text may be
    cut; then all of it is one piece.

    Args:
        stream: read from where it is to its end.
        name: what messages call it.
        pattern: of the tokenizer.
        special_tokens: those that are allowed; none is cut in two.
        block: bytes to be read at a time.

    Raises:
        TextError: a byte is not UTF-8, at which offset.
    """
    scanner = kernel_scanner(pattern)
    encoded = sorted((text.encode("utf-8") for text in special_tokens), key=len, reverse=True)
    found = re.compile(b"|".join(map(re.escape, encoded))) if encoded else None
    longest = len(encoded[0]) if encoded else 1
    rest, done, size = b"", 0, block
    while read := stream.read1(size):
        rest += read
        if scanner is None:
            continue
        certain = max(len(rest) - longest + 1, 0)  # a special token that begins before is whole
        end = 0
        for match in found.finditer(rest) if found else ():
            if match.start() < certain:
                end = match.end()
        end += scanner.safe_cut(memoryview(rest)[end : max(end, certain)])
        if end:
            yield _decoded(rest[:end], done, name)
            rest, done = rest[end:], done + end
        size = max(block, len(rest))  # a long chunk is searched a few times, not once a block
    if rest:
        yield _decoded(rest, done, name)


def _decoded(text: bytes, offset: int, where: str) -> str:
    try:
        return text.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TextError(
            f"{where}: not UTF-8: byte 0x{text[error.start]:02x} at byte offset "
            f"{offset + error.start} ({error.reason}). Convert the file to UTF-8."
        ) from None
