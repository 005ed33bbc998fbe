"""What is particular to a corpus of shards: whether they are at hand, and what else tells of them.

Shards are at hand if all of them are files of this machine. Others are never asked for, since
nothing here uses the network; then records are held to params.yaml, and to the receipts of a store
on this machine.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import asdict
from fnmatch import fnmatchcase
from pathlib import Path

from bytepair.audit.differences import differences, first_difference, shown
from bytepair.audit.rebuild import PARAMS, Rebuild, Step
from bytepair.corpora.manifest import MANIFEST, Manifest, Shard
from bytepair.corpora.records import CLEAN
from bytepair.corpora.shards import SurveyTask, survey
from bytepair.corpora.sources import find_shards, shard_path
from bytepair.engine_params import load_engine
from bytepair.errors import ArtifactError, CorpusError
from bytepair.layout import RULE, SPLITS, CorpusPaths, TokenizerPaths
from bytepair.params import TokenizerParams
from bytepair.shard_params import ShardedCorpusParams
from bytepair.shards.merge import merge_shards
from bytepair.shards.receipts import find_receipt
from bytepair.shards.stages import (
    count_tasks,
    encode_tasks,
    join_splits,
    split_sources,
    store_of,
)
from bytepair.shards.store import open_store
from bytepair.shards.work import CountTask, Done, EncodeTask
from bytepair.tokenizer import Tokenizer
from bytepair.tokens import Ids, open_tokens

_READERS = ("count-chunks", "encode-splits")


def reads_shards(step: Step, rebuild: Rebuild) -> bool:
    """Whether a step reads shards, which strip, split and those after encoding do not."""
    return step.stage in ("fetch", *_READERS) and rebuild.is_of_shards(step)


def why_not_at_hand(step: Step, rebuild: Rebuild) -> str | None:
    """Why the shards that a step reads are not at hand; None if they are, or it reads none."""
    if not reads_shards(step, rebuild):
        return None
    if isinstance(step.params, ShardedCorpusParams):
        return _why_not_to_fetch(step.params, rebuild.root)
    splits = CorpusPaths(rebuild.folder, step.corpus).splits
    return _why_not(Manifest.load(splits / "train" / MANIFEST).shards, rebuild.root)


def _why_not_to_fetch(corpus: ShardedCorpusParams, root: Path) -> str | None:
    for pattern in corpus.fetch.shards:
        if not _is_local(pattern):
            return _remote(pattern)
        try:
            with contextlib.chdir(root):
                find_shards([pattern])
        except CorpusError:
            return f"none of its shards {pattern} is here"
    try:
        shards = Manifest.load(CorpusPaths(root, corpus.name).manifest).shards
    except ArtifactError:  # absent, or not what fetch wrote
        return None
    return _why_not(shards, root)


def _why_not(shards: tuple[Shard, ...], root: Path) -> str | None:
    for shard in shards:
        if not _is_local(shard.url):
            return _remote(shard.url)
        if not _is_here(shard, root):
            return f"its shard {shard.url} is not here"
    return None


def _remote(url: str) -> str:
    return f"its shards are remote, as {url}, and the network is not used"


def _is_local(url: str) -> bool:
    return "://" not in url or url.startswith("file://")


def _is_here(shard: Shard, root: Path) -> bool:
    return _is_local(shard.url) and (root / shard.url.removeprefix("file://")).is_file()


def replaced_shards(corpus: str, rebuild: Rebuild) -> list[str] | None:
    """Shards that are others than the project's manifest has, by the one that was made again.

    None if both manifests are of the same files, or the project's tells nothing.
    """
    versions = []
    for root in (rebuild.root, rebuild.folder):
        try:
            shards = Manifest.load(CorpusPaths(root, corpus).manifest).shards
        except ArtifactError:
            return None
        versions.append({shard.url: (shard.size, shard.version) for shard in shards})
    recorded, found = versions
    if recorded == found:
        return None
    return [url for url in recorded if found.get(url) != recorded[url]]


def check_corpus(stage: str, params: ShardedCorpusParams, paths: CorpusPaths) -> None:
    """Hold what a stage has written to params, and a manifest to those shards that are here.

    Raises:
        ArtifactError: a file is absent or damaged, or is not what params.yaml says.
        CorpusError: a shard is damaged.
    """
    if stage == "fetch":
        _check_manifest(params, paths)
    elif stage == "strip":
        Manifest.load(paths.clean / CLEAN)
    else:
        _check_splits(params, paths)


def _check_manifest(params: ShardedCorpusParams, paths: CorpusPaths) -> None:
    manifest = Manifest.load(paths.manifest)
    _check_equal(paths.manifest, "rules", asdict(params.fetch.rules), asdict(manifest.rules))
    if manifest.skipped > params.fetch.skip:
        raise ArtifactError(
            f"{paths.manifest}: skipped is {manifest.skipped}, but params.yaml allows "
            f"{params.fetch.skip}"
        )
    for shard in manifest.shards:
        if not any(_is_named(shard.url, pattern) for pattern in params.fetch.shards):
            raise ArtifactError(f"{paths.manifest}: params.yaml does not name {shard.url}")
    for pattern in params.fetch.shards:
        if not any(_is_named(shard.url, pattern) for shard in manifest.shards):
            raise ArtifactError(f"{paths.manifest}: it has no shard {pattern}")
    with contextlib.chdir(paths.root):
        for shard in manifest.shards:
            if _is_here(shard, paths.root):
                task = SurveyTask(shard.url, manifest.rules, params.fetch.skip, known=None)
                found = asdict(survey(task).shard)
                _check_equal(paths.manifest, f"shards[{shard.url}]", found, asdict(shard))


def _is_named(url: str, pattern: str) -> bool:
    """Whether a pattern may stand for a URL, of which file systems have several spellings."""
    if "://" not in pattern:
        pattern = Path(pattern).as_posix()
    loose = shard_path(pattern).replace("**/", "*")
    return url == pattern or fnmatchcase(shard_path(url), loose)


def _check_splits(params: ShardedCorpusParams, paths: CorpusPaths) -> None:
    asked = {"train", *(name for name in ("val", "test") if getattr(params.split, name))}
    found = {name for name in SPLITS if (paths.splits / name).is_dir()}
    if found != asked:
        raise ArtifactError(f"{paths.splits}: it has {sorted(found)}, expected {sorted(asked)}")
    for name in sorted(found):
        split, _ = split_sources(paths, name)
        _check_equal(paths.splits / name / RULE, "", asdict(params.split), asdict(split))


def _check_equal(path: Path, where: str, expected: object, found: object) -> None:
    for place, good, bad in differences(expected, found, where):
        raise ArtifactError(f"{path}: {place} is {shown(bad)}, expected {shown(good)}")


def make_from_receipts(step: Step, rebuild: Rebuild) -> bool:
    """Make counts or tokens again from what the project's store has of each shard.

    Only a store on this machine is looked at, and nothing is written there.

    Returns:
        whether every shard has its receipt there, so that it could be done.

    Raises:
        ArtifactError: a file there is not the one that its receipt vouches for.
    """
    tokenizer = step.params
    if step.stage not in _READERS or not isinstance(tokenizer, TokenizerParams):
        return False
    paths = TokenizerPaths(rebuild.folder, tokenizer.name)
    engine = load_engine(rebuild.root / PARAMS)
    store = store_of(engine, TokenizerPaths(rebuild.root, tokenizer.name))
    if not _is_local(store):
        return False
    with rebuild.making(step):
        if step.stage == "count-chunks":
            counting = count_tasks(tokenizer, paths, store, engine.memory)
            if counted := _done(counting):
                merge_shards(counting, counted, paths.counts, memory=engine.memory)
            return bool(counted)
        encoding = encode_tasks(tokenizer, paths, store)
        if encoded := _done(encoding):
            join_splits(encoding, encoded, paths)
        return bool(encoded)


def _done(tasks: list[CountTask] | list[EncodeTask]) -> list[Done] | None:
    """What each task came to when it was done; None if one was not."""
    found = []
    for task in tasks:
        store = open_store(task.store)
        if isinstance(task, CountTask):
            receipts = [find_receipt(store, task.folder, task.inputs)]
        else:
            receipts = [
                find_receipt(store, task.folder(split), task.inputs(split)) for split in task.splits
            ]
        if None in receipts:
            return None
        found.append(Done(task.name, tuple(filter(None, receipts)), True))
    return found


def decoding_errors_of_shards(step: Step, rebuild: Rebuild) -> Iterator[tuple[Path, str]]:
    """Each array whose documents do not decode to those of the shards, and why not."""
    paths = TokenizerPaths(rebuild.folder, step.params.name)
    tokenizer = Tokenizer.load(paths.bpe)
    corpus = CorpusPaths(rebuild.folder, step.corpus)
    waiting = {
        name: open_tokens(paths.tokens / name, tokenizer_sha256=tokenizer.sha256).documents()
        for name in SPLITS
        if (corpus.splits / name).is_dir()
    }
    _, sources = split_sources(corpus, "train")
    with contextlib.chdir(rebuild.root):
        for source in sources:
            for split, name, text in source.documents(_pass_over):
                if split in waiting and (
                    problem := _decoding_error(tokenizer, next(waiting[split], None), name, text)
                ):
                    del waiting[split]
                    yield paths.tokens / split / "tokens.npy", problem
    for split, documents in waiting.items():
        if (more := next(documents, None)) is not None:
            yield paths.tokens / split / "tokens.npy", f"no shard has its document {more[0]!r}"


def _decoding_error(
    tokenizer: Tokenizer, found: tuple[str, Ids] | None, name: str, text: str
) -> str | None:
    if found is None or found[0] != name:
        return f"where document {name!r} should be, there is {found and found[0]!r}"
    problem = first_difference(text.encode(), tokenizer.decode_bytes(found[1]), "text")
    return problem and f"document {name!r}, when decoded: {problem}"


def _pass_over(record: int, reason: str) -> None:
    del record, reason
