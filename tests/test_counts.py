"""Chunk counts on disk: sorted, hashed, refused when they are another's."""

import random
import shutil
from array import array

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bytepair import ChunkCounts, Pattern, Tokenizer
from bytepair import packed as packed_module
from bytepair.errors import ArtifactError, TextError
from bytepair.files import read_record, write_record
from bytepair.kernel import library
from bytepair.packed import PackedCounts

TEXTS = ["the cat and the can", "and the <s>café<s> 1892", ""]


@pytest.fixture
def counts():
    return ChunkCounts.count(
        TEXTS, pattern="words", special_tokens=["<s>", "<e>"], train_sha256="a" * 64
    )


def test_counting(counts):
    assert counts.counts == {
        b"the": 1, b" cat": 1, b" and": 1, b" the": 2, b" can": 1, b"and": 1, b" ": 1,
        "café".encode(): 1, b" 1892": 1,
    }  # fmt: skip
    assert counts.total == 10


def test_chunks_do_not_reach_from_one_document_into_the_next():
    assert ChunkCounts.count(["ab", "cd"]).counts == {b"ab": 1, b"cd": 1}


def test_round_trip(tmp_path, counts):
    counts.save(tmp_path)
    assert ChunkCounts.load(tmp_path) == counts
    index = read_record(tmp_path / "index.json")
    assert index["distinct"] == 9
    assert index["total"] == 10
    assert index["train_sha256"] == "a" * 64
    assert index["chunker_sha256"] == counts.chunker_sha256
    assert (tmp_path / "chunks.bin").read_bytes().startswith(b"  1892 and can cat theand")


def test_training_from_counts_equals_training_from_text(tmp_path, counts):
    counts.save(tmp_path)
    from_counts = Tokenizer.from_counts(ChunkCounts.load(tmp_path), vocab_size=262)
    from_text = Tokenizer.train(
        TEXTS, vocab_size=262, pattern="words", special_tokens=["<s>", "<e>"]
    )
    assert from_counts.merges == from_text.merges
    assert from_counts.train_sha256 == "a" * 64
    assert from_text.train_sha256 is None


@settings(deadline=None)
@given(st.lists(st.text(alphabet="ab é\n", max_size=12), max_size=6), st.randoms())
def test_the_bytes_on_disk_do_not_depend_on_order(tmp_path_factory, texts, shuffler):
    first, second = tmp_path_factory.mktemp("a"), tmp_path_factory.mktemp("b")
    ChunkCounts.count(texts, pattern="words").save(first)
    shuffler.shuffle(texts)
    ChunkCounts.count(texts, pattern="words").save(second)
    for name in ("chunks.bin", "ends.bin", "counts.bin", "index.json"):
        assert (first / name).read_bytes() == (second / name).read_bytes()
    assert ChunkCounts.load(first) == ChunkCounts.load(second)


def test_no_text_gives_counts_that_can_be_stored(tmp_path):
    ChunkCounts.count([]).save(tmp_path)
    assert ChunkCounts.load(tmp_path).counts == {}


def test_another_pattern_or_other_specials_are_refused(counts):
    counts.check_made_with(Pattern.named("words"), ("<s>", "<e>"))
    for pattern, specials in (
        (Pattern.named("notebook"), ("<s>", "<e>")),
        (Pattern.named("words"), ("<e>", "<s>")),
        (Pattern(None), ("<s>", "<e>")),
        (Pattern(Pattern.named("words").regex, "regex"), ("<s>", "<e>")),
    ):
        with pytest.raises(ArtifactError, match="the counts were made with pattern"):
            counts.check_made_with(pattern, specials)


@pytest.mark.parametrize("name", ["chunks.bin", "ends.bin", "counts.bin", "index.json"])
def test_every_flipped_byte_is_found(tmp_path, counts, name):
    counts.save(tmp_path)
    path = tmp_path / name
    data = path.read_bytes()
    for at in range(len(data)):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        with pytest.raises(ArtifactError) as error:
            ChunkCounts.load(tmp_path)
        assert str(tmp_path) in str(error.value)
    for cut in (0, 1, len(data) // 2, len(data) - 1):
        path.write_bytes(data[:cut])
        with pytest.raises(ArtifactError):
            ChunkCounts.load(tmp_path)
    path.unlink()
    with pytest.raises(ArtifactError, match="no such file"):
        ChunkCounts.load(tmp_path)


def test_files_of_two_counts_do_not_mix(tmp_path, counts):
    counts.save(tmp_path / "a")
    ChunkCounts.count(["other words"], pattern="words").save(tmp_path / "b")
    for name in ("chunks.bin", "ends.bin", "counts.bin"):
        shutil.copytree(tmp_path / "a", tmp_path / "mixed")
        shutil.copy(tmp_path / "b" / name, tmp_path / "mixed" / name)
        with pytest.raises(ArtifactError, match=name):
            ChunkCounts.load(tmp_path / "mixed")
        shutil.rmtree(tmp_path / "mixed")


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("version", 2),
        ("engine", "pcre"),
        ("pattern", 3),
        ("special_tokens", ["<s>", "<s>"]),
        ("special_tokens", 3),
        ("files", {}),
        ("total", 9),
        ("extra", 1),
    ],
)
def test_a_wrong_index_is_refused(tmp_path, counts, key, value):
    counts.save(tmp_path)
    path = tmp_path / "index.json"
    write_record(path, read_record(path) | {key: value})
    with pytest.raises(ArtifactError, match=r"index\.json"):
        ChunkCounts.load(tmp_path)
    path.write_text("[]", encoding="utf-8")
    with pytest.raises(ArtifactError, match=r"index\.json"):
        ChunkCounts.load(tmp_path)


def test_c29_a_lone_surrogate_in_a_document():
    with pytest.raises(TextError, match="position 1"):
        ChunkCounts.count(["fine", "a\udc00"])


def test_counts_reach_64_bits(tmp_path):
    big = ChunkCounts({b"ab": (1 << 63) + 5}, Pattern(None))
    big.save(tmp_path)
    assert ChunkCounts.load(tmp_path) == big


def test_a_seeded_large_text_counts_as_its_shards_do():
    words = [f"w{random.Random(1).randint(0, 500)}" for _ in range(5000)]
    whole = ChunkCounts.count([" ".join(words)], pattern="words")
    assert whole.total == 5000


def slow_order(packed):
    """What the kernel's sort must give."""
    return sorted(zip(packed, packed.numbers, strict=True))


@given(st.dictionaries(st.binary(min_size=1, max_size=20), st.integers(1, 2**64 - 1)))
def test_packed_counts_come_in_order(counts):
    packed = PackedCounts.of(counts)
    ordered = packed.in_order()
    assert list(zip(ordered, ordered.numbers, strict=True)) == slow_order(packed)
    assert dict(ordered) == counts
    assert ordered.is_in_order()
    assert packed.is_in_order() == (list(counts) == sorted(counts))


@pytest.mark.parametrize(
    ("chunks", "ends", "numbers"),
    [
        (b"ab", [1, 2], [1]), (b"ab", [1, 2], [1, 0]), (b"ab", [1, 1, 2], [1, 1, 1]),
        (b"ab", [2, 1], [1, 1]), (b"ab", [1], [1]), (b"ab", [1, 3], [1, 1]), (b"ba", [1, 2], [1, 1]),
        (b"aa", [1, 2], [1, 1]), (b"aba", [2, 3], [1, 1]), (b"a", [], []), (b"", [0], [1]),
    ],
)  # fmt: skip
@pytest.mark.parametrize("kernel", ["", "0"])
def test_what_are_no_counts_is_not_in_order(chunks, ends, numbers, kernel, monkeypatch):
    monkeypatch.setattr(packed_module, "library", lambda: library() if kernel == "" else None)
    arrays = array("Q", ends), array("Q", numbers)
    assert not PackedCounts(chunks, *arrays).is_in_order()
    assert PackedCounts(b"aab", array("Q", [1, 3]), array("Q", [2**64 - 1, 1])).is_in_order()
    assert PackedCounts(b"", array("Q"), array("Q")).is_in_order()
