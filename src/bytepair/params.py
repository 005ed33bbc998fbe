"""params.yaml as typed values: what each stage reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class FetchParams:
    """Where a corpus comes from, and the hashes it is held to (64 lower-case hex digits)."""

    sources: tuple[str, ...]
    file: str
    raw_sha256: tuple[str, ...]
    clean_sha256: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class StripParams:
    """The lines between which the text stands; None where the text has no such line."""

    start: str | None
    end: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class HeadingSplit:
    """Documents begin at headings; `val` and `test` name those held out, None if not asked for."""

    pattern: str
    expect: tuple[str, ...]
    val: tuple[str, ...] | None
    test: tuple[str, ...] | None
    separator: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CharacterRange:
    """One document by its place in the clean text, counted in characters, `end` excluded."""

    name: str
    start: int
    end: int
    split: str
    """`train`, `val`, `test`, or `dropped`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CharacterSplit:
    """Documents are ranges of characters."""

    ranges: tuple[CharacterRange, ...]
    separator: str


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusParams:
    """A block under `corpora`."""

    name: str
    fetch: FetchParams
    strip: StripParams
    split: HeadingSplit | CharacterSplit


@dataclass(frozen=True, slots=True, kw_only=True)
class PatternParams:
    """A named pattern, or a regular expression and how to read it; one of the two is None."""

    name: str | None
    regex: str | None
    engine: str
    regex_version: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunksParams:
    """How text is cut before training; no pattern makes a document one chunk."""

    pattern: PatternParams | None
    special_tokens: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainParams:
    """How many ids are asked for, and the count below which no pair is merged."""

    vocab_size: int
    min_count: int = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodeParams:
    """The special token put between documents, if any."""

    separator: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class BaselineParams:
    """The n-gram model: how many tokens it sees, this one included, and on how many it trains."""

    order: int = 2
    max_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportParams:
    """Whether the test split is shown."""

    test: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenizerParams:
    """A block under `tokenizers`."""

    name: str
    corpus: str
    chunks: ChunksParams
    train: TrainParams
    encode: EncodeParams
    baseline: BaselineParams
    report: ReportParams
