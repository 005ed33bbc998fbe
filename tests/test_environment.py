"""The same bytes under any hash seed, locale, folder and Python, and after a clone elsewhere."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pipeline

OTHER_PYTHONS = ("3.11", "3.12", "3.13")

# Cuts every code point with every preset, and in context those at which a table begins or ends;
# prints one hash a pattern.
CUT_EVERYTHING = r"""
import hashlib
from bytepair.chunks import cut
from bytepair.freezing import TABLES, ranges
from bytepair.patterns import PRESETS, Pattern

characters = [chr(n) for n in range(0x110000) if not 0xD800 <= n < 0xE000]
runs = [run for table in TABLES.values() for run in ranges(table)]
edges = sorted({chr(n) for a, b in runs for n in (a - 1, a, b, b + 1) if not 0xD800 <= n < 0xE000})
texts = ["".join(characters), "".join(f"a{c} 1{c}\n'S{c}{c} " for c in edges)]
ours = [r"\w+|\W", r"\d|\D", r"\b", "[^\\S\n]+"]
for pattern in [*map(Pattern.named, PRESETS), *map(Pattern, ours)]:
    digest = hashlib.sha256()
    for text in texts:
        digest.update("\0".join(cut(text, pattern.compiled())).encode())
    print(repr(pattern.regex), digest.hexdigest())
"""


def find_python(version):
    """Some interpreter of that version, on PATH or among pyenv's; None if there is none."""
    pyenv = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    candidates = [shutil.which(f"python{version}"), *sorted(pyenv.glob(f"{version}.*/bin/python"))]
    for candidate in filter(None, candidates):
        run = subprocess.run([candidate, "-V"], capture_output=True, check=False)
        if run.stdout.decode().startswith(f"Python {version}."):
            return str(candidate)
    return None


@pytest.fixture(params=OTHER_PYTHONS)
def python(request):
    found = find_python(request.param)
    if found is None:
        pytest.skip(f"no Python {request.param} on this machine")
    return found


@pytest.fixture(scope="session")
def cuts_here():
    return run_program(sys.executable, CUT_EVERYTHING)


def run_program(python, program):
    env = pipeline.environment(pipeline.ROOT)
    return subprocess.run([python, "-c", program], env=env, check=True, capture_output=True).stdout


def test_patterns_cut_alike_on_every_python(python, cuts_here):
    assert run_program(python, CUT_EVERYTHING) == cuts_here
    assert len(cuts_here.splitlines()) == 10


def packages_for(python, folder):
    """A venv with what the stages import, as pinned; DVC itself runs in one Python only."""
    lock = (pipeline.ROOT / "requirements" / "run.txt").read_text(encoding="utf-8")
    wanted = re.findall(r"(?m)^(?:click|numpy|pyyaml)==.*(?:\n .*)*", lock)
    pins = folder / "requirements.txt"
    pins.write_text("\n".join(wanted) + "\n", encoding="utf-8")
    subprocess.run([python, "-m", "venv", folder / "venv"], check=True, capture_output=True)
    (executable,) = [*folder.glob("venv/bin/python"), *folder.glob("venv/Scripts/python.exe")]
    install = [executable, "-m", "pip", "install", "--quiet", "--require-hashes", "--no-deps"]
    run = subprocess.run([*install, "-r", pins], capture_output=True, check=False)
    if run.returncode:
        message = (
            f"the package registry did not serve Python {python}: {run.stderr.decode()[-300:]}"
        )
        if os.environ.get("BYTEPAIR_REQUIRE_CORPORA") == "1":
            pytest.fail(message)
        pytest.skip(message)
    return executable


def test_the_sample_gives_the_same_bytes_on_every_python(python, sample_project, tmp_path):
    executable = packages_for(python, tmp_path)
    copy = pipeline.copy_project(tmp_path / "project")
    found = pipeline.run_pipeline(copy, only=pipeline.SAMPLE, python=(executable,))
    expected = pipeline.results(sample_project)
    assert found.keys() == expected.keys()
    assert [name for name in expected if found[name] != expected[name]] == []


ENVIRONMENTS = {
    "seed_0_ascii_locale": {
        "PYTHONHASHSEED": "0", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0",
    },
    "seed_1_utf8_locale": {"PYTHONHASHSEED": "1", "LC_ALL": "C.UTF-8"},
    "seed_12345_strict_encodings": {
        "PYTHONHASHSEED": "12345", "PYTHONWARNDEFAULTENCODING": "1",
        "PYTHONWARNINGS": "error::EncodingWarning",
    },
}  # fmt: skip


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_c43_the_sample_gives_the_same_bytes_in_every_environment(name, sample_project, tmp_path):
    copy = pipeline.copy_project(tmp_path / "another folder with é")
    env = pipeline.environment(copy, **ENVIRONMENTS[name])
    found = pipeline.run_pipeline(copy, only=pipeline.SAMPLE, env=env)
    assert found == pipeline.results(sample_project)


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_c43_every_corpus_gives_the_same_bytes_in_every_environment(name, project, tmp_path):
    copy = pipeline.copy_project(tmp_path / "copy")
    env = pipeline.environment(copy, **ENVIRONMENTS[name])
    found = pipeline.run_pipeline(copy, env=env)
    assert found == pipeline.results(project)


def test_c43_output_is_never_an_encoding_error(sample_project, tmp_path):
    copy = tmp_path / "project"
    shutil.copytree(sample_project, copy)
    params = copy / "params.yaml"
    text = params.read_text(encoding="utf-8").replace(
        "{name: gpt2-ascii}", "{regex: 'é|\\w+|“'}", 1
    )
    params.write_text(text, encoding="utf-8", newline="\n")
    env = pipeline.environment(copy, LC_ALL="C", PYTHONUTF8="0", PYTHONCOERCECLOCALE="0")
    run = pipeline.run_stage(copy, "stages/count_chunks.py", "sample-512", env=env)
    assert b"cut by" in run.stdout
    assert "“".encode() in run.stdout or rb"\u201c" in run.stdout


def test_c42_a_clone_with_autocrlf_has_the_same_bytes(sample_project, tmp_path):
    source = pipeline.copy_project(tmp_path / "source")
    env = pipeline.environment(source)

    def git(*arguments, cwd=source):
        subprocess.run(["git", *arguments], cwd=cwd, env=env, check=True, capture_output=True)

    git("init", "-q")
    git("add", "-A")
    git("commit", "-qm", "all")
    git("-c", "core.autocrlf=true", "clone", "-q", str(source), str(tmp_path / "clone"))
    clone = tmp_path / "clone"
    for name in pipeline.tracked_files():
        assert (clone / name).read_bytes() == (source / name).read_bytes(), name
    assert b"\r\n" in (clone / "tests/files/pg08_all_crlf.txt").read_bytes()
    assert pipeline.run_pipeline(clone, only=pipeline.SAMPLE) == pipeline.results(sample_project)


def test_tracked_text_files_have_lf_ends_and_no_machine_paths():
    for name in pipeline.tracked_files():
        data = (pipeline.ROOT / name).read_bytes()
        if name.parts[:2] == ("tests", "files") or "seeds" in name.parts or b"\0" in data:
            continue
        assert b"\r" not in data, name
        assert data.endswith(b"\n") or not data, name
        for word in (b"/home" + b"/", b"/ro" + b"ot/", b"/wo" + b"rk/"):
            assert word not in data, (name, word)


def test_a_kept_result_has_no_trace_of_where_it_was_made(sample_project):
    for name, data in pipeline.results(sample_project).items():
        assert str(sample_project).encode() not in data, name
        assert str(Path.home()).encode() not in data, name
    assert hashlib.sha256(b"").hexdigest() not in str(sample_project)
