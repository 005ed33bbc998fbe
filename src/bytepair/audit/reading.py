"""What files say of themselves, for want of anything to make them from; and decoding tokens."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from bytepair.audit.differences import first_difference
from bytepair.audit.rebuild import Rebuild, Step
from bytepair.audit.sharded import check_corpus
from bytepair.baseline import load_baseline
from bytepair.corpora.documents import Split, has_split, read_split
from bytepair.corpora.records import CLEAN, SPLIT_RECORD, STRIP_RECORD, read_recorded
from bytepair.counts import ChunkCounts
from bytepair.errors import ArtifactError
from bytepair.files import read_bytes, read_record, sha256
from bytepair.layout import SPLITS, CorpusPaths, TokenizerPaths
from bytepair.params import CorpusParams, TokenizerParams
from bytepair.patterns import Pattern
from bytepair.shard_params import ShardedCorpusParams
from bytepair.tokenizer import Tokenizer
from bytepair.tokens import Tokens, open_tokens


def check_records(step: Step, rebuild: Rebuild) -> tuple[Path, ...]:
    """Hold what a step has made in the project to the hashes on record.

    Returns:
        The outputs that there are such hashes for, all of them right.

    Raises:
        ArtifactError: a file is absent or damaged, or does not fit the others.
    """
    if isinstance(step.params, ShardedCorpusParams):
        check_corpus(step.stage, step.params, CorpusPaths(rebuild.root, step.params.name))
        return step.outputs
    if isinstance(step.params, CorpusParams):
        _check_corpus(step.stage, step.params, CorpusPaths(rebuild.root, step.params.name))
        return step.outputs
    paths = TokenizerPaths(rebuild.root, step.params.name)
    bpe = TokenizerPaths(rebuild.folder, step.params.name).bpe
    tokenizer = Tokenizer.load(bpe) if bpe.is_file() else None
    checked = _check_tokenizer(step.stage, step.params, paths, tokenizer)
    return step.outputs[:1] if checked else ()


def decoding_errors(tokens: Path, splits: Path, bpe: Path) -> Iterator[tuple[Path, str]]:
    """Each array whose documents do not decode to those of its split, and why not."""
    tokenizer = Tokenizer.load(bpe)
    for name in SPLITS:
        if (tokens / name).is_dir() and has_split(splits, name):
            array = open_tokens(tokens / name, tokenizer_sha256=tokenizer.sha256)
            problem = _decoding_error(tokenizer, array, read_split(splits / name))
            if problem:
                yield tokens / name / "tokens.npy", problem


def _decoding_error(tokenizer: Tokenizer, tokens: Tokens, split: Split) -> str | None:
    if tokens.index.text_sha256 != split.sha256:
        return f"its text has the sha256 {tokens.index.text_sha256}, not {split.sha256}"
    names = tuple(document.name for document in split.documents)
    if tokens.index.names != names:
        return f"its documents are {tokens.index.names}, not {names}"
    for (name, ids), document in zip(tokens.documents(), split.documents, strict=True):
        decoded = tokenizer.decode_bytes(ids)
        if problem := first_difference(document.text.encode(), decoded, "text"):
            return f"document {name!r}, when decoded: {problem}"
    return None


def _check_corpus(stage: str, params: CorpusParams, paths: CorpusPaths) -> None:
    if stage == "strip":
        clean = paths.clean / CLEAN
        _, record = read_recorded(clean, paths.clean / STRIP_RECORD, "clean")
        pin = params.fetch.clean_sha256
        if pin not in (None, record.sha256):
            raise ArtifactError(f"{clean}: sha256 is {record.sha256}, but {pin} is pinned")
        return
    path = paths.splits / SPLIT_RECORD
    recorded = {name: entry["sha256"] for name, entry in read_record(path)["splits"].items()}
    found = {
        name: read_split(paths.splits / name).sha256
        for name in SPLITS
        if (paths.splits / name).is_dir()
    }
    if found != recorded:
        raise ArtifactError(f"{path}: it has the splits {recorded}, but there are {found}")


def _check_tokenizer(
    stage: str, params: TokenizerParams, paths: TokenizerPaths, tokenizer: Tokenizer | None
) -> bool:
    """Check the first output of a stage, if it can be: the others are lists of figures."""
    if stage == "count-chunks":
        pattern = Pattern.chosen(params.chunks.pattern)
        ChunkCounts.load(paths.counts).check_made_with(pattern, params.chunks.special_tokens)
    elif stage == "train-tokenizer":
        if Tokenizer.load(paths.bpe).sha256 != sha256(read_bytes(paths.bpe)):
            raise ArtifactError(f"{paths.bpe}: it is not in the layout that bytepair writes")
    elif stage == "encode-splits":
        for folder in sorted(paths.tokens.iterdir()):
            open_tokens(folder, tokenizer_sha256=None if tokenizer is None else tokenizer.sha256)
    elif stage == "baseline" and tokenizer is not None:
        load_baseline(paths.baseline, tokenizer_sha256=tokenizer.sha256)
    else:
        return False
    return True
