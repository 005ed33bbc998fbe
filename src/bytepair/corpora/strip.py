"""Cut a published file down to its text: strict UTF-8, LF line ends, the lines between two markers.

Nothing else is changed. Credits and transcriber's notes between the markers stay, and so does
every character but CR: NUL, U+2028, and a U+FEFF that is not the first character are text.
A text that comes out empty is refused here, so split never sees one.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from bytepair.corpora.records import (
    CLEAN,
    FETCH_RECORD,
    RAW,
    STRIP_RECORD,
    FileRecord,
    read_recorded,
)
from bytepair.errors import CorpusError
from bytepair.files import StrPath, decode_utf8, write_bytes, write_record

if TYPE_CHECKING:
    from pathlib import Path

    from bytepair.params import StripParams

BOM = b"\xef\xbb\xbf"
BARE_CR = re.compile(rb"\r(?!\n)")

# The spellings in which one marker was published over the years.
STARRED = re.compile(r"\*\*\* ?(START|END) OF TH(?:E|IS)\b")

# What a file with other markers may hold; quoted in errors, never acted upon.
MARKER_LIKE = re.compile(
    rb"^.*(?:\*\*\* ?(?:START|END)|SMALL PRINT).*$", re.MULTILINE | re.IGNORECASE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Stripped:
    """A clean text, and the lines of the published file that held the markers.

    Lines count from 1; None where params ask for no marker.
    """

    text: bytes
    start_line: int | None
    end_line: int | None


def strip(raw: bytes, params: StripParams, *, path: StrPath) -> Stripped:
    r"""The lines of `raw` strictly between the markers, each with one LF.

    One BOM at the very start is dropped and CRLF becomes LF; lines end at LF only. A marker is the
    one line that begins, in its first column, with the text in params. A marker written
    `*** START OF THE ...` or `*** END OF THE ...` is also met by its other published spellings,
    `THIS` for `THE` and no space after the stars; any other text must agree to the letter. Where a
    marker is None the text runs from the beginning, or to the end. `path` is for messages.

    >>> from bytepair.params import StripParams
    >>> params = StripParams(start="*** START OF THE TALE", end="*** END OF THE TALE")
    >>> raw = b"Header\r\n***START OF THIS TALE***\r\nOnce.\r\n*** END OF THE TALE ***\r\n"
    >>> strip(raw, params, path="tale.txt")
    Stripped(text=b'Once.\n', start_line=2, end_line=4)
    >>> strip(b"Once.\n", params, path="tale.txt")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    bytepair.errors.CorpusError: tale.txt: no line starts with '*** START OF THE TALE'...

    Raises:
        TextError: not UTF-8; the message has the byte offset in `raw`.
        CorpusError: a CR without LF, markers that are not there exactly once each and in order,
            or nothing between them.
    """
    decode_utf8(raw, path)
    if bare := BARE_CR.search(raw):
        raise CorpusError(
            f"{os.fspath(path)}: a CR without LF at byte offset {bare.start()}, line "
            f"{_line(raw, bare.start())}. Convert the file's line ends to LF or CRLF."
        )
    text = raw.removeprefix(BOM).replace(b"\r\n", b"\n")
    if not text:
        raise CorpusError(f"{os.fspath(path)}: the file is empty. Get a whole copy of it.")
    start, end = _find_markers(text, params, path)
    begin = _after_line(text, start) if start is not None else 0
    body = text[begin:end]  # an `end` of None is the end of the text
    if not body or body.isspace():
        raise CorpusError(
            f"{os.fspath(path)}: no text is left when stripped. Get a whole copy of the file."
        )
    return Stripped(
        text=body if body.endswith(b"\n") else body + b"\n",
        start_line=None if start is None else _line(text, start),
        end_line=None if end is None else _line(text, end),
    )


def strip_file(raw_folder: Path, clean_folder: Path, params: StripParams) -> Stripped:
    """Strip raw.txt, held to its record in fetch.json, to clean.txt, and record both in strip.json.

    Raises:
        ArtifactError: raw.txt is not the file that fetch recorded.
        TextError, CorpusError: as strip does; nothing is written then.
    """
    raw_path = raw_folder / RAW
    raw, record = read_recorded(raw_path, raw_folder / FETCH_RECORD, "raw")
    stripped = strip(raw, params, path=raw_path)
    write_bytes(clean_folder / CLEAN, stripped.text)
    write_record(
        clean_folder / STRIP_RECORD,
        {
            "raw": record.as_json(),
            "clean": FileRecord.of(stripped.text).as_json(),
            "start": {"marker": params.start, "line": stripped.start_line},
            "end": {"marker": params.end, "line": stripped.end_line},
        },
    )
    return stripped


def _find_markers(text: bytes, params: StripParams, path: StrPath) -> tuple[int | None, int | None]:
    """The offsets at which the two marker lines begin; None for a marker not asked for."""
    found: list[int | None] = []
    problems = []
    for marker in (params.start, params.end):
        if marker is None:
            found.append(None)
            continue
        offsets = [match.start() for match in _marker_lines(marker).finditer(text)]
        found.append(offsets[0] if offsets else None)
        if len(offsets) != 1:
            lines = ", ".join(str(_line(text, offset)) for offset in offsets)
            who = f"lines {lines} start" if offsets else "no line starts"
            problems.append(f"{who} with {marker!r}, and exactly one must")
    start, end = found
    if not problems and start is not None and end is not None and end <= start:
        problems.append(
            f"{params.end!r} on line {_line(text, end)} comes before "
            f"{params.start!r} on line {_line(text, start)}"
        )
    if problems:
        raise CorpusError(
            f"{os.fspath(path)}: {'; '.join(problems)}. {_marker_like(text)}"
            "Get a whole copy of the file, or correct `strip` in params.yaml."
        )
    return start, end


def _marker_lines(marker: str) -> re.Pattern[bytes]:
    """What matches at the start of each line that begins with `marker` in any of its spellings."""
    spellings = re.escape(marker)
    if starred := STARRED.match(marker):
        rest = re.escape(marker[starred.end() :])
        spellings = rf"\*\*\* ?{starred[1]} OF TH(?:E|IS){rest}"
    return re.compile(b"^" + spellings.encode(), re.MULTILINE)


def _marker_like(text: bytes) -> str:
    """A sentence that quotes the first lines that look like markers, or nothing."""
    likely = list(MARKER_LIKE.finditer(text))[:4]
    quoted = [f"{_line(text, m.start())}: {m[0].decode()[:80]!r}" for m in likely]
    return f"Lines that look like a marker: {'; '.join(quoted)}. " if quoted else ""


def _after_line(text: bytes, offset: int) -> int:
    """Where the line after the one at `offset` begins."""
    end = text.find(b"\n", offset)
    return len(text) if end < 0 else end + 1


def _line(text: bytes, offset: int) -> int:
    """The number, from 1, of the line that holds `offset`."""
    return text.count(b"\n", 0, offset) + 1
