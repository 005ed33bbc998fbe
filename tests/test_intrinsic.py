import math
import random
import re
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytepair import Tokenizer
from bytepair.intrinsic import (
    count_words,
    fertility,
    intrinsic,
    merge_uses,
    renyi_efficiency,
    seen_fewer_than,
    share_used,
    tokens_by_merges,
)
from bytepair.layout import TokenizerPaths
from bytepair.tokens import open_tokens

TEXT = "low low\tlow lower  lowest\n\nnewer newest — “le déjà vu”\r\nlow\u00a0lower"


def count_ids(ids, size):
    return np.bincount(np.array(ids, np.int64), minlength=size)


# Words


def test_words_are_what_lies_between_ascii_white_space():
    for pattern in (None, "words", "gpt2", "o200k"):
        tok = Tokenizer.train(TEXT, vocab_size=270, pattern=pattern, min_count=1)
        ids = tok.encode_array(TEXT)
        assert count_words([ids], tok.vocab) == (len(TEXT.encode().split()), len(ids))


def test_a_word_ends_with_its_document():
    vocabulary = [b"a", b" ", b"b c d", b" x "]
    ids = [np.array(i, np.uint16) for i in ([0], [0, 0], [], [2, 2], [3, 3], [1], [1, 0])]
    assert [count_words([document], vocabulary)[0] for document in ids] == [1, 1, 0, 5, 2, 0, 1]
    assert count_words(ids, vocabulary) == (10, 10)


@given(
    st.lists(
        st.lists(st.sampled_from([b"a", b" ", b"a b", b"\n\na", b"b\x0b", b"\x1c"])), max_size=5
    )
)
def test_words_of_any_tokens(documents):
    vocabulary = [b"a", b" ", b"a b", b"\n\na", b"b\x0b", b"\x1c"]
    ids = [np.array([vocabulary.index(t) for t in document], np.uint16) for document in documents]
    words = sum(len(re.findall(rb"[^ \t\n\r\x0b\x0c]+", b"".join(d))) for d in documents)
    assert count_words(ids, vocabulary) == (words, sum(map(len, documents)))


def test_fertility():
    assert fertility(9, 6) == 1.5
    assert fertility(9, 0) is None


# Rényi efficiency


def test_renyi_efficiency_by_hand():
    # p = 1/2, 1/4, 1/4 with alpha 2: the sum of squares is 3/8, of a vocabulary of 8.
    counts = np.array([4, 2, 2, 0, 0, 0, 0, 0])
    assert renyi_efficiency(counts, alpha=2) == round(math.log(8 / 3) / math.log(8), 6)


def test_renyi_efficiency_with_exact_powers():
    # With alpha 2.5 and squares for probabilities, every power is a fraction.
    shares = [Fraction(n * n, 30 * 30) for n in (10, 20, 20)]
    assert sum(shares) == 1
    moment = sum(Fraction(n, 30) ** 5 for n in (10, 20, 20))
    expected = math.log(moment) / -1.5 / math.log(3)
    counts = np.array([int(900 * share) for share in shares])
    assert renyi_efficiency(counts) == round(expected, 6)


def test_renyi_efficiency_at_its_ends():
    assert renyi_efficiency(np.full(300, 7)) == 1.0
    only = np.zeros(300, np.int64)
    only[9] = 5
    assert str(renyi_efficiency(only)) == "0.0"
    assert renyi_efficiency(np.zeros(300, np.int64)) is None
    assert renyi_efficiency(np.array([3])) is None


@given(st.lists(st.integers(0, 10**12), min_size=2, max_size=50).filter(any))
def test_renyi_efficiency_is_a_share_and_knows_no_order(counts):
    found = renyi_efficiency(np.array(counts))
    assert 0 <= found <= 1
    assert renyi_efficiency(np.array(sorted(counts))) == found


# The vocabulary


def test_use_of_the_vocabulary():
    counts = np.array([0, 0, 1, 4, 5, 19, 20, 500])
    assert share_used(counts) == 0.75
    assert [seen_fewer_than(counts, times) for times in (1, 5, 20, 100)] == [2, 4, 6, 7]
    assert share_used(np.array([], np.int64)) is None


def test_all_of_them():
    vocabulary = [b"a", b" ", b"b", b"<sep>"]
    documents = [np.array([0, 1, 0], np.uint16), np.array([0, 0], np.uint16)]
    counts = np.array([4, 1, 0, 1])
    assert intrinsic(counts, documents, vocabulary) == {
        "words": 3,
        "fertility": 1.666667,
        "renyi_efficiency": renyi_efficiency(counts),
        "share_used": 0.75,
        "seen_fewer_than": [
            {"times": 1, "tokens": 1},
            {"times": 5, "tokens": 4},
            {"times": 20, "tokens": 4},
            {"times": 100, "tokens": 4},
        ],
    }


# Fewer merges


@pytest.mark.parametrize("seed", range(40))
def test_fewer_merges_leave_as_many_tokens_as_a_tokenizer_of_those_merges(seed):
    random_ = random.Random(seed)
    pattern = random_.choice([None, "words", "gpt2-ascii", "cl100k"])
    letters = random_.choice(["ab", "abc ", "aé \n"])
    train, other = ("".join(random_.choices(letters, k=900)) for _ in range(2))
    tok = Tokenizer.train(train, vocab_size=256 + 24, pattern=pattern, min_count=1)
    for text in (train, other):
        counts = count_ids(tok.encode(text), tok.vocab_size).tolist()
        lengths = tokens_by_merges(counts, tok.merges)
        assert lengths == [
            len(Tokenizer(tok.merges[:merges], pattern=pattern).encode(text))
            for merges in range(len(tok.merges) + 1)
        ]
        uses = merge_uses(counts, tok.merges)
        assert [a - b for a, b in pairwise(lengths)] == uses


def test_special_tokens_stay_what_they_are():
    assert tokens_by_merges([*[0] * 97, 2, *[0] * 158, 3, 7], [(97, 97)]) == [15, 12]


def test_of_the_pipeline(project):
    """The training curve is what training saw; ours is found from the ids alone."""
    paths = TokenizerPaths(project, "sherlock-512")
    tok = Tokenizer.load(paths.bpe)
    tokens = open_tokens(paths.tokens / "train")
    counts = count_ids(tokens.ids, tok.vocab_size).tolist()
    lengths = tokens_by_merges(counts, tok.merges)
    assert (lengths[0], lengths[-1]) == (468_848 - 9 * 13 + 9, 217_572)
    assert merge_uses(counts, tok.merges)[:3] == [10_557, 9_389, 8_226]
