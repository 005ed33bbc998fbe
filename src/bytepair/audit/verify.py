"""`bytepair verify`: is every file of the pipeline folder what its stage makes?

Each stage runs again in a temporary folder, on inputs that were made again before it, so a
difference belongs to the file that it is named with. Where there is nothing to make a file from,
it is held to the hashes on record and becomes the input of the next stages. Tokens are also
decoded and compared with the text. Of a sharded corpus, shards are read if all of them are files of
this machine; sharded.py says what is done without. Nothing in the project is written.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bytepair.audit.differences import differing_files
from bytepair.audit.reading import check_records, decoding_errors
from bytepair.audit.rebuild import PARAMS, Rebuild, Step, corpus_steps, tokenizer_steps
from bytepair.audit.sharded import (
    decoding_errors_of_shards,
    make_from_receipts,
    reads_shards,
    replaced_shards,
    why_not_at_hand,
)
from bytepair.errors import BytepairError, CorpusError, FetchError
from bytepair.params import CorpusParams, load_corpus, load_tokenizer, names
from bytepair.shard_params import ShardedCorpusParams, is_sharded, load_sharded_corpus

AGAIN = "the same when made again"
RECEIPTS = "the same when put together from what is in the store"
PINNED = "as pinned or recorded"
RECORDED = "as recorded"


@dataclass(frozen=True, slots=True)
class Difference:
    """A file that is not as it should be, how, and the stage that makes it."""

    path: str
    problem: str
    stage: str


@dataclass(frozen=True, slots=True)
class Verified:
    """What a stage has made, all as it should be.

    Attributes:
        stage: such as `measure@sample-512`.
        files: how many.
        size: of all of them, in bytes.
        how: what they are, in words: one of AGAIN, RECEIPTS, PINNED, RECORDED.
    """

    stage: str
    files: int
    size: int
    how: str


@dataclass(slots=True)
class Verification:
    """What `verify` found.

    Attributes:
        verified: the stages whose files are as they should be.
        differences: the files that are not, and those that were asked for and are absent.
        absent: what else is not there, by its path in the project.
        not_verified: what is there, but had nothing to be held against.
        not_at_hand: of each corpus whose shards were not read, why not.
    """

    verified: list[Verified] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    not_verified: list[str] = field(default_factory=list)
    not_at_hand: dict[str, str] = field(default_factory=dict)

    @property
    def good(self) -> bool:
        """Whether there is something, and no difference."""
        return bool(self.verified) and not self.differences


def verify(root: Path, wanted: Collection[str] = ()) -> Verification:
    """Verify the corpora and tokenizers of these names, or whatever is there in the folder `root`.

    With a tokenizer goes its corpus.

    Raises:
        ParamsError: params.yaml, or a block that is wanted, cannot be read.
    """
    root = root.resolve()
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        rebuild = Rebuild(root, Path(folder).resolve())
        return verify_steps(steps_of(root / PARAMS, wanted), rebuild, wanted)


def verify_steps(
    steps: Iterable[Step], rebuild: Rebuild, wanted: Collection[str] = ()
) -> Verification:
    """The same by steps, of which none is made again that `rebuild` has made before."""
    verifier = _Verifier(rebuild)
    for step in steps:
        verifier.verify(step, asked_for=step.params.name in wanted)
    return verifier.found


def steps_of(params: Path, wanted: Collection[str] = ()) -> Iterator[Step]:
    """The steps of the corpora and tokenizers of these names, or of all, in running order."""
    corpora, tokenizers = names(params)
    chosen = [load_tokenizer(params, name) for name in tokenizers if not wanted or name in wanted]
    needed = {tokenizer.corpus for tokenizer in chosen}
    for name in corpora:
        if not wanted or name in wanted or name in needed:
            load = load_sharded_corpus if is_sharded(params, name) else load_corpus
            yield from corpus_steps(load(params, name))
    for tokenizer in chosen:
        yield from tokenizer_steps(tokenizer)


class _Verifier:
    def __init__(self, rebuild: Rebuild) -> None:
        self.rebuild = rebuild
        self.found = Verification()
        self.unusable: set[str] = set()
        """Corpora with a shard that is damaged or another than the manifest has, which was said."""

    def verify(self, step: Step, *, asked_for: bool) -> None:
        """Hold what is there of a step against what was made again, or else against records."""
        there = [path for path in step.outputs if (self.rebuild.root / path).exists()]
        absent = [path.as_posix() for path in step.outputs if path not in there]
        problems = [Difference(path, "absent", step.name) for path in absent if asked_for]
        self.found.absent += [path for path in absent if not asked_for]
        how, checked = RECORDED, there
        try:
            how = self.make_again(step, there)
            if how != RECORDED:
                problems += self.compare(step, there)
                self.settle_shards(step)
            elif there:
                checked = list(check_records(step, self.rebuild))
                self.rebuild.adopt(*checked)
            problems += self.decode(step, how)
        except BytepairError as error:
            problems.append(self.located(step, error))
        self.found.differences += problems
        self.found.not_verified += [path.as_posix() for path in there if path not in checked]
        if checked and not problems:
            sizes = [path.stat().st_size for path in self.files(checked)]
            self.found.verified.append(Verified(step.name, len(sizes), sum(sizes), how))

    def make_again(self, step: Step, there: list[Path]) -> str:
        """Make the step's outputs again if its inputs are there, which may be made again too.

        Returns:
            how; RECORDED if they were not made again.
        """
        if step.stage == "fetch" and not there:
            return RECORDED
        if step.stage == "fetch" and isinstance(step.params, CorpusParams):
            if not self.rebuild.has(*step.outputs):
                self.rebuild.fetch(step.params)
            return PINNED
        if not self.rebuild.has(*step.inputs):
            return RECORDED
        why = why_not_at_hand(step, self.rebuild)
        if why is not None:
            self.found.not_at_hand.setdefault(step.corpus, why)
        if why is not None or (step.corpus in self.unusable and reads_shards(step, self.rebuild)):
            return RECEIPTS if make_from_receipts(step, self.rebuild) else RECORDED
        self.rebuild.run(step)
        return AGAIN

    def settle_shards(self, step: Step) -> None:
        """Go on with the manifest that is there, if it differs since shards are others now.

        All that was made of them would differ, too, and only fetch has something to do.
        """
        if step.stage == "fetch" and isinstance(step.params, ShardedCorpusParams):
            replaced = replaced_shards(step.corpus, self.rebuild)
            if replaced is not None:
                self.rebuild.adopt(*step.outputs)
            if replaced:
                self.unusable.add(step.corpus)

    def compare(self, step: Step, paths: list[Path]) -> Iterator[Difference]:
        for path in paths:
            good, found = self.rebuild.folder / path, self.rebuild.root / path
            for file, how in differing_files(good, found):
                yield Difference(file.relative_to(self.rebuild.root).as_posix(), how, step.name)

    def decode(self, step: Step, how: str) -> Iterator[Difference]:
        """Hold the tokens, as they were made again or adopted, against the text."""
        if step.stage != "encode-splits" or not self.rebuild.has(*step.inputs, *step.outputs):
            return
        if not self.rebuild.is_of_shards(step):
            paths = (self.rebuild.folder / path for path in (*step.outputs, *step.inputs))
            errors = decoding_errors(*paths)
        elif how == AGAIN:
            errors = decoding_errors_of_shards(step, self.rebuild)
        else:
            return
        for file, problem in errors:
            path = file.relative_to(self.rebuild.folder).as_posix()
            yield Difference(path, problem, step.name)

    def located(self, step: Step, error: BytepairError) -> Difference:
        """The file that an error begins with, or else an output, and what is wrong with it."""
        stage = step.name
        if self.rebuild.is_of_shards(step) and isinstance(error, CorpusError | FetchError):
            self.unusable.add(step.corpus)  # it is of a shard, which fetch has to look at
            stage = f"fetch@{step.corpus}"
        said = " ".join(map(str.strip, self.rebuild.relative(str(error)).splitlines())).rstrip(".")
        path, _, problem = said.partition(": ")
        owned = any(Path(path).is_relative_to(output) for output in step.outputs)
        if owned or (problem and (self.rebuild.root / path).exists()):
            return Difference(path, problem, stage)
        return Difference(step.outputs[0].as_posix(), said, stage)

    def files(self, paths: list[Path]) -> Iterator[Path]:
        for path in (self.rebuild.root / path for path in paths):
            yield from [path] if path.is_file() else (p for p in path.rglob("*") if p.is_file())
