"""What all commands share: examples that run, nothing imported in vain, an answer at once."""

import contextlib
import random
import re
import resource
import shutil
import subprocess
import sys

import click
import pytest

import pipeline
from bytepair import Tokenizer
from bytepair.cli import main
from bytepair.kernel import library
from commands import piped

MINE = ("train", "encode", "decode", "inspect", "view", "diff", "sweep")
HEAVY = {"numpy", "dvc", "regex", "yaml", "pooch", "tqdm", "tokenizers", "tiktoken", "transformers"}


def examples(name):
    command = main if name is None else main.get_command(click.Context(main), name)
    return [line.strip() for line in command.epilog.splitlines()[2:]]


@pytest.fixture(scope="module")
def folder(sample_project, tmp_path_factory):
    """The project with what the examples speak of."""
    folder = shutil.copytree(sample_project, tmp_path_factory.mktemp("examples") / "project")
    tales = (folder / "data" / "sample" / "tales.txt").read_bytes()
    for name in ("train/1.txt", "train/2.txt", "val.txt", "held-out.txt"):
        (folder / name).parent.mkdir(exist_ok=True)
        (folder / name).write_bytes(tales[:50_000])
    for name in ("old", "new"):
        shutil.copytree(folder / "data" / "tokenizers" / "sample-512", folder / name)
    assert piped("gzip -c val.txt > corpus.gz", folder).returncode == 0
    return folder


def test_every_example_of_help_runs(folder):
    ran = [line for name in (None, *MINE) for line in examples(name)]
    assert len(ran) > 20
    for line in ran:
        done = piped(f"set -e; {line}", folder)
        assert done.returncode == 0, (line, done.stderr)
        said = done.stderr.decode().splitlines()
        assert all(one.startswith("Warning: ") for one in said), (line, said)
        assert done.stdout or "-o" in line or ">" in line, line
    for made in ("bpe.json", "mine/bpe.json", "tales.npy", "tales.bin", "sweep.json", "sweep.svg"):
        assert (folder / made).stat().st_size > 0


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("train", "text", "--vocab-size", "300", "-o", "new.json"), set()),
        (("train", "text", "--vocab-size", "300", "--pattern", "o200k", "-o", "new.json"), set()),
        (("encode", "-t", ".", "text"), set()),
        (("encode", "-t", ".", "text", "--format", "json"), set()),
        (("encode", "-t", ".", "text", "--format", "u16", "-o", "ids"), {"numpy"}),
        (("decode", "-t", ".", "ids.txt"), set()),
        (("inspect", "."), set()),
        (("inspect", ".", "--token", "256"), set()),
        (("inspect", ".", "--unused", "text"), {"numpy"}),
        (("view", "-t", ".", "text"), set()),
        (("diff", ".", "."), set()),
        (("diff", ".", ".", "--text", "text"), {"numpy"}),
        (("sweep", "text", "--vocab-sizes", "300"), {"numpy"}),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kernel", ["0", "1"])
def test_a_command_imports_what_it_needs_only(tmp_path, arguments, expected, kernel):
    (tmp_path / "text").write_bytes(b"low lower lowest newer newest " * 9)
    (tmp_path / "ids.txt").write_bytes(b"108 111 119")
    Tokenizer([(108, 111)]).save(tmp_path / "bpe.json")
    program = (
        "import sys\n"
        "from bytepair.cli import main\n"
        f"main({[*arguments]!r}, standalone_mode=False)\n"
        "print({name.partition('.')[0] for name in sys.modules}, file=sys.stderr)"
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", program],
        cwd=tmp_path, check=True, capture_output=True, text=True,
        env=pipeline.environment(pipeline.ROOT, BYTEPAIR_KERNEL=kernel),
    )  # fmt: skip
    loaded = set(re.findall(r"'(.*?)'", done.stderr.splitlines()[-1]))
    assert loaded & HEAVY == expected
    ours = {"bytepair", "click", "cffi", "_cffi_backend", *expected}
    others = loaded - sys.stdlib_module_names - ours
    assert not {name for name in others if not name.startswith(("_", "sphinxcontrib"))}


@contextlib.contextmanager
def cpu_seconds(most):
    """What child processes may take, and what they took."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    yield
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    assert took < most, took


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """Two tokenizers of 50,000 ids, of tokens of all lengths, and a text of a megabyte."""
    folder = tmp_path_factory.mktemp("large")
    for name in "ab":
        chance = random.Random(name)
        tokens, merges = [bytes([byte]) for byte in range(256)], []
        known = set(tokens)
        while len(tokens) < 50_000:
            left, right = chance.randrange(97, 123), chance.randrange(len(tokens))
            token = tokens[left] + tokens[right]
            if token not in known and len(token) < 12:
                known.add(token)
                tokens.append(token)
                merges.append((left, right))
        Tokenizer(merges, pattern="gpt2").save(folder / name)
    words = [token.decode("latin-1") for token in random.Random(0).choices(tokens[97:], k=150_000)]
    (folder / "text").write_bytes(" ".join(words).encode()[:1_000_000])
    return folder


@pytest.mark.skipif(library() is None, reason="times are those of the compiled kernel")
@pytest.mark.parametrize(
    "arguments",
    [
        "encode -t a text",
        "inspect a",
        "inspect a --longest 20",
        "inspect a --token 49999",
        "inspect a --unused text",
        "view -t a text",
        "diff a b",
        "diff a b --text text",
    ],
)
def test_50_000_ids_are_no_matter(large, arguments):
    with cpu_seconds(2):  # measured: at most 0.7
        done = piped(f"bytepair {arguments}", large)
    assert (done.returncode, done.stderr) == (0, b"")
    assert len(done.stdout) > 100


@pytest.mark.skipif(library() is None, reason="times are those of the compiled kernel")
def test_a_short_text_is_encoded_at_once(tmp_path):
    Tokenizer([(108, 111)], pattern="gpt2").save(tmp_path / "bpe.json")
    with cpu_seconds(5 * 0.2):  # measured: 0.11 each
        for _ in range(5):
            assert piped("echo low | bytepair encode -t .", tmp_path).stdout == b"256 119 10\n"
