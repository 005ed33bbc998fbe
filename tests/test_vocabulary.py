"""Vocabularies of other libraries, encoded as those libraries do."""

import gzip
import json
import re
from itertools import product
from pathlib import Path

import pytest
import tiktoken
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Regex, decoders, models, normalizers, pre_tokenizers, processors, trainers
from tokenizers import Tokenizer as Theirs

from bytepair import Tokenizer
from bytepair.chunks import cut
from bytepair.errors import ArtifactError, TokenError
from bytepair.export import ExportError, probes
from bytepair.export.huggingface import TokenizersReader, export_huggingface
from bytepair.export.prove import prove_on
from bytepair.export.publish import Proof
from bytepair.export.published import load_published
from bytepair.export.ranks import dump_ranks, parse_ranks
from bytepair.export.read_tiktoken import read_ranks
from bytepair.export.recognize import _SPELLINGS, recognize
from bytepair.export.tiktoken import TiktokenReader, export_tiktoken
from bytepair.freezing import freeze_preset
from bytepair.patterns import PRESETS, Pattern
from bytepair.vocabulary import Vocabulary

UNPROVED = Proof(wanted=False)
TEXT = (Path(__file__).parent / "files" / "multilingual.txt").read_text(encoding="utf-8")
BYTES = {bytes([byte]): byte for byte in range(256)}
LLAMA_3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


def trained(pattern=None, **model):
    """A vocabulary of GPT-2's kind, trained by Hugging Face: another order of bytes, <|end|> first."""
    theirs = Theirs(models.BPE(**model))
    byte_level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pattern is None)
    split = [] if pattern is None else [pre_tokenizers.Split(Regex(pattern), "isolated")]
    theirs.pre_tokenizer = pre_tokenizers.Sequence([*split, byte_level]) if split else byte_level
    theirs.decoder = decoders.ByteLevel()
    theirs.post_processor = processors.ByteLevel(trim_offsets=False)
    trainer = trainers.BpeTrainer(
        vocab_size=700,
        special_tokens=["<|end|>", "<|pad|>"],
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    theirs.train_from_iterator([TEXT], trainer)
    return theirs


def saved(theirs, folder, change=None):
    content = json.loads(theirs.to_str())
    if change is not None:
        change(content)
    (folder / "tokenizer.json").write_text(json.dumps(content), encoding="utf-8")
    return folder / "tokenizer.json"


@pytest.mark.filterwarnings("ignore:open_binary is deprecated")  # in bpe-openai itself
@pytest.mark.parametrize("name", ["cl100k_base", "o200k_base"])
def test_published_vocabularies_give_the_ids_of_tiktoken(name):
    import bpe_openai

    vocabulary = Vocabulary.published(name)
    receipt = vocabulary.prove(TiktokenReader(load_published(name)), {"multilingual": [TEXT]})
    assert receipt["every_code_point"]["bytes"] > 16_000_000
    assert receipt["vocabulary"] == {"ids": vocabulary.vocab_size}
    assert vocabulary.encode(TEXT) == bpe_openai.get_encoding(name).encode(TEXT)
    assert vocabulary.pattern == Pattern.named(name.removesuffix("_base"))
    assert vocabulary.decode(vocabulary.encode(TEXT)) == TEXT
    with pytest.raises(ExportError, match=r"id 188 is b'\\x00', but a bpe.json gives it id 0"):
        vocabulary.to_tokenizer()


def test_a_vocabulary_of_gpt_2s_kind_gives_the_ids_of_hugging_face(tmp_path):
    path = saved(trained(), tmp_path)
    vocabulary = Vocabulary.from_huggingface(tmp_path)
    reader = TokenizersReader(path, add_special_tokens=False)
    receipt = vocabulary.prove(reader, {"multilingual": [TEXT]})
    assert receipt["texts"]["multilingual"]["tokens"] == len(vocabulary.encode_array(TEXT))
    assert vocabulary.pattern == Pattern.named("gpt2")
    assert vocabulary.special_tokens == {"<|end|>": 0, "<|pad|>": 1}
    assert vocabulary.vocab[0] == b"<|end|>"
    assert len(vocabulary.merges) + 256 + 2 == vocabulary.vocab_size == 700


@pytest.mark.parametrize("ignore_merges", [False, True])
def test_patterns_without_a_preset_are_read_with_unicode_16(ignore_merges, tmp_path):
    def change(content):  # some tokens then come from whole chunks, or not at all
        content["model"]["ignore_merges"] = ignore_merges
        del content["model"]["merges"][100::25]
        merges, made = content["model"]["merges"], set(pre_tokenizers.ByteLevel.alphabet())
        content["model"]["merges"] = [
            merge for merge in merges if made.issuperset(merge) and not made.add("".join(merge))
        ]

    path = saved(trained(LLAMA_3), tmp_path, change)
    vocabulary = Vocabulary.from_huggingface(path)
    assert vocabulary.pattern == Pattern(freeze_preset(LLAMA_3))
    reader = TokenizersReader(path, add_special_tokens=False)
    some = [TEXT, *TEXT.split(), *probes.strings(), *probes.edges_in_contexts()]
    prove_on(vocabulary, reader, "multilingual", some)
    assert vocabulary.encode_array(TEXT).tolist() == vocabulary.encode(TEXT)
    with pytest.raises(
        ExportError, match="never made by merging" if ignore_merges else "gives it id"
    ):
        vocabulary.to_tokenizer()


@pytest.mark.parametrize("name", [*PRESETS, None])
def test_our_exports_come_back_as_they_were(name, tmp_path):
    tokenizer = Tokenizer.train(
        TEXT, vocab_size=500, pattern=name, special_tokens=["<|end|>", "<|end|>2", "a b"]
    )
    export_huggingface(tokenizer, tmp_path / "hf", proof=UNPROVED)
    vocabulary = Vocabulary.from_huggingface(tmp_path / "hf")
    assert vocabulary.pattern == tokenizer.pattern
    assert list(vocabulary.vocab.values()) == tokenizer.vocab
    vocabulary.save(tmp_path / "bpe.json")
    again = Tokenizer.load(tmp_path / "bpe.json")
    assert (again.merges, again.special_tokens) == (tokenizer.merges, tokenizer.special_tokens)

    tokenizer = Tokenizer(tokenizer.merges, pattern=name, special_tokens=["<|end|>", "a b"])
    export_tiktoken(tokenizer, tmp_path / "mine.tiktoken", proof=UNPROVED)
    again = Vocabulary.from_tiktoken(tmp_path / "mine.tiktoken").to_tokenizer()
    assert again == tokenizer


def test_an_exported_pattern_of_ones_own_comes_back_for_re(tmp_path):
    tokenizer = Tokenizer.train(TEXT, vocab_size=400, pattern=r"(?i:[a-k]+)|\d{1,2}(?=\s|$)")
    export_huggingface(tokenizer, tmp_path, proof=UNPROVED)
    again = Vocabulary.from_huggingface(tmp_path)
    assert again.pattern.engine == "re"
    assert cut(TEXT, again.pattern.compiled()) == cut(TEXT, tokenizer.pattern.compiled())
    assert again.encode(TEXT) == tokenizer.encode(TEXT)


@pytest.mark.parametrize("spelling", _SPELLINGS)
def test_other_spellings_of_presets_mean_the_same(spelling):
    preset = Pattern.named(_SPELLINGS[spelling]).compiled()
    other = re.compile(freeze_preset(spelling))
    for length in range(1, 6):
        for text in map("".join, product(" \n\ra1'!s", repeat=length)):
            assert cut(text, other) == cut(text, preset)
    for text in probes.edges_in_contexts():
        assert cut(text, other) == cut(text, preset)
    assert recognize(spelling) == Pattern.named(_SPELLINGS[spelling])


def test_the_older_pattern_of_cl100k_is_another():
    assert cut("a \n  ", Pattern.named("cl100k").compiled()) == ["a", " \n  "]
    assert cut("a \n  ", recognize(LLAMA_3).compiled()) == ["a", " \n", "  "]


def test_classes_that_we_have_no_tables_of_are_left_to_the_package_regex(tmp_path):
    pattern = r"\p{Han}+|[^\p{Han}]+"
    path = saved(trained(pattern), tmp_path)
    vocabulary = Vocabulary.from_huggingface(path)
    assert vocabulary.pattern == Pattern(pattern, "regex")
    prove_on(vocabulary, TokenizersReader(path, add_special_tokens=False), "text", [TEXT])


# Special tokens, arrays, decoding.


def test_special_tokens_need_permission_and_ids_any_order():
    vocabulary = Vocabulary(
        {**BYTES, b"ab": 1_000}, [(b"a", b"b")], special_tokens={"<e>": 70_000, "<e>x": 300}
    )
    assert vocabulary.encode("ab<e>x") == [1_000, 60, 101, 62, 120]
    assert vocabulary.encode("ab<e>x", allowed_special="all") == [1_000, 300]
    assert vocabulary.encode("ab<e>x", allowed_special={"<e>"}) == [1_000, 70_000, 120]
    assert list(vocabulary.vocab)[-3:] == [300, 1_000, 70_000]
    assert vocabulary.decode_bytes([70_000, 195]) == b"<e>\xc3"
    assert vocabulary.encode_array("ab").dtype == "uint32"
    with pytest.raises(TokenError, match="'<x>' is not a special token"):
        vocabulary.encode("a", allowed_special={"<x>"})
    for wrong in (256, -1, None, "a"):
        with pytest.raises(TokenError, match="is not an id of this vocabulary"):
            vocabulary.decode([97, wrong])


# Ranks.


@settings(max_examples=60)
@given(st.lists(st.text("ab", min_size=2, max_size=5), unique=True, max_size=12))
def test_any_ranks_are_read_as_tiktoken_reads_them_or_refused(tokens):
    ranks = {**BYTES, **{text.encode(): 256 + rank for rank, text in enumerate(tokens)}}
    encoding = tiktoken.Encoding(
        "x", pat_str=r"[ab]+|[^ab]+", mergeable_ranks=ranks, special_tokens={}
    )
    try:
        vocabulary = Vocabulary(
            **read_ranks(dump_ranks(ranks), "x", Pattern(r"[ab]+|[^ab]+"), None)
        )
    except ArtifactError as error:
        assert "is made of tokens of higher rank" in str(error)
        return
    for length in range(1, 8):
        for text in map("".join, product("ab", repeat=length)):
            assert vocabulary.encode(text) == encoding.encode_ordinary(text), text


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (b"YQ==\n", "line 1 is b'YQ==': expected base64, a space and a rank"),
        (b"YQ== one\n", "line 1 is"),
        (b"Y*== 1\n", "line 1 is"),
        (b"YQ== 1\nYQ== 2\n", "line 2 gives b'a' a second rank"),
        (b"YQ== 1\nYg== 1\n", "b'a' and b'b' both have rank 1"),
        (b"\n", "no ranks in it"),
        (b"\x1f\x8bxx", "not gzip after all"),
        (b"YQ== 1\n", r"the byte b'\x00' has no id"),
    ],
)
def test_damaged_ranks_are_refused(lines, message, tmp_path):
    (tmp_path / "x.tiktoken").write_bytes(lines)
    with pytest.raises(ArtifactError, match=re.escape(message)):
        Vocabulary.from_tiktoken(tmp_path / "x.tiktoken")


def test_ranks_that_no_order_of_merges_gives_are_refused(tmp_path):
    # "abc" comes before the tokens it could be made of, yet tiktoken makes it of "ab" and "c"
    ranks = [*BYTES, b"xabc", b"ab", b"xab"]
    (tmp_path / "x.tiktoken").write_bytes(dump_ranks(ranks))
    with pytest.raises(
        ArtifactError, match=r"b'xabc' \(rank 256\) is made of tokens of higher rank"
    ):
        Vocabulary.from_tiktoken(tmp_path / "x.tiktoken")


def test_a_pattern_that_leaves_text_out_is_refused(tmp_path):
    (tmp_path / "x.gz").write_bytes(gzip.compress(dump_ranks(BYTES)))
    assert parse_ranks((tmp_path / "x.gz").read_bytes(), "x.gz") == BYTES
    with pytest.raises(ArtifactError, match=r"does not match ' ' in ' '"):
        Vocabulary.from_tiktoken(tmp_path / "x.gz", r"\S+")
    with pytest.raises(ExportError, match="'a' begins the special token 'ab'"):
        Vocabulary.from_tiktoken(tmp_path / "x.gz", "gpt2", {"a": 300, "ab": 301})
    with pytest.raises(ArtifactError, match="pattern"):
        Vocabulary.from_tiktoken(tmp_path / "x.gz", "(")


# What is not only cut, looked up and merged.


def set_prefix(content):
    content["pre_tokenizer"]["add_prefix_space"] = True


def set_normalizer(content):
    content["normalizer"] = json.loads(
        Theirs.to_str(with_normalizer(normalizers.NFC()))
    )["normalizer"]  # fmt: skip


def with_normalizer(normalizer):
    theirs = Theirs(models.BPE())
    theirs.normalizer = normalizer
    return theirs


def setter(*path, value):
    def change(content):
        for key in path[:-1]:
            content = content[key]
        content[path[-1]] = value

    return change


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (set_prefix, "pre_tokenizer.add_prefix_space is True: it puts a space before a text"),
        (set_normalizer, "normalizer is 'NFC': it changes the text"),
        (setter("model", "type", value="Unigram"), "model.type is 'Unigram': only BPE is read"),
        (setter("model", "dropout", value=0.1), "model.dropout is 0.1"),
        (setter("model", "byte_fallback", value=True), "model.byte_fallback is True"),
        (setter("model", "end_of_word_suffix", value="</w>"), "model.end_of_word_suffix is '</w>'"),
        (setter("decoder", value=None), "decoder is None: only ByteLevel is read"),
        (setter("added_tokens", 0, "lstrip", value=True), "'<|end|>': lstrip is True"),
        (setter("pre_tokenizer", "type", value="Whitespace"), "pre_tokenizer is ['Whitespace']"),
        (setter("pre_tokenizer", value=None), "pre_tokenizer is [None]"),
        (setter("model", "merges", 3, value=["▁", "a"]), "model.merges[3]: '▁' holds '▁', which"),
        (
            setter("model", "merges", 0, value=["Ġqqq", "a"]),
            "merge 0 takes b' qqq', which no merge",
        ),
        (setter("model", "merges", 1, value=["Ġ", "q"]), "merge 1 makes b' q', which has no id"),
        (setter("model", "vocab", "a", value=1), "id 1 is both b'<|pad|>' and b'a'"),
        (setter("model", value=None), "not a tokenizer.json of tokenizers"),
    ],
)
def test_what_is_not_plain_byte_level_bpe_is_refused(change, message, tmp_path, gpt2_class):
    path = saved(gpt2_class, tmp_path, change)
    with pytest.raises(ArtifactError, match=re.escape(message)):
        Vocabulary.from_huggingface(path)


@pytest.fixture(scope="module")
def gpt2_class():
    return trained()


def test_a_cut_that_drops_text_is_refused_unless_nothing_is_dropped(tmp_path):
    preset = PRESETS["cl100k"].regex.replace("{1,3}+", "{1,3}").replace(r"\s++$", r"\s+$")
    theirs = trained(PRESETS["o200k"].regex)
    how = {"behavior": "Removed", "invert": True}

    def change(content):
        content["pre_tokenizer"]["pretokenizers"][0].update(how)

    path = saved(theirs, tmp_path, change)
    vocabulary = Vocabulary.from_huggingface(path)
    reader = TokenizersReader(path, add_special_tokens=False)
    prove_on(vocabulary, reader, "multilingual", [TEXT])
    path = saved(trained(preset), tmp_path, change)
    with pytest.raises(ArtifactError, match="matches must be kept, each alone"):
        Vocabulary.from_huggingface(path)


def test_what_a_bpe_json_cannot_say_is_named():
    shifted = Vocabulary({**BYTES, b"ab": 256}, [(b"a", b"b")], special_tokens={"<e>": 258})
    with pytest.raises(ExportError, match="special token '<e>' has id 258.* it must be 257"):
        shifted.to_tokenizer()
    unmade = Vocabulary({**BYTES, b"ab": 256, b"xy": 257}, [(b"a", b"b")])
    with pytest.raises(ExportError, match="id 257, b'xy', is made by no merge"):
        unmade.to_tokenizer()
    plain = Vocabulary({**BYTES, b"ab": 256}, [(b"a", b"b")], special_tokens={"<e>": 257})
    assert plain.to_tokenizer() == Tokenizer([(97, 98)], special_tokens=["<e>"])
    assert repr(plain) == "<Vocabulary of 258 ids, pattern None>"


def test_names_of_published_vocabularies():
    with pytest.raises(ExportError, match="no vocabulary is named 'gpt2'"):
        Vocabulary.published("gpt2")
