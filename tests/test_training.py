"""Training: the exact rule, against the reference, at the edges, and in reasonable time."""

import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bytepair import ChunkCounts, Tokenizer, bpe_file, reference
from bytepair.errors import TextError, TokenError, TokenizerFileError, TrainingError
from bytepair.training import count_merges, train


def merges_of(text, number, **options):
    return train({text.encode(): 1}, merges=number, **options).merges


def test_toy_trace():
    counts = ChunkCounts.count(["low low low lower lowest newer newest"], pattern="words")
    trace = train(counts.counts, merges=3)
    assert trace.merges == [(108, 111), (256, 119), (32, 257)]
    assert trace.pair_counts == [5, 5, 4]
    assert trace.lengths == [37, 32, 27, 23]
    assert trace.curve() == [
        {"merges": 0, "bytes_per_token": 1.0},
        {"merges": 1, "bytes_per_token": 1.15625},
        {"merges": 2, "bytes_per_token": 1.37037},
        {"merges": 3, "bytes_per_token": 1.608696},
    ]


def test_a_curve_keeps_its_ends_when_thinned():
    counts = ChunkCounts.count(["".join(map(chr, range(300, 900))) * 2])
    trace = train(counts.counts, merges=700)
    points = [point["merges"] for point in trace.curve(points=10)]
    assert points[0] == 0
    assert points[-1] == len(trace.merges) > 500
    assert len(points) <= 11


CHAT_TOY = "the cat and the can and the cat"


def test_chat_toy():
    specials = ["<pad>", "<bos>", "<eos>", "<user>", "<assistant>"]
    tok = Tokenizer.train(CHAT_TOY, vocab_size=270, pattern="words", special_tokens=specials)
    assert tok.merges == (
        (32, 99), (97, 110), (104, 101), (116, 258), (32, 257), (32, 259), (97, 116), (256, 262), (260, 100),
    )  # fmt: skip
    assert tok.encode("the cat") == [259, 263]
    assert [tok.decode([i]) for i in (259, 263)] == ["the", " cat"]
    small = Tokenizer.train(CHAT_TOY, vocab_size=265, pattern="words", special_tokens=specials)
    assert len(small.merges) == 4
    assert small.encode("the cat") == [259, 256, 97, 116]


@pytest.mark.parametrize(
    ("text", "merges"),
    [
        ("dcbadcba", [(98, 97), (99, 256), (100, 257), (258, 258)]),
        ("bcbcabab", [(97, 98), (98, 99), (256, 256), (257, 257)]),
    ],
)
def test_c13_ties_go_to_the_smallest_pair(text, merges):
    assert merges_of(text, 4, min_count=1) == merges
    at_least_two = 3 if text == "dcbadcba" else 2
    assert merges_of(text, 4) == merges[:at_least_two]


def test_c13_the_same_bytes_under_any_hash_seed():
    program = """
from bytepair import Tokenizer
for text in ("dcbadcba", "bcbcabab"):
    tok = Tokenizer.train([text, "é ü"], vocab_size=263, min_count=1, pattern=None,
                          special_tokens=["<e>", "<d>", "<c>", "<b>", "<a>"])
    print(tok.sha256, tok.special_tokens)
"""
    outputs = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            check=True,
            capture_output=True,
        ).stdout
        for seed in ("0", "1", "12345")
    }
    assert len(outputs) == 1
    assert b"{'<e>': 258, '<d>': 259, '<c>': 260, '<b>': 261, '<a>': 262}" in outputs.pop()


def test_c15_windows_in_runs_overlap():
    trace = train({b"aaaabcbcbc": 1}, merges=3)
    assert trace.merges == [(97, 97), (98, 99), (257, 257)]
    assert trace.pair_counts == [3, 3, 2]
    assert merges_of("a" * 11, 3, min_count=1) == [(97, 97), (256, 256), (256, 97)]
    # three windows are counted, two are merged
    assert train({b"aaaa": 1}, merges=1).pair_counts == [3]
    tok = Tokenizer([(97, 97)])
    assert tok.encode("aaaa") == [256, 256]
    assert tok.encode("aaa") == [256, 97]


def test_c16_a_corpus_that_is_too_small_stops_early_with_a_warning():
    with pytest.warns(UserWarning, match="stopped at 257 ids of 300: no pair .* occurs 2 times"):
        tok = Tokenizer.train("abab", vocab_size=300)
    assert (tok.vocab_size, len(tok.vocab)) == (257, 257)
    with pytest.warns(UserWarning, match="stopped at 258 ids"):
        assert Tokenizer.train("abab", vocab_size=300, min_count=1).vocab_size == 258
    with pytest.warns(UserWarning, match="stopped at 256 ids"):
        assert Tokenizer.train("a", vocab_size=300).vocab_size == 256


@pytest.mark.parametrize("texts", ["", [], [""], ["", ""]])
def test_c16_an_empty_corpus_is_an_error(texts):
    with pytest.raises(TrainingError, match="empty"):
        Tokenizer.train(texts, vocab_size=300)


def test_c16_only_special_tokens_is_an_empty_corpus():
    with pytest.raises(TrainingError, match="empty"):
        Tokenizer.train("<s><s>", vocab_size=300, special_tokens=["<s>"])


@pytest.mark.parametrize("vocab_size", [255, 0, -1, 256.0, "512", True])
def test_c16_impossible_sizes_are_refused_before_the_corpus_is_read(vocab_size):
    def never_read():
        raise AssertionError("the corpus was read")
        yield

    with pytest.raises(TrainingError, match="vocab_size"):
        Tokenizer.train(never_read(), vocab_size=vocab_size)


def test_c16_size_256_has_no_merges():
    assert Tokenizer.train("abab", vocab_size=256).merges == ()


def test_c17_vocab_size_counts_the_special_tokens():
    text = "".join(str(number * number) for number in range(6000))
    specials = ["<pad>", "<bos>", "<eos>", "<user>", "<assistant>"]
    tok = Tokenizer.train(text, vocab_size=1024, special_tokens=specials)
    assert len(tok.vocab) == tok.vocab_size == 1024
    assert len(tok.merges) == 763
    assert list(tok.special_tokens.values()) == [1019, 1020, 1021, 1022, 1023]
    assert count_merges(1024, specials) == 763
    with pytest.raises(TrainingError, match="at least 261"):
        Tokenizer.train("abab", vocab_size=260, special_tokens=specials)
    with pytest.raises(TokenError, match="twice"):
        Tokenizer.train("abab", vocab_size=300, special_tokens=["<s>", "<s>"])


def test_c18_special_text_is_cut_out_and_never_trained_on():
    with pytest.warns(UserWarning, match="stopped"):
        tok = Tokenizer.train("ab<|end|>ab<|end|>ab", vocab_size=260, special_tokens=["<|end|>"])
    assert tok.merges == ((97, 98),)


def test_c19_one_huge_run():
    merges = merges_of("a" * 1_000_000, 40, min_count=1)
    assert merges[0] == (97, 97)
    assert merges[1:19] == [(n, n) for n in range(256, 274)]
    assert merges[19:] == [
        (264, 261), (269, 275), (271, 276), (272, 277), (273, 278), (274, 279),
    ]  # fmt: skip
    assert max(map(len, Tokenizer(merges).vocab)) == 1_000_000


def seconds(action):
    start = time.process_time()
    action()
    return time.process_time() - start


@pytest.mark.parametrize(
    "text",
    [
        "a" * 400_000,
        "the cat sat on the mat. " * 16_000,
        "".join(map(chr, range(97, 117))) * 20_000,
    ],
    ids=["run", "prose", "alphabet"],
)
def test_c19_time_grows_with_the_length_of_a_chunk_not_its_square(text):
    """Four times the text may take eight times as long; squared it would be sixteen."""
    quarter = text[: len(text) // 4]
    small = min(seconds(lambda: merges_of(quarter, 40)) for _ in range(2))
    large = seconds(lambda: merges_of(text, 40))
    assert large < 8 * small + 0.5


def test_c29_lone_surrogates_in_training_text():
    with pytest.raises(TextError, match="position 1"):
        Tokenizer.train(["fine", "a\ud83db"], vocab_size=300)


def test_min_count_below_one_is_refused():
    for wrong in (1.5, "2", True, float("nan")):
        with pytest.raises(TrainingError, match="whole number from 1 on"):
            Tokenizer.train("abab", vocab_size=300, min_count=wrong)
    with pytest.raises(TrainingError, match="min_count is 0"):
        Tokenizer.train("abab", vocab_size=300, min_count=0)


def test_counts_are_64_bit():
    trace = train({b"ab": 1 << 40, b"bc": (1 << 40) + 1}, merges=2)
    assert trace.merges == [(98, 99), (97, 98)]
    assert trace.pair_counts == [(1 << 40) + 1, 1 << 40]


# Small alphabets make ties, runs and overlaps the rule instead of the exception.
alphabets = st.sampled_from(["a", "ab", "abc", "aab ", "abcdefgh", "aé", "\0\xff"])


@st.composite
def chunk_counts(draw):
    alphabet = draw(alphabets)
    chunks = st.text(alphabet=alphabet, min_size=1, max_size=draw(st.sampled_from([4, 12, 40])))
    return {
        chunk.encode(): draw(st.sampled_from([1, 1, 2, 3, 10]))
        for chunk in draw(st.lists(chunks, min_size=1, max_size=8))
    }


@settings(max_examples=2000, deadline=None)
@given(chunk_counts(), st.integers(0, 40), st.integers(1, 4))
def test_training_equals_the_reference(counts, number, min_count):
    trace = train(counts, merges=number, min_count=min_count)
    assert trace.merges == reference.train(counts, merges=number, min_count=min_count)
    # what it trained can be made a tokenizer, and the lengths are those of encoding
    tok = Tokenizer(trace.merges)
    encoded = sum(len(tok.encode(chunk.decode())) * n for chunk, n in counts.items())
    assert trace.lengths[-1] == encoded


@settings(deadline=None)
@given(chunk_counts(), st.randoms())
def test_training_ignores_order(counts, random):
    items = list(counts.items())
    random.shuffle(items)
    assert train(dict(items), merges=20) == train(counts, merges=20)


@settings(max_examples=30, deadline=None)
@given(st.text(alphabet="ab", min_size=500, max_size=1500), st.integers(1, 3))
def test_one_long_chunk_equals_the_reference(text, min_count):
    counts = {text.encode(): 1}
    expected = reference.train(counts, merges=60, min_count=min_count)
    assert train(counts, merges=60, min_count=min_count).merges == expected


def test_a_token_too_large_for_the_file_is_refused(monkeypatch):
    monkeypatch.setattr(bpe_file, "MAX_TOKEN_BYTES", 63)
    with pytest.raises(TokenizerFileError, match="training made a token of 64 bytes"):
        Tokenizer.train("a" * 128, vocab_size=262)
    assert Tokenizer.train("a" * 128, vocab_size=261).vocab[-1] == b"a" * 32
