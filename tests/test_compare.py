"""Tokenizers side by side; the figures of Hugging Face's own trainer on the same stories."""

import json

import pytest
from click.testing import CliRunner
from tokenizers import Tokenizer as Theirs
from tokenizers import decoders, models, pre_tokenizers, trainers

from bytepair import Tokenizer
from bytepair.cli import main
from bytepair.compare import (
    Entry,
    Text,
    compare,
    measure,
    open_vocabulary,
    table,
    train_huggingface,
)
from bytepair.corpora.documents import read_split
from bytepair.export import ExportError
from bytepair.export.prove import prove_on
from bytepair.export.publish import Proof
from bytepair.export.tiktoken import export_tiktoken
from bytepair.layout import CorpusPaths, TokenizerPaths


def run(*arguments, code=0):
    result = CliRunner().invoke(main, ["compare", *map(str, arguments)])
    assert result.exit_code == code, result.output
    return result.output


def split(project, name):
    content = read_split(CorpusPaths(project, "sherlock").splits / name)
    return Text(name, [document.text for document in content.documents], content.separator)


def test_hugging_faces_trainer_gives_its_published_figures(project):
    texts = [split(project, name) for name in ("train", "val", "test")]
    theirs = train_huggingface(texts[0].documents, vocab_size=512, special_tokens=["<|endoftext|>"])
    ours = Entry("ours", Tokenizer.load(TokenizerPaths(project, "sherlock-512").bpe))
    figures = {
        (row.vocabulary, row.text): round(row.bytes_per_token, 4)
        for row in compare([ours, theirs], texts)
    }
    assert figures == {
        ("ours", "train"): 2.1549, ("ours", "val"): 2.1874, ("ours", "test"): 2.1555,
        ("trained by tokenizers, 512", "train"): 2.1549,
        ("trained by tokenizers, 512", "val"): 2.1879,
        ("trained by tokenizers, 512", "test"): 2.1557,
    }  # fmt: skip
    reader = theirs.reader()
    for text in texts:
        prove_on(theirs.vocabulary, reader, text.name, text.documents)


def test_the_command_trains_and_compares_on_the_splits(project, monkeypatch):
    monkeypatch.chdir(project)
    rows = json.loads(run("sherlock-512", "chat-1024", "--train-hf", "--json"))
    assert {row["text"] for row in rows} == {"train", "val"}  # test is for the end
    found = {(row["vocabulary"], row["text"]): row for row in rows}
    assert found["sherlock-512", "train"]["tokens"] == 217_572
    assert found["chat-1024", "train"]["bytes_per_token"] == 2.734876
    assert found["sherlock-512", "val"]["bytes"] == 52_164
    assert found["trained by tokenizers, 512", "val"]["tokens"] == 23_842
    assert (
        found["sherlock-512", "train"]["ids_used"] == 512 - 170 - 1
    )  # the separator is counted apart


def test_every_figure_is_what_its_definition_says():
    tokenizer = Tokenizer([(97, 98)], special_tokens=["<|>"])
    text = Text("a text", ["ab ab\u00a0c", " d\n"], separator="<|>")
    row = measure(Entry("mine", tokenizer), text)
    assert (row.bytes, row.tokens) == (8 + 3 + 3, 1 + 1 + 1 + 2 + 1 + 1 + 3)
    assert row.tokens_per_word == round(row.tokens / 4, 6)
    assert row.bytes_per_token == round(row.bytes / row.tokens, 6)
    assert (row.ids, row.ids_used, row.share_used) == (258, 7, round(7 / 258, 6))
    empty = measure(Entry("mine", tokenizer), Text("empty", [""]))
    assert (empty.bytes, empty.tokens, empty.bytes_per_token, empty.tokens_per_word) == (
        0,
        0,
        None,
        None,
    )
    lines = table([row, empty])
    assert lines[0] == "a text, 14 bytes"
    assert lines[2].split() == ["mine", "258", "10", "1.4000", "2.5000", "7", "(2.7%)"]
    assert lines[4] == "empty, 0 bytes"


def test_files_of_every_kind_stand_side_by_side(tmp_path):
    text = "It is a capital mistake to theorize before one has data.\n" * 3
    (tmp_path / "text.txt").write_text(text, encoding="utf-8")
    ours = Tokenizer.train(text, vocab_size=270, pattern="cl100k", special_tokens=["<|end|>"])
    ours.save(tmp_path / "bpe.json")
    export_tiktoken(ours, tmp_path / "ranks.tiktoken", proof=Proof(wanted=False))
    theirs = Theirs(models.BPE())
    theirs.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    theirs.train_from_iterator(
        [text],
        trainers.BpeTrainer(vocab_size=280, initial_alphabet=alphabet, show_progress=False),
    )
    (tmp_path / "hf").mkdir()
    theirs.save(str(tmp_path / "hf" / "tokenizer.json"))
    names = [tmp_path / "bpe.json", tmp_path / "ranks.tiktoken", tmp_path / "hf", "cl100k_base"]
    rows = json.loads(run(*names, "--text", tmp_path / "text.txt", "--json", "--prove"))
    tokens = [row["tokens"] for row in rows]
    assert tokens[0] == tokens[1] == len(ours.encode(text))
    assert tokens[2] == len(theirs.encode(text).ids)
    assert tokens[3] == 39
    shown = run(*names, "--text", tmp_path / "text.txt")
    assert shown.index("cl100k_base") < shown.index("bpe.json")  # fewest tokens first


def test_what_cannot_be_compared_is_named(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Tokenizer([]).save(tmp_path / "bpe.json")
    assert "name a text with --text FILE" in run("bpe.json", code=2)
    assert "neither a bpe.json, nor a folder" in run("nothing", "--text", "bpe.json", code=2)
    assert "not at hand" in run("bpe.json", "--text", "bpe.json", "--train-hf", code=2)
    (tmp_path / "broken.json").write_text("{")
    assert "not JSON" in run("broken.json", "--text", "bpe.json", code=1)
    with pytest.raises(ExportError, match="neither a file nor one of cl100k_base, o200k_base"):
        open_vocabulary("nothing")
