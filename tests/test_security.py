"""What SECURITY.md says: limits, nothing run, no path out of a record, links."""

import ast
import contextlib
import importlib
import json
import os
import re
import shutil
import sys
import time

import pytest

import pipeline
from bytepair import ChunkCounts, Tokenizer
from bytepair.baseline import load_baseline
from bytepair.chunks import cut
from bytepair.corpora.documents import read_split
from bytepair.corpora.fetch import fetch
from bytepair.corpora.split import split_file
from bytepair.corpora.strip import strip_file
from bytepair.errors import BytepairError
from bytepair.files import dump_json, write_bytes, write_record
from bytepair.layout import CorpusPaths, TokenizerPaths
from bytepair.params import load_corpus
from bytepair.patterns import PRESETS, Pattern
from bytepair.tokens import open_tokens

PAGE = (pipeline.ROOT / "SECURITY.md").read_text(encoding="utf-8")
LIMITS = re.findall(r"\| ([\d,]+) \| `([\w.]+)\.([A-Z_]+)(?:\[(\d)\])?` \|", PAGE)


@pytest.mark.parametrize(("limit", "module", "name", "index"), LIMITS)
def test_limits_are_those_of_the_code(limit, module, name, index):
    value = getattr(importlib.import_module(f"bytepair.{module}"), name)
    assert f"{value[int(index)] if index else value:,}" == limit


def test_every_limit_is_listed_and_the_text_agrees_with_the_table():
    assert len(LIMITS) == PAGE.count("\n| ") - 2
    for path in (pipeline.ROOT / "src" / "bytepair").rglob("*.py"):
        module = path.relative_to(pipeline.ROOT / "src" / "bytepair").with_suffix("").as_posix()
        for name in re.findall(r"(?m)^(MAX_[A-Z_]+) =", path.read_text(encoding="utf-8")):
            assert f"`{module.replace('/', '.')}.{name}`" in PAGE, (path, name)
    limits = {name: limit for limit, _, name, _ in LIMITS}
    assert f"after {limits['NOTICE_SECONDS']} seconds it says so" in PAGE
    assert f"after {limits['LIMIT_SECONDS']} seconds, and one more for every" in PAGE
    assert f"every {limits['CHARACTERS_PER_SECOND']} characters" in PAGE.replace("\n", " ")


def test_the_pattern_of_a_stranger_can_be_recognized():
    known = [Pattern(None), *map(Pattern.named, PRESETS)]
    assert all(Tokenizer([], pattern=name).pattern in known for name in PRESETS)
    assert Tokenizer([], pattern="(a+)+b").pattern not in known
    assert "[Pattern(None), *map(Pattern.named, PRESETS)]" in PAGE


UNITS = [*" aA1'.\n\r\u0301ʰ", " \n", " a", "Aa", "'s", "A\u0301"]


@pytest.mark.parametrize("name", PRESETS)
def test_named_patterns_take_linear_time(name):
    pattern = Pattern.named(name).compiled()
    for unit in UNITS:
        for end in ("", "x", "!", " "):
            start = time.process_time()
            cut(unit * 20_000 + end, pattern)
            assert time.process_time() - start < 1, (unit, end)  # 0.05 s at most; squared, minutes


FORBIDDEN_MODULES = {"pickle", "marshal", "shelve", "dill", "joblib", "cloudpickle", "code"}
FORBIDDEN_CALLS = {"eval", "exec", "compile", "__import__", "system", "popen"}
NO_DATA = {"re.compile", "regex.compile"}
OWN_SCRIPTS = {"audit/rebuild.py": {"compile", "exec"}}  # those in stages/, as `dvc repro` does
OWN_PIPES = {("engines", "processes.py"), ("bytepair", "engine.py")}
PROGRAM_FILES = sorted(
    path for folder in ("src", "stages") for path in (pipeline.ROOT / folder).rglob("*.py")
)


@pytest.mark.parametrize("path", PROGRAM_FILES, ids=lambda path: path.stem)
def test_nothing_runs_data(path):
    # Between a process and the workers that it has started, over pipes of their own.
    forbidden = FORBIDDEN_MODULES - ({"pickle"} if path.parts[-2:] in OWN_PIPES else set())
    allowed = NO_DATA | OWN_SCRIPTS.get("/".join(path.parts[-2:]), set())
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            assert not {alias.name for alias in node.names} & forbidden
        elif isinstance(node, ast.ImportFrom):
            assert node.module not in forbidden
        elif isinstance(node, ast.Call):
            name = ast.unparse(node.func)
            assert name in allowed or name.rpartition(".")[2] not in FORBIDDEN_CALLS
            keywords = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
            assert keywords.get("allow_pickle", "False") == "False"
            assert "shell" not in keywords


class Opened:
    """Collects every path that the interpreter is asked for while `paths` is a list."""

    def __init__(self):
        self.paths = None
        sys.addaudithook(self.hook)  # there is no way to remove one

    def hook(self, event, arguments):
        if self.paths is not None and event.partition(".")[0] in {"open", "os", "shutil", "glob"}:
            self.paths += (str(argument) for argument in arguments)


@pytest.fixture(scope="session")
def opened():
    return Opened()


POISON = "../../poisoned/x"


def poisoned(value):
    """Copies of a JSON value in which one string, a value or a key, is a path leading outside."""
    if isinstance(value, str):
        yield POISON
    elif isinstance(value, dict):
        for key, inner in value.items():
            yield {POISON if other == key else other: each for other, each in value.items()}
            for changed in poisoned(inner):
                yield {**value, key: changed}
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            for changed in poisoned(inner):
                yield [*value[:number], changed, *value[number + 1 :]]


def readers(root):
    """Each record of the sample, and what reads it in the pipeline."""
    corpus = CorpusPaths(root, "sample")
    tokenizer = TokenizerPaths(root, "sample-512")
    params = load_corpus(root / "params.yaml", "sample")
    yield corpus.raw / "fetch.json", lambda: strip_file(corpus.raw, corpus.clean, params.strip)
    yield (
        corpus.raw / "fetch.json",
        lambda: fetch(params.fetch, params.strip, corpus.raw, root=root),
    )
    yield (
        corpus.clean / "strip.json",
        lambda: split_file(corpus.clean, corpus.splits, params.split),
    )
    yield corpus.splits / "val" / "documents.json", lambda: read_split(corpus.splits / "val")
    yield tokenizer.counts / "index.json", lambda: ChunkCounts.load(tokenizer.counts)
    yield tokenizer.bpe, lambda: Tokenizer.load(tokenizer.bpe)
    yield tokenizer.tokens / "val" / "index.json", lambda: open_tokens(tokenizer.tokens / "val")
    sha256 = Tokenizer.load(tokenizer.bpe).sha256
    yield (
        tokenizer.baseline / "baseline.json",
        lambda: load_baseline(tokenizer.baseline, tokenizer_sha256=sha256),
    )


def test_no_path_comes_out_of_a_record(sample_project, tmp_path, opened):
    project = tmp_path / "project"
    shutil.copytree(sample_project, project)
    for path, read in readers(project):
        original = path.read_bytes()
        record = json.loads(original)
        sealed = record.pop("record_sha256", None) is not None
        tried = list(poisoned(record))
        assert tried
        for changed in tried:
            if sealed:
                write_record(path, changed)
            else:
                write_bytes(path, dump_json(changed))
            opened.paths = paths = []
            with contextlib.suppress(BytepairError):
                read()
            opened.paths = None
            assert str(path) in paths
            assert not [name for name in paths if "poisoned" in name], changed
            path.write_bytes(original)


@pytest.mark.skipif(os.name == "nt", reason="links need a right that Windows does not give all")
def test_a_linked_file_is_replaced_and_a_linked_folder_followed(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "file").write_bytes(b"kept")
    (tmp_path / "link").symlink_to(elsewhere / "file")
    write_bytes(tmp_path / "link", b"new")
    assert (elsewhere / "file").read_bytes() == b"kept"
    assert not (tmp_path / "link").is_symlink()
    (tmp_path / "folder").symlink_to(elsewhere)
    write_bytes(tmp_path / "folder" / "inside", b"new")
    assert (elsewhere / "inside").read_bytes() == b"new"


@pytest.mark.skipif(os.name == "nt", reason="links need a right that Windows does not give all")
def test_a_stage_removes_no_linked_folder(sample_project, tmp_path):
    project = tmp_path / "project"
    shutil.copytree(sample_project, project)
    shutil.rmtree(project / "data/corpora/sample/splits/test")
    tokens = project / "data/tokenizers/sample-512/tokens/test"
    tokens.rename(tmp_path / "elsewhere")
    tokens.symlink_to(tmp_path / "elsewhere")
    run = pipeline.run_stage(project, "stages/encode_splits.py", "sample-512", check=False)
    assert run.returncode == 1
    assert b"symbolic link" in run.stderr
    assert (tmp_path / "elsewhere" / "index.json").is_file()


def test_encode_splits_refuses_another_tokenizers_file(sample_project, tmp_path):
    project = tmp_path / "project"
    shutil.copytree(sample_project, project)
    bpe = TokenizerPaths(project, "sample-512").bpe
    trained = Tokenizer.load(bpe)
    specials = tuple(trained.special_tokens)
    for pattern, special_tokens in ((Pattern("(a+)+b"), specials), (trained.pattern, ("<s>",))):
        other = Tokenizer(trained.merges, pattern=pattern, special_tokens=special_tokens)
        other.save(bpe)
        run = pipeline.run_stage(project, "stages/encode_splits.py", "sample-512", check=False)
        assert run.returncode == 1
        assert b"not made by these `chunks`" in run.stderr
