"""The GitHub workflow, which runs elsewhere only: GitHub's schema, .ci/run and the Makefile bind it."""

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

import pipeline

PATH = pipeline.ROOT / ".github" / "workflows" / "ci.yml"
TEXT = PATH.read_text(encoding="utf-8")
WORKFLOW = yaml.load(TEXT, yaml.BaseLoader)  # keeps `on` a key and 3.10 no number
JOBS = WORKFLOW["jobs"]
STEPS = [(job, step) for job, content in JOBS.items() for step in content["steps"]]
RUNS = [step["run"] for _, step in STEPS if "run" in step]
MAKEFILE = (pipeline.ROOT / "Makefile").read_text(encoding="utf-8")
PYPROJECT = tomllib.loads((pipeline.ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def schema_errors(path):
    """What check-jsonschema says, with the schema that it brings along; nothing is downloaded."""
    command = [sys.executable, "-m", "check_jsonschema", "--no-cache", "--builtin-schema"]
    run = subprocess.run(
        [*command, "vendor.github-workflows", path], check=False, capture_output=True
    )
    return run.stdout.decode() + run.stderr.decode() if run.returncode else ""


def test_it_is_what_github_takes(tmp_path):
    assert schema_errors(PATH) == ""
    wrong = tmp_path / "ci.yml"
    wrong.write_text(TEXT.replace("runs-on:", "runs_on:", 1), encoding="utf-8")
    assert "jobs.check: 'runs-on' is a required property" in schema_errors(wrong)


def lines_of_make(target):
    """The commands of a target and of those that it needs, except the environment's."""
    head, *lines = re.search(rf"(?m)^{target}:(.*(?:\n\t.*)*)", MAKEFILE)[1].split("\n\t")
    needed = [name for name in head.split() if name.isalpha()]
    return [line for name in needed for line in lines_of_make(name)] + lines


def lines_of_ci():
    """What .ci/run does once the tools are there, with make's targets spelled out."""
    script = (pipeline.ROOT / ".ci" / "run").read_text(encoding="utf-8")
    lines = script[script.index("\nmake clean\n") :].split("\n")[2:-1]
    for line in lines:
        program, _, rest = line.partition(" ")
        if program == "make":
            yield from lines_of_make(rest)
        elif "=" not in program:
            yield line


def test_its_jobs_do_what_ci_does():
    test = "\n".join(step.get("run", "") for job, step in STEPS if job == "test").split("\n")
    targets = ("check", "shards", "fuzz")
    elsewhere = [line for target in targets for line in lines_of_make(target)]
    ours = [line for line in lines_of_ci() if line not in elsewhere]
    assert [line for line in test if line in ours] == ours
    assert [line for line in elsewhere if line in test] == []
    for target in targets:
        assert f"make {target}" in [step.get("run") for job, step in STEPS if job == target]


def test_dependencies_are_installed_as_make_installs_them():
    made = re.findall(r"\tpython -m pip install --quiet (.*)", MAKEFILE)
    runs = "\n".join(run for run in RUNS if "pip install" in run)
    found = re.findall(r"python -m pip install (.*)", runs)
    assert len(found) == runs.count("install")
    assert set(found) == set(made)
    assert len(made) == 3


COMMANDS = set(re.sub(r"(?s) <<'END'.*?\nEND", "", "\n".join(RUNS)).splitlines()) - {""}


@pytest.mark.parametrize("command", sorted(COMMANDS))
def test_what_it_runs_exists(command):
    match words := command.split():
        case ["make", target]:
            assert re.search(rf"(?m)^{target}:", MAKEFILE)
        case ["python", "-m", "pip" | "pytest", *_] | ["python", "-"]:
            pass
        case ["python", script, *_]:
            assert (pipeline.ROOT / script).is_file()
        case ["dvc" | ".venv/bin/dvc", command, *_]:
            assert command in {"repro", "status", "metrics"}
        case ["bytepair", "check" | "verify"]:
            assert "bytepair" in PYPROJECT["project"]["scripts"]
        case _:
            assert words[0] in {"git", "test", "echo", "mkdir"} or words[0].startswith("pins=$(")


def test_it_runs_on_three_systems_and_every_python():
    matrix = JOBS["test"]["strategy"]["matrix"]
    assert matrix["os"] == ["ubuntu-latest", "macos-latest", "windows-latest"]
    assert matrix["python"] == ["3.11", "3.12", "3.13", "3.14"]
    assert PYPROJECT["project"]["requires-python"] == f">={matrix['python'][0]}"


def test_it_may_read_only_and_ends():
    assert WORKFLOW["permissions"] == {"contents": "read"}
    assert "secrets" not in TEXT
    assert "concurrency" in WORKFLOW
    for job in JOBS.values():
        assert "permissions" not in job
        assert int(job["timeout-minutes"]) <= 240


def test_actions_are_pinned_by_commit_and_keep_no_credentials():
    used = set(re.findall(r"uses: (\S+)(.*)", TEXT))
    for action, comment in used:
        assert re.fullmatch(r"actions/[a-z/-]+@[0-9a-f]{40}", action)
        assert re.fullmatch(r" # v\d+\.\d+\.\d+", comment)
    projects = {re.match(r"actions/[a-z-]+", action)[0] for action, _ in used}
    assert len({action.rpartition("@")[2] for action, _ in used}) == len(projects)
    for _, step in STEPS:
        if "checkout" in step.get("uses", ""):
            assert step["with"]["persist-credentials"] == "false"


def test_expressions_name_what_there_is_and_never_stand_in_a_script():
    for name, job in JOBS.items():
        steps = {step.get("id") for step in job["steps"]}
        for path in re.findall(r"\$\{\{ (\S+) ", yaml.dump(job)):
            match path.split("."):
                case ["matrix", key]:
                    assert key in job["strategy"]["matrix"], (name, path)
                case ["steps", step, "outputs", _]:
                    assert step in steps, (name, path)
                case ["needs", needed, "outputs", key]:
                    assert needed == job["needs"], (name, path)
                    assert key in JOBS[needed]["outputs"], (name, path)
                case _:
                    assert path == "github.base_ref", (name, path)
    assert not [run for run in RUNS if "${{" in run]


@pytest.fixture
def key(tmp_path):
    """The key of the cached corpora that the workflow makes of a params.yaml."""
    bash = shutil.which("bash")
    if bash is None:
        pytest.skip("no bash on this machine")
    (script,) = [step["run"] for _, step in STEPS if step.get("id") == "pins"]

    def make(params):
        (tmp_path / "params.yaml").write_text(params, encoding="utf-8", newline="\n")
        env = pipeline.environment(tmp_path, GITHUB_OUTPUT=str(tmp_path / "output"))
        Path(env["GITHUB_OUTPUT"]).unlink(missing_ok=True)
        subprocess.run([bash, "-e", "-c", script], cwd=tmp_path, env=env, check=True)
        return Path(env["GITHUB_OUTPUT"]).read_text(encoding="utf-8")

    return make


def test_the_corpora_are_cached_by_their_pins(key):
    params = (pipeline.ROOT / "params.yaml").read_text(encoding="utf-8")
    first = key(params)
    assert re.fullmatch(r"key=corpora-[0-9a-f]{16}\n", first)
    assert key(params.replace("512", "1024").replace("#", "##")) == first
    pins = re.findall("[0-9a-f]{64}", params)
    assert {key(params.replace(pin, pin[::-1])) for pin in pins}.isdisjoint({first})
