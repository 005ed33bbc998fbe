"""`bytepair encode` and `bytepair decode`: exact bytes through pipes, in every format."""

import io
import json

import numpy as np
import pytest

from bytepair import Tokenizer
from bytepair.commands._tokenizers import find_tokenizer
from bytepair.id_formats import FORMATS
from commands import piped, refused, run

TEXT = "the then there\r\n\0naïve 你好 <e>\ttail "


@pytest.fixture(scope="module")
def tok():
    return Tokenizer.train(
        ["the then there"] * 2, vocab_size=262, pattern="words", special_tokens=["<e>", "<f>"]
    )


@pytest.fixture
def folder(tok, tmp_path):
    tok.save(tmp_path / "bpe.json")
    (tmp_path / "text").write_bytes(TEXT.encode())
    return tmp_path


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("allow", [(), ("all",), ("<e>",)])
def test_every_format_gives_the_text_back(tok, folder, name, allow):
    options = [option for text in allow for option in ("--allow-special", text)]
    encoded = run("encode", "-t", folder, folder / "text", "--format", name, *options).stdout_bytes
    assert (
        run("decode", "-t", folder, "--format", name, stdin=encoded).stdout_bytes == TEXT.encode()
    )
    saved = folder / "new" / "ids"
    run("encode", "-t", folder, "--format", name, *options, "-o", saved, stdin=TEXT.encode())
    assert saved.read_bytes() == encoded
    ids = tok.encode(TEXT, allowed_special="all" if allow else ())
    assert (260 in ids) == bool(allow)
    readers = {
        "text": lambda data: [int(word) for word in data.split()],
        "json": json.loads,
        "npy": lambda data: np.load(io.BytesIO(data)).tolist(),
        "u16": lambda data: np.frombuffer(data, "<u2").tolist(),
        "u32": lambda data: np.frombuffer(data, "<u4").tolist(),
    }
    assert readers[name](encoded) == ids


def test_an_empty_text_has_no_ids(folder):
    for name in FORMATS:
        encoded = run("encode", "-t", folder, "--format", name, stdin=b"").stdout_bytes
        assert run("decode", "-t", folder, "--format", name, stdin=encoded).stdout_bytes == b""


def test_half_characters_are_kept(folder):
    assert run("decode", "-t", folder, stdin=b"195 10\t255\n0").stdout_bytes == b"\xc3\n\xff\0"


def test_pipes(folder):
    script = "bytepair encode -t bpe.json text | bytepair decode -t . | cmp - text"
    done = piped(script, folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    (folder / "large").write_bytes(TEXT.encode() * 40_000)
    done = piped("bytepair encode -t . large | head -c 3; echo; exit ${PIPESTATUS[1]}", folder)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"257\n", b"")


def test_any_locale_will_do(folder):
    for locale in ("C", "C.UTF-8", "POSIX"):
        done = piped(
            "bytepair encode -t . text | bytepair decode -t .",
            folder,
            LC_ALL=locale,
            PYTHONUTF8="0",
        )
        assert done.stdout == TEXT.encode()


@pytest.mark.parametrize(
    ("arguments", "data", "said", "code"),
    [
        (["encode"], b"abc\xff", "<stdin>: not UTF-8: byte 0xff at byte offset 3", 1),
        (["encode", "--allow-special", "<x>"], b"", "'<x>' is not a special token", 1),
        (["encode", "none.txt"], b"", "No such file or directory", 2),
        (["encode", "--format", "u8"], b"", "'u8' is not one of", 2),
        (["decode"], b"1 2 x", "<stdin>: 'x', number 3, is not an id", 1),
        (["decode"], b"1 -2", "'-2', number 2, is not an id", 1),
        (["decode"], b"1 262", "262 is not an id of this tokenizer: 0 to 261", 1),
        (["decode", "--format", "json"], b"[1, true]", "True is not an id", 1),
        (["decode", "--format", "json"], b"[1, 2", "<stdin>: not JSON", 1),
        (["decode", "--format", "json"], b'{"a": 1}', "is not a JSON list", 1),
        (["decode", "--format", "npy"], b"abc", "<stdin>: not a .npy file", 1),
        (["decode", "--format", "npy"], b"", "<stdin>: not a .npy file", 1),
        (["decode", "--format", "u32"], b"abc", "3 bytes are no whole number", 1),
    ],
)
def test_what_is_wrong_is_named(folder, arguments, data, said, code):
    command, *rest = arguments
    assert said in refused(command, "-t", folder, *rest, stdin=data, code=code)


def test_arrays_of_another_kind_are_refused(folder):
    for array in (np.zeros((2, 2), np.int64), np.zeros(2), np.array([True])):
        data = io.BytesIO()
        np.save(data, array)
        said = refused("decode", "-t", folder, "--format", "npy", stdin=data.getvalue())
        assert "not an array of integers" in said


def test_16_bits_must_do(tmp_path):
    tok = Tokenizer([(a, b) for a in range(256) for b in range(256)][: 65_537 - 256])
    tok.save(tmp_path / "bpe.json")
    said = refused("encode", "-t", tmp_path, "--format", "u16", stdin=b"ab")
    assert "u16 holds ids below 65,536, but this tokenizer has 65,537: take u32" in said


def test_a_tokenizer_is_a_file_a_folder_or_a_name(tok, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    tok.save("mine.json")
    tok.save("folder/bpe.json")
    tok.save("data/tokenizers/words-262/bpe.json")
    tok.save("bpe.json")
    found = {name: find_tokenizer(name)[0] for name in ("mine.json", "folder", "words-262", ".")}
    assert found == {
        "mine.json": "mine", "folder": "folder", "words-262": "words-262", ".": tmp_path.name,
    }  # fmt: skip
    assert find_tokenizer("folder/bpe.json")[0] == "folder"
    assert refused("decode", "-t", "none", stdin=b"", code=2).endswith(
        "'none' is neither a bpe.json, nor a folder that holds one, nor a tokenizer's name. Here "
        "are: words-262."
    )
    (tmp_path / "mine.json").write_bytes(b"{}")
    assert "mine.json" in refused("decode", "-t", "mine.json", stdin=b"")
