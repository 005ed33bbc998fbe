"""Runs the pipeline's stages in a copy of the project, with or without DVC."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import yaml

ROOT = Path(__file__).parent.parent
SAMPLE = ("sample", "sample-512")

# Runs a script as `python SCRIPT ARGUMENTS` does, then names our modules that it imported.
SHOW_IMPORTS = """
import os, runpy, sys
sys.argv = sys.argv[1:]
sys.path[0] = os.path.dirname(sys.argv[0])
try:
    runpy.run_path(sys.argv[0], run_name="__main__")
finally:
    for name, module in sorted(sys.modules.items()):
        if name.partition(".")[0] == "bytepair":
            print("imported", os.path.relpath(module.__file__).replace(os.sep, "/"))
"""


def tracked_files():
    """What a commit of the working tree would hold, relative to the root."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT, check=True, capture_output=True,
    ).stdout.decode()  # fmt: skip
    return [Path(name) for name in listed.split("\0") if name and (ROOT / name).is_file()]


def copy_project(target: Path) -> Path:
    for name in tracked_files():
        (target / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(ROOT / name, target / name)
    return target


def commands(project: Path, *, only=None):
    """(script, name) of every stage in the order in which they can run."""
    params = yaml.safe_load((project / "params.yaml").read_text(encoding="utf-8"))
    stages = yaml.safe_load((project / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    for stage in stages.values():
        script = stage["do"]["cmd"].split()[1]
        for name in params[stage["foreach"][2:-1]]:
            if only is None or name in only:
                yield script, name


def environment(project: Path, **changes):
    env = {key: value for key, value in os.environ.items() if not key.startswith("PYTHON")}
    if env.get("CORPUS_CACHE"):
        env["CORPUS_CACHE"] = str((ROOT / env["CORPUS_CACHE"]).resolve())
    env["PYTHONPATH"] = str(project / "src")
    env["PATH"] = str(Path(sys.executable).parent) + os.pathsep + env.get("PATH", "")
    env["GIT_CONFIG_GLOBAL"] = os.devnull
    for key in ("GIT_AUTHOR", "GIT_COMMITTER"):
        env |= {f"{key}_NAME": "Test", f"{key}_EMAIL": "test@example.org"}
    env |= changes
    return {key: value for key, value in env.items() if value is not None}


def run_stage(project: Path, script, name, *, python=(sys.executable,), env=None, check=True):
    run = subprocess.run(
        [*python, script, name],
        cwd=project,
        env=env or environment(project),
        check=False,
        capture_output=True,
    )
    assert run.returncode == 0 or not check, f"{script} {name}: {run.stderr.decode()}"
    return run


def run_pipeline(project: Path, *, only=None, python=(sys.executable,), env=None):
    """Run every stage; the bytes of each file made, by path."""
    for script, name in commands(project, only=only):
        run_stage(project, script, name, python=python, env=env)
    return results(project)


def results(project: Path):
    return {
        path.relative_to(project).as_posix(): path.read_bytes()
        for folder in ("data/corpora", "data/tokenizers", "metrics")
        for path in sorted((project / folder).rglob("*"))
        if path.is_file()
    }


def imported_modules(project: Path, script, name):
    output = run_stage(project, script, name, python=(sys.executable, "-c", SHOW_IMPORTS)).stdout
    return {
        line.removeprefix("imported ")
        for line in output.decode().splitlines()
        if line.startswith("imported ")
    }
