"""The stages once more, into a folder of their own that is laid out like the project.

A stage is what its script in stages/ does, called here with another folder to work in, so what is
compared is what `dvc repro` would make. Only fetch is not its script: it never goes to a network
here. What differs, and what that means, is left to others.

Shards are done by processes of this machine, whatever engine params name, and what is made of each
is kept in the same folder: a store that has it already would prove nothing.
"""

from __future__ import annotations

import contextlib
import io
import os
import shutil
import sys
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from types import ModuleType

from bytepair.corpora.fetch import fetch
from bytepair.corpora.records import CLEAN, FETCH_RECORD, RAW
from bytepair.engine_params import load_engine
from bytepair.errors import FetchError
from bytepair.files import read_bytes, write_json
from bytepair.layout import RULE, CorpusPaths, TokenizerPaths
from bytepair.params import CorpusParams, TokenizerParams
from bytepair.shard_params import ShardedCorpusParams

PARAMS = "params.yaml"

Corpus = CorpusParams | ShardedCorpusParams
Params = Corpus | TokenizerParams


@dataclass(frozen=True, slots=True)
class Step:
    """One stage of one corpus or tokenizer; inputs and outputs are relative to the project."""

    stage: str
    params: Params
    inputs: tuple[Path, ...]
    outputs: tuple[Path, ...]

    @property
    def name(self) -> str:
        """What DVC calls it, such as `measure@sample-512`."""
        return f"{self.stage}@{self.params.name}"

    @property
    def corpus(self) -> str:
        """The corpus that it is of, by its name."""
        return self.params.corpus if isinstance(self.params, TokenizerParams) else self.params.name


def corpus_steps(params: Corpus) -> tuple[Step, ...]:
    """Fetch, strip, split."""
    paths = CorpusPaths(Path(), params.name)
    return (
        Step("fetch", params, (), (paths.raw,)),
        Step("strip", params, (paths.raw,), (paths.clean,)),
        Step("split", params, (paths.clean / CLEAN,), (paths.splits,)),
    )


def tokenizer_steps(params: TokenizerParams) -> tuple[Step, ...]:
    """From counting to measuring, in the order in which they run."""
    paths = TokenizerPaths(Path(), params.name)
    splits, bpe, tokens = CorpusPaths(Path(), params.corpus).splits, paths.bpe, paths.tokens
    results = (paths.measures, paths.metrics)
    return (
        Step("count-chunks", params, (splits / "train",), (paths.counts,)),
        Step("train-tokenizer", params, (paths.counts,), (bpe, paths.training_curve)),
        Step("encode-splits", params, (splits, bpe), (tokens,)),
        Step("baseline", params, (tokens,), (paths.baseline,)),
        Step("measure", params, (paths.baseline, bpe, tokens), results),
    )


class Rebuild:
    """What stages make again in `folder`, from what they make there or what is adopted.

    Args:
        root: the project, which is only read.
        folder: an empty folder of the caller's.
    """

    def __init__(self, root: Path, folder: Path) -> None:
        self.root = root
        self.folder = folder
        self.rewrapped: set[str] = set()
        """Stages whose outputs are of another retrieval of the text than others may have."""

    def has(self, *paths: Path) -> bool:
        """Whether all of these are in the folder; paths are relative to it, as in a Step."""
        return all((self.folder / path).exists() for path in paths)

    def relative(self, text: str) -> str:
        """A message, with paths as they are in the project."""
        for folder in (self.folder, self.root):
            text = text.replace(f"{folder}{os.sep}", "")
        return text

    def adopt(self, *paths: Path) -> None:
        """Take over what is in the project, as an input that could not be made again."""
        for path in paths:
            source, target = self.root / path, self.folder / path
            if source.is_dir():
                shutil.copytree(source, target, dirs_exist_ok=True)
            elif source.is_file():
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, target)

    def fetch(
        self, corpus: CorpusParams, *, elsewhere: bool = False, cache: Path | None = None
    ) -> None:
        """Have the project's own raw.txt with its record, if fetch would keep it.

        With `elsewhere`, a file in the folder `cache` or a source that is a path inside the
        project will do as well. No network is asked for any.

        Raises:
            FetchError: there is none that the pins allow, and why, or there are no pins.
        """
        paths = CorpusPaths(self.folder, corpus.name)
        raw = paths.raw.relative_to(self.folder)
        self.adopt(raw / RAW, raw / FETCH_RECORD)
        local = [source for source in corpus.fetch.sources if "://" not in source and elsewhere]
        offline = replace(corpus.fetch, sources=tuple(local))
        try:
            found = fetch(offline, corpus.strip, paths.raw, root=self.root, cache=cache)
            # What is there is kept, without asking any source, and its record gets all of them.
            fetch(corpus.fetch, corpus.strip, paths.raw)
        except FetchError as error:
            shutil.rmtree(paths.raw, ignore_errors=True)
            why = "params.yaml pins no hash to hold it to"
            if corpus.fetch.raw_sha256 or corpus.fetch.clean_sha256:
                lines = str(error).splitlines()
                tried = [line.strip() for line in lines if line.startswith("  ")]
                why = "; ".join(tried) or "absent"
            raise FetchError(f"{(raw / RAW).as_posix()}: {why}") from None
        if found.origin is not None and corpus.fetch.raw_sha256 != (found.raw.sha256,):
            self.rewrapped |= {step.name for step in corpus_steps(corpus)[:2]}

    def is_of_shards(self, step: Step) -> bool:
        """Whether a step is of a sharded corpus, or of a tokenizer whose splits are shards'."""
        splits = CorpusPaths(self.folder, step.corpus).splits
        return isinstance(step.params, ShardedCorpusParams) or (splits / "train" / RULE).is_file()

    def run(self, step: Step) -> None:
        """Run any stage but fetch of a text, unless that is done; its inputs must be there.

        Raises:
            BytepairError: as the stage does. Nothing of its outputs is left then.
        """
        if self.has(*step.outputs):
            return
        paths = TokenizerPaths if isinstance(step.params, TokenizerParams) else CorpusPaths
        options = {"force": False} if step.stage == "fetch" else {}
        with self.making(step), self._engine_of_its_own(step):
            script = _script(self.root, step.stage)
            script(step.params, paths(self.folder, step.params.name), **options)

    @contextlib.contextmanager
    def making(self, step: Step) -> Iterator[None]:
        """Where a step's outputs are made: in the project's folder, as shards' paths have it."""
        try:
            with warnings.catch_warnings(), contextlib.chdir(self.root):
                warnings.simplefilter("ignore", UserWarning)  # a tokenizer's size tells as much
                yield
        except BaseException:
            for path in step.outputs:
                shutil.rmtree(self.folder / path, ignore_errors=True)
                (self.folder / path).unlink(missing_ok=True)
            raise

    @contextlib.contextmanager
    def _engine_of_its_own(self, step: Step) -> Iterator[None]:
        """An engine and a store for shards, of which nothing is left; a bar on a terminal alone."""
        params = self.folder / PARAMS
        if not self.is_of_shards(step) or params.exists():
            yield
            return
        engine = load_engine(self.root / PARAMS)
        here = engine.name if engine.name == "serial" else "processes"
        workers = engine.workers if engine.name == here else None
        write_json(params, {"engine": {"name": here, "workers": workers, "memory": engine.memory}})
        stderr = sys.stderr if sys.stderr.isatty() else io.StringIO()  # where a log would have it
        try:
            with contextlib.redirect_stderr(stderr):
                yield
        finally:
            params.unlink()
            shutil.rmtree(TokenizerPaths(self.folder, step.params.name).shards, ignore_errors=True)


def _script(root: Path, stage: str) -> Callable[..., str]:
    """The function that a stage's script makes a command of, by way of stage.py."""
    path = root / "stages" / f"{stage.replace('-', '_')}.py"
    code = compile(read_bytes(path), path, "exec", dont_inherit=True)
    module = ModuleType(f"bytepair_stage_{path.stem}")
    exec(code, module.__dict__)  # noqa: S102  the project's own script, as `dvc repro` runs it
    function: Callable[..., str] = module.main.callback.__wrapped__
    return function
