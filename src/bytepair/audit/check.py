"""`bytepair check`: does dvc.lock belong to this code, these parameters and these texts?

Every stage's entry is held against code and parameters. Where the text of a corpus is at hand, or
all of its shards are files of this machine, its stages and those of its tokenizers run again in a
temporary folder, and what they make is held against dvc.lock, the results in git and the data that
are there; so a lock that was made to look right (`dvc commit -f`) is found out. Data that are
merely absent are no fault. Nothing is fetched, and nothing in the project is written.
"""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import bytepair
from bytepair.audit.judge import Finding, Judgement, judge
from bytepair.audit.lock import Lock, read_lock
from bytepair.audit.rebuild import PARAMS, Rebuild, Step, corpus_steps, tokenizer_steps
from bytepair.audit.sharded import why_not_at_hand
from bytepair.audit.statistics import corpus_facts, sharded_facts, tokenizer_facts
from bytepair.corpora.records import RAW
from bytepair.errors import ArtifactError, BytepairError, FetchError
from bytepair.layout import CorpusPaths, TokenizerPaths
from bytepair.params import CorpusParams, load_corpus, load_tokenizer, names
from bytepair.shard_params import ShardedCorpusParams, is_sharded, load_sharded_corpus

Facts = dict[str, Any]


@dataclass(slots=True)
class Verdict(Judgement):
    """What `check` found.

    Attributes:
        stages: how many stages dvc.yaml has.
        not_checked: what could not be checked, though it is no absent output, and why.
        corpora: of each corpus whether it was `made_again`, and its facts if there are any.
        tokenizers: the same of each tokenizer.
    """

    stages: int = 0
    not_checked: dict[str, str] = field(default_factory=dict)
    corpora: dict[str, Facts] = field(default_factory=dict)
    tokenizers: dict[str, Facts] = field(default_factory=dict)

    def as_json(self) -> dict[str, Any]:
        """All of it, for `--json-out`."""
        return {"right": not self.findings, **asdict(self)}


def check(root: Path, *, cache: Path | None = None) -> Verdict:
    """Check the project in the folder `root`.

    Args:
        root: holds dvc.yaml, dvc.lock and params.yaml.
        cache: a folder that may hold corpora as published, by their names in params.yaml.

    Raises:
        ParamsError: params.yaml cannot be read; a mistake in one block is a finding instead.
        ArtifactError: dvc.yaml or dvc.lock cannot be read.
    """
    root = root.resolve()
    corpora, tokenizers = names(root / PARAMS)
    lock = read_lock(root)
    verdict = Verdict(stages=len(lock.stages))
    if Path(bytepair.__file__).resolve().parent != root / "src" / "bytepair":
        verdict.not_checked["src/bytepair"] = "another copy of the package runs here"
    verdict.not_checked |= dict.fromkeys(lock.elsewhere, "it is not on this machine")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        rebuild = Rebuild(root, Path(folder).resolve())
        checking = _Checking(lock, rebuild, verdict)
        for name in corpora:
            verdict.corpora[name] = checking.corpus(name, cache)
        for name in tokenizers:
            verdict.tokenizers[name] = checking.tokenizer(name)
        judge(lock, rebuild, verdict)
    return verdict


class _Checking:
    """Makes everything again that can be, and collects the facts."""

    def __init__(self, lock: Lock, rebuild: Rebuild, verdict: Verdict) -> None:
        self.params = rebuild.root / PARAMS
        self.rebuild = rebuild
        self.verdict = verdict
        outputs = [output for stage in lock.stages for output in stage.outputs]
        self.in_order = {
            output.path
            for output in outputs
            if output.found == output.locked or (output.found is None and not output.in_git)
        }

    def corpus(self, name: str, cache: Path | None) -> Facts:
        """Make a corpus again from its text, if that is at hand."""
        try:
            if is_sharded(self.params, name):
                return self.sharded_corpus(load_sharded_corpus(self.params, name))
            params = load_corpus(self.params, name)
            steps = corpus_steps(params)
            if not _at_hand(params, self.rebuild.root, cache):
                self.verdict.not_checked[f"corpus {name}"] = (
                    f"its text is not at hand. Put {params.fetch.file} into a folder and set "
                    "CORPUS_CACHE to that folder"
                )
                return self.as_is(
                    steps, partial(corpus_facts, CorpusPaths(self.rebuild.root, name))
                )
            self.rebuild.fetch(params, elsewhere=True, cache=cache)
            self.run(steps[1:])
            return {"made_again": True, **corpus_facts(CorpusPaths(self.rebuild.folder, name))}
        except FetchError as error:
            return self.failed(error, f"Run `python stages/fetch.py {name}`.")
        except BytepairError as error:
            return self.failed(error)

    def sharded_corpus(self, params: ShardedCorpusParams) -> Facts:
        """Make a corpus again from its shards, if all of them are at hand."""
        steps = corpus_steps(params)
        if why := why_not_at_hand(steps[0], self.rebuild):
            self.verdict.not_checked[f"corpus {params.name}"] = why
            paths = CorpusPaths(self.rebuild.root, params.name)
            return self.as_is(steps, partial(sharded_facts, paths))
        self.run(steps)
        return {"made_again": True, **sharded_facts(CorpusPaths(self.rebuild.folder, params.name))}

    def tokenizer(self, name: str) -> Facts:
        """Make a tokenizer and all that comes after it again, if its corpus was."""
        try:
            params = load_tokenizer(self.params, name)
            steps = tokenizer_steps(params)
            if self.rebuild.has(*steps[0].inputs):
                self.run(steps)
                paths = TokenizerPaths(self.rebuild.folder, name)
                return {"made_again": True, **tokenizer_facts(paths)}
            why = f"its corpus {params.corpus} was not made again"
            self.verdict.not_checked[f"tokenizer {name}"] = why
            paths = TokenizerPaths(self.rebuild.root, name)
            return self.as_is(steps, partial(tokenizer_facts, paths))
        except BytepairError as error:
            return self.failed(error)

    def run(self, steps: Iterable[Step]) -> None:
        for step in steps:
            self.rebuild.run(step)

    def as_is(self, steps: Iterable[Step], read: Callable[[], Facts]) -> Facts:
        """The facts of what is there, if there is enough of it and it is that of dvc.lock."""
        facts: Facts = {"made_again": False}
        if {path.as_posix() for step in steps for path in step.outputs} <= self.in_order:
            with contextlib.suppress(ArtifactError):
                facts |= read()
        return facts

    def failed(self, error: BytepairError, remedy: str = "") -> Facts:
        """A stage that cannot run is a finding; most errors say what to do."""
        lines = self.rebuild.relative(str(error)).splitlines()
        problem = " ".join(line.strip() for line in lines)
        self.verdict.findings.append(Finding(problem, remedy))
        return {"made_again": False}


def _at_hand(corpus: CorpusParams, root: Path, cache: Path | None) -> bool:
    """Whether there is a file that may be the text of a corpus, without asking the network."""
    return (
        (CorpusPaths(root, corpus.name).raw / RAW).exists()
        or (cache is not None and (cache / corpus.fetch.file).exists())
        or any("://" not in source for source in corpus.fetch.sources)
    )
