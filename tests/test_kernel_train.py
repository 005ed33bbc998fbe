"""Training with the kernel: equal to the Python core, at the edges, in time."""

import os
import random
import subprocess
import sys
import time
from array import array
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bytepair import ChunkCounts, kernel, reference
from bytepair.kernel.train import train as train_in_kernel
from bytepair.packed import PackedCounts
from bytepair.training import Training, train, train_in_python
from test_training import chunk_counts

needs_kernel = pytest.mark.skipif(kernel.library() is None, reason="the kernel is not built")


def both(counts, *, merges, min_count=2):
    """What the kernel finds, after comparing it with what the Python core finds."""
    found = train_in_kernel(counts, merges=merges, min_count=min_count)
    assert found is not None
    trace = Training(*found)
    assert trace == train_in_python(counts, merges=merges, min_count=min_count)
    return trace


@needs_kernel
@settings(max_examples=2000, deadline=None)
@given(chunk_counts(), st.integers(0, 40), st.integers(1, 4))
def test_the_kernel_equals_the_python_core_and_the_reference(counts, merges, min_count):
    trace = both(counts, merges=merges, min_count=min_count)
    assert trace.merges == reference.train(counts, merges=merges, min_count=min_count)


@settings(max_examples=500, deadline=None)
@given(chunk_counts(), st.integers(0, 40), st.integers(1, 4))
def test_the_python_core_equals_the_reference(counts, merges, min_count):
    trace = train_in_python(counts, merges=merges, min_count=min_count)
    assert trace.merges == reference.train(counts, merges=merges, min_count=min_count)


# Any bytes, and counts on both sides of 32 bits: those above need the kernel's wide text.
any_counts = st.dictionaries(
    st.binary(min_size=1, max_size=20),
    st.sampled_from([1, 2, 3, 1000, 2**32 - 1, 2**32, 2**40, 2**55]) | st.integers(1, 2**50),
    min_size=1,
    max_size=20,
)


@needs_kernel
@settings(max_examples=1000, deadline=None)
@given(any_counts, st.integers(0, 300), st.integers(1, 2**33))
def test_any_bytes_and_any_counts(counts, merges, min_count):
    both(counts, merges=merges, min_count=min_count)


@needs_kernel
@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="ab", min_size=500, max_size=1500), st.integers(1, 3), st.booleans())
def test_one_long_chunk(text, min_count, wide):
    both({text.encode(): 2**33 if wide else 1}, merges=1000, min_count=min_count)


@needs_kernel
@pytest.mark.parametrize("pattern", ["gpt2-ascii", None])
@pytest.mark.parametrize("corpus", ["pg1661.txt", "tinyshakespeare.txt"])
def test_corpora(corpus, pattern, corpus_cache):
    text = corpus_cache(corpus).read_text(encoding="utf-8")
    counts = ChunkCounts.count([text], pattern=pattern).counts
    trace = both(counts, merges=8192)
    for merges in (512, 1024):  # other sizes guess other thresholds
        merges_alone, pair_counts, lengths = train_in_kernel(counts, merges=merges, min_count=2)
        assert merges_alone == trace.merges[:merges]
        assert pair_counts == trace.pair_counts[:merges]
        assert lengths == trace.lengths[: merges + 1]


@needs_kernel
@pytest.mark.parametrize("min_count", [1, 2, 5])
def test_a_guess_that_was_too_high_is_taken_back(min_count):
    """The threshold is raised while counts are high; then they fall to almost nothing."""
    chunks = [bytes([first, second]) for first in range(100) for second in range(100, 110)]
    counts = dict.fromkeys(chunks[:100], 10**6) | dict.fromkeys(chunks[100:], 5)
    counts[b"\xf0\xf1\xf2\xf3"] = 1
    trace = both(counts, merges=2000, min_count=min_count)
    assert len(trace.merges) == (1003 if min_count == 1 else 1000)


@needs_kernel
def test_more_ids_than_16_bits_hold():
    chooser = random.Random(1)
    counts = {chooser.randbytes(8): 1 + chooser.randrange(3) for _ in range(14_000)}
    trace = both(counts, merges=70_000, min_count=1)
    assert len(trace.merges) == 70_000
    narrow = train_in_kernel(counts, merges=65_278, min_count=1)
    assert narrow[0] == trace.merges[:65_278]


def test_sums_of_64_bits():
    most = {b"ab": 2**62, b"abc": 2**61, b"c": 2**61 - 5}
    length = sum(len(chunk) * count for chunk, count in most.items())
    assert length == 2**64 - 5
    expected = train_in_python(most, merges=10, min_count=2)
    assert train(most, merges=10) == expected
    assert expected.lengths[0] == length
    more = most | {b"d": 5}
    expected = train_in_python(more, merges=10, min_count=2)
    assert train(more, merges=10) == expected
    if kernel.library() is not None:
        assert train_in_kernel(most, merges=10, min_count=2) is not None
        assert train_in_kernel(more, merges=10, min_count=2) is None


@pytest.mark.parametrize(
    "counts",
    [{b"ab": 2**64}, {b"ab": 0, b"cd": 2}, {b"": 3, b"abab": 1}, {b"ab": 2.0}, {b"ab": -1}],
    ids=["large", "zero", "empty", "float", "negative"],
)
def test_what_the_kernel_does_not_take_the_python_core_does(counts):
    assert train_in_kernel(counts, merges=3, min_count=2) is None
    assert train(counts, merges=3) == train_in_python(counts, merges=3, min_count=2)


def test_sizes_beyond_all_text():
    counts = {b"abab": 1, b"a": 7}
    for merges in (-1, 0, 3, 4, 10**12, 10**30):
        expected = train_in_python(counts, merges=merges, min_count=1)
        assert train(counts, merges=merges, min_count=1) == expected
    for min_count in (2**64 - 1, 2**64, 10**30):
        assert train(counts, merges=3, min_count=min_count).merges == []
    assert train({b"a": 3, b"b": 1}, merges=3) == Training([], [], [4])


@needs_kernel
@pytest.mark.parametrize(
    ("changes", "status"),
    [
        ({}, "OK"),
        ({"ends": [2, 2, 6]}, "BAD_INPUT"),
        ({"ends": [3, 2, 6]}, "BAD_INPUT"),
        ({"ends": [0, 2, 6]}, "BAD_INPUT"),
        ({"counts": [1, 0, 1]}, "BAD_INPUT"),
        ({"min_count": 0}, "BAD_INPUT"),
        ({"merges": 2**31 - 257}, "OK"),
        ({"merges": 2**31 - 256}, "BAD_INPUT"),
        ({"merges": 2**64 - 1}, "BAD_INPUT"),
        ({"ends": [2, 4, 2**32], "distinct": 3}, "TOO_LARGE"),
        ({"counts": [2**63 - 1, 1, 1]}, "TOO_LARGE"),
        ({"counts": [2**61, 2**62, 2**62]}, "TOO_LARGE"),
        ({"distinct": 0}, "OK"),
    ],
)
def test_arguments_that_contradict_each_other_are_refused_and_nothing_is_written(changes, status):
    ffi, lib = kernel.library()
    given = {"ends": [2, 4, 6], "counts": [3, 2, 1], "distinct": 3, "merges": 3, "min_count": 1}
    given |= changes
    pairs, pair_counts, lengths, found = (
        ffi.new(kind, [77] * 8) for kind in ("uint32_t[]", "uint64_t[]", "uint64_t[]", "size_t[]")
    )
    result = lib.bp_train(
        b"ababcd", given["ends"], given["counts"], given["distinct"], given["merges"],
        given["min_count"], pairs, pair_counts, lengths, found,
    )  # fmt: skip
    assert result == getattr(lib, f"BP_{status}")
    if status != "OK":
        assert {*pairs, *pair_counts, *lengths, *found} == {77}
    elif given["distinct"] == 0:
        assert (lengths[0], found[0]) == (0, 0)
    else:
        assert [*pairs][:4] == [97, 98, 99, 100]
        assert [*lengths][:4] == [12, 7, 6, 77]
        assert [*found][:2] == [2, 77]


@needs_kernel
def test_counts_of_the_kernel_are_taken_as_they_are():
    counts = {b"low": 4, b" low": 3, b"a": 9}
    packed = PackedCounts(bytearray(b"low lowa"), array("Q", [3, 7, 8]), array("Q", [4, 3, 9]))
    assert dict(packed) == counts
    assert train(packed, merges=9) == train_in_python(counts, merges=9, min_count=2)


@needs_kernel
def test_trainings_in_threads_do_not_meet():
    chooser = random.Random(2)
    texts = [
        {bytes(chooser.choices(letters, k=9)): chooser.randrange(1, 99) for _ in range(3000)}
        for letters in (b"abc", b"etaoin shrdlu", bytes(range(256)), b"\0\xff")
    ]
    alone = [train(counts, merges=2000) for counts in texts]
    with ThreadPoolExecutor(4) as pool:
        together = list(pool.map(lambda counts: train(counts, merges=2000), texts * 4))
    assert together == alone * 4


@pytest.mark.parametrize("wanted", ["0", pytest.param("1", marks=needs_kernel)])
def test_without_the_kernel_the_python_core_serves(wanted):
    program = (
        "from bytepair import kernel, training\n"
        "found = training.train({b'low': 4, b' low': 3}, merges=2)\n"
        "print(kernel.library() is None, found.merges, found.pair_counts, found.lengths)"
    )
    output = subprocess.run(
        [sys.executable, "-c", program],
        env={**os.environ, "BYTEPAIR_KERNEL": wanted},
        check=True,
        capture_output=True,
    ).stdout.decode()
    assert output == f"{wanted == '0'} [(108, 111), (256, 119)] [7, 7] [24, 17, 10]\n"


@needs_kernel
@pytest.mark.parametrize("text", ["run", "letters"])
def test_c19_four_million_bytes_without_an_edge(text):
    """Eight times the text may take sixteen times as long; squared it would be sixty-four."""
    letters = b"a" if text == "run" else b"abcdefghijklmnopqrst"
    chunk = bytes(random.Random(3).choices(letters, k=4_000_000))
    seconds = []
    for size in (500_000, 4_000_000):
        start = time.process_time()
        train({chunk[:size]: 1}, merges=1000)
        seconds.append(time.process_time() - start)
    assert seconds[1] < 16 * seconds[0] + 0.5
    assert seconds[1] < 10
