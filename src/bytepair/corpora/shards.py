"""A corpus of many shards: making its manifest, and reading a shard that is in one.

Nothing is copied: each shard is read where it lies, once for the manifest and again by whoever
counts or encodes it, who then holds it to its entry.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from bytepair.corpora.formats import format_of, read_records
from bytepair.corpora.manifest import Manifest, Shard
from bytepair.corpora.shard_documents import Document, Malformed, Records
from bytepair.corpora.sources import Source, find_shards, open_source
from bytepair.engine import Map
from bytepair.errors import ArtifactError, CorpusError
from bytepair.shard_params import ReadRules

SHOWN = 3  # malformed records that an error quotes


@dataclass(frozen=True, slots=True)
class SurveyTask:
    """A shard to be looked through, up to one malformed record more than `skip`."""

    url: str
    rules: ReadRules
    skip: int
    known: Shard | None

    def __str__(self) -> str:
        return self.url


@dataclass(frozen=True, slots=True)
class Survey:
    """What a shard holds, and its first malformed records."""

    shard: Shard
    malformed: tuple[Malformed, ...]
    is_known: bool
    """Taken from the manifest before, and not read."""


def _one_by_one(
    function: Callable[[SurveyTask], Survey], tasks: Sequence[SurveyTask]
) -> Iterator[tuple[int, Survey]]:
    return enumerate(map(function, tasks))


def make_manifest(
    patterns: Iterable[str],
    rules: ReadRules,
    *,
    skip: int = 0,
    previous: Manifest | None = None,
    map_tasks: Map[SurveyTask, Survey] = _one_by_one,
) -> Manifest:
    """Read every shard that the patterns name, and record what it holds.

    Args:
        patterns: local paths and URLs, exact or with wildcards; see find_shards.
        rules: how records are read.
        skip: how many malformed records the whole corpus may have.
        previous: a manifest by the same rules, whose entries are taken for shards of the same
            version without malformed records; it changes the time needed, and not the result.
        map_tasks: yields the number of a task and what `survey` makes of it, in any order: the
            `map` of an engine.

    Raises:
        CorpusError: a pattern matches nothing, a name tells no format, a shard is damaged, more
            than `skip` records are malformed, or there is no document.
        FetchError: a shard could not be had.
    """
    urls = find_shards(patterns)
    for url in urls:
        format_of(url)
    known = {}
    if previous is not None and previous.rules == rules:
        known = {shard.url: shard for shard in previous.shards}
    tasks = [SurveyTask(url, rules, skip, known.get(url)) for url in urls]
    surveys: dict[int, Survey] = {}
    skipped = 0
    for number, found in map_tasks(survey, tasks):
        surveys[number] = found
        skipped += found.shard.skipped
        if skipped > skip:
            malformed = _quote([surveys[number] for number in sorted(surveys)])
            raise CorpusError(
                f"more malformed records than fetch.skip allows, {skip}:{malformed}\nCorrect the "
                "fields that fetch names, mend the shards, or raise fetch.skip in params.yaml."
            )
    manifest = Manifest(rules=rules, shards=tuple(surveys[n].shard for n in range(len(urls))))
    if not manifest.documents:
        malformed = _quote([surveys[number] for number in range(len(urls))])
        raise CorpusError(f"fetch.shards: there is no document in {len(urls)} shards.{malformed}")
    return manifest


def survey(task: SurveyTask) -> Survey:
    """Read a shard for its manifest entry."""
    with open_source(task.url) as source:
        known = task.known
        if (
            known is not None
            and (known.size, known.version) == (source.size, source.version)
            and not known.skipped  # or an error could not quote them
        ):
            return Survey(known, (), is_known=True)
        documents = size = skipped = 0
        malformed: list[Malformed] = []
        for record in read_records(source, task.rules):
            if isinstance(record, Document):
                documents += 1
                size += _utf8_length(record.text)
                continue
            skipped += 1
            if len(malformed) < SHOWN:
                malformed.append(record)
            if skipped > task.skip:
                break
    shard = Shard(
        url=task.url,
        size=source.size,
        version=source.version,
        documents=documents,
        bytes=size,
        skipped=skipped,
    )
    return Survey(shard, tuple(malformed), is_known=False)


def read_shard(shard: Shard, rules: ReadRules) -> Records:
    """The documents of a shard and its malformed records, in order, in bounded memory.

    Whoever writes what comes of them must do so when all have come: only at the end is it known
    that the shard is whole.

    Raises:
        CorpusError: the shard is not the one of the manifest, or is damaged.
        FetchError: it could not be had.
        ArtifactError: it was counted by other rules.
    """
    with open_source(shard.url) as source:
        _check_unchanged(shard, source)
        documents = skipped = 0
        for record in read_records(source, rules):
            if isinstance(record, Document):
                documents += 1
            else:
                skipped += 1
            yield record
    if (documents, skipped) != (shard.documents, shard.skipped):
        raise ArtifactError(
            f"{shard.url}: {documents:,} documents and {skipped:,} malformed records, but "
            f"{shard.documents:,} and {shard.skipped:,} in the manifest. It was made by other "
            "rules: make it again."
        )


def _check_unchanged(shard: Shard, source: Source) -> None:
    for name, found, expected in (
        ("bytes", source.size, shard.size),
        ("version", source.version, shard.version),
    ):
        if found != expected:
            raise CorpusError(
                f"{shard.url}: the shard was changed after the manifest was made: {name} {found}, "
                f"expected {expected}. Restore it, or look for shards again: "
                "`dvc repro -f -s fetch@CORPUS`."
            )


def _quote(surveys: Sequence[Survey]) -> str:
    """The first malformed records, on a line each."""
    quoted = [
        f"\n  {found.shard.url}: record {record.record}: {record.reason}"
        for found in surveys
        for record in found.malformed
    ]
    more = "\n  ..." if sum(found.shard.skipped for found in surveys) > SHOWN else ""
    return "".join(quoted[:SHOWN]) + more


def _utf8_length(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode())
