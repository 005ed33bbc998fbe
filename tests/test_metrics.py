import json
from types import MappingProxyType

import numpy as np
import pytest

from bytepair import baseline, metrics
from bytepair.errors import ArtifactError
from bytepair.intrinsic import renyi_efficiency
from bytepair.metrics import measure, report
from bytepair.tokens import open_tokens, write_tokens

A, TEXT = "a" * 64, "c" * 64
SEPARATOR = b"<|endoftext|>"
# Bytes, then merges, one of them half a character, then specials.
VOCABULARY = [
    *(bytes([value]) for value in range(256)),
    b"th",
    b"the",
    b" \xe2\x80",
    "é".encode(),
    SEPARATOR,
    b"<longest special of all>",
]
SIZE = len(VOCABULARY)
SEPARATOR_ID = 260
DOCUMENTS = MappingProxyType(
    {
        "train": [("one", [257, 32, 99]), ("none", []), ("two", [258, 259])],
        "val": [("three", [257, 257])],
        "test": [("four", [259]), ("five", [256, 101, 32])],
    }
)
TRAIN_BYTES = 5 + 0 + 5 + 2 * len(SEPARATOR)


@pytest.fixture
def write(tmp_path):
    def write(
        name,
        documents=None,
        *,
        separator_bytes=len(SEPARATOR),
        text_bytes=None,
        separator_id=SEPARATOR_ID,
    ):
        documents = DOCUMENTS[name] if documents is None else documents
        if text_bytes is None:
            text_bytes = separator_bytes * max(len(documents) - 1, 0)
            text_bytes += sum(len(VOCABULARY[number]) for _, ids in documents for number in ids)
        write_tokens(
            tmp_path / "tokens" / name,
            documents,
            vocab_size=SIZE,
            separator_id=separator_id,
            tokenizer_sha256=A,
            text_sha256=TEXT,
            text_bytes=text_bytes,
            separator_bytes=separator_bytes,
        )
        return open_tokens(tmp_path / "tokens" / name)

    return write


@pytest.fixture
def splits(write):
    return {name: write(name) for name in ("test", "train", "val")}


def measured(splits, **options):
    defaults = {"requested": 300, "show_test": True}
    return measure(splits, VOCABULARY, **(defaults | options))


def reported(splits, **options):
    defaults = {"special_ids": {260, 261}, "show_test": True}
    return report(splits, VOCABULARY, **(defaults | options))


def test_measure(splits):
    figures = measured(splits)
    assert figures == {
        "train": {"bytes": TRAIN_BYTES, "tokens": 7, "bytes_per_token": 5.142857},
        "val": {
            "bytes": 6,
            "tokens": 2,
            "bytes_per_token": 3.0,
            "fertility": 2.0,
            "renyi_efficiency": 0.0,
        },
        "test": {"bytes": 19, "tokens": 5, "bytes_per_token": 3.8},
        "vocab": {"requested": 300, "size": SIZE, "unused_on_train": SIZE - 6},
    }
    assert list(figures) == ["train", "val", "test", "vocab"]


def test_the_test_split_is_hidden_but_checked(write, splits):
    assert list(measured(splits, show_test=False)) == ["train", "val", "vocab"]
    splits["test"] = write("test", text_bytes=18)
    with pytest.raises(ArtifactError, match="test: its tokens"):
        measured(splits, show_test=False)


def test_only_splits_that_exist(splits):
    assert list(measured({"train": splits["train"]})) == ["train", "vocab"]
    figures = measured({"val": splits["val"]})
    assert list(figures) == ["val", "vocab"]
    assert figures["vocab"]["unused_on_train"] is None


def test_an_empty_split(write):
    for documents in ([], [("empty", [])]):
        figures = measured({"train": write("train", documents)})
        assert figures["train"] == {"bytes": 0, "tokens": 0, "bytes_per_token": None}
        assert figures["vocab"]["unused_on_train"] == SIZE


def test_bits_per_byte_is_what_the_baseline_says(splits, tmp_path):
    trained = baseline.run(tmp_path / "tokens", tmp_path / "baseline", order=2)
    loaded = baseline.load_baseline(tmp_path / "baseline", tokenizer_sha256=A)
    assert loaded.manifest == trained.manifest
    figures = measured(splits, baseline=loaded)
    assert list(figures["val"]) == [
        "bytes", "tokens", "bytes_per_token", "bits_per_byte", "fertility", "renyi_efficiency",
    ]  # fmt: skip
    assert figures["val"]["bits_per_byte"] == loaded.manifest["val"]["bits_per_byte"] > 0
    assert list(measured({"train": splits["train"]}, baseline=loaded)) == ["train", "vocab"]


def test_a_baseline_of_other_tokens(splits, write, tmp_path):
    loaded = baseline.run(tmp_path / "tokens", tmp_path / "baseline", order=2)
    old = splits["val"].index.tokens_sha256
    splits["val"] = write("val", [("three", [257, 32])])
    new = splits["val"].index.tokens_sha256
    for figures in (measured, reported):
        with pytest.raises(ArtifactError, match=f"val.*{new}.*{old}.*baseline must run"):
            figures(splits, baseline=loaded)


# The books


@pytest.mark.parametrize("change", [-1, 1, 2])
@pytest.mark.parametrize("name", ["train", "val", "test"])
def test_books_that_do_not_balance(splits, write, name, change):
    right = splits[name].index.text_bytes
    splits[name] = write(name, text_bytes=right + change)
    gaps = len(DOCUMENTS[name]) - 1
    with pytest.raises(ArtifactError) as caught:
        measured(splits)
    assert str(caught.value) == (
        f"{name}: its tokens and {gaps} separators stand for {right} bytes, but its text has "
        f"{right + change}. Run `dvc repro` to encode it again."
    )


def test_separators_count_by_the_corpus_not_by_the_token(write):
    # chat-1024: <eos> in the array stands for the corpus's <|endoftext|>, and the other way round.
    tokens = write("train", text_bytes=10 + 2 * 3, separator_bytes=3)
    assert measured({"train": tokens})["train"]["bytes"] == 16


def test_separators_that_the_tokens_leave_out(write):
    tokens = write("train", separator_id=None)
    assert measured({"train": tokens})["train"] == {
        "bytes": TRAIN_BYTES,
        "tokens": 5,
        "bytes_per_token": 7.2,
    }


def test_broken_characters_count_as_their_bytes(write):
    # U+FFFD has three bytes, so a count through decode would be 3 here.
    tokens = write("val", [("half", [0xE2]), ("other", [0x80, 0x9C])])
    assert measured({"val": tokens})["val"]["bytes"] == 3 + len(SEPARATOR)


def test_another_vocabulary(splits):
    with pytest.raises(ArtifactError, match=f"train.*vocabulary of {SIZE}, but {SIZE - 1} tokens"):
        measure(splits, VOCABULARY[:-1], requested=1, show_test=True)


def test_many_blocks(write, monkeypatch):
    monkeypatch.setattr("bytepair.metrics.BLOCK", 2)
    tokens = write("train", [("long", [257, 97, 98] * 7)])
    figures = measured({"train": tokens})
    assert figures["train"] == {"bytes": 35, "tokens": 21, "bytes_per_token": 1.666667}
    assert figures["vocab"]["unused_on_train"] == SIZE - 3


# The report


def test_report(splits):
    lists = reported(splits)
    assert list(lists) == [
        "longest_tokens", "unused_on_train", "intrinsic", "documents", "val_cost",
    ]  # fmt: skip
    assert lists["val_cost"] is None
    assert lists["longest_tokens"][:5] == [
        {"id": 257, "text": "the"},
        {"id": 258, "text": r" \xe2\x80"},
        {"id": 256, "text": "th"},
        {"id": 259, "text": "é"},
        {"id": 0, "text": "\x00"},
    ]
    assert len(lists["longest_tokens"]) == 20
    used = {257, 32, 99, 258, 259, SEPARATOR_ID}
    assert lists["unused_on_train"] == [number for number in range(SIZE) if number not in used]
    assert lists["documents"] == {
        "train": [
            {"name": "one", "bytes": 5, "tokens": 3, "bytes_per_token": 1.666667},
            {"name": "none", "bytes": 0, "tokens": 0, "bytes_per_token": None},
            {"name": "two", "bytes": 5, "tokens": 2, "bytes_per_token": 2.5},
        ],
        "val": [{"name": "three", "bytes": 6, "tokens": 2, "bytes_per_token": 3.0}],
        "test": [
            {"name": "four", "bytes": 2, "tokens": 1, "bytes_per_token": 2.0},
            {"name": "five", "bytes": 4, "tokens": 3, "bytes_per_token": 1.333333},
        ],
    }
    assert list(lists["intrinsic"]) == ["train", "val", "test"]
    # `the c` and ` <e2><80>é`, with an empty document and two separators.
    assert lists["intrinsic"]["train"] == {
        "words": 3,
        "fertility": 1.666667,
        "renyi_efficiency": renyi_efficiency(np.bincount([257, 32, 99, 260, 260, 258, 259], minlength=SIZE)),
        "share_used": round(6 / SIZE, 6),
        "seen_fewer_than": [
            {"times": 1, "tokens": SIZE - 6}, *({"times": n, "tokens": SIZE} for n in (5, 20, 100)),
        ],
    }  # fmt: skip
    json.dumps(lists, allow_nan=False)


def test_of_many_documents_the_hardest_are_listed(splits, write, monkeypatch):
    monkeypatch.setattr(metrics, "LISTED", 5)
    monkeypatch.setattr(metrics, "HARDEST", 3)
    documents = [("a", [257]), ("b", [97, 98]), ("none", []), ("c", [97, 257]), ("d", [98])]
    for more, expected in (
        ([], ["a", "b", "none", "c", "d"]),
        ([("e", [256])], ["b", "c", "d"]),  # of 1, 2 and 1 bytes a token; e has 2, too
    ):
        lists = reported(splits | {"train": write("train", documents + more)})
        assert [entry["name"] for entry in lists["documents"]["train"]] == expected


def test_report_without_test_or_train(splits):
    lists = reported(splits, special_ids=(), show_test=False)
    assert list(lists["documents"]) == list(lists["intrinsic"]) == ["train", "val"]
    assert lists["longest_tokens"][0] == {"id": 261, "text": "<longest special of all>"}
    del splits["train"]
    lists = reported(splits, special_ids=(), show_test=False)
    assert lists["unused_on_train"] is None


def test_report_of_what_the_baseline_pays(splits, write, tmp_path):
    splits["val"] = write("val", [("many", [257, 32, 99] * 1_000)])
    trained = baseline.run(tmp_path / "tokens", tmp_path / "baseline", order=2)
    cost = reported(splits, baseline=trained)["val_cost"]
    assert cost["text_sha256"] == TEXT
    assert cost["block_bytes"] == [512] * 9 + [392]
    assert sum(cost["block_bits"]) == pytest.approx(trained.bits(splits["val"]).sum())
    assert cost["low"] <= cost["bits_per_byte"] <= cost["high"]
    assert cost["bits_per_byte"] == trained.manifest["val"]["bits_per_byte"]
    del splits["val"]
    assert reported(splits, baseline=trained)["val_cost"] is None


@pytest.mark.parametrize("documents", [[], [("empty", [])]])
def test_report_of_an_empty_val(splits, write, tmp_path, documents):
    splits["val"] = write("val", documents)
    trained = baseline.run(tmp_path / "tokens", tmp_path / "baseline", order=2)
    cost = reported(splits, baseline=trained)["val_cost"]
    assert (cost["bits_per_byte"], cost["block_bits"]) == (None, [0.0])
