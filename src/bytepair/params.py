"""params.yaml as typed values: the block of one corpus or one tokenizer, checked to the last key.

Only the block asked for is looked at, so a mistake in another one stops nothing here. What takes
the text or the pattern itself to find out (that a heading is there, that a regular expression
compiles) is found out by those who read them.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

from bytepair.blocks import Block, choices
from bytepair.files import StrPath
from bytepair.yaml_strict import load_yaml

_HASH = re.compile(r"[0-9a-f]{64}")
_NOT_IN_A_FILE_NAME = re.compile(r"[/\\:\x00-\x1f]")
_RANGE_SPLITS = ("train", "val", "test", "dropped")


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

    order: int = 3
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

    @property
    def pattern_key(self) -> str:
        """Where the pattern stands, for messages of those who compile it."""
        return f"params.yaml: tokenizers.{self.name}.chunks.pattern"


def names(path: StrPath) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The names of all corpora and of all tokenizers, in the file's order."""
    top = Block(path, "", load_yaml(path))
    return tuple(top.block("corpora").values), tuple(top.block("tokenizers").values)


def load_corpus(path: StrPath, name: str) -> CorpusParams:
    """Read one block of `corpora`.

    Raises:
        ParamsError: the file, the key, its value, and what to write instead.
    """
    corpora = Block(path, "", load_yaml(path)).block("corpora")
    block = corpora.named(name, "fetch", "strip", "split")
    return CorpusParams(name=name, fetch=_fetch(block), strip=_strip(block), split=_split(block))


def load_tokenizer(path: StrPath, name: str) -> TokenizerParams:
    """Read one block of `tokenizers`.

    Raises:
        ParamsError: the file, the key, its value, and what to write instead.
    """
    top = Block(path, "", load_yaml(path))
    keys = ("corpus", "chunks", "train", "encode", "baseline", "report")
    block = top.block("tokenizers").named(name, *keys)
    chunks = _chunks(block)
    baseline = block.block("baseline", "order", "max_tokens")
    return TokenizerParams(
        name=name,
        corpus=block.choice("corpus", top.block("corpora").values),
        chunks=chunks,
        train=_train(block, len(chunks.special_tokens)),
        encode=_encode(block, chunks.special_tokens),
        baseline=BaselineParams(
            order=baseline.integer("order", minimum=1, maximum=3, default=3),
            max_tokens=baseline.optional_integer("max_tokens", minimum=1),
        ),
        report=ReportParams(test=block.block("report", "test").boolean("test", default=False)),
    )


def _fetch(corpus: Block) -> FetchParams:
    block = corpus.block("fetch", "sources", "file", "raw_sha256", "clean_sha256")
    file = block.string("file")
    if file in {".", ".."} or _NOT_IN_A_FILE_NAME.search(file):
        block.refuse("file", f"expected a bare file name, got {file!r}. Leave the folder out.")
    raw: tuple[str, ...] = ()
    if "raw_sha256" in block.values:
        raw = block.strings("raw_sha256", may_be_empty=True)
    clean = block.optional_string("clean_sha256")
    return FetchParams(
        sources=block.strings("sources"),
        file=file,
        raw_sha256=tuple(
            _sha256(block, f"raw_sha256[{index}]", value) for index, value in enumerate(raw)
        ),
        clean_sha256=None if clean is None else _sha256(block, "clean_sha256", clean),
    )


def _sha256(block: Block, key: str, value: str) -> str:
    if not _HASH.fullmatch(value.lower()):
        block.refuse(
            key,
            f"expected a sha256, 64 hex digits, got {value!r} ({len(value)} characters). "
            "Paste all of it.",
        )
    return value.lower()


def _strip(corpus: Block) -> StripParams:
    block = corpus.block("strip", "start", "end")
    return StripParams(start=block.optional_string("start"), end=block.optional_string("end"))


def _split(corpus: Block) -> HeadingSplit | CharacterSplit:
    by = corpus.block("split").choice("by", ("headings", "characters"))
    return _headings(corpus) if by == "headings" else _characters(corpus)


def _headings(corpus: Block) -> HeadingSplit:
    block = corpus.block("split", "by", "pattern", "expect", "val", "test", "separator")
    return HeadingSplit(
        pattern=_regex(block, "pattern"),
        expect=block.strings("expect"),
        val=block.optional_strings("val"),
        test=block.optional_strings("test"),
        separator=_document_separator(block),
    )


def _characters(corpus: Block) -> CharacterSplit:
    block = corpus.block("split", "by", "ranges", "separator")
    return CharacterSplit(
        ranges=tuple(
            CharacterRange(
                name=part.string("name"),
                start=part.integer("start", minimum=0),
                end=part.integer("end", minimum=0),
                split=part.choice("split", _RANGE_SPLITS),
            )
            for part in block.blocks("ranges", "name", "start", "end", "split")
        ),
        separator=_document_separator(block),
    )


def _document_separator(split: Block) -> str:
    return split.string("separator", default="<|endoftext|>", may_be_empty=True)


def _regex(block: Block, key: str) -> str:
    regex = block.string(key)
    if regex.endswith("\n"):
        block.refuse(
            key,
            f"{regex!r} ends in a newline, as text after | does. "
            "Put the regular expression in single quotes.",
        )
    return regex


def _chunks(tokenizer: Block) -> ChunksParams:
    block = tokenizer.block("chunks", "pattern", "special_tokens")
    return ChunksParams(
        pattern=None if block.get("pattern") is None else _pattern(block),
        special_tokens=block.strings("special_tokens", may_be_empty=True),
    )


def _pattern(chunks: Block) -> PatternParams:
    block = chunks.block("pattern", "name", "regex", "engine", "regex_version")
    if ("name" in block.values) == ("regex" in block.values):
        chunks.refuse("pattern", "expected name or regex, one of them; or null for no pattern.")
    if "name" in block.values:
        for key in ("engine", "regex_version"):
            if key in block.values:
                block.refuse(key, "goes with regex; a named pattern has its own. Delete it.")
        return PatternParams(name=block.string("name"), regex=None, engine="re", regex_version=None)
    engine = block.choice("engine", ("re", "regex"), default="re")
    version = block.optional_string("regex_version")
    if engine == "re" and version is not None:
        block.refuse("regex_version", "goes with `engine: regex` only. Delete it.")
    return PatternParams(
        name=None, regex=_regex(block, "regex"), engine=engine, regex_version=version
    )


def _train(tokenizer: Block, special_tokens: int) -> TrainParams:
    block = tokenizer.block("train", "vocab_size", "min_count")
    return TrainParams(
        vocab_size=block.integer(
            "vocab_size",
            minimum=256 + special_tokens,
            because=f" (256 bytes and {special_tokens} special tokens)",
        ),
        min_count=block.integer("min_count", minimum=1, default=2),
    )


def _encode(tokenizer: Block, special_tokens: tuple[str, ...]) -> EncodeParams:
    block = tokenizer.block("encode", "separator")
    separator = block.optional_string("separator")
    if separator is not None and separator not in special_tokens:
        block.refuse(
            "separator",
            f"{separator!r} is none of the tokenizer's special tokens. Add it to them. "
            f"{choices(separator, special_tokens)}",
        )
    return EncodeParams(separator=separator)
