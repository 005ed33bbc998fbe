"""The figures by which people compare a corpus or a tokenizer with what others have.

They are read from the files that stages made; whether those are right is not asked here.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from bytepair.corpora.manifest import Manifest
from bytepair.corpora.records import DOCUMENTS, FETCH_RECORD, SPLIT_RECORD
from bytepair.counts import ChunkCounts
from bytepair.files import read_json, read_record, sha256
from bytepair.layout import RULE, SPLITS, CorpusPaths, TokenizerPaths
from bytepair.tokenizer import Tokenizer
from bytepair.tokens import open_tokens
from bytepair.training import train

FIRST_MERGES = 6


def corpus_facts(paths: CorpusPaths) -> dict[str, Any]:
    """Sizes and hashes of a corpus: raw, clean, each split with its documents, what is dropped.

    Raises:
        ArtifactError: a record is absent or damaged.
    """
    fetched = read_record(paths.raw / FETCH_RECORD)
    record = read_record(paths.splits / SPLIT_RECORD)
    splits = {
        name: {**entry, "documents": _sizes(read_record(paths.splits / name / DOCUMENTS))}
        for name, entry in record["splits"].items()
    }
    return {
        "raw": fetched["raw"],
        "clean": record["clean"],
        "splits": splits,
        "dropped": _sizes({"documents": record["dropped"]}),
    }


def sharded_facts(paths: CorpusPaths) -> dict[str, Any]:
    """Sizes and hash of a corpus of shards, and how its documents are dealt.

    Raises:
        ArtifactError: a record is absent or damaged.
    """
    manifest = Manifest.load(paths.manifest)
    rule = read_record(paths.splits / "train" / RULE)
    return {
        "manifest": {
            "sha256": manifest.sha256,
            "shards": len(manifest.shards),
            "documents": manifest.documents,
            "bytes": manifest.bytes,
            "skipped": manifest.skipped,
        },
        "shares": {key: rule[key] for key in ("val", "test") if rule[key]},
        "seed": rule["seed"],
    }


def tokenizer_facts(paths: TokenizerPaths) -> dict[str, Any]:
    """What a tokenizer is and how it does; None where its counts or arrays are absent.

    The test split is as in metrics/: shown only where the tokenizer's block says so.

    Raises:
        ArtifactError: a file is absent or damaged.
    """
    tokenizer = Tokenizer.load(paths.bpe)
    figures, measures = read_json(paths.metrics), read_json(paths.measures)
    counts = ChunkCounts.load(paths.counts) if paths.counts.is_dir() else None
    return {
        "sha256": tokenizer.sha256,
        "pattern": tokenizer.pattern.regex,
        "engine": tokenizer.pattern.engine,
        "special_tokens": tokenizer.special_tokens,
        "train_sha256": tokenizer.train_sha256,
        "chunks": _chunks(counts),
        "merges": {
            "number": len(tokenizer.merges),
            "sha256": sha256(json.dumps(tokenizer.merges).encode()),
            "first": _first_merges(tokenizer, counts),
        },
        "vocab": figures["vocab"],
        "splits": {
            name: {**figures[name], **_array(paths.tokens / name)}
            for name in SPLITS
            if name in figures
        },
        "unused_on_train": measures["unused_on_train"],
        "longest_tokens": measures["longest_tokens"],
    }


def _sizes(record: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"name": span["name"], "bytes": span["end"] - span["start"]} for span in record["documents"]
    ]


def _chunks(counts: ChunkCounts | None) -> dict[str, int] | None:
    if counts is None:
        return None
    positions = sum(map(len, counts.counts))
    return {"total": counts.total, "distinct": len(counts.counts), "positions": positions}


def _first_merges(tokenizer: Tokenizer, counts: ChunkCounts | None) -> list[dict[str, Any]]:
    first = tokenizer.merges[:FIRST_MERGES]
    found: list[int | None] = [None] * len(first)
    if counts is not None and first:
        found = [*train(counts.counts, merges=len(first), min_count=1).pair_counts]
    return [{"pair": list(pair), "count": count} for pair, count in zip(first, found, strict=True)]


def _array(folder: Path) -> dict[str, Any]:
    if not folder.is_dir():
        return {"separators": None, "largest_id": None}
    tokens = open_tokens(folder)
    separators = 0 if tokens.index.separator_id is None else max(len(tokens.starts) - 1, 0)
    return {"separators": separators, "largest_id": int(tokens.ids.max()) if len(tokens) else None}
