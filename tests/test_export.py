"""Exports, loaded by the real tiktoken, tokenizers and transformers."""

import base64
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import tiktoken
import tokenizers
from click.testing import CliRunner
from transformers import AutoTokenizer

import pipeline
from bytepair import Tokenizer
from bytepair.cli import main
from bytepair.errors import ArtifactError
from bytepair.export import ExportError, probes
from bytepair.export.byte_level import alphabet, to_bytes, to_text
from bytepair.export.huggingface import (
    TokenizersReader,
    TransformersReader,
    export_huggingface,
    special_roles,
    tokenizer_json,
)
from bytepair.export.portable import portable_regex
from bytepair.export.prove import prove_on
from bytepair.export.publish import Proof, publish
from bytepair.export.tiktoken import TiktokenReader, export_tiktoken, load, tiktoken_files
from bytepair.export.vocab import export_vocab
from bytepair.files import read_record, sha256
from bytepair.layout import TokenizerPaths

UNPROVED = Proof(wanted=False)
MULTILINGUAL = (Path(__file__).parent / "files" / "multilingual.txt").read_text(encoding="utf-8")
CHAT = ["<pad>", "<bos>", "<eos>", "<user>", "<assistant>"]


@pytest.fixture(scope="module")
def chat():
    return Tokenizer.train(MULTILINGUAL, vocab_size=600, pattern="words", special_tokens=CHAT)


def run(*arguments, code=0):
    result = CliRunner().invoke(main, list(map(str, arguments)))
    assert result.exit_code == code, result.output
    return result.output


# Receipts of the tokenizers that we ship, on all of their splits.


@pytest.mark.parametrize("kind", ["hf", "tiktoken"])
def test_the_sample_tokenizer_is_proved_on_its_splits(kind, sample_project, tmp_path, monkeypatch):
    assert_proved("sample-512", kind, sample_project, tmp_path, monkeypatch)


@pytest.mark.parametrize("kind", ["hf", "tiktoken"])
@pytest.mark.parametrize("name", ["sherlock-512", "chat-1024", "notebook-316"])
def test_the_shipped_tokenizers_are_proved_on_their_splits(
    name, kind, project, tmp_path, monkeypatch
):
    assert_proved(name, kind, project, tmp_path, monkeypatch)


def assert_proved(name, kind, project, tmp_path, monkeypatch):
    monkeypatch.chdir(project)
    target = tmp_path / name
    shown = run("export", kind, name, target)
    receipt = read_record(target / "receipt.json" if kind == "hf" else f"{target}.receipt.json")
    paths = TokenizerPaths(project, name)
    assert receipt["tokenizer_sha256"] == sha256(paths.bpe.read_bytes())
    for proved in receipt["proved"]:
        splits = proved["compared"]["texts"]
        assert set(splits) == {path.name for path in paths.tokens.iterdir()}
        for split, compared in splits.items():
            index = json.loads((paths.tokens / split / "index.json").read_bytes())
            gaps = 0 if index["separator_id"] is None else compared["texts"] - 1
            assert compared["tokens"] == index["tokens"]["length"] - gaps
        assert f"{proved['library']} " in shown
    assert receipt["proved"][0]["compared"]["every_code_point"]["bytes"] > 16_000_000


@pytest.mark.parametrize("name", ["gpt2", "cl100k", "o200k"])
def test_tokenizers_with_published_patterns_are_proved_on_many_languages(name, tmp_path):
    tokenizer = Tokenizer.train(
        MULTILINGUAL, vocab_size=630, pattern=name, special_tokens=["<|endoftext|>", "<|im_start|>"]
    )
    proof = Proof(wanted=True, texts={"multilingual": [MULTILINGUAL, MULTILINGUAL[::-1]]})
    for receipt in (
        export_tiktoken(tokenizer, tmp_path / "mine.tiktoken", proof=proof),
        export_huggingface(tokenizer, tmp_path / "mine", proof=proof),
    ):
        for proved in receipt["proved"]:
            compared = proved["compared"]
            assert compared["vocabulary"] == {"ids": 630}
            assert compared["texts"]["multilingual"]["tokens"] > 1_000
            assert compared["special_tokens_allowed"]["texts"] > 20


# The files.


def test_c35_newlines_and_spaces_survive(tmp_path):
    with pytest.warns(UserWarning, match="training stopped"):
        tokenizer = Tokenizer.train("\n\n\n\n  \n\n  ", vocab_size=300, min_count=1)
    export_huggingface(tokenizer, tmp_path, proof=UNPROVED)
    export_tiktoken(tokenizer, tmp_path / "c35.tiktoken", proof=UNPROVED)
    texts = ["\n\n\n\n  \n\n  ", " \n", "\r\n", "\t", *(f"a{chr(n)}b" for n in range(256))]
    for reader in (
        TokenizersReader(tmp_path / "tokenizer.json"),
        TiktokenReader(load(tmp_path / "c35.tiktoken")),
    ):
        prove_on(tokenizer, reader, "c35", texts)
    model = json.loads((tmp_path / "tokenizer.json").read_bytes())["model"]
    assert model["vocab"]["\u010a"] == 10
    assert model["vocab"]["\u0120"] == 32
    assert ["\u010a", "\u010a"] in model["merges"]
    lines = (tmp_path / "c35.tiktoken").read_bytes().splitlines()
    assert lines == [
        base64.b64encode(token) + b" %d" % rank for rank, token in enumerate(tokenizer.vocab)
    ]


def test_c36_settings_that_change_ids_are_off(tmp_path):
    tokenizer = Tokenizer([(97, 98), (256, 32), (257, 257)], special_tokens=["<eos>"])
    export_huggingface(tokenizer, tmp_path, proof=UNPROVED)
    theirs = tokenizers.Tokenizer.from_file(str(tmp_path / "tokenizer.json"))
    assert tokenizer.encode("ab ab ") == theirs.encode("ab ab ").ids == [258]
    assert theirs.encode("ab ab ", add_special_tokens=True).ids == [258]
    assert theirs.decode([258, 259], skip_special_tokens=False) == "ab ab <eos>"
    content = json.loads((tmp_path / "tokenizer.json").read_bytes())
    assert (content["normalizer"], content["post_processor"]) == (None, None)
    for key, expected in (("use_regex", [256, 32, 256, 32]), ("add_prefix_space", [32, 258])):
        content["pre_tokenizer"][key] = True
        assert tokenizers.Tokenizer.from_str(json.dumps(content)).encode("ab ab ").ids == expected
        content["pre_tokenizer"][key] = False
    for token in content["added_tokens"]:
        assert [token[key] for key in ("normalized", "lstrip", "rstrip", "single_word")] == [
            False
        ] * 4


def test_c25_special_tokens_of_any_characters_are_proved(tmp_path):
    specials = ["<|a.b|>", "[PAD]", "(((", "$$", r"\d", " ", "\n\n", "\0", "{0}", "日本", "a b"]
    tokenizer = Tokenizer.train("ab ab P5 <|aXb|>", vocab_size=268, special_tokens=specials)
    texts = {"c25": ["<|aXb|>", "P", "5", "a  b", "日本語"]}
    for kind, reader in {"hf": hf_reader, "tiktoken": tiktoken_reader}.items():
        theirs = reader(tokenizer, tmp_path / kind)
        for text in (*texts["c25"], *probes.around_special_tokens(specials)):
            for allowed in (frozenset(), frozenset(specials)):
                (ids,) = theirs.encode([text], allowed)
                assert ids == tokenizer.encode(text, allowed_special=allowed), (kind, text)
                assert theirs.decode(ids) == text


def hf_reader(tokenizer, path):
    export_huggingface(tokenizer, path, proof=UNPROVED)
    return TokenizersReader(path / "tokenizer.json")


def tiktoken_reader(tokenizer, path):
    export_tiktoken(tokenizer, path, proof=UNPROVED)
    return TiktokenReader(load(path))


def test_the_same_export_is_the_same_bytes_and_names_no_machine(chat, tmp_path):
    for folder in ("one", "two"):
        export_tiktoken(chat, tmp_path / folder / "chat.tiktoken", proof=Proof(wanted=True))
        export_huggingface(chat, tmp_path / folder, name="chat", proof=UNPROVED)
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / folder).iterdir()}
        for folder in ("one", "two")
    )
    assert first == second
    assert set(first) == {
        "README.md", "special_tokens_map.json", "tokenizer.json", "tokenizer_config.json",
        "chat.tiktoken", "chat.tiktoken.json", "chat.tiktoken.receipt.json",
    }  # fmt: skip
    receipt = read_record(tmp_path / "one" / "chat.tiktoken.receipt.json")
    for name, digest in receipt["files"].items():
        assert sha256(first[name]) == digest
    assert not [name for name, data in first.items() if str(tmp_path).encode() in data]
    card = first["README.md"].decode()
    for part in (chat.sha256, "`words`", "600 ids", "| 595 | `<pad>` |", "from_pretrained"):
        assert part in card


def test_special_tokens_have_the_roles_that_their_names_say(chat, tmp_path):
    assert special_roles(chat) == {"bos_token": "<bos>", "eos_token": "<eos>", "pad_token": "<pad>"}
    assert special_roles(Tokenizer([], special_tokens=["<|endoftext|>"])) == {
        "eos_token": "<|endoftext|>"
    }
    assert special_roles(Tokenizer([], special_tokens=["<user>"])) == {}
    assert special_roles(Tokenizer([])) == {}
    export_huggingface(chat, tmp_path, proof=UNPROVED)
    theirs = AutoTokenizer.from_pretrained(tmp_path, local_files_only=True)
    assert (theirs.bos_token_id, theirs.eos_token_id, theirs.pad_token_id) == (596, 597, 595)
    assert theirs.unk_token is None
    assert set(theirs.all_special_tokens) == set(CHAT)
    assert (len(theirs), theirs.model_max_length) == (600, int(1e30))


def test_a_chat_template_and_a_second_save_keep_special_tokens(chat, tmp_path):
    template = (
        "{{ bos_token }}{% for message in messages %}<{{ message.role }}>{{ message.content }}"
        "{{ eos_token }}{% endfor %}{% if add_generation_prompt %}<assistant>{% endif %}"
    )
    export_huggingface(chat, tmp_path / "one", chat_template=template, proof=UNPROVED)
    messages = [
        {"role": "user", "content": "Größere Boote?"},
        {"role": "assistant", "content": "Жди до семи."},
        {"role": "user", "content": "渡轮"},
    ]
    text = "<bos><user>Größere Boote?<eos><assistant>Жди до семи.<eos><user>渡轮<eos><assistant>"
    expected = chat.encode(text, allowed_special="all")
    assert expected[:2] == [596, 598]
    for folder in ("one", "two"):
        theirs = AutoTokenizer.from_pretrained(tmp_path / folder, local_files_only=True)
        shown = theirs.apply_chat_template(messages, add_generation_prompt=True, tokenize=False)
        ids = theirs.apply_chat_template(messages, add_generation_prompt=True, return_dict=False)
        assert (shown, ids) == (text, expected)
        assert theirs.decode(ids, skip_special_tokens=False) == text
        assert theirs.decode(ids, skip_special_tokens=True) == chat.decode(
            ids, skip_special_tokens=True
        )
        theirs.save_pretrained(tmp_path / "two")
    no_template = AutoTokenizer.from_pretrained(hf_folder(chat, tmp_path / "three"))
    assert no_template.chat_template is None


def hf_folder(tokenizer, folder):
    export_huggingface(tokenizer, folder, proof=UNPROVED)
    return folder


def test_transformers_takes_specials_as_text_when_asked(chat, tmp_path):
    theirs = TransformersReader(hf_folder(chat, tmp_path))
    assert theirs.encode(["<eos>"], frozenset()) == [chat.encode("<eos>")]
    assert theirs.encode(["<eos>"], frozenset(CHAT)) == [[597]]


def test_the_alphabet_is_that_of_the_library():
    assert sorted(alphabet()) == sorted(tokenizers.pre_tokenizers.ByteLevel.alphabet())
    assert to_bytes(to_text(bytes(range(256)))) == bytes(range(256))
    with pytest.raises(ArtifactError, match="'▁low' holds '▁', which stands for no byte"):
        to_bytes("▁low")


def test_the_vocabulary_for_people_has_every_id(chat, tmp_path):
    export_vocab(chat, tmp_path / "chat.vocab")
    head, *lines = (tmp_path / "chat.vocab").read_text(encoding="utf-8").partition("\n0  ")
    assert head.startswith("# Lossy")
    assert chat.sha256 in head
    numbered = "".join(lines).strip().splitlines()
    assert [int(line.split()[0]) for line in numbered] == list(range(600))
    assert numbered[-5] == '595  "<pad>"  special'


# Refusals.


def test_tiktoken_cannot_have_an_unreachable_token(tmp_path):
    tokenizer = Tokenizer([(98, 99), (97, 98), (257, 99)], pattern="words")
    assert tokenizer.encode("abc") == [97, 256]
    with pytest.raises(ExportError, match=r"b'abc' would be \[258\] there, but .* \[97, 256\]"):
        export_tiktoken(tokenizer, tmp_path / "x.tiktoken")
    assert not list(tmp_path.iterdir())
    ranks = {token: rank for rank, token in enumerate(tokenizer.vocab)}
    theirs = tiktoken.Encoding("x", pat_str=r"\w+", mergeable_ranks=ranks, special_tokens={})
    assert theirs.encode("abc") == [258]  # the refusal tells the truth
    assert hf_reader(tokenizer, tmp_path / "hf").encode(["abc"], frozenset()) == [[97, 256]]


def test_tiktoken_cannot_have_special_tokens_that_begin_others(tmp_path):
    tokenizer = Tokenizer([], special_tokens=["<|end|>more", "<|end|>"])
    with pytest.raises(ExportError, match=r"'<\|end\|>' begins the special token '<\|end\|>more'"):
        export_tiktoken(tokenizer, tmp_path / "x.tiktoken")
    assert not list(tmp_path.iterdir())
    theirs = hf_reader(tokenizer, tmp_path / "hf")  # takes the longest, as we do
    assert theirs.encode(["<|end|>more<|end|>"], frozenset(tokenizer.special_tokens)) == [
        [256, 257]
    ]


@pytest.mark.parametrize(
    ("special", "message"),
    [
        ("Ġ", r"'Ġ' has id 256, but Hugging Face writes id 32, b' '"),
        ("a", r"'a' has id 256, but Hugging Face writes id 97, b'a'"),
        ("né", r"'né' is written in characters that stand for bytes.* b'n\\xe9'"),
    ],
)
def test_hugging_face_cannot_have_special_tokens_that_look_like_others(special, message, tmp_path):
    tokenizer = Tokenizer([], special_tokens=[special])
    with pytest.raises(ExportError, match=message):
        export_huggingface(tokenizer, tmp_path / "hf")
    assert not list(tmp_path.iterdir())
    theirs = tokenizers.Tokenizer.from_str(json.dumps(tokenizer_json(tokenizer)))
    (token_id, *_) = theirs.encode(special).ids
    assert (token_id, theirs.decode([256], skip_special_tokens=False)) != (256, special)


def test_a_pattern_without_a_common_form_is_refused(tmp_path):
    for export in (export_tiktoken, export_huggingface):
        with pytest.raises(ExportError, match="can match nothing at all"):
            export(Tokenizer([], pattern=r"\w*"), tmp_path / "x")
    assert not list(tmp_path.iterdir())


def test_a_difference_leaves_an_older_export_as_it_was(chat, tmp_path):
    target = tmp_path / "chat.tiktoken"
    export_tiktoken(chat, target, proof=Proof(wanted=True))
    (tmp_path / "model.safetensors").write_bytes(b"weights")
    before = {path.name: path.read_bytes() for path in tmp_path.iterdir()}
    other = Tokenizer([*chat.merges[:-1], (97, 98)], pattern="words", special_tokens=CHAT)
    for folder in (tmp_path, tmp_path / "new" / "folder"):
        with pytest.raises(ExportError, match="tiktoken has other tokens: id 594 is the token"):
            publish(
                folder,
                tiktoken_files(other, target.name),
                "chat.tiktoken.receipt.json",
                about={},
                ours=chat,
                readers=lambda staged: [TiktokenReader(load(staged / target.name))],
                proof=Proof(),
                ids=range(600),
            )
    assert {path.name: path.read_bytes() for path in tmp_path.iterdir()} == before
    export_tiktoken(chat, target, proof=UNPROVED)  # a receipt of older files would be a lie
    kept = before.keys() - {"chat.tiktoken.receipt.json"}
    assert {path.name for path in tmp_path.iterdir()} == kept


def test_a_difference_is_shown_at_its_shortest(chat, tmp_path):
    rank = chat.merges.index(tuple(chat.encode("r") + chat.encode("y")))
    fewer = Tokenizer(chat.merges[:rank], pattern="words")
    theirs = hf_reader(fewer, tmp_path)
    with pytest.raises(ExportError, match="other ids") as caught:
        prove_on(chat, theirs, "a text", ["!\n" * 300 + "erry" + "\n!" * 200])
    assert f"'ry' is [{256 + rank}] here and [114, 121] there" in str(caught.value)


def test_a_library_that_fails_is_refused(tmp_path):
    tokenizer = Tokenizer([], pattern="gpt2")
    theirs = tiktoken_reader(tokenizer, tmp_path / "x")
    with pytest.raises(ExportError, match="tiktoken fails .*StackOverflow"):  # a panic in Rust
        prove_on(tokenizer, theirs, "a million spaces", [" " * 1_100_000 + "x"])
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ExportError, match="tokenizers does not load"):
        TokenizersReader(tmp_path / "tokenizer.json")


def test_files_of_two_exports_do_not_mix(chat, tmp_path):
    for name, tokenizer in (("a", chat), ("b", Tokenizer([]))):
        export_tiktoken(tokenizer, tmp_path / name, proof=UNPROVED)
    os.replace(tmp_path / "b", tmp_path / "a")  # noqa: PTH105
    with pytest.raises(ArtifactError, match="not the ranks that .* was written with"):
        load(tmp_path / "a")


# The command, and what it imports.


def test_the_command_exports_any_bpe_json(chat, tmp_path):
    chat.save(tmp_path / "bpe.json")
    (tmp_path / "text.txt").write_text(MULTILINGUAL, encoding="utf-8")
    target = tmp_path / "out.tiktoken"
    shown = run(
        "export", "tiktoken", tmp_path / "bpe.json", target, "--text", tmp_path / "text.txt"
    )
    assert "the same ids" in shown
    assert "text.txt among them" in shown
    assert load(target).encode_ordinary(MULTILINGUAL) == chat.encode(MULTILINGUAL)
    assert "not proved" in run("export", "hf", tmp_path / "bpe.json", tmp_path / "hf", "--no-prove")
    assert run("export", "vocab", tmp_path / "bpe.json", "-").startswith("# Lossy")
    shown = run("export", "hf", "no-such-name", tmp_path / "x", code=2)
    assert "neither a bpe.json, nor a folder" in shown
    Tokenizer([], special_tokens=["a", "ab"]).save(tmp_path / "bpe.json")
    assert "begins the special token" in run(
        "export", "tiktoken", tmp_path / "bpe.json", target, code=1
    )
    assert load(target).n_vocab == 600


def test_no_extra_is_imported_unless_used(tmp_path):
    Tokenizer.train("ab ab", vocab_size=257, pattern="o200k").save(tmp_path / "bpe.json")
    program = (
        "import sys\nfrom bytepair.cli import main\n"
        "for kind in ('hf', 'tiktoken'):\n"
        "    main(['export', kind, 'bpe.json', kind, '--no-prove'], standalone_mode=False)\n"
        "main(['compare', 'bpe.json', '--text', 'bpe.json'], standalone_mode=False)\n"
        "print(sorted({'tokenizers', 'tiktoken', 'transformers', 'regex', 'bpe_openai'} & {*sys.modules}))"
    )
    shown = subprocess.run(
        [sys.executable, "-c", program],
        cwd=tmp_path, env=pipeline.environment(pipeline.ROOT), check=True, capture_output=True,
    ).stdout.decode()  # fmt: skip
    assert shown.splitlines()[-1] == "[]"


def test_without_the_extra_an_export_is_written_and_a_proof_refused(tmp_path):
    program = (
        "import sys\nfrom bytepair import Tokenizer\n"
        "from bytepair.export.huggingface import export_huggingface\n"
        "from bytepair.export.publish import Proof\n"
        "from bytepair.export.tiktoken import export_tiktoken, load\n"
        "tokenizer = Tokenizer([], special_tokens=['<eos>'])\n"
        "for export in (export_huggingface, export_tiktoken):\n"
        "    print(export(tokenizer, export.__name__))\n"
        "    for proof in (lambda: export(tokenizer, 'x', proof=Proof(wanted=True)), lambda: load(export.__name__)):\n"
        "        try:\n            proof()\n"
        "        except ValueError as error:\n            print(error)\n"
    )
    shown = subprocess.run(  # -S: without site-packages, where the libraries are
        [sys.executable, "-S", "-c", program],
        cwd=tmp_path, env=pipeline.environment(pipeline.ROOT), check=True, capture_output=True,
    ).stdout.decode()  # fmt: skip
    assert shown.count("None\n") == 2
    assert shown.count("pip install 'bytepair[export]'") == 3
    assert not (tmp_path / "x").exists()


def test_portable_patterns_stay_short_enough_for_any_file():
    assert all(
        len(portable_regex(Tokenizer([], pattern=name).pattern)) < 120_000
        for name in ("words", "o200k")
    )
