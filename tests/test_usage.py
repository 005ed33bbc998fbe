"""Ids that a text never uses, from its chunk counts."""

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytepair import ChunkCounts, Tokenizer
from bytepair.encoding import PythonEncoder
from bytepair.errors import ArtifactError
from bytepair.files import read_json
from bytepair.usage import count_ids


@pytest.mark.filterwarnings("ignore:training stopped")
@pytest.mark.parametrize("pattern", ["words", "o200k", None, r"[^,]+"])
@given(texts=st.lists(st.text(alphabet="abc é,<|e>", max_size=40), max_size=5))
def test_ids_are_counted_as_encoding_the_text_would(pattern, texts):
    options = {"pattern": pattern, "special_tokens": ["<|e|>"]}
    tok = Tokenizer.train([*texts, "abc, abc"], vocab_size=270, **options)
    counts = ChunkCounts.count(texts, **options)
    expected = Counter()
    for text in texts:
        expected.update(tok.encode(text, allowed_special="all"))
    learned = range(256 + len(tok.merges))
    assert count_ids(tok.merges, counts.counts).tolist() == [expected[i] for i in learned]
    assert tok.unused_ids(counts) == [i for i in learned if not expected[i]]


def test_counts_beyond_what_a_float_holds_are_exact():
    assert count_ids([(97, 98)], {b"ab": 2**53 + 1, b"b": 1, b"abb": 2})[[97, 98, 256]].tolist() == [
        0, 3, 2**53 + 3,
    ]  # fmt: skip


def test_without_the_kernel_they_are_the_same(monkeypatch):
    counts = ChunkCounts.count("low low lower lowest", pattern="words")
    tok = Tokenizer.train("low low lower lowest", vocab_size=260, pattern="words")
    with_kernel = count_ids(tok.merges, counts.counts)
    monkeypatch.setattr("bytepair.usage.make_encoder", PythonEncoder)
    assert np.array_equal(count_ids(tok.merges, counts.counts), with_kernel)


def test_counts_made_in_another_way_are_refused():
    counts = ChunkCounts.count(["abc"], pattern="words")
    with pytest.raises(ArtifactError, match="the counts were made with pattern"):
        Tokenizer([]).unused_ids(counts)


def test_as_many_as_the_pipeline_finds_on_sherlock(project):
    folder = project / "data" / "tokenizers" / "sherlock-512"
    tok = Tokenizer.load(folder / "bpe.json")
    unused = tok.unused_ids(ChunkCounts.load(folder / "counts"))
    assert unused == read_json(folder / "report" / "measures.json")["unused_on_train"]
    assert len(unused) == 170
    assert max(unused) < 256
