"""What the stages do for a corpus of many shards, which is read where it lies.

`fetch` looks through all shards and writes their manifest, `strip` and `split` write rules, which
are applied whenever a shard is read, `count-chunks` and `encode-splits` do each shard by itself and
put the results together. The files that come out are those of a corpus of one file.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from bytepair.corpora.manifest import MANIFEST, Manifest
from bytepair.corpora.records import CLEAN
from bytepair.corpora.shards import Survey, make_manifest
from bytepair.engine import EngineParams, open_engine
from bytepair.engine_params import load_engine
from bytepair.fields import COUNT, SHA256, TEXT, Check, check_fields, damaged
from bytepair.files import read_bytes, read_record, write_bytes, write_record
from bytepair.layout import RULE, SPLITS, CorpusPaths, TokenizerPaths
from bytepair.params import TokenizerParams
from bytepair.patterns import Pattern
from bytepair.shard_params import HashSplit, ShardedCorpusParams
from bytepair.shards.join import join_tokens
from bytepair.shards.merge import merge_shards
from bytepair.shards.progress import ShardLine
from bytepair.shards.run import line_of, run_shards, with_progress
from bytepair.shards.source import ShardSource, sources_of
from bytepair.shards.work import (
    CountTask,
    Done,
    EncodeTask,
    count_shard,
    encode_shard,
    shard_name,
)
from bytepair.tokenizer import Tokenizer
from bytepair.tokens import TokensIndex

PARAMS = "params.yaml"
_SHARE: Check = (
    "a decimal as text, or null",
    lambda value: value is None or (isinstance(value, str) and 0 <= Decimal(value) < 1),
)
_RULE_FIELDS: Mapping[str, Any] = {
    "seed": COUNT,
    "val": _SHARE,
    "test": _SHARE,
    "separator": TEXT,
    "manifest_sha256": SHA256,
}


def fetch_shards(corpus: ShardedCorpusParams, paths: CorpusPaths) -> str:
    """Look through every shard and record what is there: raw/manifest.json."""
    previous = Manifest.load(paths.manifest) if paths.manifest.is_file() else None
    with open_engine(load_engine(paths.root / PARAMS)) as engine:
        manifest = make_manifest(
            corpus.fetch.shards,
            corpus.fetch.rules,
            skip=corpus.fetch.skip,
            previous=previous,
            map_tasks=with_progress("fetch", engine, _line_of_survey),
        )
    manifest.save(paths.manifest)
    skipped = f", {manifest.skipped:,} malformed records skipped" if manifest.skipped else ""
    return (
        f"{corpus.name}: {len(manifest.shards):,} shards, {manifest.documents:,} documents, "
        f"{manifest.bytes:,} bytes{skipped}"
    )


def strip_shards(corpus: ShardedCorpusParams, paths: CorpusPaths) -> str:
    """Its clean text is the manifest: what is stripped, is so whenever a shard is read."""
    manifest = Manifest.load(paths.manifest)
    write_bytes(paths.clean / CLEAN, read_bytes(paths.manifest))
    return f"{corpus.name}: {len(manifest.shards):,} shards, stripped when they are read"


def split_shards(corpus: ShardedCorpusParams, paths: CorpusPaths) -> str:
    """Write the rule of each split: which shards, and how their documents are dealt."""
    split = corpus.split
    manifest = Manifest.load(paths.clean / CLEAN)
    wanted = {"train": True, "val": split.val is not None, "test": split.test is not None}
    for name in SPLITS:
        folder = paths.splits / name
        if wanted[name]:
            (folder / RULE).unlink(missing_ok=True)
            manifest.save(folder / MANIFEST)
            write_record(folder / RULE, {**_rule(split), "manifest_sha256": manifest.sha256})
        elif folder.exists():
            shutil.rmtree(folder)
    shares = [
        f"{name} {share}" for name, share in (("val", split.val), ("test", split.test)) if share
    ]
    return f"{corpus.name}: train and {', '.join(shares) or 'nothing else'}, by seed {split.seed}"


def count_shards(tokenizer: TokenizerParams, paths: TokenizerPaths) -> str:
    """Count the chunks of each shard's documents of train, and add the counts up."""
    engine_params = load_engine(paths.root / PARAMS)
    tasks = count_tasks(tokenizer, paths, store_of(engine_params, paths), engine_params.memory)
    with open_engine(engine_params) as engine:
        merge_shards(
            tasks,
            run_shards("count", count_shard, tasks, engine),
            paths.counts,
            memory=engine_params.memory,
            map_tasks=with_progress("merge", engine, line_of),
        )
    index = read_record(paths.counts / "index.json")
    return (
        f"{tokenizer.name}: {index['total']:,} chunks, {index['distinct']:,} distinct, "
        f"cut by {tasks[0].pattern.regex!r}"
    )


def count_tasks(
    tokenizer: TokenizerParams, paths: TokenizerPaths, store: str, memory: int
) -> list[CountTask]:
    """Counting each shard that the split train has, in a store."""
    split, sources = split_sources(CorpusPaths(paths.root, tokenizer.corpus), "train")
    pattern = Pattern.chosen(tokenizer.chunks.pattern, tokenizer.pattern_key)
    return [
        CountTask(
            name=shard_name(source.name),
            source=source,
            separator=split.separator,
            pattern=pattern,
            special_tokens=tokenizer.chunks.special_tokens,
            store=store,
            memory=memory,
        )
        for source in sources
    ]


def encode_shards(tokenizer: TokenizerParams, paths: TokenizerPaths) -> str:
    """Encode the documents of each shard, and join the arrays of each split."""
    engine_params = load_engine(paths.root / PARAMS)
    tasks = encode_tasks(tokenizer, paths, store_of(engine_params, paths))
    with open_engine(engine_params) as engine:
        done = run_shards("encode", encode_shard, tasks, engine)
    indices = join_splits(tasks, done, paths)
    # test is looked at in the end, and only where params say so
    lengths = [f"{name} {index.length:,}" for name, index in indices.items() if name != "test"]
    return f"{tokenizer.name}: tokens: {', '.join(lengths)}"


def encode_tasks(tokenizer: TokenizerParams, paths: TokenizerPaths, store: str) -> list[EncodeTask]:
    """Encoding each shard by bpe.json, in a store."""
    corpus = CorpusPaths(paths.root, tokenizer.corpus)
    asked = tuple(name for name in SPLITS if (corpus.splits / name).is_dir())
    split, sources = split_sources(corpus, "train")
    data = read_bytes(paths.bpe)
    return [
        EncodeTask(
            name=shard_name(source.name),
            source=source,
            splits=asked,
            separator=split.separator,
            tokenizer=data,
            special=tokenizer.encode.separator,
            store=store,
        )
        for source in sources
    ]


def join_splits(
    tasks: Sequence[EncodeTask], done: Sequence[Done], paths: TokenizerPaths
) -> dict[str, TokensIndex]:
    """Join the arrays of each split; one that is not among those of the tasks is removed."""
    vocab_size = Tokenizer.load(paths.bpe).vocab_size
    indices = {}
    for name in SPLITS:
        folder = paths.tokens / name
        if name in tasks[0].splits:
            indices[name] = join_tokens(tasks, done, name, folder, vocab_size=vocab_size)
        elif folder.exists():
            shutil.rmtree(folder)
    return indices


def _line_of_survey(survey: Survey, seconds: float) -> ShardLine:
    return ShardLine(
        shard=survey.shard.url,
        seconds=seconds,
        bytes=survey.shard.bytes,
        documents=survey.shard.documents,
        tokens=None,
        skipped=survey.shard.skipped,
        reused=survey.is_known,
    )


def split_sources(corpus: CorpusPaths, name: str) -> tuple[HashSplit, list[ShardSource]]:
    """How documents are dealt, and the shards that `split` wrote down for a split.

    Raises:
        ArtifactError: a file is absent or damaged, or the two do not belong together.
    """
    path = corpus.splits / name / RULE
    rule = read_record(path)
    check_fields(rule, _RULE_FIELDS, path)
    manifest = Manifest.load(path.with_name(MANIFEST))
    if manifest.sha256 != rule["manifest_sha256"]:
        raise damaged(path, f"{MANIFEST} beside it is another")
    shares = {key: None if rule[key] is None else Decimal(rule[key]) for key in ("val", "test")}
    split = HashSplit(seed=rule["seed"], separator=rule["separator"], **shares)
    return split, sources_of(manifest, split)


def store_of(params: EngineParams, paths: TokenizerPaths) -> str:
    """Where a tokenizer's counts and tokens of each shard lie, as a path or URL."""
    if params.store is None:
        return str(paths.shards.resolve())
    return f"{params.store.rstrip('/')}/{paths.name}"


def _rule(split: HashSplit) -> dict[str, Any]:
    return {
        "seed": split.seed,
        "val": None if split.val is None else str(split.val),
        "test": None if split.test is None else str(split.test),
        "separator": split.separator,
    }
