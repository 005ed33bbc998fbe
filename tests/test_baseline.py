import itertools
import json
import math
import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytepair import files
from bytepair.arrays import npy_bytes
from bytepair.baseline import load_baseline, run
from bytepair.errors import ArtifactError, TokenError, TrainingError
from bytepair.ngram import evaluate, train
from bytepair.tokens import open_tokens, write_tokens

A, B, TEXT = "a" * 64, "b" * 64, "c" * 64
NOWHERE = np.array([], np.int64)
ORDERS = [1, 2, 3]


def slow_model(ids, starts, vocab_size, order):
    """The formulas at the top of baseline.py, term by term: gives p(w, h) and the discounts."""
    cuts = sorted({0, *(start for start in starts if start < len(ids)), len(ids)})
    documents = [tuple(ids[start:end]) for start, end in itertools.pairwise(cuts)]
    counts = {
        order: Counter(
            document[at : at + order]
            for document in documents
            for at in range(len(document) - order + 1)
        )
    }
    for below in range(order - 1, 0, -1):
        before = {}
        for token, *rest in counts[below + 1]:
            before.setdefault(tuple(rest), set()).add(token)
        counts[below] = Counter({ngram: len(tokens) for ngram, tokens in before.items()})

    def discount(size):
        n1, n2 = (list(counts[size].values()).count(times) for times in (1, 2))
        return n1 / (n1 + 2 * n2) if n1 > 0 and n2 > 0 else 0.5

    def probability(token, context):
        lower = probability(token, context[1:]) if context else 1 / vocab_size
        level = counts[len(context) + 1]
        after = [count for ngram, count in level.items() if ngram[:-1] == context]
        if not after:
            return lower
        d = discount(len(context) + 1)
        own = max(level[(*context, token)] - d, 0)
        return (own + d * len(after) * lower) / sum(after)

    return probability, tuple(discount(size) for size in range(1, order + 1))


def slow_figures(train_ids, val_ids, order, *, text_bytes):
    probability, _ = slow_model(train_ids, [], 10, order)
    pairs = zip(val_ids, contexts_of(val_ids, [], order), strict=True)
    nats = -math.fsum(math.log(probability(*pair)) for pair in pairs)
    return {
        "bits_per_byte": round(nats / math.log(2) / text_bytes, 6),
        "nats_per_token": round(nats / len(val_ids), 6),
        "perplexity": round(math.exp(nats / len(val_ids)), 6),
    }


def contexts_of(ids, starts, order):
    """What stands before each token, as far back as the order and its document let it see."""
    for at in range(len(ids)):
        start = max([0, *(start for start in starts if start <= at)])
        yield tuple(ids[max(start, at - order + 1) : at])


def probabilities(model, ids, starts=()):
    return np.exp2(model.log2_probabilities(np.array(ids, np.int64), np.array(starts, np.int64)))


def fit(ids, starts=(), **options):
    return train(np.array(ids, np.int64), np.array(starts, np.int64), **options)


# The model


def test_by_hand():
    # Bigrams 01 10 01 10 02: twice, twice, once, so D = 1 / (1 + 2 * 2). Before each id one other
    # was seen: order 1 is uniform, and its discount falls back to 0.5.
    model = fit([0, 1, 0, 1, 0, 2], vocab_size=3, order=2)
    assert model.discounts == (0.5, 0.2)
    after_0 = [probabilities(model, [0, token])[-1] for token in range(3)]
    assert after_0 == pytest.approx(
        [0.2 * 2 / 3 / 3, (1.8 + 0.2 * 2 / 3) / 3, (0.8 + 0.2 * 2 / 3) / 3]
    )
    after_2 = [probabilities(model, [2, token])[-1] for token in range(3)]  # never seen
    assert after_2 == pytest.approx([1 / 3] * 3)


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("vocab_size", [1, 2, 3, 4])
@pytest.mark.parametrize("length", [0, 1, 2, 3, 12, 60])
def test_every_context_sums_to_one_and_follows_the_formulas(order, vocab_size, length):
    # The last id is left out of training, so that contexts with it are unseen.
    ids = np.random.default_rng(length).integers(0, max(vocab_size - 1, 1), length).tolist()
    starts = [0, 2, 2, 7]
    model = fit(ids, starts, vocab_size=vocab_size, order=order)
    slow, discounts = slow_model(ids, starts, vocab_size, order)
    assert model.discounts == discounts
    for size in range(order):
        for context in itertools.product(range(vocab_size), repeat=size):
            after = [probabilities(model, [*context, token])[-1] for token in range(vocab_size)]
            assert after == pytest.approx(
                [slow(token, context) for token in range(vocab_size)], rel=1e-12
            )
            assert math.fsum(after) == pytest.approx(1, abs=1e-12)
            assert min(after) > 0


@given(st.data())
def test_follows_the_formulas_across_documents(data):
    vocab_size, order = data.draw(st.integers(1, 5)), data.draw(st.sampled_from(ORDERS))
    ids = st.lists(st.integers(0, vocab_size - 1), max_size=30)
    starts = st.lists(st.integers(0, 35), max_size=5).map(sorted)
    seen, seen_starts, new, new_starts = (data.draw(part) for part in (ids, starts, ids, starts))
    model = fit(seen, seen_starts, vocab_size=vocab_size, order=order)
    slow, _ = slow_model(seen, seen_starts, vocab_size, order)
    assert probabilities(model, new, new_starts) == pytest.approx(
        [slow(*pair) for pair in zip(new, contexts_of(new, new_starts, order), strict=True)],
        rel=1e-12,
    )


@pytest.mark.parametrize("dtype", [np.uint16, np.uint32, np.int64])
def test_ids_may_be_of_any_integer_type(dtype):
    ids = np.random.default_rng(0).integers(0, 65_536, 500)
    model = train(ids.astype(dtype), NOWHERE.astype(np.uint64), vocab_size=65_536, order=3)
    assert model.ngrams.dtype == model.counts.dtype == np.int64
    assert model.counts.sum() == 498
    first = tuple(int(number) for number in ids[:3])
    assert (first[0] * 65_536 + first[1]) * 65_536 + first[2] in model.ngrams


def test_the_largest_vocabulary_of_order_3():
    highest = 2**21 - 1
    model = fit([highest] * 5, vocab_size=2**21, order=3)
    assert model.ngrams.tolist() == [2**63 - 1]
    assert probabilities(model, [highest] * 5)[-1] > 0.8
    with pytest.raises(TrainingError, match=r"order 3 over 2097153 ids.*Lower `order`"):
        fit([0], vocab_size=2**21 + 1, order=3)


@pytest.mark.parametrize("order", [0, 4, -1])
def test_no_such_order(order):
    with pytest.raises(TrainingError, match=f"order {order} over 5 ids: the order must be 1, 2"):
        fit([0], vocab_size=5, order=order)


def test_max_tokens():
    ids = [0, 1, 2, 0, 1, 2, 0, 0, 0]
    cut = fit(ids, [4], vocab_size=3, order=2, max_tokens=6)
    assert cut.ngrams.tolist() == fit(ids[:6], [4], vocab_size=3, order=2).ngrams.tolist()
    assert cut.counts.sum() == 4
    for max_tokens in (0, -3):
        with pytest.raises(TrainingError, match=f"max_tokens is {max_tokens}"):
            fit(ids, vocab_size=3, order=2, max_tokens=max_tokens)


@pytest.mark.parametrize("ids", [[3], [0, -1], [70_000]])
def test_ids_outside_the_vocabulary(ids):
    with pytest.raises(TokenError, match="but the vocabulary has 0 to 2"):
        fit(ids, vocab_size=3, order=2)
    with pytest.raises(TokenError, match="but the vocabulary has 0 to 2"):
        probabilities(fit([0, 1], vocab_size=3, order=2), ids)


def test_a_million_equal_tokens_cost_nothing():
    ids = np.zeros(1_000_000, np.uint16)
    model = train(ids, NOWHERE, vocab_size=512, order=3)
    assert evaluate(model, ids, NOWHERE, text_bytes=1_000_000)["bits_per_byte"] < 0.001


# Figures


def test_uniform_costs_the_logarithm_of_the_vocabulary():
    uniform = train(NOWHERE, NOWHERE, vocab_size=256, order=1)
    assert evaluate(uniform, np.arange(10), NOWHERE, text_bytes=20) == {
        "bits_per_byte": 4.0,
        "nats_per_token": round(math.log(256), 6),
        "perplexity": 256.0,
    }


@pytest.mark.parametrize("order", ORDERS)
def test_nothing_to_divide_by(order):
    model = train(np.arange(9), NOWHERE, vocab_size=9, order=order)
    nothing = {"bits_per_byte": None, "nats_per_token": None, "perplexity": None}
    assert evaluate(model, NOWHERE, NOWHERE, text_bytes=0) == nothing
    assert evaluate(model, NOWHERE, NOWHERE, text_bytes=4) == nothing | {"bits_per_byte": 0.0}


def test_a_certain_token_costs_a_positive_zero():
    model = train(np.zeros(5, np.int64), NOWHERE, vocab_size=1, order=2)
    figures = evaluate(model, np.zeros(5, np.int64), NOWHERE, text_bytes=5)
    assert json.dumps(figures) == '{"bits_per_byte": 0.0, "nats_per_token": 0.0, "perplexity": 1.0}'


def test_an_order_gains_by_the_context_it_can_see():
    # Each id is the sum of the two before it, but for one in ten: order 3 sees why, 1 and 2 do not.
    random = np.random.default_rng(1)
    ids = [0, 1]
    for _ in range(4000):
        noise = int(random.integers(7)) if random.random() < 0.1 else 0
        ids.append((ids[-1] + ids[-2] + noise) % 7)
    costs = [
        evaluate(
            fit(ids[:3000], vocab_size=7, order=order),
            np.array(ids[3000:]),
            NOWHERE,
            text_bytes=1002,
        )["bits_per_byte"]
        for order in ORDERS
    ]
    assert costs[2] < 1.2 < 2.6 < min(costs[:2])


# Files


def write_split(folder, ids, *, separator_id=9, tokenizer_sha256=A):
    documents = [("first", ids[: len(ids) // 2]), ("second", ids[len(ids) // 2 :])]
    return write_tokens(
        folder,
        documents,
        vocab_size=10,
        separator_id=separator_id,
        tokenizer_sha256=tokenizer_sha256,
        text_sha256=TEXT,
        text_bytes=len(ids) * 2 + 1,
        separator_bytes=1,
    )


@pytest.fixture
def tokens(tmp_path):
    ids = [number * number % 9 for number in range(60)]
    write_split(tmp_path / "tokens" / "train", ids)
    write_split(tmp_path / "tokens" / "val", ids[7:20])
    return tmp_path / "tokens"


@pytest.fixture
def folder(tokens, tmp_path):
    run(tokens, tmp_path / "baseline", order=2)
    return tmp_path / "baseline"


def test_manifest(tokens, tmp_path):
    baseline = run(tokens, tmp_path / "baseline", order=2)
    manifest = files.read_record(tmp_path / "baseline" / "baseline.json")
    assert manifest == baseline.manifest
    hashes = {
        name: files.sha256((tmp_path / "baseline" / f"{name}.npy").read_bytes())
        for name in ("ngrams", "counts")
    }
    length = len(baseline.model.ngrams)
    splits = {
        name: json.loads((tokens / name / "index.json").read_bytes())["tokens"]
        for name in ("train", "val")
    }
    train_ids, val_ids = (
        np.load(tokens / name / "tokens.npy").tolist() for name in ("train", "val")
    )
    assert manifest == {
        "version": 1,
        "tokenizer_sha256": A,
        "vocab_size": 10,
        "order": 2,
        "discounts": [round(number, 6) for number in baseline.model.discounts],
        "train": {"tokens_sha256": splits["train"]["sha256"], "tokens": 61},
        "val": {
            "tokens_sha256": splits["val"]["sha256"],
            **slow_figures(train_ids, val_ids, 2, text_bytes=27),
            "unigram": slow_figures(train_ids, val_ids, 1, text_bytes=27),
            "uniform": slow_figures([], val_ids, 1, text_bytes=27),
        },
        "ngrams": {"length": length, "sha256": hashes["ngrams"]},
        "counts": {"length": length, "sha256": hashes["counts"]},
    }
    assert manifest["val"]["uniform"]["perplexity"] == 10.0


def test_golden_bytes(folder):
    # A change here is a change of format or of the model: say so in the change log.
    assert {path.name: files.sha256(path.read_bytes())[:16] for path in folder.iterdir()} == {
        "ngrams.npy": "1be6cd26b645c6e9",
        "counts.npy": "ca9bc0e0cfd13392",
        "baseline.json": "a56e624111aa6dc3",
    }


def test_running_again_gives_the_same_bytes(tokens, folder):
    first = {path.name: path.read_bytes() for path in folder.iterdir()}
    run(tokens, folder, order=3)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} != first
    run(tokens, folder, order=2)
    assert {path.name: path.read_bytes() for path in folder.iterdir()} == first


@pytest.mark.parametrize("order", ORDERS)
def test_a_loaded_model_is_the_trained_one(tokens, tmp_path, order):
    trained = run(tokens, tmp_path / "b", order=order, max_tokens=40)
    loaded = load_baseline(tmp_path / "b", tokenizer_sha256=A)
    assert loaded.manifest == trained.manifest
    assert loaded.manifest["train"]["tokens"] == 40
    ids = np.arange(10).repeat(2)
    assert np.array_equal(
        loaded.model.log2_probabilities(ids, NOWHERE),
        trained.model.log2_probabilities(ids, NOWHERE),
    )


@pytest.mark.parametrize("separator_id", [9, None])
def test_what_each_token_of_a_split_costs(tmp_path, separator_id):
    for name in ("train", "val"):
        write_split(tmp_path / name, [1, 2, 3, 1, 2, 3, 1], separator_id=separator_id)
    trained = run(tmp_path, tmp_path / "b", order=2)
    bits = trained.bits(open_tokens(tmp_path / "val"))
    assert len(bits) == (7 if separator_id is None else 8)
    assert round(math.fsum(bits) / 15, 6) == trained.manifest["val"]["bits_per_byte"]
    # Without separators the second document starts there, and nothing before it is seen.
    assert (bits[3] == bits[0]) == (separator_id is None)


def test_without_val_the_figures_are_null(tokens, tmp_path):
    for path in (tokens / "val").iterdir():
        path.unlink()
    (tokens / "val").rmdir()
    nothing = {"bits_per_byte": None, "nats_per_token": None, "perplexity": None}
    run(tokens, tmp_path / "b", order=2)
    assert load_baseline(tmp_path / "b", tokenizer_sha256=A).manifest["val"] == {
        "tokens_sha256": None,
        **nothing,
        "unigram": nothing,
        "uniform": nothing,
    }


@pytest.mark.parametrize("documents", [[], [("empty", [])]])
def test_an_empty_val_is_named_but_has_no_figures(tokens, tmp_path, documents):
    index = write_tokens(
        tokens / "val",
        documents,
        vocab_size=10,
        separator_id=9,
        tokenizer_sha256=A,
        text_sha256=TEXT,
        text_bytes=0,
        separator_bytes=0,
    )
    val = run(tokens, tmp_path / "b", order=2).manifest["val"]
    assert val["tokens_sha256"] == index.tokens_sha256
    assert {val["bits_per_byte"], val["perplexity"], val["uniform"]["nats_per_token"]} == {None}


def test_an_empty_train_gives_the_uniform_model(tokens, tmp_path):
    write_split(tokens / "train", [], separator_id=None)
    val = run(tokens, tmp_path / "b", order=2).manifest["val"]
    assert val["perplexity"] == val["unigram"]["perplexity"] == 10.0


def test_contexts_end_at_documents_only_where_no_separator_says_so(tmp_path):
    write_split(tmp_path / "with" / "train", [0, 1, 2, 3])
    write_split(tmp_path / "without" / "train", [0, 1, 2, 3], separator_id=None)
    bigrams = {
        name: run(tmp_path / name, tmp_path / name / "b", order=2).model.ngrams.tolist()
        for name in ("with", "without")
    }
    assert bigrams == {"with": [1, 19, 23, 92], "without": [1, 23]}


def test_splits_of_two_tokenizers(tokens, tmp_path):
    write_split(tokens / "val", [1, 2, 3], tokenizer_sha256=B)
    with pytest.raises(ArtifactError, match=f"val.*{B}.*{A}.*encode-splits"):
        run(tokens, tmp_path / "b", order=2)
    assert not (tmp_path / "b").exists()


def test_another_tokenizer(folder):
    with pytest.raises(ArtifactError, match=rf"baseline\.json.*{A}.*{B}.*dvc repro.*baseline"):
        load_baseline(folder, tokenizer_sha256=B)


@pytest.mark.parametrize("name", ["ngrams.npy", "counts.npy"])
def test_any_flipped_or_missing_byte_is_found(folder, name):
    path = folder / name
    good = path.read_bytes()
    bad = [good[:length] for length in range(len(good))]
    bad += [good[:at] + bytes([good[at] ^ 1]) + good[at + 1 :] for at in range(len(good))]
    for data in bad:
        path.write_bytes(data)
        with pytest.raises(ArtifactError, match=re.escape(str(path))):
            load_baseline(folder, tokenizer_sha256=A)


@pytest.mark.parametrize("name", ["ngrams.npy", "counts.npy", "baseline.json"])
def test_missing_file(folder, name):
    (folder / name).unlink()
    with pytest.raises(ArtifactError, match=f"{re.escape(name)}: no such file"):
        load_baseline(folder, tokenizer_sha256=A)


def edit(folder, key, value):
    path = folder / "baseline.json"
    record = files.read_record(path)
    *parents, last = key.split(".")
    part = record
    for parent in parents:
        part = part[parent]
    part[last] = value
    files.write_record(path, record)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("version", 2, "version must be 1"),
        ("order", 4, "order must be 1, 2 or 3, but is 4"),
        ("order", True, "order must be 1, 2 or 3"),
        ("order", 1, "ngrams.npy: its n-grams are not in order, or impossible"),
        ("order", 3, "discounts are"),
        ("vocab_size", 2**32, "possible n-grams"),
        ("vocab_size", 2, "ngrams.npy: its n-grams are not in order, or impossible"),
        ("discounts", [0.5, 0.5], "discounts are [0.5, 0.5], but counts give"),
        ("discounts", None, "discounts must be a list"),
        ("train", None, "train must be an object"),
        ("train.tokens", -1, "train.tokens must be"),
        ("val.tokens_sha256", "", "val.tokens_sha256 must be a sha256 or null"),
        ("val.bits_per_byte", "1.5", "val.bits_per_byte must be a number from 0 on"),
        ("val.bits_per_byte", -1.5, "val.bits_per_byte must be a number from 0 on"),
        ("val.uniform.perplexity", [], "val.uniform.perplexity must be"),
        ("val.more", 1, "val.more is unknown"),
        ("counts.length", 3, "counts.npy: it has"),
        ("counts.sha256", A, "counts.npy: sha256 is"),
    ],
)
def test_manifest_that_cannot_be_right(folder, key, value, message):
    edit(folder, key, value)
    with pytest.raises(ArtifactError, match=re.escape(message)):
        load_baseline(folder, tokenizer_sha256=A)


@pytest.mark.parametrize(
    ("name", "change", "message"),
    [
        ("ngrams", lambda array: array[::-1], "ngrams.npy: its n-grams are not in order"),
        ("ngrams", lambda array: array - array[0] - 1, "ngrams.npy: its n-grams are not in order"),
        ("counts", lambda array: array - array.min(), "counts.npy: it holds the count 0"),
    ],
)
def test_arrays_that_no_training_gave(folder, name, change, message):
    data = npy_bytes(change(np.load(folder / f"{name}.npy")))
    (folder / f"{name}.npy").write_bytes(data)
    edit(folder, f"{name}.sha256", files.sha256(data))
    with pytest.raises(ArtifactError, match=re.escape(message)):
        load_baseline(folder, tokenizer_sha256=A)
