"""params.yaml, sharded corpora: which shards, how their records are read, and the split by hash."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal

from bytepair.blocks import Block
from bytepair.files import StrPath
from bytepair.yaml_strict import load_yaml

LARGEST = 64_000_000  # bytes of a record, where params do not say
MOST = 10**12


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadRules:
    """How records become documents. Names of fields are dotted where they are nested."""

    text: str = "text"
    id: str | None = None
    """The field of a document's id; None numbers the records of a shard."""
    group: str | None = None
    """The field whose value documents share that must not part; None makes each id a group."""
    separator: str | None = None
    """What cuts a .txt file into documents; None makes it one."""
    largest: int = LARGEST
    """The most bytes of a record."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardsParams:
    """The shards of a corpus, and how many of their records may be malformed."""

    shards: tuple[str, ...]
    """Local paths and fsspec URLs, exact or with wildcards."""
    rules: ReadRules
    skip: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class HashSplit:
    """Documents are dealt by a hash of their group; None for a split not asked for."""

    seed: int
    val: Decimal | None
    test: Decimal | None
    separator: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardedCorpusParams:
    """A block under `corpora` whose `fetch` names shards."""

    name: str
    fetch: ShardsParams
    split: HashSplit


def is_sharded(path: StrPath, name: str) -> bool:
    """Whether the corpus is one of shards, so that load_sharded_corpus reads it.

    Raises:
        ParamsError: there is no such corpus, or it has no block `fetch`.
    """
    return "shards" in _corpus(path, name).block("fetch").values


def load_sharded_corpus(path: StrPath, name: str) -> ShardedCorpusParams:
    """Read one block of `corpora`, of shards.

    Raises:
        ParamsError: the file, the key, its value, and what to write instead.
    """
    block = _corpus(path, name)
    if block.block("strip").values:
        block.refuse(
            "strip",
            "markers are for a corpus of one file; of shards, line ends and byte order marks are "
            "all that is stripped. Write {}.",
        )
    return ShardedCorpusParams(name=name, fetch=_shards(block), split=_hash_split(block))


def _corpus(path: StrPath, name: str) -> Block:
    corpora = Block(path, "", load_yaml(path)).block("corpora")
    return corpora.named(name, "fetch", "strip", "split")


def _shards(corpus: Block) -> ShardsParams:
    keys = ("shards", "text", "id", "group", "separator", "skip", "largest")
    block = corpus.block("fetch", *keys)
    shards = block.strings("shards")
    for number, pattern in enumerate(shards):
        if pattern.startswith("~"):
            block.refuse(f"shards[{number}]", f"~ is not expanded. Write all of {pattern!r}.")
    largest = block.size("largest", default=LARGEST)
    if largest > MOST:
        block.refuse("largest", f"a record is held in memory: at most {MOST:,} bytes. Lower it.")
    return ShardsParams(
        shards=shards,
        rules=ReadRules(
            text=_field(block, "text", block.string("text", default="text")),
            id=_optional_field(block, "id"),
            group=_optional_field(block, "group"),
            separator=_separator(block),
            largest=largest,
        ),
        skip=block.integer("skip", minimum=0, default=0),
    )


def _optional_field(block: Block, key: str) -> str | None:
    name = block.optional_string(key)
    return None if name is None else _field(block, key, name)


def _field(block: Block, key: str, name: str) -> str:
    if "" in name.split("."):
        block.refuse(key, f"expected names with dots between, as meta.url, got {name!r}.")
    return name


def _separator(block: Block) -> str | None:
    separator = block.optional_string("separator")
    if separator is not None and "\r" in separator:
        block.refuse(
            "separator", f"CRLF is LF before {separator!r} is looked for. Delete the CR from it."
        )
    return separator


def _hash_split(corpus: Block) -> HashSplit:
    block = corpus.block("split", "by", "seed", "val", "test", "separator")
    block.choice("by", ("hash",))
    split = HashSplit(
        seed=block.integer("seed", minimum=0),
        val=block.optional_share("val"),
        test=block.optional_share("test"),
        separator=block.string("separator", default="<|endoftext|>", may_be_empty=True),
    )
    if (split.val or 0) + (split.test or 0) >= 1:
        block.refuse("", f"val {split.val} and test {split.test} leave nothing for train.")
    return split
