r"""Documents of .txt files: a file is one, or is cut at a separator while it is read.

Stripping is the one of a corpus of one file: one byte order mark at the beginning is dropped, CRLF
is LF, a CR without LF is refused; no final LF is added, since a file may end in a separator. That
is done before the separator is looked for. A piece without a character, between two separators
or after the last, is no record.

A .txt file has no fields. Its documents are named by the file's path and their number; where
groups are asked for, all documents of a file are one.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import BinaryIO

from bytepair.corpora.shard_documents import (
    Document,
    Malformed,
    MalformedError,
    Records,
    decode_record,
    too_large,
)
from bytepair.corpora.strip import BOM
from bytepair.shard_params import ReadRules

BLOCK = 1 << 20


def read_text_file(stream: BinaryIO, rules: ReadRules, path: str) -> Records:
    """The documents of a file of text."""
    separator = None if rules.separator is None else rules.separator.encode()
    for number, piece in enumerate(_pieces(stream, separator, rules.largest), start=1):
        name = f"{path}:{number}"
        group = name if rules.group is None else path
        try:
            yield Document(name, group, _text(piece, rules.largest))
        except MalformedError as error:
            yield Malformed(number, str(error))


def _text(piece: bytearray | None, largest: int) -> str:
    if piece is None:
        raise MalformedError(too_large(largest))
    if not piece:
        raise MalformedError("it is empty")
    if (offset := piece.find(b"\r")) >= 0:
        raise MalformedError(f"a CR without LF at byte offset {offset} of it")
    return decode_record(piece)


def _pieces(stream: BinaryIO, separator: bytes | None, largest: int) -> Iterator[bytearray | None]:
    """What stands between separators; None for what has more than `largest` bytes.

    Without a separator there is one piece, even an empty one.
    """
    lines = _Lines(stream)
    keep = len(separator) - 1 if separator else 0  # so much may begin a separator
    rest, searched, is_too_large = bytearray(), 0, False
    while block := lines.read():
        rest += block
        while separator and (end := rest.find(separator, searched)) >= 0:
            if is_too_large or end > largest:
                yield None
            elif end:
                yield rest[:end]
            del rest[: end + len(separator)]
            searched, is_too_large = 0, False
        searched = max(0, len(rest) - keep)
        if searched > largest:
            is_too_large = True
            del rest[:searched]
            searched = 0
    if is_too_large or len(rest) > largest:
        yield None
    elif rest or separator is None:
        yield rest


class _Lines:
    """A stream without a byte order mark at its beginning, and with LF for CRLF."""

    def __init__(self, stream: BinaryIO) -> None:
        self._stream = stream
        self._ahead = stream.read(len(BOM)).removeprefix(BOM) + stream.read(BLOCK)

    def read(self) -> bytes:
        """The next bytes, about BLOCK; none at the end."""
        block = b""
        while self._ahead and not block:
            block, self._ahead = self._ahead, self._stream.read(BLOCK)
            if block.endswith(b"\r") and self._ahead:  # its LF may be ahead
                block, self._ahead = block[:-1], b"\r" + self._ahead
        return block.replace(b"\r\n", b"\n")
