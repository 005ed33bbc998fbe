"""`bytepair inspect`: what it prints is the tokenizer, and can be read back."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pipeline
from bytepair import ChunkCounts, Tokenizer
from bytepair.errors import TokenError
from bytepair.inspection import DEEPEST, find_token, quoted, tree, unquoted
from commands import refused, run

SHERLOCK = pipeline.ROOT / "data" / "tokenizers" / "sherlock-512"


@given(st.binary(max_size=12) | st.text(max_size=8).map(str.encode))
def test_a_token_in_quotes_is_exact_and_can_be_seen(token):
    shown = quoted(token)
    assert unquoted(shown) == token
    assert shown.isprintable()


def test_an_escape_that_is_none_is_refused():
    for text in (r'"\q"', r'"\x1"', '"\\"', r'"\\\"'):
        with pytest.raises(TokenError, match="a backslash is followed by"):
            unquoted(text)


def test_every_id_has_a_line_from_which_it_can_be_made_again():
    tok = Tokenizer.load(SHERLOCK / "bpe.json")
    result = run("inspect", SHERLOCK)
    facts, _, lines = result.stdout.partition("\n\n")
    assert facts.splitlines() == [
        "512 ids: 256 bytes and 255 merges",
        "special tokens <|endoftext|>",
        "pattern gpt2-ascii",
        f"sha256 {tok.sha256}",
    ]
    head, *rows = lines.splitlines()
    assert head.split() == ["id", "bytes", "token", "made", "of", "in", "hex"]
    assert len(rows) == 512
    merges = []
    for token_id, row in enumerate(rows):
        found = re.fullmatch(r' *(\d+) +(\d+) +("(?:[^"\\]|\\.)*") +(.+?)  +([0-9a-f ]+)', row)
        token = tok.vocab[token_id]
        assert (int(found[1]), int(found[2])) == (token_id, len(token))
        assert unquoted(found[3]) == token == bytes.fromhex(found[5])
        if "+" in found[4] and token_id >= 256:
            merges.append(tuple(map(int, re.findall(r"(?:^| \+ )(\d+) ", found[4]))))
    assert tuple(merges) == tok.merges
    assert rows[-1].split()[-1] == "3e"
    assert " special " in rows[-1]


def test_the_longest_are_those_of_the_published_list():
    rows = run("inspect", SHERLOCK, "--longest", 20).stdout.splitlines()[-20:]
    assert [unquoted(re.search(r'".*?"', row)[0]).decode() for row in rows] == [
        " Holmes", " little", " which", " there", " would", " that", " with", " have", "olmes",
        " said", " from", " upon", " this", " your", " been", " very", " were", " some", "ittle",
        "ather",
    ]  # fmt: skip


def test_unused_ids_by_text_and_by_counts_are_the_same(tmp_path):
    text = pipeline.ROOT / "data" / "sample" / "tales.txt"
    tok = Tokenizer.load(SHERLOCK / "bpe.json")
    counts = ChunkCounts.count_files(text, pattern="gpt2-ascii", special_tokens=["<|endoftext|>"])
    counts.save(tmp_path / "counts")
    by_text = run("inspect", SHERLOCK, "--unused", text).stdout
    by_counts = run("inspect", SHERLOCK, "--unused", tmp_path / "counts").stdout
    assert by_text.replace(str(text), "T") == by_counts.replace(str(tmp_path / "counts"), "T")
    ids = [int(row.split()[0]) for row in by_text.partition("in hex\n")[2].splitlines()]
    assert ids == tok.unused_ids(counts)
    used = set(tok.encode(text.read_text(encoding="utf-8")))
    assert ids == [i for i in range(511) if i not in used]
    few = run("inspect", SHERLOCK, "--unused", text, "--longest", 3).stdout
    assert f"{len(ids)} ids, special tokens aside, never occur in {text}; the 3 longest" in few
    assert len(few.splitlines()) == 10


def test_the_tree_of_a_token():
    expected = """\
412 " Holmes"
├─ 337 " H"
│  ├─ 32 " "
│  └─ 72 "H"
└─ 392 "olmes"
   ├─ 342 "ol"
   │  ├─ 111 "o"
   │  └─ 108 "l"
   └─ 389 "mes"
      ├─ 109 "m"
      └─ 285 "es"
         ├─ 101 "e"
         └─ 115 "s"
"""
    for token in (" Holmes", "412", '" Holmes"', r'"\x20Holmes"'):
        assert run("inspect", SHERLOCK, "--token", token).stdout.endswith(f"\n\n{expected}")
    assert run("inspect", SHERLOCK, "--token", "<|endoftext|>").stdout.endswith(
        '\n\n511 "<|endoftext|>"\n'
    )
    assert run("inspect", SHERLOCK, "--token", r'"\xe2"').stdout.endswith('\n\n226 "\\xe2"\n')


def test_a_tree_of_any_depth_ends():
    merges = [(97, 97), *((number, 97) for number in range(256, 3000))]
    lines = list(tree(Tokenizer(merges), 3000))
    assert len(lines) == 2 * DEEPEST + 1
    assert sum(line.endswith("…") for line in lines) == 1


@given(st.data())
def test_the_leaves_of_a_tree_are_the_bytes_of_its_token(data):
    tok = Tokenizer.load(SHERLOCK / "bpe.json")
    token_id = data.draw(st.integers(256, 510))
    lines = list(tree(tok, token_id))
    leaves = bytes(int(line.split("─ ")[-1].split()[0]) for line in lines if int(line.split("─ ")[-1].split()[0]) < 256)  # fmt: skip
    if not any("as above" in line for line in lines):
        assert leaves == tok.vocab[token_id]


def test_a_token_that_is_none_is_shown_as_it_is_encoded():
    assert refused("inspect", SHERLOCK, "--token", "Holmesian") == (
        'Error: "Holmesian" is not a token: a text of it is 72 "H" 392 "olmes" 105 "i" 295 "an".'
    )
    assert "512 is not an id: 0 to 511 are. To find the token of a text of digits" in refused(
        "inspect", SHERLOCK, "--token", "512"
    )
    assert "'none' is neither a bpe.json" in refused("inspect", "none", code=2)
    with pytest.raises(TokenError, match='"" is not a token'):
        find_token(Tokenizer([]), "")


def test_counts_of_another_pattern_are_refused(tmp_path):
    ChunkCounts.count(["abc"], pattern="words").save(tmp_path)
    assert "the counts were made with pattern" in refused("inspect", SHERLOCK, "--unused", tmp_path)
