"""Judging dvc.lock: by code and parameters, and by what the stages make when they run again.

An output may have three hashes: in dvc.lock, of what is there, and of what was made again; the
latter two may be absent. It is judged wrong only if its stage would not run anyway. If that would
run, for its own sake or because its inputs come out otherwise, what this changes is told apart.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cache

from bytepair.audit.differences import differing_files
from bytepair.audit.lock import Lock, LockedFile, LockedStage, md5
from bytepair.audit.rebuild import Rebuild


@dataclass(frozen=True, slots=True)
class Finding:
    """Something that is not as it should be, the stages concerned, and what to do."""

    problem: str
    remedy: str
    stages: tuple[str, ...] = ()


@dataclass(slots=True)
class Judgement:
    """What was found.

    Attributes:
        findings: what is stale or wrong.
        changes: how the results in git will change when stale stages run.
        absent: data that are not there, and whether they were made again all the same.
    """

    findings: list[Finding] = field(default_factory=list)
    changes: list[str] = field(default_factory=list)
    absent: dict[str, bool] = field(default_factory=dict)


def judge(lock: Lock, rebuild: Rebuild, into: Judgement) -> None:
    """Hold dvc.lock against what dvc.yaml says, what is there, and what was made again."""
    judging = _Judging(lock, rebuild, into)
    judging.judge_stages()
    for stage in lock.stages:
        will_run = bool(stage.reasons) or judging.has_other_inputs(stage)
        for output in stage.outputs:
            judging.judge_output(stage.name, output, will_run=will_run)


class _Judging:
    def __init__(self, lock: Lock, rebuild: Rebuild, into: Judgement) -> None:
        self.lock = lock
        self.rebuild = rebuild
        self.into = into
        self.outputs = {output.path: output for stage in lock.stages for output in stage.outputs}
        self.made_again = cache(lambda path: md5(rebuild.folder / path))

    def find(self, problem: str, command: str, *stages: str) -> None:
        self.into.findings.append(Finding(problem, f"Run `{command}`.", stages))

    def judge_stages(self) -> None:
        """What is wrong with stages whatever is there, by reason and not by stage."""
        stale: dict[str, list[str]] = {}
        for stage in self.lock.stages:
            for reason in (*stage.reasons, *self.outdated_inputs(stage)):
                stale.setdefault(reason, []).append(stage.name)
        for reason, names in stale.items():
            self.find(reason, f"dvc repro {names[0]}" if len(names) == 1 else "dvc repro", *names)
        for stage in self.lock.stages:
            for problem in stage.beyond_repro:
                self.find(problem, f"dvc repro --force {stage.name}", stage.name)
        for name in self.lock.left_over:
            remedy = "Delete its block there, or give dvc.yaml its stage back."
            self.into.findings.append(Finding("it is only in dvc.lock", remedy, (name,)))

    def outdated_inputs(self, stage: LockedStage) -> Iterator[str]:
        """Inputs whose hash in dvc.lock is not the one that the stage that makes them has there."""
        for entry in stage.inputs:
            current = self.made(entry)
            if None not in (current, entry.locked) and current != entry.locked:
                yield f"it ran on another {entry.path} than the one that dvc.lock says was made"

    def made(self, entry: LockedFile) -> str | None:
        """What dvc.lock has for an input where it is made; None if that cannot be told.

        Of a part of an output it can be told only from such an output, here or made again.
        """
        if entry.path in self.outputs:
            return self.outputs[entry.path].locked
        whole = next(out for out in self.outputs.values() if entry.path.startswith(f"{out.path}/"))
        if whole.found == whole.locked:
            return entry.found
        return self.made_again(entry.path) if self.made_again(whole.path) == whole.locked else None

    def has_other_inputs(self, stage: LockedStage) -> bool:
        """Whether inputs come out otherwise than dvc.lock has them for this stage."""
        return any(
            self.made_again(entry.path) not in (None, entry.locked) for entry in stage.inputs
        )

    def judge_output(self, stage: str, output: LockedFile, *, will_run: bool) -> None:
        again = None if stage in self.rebuild.rewrapped else self.made_again(output.path)
        # DVC sees by itself that an output is not the one in dvc.lock, and restores or remakes it.
        force = "--force " if output.found in (None, output.locked) else ""
        command = f"dvc repro {force}{stage}"
        if output.found is None and output.in_git and not will_run:
            self.find(f"{output.path} is absent, but git should hold it", f"dvc repro {stage}")
        elif output.found is not None and again not in (None, output.found):
            self.judge_difference(output, command, will_run=will_run)
        elif output.found is not None and again is None and output.locked != output.found:
            if not will_run:
                self.find(f"{output.path} is not the one in dvc.lock", command)
        elif again not in (None, output.locked) and not will_run:
            problem = f"has the md5 {output.locked} in dvc.lock, but is made with {again}"
            self.find(f"{output.path} {problem}", command)
        if output.found is None:
            self.into.absent[output.path] = again is not None

    def judge_difference(self, output: LockedFile, command: str, *, will_run: bool) -> None:
        """What is there is not what the stage makes: say where."""
        good, found = (folder / output.path for folder in (self.rebuild.folder, self.rebuild.root))
        for path, how in differing_files(good, found):
            said = f"{path.relative_to(self.rebuild.root).as_posix()}: {how}"
            if not will_run:
                self.find(said, command)
            elif output.in_git:
                self.into.changes.append(said)
