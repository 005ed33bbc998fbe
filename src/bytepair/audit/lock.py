"""What dvc.lock says of each stage, beside what dvc.yaml, params.yaml and the files say now.

DVC's own objects resolve the templates and read the lock, but every hash is of bytes that were
read here: DVC's memory of hashes, which goes by time and size, is not asked. What stages make may
be absent, and is judged in judge.py.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

from bytepair.audit.differences import ABSENT, differences, shown
from bytepair.errors import ArtifactError


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedFile:
    """A file or folder that a stage makes.

    Attributes:
        path: in the project, with `/`.
        locked: its md5 in dvc.lock, or None.
        found: the md5 of what is there, or None if it is absent.
        in_git: whether git holds it, not DVC's cache.
    """

    path: str
    locked: str | None
    found: str | None
    in_git: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LockedStage:
    """A stage of dvc.yaml.

    Attributes:
        name: such as `measure@sample-512`.
        reasons: why DVC would run it again, whatever the data are.
        beyond_repro: what does not fit, but would not make DVC run it again.
        inputs: dependencies that stages make; those may be parts of an output.
        outputs: what it makes, metrics and plots included.
    """

    name: str
    reasons: tuple[str, ...]
    beyond_repro: tuple[str, ...]
    inputs: tuple[LockedFile, ...]
    outputs: tuple[LockedFile, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Lock:
    """All that dvc.yaml and dvc.lock hold.

    Attributes:
        stages: those of dvc.yaml.
        left_over: names in dvc.lock that are none of them.
        elsewhere: dependencies and outputs that are on no disk of this machine.
    """

    stages: tuple[LockedStage, ...]
    left_over: tuple[str, ...]
    elsewhere: tuple[str, ...]


def read_lock(root: Path) -> Lock:
    """Read dvc.yaml and dvc.lock in the folder `root`.

    Raises:
        ArtifactError: DVC cannot read them.
    """
    from dvc.dvcfile import load_file  # type: ignore[import-untyped]
    from dvc.exceptions import DvcException  # type: ignore[import-untyped]
    from dvc.repo import Repo  # type: ignore[import-untyped]

    try:
        with Repo(root, config={"core": {"no_scm": True}}) as repo:
            loader = load_file(repo, str(root / "dvc.yaml")).stages
            stages = list(loader.values())
            params = _read_params(stages)
            ignore = repo.dvcignore
    except DvcException as error:
        raise ArtifactError(
            f"DVC: {error}. Correct dvc.yaml; if a merge left its marks in dvc.lock, take one side "
            "(`git checkout --ours dvc.lock`) and run `dvc repro`."
        ) from None
    locked: Mapping[str, Any] = loader.lockfile_data
    entries = [entry for stage in stages for entry in (*stage.deps, *stage.outs)]
    made = frozenset(Path(out.fs_path) for stage in stages for out in stage.outs)
    project = _Project(root, made, params, cache(partial(md5, ignore=ignore)))
    return Lock(
        stages=tuple(_stage(stage, locked.get(stage.name), project) for stage in stages),
        left_over=tuple(sorted(locked.keys() - {stage.name for stage in stages})),
        elsewhere=tuple(sorted({entry.def_path for entry in entries if not _is_local(entry)})),
    )


def md5(path: Path, *, ignore: Any = None) -> str | None:
    """The md5 that DVC gives to a file, or with `.dir` at its end to a folder; None if absent.

    `ignore` is what DVC knows of .dvcignore.
    """
    from dvc.fs import LocalFileSystem, MemoryFileSystem  # type: ignore[import-untyped]
    from dvc_data.hashfile.build import build
    from dvc_data.hashfile.db import HashFileDB

    if not path.exists():
        return None
    nowhere = HashFileDB(MemoryFileSystem(), "nowhere")
    _, _, hashed = build(nowhere, str(path), LocalFileSystem(), "md5", dry_run=True, ignore=ignore)
    return hashed.hash_info.value


@dataclass(frozen=True, slots=True)
class _Project:
    """What stages are held against; `made` are the outputs of all of them."""

    root: Path
    made: frozenset[Path]
    params: Mapping[str, Mapping[str, Any]]
    md5: Callable[[Path], str | None]

    def is_made(self, entry: Any) -> bool:
        path = Path(entry.fs_path)
        return not self.made.isdisjoint((path, *path.parents))

    def relative(self, entry: Any) -> str:
        path = Path(entry.fs_path)
        return path.relative_to(self.root).as_posix() if self.root in path.parents else str(path)

    def file(self, entry: Any) -> LockedFile:
        return LockedFile(
            path=self.relative(entry),
            locked=entry.hash_info.value,
            found=self.md5(Path(entry.fs_path)),
            in_git=not entry.use_cache,
        )


def _stage(stage: Any, locked: Mapping[str, Any] | None, project: _Project) -> LockedStage:
    files = [dep for dep in stage.deps if dep not in stage.params and _is_local(dep)]
    inputs = [dep for dep in files if project.is_made(dep)]
    if locked is None:
        reasons, beyond = ["it is not in dvc.lock"], []
    else:
        code = [dep for dep in files if dep not in inputs]
        reasons = [*_command(stage, locked), *_params(stage, project), *_code(code, project)]
        reasons += [f"{project.relative(dep)} is new to it" for dep in inputs if not dep.hash_info]
        beyond = list(_only_locked(stage, locked))
    return LockedStage(
        name=stage.name,
        reasons=tuple(reasons),
        beyond_repro=tuple(beyond),
        inputs=tuple(map(project.file, inputs)),
        outputs=tuple(map(project.file, filter(_is_local, stage.outs))),
    )


def _is_local(entry: Any) -> bool:
    return bool(entry.protocol == "local")


def _command(stage: Any, locked: Mapping[str, Any]) -> Iterator[str]:
    if stage.cmd_changed:
        yield f"its command was {shown(locked.get('cmd'))}, is {shown(stage.cmd)}"


def _params(stage: Any, project: _Project) -> Iterator[str]:
    """Each value that differs. DVC compares them as Python does, so 1 and true are the same."""
    for params in stage.params:
        recorded, actual = params.hash_info.value or {}, project.params[params.fs_path]
        for name in params.params:
            was, now = recorded.get(name, ABSENT), actual.get(name, ABSENT)
            if was != now:
                for place, old, new in differences(was, now, name):
                    yield f"{place} was {shown(old)}, is {shown(new)}"


def _read_params(stages: list[Any]) -> dict[str, dict[str, Any]]:
    """All parameters that stages depend on, by file; by itself DVC reads it anew for each stage."""
    from dvc.dependency import ParamsDependency  # type: ignore[import-untyped]

    wanted: dict[str, dict[str, None]] = {}
    for params in (params for stage in stages for params in stage.params):
        wanted.setdefault(params.fs_path, {}).update(dict.fromkeys(params.params))
    return {
        path: ParamsDependency(stages[0], path, list(names)).read_params()
        for path, names in wanted.items()
    }


def _code(dependencies: list[Any], project: _Project) -> Iterator[str]:
    for dependency in dependencies:
        found, recorded = project.md5(Path(dependency.fs_path)), dependency.hash_info.value
        if found != recorded:
            how = "is gone" if found is None else "has changed" if recorded else "is new to it"
            yield f"{project.relative(dependency)} {how}"


def _only_locked(stage: Any, locked: Mapping[str, Any]) -> Iterator[str]:
    """What dvc.lock has of a stage and dvc.yaml has not; DVC passes over it."""
    declared = {
        "dependency": {dep.def_path for dep in stage.deps},
        "output": {out.def_path for out in stage.outs},
        "parameter": {name for params in stage.params for name in params.params},
    }
    listed = {
        "dependency": [entry["path"] for entry in locked.get("deps", [])],
        "output": [entry["path"] for entry in locked.get("outs", [])],
        "parameter": [name for names in locked.get("params", {}).values() for name in names],
    }
    for kind, names in listed.items():
        for name in names:
            if name not in declared[kind]:
                yield f"dvc.lock has the {kind} {name}, dvc.yaml has not"
