"""Merging sorted runs: equal to adding dicts, in any memory, with and without the kernel."""

import dataclasses
import random
import shutil
import subprocess
import sys
from array import array
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import peak
from bytepair import kernel
from bytepair.errors import ArtifactError
from bytepair.packed import PackedCounts
from bytepair.shards import merged_counts
from bytepair.shards.merged_counts import RUN_FILES, RunFacts, SortedRun, merge_runs, write_run

needs_kernel = pytest.mark.skipif(kernel.library() is None, reason="the kernel is not built")
BOTH = [pytest.param(True, marks=needs_kernel, id="kernel"), pytest.param(False, id="python")]

chunks = st.binary(min_size=1, max_size=20) | st.text("ab", min_size=1, max_size=9).map(str.encode)
counts = st.dictionaries(chunks, st.sampled_from([1, 2, 2**32, 2**60]), max_size=30)


def save(folder, counts):
    """A run of a dict."""
    return SortedRun.in_folder(
        folder, write_run(folder, PackedCounts.of(dict(sorted(counts.items()))))
    )


def load(folder):
    """A run as a dict, which keeps its order."""
    data = [(folder / name).read_bytes() for name in RUN_FILES]
    ends, numbers = (array("Q", piece) for piece in data[1:])
    packed = PackedCounts(data[0], ends, numbers)
    return dict(zip(packed, numbers, strict=True))


def merge(folder, dicts, *, memory=1 << 20):
    runs = [save(folder / f"run{i}", counts) for i, counts in enumerate(dicts)]
    facts = merge_runs(runs, folder / "out", memory=memory, scratch=folder / "scratch")
    return facts, load(folder / "out")


def use_kernel(patch, wanted):
    if not wanted:
        patch.setattr(merged_counts, "library", lambda: None)


@pytest.mark.parametrize("with_kernel", BOTH)
@settings(max_examples=300)
@given(dicts=st.lists(counts, max_size=7), window=st.sampled_from([32, 64, 200, 1 << 20]))
def test_a_merge_is_the_sum_of_dicts(tmp_path_factory, with_kernel, dicts, window):
    folder = tmp_path_factory.mktemp("merge")
    with pytest.MonkeyPatch.context() as patch:
        use_kernel(patch, with_kernel)
        patch.setattr(merged_counts, "LEAST_WINDOW", window)  # of a few chunks, or of less than one
        patch.setattr(merged_counts, "LARGEST_WINDOW", window)
        facts, merged = merge(folder, dicts, memory=1 << 10)
    total = Counter()
    for one in dicts:
        total.update(one)
    assert list(merged.items()) == sorted(total.items())
    assert (facts.distinct, facts.total) == (len(total), sum(total.values()))
    assert (facts.size, facts.longest) == (sum(map(len, total)), max(map(len, total), default=0))
    assert not (folder / "scratch").exists() or not list((folder / "scratch").iterdir())
    shutil.rmtree(folder)


@pytest.mark.parametrize("with_kernel", BOTH)
def test_several_passes_where_the_memory_asks_for_them(tmp_path, monkeypatch, with_kernel):
    use_kernel(monkeypatch, with_kernel)
    chooser = random.Random(1)
    dicts = [
        Counter(chooser.randbytes(chooser.randrange(1, 4)) for _ in range(200)) for _ in range(300)
    ]
    merges = []
    real = merged_counts._merge_at_once
    monkeypatch.setattr(
        merged_counts, "_merge_at_once", lambda *given: merges.append(len(given[0])) or real(*given)
    )
    facts, merged = merge(tmp_path, dicts, memory=8 << 20)  # 16 runs at a time
    assert merges == [16] * 18 + [12] + [16, 3] + [2]
    assert list(merged.items()) == sorted(sum(dicts, Counter()).items())
    in_two_passes = merge_runs(
        [SortedRun.in_folder(tmp_path / f"run{i}", write_run(tmp_path / f"run{i}", PackedCounts.of(dict(sorted(d.items()))))) for i, d in enumerate(dicts)],
        tmp_path / "at once", memory=1 << 30, scratch=tmp_path,
    )  # fmt: skip
    assert in_two_passes == facts
    assert merges[22:] == [64] * 4 + [44] + [5]  # a process may not open three files of each


@pytest.mark.parametrize("with_kernel", BOTH)
def test_chunks_longer_than_every_buffer(tmp_path, monkeypatch, with_kernel):
    use_kernel(monkeypatch, with_kernel)
    long = [bytes([letter]) * (3 << 20) for letter in b"abc"]
    dicts = [
        {b"a": 1, long[0]: 1, long[1]: 2},
        {long[0]: 5, long[1][:-1]: 1},
        {b"b": 1, long[2]: 7},
    ]
    facts, merged = merge(tmp_path, dicts, memory=1 << 20)
    assert merged == {b"a": 1, long[0]: 6, b"b": 1, long[1][:-1]: 1, long[1]: 2, long[2]: 7}
    assert facts.longest == 3 << 20


@pytest.mark.parametrize("with_kernel", BOTH)
def test_a_sum_beyond_64_bits_is_refused(tmp_path, monkeypatch, with_kernel):
    use_kernel(monkeypatch, with_kernel)
    most = {b"a": 2**64 - 2, b"b": 2**64 - 1}
    facts, merged = merge(tmp_path, [most, {b"a": 1, b"c": 2**64 - 1}])
    assert merged[b"a"] == 2**64 - 1
    assert facts.total == 3 * (2**64 - 1)
    with pytest.raises(
        ArtifactError, match=r"run[01]: with it, a chunk occurs 2\^64 times or more"
    ):
        merge(tmp_path, [most, {b"a": 2}])


def rewrite(folder, chunks, ends, numbers):
    """A run that is wrong, and facts that agree with it."""
    ends, numbers = array("Q", ends), array("Q", numbers)
    facts = write_run(folder, PackedCounts(chunks, array("Q", [len(chunks)]), array("Q", [1])))
    (folder / "ends.bin").write_bytes(ends.tobytes())
    (folder / "counts.bin").write_bytes(numbers.tobytes())
    return dataclasses.replace(facts, distinct=len(ends))


@pytest.mark.parametrize("with_kernel", BOTH)
@pytest.mark.parametrize(
    ("chunks", "ends", "numbers"),
    [
        (b"ba", [1, 2], [1, 1]),
        (b"aa", [1, 2], [1, 1]),
        (b"ab", [1, 2], [1, 0]),
        (b"ab", [0, 2], [1, 1]),
        (b"ab", [2, 1], [1, 1]),
        (b"ab", [1, 3], [1, 1]),
        (b"ab", [1, 2**64 - 1], [1, 1]),
        (b"abcab", [1, 2, 3, 5], [1, 1, 1, 1]),
    ],
)
@pytest.mark.parametrize("window", [32, 1 << 20])
def test_what_no_counting_has_written_is_refused(
    tmp_path, monkeypatch, with_kernel, chunks, ends, numbers, window
):
    use_kernel(monkeypatch, with_kernel)
    for bound in ("LEAST_WINDOW", "LARGEST_WINDOW"):
        monkeypatch.setattr(merged_counts, bound, window)
    facts = rewrite(tmp_path / "wrong", chunks, ends, numbers)
    runs = [save(tmp_path / "right", {b"a": 1}), SortedRun.in_folder(tmp_path / "wrong", facts)]
    with pytest.raises(ArtifactError, match="wrong"):
        merge_runs(runs, tmp_path / "out", memory=1 << 10, scratch=tmp_path)


@pytest.mark.parametrize("with_kernel", BOTH)
@pytest.mark.parametrize("name", RUN_FILES)
def test_damaged_files_are_refused_by_name(tmp_path, monkeypatch, with_kernel, name):
    use_kernel(monkeypatch, with_kernel)
    run = save(tmp_path / "run", {bytes([i]): 1 + i for i in range(200)})
    path = tmp_path / "run" / name
    whole = path.read_bytes()
    damaged = bytearray(whole)
    damaged[-8] ^= 1
    for data in (whole[:-1], whole + b"\0", bytes(damaged), None):
        path.unlink() if data is None else path.write_bytes(data)
        with pytest.raises(ArtifactError, match=r"run\b"):
            merge_runs([run], tmp_path / "out", memory=1 << 20, scratch=tmp_path)


def test_facts_are_read_as_they_were_written(tmp_path):
    facts = write_run(tmp_path, PackedCounts.of({b"ab": 3, b"c": 2**63}))
    assert facts.to_json() == {
        "distinct": 2, "total": 2**63 + 3, "bytes": 3, "longest": 2, "files": dict(facts.sha256),
    }  # fmt: skip
    assert RunFacts.from_json(facts.to_json(), Path("receipt.json")) == facts
    with pytest.raises(ArtifactError, match=r"receipt.json: longest must be a whole number"):
        RunFacts.from_json({**facts.to_json(), "longest": -1}, Path("receipt.json"))


def test_memory_does_not_grow_with_the_runs(tmp_path):
    """Two million chunks in 40 runs, 100 MB on disk, merged in 8 MB of buffers."""
    program = (
        "import sys, pathlib\n"
        "from peak import peak\n"
        "from array import array\n"
        "from bytepair.shards.merged_counts import SortedRun, write_run, merge_runs\n"
        "from bytepair.packed import PackedCounts\n"
        "root = pathlib.Path(sys.argv[1])\n"
        "runs = []\n"
        "for i in range(40):\n"
        "    data = b''.join(b'%040d' % (40 * n + i) for n in range(50_000))\n"
        "    packed = PackedCounts(data, array('Q', range(40, 40 * 50_001, 40)), array('Q', [1]) * 50_000)\n"
        "    runs.append(SortedRun.in_folder(root / str(i), write_run(root / str(i), packed)))\n"
        "before = peak()\n"
        "facts = merge_runs(runs, root / 'out', memory=8 << 20, scratch=root / 'scratch')\n"
        "print(facts.distinct, peak() - before)"
    )
    result = subprocess.run(
        [sys.executable, "-c", program, tmp_path],
        check=True,
        capture_output=True,
        env=peak.environment(),
    )
    distinct, grown = map(int, result.stdout.split())
    assert distinct == 2_000_000
    assert grown < 16 << 20
