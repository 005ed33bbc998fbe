"""Divide a clean text into documents, and the documents into train, val and test.

A document is a stretch between headings, or a named range of characters, and goes whole into one
split. Every character belongs to one document or one dropped range: headings, too, are turned
into ranges, and ranges are refused unless each begins where the one before it ends, from the first
character to the last. Nothing is shuffled and nothing is drawn at random.
"""

from __future__ import annotations

import re
import shutil
from dataclasses import asdict, dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from bytepair.corpora.records import (
    CLEAN,
    DOCUMENTS,
    SPLIT_RECORD,
    STRIP_RECORD,
    TEXT,
    FileRecord,
    read_recorded,
)
from bytepair.errors import CorpusError, PatternError
from bytepair.files import decode_utf8, write_bytes, write_record
from bytepair.layout import SPLITS
from bytepair.params import CharacterRange, CharacterSplit, HeadingSplit

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

FRONT_MATTER = "front matter"
DROPPED = "dropped"


@dataclass(frozen=True, slots=True)
class Span:
    """A named stretch of a text, in bytes; `end` is excluded."""

    name: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Joined:
    """The text of one split, and where its documents stand in it."""

    text: bytes
    documents: tuple[Span, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class SplitText:
    """All splits of a text that were asked for; `dropped` are stretches of the text itself."""

    splits: dict[str, Joined]
    separator: str
    dropped: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A stretch of the clean text with its bytes, the first of them at `start`."""

    name: str
    split: str
    start: int
    text: bytes


def split(text: bytes, params: HeadingSplit | CharacterSplit) -> SplitText:
    r"""Divide the clean `text` as params say.

    >>> from bytepair.params import HeadingSplit
    >>> params = HeadingSplit(
    ...     pattern=r"^([IV]+)\. ", expect=("I", "II"), val=("II",), test=None, separator="|"
    ... )
    >>> parts = split(b"Tales\nI. Owl\nII. Fox\n", params)
    >>> parts.splits["train"]
    Joined(text=b'I. Owl\n', documents=(Span(name='I', start=0, end=7),))
    >>> parts.dropped
    (Span(name='front matter', start=0, end=6),)
    >>> split(b"I. Owl\nIII. Fox\n", params)  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    bytepair.errors.CorpusError: clean.txt: 2 headings, expected 2; number 2 is 'III' (line 2)...

    Raises:
        TextError: not UTF-8.
        PatternError: the heading pattern does not compile.
        CorpusError: other headings than expected; ranges that leave a gap, overlap, or end
            elsewhere than the text; an empty document or split; a document that holds the
            separator; one document's text in two splits.
    """
    characters = decode_utf8(text, CLEAN)
    if isinstance(params, HeadingSplit):
        ranges = _heading_ranges(characters, params)
    else:
        ranges = params.ranges
    _check_ranges(ranges, len(characters))
    pieces = _cut(characters, ranges)
    _check_documents(pieces, params.separator)
    by_split: dict[str, list[_Piece]] = {name: [] for name in (*SPLITS, DROPPED)}
    for piece in pieces:
        by_split[piece.split].append(piece)
    dropped = by_split.pop(DROPPED)
    return SplitText(
        splits={
            name: _join(documents, params.separator)
            for name, documents in by_split.items()
            if documents
        },
        separator=params.separator,
        dropped=tuple(
            Span(piece.name, piece.start, piece.start + len(piece.text)) for piece in dropped
        ),
    )


def split_file(
    clean_folder: Path, splits_folder: Path, params: HeadingSplit | CharacterSplit
) -> SplitText:
    """Split clean.txt, held to its record in strip.json, into a folder per split, and split.json.

    Nothing is written before all of it is known to be right. A split left over from other params
    is removed.

    Raises:
        ArtifactError: clean.txt is not the file that strip recorded.
        TextError, PatternError, CorpusError: as split does.
    """
    text, clean = read_recorded(clean_folder / CLEAN, clean_folder / STRIP_RECORD, "clean")
    result = split(text, params)
    records = {name: FileRecord.of(joined.text) for name, joined in result.splits.items()}
    for name, joined in result.splits.items():
        documents = {
            "text": records[name].as_json(),
            "separator": result.separator,
            "documents": [asdict(document) for document in joined.documents],
        }
        write_bytes(splits_folder / name / TEXT, joined.text)
        write_record(splits_folder / name / DOCUMENTS, documents)
    for name in SPLITS:
        if name not in records and (splits_folder / name).exists():
            shutil.rmtree(splits_folder / name)
    content = {
        "clean": clean.as_json(),
        "splits": {
            name: {**record.as_json(), "documents": len(result.splits[name].documents)}
            for name, record in records.items()
        },
        "dropped": [asdict(span) for span in result.dropped],
    }
    write_record(splits_folder / SPLIT_RECORD, content)
    return result


def _heading_ranges(text: str, params: HeadingSplit) -> tuple[CharacterRange, ...]:
    """From each heading to the next; the first group of the pattern is a document's name."""
    try:
        pattern = re.compile(params.pattern, re.MULTILINE)
    except re.error as error:
        raise PatternError(
            f"split.pattern {params.pattern!r} does not compile: {error}. Correct params.yaml."
        ) from None
    headings = list(pattern.finditer(text))
    names = [match[1 if pattern.groups else 0] or "" for match in headings]
    starts = [match.start() for match in headings]
    _check_headings(text, names, starts, params.expect)
    split_of = _split_of(params)
    ranges = [
        CharacterRange(name=name, start=start, end=end, split=split_of[name])
        for name, start, end in zip(names, starts, [*starts[1:], len(text)], strict=True)
    ]
    if starts[0] > 0:
        ranges.insert(0, CharacterRange(name=FRONT_MATTER, start=0, end=starts[0], split=DROPPED))
    return tuple(ranges)


def _check_headings(
    text: str, names: list[str], starts: list[int], expect: tuple[str, ...]
) -> None:
    if names and tuple(names) == expect:
        return
    number, found, expected = next(
        (
            (number, found, expected)
            for number, (found, expected) in enumerate(zip_longest(names, expect), start=1)
            if found != expected
        ),
        (1, None, None),  # neither found nor expected: still nothing to split
    )
    place = "missing"
    if found is not None:
        place = f"{found!r} (line {text.count(chr(10), 0, starts[number - 1]) + 1})"
    wanted = "none" if expected is None else repr(expected)
    raise CorpusError(
        f"{CLEAN}: {len(names)} headings, expected {len(expect)}; number {number} is {place}, "
        f"expected {wanted}. Correct split.pattern or split.expect in params.yaml."
    )


def _split_of(params: HeadingSplit) -> dict[str, str]:
    """The split of each document, by name: train unless val or test lists it."""
    split_of = dict.fromkeys(params.expect, "train")
    for split_name, names in (("val", params.val), ("test", params.test)):
        if names is not None and not names:
            raise CorpusError(f"split.{split_name} is empty: name its documents, or leave it out.")
        for name in names or ():
            if split_of.get(name) != "train":
                problem = "is in val already" if name in split_of else "is not in split.expect"
                raise CorpusError(f"split.{split_name}: {name!r} {problem}. Correct params.yaml.")
            split_of[name] = split_name
    return split_of


def _check_ranges(ranges: Sequence[CharacterRange], length: int) -> None:
    """Ranges partition a text of `length` characters, under distinct names."""
    position = 0
    seen = set()
    for place in ranges:
        stands = f"split: {place.name!r} ({place.start} to {place.end})"
        if place.name in seen:
            raise CorpusError(f"{stands}: the name stands twice. Rename one.")
        if place.start != position:
            what = "leaves a gap" if place.start > position else "overlaps"
            raise CorpusError(
                f"{stands} {what}: it must start at {position}. The text has {length:,} characters."
            )
        if place.end <= place.start:
            raise CorpusError(f"{stands} is empty. Leave it out.")
        seen.add(place.name)
        position = place.end
    if position != length:
        raise CorpusError(
            f"split.ranges: they end at {position}, but the text has {length} characters."
        )


def _cut(text: str, ranges: Sequence[CharacterRange]) -> list[_Piece]:
    """The ranges' pieces, with places in bytes instead of characters."""
    pieces = []
    start = 0
    for place in ranges:
        data = text[place.start : place.end].encode()
        pieces.append(_Piece(place.name, place.split, start, data))
        start += len(data)
    return pieces


def _check_documents(pieces: list[_Piece], separator: str) -> None:
    """Train has a document, none holds the separator, and no text is in two splits."""
    documents = [piece for piece in pieces if piece.split != DROPPED]
    if not any(document.split == "train" for document in documents):
        raise CorpusError("split: no document is left for train. Move one there in params.yaml.")
    seen: dict[bytes, _Piece] = {}
    for document in documents:
        offset = document.text.find(separator.encode()) if separator else -1
        if offset >= 0:
            raise CorpusError(
                f"{CLEAN}: document {document.name!r} holds the separator {separator!r} at byte "
                f"offset {document.start + offset}. Choose another split.separator."
            )
        twin = seen.setdefault(document.text, document)
        if twin.split != document.split:
            raise CorpusError(
                f"{CLEAN}: {twin.name!r} in {twin.split} and {document.name!r} in "
                f"{document.split} are the same text. Put both into one split."
            )


def _join(documents: list[_Piece], separator: str) -> Joined:
    gap = separator.encode()
    spans = []
    start = 0
    for document in documents:
        end = start + len(document.text)
        spans.append(Span(document.name, start, end))
        start = end + len(gap)
    return Joined(gap.join(document.text for document in documents), tuple(spans))
