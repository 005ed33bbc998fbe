"""Ids do not depend on the package `regex`, except a custom pattern's, which then names its version."""

import importlib.metadata
import os
import shutil
import subprocess
import sys

import pytest
import yaml

import pipeline
from test_environment import OTHER_PYTHONS, find_python

LOCKED = importlib.metadata.version("regex")
OLD = pipeline.ROOT / "requirements" / "old-regex.txt"
HERE = "{}.{}".format(*sys.version_info)

# Arguments: how many characters of each text are enough, then the texts. Prints a hash of the ids for
# each shipped tokenizer, and for each preset with the merges of the first of them; then, to stderr,
# which regex there was and what it takes for no letter.
ENCODE = r"""
import hashlib, sys
from array import array
from pathlib import Path
import regex
from bytepair import Tokenizer
from bytepair.patterns import PRESETS

enough, *paths = sys.argv[1:]
texts = [Path(path).read_text(encoding="utf-8")[: int(enough)] for path in paths]
texts.append("".join(f"a{chr(n)} 1{chr(n)}'S" for n in range(0xA0, 0x1F000, 0x1F)
                     if not 0xD800 <= n < 0xE000))
shipped = [Tokenizer.load(path) for path in sorted(Path("data/tokenizers").glob("*/bpe.json"))]
presets = [Tokenizer(shipped[0].merges, pattern=name) for name in PRESETS]
for tokenizer in shipped + presets:
    digest = hashlib.sha256()
    for text in texts:
        digest.update(array("I", tokenizer.encode(text)).tobytes())
    print(tokenizer, digest.hexdigest())
print(regex.__file__, file=sys.stderr)
print(ascii(regex.sub(r"\p{L}", "", "a\U0001E6C0")), file=sys.stderr)
"""


@pytest.fixture(scope="session")
def old_regex(tmp_path_factory):
    """Install the other `regex` for a Python of this platform; the folder to import it from."""
    made = {}

    def install(python_version):
        if python_version in made:
            return made[python_version]
        folder = tmp_path_factory.mktemp("old-regex")
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(folder)]
        options = ["--python-version", python_version, "--only-binary", ":all:", "--no-deps"]
        run = subprocess.run(
            [*command, *options, "--require-hashes", "-r", str(OLD)],
            check=False, capture_output=True,
        )  # fmt: skip
        if run.returncode:
            message = f"the package registry did not serve {OLD.name} for Python {python_version}:"
            message += run.stderr.decode(errors="replace")[-300:]
            if os.environ.get("BYTEPAIR_REQUIRE_CORPORA") == "1":
                pytest.fail(message)
            pytest.skip(message)
        made[python_version] = folder
        return folder

    return install


@pytest.fixture(scope="session")
def texts():
    """The bundled text, and the corpora that are in CORPUS_CACHE."""
    cache = os.environ.get("CORPUS_CACHE")
    found = [pipeline.ROOT / "data" / "sample" / "tales.txt"]
    if cache:
        found += (pipeline.ROOT / cache / name for name in ("pg1661.txt", "tinyshakespeare.txt"))
    return [str(path) for path in found if path.is_file()]


def encode(python, enough, texts, *packages):
    """The lines that ENCODE prints, and the two lines of its stderr."""
    paths = os.pathsep.join([*map(str, packages), str(pipeline.ROOT / "src")])
    env = pipeline.environment(pipeline.ROOT, PYTHONPATH=paths)
    run = subprocess.run(
        [python, "-c", ENCODE, str(enough), *texts],
        cwd=pipeline.ROOT, env=env, check=True, capture_output=True,
    )  # fmt: skip
    return run.stdout.decode().splitlines(), *run.stderr.decode().splitlines()


@pytest.fixture(scope="session", params=[50_000, pytest.param(10**9, marks=pytest.mark.slow)])
def encoded_here(request, texts):
    """How many characters were enough, and what `encode` says of them here."""
    return request.param, *encode(sys.executable, request.param, texts)


@pytest.mark.parametrize("version", OTHER_PYTHONS)
def test_ids_are_the_same_with_another_regex_on_every_python(
    version, old_regex, texts, encoded_here
):
    python = sys.executable if version == HERE else find_python(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    folder = old_regex(version)
    enough, hashes, locked, no_letters = encoded_here
    found, old, no_letters_then = encode(python, enough, texts, folder)
    assert found == hashes
    assert len(found) >= 4 + 6
    assert [str(folder) in file for file in (locked, old)] == [False, True]
    # U+1E6C0 is a letter since Unicode 17, so that a custom pattern does depend on it.
    assert (no_letters, no_letters_then) == ("''", r"'\U0001e6c0'")


PATTERN = {"regex": r"\p{L}+|\P{L}", "engine": "regex", "regex_version": LOCKED}
STAGES = ("count_chunks", "train_tokenizer", "encode_splits")


def test_a_custom_pattern_refuses_another_regex(old_regex, sample_project, tmp_path):
    folder = old_regex(HERE)
    copy = tmp_path / "project"
    shutil.copytree(sample_project, copy)
    params = yaml.safe_load((copy / "params.yaml").read_text(encoding="utf-8"))
    params["tokenizers"]["sample-512"]["chunks"]["pattern"] = PATTERN
    (copy / "params.yaml").write_text(yaml.safe_dump(params), encoding="utf-8")
    for stage in STAGES:
        pipeline.run_stage(copy, f"stages/{stage}.py", "sample-512")
    made = pipeline.results(copy)
    env = pipeline.environment(copy, PYTHONPATH=os.pathsep.join([str(folder), str(copy / "src")]))
    for stage in STAGES:
        run = pipeline.run_stage(copy, f"stages/{stage}.py", "sample-512", env=env, check=False)
        assert (run.returncode, run.stdout) == (1, b"")
        message = run.stderr.decode()
        assert message.startswith("Error: params.yaml: tokenizers.sample-512.chunks.pattern"), (
            message
        )
        assert f"regex_version is '{LOCKED}', but regex " in message
        assert f"Install regex=={LOCKED}, or write regex_version: " in message
    assert pipeline.results(copy) == made


def test_what_can_change_ids_is_a_dependency_of_the_stages_that_cut():
    stages = yaml.safe_load((pipeline.ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    for name in ("count-chunks", "train-tokenizer", "encode-splits"):
        do = stages[name]["do"]
        assert "tokenizers.${key}.chunks" in do["params"], name  # pattern, engine, regex_version
        assert {"src/bytepair/unicode16.py", "src/bytepair/freezing.py"} <= set(do["deps"]), name
