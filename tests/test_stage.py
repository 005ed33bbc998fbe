"""stage.py: what a stage prints, and where, and what it exits with."""

import errno
import os
import subprocess
import sys
import warnings
from pathlib import Path

import click
import pytest

from bytepair.errors import CorpusError, FetchError
from bytepair.layout import CorpusPaths, TokenizerPaths
from bytepair.params import CorpusParams, TokenizerParams
from bytepair.stage import corpus_stage, tokenizer_stage

PARAMS = """
corpora:
  book:
    fetch: {sources: [book.txt], file: book.txt}
    strip: {}
    split: {by: headings, pattern: '^I$', expect: [I]}
tokenizers:
  small:
    corpus: book
    chunks: {pattern: null, special_tokens: []}
    train: {vocab_size: 300}
    encode: {}
    baseline: {}
    report: {}
"""


@pytest.fixture(autouse=True)
def project(tmp_path, monkeypatch):
    """The current folder, which holds a params.yaml."""
    (tmp_path / "params.yaml").write_text(PARAMS, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def call(capsys):
    """Run a command as a script does: its exit code, stdout and stderr."""

    def call(command, *arguments):
        with pytest.raises(SystemExit) as exited:
            command.main(list(arguments), prog_name="stage.py")
        return exited.value.code, *capsys.readouterr()

    return call


def raising(error):
    @corpus_stage
    def main(corpus: CorpusParams, paths: CorpusPaths) -> str:
        raise error

    return main


@tokenizer_stage
def count(tokenizer: TokenizerParams, paths: TokenizerPaths) -> str:
    """Count the chunks of the train split."""
    return f"{tokenizer.name}: {tokenizer.train.vocab_size} at {paths.bpe.as_posix()}"


def test_a_tokenizers_stage(call):
    assert call(count, "small") == (0, "small: 300 at data/tokenizers/small/bpe.json\n", "")


def test_a_corpus_stage_with_an_option(call):
    @corpus_stage
    @click.option("--force", is_flag=True, help="Take it.")
    @click.option("--times", type=int, default=1)
    def main(corpus: CorpusParams, paths: CorpusPaths, *, force: bool, times: int) -> str:
        """Fetch the corpus."""
        return f"{corpus.fetch.file} {paths.raw.as_posix()} {force} {times}"

    raw = "data/corpora/book/raw"
    assert call(main, "book") == (0, f"book.txt {raw} False 1\n", "")
    assert call(main, "book", "--force", "--times", "3") == (0, f"book.txt {raw} True 3\n", "")
    code, out, _ = call(main, "--help")
    assert code == 0
    assert out.startswith("Usage: stage.py [OPTIONS] NAME\n\n  Fetch the corpus.\n")
    assert out.index("--force") < out.index("--times") < out.index("--help")


@pytest.mark.parametrize("arguments", [[], ["small", "too many"], ["--no-such-option", "small"]])
def test_wrong_usage_is_2(call, arguments):
    code, out, err = call(count, *arguments)
    assert (code, out) == (2, "")
    assert err.startswith("Usage: stage.py [OPTIONS] NAME")


def test_a_block_that_is_not_there(call):
    assert call(count, "smal") == (
        1,
        "",
        (
            "Error: params.yaml: tokenizers: there is no block 'smal'. Known: small. "
            "Did you mean 'small'?\n"
        ),
    )


def test_no_params(call, project):
    (project / "params.yaml").unlink()
    code, _, err = call(count, "small")
    assert code == 1
    assert err.startswith("Error: params.yaml: no such file.")


@pytest.mark.parametrize(
    ("error", "shown"),
    [
        (
            CorpusError("clean.txt: 11 headings, expected 12."),
            "clean.txt: 11 headings, expected 12.",
        ),
        (FetchError("https://x: status 403."), "https://x: status 403."),
        (PermissionError(errno.EACCES, "Permission denied", "a/b"), "a/b: Permission denied"),
        (OSError(errno.ENOSPC, "No space left on device"), "book: No space left on device"),
        (BrokenPipeError(errno.EPIPE, "Broken pipe"), "book: Broken pipe"),
        (OSError("odd"), "book: odd"),
    ],
)
def test_errors_are_1(call, error, shown):
    assert call(raising(error), "book") == (1, "", f"Error: {shown}\n")


def test_a_bug_keeps_its_traceback(call):
    with pytest.raises(ZeroDivisionError):
        raising(ZeroDivisionError()).main(["book"])


def test_an_interrupt_is_no_success(call):
    code, out, err = call(raising(KeyboardInterrupt()), "book")
    assert (code, out, err.strip()) == (1, "", "Aborted!")


def test_warnings_are_one_line_and_no_failure(call):
    @tokenizer_stage
    def main(tokenizer: TokenizerParams, paths: TokenizerPaths) -> str:
        for _ in range(2):
            warnings.warn("stopped at 290,\nthe best count is 1", UserWarning, stacklevel=2)
        return "trained"

    before = (warnings.showwarning, list(warnings.filters))
    line = "Warning: stopped at 290, the best count is 1\n"
    assert call(main, "small") == (0, "trained\n", 2 * line)
    assert (warnings.showwarning, warnings.filters) == before


def test_other_warnings_are_pythons(call):
    @tokenizer_stage
    def main(tokenizer: TokenizerParams, paths: TokenizerPaths) -> str:
        warnings.warn("old", DeprecationWarning, stacklevel=1)
        return "done"

    with pytest.raises(DeprecationWarning):  # pytest makes them errors
        main.main(["small"])
    with pytest.warns(DeprecationWarning, match="old"):
        assert call(main, "small") == (0, "done\n", "")


SCRIPT = """
import warnings
from bytepair.errors import CorpusError
from bytepair.stage import tokenizer_stage

@tokenizer_stage
def main(tokenizer, paths):
    '''Show caf\\u00e9.'''
    warnings.warn("warned of \\u00e9 \\ud800")
    if tokenizer.train.vocab_size == 301:
        raise CorpusError("no \\u00e9 \\ud800")
    return "a token: \\u00e9 \\U0001f600 \\ud800"

main()
"""


@pytest.mark.parametrize(
    "locale",
    [
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "cp1252"},
        {"PYTHONUTF8": "1", "PYTHONWARNINGS": "error"},
    ],
)
def test_c43_any_locale_shows_any_token(project, locale):
    (project / "stage.py").write_text(SCRIPT, encoding="utf-8")
    environment = {**os.environ, **locale}

    def run(argument):
        return subprocess.run(
            [sys.executable, "-W", "error::EncodingWarning", "stage.py", argument],
            env=environment,
            capture_output=True,
            check=False,
        )

    good = run("small")
    assert (good.returncode, good.stdout.startswith(b"a token: ")) == (0, True)
    assert good.stderr.startswith(b"Warning: warned of ")
    assert good.stderr.count(b"\n") == 1
    Path("params.yaml").write_text(PARAMS.replace("300", "301"), encoding="utf-8")
    bad = run("small")
    assert (bad.returncode, bad.stdout) == (1, b"")
    assert bad.stderr.splitlines()[1].startswith(b"Error: no ")
    help_text = run("--help")
    assert (help_text.returncode, b"Show caf" in help_text.stdout) == (0, True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs Linux's /dev/full")
def test_a_full_disk_is_named(call):
    @corpus_stage
    def main(corpus: CorpusParams, paths: CorpusPaths) -> str:
        Path("/dev/full").write_bytes(b"a" * 100_000)
        return "written"

    assert call(main, "book") == (1, "", "Error: book: No space left on device\n")
