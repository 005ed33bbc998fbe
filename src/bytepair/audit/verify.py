"""`bytepair verify`: is every file of the pipeline folder what its stage makes?

Each stage runs again in a temporary folder, on inputs that were made again before it, so a
difference belongs to the file that it is named with. Where there is nothing to make a file from,
it is held to the hashes on record and becomes the input of the next stages. Tokens are also
decoded and compared with the text. Nothing in the project is written.
"""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from bytepair.audit.differences import differing_files
from bytepair.audit.reading import check_records, decoding_errors
from bytepair.audit.rebuild import PARAMS, Rebuild, Step, corpus_steps, tokenizer_steps
from bytepair.errors import BytepairError
from bytepair.params import CorpusParams, load_corpus, load_tokenizer, names
from bytepair.shard_params import is_sharded


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
        made_again: whether they equal what was made again; else they fit the hashes on record.
    """

    stage: str
    files: int
    size: int
    made_again: bool


@dataclass(slots=True)
class Verification:
    """What `verify` found.

    Attributes:
        verified: the stages whose files are as they should be.
        differences: the files that are not, and those that were asked for and are absent.
        absent: what else is not there, by its path in the project.
        not_verified: what is there, but had nothing to be held against.
    """

    verified: list[Verified] = field(default_factory=list)
    differences: list[Difference] = field(default_factory=list)
    absent: list[str] = field(default_factory=list)
    not_verified: list[str] = field(default_factory=list)

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
        # Shards are held to their manifest whenever they are read.
        if (not wanted or name in wanted or name in needed) and not is_sharded(params, name):
            yield from corpus_steps(load_corpus(params, name))
    for tokenizer in chosen:
        yield from tokenizer_steps(tokenizer)


class _Verifier:
    def __init__(self, rebuild: Rebuild) -> None:
        self.rebuild = rebuild
        self.found = Verification()

    def verify(self, step: Step, *, asked_for: bool) -> None:
        """Hold what is there of a step against what was made again, or else against records."""
        there = [path for path in step.outputs if (self.rebuild.root / path).exists()]
        absent = [path.as_posix() for path in step.outputs if path not in there]
        problems = [(path, "absent") for path in absent if asked_for]
        self.found.absent += [path for path in absent if not asked_for]
        made_again, checked = False, there
        try:
            made_again = self.make_again(step, there)
            if made_again:
                problems += self.compare(there)
            elif there:
                checked = list(check_records(step, self.rebuild))
                self.rebuild.adopt(*checked)
            problems += self.decode(step)
        except BytepairError as error:
            problems.append(self.located(step, error))
        self.found.differences += [Difference(*problem, step.name) for problem in problems]
        self.found.not_verified += [path.as_posix() for path in there if path not in checked]
        if checked and not problems:
            sizes = [path.stat().st_size for path in self.files(checked)]
            self.found.verified.append(Verified(step.name, len(sizes), sum(sizes), made_again))

    def make_again(self, step: Step, there: list[Path]) -> bool:
        """Make the step's outputs again if its inputs are there, which may be made again too."""
        if isinstance(step.params, CorpusParams) and step.stage == "fetch":
            if there and not self.rebuild.has(*step.outputs):
                self.rebuild.fetch(step.params)
            return bool(there)
        if not self.rebuild.has(*step.inputs):
            return False
        self.rebuild.run(step)
        return True

    def compare(self, paths: list[Path]) -> Iterator[tuple[str, str]]:
        for path in paths:
            good, found = self.rebuild.folder / path, self.rebuild.root / path
            for file, how in differing_files(good, found):
                yield file.relative_to(self.rebuild.root).as_posix(), how

    def decode(self, step: Step) -> Iterator[tuple[str, str]]:
        """Hold the tokens, as they were made again or adopted, against the text."""
        if step.stage != "encode-splits" or not self.rebuild.has(*step.inputs, *step.outputs):
            return
        splits, bpe, tokens = (self.rebuild.folder / path for path in (*step.inputs, *step.outputs))
        for file, how in decoding_errors(tokens, splits, bpe):
            yield file.relative_to(self.rebuild.folder).as_posix(), how

    def located(self, step: Step, error: BytepairError) -> tuple[str, str]:
        """The file that an error begins with, or else an output, and what is wrong with it."""
        said = self.rebuild.relative(str(error)).rstrip(".")
        path, _, problem = said.partition(": ")
        owned = any(Path(path).is_relative_to(output) for output in step.outputs)
        if owned or (problem and (self.rebuild.root / path).exists()):
            return path, problem
        return step.outputs[0].as_posix(), said

    def files(self, paths: list[Path]) -> Iterator[Path]:
        for path in (self.rebuild.root / path for path in paths):
            yield from [path] if path.is_file() else (p for p in path.rglob("*") if p.is_file())
