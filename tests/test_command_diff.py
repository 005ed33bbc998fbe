"""`bytepair diff`: what it says of merges, tokens and words, found again the slow way."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

import pipeline
from bytepair import Tokenizer
from bytepair.diffing import compare_merges
from bytepair.word_cuts import compare_on_text
from commands import refused, run

TEXT = "low lower lowest newer newest wide wider widest naïve café\tlow-low  \n new low" * 2


@pytest.fixture(scope="module")
def pair():
    one = Tokenizer.train(TEXT, vocab_size=275, pattern="words", special_tokens=["<e>"])
    return one, Tokenizer.train(TEXT, vocab_size=285, pattern=None)


def slow_words(text):
    """Of each word its start and end in UTF-8."""
    data = text.encode()
    start = None
    for place, byte in enumerate([*data, 32]):
        space = byte in b" \t\n\r\v\f"
        if space and start is not None:
            yield start, place
        start = None if space else place if start is None else start


def slow_cut(tok, text, start, end):
    edges, place = set(), 0
    for token_id in tok.encode(text):
        place += len(tok.vocab[token_id])
        edges.add(place)
    return sorted(edge - start for edge in edges if start < edge < end)


@given(st.lists(st.sampled_from(["low", " ", "er", "est", "\n", "é", "ï", "\xa0", "<e>", "wide"]), max_size=30).map("".join))  # fmt: skip
def test_words_are_those_found_byte_by_byte(pair, text):
    found = compare_on_text(*pair, text, examples=1000)
    data, words = text.encode(), list(slow_words(text))
    cuts = {span: [slow_cut(tok, text, *span) for tok in pair] for span in words}
    times = Counter(data[a:b] for (a, b), (one, other) in cuts.items() if one != other)
    assert found.size == len(data)
    assert found.tokens == tuple(len(tok.encode(text)) for tok in pair)
    assert found.words == len(words)
    assert found.different == sum(times.values())
    assert [(e.word, e.times) for e in found.examples] == sorted(
        times.items(), key=lambda item: (-item[1], item[0])
    )
    for example in found.examples:
        first = next(
            (span, cut) for span, cut in cuts.items()
            if data[slice(*span)] == example.word and cut[0] != cut[1]
        )  # fmt: skip
        for pieces, inner in zip(example.pieces, first[1], strict=True):
            assert b"".join(pieces) == example.word
            assert inner == [sum(map(len, pieces[:n])) for n in range(1, len(pieces))]


def test_a_tokenizer_and_its_beginning():
    long = Tokenizer.train(TEXT, vocab_size=280, pattern="words")
    short = Tokenizer(long.merges[:10], pattern="words")
    found = compare_merges(short, long)
    left, right = (long.vocab[part] for part in long.merges[10])
    assert (found.common, found.same) == (10, 10)
    assert found.first == (None, (left, right))
    assert found.only == ([], long.vocab[266:])
    assert compare_merges(long, long).first == (None, None)
    assert compare_merges(long, long).same == 24


def test_merges_are_compared_by_bytes_not_by_ids():
    one = Tokenizer([(97, 98), (99, 100), (256, 257)])
    other = Tokenizer([(99, 100), (97, 98), (257, 256)])
    found = compare_merges(one, other)
    assert (found.common, found.same) == (3, 0)
    assert found.first == ((b"a", b"b"), (b"c", b"d"))
    assert found.only == ([], [])


def test_the_command(pair, tmp_path):
    for name, tok in zip("ab", pair, strict=True):
        tok.save(tmp_path / name)
    shown = run("diff", tmp_path / "a", tmp_path / "b", "--text", "-", stdin=TEXT.encode()).stdout
    merges, text = compare_merges(*pair), compare_on_text(*pair, TEXT)
    share = 100 * text.different / text.words
    for line in (
        f"A  275 ids, pattern words, sha256 {pair[0].sha256[:12]}",
        f"B  285 ids, pattern none, sha256 {pair[1].sha256[:12]}",
        "special tokens: A ['<e>'], B []",
        f"{merges.common} merges in common; the first {merges.same} are the same in both",
        f"A  {text.tokens[0]} tokens, {text.size / text.tokens[0]:.4f} bytes/token",
        f"{text.different} of {text.words} words cut differently ({share:.1f} %)",
    ):
        assert line in shown.splitlines(), shown
    assert f"rank {merges.same}: A " in shown
    words = shown.partition("cut differently")[2].splitlines()[1:]
    assert words[0] == r"2 ×  A c│af│\xc3│\xa9  B c│af│\xc3\xa9".replace("\\xc3\\xa9", "é")
    assert len(words) == len(text.examples) == 5
    few = run("diff", tmp_path / "a", tmp_path / "b", "--examples", "0").stdout
    assert f"{len(merges.only[1])} tokens only in B: …" in few


def test_the_same_tokenizer_and_an_empty_text(pair, tmp_path):
    pair[0].save(tmp_path / "bpe.json")
    shown = run("diff", tmp_path, tmp_path, "--text", "-", stdin=b"").stdout.splitlines()
    assert shown[2:] == [
        "A and B are the same tokenizer.",
        "18 merges in common; the first 18 are the same in both",
        "",
        "A  0 tokens",
        "B  0 tokens",
        "0 of 0 words cut differently (0.0 %)",
    ]


def test_what_is_wrong_is_named(tmp_path):
    sample = pipeline.ROOT / "data" / "tokenizers" / "sample-512"
    assert "'none' is neither a bpe.json" in refused("diff", sample, "none", code=2)
    assert "Missing argument 'B'" in refused("diff", sample, code=2)
    (tmp_path / "text").write_bytes(b"\xff")
    result = run("diff", sample, sample, "--text", tmp_path / "text", code=1)
    assert "text: not UTF-8" in result.stderr
