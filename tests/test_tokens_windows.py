"""Windows for training: shapes, reproducible from seed and step alone, each once an epoch."""

import hashlib
import multiprocessing
import os
import pickle
import subprocess
import sys
from collections import Counter
from itertools import islice

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytepair import files, tokens
from bytepair.arrays import npy_header
from bytepair.errors import ArtifactError
from bytepair.windows import Windows, permuted

A, B = "a" * 64, "b" * 64
ORDERS = ("random", "epochs")


def stored(folder, documents, *, vocab_size=70_000, separator_id=69_999):
    tokens.write_tokens(
        folder,
        [(str(number), ids) for number, ids in enumerate(documents)],
        vocab_size=vocab_size,
        separator_id=separator_id,
        tokenizer_sha256=A,
        text_sha256=B,
        text_bytes=40,
        separator_bytes=13,
    )
    return tokens.open(folder)


class InMemory:
    def __init__(self, documents):
        self.ids = np.arange(sum(documents), dtype=np.uint32)  # each id is its own place
        self.starts = np.cumsum([0, *documents])[:-1].astype(np.uint64)


@pytest.fixture
def split(tmp_path):
    return stored(tmp_path / "split", [list(range(1000)), list(range(1000, 1300))])


@pytest.mark.parametrize("order", ORDERS)
def test_what_an_embedding_wants(split, order):
    windows = split.windows(16, batch=4, seed=1, order=order)
    inputs, targets = windows.batch(7)
    for array in (inputs, targets):
        assert array.shape == (4, 16)
        assert array.dtype == np.int64
        assert array.flags.c_contiguous
        assert array.flags.writeable
    assert (inputs[:, 1:] == targets[:, :-1]).all()
    for row, start in enumerate(windows.starts(7)):
        assert inputs[row].tolist() == split.ids[start : start + 16].tolist()
        assert targets[row].tolist() == split.ids[start + 1 : start + 17].tolist()


def test_golden_starts():
    # A change here changes the batches of every run that restarts: never.
    source = InMemory([100_000, 50_000])
    starts = {
        (order, within): Windows(
            source, 8, batch_size=4, seed=42, order=order, within_documents=within
        ).starts(3).tolist()
        for order in ORDERS
        for within in (False, True)
    }  # fmt: skip
    assert starts == GOLDEN


GOLDEN = {
    ("random", False): [111685, 60273, 93470, 15377],
    ("random", True): [60765, 65905, 138694, 83673],
    ("epochs", False): [64736, 135152, 100536, 136576],
    ("epochs", True): [64736, 135160, 100544, 136584],
}


def slow_words(key, number):
    digest = hashlib.shake_256(b"bytepair windows 1 " + key.encode()).digest(8 * number)
    return [
        int.from_bytes(digest[place : place + 8], "little") for place in range(0, 8 * number, 8)
    ]


def slow_permuted(place, size, key):
    """The same permutation in Python's integers, one number at a time."""
    half = next(bits for bits in range(1, 40) if 4**bits >= size)
    while True:
        left, right = place >> half, place % 2**half
        for word in slow_words(key, 8):
            mixed = (right + word) % 2**64
            mixed = (mixed ^ mixed >> 30) * 0xBF58476D1CE4E5B9 % 2**64
            mixed = (mixed ^ mixed >> 27) * 0x94D049BB133111EB % 2**64
            left, right = right, (left ^ mixed ^ mixed >> 31) % 2**half
        place = left * 2**half + right
        if place < size:
            return place


@given(size=st.integers(1, 2**62), seed=st.integers(), step=st.integers(0, 2**40), data=st.data())
def test_the_slow_way_gives_the_same(size, seed, step, data):
    place = data.draw(st.integers(0, size - 1))
    key = f"epochs {seed} {step}"
    assert permuted(np.array([place], np.uint64), size, key) == slow_permuted(place, size, key)
    windows = Windows(InMemory([100]), 9, batch_size=5, seed=seed)
    drawn = [word % 91 for word in slow_words(f"random {seed} {step}", 5)]
    assert windows.starts(step).tolist() == drawn


@pytest.mark.parametrize("order", ORDERS)
def test_a_step_needs_no_history(split, order):
    first = split.windows(5, batch=3, seed=9, order=order)
    forwards = [first.starts(step).tolist() for step in range(200)]
    again = tokens.open(split.folder).windows(5, batch=3, seed=9, order=order)
    assert [again.starts(step).tolist() for step in reversed(range(200))] == forwards[::-1]
    assert [inputs[:, 0].tolist() for inputs, _ in islice(again, 3)] == [
        again.batch(step)[0][:, 0].tolist() for step in range(3)
    ]
    for other in (10, -9, 2**70):
        different = split.windows(5, batch=3, seed=other, order=order)
        assert [different.starts(step).tolist() for step in range(200)] != forwards


def test_the_same_in_another_process_whatever_its_hash_seed(split):
    program = (
        "import sys\n"
        "from bytepair import tokens\n"
        "windows = tokens.open(sys.argv[1]).windows(7, batch=5, seed=3, order=sys.argv[2])\n"
        "print([windows.starts(step).tolist() for step in (0, 99, 10**12)])"
    )
    for order in ORDERS:
        windows = split.windows(7, batch=5, seed=3, order=order)
        expected = [windows.starts(step).tolist() for step in (0, 99, 10**12)]
        run = subprocess.run(
            [sys.executable, "-c", program, split.folder, order],
            env={**os.environ, "PYTHONHASHSEED": "7"}, check=True, capture_output=True,
        )  # fmt: skip
        assert run.stdout.decode().strip() == str(expected)


# Epochs


@given(
    documents=st.lists(st.integers(0, 40), min_size=1, max_size=6),
    length=st.integers(1, 12),
    batch=st.integers(1, 9),
    seed=st.integers(-5, 2**65),
    within=st.booleans(),
)
def test_each_window_once_an_epoch(documents, length, batch, seed, within):
    source = InMemory(documents)
    spans = documents if within else [sum(documents)]
    begin, expected = 0, []
    for size in spans:
        expected += [
            begin + place for place in range(0, size, length) if place + length + 1 <= size
        ]
        begin += size
    arguments = {"batch_size": batch, "seed": seed, "order": "epochs", "within_documents": within}
    if not expected:
        with pytest.raises(ValueError, match="Make it shorter"):
            Windows(source, length, **arguments)
        return
    windows = Windows(source, length, **arguments)
    assert windows.count == len(expected)
    dealt = [start for step in range(3 * len(expected)) for start in windows.starts(step).tolist()]
    for epoch in range(3):
        assert sorted(dealt[epoch * len(expected) :][: len(expected)]) == expected
    if not within:  # every id but the last few is a target once
        targets = sorted(
            windows.source.ids[start + 1 + n] for start in expected for n in range(length)
        )
        assert targets == list(range(1, len(expected) * length + 1))


@given(size=st.integers(1, 3000), key=st.text(max_size=5))
def test_a_permutation(size, key):
    places = np.arange(size, dtype=np.uint64)
    assert sorted(permuted(places, size, key).tolist()) == list(range(size))


def test_epochs_differ_and_mix_well():
    size = 10_007
    places = np.arange(size, dtype=np.uint64)
    orders = [permuted(places, size, f"epochs 1 {epoch}").astype(np.int64) for epoch in range(20)]
    for order in orders:
        # As in a random permutation: neighbours are strangers, and one number stays on average.
        assert abs(np.corrcoef(order[:-1], order[1:])[0, 1]) < 0.05
        assert abs(np.corrcoef(order, places)[0, 1]) < 0.05
        assert (order == np.arange(size)).sum() < 10
    halves = [int((order[: size // 2] < size // 2).sum()) for order in orders]
    assert all(abs(half - size / 4) < 5 * (size / 16) ** 0.5 for half in halves)
    assert len({tuple(order[:10].tolist()) for order in orders}) == 20


@pytest.mark.parametrize("size", [2, 3, 5, 7])
def test_small_permutations_are_not_always_the_same_few(size):
    counted = Counter(
        int(permuted(np.zeros(1, np.uint64), size, f"epochs 0 {epoch}")[0]) for epoch in range(2000)
    )
    expected = 2000 / size
    assert set(counted) == set(range(size))
    assert all(abs(count - expected) < 5 * expected**0.5 for count in counted.values())


# Random windows


def test_random_windows_start_everywhere_equally_often():
    source = InMemory([26])
    windows = Windows(source, 5, batch_size=64, seed=0)
    assert windows.count == 21  # the last of them has its last target at the last id
    counted = Counter(start for step in range(500) for start in windows.starts(step).tolist())
    assert set(counted) == set(range(21))
    expected = 500 * 64 / 21
    assert sum((count - expected) ** 2 / expected for count in counted.values()) < 46  # p 0.001


@given(
    documents=st.lists(st.integers(0, 30), min_size=1, max_size=8),
    length=st.integers(1, 10),
    order=st.sampled_from(ORDERS),
    seed=st.integers(0, 99),
)
def test_windows_within_documents_never_cross_an_edge(documents, length, order, seed):
    source = InMemory(documents)
    edges = {int(start) for start in source.starts[1:]}
    if max(documents) <= length:
        with pytest.raises(ValueError, match="at most"):
            Windows(source, length, batch_size=1, seed=seed, order=order, within_documents=True)
        return
    windows = Windows(source, length, batch_size=16, seed=seed, order=order, within_documents=True)
    for step in range(4):
        for start in windows.starts(step).tolist():
            assert 0 <= start <= len(source.ids) - length - 1
            assert not edges & set(range(start + 1, start + length + 1))


def test_the_separator_is_a_target_of_its_document(tmp_path):
    split = stored(tmp_path / "split", [[1, 2], [3, 4], [5, 6, 7]])
    windows = split.windows(2, batch=3, seed=0, order="epochs", within_documents=True)
    inputs, targets = windows.batch(0)
    assert sorted(inputs.tolist()) == [[1, 2], [3, 4], [5, 6]]
    assert sorted(targets.tolist()) == [[2, 69_999], [4, 69_999], [6, 7]]


# Processes


@pytest.mark.parametrize("order", ORDERS)
def test_pickled_windows_are_a_path(split, order):
    windows = split.windows(16, batch=4, seed=1, order=order, within_documents=True)
    data = pickle.dumps(windows)
    assert len(data) < 2_000
    again = pickle.loads(data)
    assert not again.source.ids.flags.writeable
    for step in (0, 5, 10**9):
        assert np.array_equal(again.batch(step), windows.batch(step))


def test_pickled_tokens_do_not_become_others(split):
    data = pickle.dumps(split)
    stored(split.folder, [[1, 2, 3]])
    with pytest.raises(ArtifactError, match="written again since it was opened"):
        pickle.loads(data)


def test_tokens_in_memory_are_pickled_with_their_ids(split):
    loose = tokens.Tokens(split.ids[:10], split.starts[:1], split.index)
    assert pickle.loads(pickle.dumps(loose)).ids.tolist() == split.ids[:10].tolist()


def totals(windows, steps):
    return [int(windows.batch(step)[0].sum()) for step in steps]


@pytest.mark.filterwarnings("ignore:.*multi-threaded:DeprecationWarning")  # of fork, from 3.12 on
@pytest.mark.parametrize("method", ["fork", "spawn"])
def test_worker_processes_see_the_same(split, method):
    windows = split.windows(16, batch=4, seed=1, order="epochs")
    expected = totals(windows, range(20))
    with multiprocessing.get_context(method).Pool(2) as pool:
        parts = [range(10), range(10, 20)]
        found = pool.starmap(totals, [(windows, part) for part in parts])
    assert [*found[0], *found[1]] == expected


# Large, and wrong


def test_windows_beyond_2_31_tokens(tmp_path):
    length = 2**33 + 17  # sixteen gigabytes that take no room on disk
    split = stored(tmp_path / "split", [[1, 2, 3]], vocab_size=512, separator_id=None)
    record = files.read_record(split.folder / "index.json")
    with (split.folder / "tokens.npy").open("wb") as file:
        file.write(npy_header("<u2", length))
        file.truncate(128 + 2 * length)
    record["tokens"]["length"] = length
    files.write_record(split.folder / "index.json", record)
    split = tokens.open(split.folder, verify=False)
    assert len(split) == length
    random = split.windows(8, batch=64, seed=0)
    assert random.count == length - 8
    assert max(random.starts(0)) > 2**32
    dealt = split.windows(8, batch=64, seed=0, order="epochs")
    assert dealt.count == (length - 1) // 8
    row = int(dealt.starts(0).argmax())
    start = int(dealt.starts(0)[row])
    assert start > 2**32
    with (split.folder / "tokens.npy").open("r+b") as file:
        file.seek(128 + 2 * start)
        file.write(np.arange(9, dtype="<u2").tobytes())
    inputs, targets = dealt.batch(0)
    assert inputs[row].tolist() == list(range(8))
    assert targets[row].tolist() == list(range(1, 9))
    assert (inputs.sum(), targets.sum()) == (28, 36)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"length": 0}, "length must be a whole number from 1 on, but is 0"),
        ({"length": 2.0}, "length must be"),
        ({"batch": 0}, "batch must be"),
        ({"batch": True}, "batch must be"),
        ({"seed": "1"}, "seed must be a whole number, but is '1'"),
        ({"seed": None}, "seed must be"),
        ({"order": "shuffled"}, "order must be 'random' or 'epochs', but is 'shuffled'"),
        ({"length": 1301}, "a window needs 1302 ids in a row, .* at most 1301"),
        ({"length": 1000, "within_documents": True}, None),
        ({"length": 1001, "within_documents": True}, "at most 1001"),
    ],
)
def test_arguments(split, changes, message):
    arguments = {"length": 4, "batch": 2, "seed": 0, **changes}
    if message is None:
        assert split.windows(**arguments).count == 1
        return
    with pytest.raises(ValueError, match=message):
        split.windows(**arguments)


def test_no_step_before_the_first(split):
    with pytest.raises(IndexError, match="step -1: steps are counted from 0"):
        split.windows(4, batch=2, seed=0).batch(-1)


def test_an_empty_split_has_no_window(tmp_path):
    for within in (False, True):
        with pytest.raises(ValueError, match="at most 0"):
            stored(tmp_path / "split", []).windows(1, batch=1, seed=0, within_documents=within)


@pytest.mark.parametrize("order", ORDERS)
def test_torch_takes_them(split, order):
    torch = pytest.importorskip("torch", reason="needs torch: pip install torch")
    windows = split.windows(16, batch=4, seed=1, order=order)
    inputs, targets = (torch.from_numpy(array) for array in windows.batch(0))
    assert inputs.data_ptr() != targets.data_ptr()
    embedded = torch.nn.Embedding(70_000, 2)(inputs)
    assert embedded.shape == (4, 16, 2)
    assert targets.view(-1).shape == (64,)
    for workers, context in ((0, None), (2, "fork"), (2, "spawn")):
        loader = torch.utils.data.DataLoader(
            windows,
            batch_size=None,
            sampler=range(5, 15),
            num_workers=workers,
            multiprocessing_context=context,
        )
        for step, (x, y) in zip(range(5, 15), loader, strict=True):
            expected = windows.batch(step)
            assert x.numpy().tolist() == expected[0].tolist()
            assert y.numpy().tolist() == expected[1].tolist()
