"""What holds for any text and any tokenizer, on generated ones."""

import itertools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bytepair import ChunkCounts, Tokenizer
from bytepair.corpora.documents import read_split
from bytepair.corpora.records import CLEAN, STRIP_RECORD, FileRecord
from bytepair.corpora.split import split_file
from bytepair.errors import CorpusError
from bytepair.files import write_bytes, write_record
from bytepair.params import CharacterRange, CharacterSplit
from bytepair.patterns import PRESETS
from bytepair.tokens import open_tokens, write_tokens

pytestmark = pytest.mark.filterwarnings("ignore:training stopped")

alphabets = st.sampled_from(["ab", "ab \n'", "aé“”½ \u0301👩\u200d", "the cat’s 12 "])
texts = st.one_of(
    st.text(max_size=60), alphabets.flatmap(lambda a: st.text(alphabet=a, max_size=80))
)
patterns = st.sampled_from([None, *PRESETS, r"\w+", r".", r"(?s).{1,3}"])
specials = st.lists(st.text(min_size=1, max_size=4), max_size=3, unique=True)


@st.composite
def tokenizers(draw):
    names = draw(specials)
    return Tokenizer.train(
        [draw(texts), draw(texts), "\0"],
        vocab_size=256 + len(names) + draw(st.integers(0, 30)),
        pattern=draw(patterns),
        special_tokens=names,
        min_count=1,
    )


@settings(max_examples=300)
@given(tokenizers(), texts)
def test_every_text_round_trips(tok, text):
    for allowed in ((), "all"):
        ids = tok.encode(text, allowed_special=allowed)
        assert tok.decode(ids, errors="strict") == text
        assert all(0 <= i < tok.vocab_size for i in ids)
        assert tok.encode_array(text, allowed_special=allowed).tolist() == ids
    assert not set(tok.encode(text)) & set(tok.special_tokens.values())


@settings(max_examples=200)
@given(tokenizers(), texts, st.sampled_from(["replace", "strict"]))
def test_streaming_equals_whole_decoding_at_every_cut(tok, text, errors):
    ids = tok.encode(text, allowed_special="all")
    for cut in range(len(ids) + 1):
        decoder = tok.stream_decoder(errors=errors)
        first = decoder.feed(ids[:cut])
        assert text.startswith(first)
        assert first + decoder.feed(ids[cut:]) + decoder.finish() == text
    decoder = tok.stream_decoder(errors=errors)
    assert "".join(map(decoder.feed, ids)) + decoder.finish() == text


@given(st.lists(st.integers(0, 255), max_size=12))
def test_streaming_any_bytes_equals_whole_decoding(ids):
    tok = Tokenizer([])
    for cut in range(len(ids) + 1):
        decoder = tok.stream_decoder()
        assert decoder.feed(ids[:cut]) + decoder.feed(ids[cut:]) + decoder.finish() == tok.decode(
            ids
        )


@settings(max_examples=200)
@given(st.lists(texts, min_size=1, max_size=6), patterns, st.randoms())
def test_training_ignores_the_order_of_documents_and_how_they_are_sharded(
    documents, pattern, random
):
    documents = [*documents, "abab abab"]
    whole = ChunkCounts.count(documents, pattern=pattern)
    random.shuffle(documents)
    at = random.randrange(len(documents) + 1)
    sums = dict(ChunkCounts.count(documents[:at], pattern=pattern).counts)
    for chunk, number in ChunkCounts.count(documents[at:], pattern=pattern).counts.items():
        sums[chunk] = sums.get(chunk, 0) + number
    sharded = ChunkCounts(sums, whole.pattern)
    assert sharded == whole
    first, second = (
        Tokenizer.from_counts(counts, vocab_size=280, min_count=1) for counts in (whole, sharded)
    )
    assert first.merges == second.merges


@settings(max_examples=200)
@given(st.lists(texts, min_size=1, max_size=4), patterns, texts, st.integers(0, 30))
def test_the_first_merges_alone_are_the_smaller_tokenizer(documents, pattern, text, number):
    counts = ChunkCounts.count([*documents, "abab"], pattern=pattern)
    large, small = (
        Tokenizer.from_counts(counts, vocab_size=256 + size, min_count=1) for size in (30, number)
    )
    assert small.merges == large.merges[:number]
    first = Tokenizer(large.merges[:number], pattern=pattern)
    assert first.encode(text) == small.encode(text)


@settings(max_examples=200)
@given(st.lists(texts, min_size=2, max_size=4), specials, st.data())
def test_no_text_injects_a_special_token_through_any_stage(documents, names, data):
    """Split, encode and store documents that may spell the separator and every special token."""
    names = names or ["<s>"]
    spelled = st.sampled_from([*names, "x"])
    documents = [
        document + data.draw(spelled) + document[:3] + data.draw(spelled) for document in documents
    ]
    text = "".join(documents)
    edges = [0, *itertools.accumulate(map(len, documents))]
    ranges = tuple(
        CharacterRange(name=str(number), start=start, end=end, split="train")
        for number, (start, end) in enumerate(itertools.pairwise(edges))
    )
    tok = Tokenizer([(97, 98)], pattern="gpt2", special_tokens=names)
    with tempfile.TemporaryDirectory() as folder:
        clean, splits = Path(folder, "clean"), Path(folder, "splits")
        write_bytes(clean / CLEAN, text.encode())
        write_record(clean / STRIP_RECORD, {"clean": FileRecord.of(text.encode()).as_json()})
        try:
            split_file(clean, splits, CharacterSplit(ranges=ranges, separator=names[0]))
        except CorpusError as error:
            assert "holds the separator" in str(error) or "the same text" in str(error)
            split_file(clean, splits, CharacterSplit(ranges=ranges, separator=""))
        read = read_split(splits / "train")
        assert [document.text for document in read.documents] == documents
        write_tokens(
            Path(folder, "tokens"),
            ((document.name, tok.encode(document.text)) for document in read.documents),
            vocab_size=tok.vocab_size,
            separator_id=tok.special_tokens[names[0]],
            tokenizer_sha256=tok.sha256,
            text_sha256=read.sha256,
            text_bytes=read.size,
            separator_bytes=len(read.separator.encode()),
        )
        tokens = open_tokens(Path(folder, "tokens"))
        found = int(np.isin(tokens.ids, list(tok.special_tokens.values())).sum())
        assert found == len(documents) - 1
        assert [tok.decode(ids) for _, ids in tokens.documents()] == documents
        del tokens
