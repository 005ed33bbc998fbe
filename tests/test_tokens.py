import os
import re
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytepair import files
from bytepair.arrays import npy_bytes
from bytepair.errors import ArtifactError, TokenError
from bytepair.tokens import open_tokens, storage_dtype, write_tokens

A, B = "a" * 64, "b" * 64
HEADER = 128
DOCUMENTS = [("one", [1, 2, 3]), ("none", []), ("two", [300, 299])]


def write(folder, documents=DOCUMENTS, *, vocab_size=512, separator_id=511, **changes):
    made_from = (
        {"tokenizer_sha256": A, "text_sha256": B, "text_bytes": 40}
        | {"separator_bytes": 13}
        | changes
    )
    return write_tokens(
        folder, documents, vocab_size=vocab_size, separator_id=separator_id, **made_from
    )


def read_back(tokens):
    return [(name, ids.tolist()) for name, ids in tokens.documents()]


# Layout


def test_separators_stand_between_documents(tmp_path):
    index = write(tmp_path)
    tokens = open_tokens(tmp_path, tokenizer_sha256=A)
    assert tokens.ids.tolist() == [1, 2, 3, 511, 511, 300, 299]
    assert tokens.starts.tolist() == [0, 4, 5]
    assert (tokens.ids.dtype.str, tokens.starts.dtype.str) == ("<u2", "<u8")
    assert len(tokens) == 7
    assert read_back(tokens) == DOCUMENTS
    assert tokens.document(2).tolist() == [300, 299]
    assert tokens.index == index
    assert (index.text_sha256, index.text_bytes, index.separator_id) == (B, 40, 511)


def test_without_a_separator_documents_touch(tmp_path):
    write(tmp_path, separator_id=None)
    tokens = open_tokens(tmp_path)
    assert tokens.ids.tolist() == [1, 2, 3, 300, 299]
    assert tokens.starts.tolist() == [0, 3, 3]
    assert read_back(tokens) == DOCUMENTS


def test_arrays_are_plain_ndarrays_that_cannot_be_written(tmp_path):
    for folder, documents in (("full", DOCUMENTS), ("empty", [])):
        write(tmp_path / folder, documents)
        tokens = open_tokens(tmp_path / folder)
        for array in (tokens.ids, tokens.starts, *(ids for _, ids in tokens.documents())):
            assert type(array) is np.ndarray
            assert not array.flags.writeable


@pytest.mark.parametrize("number", [-1, 3])
def test_no_such_document(tmp_path, number):
    write(tmp_path)
    with pytest.raises(IndexError, match=f"document {number}: there are 3"):
        open_tokens(tmp_path).document(number)


def test_index_json(tmp_path):
    write(tmp_path)
    assert files.read_record(tmp_path / "index.json") == {
        "version": 1,
        "tokenizer_sha256": A,
        "text": {"sha256": B, "bytes": 40, "separator_bytes": 13},
        "vocab_size": 512,
        "separator_id": 511,
        "dtype": "<u2",
        "tokens": {"length": 7, "sha256": files.sha256((tmp_path / "tokens.npy").read_bytes())},
        "documents": {
            "length": 3,
            "sha256": files.sha256((tmp_path / "documents.npy").read_bytes()),
            "names": ["one", "none", "two"],
        },
    }


def test_golden_bytes(tmp_path):
    # A change here is a change of format: raise VERSION with it.
    write(tmp_path)
    assert {path.name: files.sha256(path.read_bytes())[:16] for path in tmp_path.iterdir()} == {
        "tokens.npy": "2a3f5aadf5b780eb",
        "documents.npy": "a025e0601d28387b",
        "index.json": "1ff13611c5885a8e",
    }


def test_writing_again_gives_the_same_bytes_and_nothing_else(tmp_path):
    write(tmp_path / "first")
    write(tmp_path / "second", [("longer", list(range(500)))])
    write(tmp_path / "second", ((name, np.array(ids, ">i8")) for name, ids in DOCUMENTS))
    first, second = (
        {path.name: path.read_bytes() for path in (tmp_path / name).iterdir()}
        for name in ("first", "second")
    )
    assert first == second
    assert first.keys() == {"tokens.npy", "documents.npy", "index.json"}


@pytest.mark.parametrize("dtype", ["<u2", "<u4", "<u8", "<i8", ">i8", ">u2"])
@pytest.mark.parametrize("length", [0, 1, 10**6])
def test_npy_bytes_are_those_of_numpy_save(tmp_path, dtype, length):
    array = np.arange(length).astype(dtype)
    np.save(tmp_path / "a.npy", array.astype(array.dtype.newbyteorder("<")), allow_pickle=False)
    assert npy_bytes(array) == (tmp_path / "a.npy").read_bytes()


def test_a_failed_write_leaves_no_index_that_lies(tmp_path, monkeypatch):
    write(tmp_path)

    def fail(source, target):
        if Path(target).name == "documents.npy":
            raise OSError("disk full")
        replace(source, target)

    replace = os.replace
    monkeypatch.setattr(os, "replace", fail)
    with pytest.raises(OSError, match="disk full"):
        write(tmp_path, [("other", [7])])
    with pytest.raises(ArtifactError, match=r"index\.json: no such file"):
        open_tokens(tmp_path)


# C26: the boundary between two bytes and four


@pytest.mark.parametrize(
    ("vocab_size", "ids", "dtype"),
    [
        (65_536, [0, 65_535], np.uint16),
        (65_537, [65_535, 65_536], np.uint32),
        (70_001, [70_000], np.uint32),
        (70_001, [1, 2], np.uint32),
        (2**32, [2**32 - 1], np.uint32),
    ],
)
def test_dtype_boundary(tmp_path, vocab_size, ids, dtype):
    write(tmp_path, [("only", ids)], vocab_size=vocab_size, separator_id=None)
    tokens = open_tokens(tmp_path)
    assert tokens.ids.tolist() == ids
    assert tokens.ids.dtype == dtype
    assert tokens.index.dtype == np.dtype(dtype).newbyteorder("<").str
    size = (tmp_path / "tokens.npy").stat().st_size
    assert size == len(ids) * np.dtype(dtype).itemsize + HEADER


def test_all_splits_of_a_tokenizer_share_one_dtype(tmp_path):
    for split, ids in (("train", [65_536]), ("val", [0]), ("test", [])):
        write(tmp_path / split, [("only", ids)], vocab_size=65_537, separator_id=65_536 - 1)
        assert open_tokens(tmp_path / split).ids.dtype == np.uint32


@pytest.mark.parametrize("vocab_size", [0, -1, 2**32 + 1, True, 512.0])
def test_no_dtype_for_such_a_vocabulary(vocab_size):
    with pytest.raises(TokenError, match="vocab_size must be"):
        storage_dtype(vocab_size)


# C27: nothing at all


@pytest.mark.parametrize("separator_id", [None, 5])
@pytest.mark.parametrize("documents", [[], [("empty", [])], [("a", []), ("b", []), ("c", [])]])
def test_empty(tmp_path, documents, separator_id):
    write(tmp_path, documents, separator_id=separator_id)
    tokens = open_tokens(tmp_path)
    gaps = max(len(documents) - 1, 0)
    assert tokens.ids.tolist() == ([] if separator_id is None else [5] * gaps)
    assert tokens.ids.dtype == np.uint16
    assert read_back(tokens) == documents


# What is refused on writing


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([3, 512], "document 'x': id 512 at 1, but the vocabulary has 0 to 511"),
        ([3, 4, -1], "id -1 at 2"),
        ([70_000], "id 70000 at 0"),
        (np.array([2**64 - 1], np.uint64), "id 18446744073709551615 at 0"),
        ([2**70], "whole numbers in a row"),
        ([1.0], "whole numbers in a row"),
        ([True], "whole numbers in a row"),
        (["1"], "whole numbers in a row"),
        ([[1, 2], [3, 4]], "whole numbers in a row"),
        ([1, 511], "document 'x': the separator's id 511 stands inside, at 1"),
    ],
)
def test_ids_that_cannot_be_stored(tmp_path, ids, message):
    with pytest.raises(TokenError, match=re.escape(message)):
        write(tmp_path / "tokens", [("fine", [1]), ("x", ids)])
    assert not (tmp_path / "tokens").exists()


@pytest.mark.parametrize("separator_id", [512, -1, 70_000])
def test_separator_outside_the_vocabulary(tmp_path, separator_id):
    with pytest.raises(TokenError, match=f"the separator: id {separator_id} "):
        write(tmp_path, separator_id=separator_id)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"tokenizer_sha256": "A" * 64}, "tokenizer_sha256 must be 64 lower-case hex digits"),
        ({"text_sha256": None}, r"text\.sha256 must be"),
        ({"text_bytes": -1}, r"text\.bytes must be a whole number from 0 on, but is -1"),
    ],
)
def test_provenance_that_could_not_be_read_again(tmp_path, changes, message):
    with pytest.raises(ArtifactError, match=message):
        write(tmp_path, **changes)
    assert not list(tmp_path.iterdir())


# What is refused on reading


def test_another_tokenizer(tmp_path):
    write(tmp_path)
    with pytest.raises(ArtifactError) as caught:
        open_tokens(tmp_path, tokenizer_sha256=B)
    for part in (A, B, "dvc repro", "encode-splits", str(tmp_path)):
        assert part in str(caught.value)


@pytest.mark.parametrize("name", ["tokens.npy", "documents.npy", "index.json"])
def test_missing_file(tmp_path, name):
    write(tmp_path)
    (tmp_path / name).unlink()
    with pytest.raises(ArtifactError, match=rf"{re.escape(name)}: no such file.*dvc repro"):
        open_tokens(tmp_path)


@pytest.mark.parametrize("name", ["tokens.npy", "documents.npy"])
def test_any_flipped_byte_is_found(tmp_path, name):
    write(tmp_path)
    path = tmp_path / name
    good = path.read_bytes()
    for position in range(len(good)):
        bad = bytearray(good)
        bad[position] ^= 1
        path.write_bytes(bad)
        with pytest.raises(ArtifactError, match=re.escape(str(path))):
            open_tokens(tmp_path)


@pytest.mark.parametrize("name", ["tokens.npy", "documents.npy"])
def test_any_cut_or_longer_file_is_found_without_reading_it(tmp_path, name):
    write(tmp_path)
    path = tmp_path / name
    good = path.read_bytes()
    for bad in [*(good[:length] for length in range(len(good))), good + b"\0"]:
        path.write_bytes(bad)
        with pytest.raises(ArtifactError, match=re.escape(str(path))):
            open_tokens(tmp_path, verify=False)


def test_a_flipped_byte_of_the_index_is_found(tmp_path):
    write(tmp_path)
    path = tmp_path / "index.json"
    good = path.read_bytes()
    for position in range(len(good)):
        bad = bytearray(good)
        bad[position] ^= 1
        path.write_bytes(bad)
        with pytest.raises(ArtifactError, match=re.escape(str(path))):
            open_tokens(tmp_path, tokenizer_sha256=A)


def edit(folder, key, value):
    """Set one dotted key of index.json; Ellipsis removes it."""
    path = folder / "index.json"
    record = files.read_record(path)
    *parents, last = key.split(".")
    part = record
    for parent in parents:
        part = part[parent]
    if value is ...:
        del part[last]
    else:
        part[last] = value
    files.write_record(path, record)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        ("version", 2, "version must be 1, the only version"),
        ("version", True, "version must be 1"),
        ("version", 1.0, "version must be 1"),
        ("version", ..., "version is missing"),
        ("tokenizer_sha256", 7, "tokenizer_sha256 must be"),
        ("tokenizer_sha256", A + "\n", "tokenizer_sha256 must be"),
        ("text", [B, 40], "text must be an object"),
        ("text.bytes", "40", "text.bytes must be a whole number"),
        ("text.bytes", False, "text.bytes must be a whole number"),
        ("text.name", "x", "text.name is unknown"),
        ("vocab_size", 512.0, "vocab_size must be"),
        ("vocab_size", 0, "vocab_size must be"),
        ("vocab_size", 511, "separator_id is 511, but vocab_size is 511"),
        ("vocab_size", 65_537, "dtype is '<u2', but vocab_size is 65537"),
        ("separator_id", -1, "separator_id must be an id or null"),
        ("separator_id", True, "separator_id must be an id or null"),
        ("separator_id", None, "tokens.npy"),
        ("separator_id", 510, "tokens.npy: id 510 does not separate its documents"),
        ("dtype", "<u4", "dtype is '<u4', but vocab_size is 512"),
        ("dtype", 2, "dtype must be a string"),
        ("dtype", ">u2", "dtype is '>u2'"),
        ("tokens.length", 6, "tokens.npy: it has 142 bytes, but 140 are on record"),
        ("tokens.length", -7, "tokens.length must be"),
        ("tokens.sha256", B, "tokens.npy: sha256 is"),
        ("documents.sha256", B, "documents.npy: sha256 is"),
        ("documents.length", 2, "documents.length is 2, but documents.names has 3"),
        ("documents.names", "abc", "documents.names must be a list of strings"),
        ("documents.names", ["a", "b", 3], "documents.names must be a list of strings"),
        ("extra", None, "extra is unknown"),
    ],
)
def test_index_that_cannot_be_right(tmp_path, key, value, message):
    write(tmp_path)
    edit(tmp_path, key, value)
    if key == "separator_id" and value is None:
        # Nothing says that the array holds separators, so this one opens.
        assert open_tokens(tmp_path).document(0).tolist() == [1, 2, 3, 511]
        return
    with pytest.raises(ArtifactError, match=re.escape(message)):
        open_tokens(tmp_path)


@pytest.mark.parametrize(
    "data", [b"", b"[]", b"null", b'{"version": 1', b'{"version": 1, "version": 1}', b"\xff"]
)
def test_index_that_is_no_index(tmp_path, data):
    write(tmp_path)
    (tmp_path / "index.json").write_bytes(data)
    with pytest.raises(ArtifactError, match=r"index\.json"):
        open_tokens(tmp_path)


def forge(folder, name, array):
    """Replace an array by one of as many numbers, with a hash to match."""
    data = npy_bytes(array)
    (folder / f"{name}.npy").write_bytes(data)
    edit(folder, f"{name}.sha256", files.sha256(data))


@pytest.mark.parametrize(
    "starts",
    [[1, 4, 5], [0, 5, 4], [0, 4, 4], [0, 4, 8], [0, 2**64 - 1, 5], [0, 2**64 - 1, 0]],
)
def test_offsets_that_do_not_divide_the_tokens(tmp_path, starts):
    write(tmp_path)
    forge(tmp_path, "documents", np.array(starts, np.uint64))
    with pytest.raises(ArtifactError, match=r"documents\.npy: its offsets do not divide 7 tokens"):
        open_tokens(tmp_path, verify=False)


def test_tokens_without_a_document(tmp_path):
    write(tmp_path)
    edit(tmp_path, "documents.names", [])
    edit(tmp_path, "documents.length", 0)
    forge(tmp_path, "documents", np.array([], np.uint64))
    with pytest.raises(ArtifactError, match="do not divide 7 tokens"):
        open_tokens(tmp_path)


@pytest.mark.parametrize(
    ("ids", "message"),
    [
        ([1, 2, 3, 511, 511, 300, 512], "it holds id 512, but vocab_size is 512"),
        ([1, 2, 3, 511, 300, 511, 299], "id 511 does not separate its documents"),
        ([1, 511, 3, 511, 511, 300, 299], "id 511 does not separate its documents"),
        ([1, 2, 3, 4, 511, 300, 299], "id 511 does not separate its documents"),
    ],
)
def test_ids_that_no_encoder_wrote(tmp_path, ids, message):
    write(tmp_path)
    forge(tmp_path, "tokens", np.array(ids, np.uint16))
    with pytest.raises(ArtifactError, match=rf"tokens\.npy: {message}"):
        open_tokens(tmp_path)
    assert open_tokens(tmp_path, verify=False).ids.tolist() == ids


def test_an_array_of_objects_is_never_unpickled(tmp_path):
    write(tmp_path)
    np.save(tmp_path / "tokens.npy", np.array([{}] * 7), allow_pickle=True)
    with pytest.raises(ArtifactError, match=r"tokens\.npy"):
        open_tokens(tmp_path, verify=False)


@given(data=st.data(), vocab_size=st.sampled_from([1, 2, 256, 65_536, 65_537, 2**32]))
def test_round_trip(data, vocab_size):
    separator_id = data.draw(st.none() | st.integers(0, vocab_size - 1))
    allowed = st.integers(0, vocab_size - 1).filter(lambda number: number != separator_id)
    ids = st.just([]) if vocab_size == 1 and separator_id == 0 else st.lists(allowed, max_size=8)
    names = st.text(st.characters(codec="utf-8"), max_size=5)
    documents = data.draw(st.lists(st.tuples(names, ids), max_size=5))
    with tempfile.TemporaryDirectory() as folder:
        index = write(folder, documents, vocab_size=vocab_size, separator_id=separator_id)
        tokens = open_tokens(folder, tokenizer_sha256=A)
        assert read_back(tokens) == documents
        assert index == tokens.index
        assert index == write(
            folder, read_back(tokens), vocab_size=vocab_size, separator_id=separator_id
        )
