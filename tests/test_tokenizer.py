"""The public face: encoding, decoding, special tokens, streaming, sharing."""

import concurrent.futures
import copy
import pickle
import random
import time
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bytepair
from bytepair import Pattern, Tokenizer, reference
from bytepair.encoding import MAX_CACHED_CHUNKS, MAX_CACHED_LENGTH, PythonEncoder
from bytepair.errors import PatternError, TextError, TokenError, TokenizerFileError
from bytepair.merging import LONG_CHUNK, merge_chunk

PROSE = (
    "The kettle sang. “Tea?” said the café owner, who’d kept it warm since 1892. "
    "It cost £3, the kettle did; it didn't cost the owner's pride. Naïve? 你好, café!\n\n"
) * 3


@pytest.fixture(scope="module")
def tok():
    return Tokenizer.train(
        PROSE, vocab_size=330, pattern="gpt2-ascii", special_tokens=["<|end|>", "<|end|>x", "[PAD]"]
    )


def test_public_names():
    assert bytepair.__all__ == [
        "BytepairError", "ChunkCounts", "Pattern", "StreamDecoder", "Tokenizer", "__version__",
    ]  # fmt: skip
    assert all(hasattr(bytepair, name) for name in bytepair.__all__)
    assert set(bytepair.__all__) <= set(dir(bytepair))
    with pytest.raises(AttributeError, match="nonsense"):
        bytepair.nonsense  # noqa: B018


def test_order_matters_so_sets_and_generators_of_specials_are_refused():
    for specials in ({"<a>", "<b>"}, (text for text in ["<a>"])):
        with pytest.raises(TokenError, match="must be a list"):
            Tokenizer([], special_tokens=specials)


def test_choices_of_specials_may_be_any_iterable():
    tok = Tokenizer([], special_tokens=["<e>"])
    assert tok.encode("<e>", allowed_special=(text for text in ["<e>"])) == [256]
    with pytest.raises(TokenError):
        tok.encode("<e>", disallowed_special=(text for text in ["<e>"]))


def test_the_longest_special_decides_what_is_disallowed():
    tok = Tokenizer([], special_tokens=["<|a|>", "<|a|>x"])
    allowed = {"<|a|>x"}
    assert tok.encode("<|a|>x", allowed_special=allowed, disallowed_special="all") == [257]
    with pytest.raises(TokenError, match="position 6"):
        tok.encode("<|a|>x<|a|>y", allowed_special=allowed, disallowed_special="all")


def test_a_subclass_stays_one_and_a_batch_is_no_str():
    class Mine(Tokenizer):
        pass

    assert type(copy.deepcopy(Mine([]))) is Mine
    with pytest.raises(TypeError, match="several texts"):
        Tokenizer([]).encode_batch("abc")


def test_public_methods():
    public = {name for name in dir(Tokenizer) if not name.startswith("_")}
    assert public == {
        "train", "from_counts", "trace_from_counts", "load", "save", "sha256", "vocab_size",
        "vocab", "merges", "special_tokens", "pattern", "train_sha256", "encode", "encode_batch",
        "encode_array", "encode_batch_array", "train_files", "decode_bytes", "decode",
        "stream_decoder", "encode_ordinary", "encode_with_offsets", "decode_with_offsets",
        "bos_id", "eos_id", "pad_id", "unk_id", "unused_ids",
    }  # fmt: skip


ROUND_TRIPS = [
    "",
    "\0",
    "\u0301",
    "👩\u200d👧",
    "<|end|>",
    PROSE,
    " " * 500,
    "\r\n\r\n",
    "a\0b",
    "é",
    "e\u0301",
]


@pytest.mark.parametrize("text", ROUND_TRIPS)
def test_every_text_round_trips(tok, text):
    ids = tok.encode(text)
    assert tok.decode(ids, errors="strict") == text
    assert tok.decode_bytes(ids) == text.encode()
    assert not set(ids) & set(tok.special_tokens.values())


def test_c11_nul_is_a_byte_like_any_other():
    assert Tokenizer([]).encode("a\0b") == [97, 0, 98]
    assert Tokenizer([]).decode([97, 0, 98]) == "a\0b"
    trained = Tokenizer.train("\0a\0a\0a", vocab_size=257)
    assert trained.merges == ((0, 97),)


def test_c20_patterns_with_groups_and_gaps_round_trip():
    for pattern, text in ((r"( ?\w+)|(\s+)", "ab  cd"), (r"\w*", "ab c"), (r"\w+", "Hi, you!")):
        tokenizer = Tokenizer.train([text, text], vocab_size=257, pattern=pattern)
        assert tokenizer.decode(tokenizer.encode(text)) == text
    assert Tokenizer([], pattern=r"\w+").pattern.regex == r"\w+"


def test_c18_special_text_is_plain_bytes_without_permission(tok):
    end = tok.special_tokens["<|end|>"]
    assert end not in tok.encode("<|end|>")
    assert tok.encode("<|end|>", allowed_special={"<|end|>"}) == [end]
    assert tok.encode("a<|end|>b", allowed_special="all") == [97, end, 98]
    plain = Tokenizer([], special_tokens=["<|end|>"])
    assert plain.encode("<|end|>") == list(b"<|end|>")
    assert plain.decode(plain.encode("<|end|>")) == "<|end|>"


def test_specials_are_cut_out_longest_first(tok):
    ids = tok.special_tokens
    assert tok.encode("<|end|>x", allowed_special="all") == [ids["<|end|>x"]]
    assert tok.encode("<|end|>x", allowed_special={"<|end|>"}) == [ids["<|end|>"], 120]


def test_disallowed_specials_raise(tok):
    with pytest.raises(TokenError, match=r"'\[PAD\]' at position 2: name it in allowed_special"):
        tok.encode("a [PAD]", disallowed_special="all")
    with pytest.raises(TokenError, match="position 0"):
        tok.encode("<|end|> [PAD]", allowed_special={"[PAD]"}, disallowed_special="all")
    assert tok.encode("[PAD]", allowed_special="all", disallowed_special="all") == [
        tok.special_tokens["[PAD]"]
    ]
    assert tok.encode("<|end|>", disallowed_special={"[PAD]"}) == tok.encode("<|end|>")


@pytest.mark.parametrize("choice", [{"<|no|>"}, ["<|no|>"], "some"])
def test_unknown_specials_are_named(tok, choice):
    with pytest.raises(TokenError, match=r"<\|no\|>|'some'"):
        tok.encode("text", allowed_special=choice)


def test_c25_specials_with_metacharacters():
    specials = ["<|a.b|>", "[PAD]", "(((", "$", r"\d"]
    tokenizer = Tokenizer([], special_tokens=specials)
    assert tokenizer.encode("<|aXb|>", allowed_special="all") == list(b"<|aXb|>")
    assert tokenizer.encode("P", allowed_special="all") == [80]
    assert tokenizer.encode("5", allowed_special="all") == [53]
    for number, special in enumerate(specials):
        assert tokenizer.encode(special, allowed_special="all") == [256 + number]
    with pytest.raises(TokenError, match="empty"):
        Tokenizer([], special_tokens=[""])
    assert Tokenizer([], special_tokens=[" "]).encode("a b", allowed_special="all") == [97, 256, 98]


def test_c21_no_unicode_normalisation():
    plain = Tokenizer([], pattern="gpt2")
    assert plain.encode("\u00e9") == [195, 169]
    assert plain.encode("e\u0301") == [101, 204, 129]


def test_c26_the_array_type_follows_the_vocabulary():
    assert Tokenizer([]).encode_array("é").dtype == np.uint16
    pairs = [(a, b) for a in range(256) for b in range(256)][: 65536 - 256]
    full = Tokenizer(pairs)
    assert full.vocab_size == 65536
    array = full.encode_array(bytes(pairs[0]).decode())
    assert array.dtype == np.uint16
    over = Tokenizer(pairs, special_tokens=["<s>"])
    array = over.encode_array("<s>a", allowed_special="all")
    assert array.dtype == np.uint32
    assert array.tolist() == [65536, 97]


def test_c27_empty_text(tok):
    assert tok.encode("") == []
    assert tok.decode([]) == ""
    assert tok.encode_array("").shape == (0,)
    assert tok.encode_batch([]) == []
    assert tok.encode_batch([""]) == [[]]


@pytest.mark.parametrize(("text", "position"), [("a\ud83db", 1), ("\ud83d\udc4d", 0)])
def test_c29_lone_surrogates_are_refused_everywhere(tok, text, position):
    for call in (
        tok.encode,
        tok.encode_array,
        lambda text: tok.encode_batch(["a", text]),
        lambda text: tok.encode(text, allowed_special="all"),
        lambda text: Tokenizer.train(text, vocab_size=300),
    ):
        with pytest.raises(TextError, match=f"position {position}:"):
            call(text)


@pytest.mark.parametrize(
    ("ids", "text"),
    [
        ([128], "\ufffd"),
        ([240, 159, 145], "\ufffd"),
        ([226, 130, 65], "\ufffdA"),
        ([192, 128], "\ufffd\ufffd"),
        ([237, 160, 189], "\ufffd\ufffd\ufffd"),
        ([240, 159, 145, 169], "👩"),
    ],
)
def test_c31_bytes_that_are_not_utf8(ids, text):
    plain = Tokenizer([])
    assert plain.decode(ids) == text
    assert plain.decode_bytes(ids) == bytes(ids)
    decoder = plain.stream_decoder()
    assert "".join(map(decoder.feed, ids)) + decoder.finish() == text
    if "\ufffd" in text:
        with pytest.raises(UnicodeDecodeError):
            plain.decode(ids, errors="strict")


def test_c31_a_stream_gives_out_whole_characters_only():
    decoder = Tokenizer([]).stream_decoder()
    assert [decoder.feed(i) for i in (240, 159, 145, 169)] == ["", "", "", "👩"]
    assert decoder.finish() == ""
    assert decoder.feed([226, 130]) == ""
    assert decoder.finish() == "\ufffd"
    assert decoder.feed(65) == "A"
    strict = Tokenizer([]).stream_decoder(errors="strict")
    strict.feed(226)
    with pytest.raises(UnicodeDecodeError):
        strict.finish()


def test_curly_quotes_by_the_byte():
    plain = Tokenizer([])
    ids = plain.encode("“Holmes”")
    assert len(ids) == 12
    assert plain.decode(ids[:2]) == "\ufffd"


@pytest.mark.parametrize(
    "bad", [-1, 10**9, True, False, 1.0, Fraction(1), "1", None, np.float32(1), np.int64(-1)]
)
def test_what_is_not_an_id_is_an_error_that_shows_it(tok, bad):
    shown = repr(bad) if not isinstance(bad, str) else "'1'"
    for ids in ([bad], [97, bad], iter([bad])):
        with pytest.raises(TokenError) as error:
            tok.decode(ids)
        assert shown in str(error.value)
    with pytest.raises(TokenError):
        tok.stream_decoder().feed([bad])


def test_ids_may_be_numpys(tok):
    ids = tok.encode_array(PROSE)
    assert tok.decode(ids) == PROSE
    assert tok.decode(list(ids)) == PROSE
    assert tok.stream_decoder().feed(ids[0]) == tok.decode([int(ids[0])])
    with pytest.raises(TokenError):
        tok.decode(np.array([1.0]))
    with pytest.raises(TokenError):
        tok.decode(np.array([True]))


def test_specials_in_decoding(tok):
    end = tok.special_tokens["<|end|>"]
    assert tok.decode([97, end, 98]) == "a<|end|>b"
    assert tok.decode([97, end, 98], skip_special_tokens=True) == "ab"
    assert tok.decode_bytes([226, end, 130, 172], skip_special_tokens=True) == "€".encode()
    assert tok.stream_decoder(skip_special_tokens=True).feed([97, end]) == "a"


def test_views_cannot_change_the_tokenizer(tok):
    tok.vocab.clear()
    tok.special_tokens.clear()
    assert tok.vocab_size == len(tok.vocab) == 330
    assert len(tok.special_tokens) == 3


def test_pickle_and_equality(tok):
    tok.encode(PROSE)
    copy = pickle.loads(pickle.dumps(tok))
    assert copy == tok
    assert hash(copy) == hash(tok)
    assert copy.encode(PROSE) == tok.encode(PROSE)
    assert copy.special_tokens == tok.special_tokens
    assert len(pickle.dumps(tok)) < 5000  # the cache stays behind
    assert tok != Tokenizer([])
    assert tok != "tok"
    assert repr(tok).startswith("<Tokenizer of 330 ids, pattern \"'(?:[sdmt]")


def test_threads_share_a_tokenizer(tok):
    words = [f"word{i} " * 20 + "café" for i in range(200)]
    expected = [tok.encode(text) for text in words]
    fresh = pickle.loads(pickle.dumps(tok))
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: [fresh.encode(text) for text in words], range(16)):
            assert found == expected


def test_the_chunk_cache_is_bounded():
    """That of the Python core; the kernel's is tested in test_kernel.py."""
    tokenizer = PythonEncoder([(97, 98)], Pattern(r"\d+|\D"))
    tokenizer.encode(" ".join(map(str, range(MAX_CACHED_CHUNKS + 1000))))
    assert len(tokenizer._cache) <= MAX_CACHED_CHUNKS
    tokenizer._cache.clear()
    tokenizer.encode("1" * (MAX_CACHED_LENGTH + 1))
    assert not tokenizer._cache


def test_c19_one_huge_chunk():
    tokenizer = Tokenizer([(97, 97), (256, 256), (257, 257)])
    ids = tokenizer.encode("a" * 1_000_003)
    assert len(ids) == 125_002
    assert ids[-3:] == [258, 256, 97]


def test_c19_time_grows_with_the_length_of_a_chunk_not_its_square(tok):
    """Four times the text may take eight times as long; squared it would be sixteen."""
    letters = "".join(random.Random(1).choices("etaoinshrdlu", k=400_000))
    for text in (" " * 400_000, letters):
        quarter = text[: len(text) // 4]
        started = time.process_time()
        tok.encode(quarter)
        small = time.process_time() - started
        ids = tok.encode(text)
        large = time.process_time() - started - small
        assert large < 8 * small + 0.5
        assert tok.decode(ids) == text


@pytest.mark.parametrize(
    ("arguments", "error", "says"),
    [
        ({"merges": [(97, 256)]}, TokenizerFileError, "only ids 0 to 255"),
        ({"merges": [], "pattern": "("}, PatternError, "missing"),
        ({"merges": [], "train_sha256": "abc"}, TokenizerFileError, "64 lower-case"),
        ({"merges": 3}, TokenizerFileError, "list of pairs"),
    ],
)
def test_bad_arguments(arguments, error, says):
    with pytest.raises(error, match=says):
        Tokenizer(**arguments)


def test_merging_example():
    assert reference.merge([1, 2, 3, 1, 2, 3, 1, 2], (1, 2), 99) == [99, 3, 99, 3, 99]


trainings = st.builds(
    lambda text, size: Tokenizer.train(text + "abab", vocab_size=256 + size, min_count=1),
    st.text(alphabet="ab ", max_size=60),
    st.integers(0, 12),
)


@settings(max_examples=500, deadline=None)
@pytest.mark.filterwarnings("ignore:training stopped")
@given(trainings, st.text(alphabet="ab c", max_size=3 * LONG_CHUNK))
def test_encoding_equals_the_reference(tokenizer, text):
    ids = tokenizer.encode(text)
    assert ids == reference.encode(text.encode(), tokenizer.merges)
    assert reference.decode(ids, tokenizer.merges) == text.encode()


@settings(max_examples=500)
@given(
    st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), max_size=40),
    st.binary(max_size=2 * LONG_CHUNK),
)
def test_any_merge_table_equals_the_reference(pairs, chunk):
    """Also tables that no training gives: any pair of ids that exist, in any order."""
    few = [byte % 3 for byte in chunk]
    merges = []
    for left, right in pairs:
        pair = (left % 3 if left % 2 else 256 + left % (len(merges) + 1)), right % 3
        if pair not in merges and pair[0] < 256 + len(merges):
            merges.append(pair)
    ids = {pair: 256 + rank for rank, pair in enumerate(merges)}
    assert merge_chunk(bytes(few), ids) == reference.encode(bytes(few), merges)


def test_c35_tokens_of_newlines_and_spaces_survive_the_file(tmp_path):
    text = "\n\n\n\n  \n\n  "
    tok = Tokenizer.train(text, vocab_size=261, min_count=1)
    assert any(set(token) <= {10, 32} and len(token) > 2 for token in tok.vocab[256:])
    tok.save(tmp_path / "bpe.json")
    loaded = Tokenizer.load(tmp_path / "bpe.json")
    assert loaded == tok
    for probe in (text, " \n", "\r\n", "\t", *(f"x{chr(byte)}y" for byte in range(256))):
        ids = loaded.encode(probe)
        assert ids == reference.encode(probe.encode(), tok.merges)
        assert loaded.decode(ids, errors="strict") == probe


def test_c36_nothing_is_put_before_or_between():
    """No prefix space, no cut that the pattern did not ask for, no token of its own added."""
    tok = Tokenizer.train("ab ab ab ab ", vocab_size=259)
    assert tok.merges == ((97, 98), (256, 32), (257, 257))
    assert tok.encode("ab ab ") == [258]
    assert tok.decode([258]) == "ab ab "
