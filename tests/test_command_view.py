"""`bytepair view`: nothing is lost or invented, nothing is sent to the terminal that it obeys."""

import io
import os
import pty
import re
import subprocess
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pipeline
from bytepair import Pattern, Tokenizer
from bytepair.errors import TextError
from bytepair.kernel import library
from bytepair.patterns import PRESETS
from bytepair.piecewise import BLOCK, pieces
from bytepair.viewing import BAR, View
from commands import piped, refused, run

COLOURED = re.compile(r"\x1b\[(?:30;48;5;(\d+)|7)m(.*?)\x1b\[0m", re.DOTALL)


@pytest.fixture(scope="module")
def tok():
    return Tokenizer.train(
        "the then there café\n\n" * 3, vocab_size=263, pattern="gpt2", special_tokens=["<e>"]
    )


@pytest.fixture
def folder(tok, tmp_path):
    tok.save(tmp_path / "bpe.json")
    return tmp_path


TEXT = "the then\tcafé\n\n☃<e>\n"


def test_bars_stand_between_tokens(tok, folder):
    result = run("view", "-t", folder, stdin=TEXT.encode())
    shown, _, counted = result.stdout.partition("\n\n")
    pieces = [
        "".join({"\n": "↵\n", "\t": "\t"}.get(c) or c for c in text)
        for text in (tok.vocab[i].decode("utf-8", "backslashreplace") for i in tok.encode(TEXT))
    ]
    assert result.stdout.startswith(BAR.join(pieces))
    assert r"│\xe2│\x98│\x83│<│e│>│↵" in shown + "\n\n" + counted
    number = len(pieces)
    assert result.stdout.endswith(f"\n\n{number} tokens, 23 bytes, {23 / number:.4f} bytes/token\n")


def test_colours_change_from_token_to_token(tok, folder):
    arguments = ("view", "-t", folder, "--color", "always", "--allow-special", "all")
    shown = run(*arguments, stdin=TEXT.encode()).stdout
    found = COLOURED.findall(shown)
    ids = tok.encode(TEXT, allowed_special="all")
    pieces = [piece for i in ids for piece in tok.vocab[i].decode("utf-8", "backslashreplace").replace("\n", "↵\n").splitlines()]  # fmt: skip
    assert [text for _, text in found] == pieces
    assert [text for colour, text in found if not colour] == ["<e>"]
    without_colours = COLOURED.sub(r"\2", shown)
    assert "\x1b" not in without_colours
    assert without_colours.startswith("the then\tcaf\\xc3\\xa9↵\n↵\n\\xe2\\x98\\x83<e>↵\n")


def test_no_two_neighbours_have_one_colour():
    view = View([b"a"] * 256, first_special=256, colour=True)
    colours = [colour for colour, _ in COLOURED.findall(view.draw([0] * 50) + view.draw([0] * 7))]
    assert len(colours) == 57
    assert all(a != b for a, b in pairwise(colours))


@given(st.text(max_size=30))
def test_nothing_is_shown_that_a_terminal_obeys(text):
    view = View(Tokenizer([]).vocab, first_special=256, colour=False)
    shown = view.draw(text.encode())
    assert shown.replace("\n", "").replace("\t", "").isprintable()
    assert (view.tokens, view.size) == (len(text.encode()),) * 2


def test_colours_are_for_terminals_without_no_color(folder):
    script = "printf 'the then' | bytepair view -t ."
    assert b"\x1b" not in piped(script, folder).stdout
    for changes, coloured in (({"NO_COLOR": None}, True), ({"NO_COLOR": "1"}, False)):
        environment = pipeline.environment(folder, **changes)
        terminal, end = pty.openpty()
        subprocess.run(["bash", "-c", script], cwd=folder, env=environment, stdout=end, check=True)
        os.close(end)
        read = os.read(terminal, 4096)
        os.close(terminal)
        assert (b"\x1b[30;48;5;" in read) is coloured, read
        assert b"3 tokens, 8 bytes" in read


def test_an_empty_text_and_wrong_ones(folder):
    assert run("view", "-t", folder, stdin=b"").stdout == "\n0 tokens, 0 bytes\n"
    assert "<stdin>: not UTF-8: byte 0xff at byte offset 3" in refused(
        "view", "-t", folder, stdin=b"abc\xff"
    )
    assert "'<x>' is not a special token" in refused(
        "view", "-t", folder, "--allow-special", "<x>", stdin=b""
    )


def test_a_reader_that_leaves_is_no_error(folder):
    (folder / "large").write_bytes(TEXT.encode() * 100_000)
    done = piped("bytepair view -t . large | head -c 3", folder)
    assert (done.stdout, done.stderr) == (b"the", b"")


SPECIALS = ("<e>", "<e> <f>", "  ")
texts = st.lists(
    st.sampled_from(["a", " ", "\n", "é", "<e>", "<e> <f>", "'s", "12", "  ", "<", "the"]),
    max_size=60,
).map("".join)


@pytest.mark.parametrize("pattern", [*PRESETS, None, r"\w+ \w+"])
@given(text=texts, block=st.integers(1, 9), allowed=st.sets(st.sampled_from(SPECIALS)))
def test_pieces_have_the_ids_of_the_text(pattern, text, block, allowed):
    tok = Tokenizer([(32, 97), (97, 256)], pattern=pattern, special_tokens=SPECIALS)
    allowed = tuple(allowed)
    found = list(
        pieces(io.BytesIO(text.encode()), "text", Pattern.of(pattern), allowed, block=block)
    )
    assert "".join(found) == text
    assert "" not in found
    ids = [i for piece in found for i in tok.encode(piece, allowed_special=allowed)]
    assert ids == tok.encode(text, allowed_special=allowed)


def test_a_large_text_comes_in_many_pieces_and_a_wrong_byte_has_its_offset():
    data = b"low lower lowest " * 50_000
    found = list(pieces(io.BytesIO(data), "text", Pattern.named("gpt2")))
    blocks = 1 if library() is None else len(data) // BLOCK + 1
    assert blocks <= len(found) <= blocks + 1
    for offset in (0, 100_000, len(data)):
        wrong = data[:offset] + b"\xff" + data[offset:]
        with pytest.raises(TextError, match=f"text: not UTF-8: byte 0xff at byte offset {offset} "):
            list(pieces(io.BytesIO(wrong), "text", Pattern.named("gpt2")))
