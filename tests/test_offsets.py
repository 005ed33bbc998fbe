"""Where tokens stand: against slow counting, tiktoken and Hugging Face."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytepair import Tokenizer
from bytepair.errors import TextError, TokenError

TEXT = "naïve café 你好 👩‍👧 cafe\u0301 ½\x00 “quoted” é<|e|>é" * 3


@pytest.fixture(scope="module")
def tok():
    return Tokenizer.train(
        [TEXT, "the then there"], vocab_size=290, pattern="gpt2-ascii", special_tokens=["<|e|>"]
    )


def slow_spans(tokens):
    """Of each token, its bytes, and the characters that have a byte among them."""
    owner = [n for n, c in enumerate(b"".join(tokens).decode()) for _ in c.encode()]
    place = 0
    for token in tokens:
        inside = owner[place : place + len(token)]
        yield (place, place + len(token)), (inside[0], inside[-1] + 1)
        place += len(token)


@given(st.text(alphabet="aé你👩\u200d\u0301<|e> \0", max_size=60))
def test_spans_are_those_found_byte_by_byte(tok, text):
    for allowed in ((), "all"):
        encoding = tok.encode_with_offsets(text, allowed_special=allowed)
        assert encoding.ids == tok.encode(text, allowed_special=allowed)
        tokens = [tok.vocab[i] for i in encoding.ids]
        expected = list(slow_spans(tokens))
        assert list(zip(encoding.byte_spans, encoding.char_spans, strict=True)) == expected
        starts = [start for _, (start, _) in expected]
        assert tok.decode_with_offsets(encoding.ids) == (text, starts)


def test_spans_cut_the_text():
    tok = Tokenizer.train("low lower", vocab_size=258)
    encoding = tok.encode_with_offsets("lower low")
    assert [b"lower low"[a:b] for a, b in encoding.byte_spans] == [
        tok.vocab[i] for i in encoding.ids
    ]
    assert ["lower low"[a:b] for a, b in encoding.char_spans] == ["low", "e", "r", " ", "low"]
    assert tok.encode_with_offsets("").char_spans == []


def test_half_a_character_is_no_text_but_what_is_wrong_is_named(tok):
    with pytest.raises(UnicodeDecodeError):
        tok.decode_with_offsets([0xA9])
    with pytest.raises(TokenError, match="290 is not an id"):
        tok.decode_with_offsets([290])
    with pytest.raises(TokenError, match="the text holds the special token"):
        tok.encode_with_offsets("<|e|>", disallowed_special="all")
    with pytest.raises(TextError):
        tok.encode_with_offsets("\ud800")


def test_encode_ordinary_takes_special_tokens_for_text(tok):
    for text in (TEXT, "<|e|>", ""):
        assert tok.encode_ordinary(text) == tok.encode(text)
    assert tok.special_tokens["<|e|>"] not in tok.encode_ordinary("<|e|>")


def test_tiktoken_has_the_same_offsets(tok):
    tiktoken = pytest.importorskip("tiktoken", reason="tiktoken is not installed")
    theirs = tiktoken.Encoding(
        "ours",
        pat_str=tok.pattern.regex,
        mergeable_ranks={token: i for i, token in enumerate(tok.vocab[:-1])},
        special_tokens=tok.special_tokens,
    )
    ids = tok.encode(TEXT, allowed_special="all")
    assert tok.decode_with_offsets(ids) == theirs.decode_with_offsets(ids)


def test_hugging_face_has_the_same_spans(tok):
    tokenizers = pytest.importorskip("tokenizers", reason="tokenizers is not installed")
    printed = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    moved = iter(range(0x100, 0x200))
    letters = [chr(byte if byte in printed else next(moved)) for byte in range(256)]
    names = ["".join(letters[byte] for byte in token) for token in tok.vocab[:-1]]
    theirs = tokenizers.Tokenizer(
        tokenizers.models.BPE(
            {name: i for i, name in enumerate(names)}, [(names[a], names[b]) for a, b in tok.merges]
        )
    )
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.Sequence(
        [
            tokenizers.pre_tokenizers.Split(tokenizers.Regex(tok.pattern.regex), "isolated"),
            tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    found, encoding = theirs.encode(TEXT), tok.encode_with_offsets(TEXT)
    assert found.ids == encoding.ids
    assert found.offsets == encoding.char_spans
    assert any(b > a + 1 for a, b in encoding.char_spans), "and some tokens are longer"


@pytest.mark.parametrize(
    ("special_tokens", "bos", "eos", "pad", "unk"),
    [
        ([], None, None, None, None),
        (["<|endoftext|>"], None, 256, None, None),
        (["<tool>", "<pad>", "<unk>", "<s>", "</s>", "<|endoftext|>"], 259, 260, 257, 258),
        (["[PAD]", "[BOS]", "<|begin_of_text|>", "[EOS]"], 257, 259, 256, None),
    ],
)
def test_special_tokens_are_known_by_their_usual_texts(special_tokens, bos, eos, pad, unk):
    tok = Tokenizer([], special_tokens=special_tokens)
    assert (tok.bos_id, tok.eos_id, tok.pad_id, tok.unk_id) == (bos, eos, pad, unk)
