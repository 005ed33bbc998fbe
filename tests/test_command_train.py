"""`bytepair train`: the library's tokenizer, on disk; wrong usage leaves what was there."""

import pytest

from bytepair import Pattern, Tokenizer
from commands import piped, refused, run

TEXT = "low low low lower lowest newer newest. naïve\n" * 4


@pytest.fixture
def files(tmp_path):
    paths = [tmp_path / "a.txt", tmp_path / "b.txt"]
    paths[0].write_bytes(TEXT.encode())
    paths[1].write_bytes(b"a newer\r\nlower <e> low\n")
    return paths


@pytest.mark.parametrize(
    ("options", "pattern"),
    [
        ([], "gpt2"),
        (["--pattern", "o200k"], "o200k"),
        (["--regex", r"\w+|\W"], r"\w+|\W"),
        (["--regex", r"\p{L}+", "--engine", "regex"], Pattern(r"\p{L}+", "regex")),
        (["--no-pattern"], None),
    ],
)
def test_it_is_train_files(files, tmp_path, options, pattern):
    out = tmp_path / "new" / "bpe.json"
    special = ["--special", "<e>", "--special", "<f>"]
    result = run("train", *files, "--vocab-size", 266, *special, *options, "-o", out)
    expected = Tokenizer.train_files(
        files, vocab_size=266, pattern=pattern, special_tokens=["<e>", "<f>"]
    )
    assert Tokenizer.load(out) == expected
    first, second = result.stdout.splitlines()
    assert first.startswith(f"{out}: 266 ids, 8 merges, ")
    assert second == f"sha256 {expected.sha256}"
    ids = [expected.encode(path.read_bytes().decode().replace("<e>", "")) for path in files]
    size = sum(len(expected.decode_bytes(document)) for document in ids)
    if pattern == "gpt2":  # where leaving out the special token changes no other chunk
        assert f"{size / sum(map(len, ids)):.4f} bytes/token" in first


def test_threads_order_and_stdin_change_nothing(files, tmp_path):
    outs = [tmp_path / f"{number}.json" for number in range(4)]
    size = ("--vocab-size", 262)
    run("train", *files, *size, "-o", outs[0])
    run("train", *reversed(files), *size, "--threads", 1, "-o", outs[1])
    run("train", "-", files[1], *size, "-o", outs[2], stdin=files[0].read_bytes())
    piped(f"cat a.txt | bytepair train b.txt - --vocab-size 262 -o {outs[3]}", tmp_path)
    assert len({out.read_bytes() for out in outs}) == 1


def test_an_early_end_is_a_warning(files, tmp_path):
    result = run("train", *files, "--vocab-size", 5000, "-o", tmp_path / "bpe.json")
    assert result.stderr.startswith("Warning: training stopped at ")
    few = run(
        "train", *files, "--vocab-size", 5000, "--min-count", 5, "-o", tmp_path / "few.json"
    ).stderr
    assert "no pair is left that occurs 5 times" in few


@pytest.mark.parametrize(
    ("options", "said", "code"),
    [
        (["--vocab-size", "255"], "vocab_size is 255", 1),
        (["--vocab-size", "many"], "'many' is not a valid integer", 2),
        ([], "Missing option '--vocab-size'", 2),
        (["--vocab-size", "300", "--pattern", "words", "--no-pattern"], "give one of", 2),
        (["--vocab-size", "300", "--engine", "re"], "--engine goes with --regex", 2),
        (["--vocab-size", "300", "--regex", "("], "pattern '(': missing )", 1),
        (["--vocab-size", "300", "--special", ""], "special token '' is empty", 1),
        (["--vocab-size", "300", "--min-count", "0"], "0 is not in the range x>=1", 2),
    ],
)
def test_what_is_wrong_is_named_and_nothing_replaced(files, tmp_path, options, said, code):
    out = tmp_path / "bpe.json"
    out.write_bytes(b"older")
    assert said in refused("train", *files, *options, "-o", out, code=code)
    assert out.read_bytes() == b"older"


def test_texts_that_are_none(tmp_path):
    out = ("--vocab-size", 300, "-o", tmp_path / "bpe.json")
    bad, empty = tmp_path / "bad.txt", tmp_path / "empty.txt"
    bad.write_bytes(b"abc\xff")
    empty.write_bytes(b"")
    assert "bad.txt: not UTF-8: byte 0xff at byte offset 3" in refused("train", bad, *out)
    assert "<stdin>: not UTF-8" in refused("train", "-", *out, stdin=b"\xff")
    assert "the corpus is empty" in refused("train", empty, *out)
    assert "does not exist" in refused("train", tmp_path / "none.txt", *out, code=2)
    assert "is a directory" in refused("train", tmp_path, *out, code=2)
    assert not (tmp_path / "bpe.json").exists()
