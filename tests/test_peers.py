"""Independent implementations agree: rustbpe trains the same merges, tiktoken finds the same ids."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bytepair import Tokenizer
from bytepair.patterns import PRESETS
from test_kernel import texts

rustbpe = pytest.importorskip("rustbpe", reason="rustbpe is not installed: see the dev extra")
tiktoken = pytest.importorskip("tiktoken", reason="tiktoken is not installed: see the dev extra")

pytestmark = pytest.mark.filterwarnings("ignore:training stopped")

plain = st.text(alphabet="abcde ABé中.,'1\n", max_size=200)


def rust_vocabulary(documents, merges, pattern):
    trainer = rustbpe.Tokenizer()
    trainer.train_from_iterator(iter(documents), 256 + merges, pattern=pattern)
    ranks = trainer.get_mergeable_ranks()
    assert [rank for _, rank in ranks] == list(range(len(ranks)))
    return [bytes(token) for token, _ in ranks]


def as_tiktoken(tok):
    return tiktoken.Encoding(
        "ours",
        pat_str=tok.pattern.regex,
        mergeable_ranks={token: i for i, token in enumerate(tok.vocab)},
        special_tokens={},
    )


@settings(max_examples=600)
@given(st.lists(plain, max_size=4), st.integers(0, 60))
def test_rustbpe_trains_the_same_merges(documents, merges):
    tok = Tokenizer.train(
        [*documents, "ab"], vocab_size=256 + merges, pattern=r"[ \n]?[^ \n]+|[ \n]+", min_count=1
    )
    assert tok.vocab == rust_vocabulary([*documents, "ab"], merges, tok.pattern.regex)


@pytest.mark.parametrize("corpus", ["pg1661.txt", "tinyshakespeare.txt"])
def test_rustbpe_trains_the_same_merges_on_the_books(corpus, corpus_cache):
    text = corpus_cache(corpus).read_bytes().decode()
    pattern = PRESETS["gpt2-ascii"].regex  # of classes that are the same everywhere
    tok = Tokenizer.train(text, vocab_size=8192, pattern="gpt2-ascii", min_count=1)
    assert tok.vocab == rust_vocabulary([text], 8192 - 256, pattern)


@settings(max_examples=300)
@given(st.sampled_from(["gpt2-ascii", "gpt2", r"\S+|\s+"]), plain, texts, st.integers(0, 60))
def test_tiktoken_finds_the_same_ids(pattern, corpus, text, merges):
    tok = Tokenizer.train([corpus, "aa"], vocab_size=256 + merges, pattern=pattern, min_count=1)
    theirs = as_tiktoken(tok)
    assert theirs.encode_ordinary(text) == tok.encode(text)


@pytest.mark.parametrize("corpus", ["pg1661.txt", "tinyshakespeare.txt"])
@pytest.mark.parametrize("pattern", PRESETS)
def test_tiktoken_finds_the_same_ids_in_the_books(corpus, pattern, corpus_cache):
    text = corpus_cache(corpus).read_bytes().decode()
    tok = Tokenizer.train(text, vocab_size=8192, pattern=pattern)
    theirs = as_tiktoken(tok)
    for piece in (text, text[::-1], text.upper()):
        assert tok.encode_array(piece).tolist() == theirs.encode_ordinary(piece)
