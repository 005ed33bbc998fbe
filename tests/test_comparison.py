import dataclasses
import hashlib
import json

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytepair import Tokenizer, comparison, files
from bytepair.baseline import run
from bytepair.comparison import Costs, Estimate, compare, cost_by_block, load_costs
from bytepair.errors import ArtifactError
from bytepair.layout import TokenizerPaths
from bytepair.ngram import train
from bytepair.tokens import Tokens, TokensIndex, open_tokens

A, B, TEXT = "a" * 64, "b" * 64, "c" * 64
VOCABULARY = (b"a", b"bc", b"def", b"ghijklm", b"<sep>")
SEPARATOR_ID = 4


def make(documents, *, separator_id=SEPARATOR_ID, separator_bytes=5, vocabulary=VOCABULARY):
    """Tokens in memory, as open_tokens would give them."""
    ids, starts, size = [], [], 0
    for number, document in enumerate(documents):
        if number:
            ids += [] if separator_id is None else [separator_id]
            size += separator_bytes
        starts.append(len(ids))
        ids += document
        size += sum(len(vocabulary[number]) for number in document)
    index = TokensIndex(
        tokenizer_sha256=A,
        text_sha256=TEXT,
        text_bytes=size,
        separator_bytes=separator_bytes,
        vocab_size=len(vocabulary),
        separator_id=separator_id,
        dtype="<u2",
        length=len(ids),
        tokens_sha256=A,
        documents_sha256=A,
        names=tuple(map(str, range(len(documents)))),
    )
    return Tokens(np.array(ids, np.uint16), np.array(starts, np.uint64), index)


def costs(bits, *, size=512, text=TEXT):
    return Costs(text, np.full(len(bits), size), np.array(bits, np.float64))


def noise(blocks, *, seed, scale=100.0):
    return np.random.default_rng(seed).normal(1_000, scale, blocks).round(6)


def as_tuple(estimate):
    return estimate.value, estimate.low, estimate.high


def width(estimate):
    return estimate.high - estimate.low


# The interval


def slow_estimate(bits, sizes):
    """One block after another, in Python's integers and exact sums."""
    count = len(bits)
    stream = hashlib.shake_256(b"bytepair").digest(4 * 1_000 * count)
    words = [int.from_bytes(stream[at : at + 4], "little") for at in range(0, len(stream), 4)]
    figures = []
    for resample in range(1_000):
        drawn = [word * count // 2**32 for word in words[resample * count :][:count]]
        figures.append(sum(bits[at] for at in drawn) / sum(sizes[at] for at in drawn))
    figures.sort()
    low, *_, high = figures[25:-25]  # what is left is 95 % of them
    return round(sum(bits) / sum(sizes), 6), round(low, 6), round(high, 6)


@pytest.mark.parametrize("blocks", [10, 11, 102, 300])
def test_equals_the_slow_and_obvious_way(blocks):
    bits, sizes = noise(blocks, seed=blocks), np.full(blocks, 512)
    sizes[-1] = 77
    estimate = Costs(TEXT, sizes, bits).estimate()
    assert as_tuple(estimate) == slow_estimate(bits.tolist(), sizes.tolist())


def test_golden_draws():
    """A change here changes every interval that was ever published."""
    drawn = comparison._draw(102)
    assert drawn[0, :12].tolist() == [13, 63, 49, 68, 95, 78, 70, 1, 79, 52, 21, 17]
    digest = hashlib.sha256(drawn.astype("<i8").tobytes()).hexdigest()
    assert digest[:16] == "abf4cc22c1c8a8e6"


@pytest.mark.parametrize("blocks", [1, 2, 10, 999, 1_000])
def test_draws_favour_no_block(blocks):
    drawn = comparison._draw(blocks)
    assert drawn.shape == (1_000, blocks)
    often = np.bincount(drawn.ravel(), minlength=blocks)
    assert len(often) == blocks
    assert abs(often - 1_000).max() < 5 * 1_000**0.5  # five standard errors


def test_the_same_on_every_run():
    first, second = (costs(noise(50, seed=1)).record() for _ in range(2))
    assert files.dump_json(first) == files.dump_json(second)


def test_covers_the_figure_and_shrinks_with_more_blocks():
    estimates = [costs(noise(blocks, seed=blocks)).estimate() for blocks in (25, 100, 400)]
    for estimate in estimates:
        assert estimate.low < estimate.value < estimate.high
    wide, middle, narrow = map(width, estimates)
    assert 1.5 < wide / middle < 2.5
    assert 1.5 < middle / narrow < 2.5


def test_holds_the_truth_nineteen_times_in_twenty():
    held = 0
    for seed in range(300):
        estimate = costs(noise(100, seed=seed)).estimate()
        held += estimate.low <= 1_000 / 512 <= estimate.high
    assert 0.91 <= held / 300 <= 0.98


def test_blocks_weigh_by_their_bytes():
    sizes = np.array([512] * 20 + [1])
    bits = np.append(np.full(20, 1_024.0), 50.0)
    estimate = Costs(TEXT, sizes, bits).estimate()
    assert estimate.value == round((20 * 1_024 + 50) / (20 * 512 + 1), 6)
    assert estimate.low == 2.0  # drawn without the last


@pytest.mark.parametrize("blocks", [1, 9])
def test_too_few_blocks_for_an_interval(blocks):
    assert costs([1_024.0] * blocks).estimate() == Estimate(2.0, None, None)
    assert costs([1_024.0] * 10).estimate() == Estimate(2.0, 2.0, 2.0)


def test_no_bytes_no_figure():
    nothing = cost_by_block(make([]), np.array([]), VOCABULARY)
    assert nothing.estimate() == Estimate(None, None, None)
    separators = make([[], []], separator_bytes=0)  # a token, and still no bytes
    assert cost_by_block(separators, np.array([3.0]), VOCABULARY).estimate().value is None


# The difference of two


def test_nothing_differs_from_itself():
    same = costs(noise(60, seed=3))
    assert compare(same, same) == Estimate(0.0, 0.0, 0.0)
    assert not compare(same, same).excludes_zero
    assert json.dumps(compare(same, same).value) == "0.0"


def test_a_difference_below_the_noise_of_either_is_found():
    passages, own = noise(100, seed=1), noise(100, seed=2, scale=5) - 1_000
    better, worse = costs(passages), costs(passages + own + 5)
    apart = [one.estimate() for one in (better, worse)]
    assert apart[0].high > apart[1].low  # by themselves they cannot be told apart
    difference = compare(better, worse)
    assert difference.excludes_zero
    assert difference.low < -5 / 512 < difference.high < 0
    assert width(difference) < width(apart[0]) / 10


def test_chance_is_not_taken_for_a_difference():
    found = sum(
        compare(costs(noise(100, seed=seed)), costs(noise(100, seed=seed + 500))).excludes_zero
        for seed in range(200)
    )
    assert found / 200 <= 0.1


def test_turned_round_it_is_the_same_with_the_other_sign():
    first, second = costs(noise(40, seed=1)), costs(noise(40, seed=2))
    value, low, high = as_tuple(compare(first, second))
    assert as_tuple(compare(second, first)) == (-value, -high, -low)


def test_without_an_interval_nothing_is_claimed():
    assert not compare(costs([900.0] * 9), costs([1.0] * 9)).excludes_zero


def test_two_texts_cannot_be_compared():
    with pytest.raises(ArtifactError, match=rf"{A} and {B}, cannot be compared.*one corpus"):
        compare(costs([1.0] * 20, text=A), costs([1.0] * 20, text=B))
    with pytest.raises(ArtifactError, match="blocks in two ways, 20 and 21 of them.*dvc repro"):
        compare(costs([1.0] * 20), costs([1.0] * 21))


# Blocks


def test_a_token_counts_in_the_block_in_which_it_begins(monkeypatch):
    monkeypatch.setattr(comparison, "BLOCK_BYTES", 4)
    # abcdefghijklmabc in blocks of four: the tokens begin at 0, 1, 3, 6, 13 and 14
    found = cost_by_block(make([[0, 1, 2, 3, 0, 1]]), 2.0 ** np.arange(6), VOCABULARY)
    assert found.block_bytes.tolist() == [4, 4, 4, 4]
    assert found.block_bits.tolist() == [7.0, 8.0, 0.0, 48.0]
    assert found.text_sha256 == TEXT


def test_blocks_grow_with_the_text():
    vocabulary = [b"x" * 1_000]
    tokens = make([[0] * 2_000], separator_id=None, vocabulary=vocabulary)
    found = cost_by_block(tokens, np.ones(2_000), vocabulary)
    assert found.block_bytes.tolist() == [2_000] * 1_000
    assert set(found.block_bits.tolist()) == {2.0}


def slow_costs(tokens, bits, *, block_bytes, many):
    """Walk through the text; a block is opened where one is due and may begin."""
    index, starts = tokens.index, tokens.starts.tolist()
    places, at = [], 0  # (byte, bits or None for the start of a document)
    for number, (_, document) in enumerate(tokens.documents()):
        if number:
            if index.separator_id is not None:
                places.append((at, bits[starts[number] - 1]))
            at += index.separator_bytes
        places.append((at, None))
        for offset, token in enumerate(document.tolist()):
            places.append((at, bits[starts[number] + offset]))
            at += len(VOCABULARY[token])
    edges = list(range(0, max(at, 1), block_bytes))
    if len(starts) >= many:
        begun = [place for place, cost in places if cost is None]
        edges = sorted({max(place for place in begun if place <= edge) for edge in edges})
    sums = [0.0] * len(edges)
    for place, cost in places:
        block = max(number for number, edge in enumerate(edges) if edge <= place)
        sums[block] += cost or 0.0
    return [end - start for start, end in zip(edges, [*edges[1:], at], strict=True)], sums


@given(
    documents=st.lists(st.lists(st.integers(0, 3), max_size=12), min_size=1, max_size=8),
    separator_id=st.sampled_from([None, SEPARATOR_ID]),
    separator_bytes=st.integers(0, 6),
    block_bytes=st.integers(1, 9),
    many=st.integers(1, 9),
)
def test_equals_a_walk_through_the_text(
    documents, separator_id, separator_bytes, block_bytes, many
):
    tokens = make(documents, separator_id=separator_id, separator_bytes=separator_bytes)
    bits = np.arange(1.0, len(tokens) + 1)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(comparison, "BLOCK_BYTES", block_bytes)
        patch.setattr(comparison, "MANY_DOCUMENTS", many)
        found = cost_by_block(tokens, bits, VOCABULARY)
    sizes, sums = slow_costs(tokens, bits.tolist(), block_bytes=block_bytes, many=many)
    assert found.block_bytes.tolist() == sizes
    assert found.block_bits.tolist() == sums
    assert found.block_bits.sum() == bits.sum()
    assert found.block_bytes.sum() == tokens.index.text_bytes


def test_two_tokenizers_have_the_same_blocks():
    texts = [f"document {number}: " + "low lower lowest " * number for number in range(40)]
    small, large = (
        Tokenizer.train(texts, vocab_size=size, pattern=pattern, special_tokens=special)
        for size, pattern, special in ((258, "words", ["<|sep|>"]), (290, None, []))
    )
    found = []
    for tok in (small, large):
        tokens = make(
            [tok.encode(text) for text in texts],
            separator_id=tok.special_tokens.get("<|sep|>"),
            separator_bytes=3,
            vocabulary=tok.vocab,
        )
        found.append(cost_by_block(tokens, np.ones(len(tokens)), tok.vocab))
    sizes = found[0].block_bytes.tolist()
    assert sizes == found[1].block_bytes.tolist()
    assert sum(sizes) == len("".join(texts)) + 39 * 3
    assert compare(*found).excludes_zero


def test_another_vocabulary():
    with pytest.raises(ArtifactError, match="vocabulary of 5, but 4 tokens were given"):
        cost_by_block(make([[0]]), np.ones(1), VOCABULARY[:-1])


# Files


def test_what_is_recorded_is_read_again(tmp_path):
    written = costs(noise(30, seed=4))
    record = written.record()
    assert list(record) == [
        "text_sha256", "bits_per_byte", "low", "high", "block_bytes", "block_bits",
    ]  # fmt: skip
    assert (record["bits_per_byte"], record["low"], record["high"]) == as_tuple(written.estimate())
    files.write_json(tmp_path / "measures.json", {"more": 1, "val_cost": record})
    read = load_costs(tmp_path / "measures.json")
    assert read.record() == record
    assert compare(read, written) == Estimate(0.0, 0.0, 0.0)


@pytest.mark.parametrize("value", [{}, {"val_cost": None}, [], 1])
def test_a_file_without_costs(tmp_path, value):
    files.write_json(tmp_path / "measures.json", value)
    with pytest.raises(ArtifactError, match=r"measures\.json: no val_cost in it\. Name a file"):
        load_costs(tmp_path / "measures.json")


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("text_sha256", "c", "val_cost.text_sha256 must be 64 lower-case hex digits"),
        ("low", "1", "val_cost.low must be a number or null"),
        ("block_bytes", [512, -1], "val_cost.block_bytes must be a list of whole numbers"),
        ("block_bytes", None, "val_cost.block_bytes must be a list of whole numbers"),
        ("block_bits", [1.0, True], "val_cost.block_bits must be a list of numbers"),
        ("block_bits", [1.0, -1.0], "val_cost.block_bits must be a list of numbers"),
        ("block_bits", [1.0], "val_cost has 2 block_bytes, but 1 block_bits"),
        ("more", 1, "val_cost.more is unknown"),
    ],
)
def test_costs_that_cannot_be_right(tmp_path, key, value, message):
    path = tmp_path / "measures.json"
    files.write_json(path, {"val_cost": {**costs([1.0, 2.0]).record(), key: value}})
    with pytest.raises(ArtifactError, match=message):
        load_costs(path)


# The shipped tokenizers


@pytest.fixture(scope="module")
def published(project, tmp_path_factory):
    """What the baseline of any order pays for val, by name and order."""

    def cost(name, order):
        paths = TokenizerPaths(project, name)
        baseline = run(paths.tokens, tmp_path_factory.mktemp(name), order=order)
        val = open_tokens(paths.tokens / "val")
        found = cost_by_block(val, baseline.bits(val), Tokenizer.load(paths.bpe).vocab)
        assert found.estimate().value == baseline.manifest["val"]["bits_per_byte"]
        return found

    return cost


@pytest.mark.parametrize(
    ("name", "blocks", "by_order"),
    [
        (
            "sample-512", 15,
            [(3.629638, 3.516307, 3.748644), (2.763607, 2.637982, 2.888249),
             (2.553749, 2.419584, 2.680969)],
        ),
        (
            "sherlock-512", 102,
            [(3.443776, 3.418342, 3.468953), (2.403338, 2.377116, 2.429106),
             (1.979539, 1.953495, 2.005869)],
        ),
        (
            "chat-1024", 102,
            [(3.053846, 3.021836, 3.083506), (2.126563, 2.099059, 2.154245),
             (1.919943, 1.893447, 1.94655)],
        ),
        (
            "notebook-316", 218,
            [(4.412007, 4.387075, 4.435855), (3.726218, 3.688138, 3.76415),
             (3.569261, 3.527488, 3.609655)],
        ),
    ],
)  # fmt: skip
def test_bits_per_byte_of_the_shipped_tokenizers(published, name, blocks, by_order):
    found = [published(name, order) for order in (1, 2, 3)]
    assert {len(one.block_bits) for one in found} == {blocks}
    assert [as_tuple(one.estimate()) for one in found] == by_order


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (1, (0.38993, 0.372952, 0.40677)),
        (2, (0.276775, 0.265048, 0.288038)),
        (3, (0.059596, 0.052536, 0.066853)),
    ],
)
def test_sherlock_512_pays_more_than_chat_1024(published, order, expected):
    difference = compare(published("sherlock-512", order), published("chat-1024", order))
    assert as_tuple(difference) == expected
    assert difference.excludes_zero


def test_measure_writes_the_costs_of_its_baseline(project):
    paths = TokenizerPaths(project, "sherlock-512")
    metrics = json.loads(paths.metrics.read_bytes())
    assert load_costs(paths.measures).estimate().value == metrics["val"]["bits_per_byte"]
    with pytest.raises(ArtifactError, match="cannot be compared"):
        compare(
            load_costs(paths.measures), load_costs(TokenizerPaths(project, "sample-512").measures)
        )


# The measurements behind the choices in comparison.py


@pytest.mark.parametrize(
    ("name", "widths"),
    [("sherlock-512", [0.043, 0.052, 0.052]), ("notebook-316", [0.058, 0.082, 0.091])],
)
def test_longer_blocks_give_wider_intervals(published, monkeypatch, name, widths):
    monkeypatch.setattr(comparison, "MOST_BLOCKS", 10**9)
    found = []
    for block_bytes in (16, 512, 1_024):
        monkeypatch.setattr(comparison, "BLOCK_BYTES", block_bytes)
        found.append(round(width(published(name, 3).estimate()), 3))
    assert found == widths


def unseen_stories(project, name):
    """What a model trained on the first two stories of train pays for the other eight."""
    paths = TokenizerPaths(project, name)
    tokens, vocabulary = open_tokens(paths.tokens / "train"), Tokenizer.load(paths.bpe).vocab
    seen, starts = int(tokens.starts[2]), tokens.starts[:0]
    model = train(tokens.ids[:seen], starts, vocab_size=len(vocabulary), order=3)
    rest = dataclasses.replace(
        tokens, ids=tokens.ids[seen:], starts=tokens.starts[2:] - tokens.starts[2]
    )
    size = sum(len(vocabulary[number]) for number in rest.ids.tolist())
    size += 7 * (rest.index.separator_bytes - len(vocabulary[rest.index.separator_id]))
    rest = dataclasses.replace(rest, index=dataclasses.replace(rest.index, text_bytes=size))
    return cost_by_block(rest, -model.log2_probabilities(rest.ids, starts), vocabulary)


def holds(estimates, truth):
    return sum(estimate.low <= truth <= estimate.high for estimate in estimates), len(estimates)


def test_intervals_on_stories_that_were_not_seen(project, monkeypatch):
    monkeypatch.setattr(comparison, "FEWEST_BLOCKS", 1)
    small, large = (unseen_stories(project, name) for name in ("sherlock-512", "chat-1024"))

    def pieces(whole, blocks):
        for at in range(0, len(whole.block_bits) - blocks + 1, blocks):
            sizes, bits = whole.block_bytes[at:][:blocks], whole.block_bits[at:][:blocks]
            yield Costs(TEXT, sizes, bits)

    def differences(blocks):
        pairs = zip(pieces(small, blocks), pieces(large, blocks), strict=True)
        return holds([compare(*pair) for pair in pairs], compare(small, large).value)

    own = holds([piece.estimate() for piece in pieces(small, 50)], small.estimate().value)
    assert own == (10, 14)
    assert [differences(blocks) for blocks in (4, 8, 10, 50)] == [
        (142, 181), (76, 90), (66, 72), (14, 14),
    ]  # fmt: skip
