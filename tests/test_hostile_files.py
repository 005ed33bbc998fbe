"""Files that somebody damaged and sealed again, so that their hashes fit: refused, or used rightly.

The hashes of a record find accidents. These tests are about what comes after them: whatever the
numbers in a file say, nothing outside of it is read, and all that goes wrong is a BytepairError.
"""

import copy
import json
import warnings
from array import array

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytepair import ChunkCounts, Tokenizer
from bytepair.baseline import run as run_baseline
from bytepair.encoding import PythonEncoder
from bytepair.errors import ArtifactError, BytepairError, TrainingError
from bytepair.files import read_record, sha256, write_record
from bytepair.tokens import open_tokens, write_tokens
from bytepair.training import train, train_in_python

TEXT = "low lower lowest, the newer and the newest: 1234 ’ll “low” it's\n\n  low \t中文 low\n"

# What a number, a value and a file become.

HUGE = [0, 1, 255, 256, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**63 - 1, 2**63, 2**64 - 1]
numbers = st.sampled_from(HUGE) | st.integers(0, 2**64 - 1)
json_numbers = st.sampled_from([*HUGE, -1, 2**64, 10**30]) | st.integers(-300, 300)
json_values = st.recursive(
    st.none() | st.booleans() | json_numbers | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=8) | st.sampled_from(["gpt2", "<u2", "<u4", "|O", "re", "regex", "f" * 64]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=6,
)  # fmt: skip


@st.composite
def damaged_bytes(draw, data):
    """Bits that turn, bytes that go, bytes that come."""
    data = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(0, len(data) - 1)))
        match draw(st.sampled_from(["turn", "cut", "go", "come"])):
            case "turn" if data:
                data[at] ^= 1 << draw(st.integers(0, 7))
            case "cut":
                del data[at:]
            case "go":
                del data[at : at + draw(st.integers(1, 16))]
            case _:
                data[at:at] = draw(st.binary(min_size=1, max_size=16))
    return bytes(data)


@st.composite
def damaged_numbers(draw, data, kind):
    """Numbers that become others, or change places."""
    values = array(kind, data)
    for _ in range(draw(st.integers(1, 3))):
        at, other = (draw(st.integers(0, len(values) - 1)) for _ in range(2))
        values[at], values[other] = values[other], values[at]
        if draw(st.booleans()):
            values[at] = draw(numbers) % (1 << 8 * values.itemsize)
    return values.tobytes()


def places(value, path=()):
    """The path of every value inside a JSON value."""
    yield path
    if isinstance(value, dict | list):
        for key in value if isinstance(value, dict) else range(len(value)):
            yield from places(value[key], (*path, key))


@st.composite
def damaged_json(draw, value):
    """Another value somewhere, or one key less or more."""
    value = copy.deepcopy(value)
    for _ in range(draw(st.integers(1, 2))):
        *path, last = draw(st.sampled_from([path for path in places(value) if path]))
        inner = value
        for key in path:
            inner = inner[key]
        match draw(st.sampled_from(["replace", "replace", "remove", "add"])):
            case "remove" if len(inner) > 1:
                del inner[last]
            case "add" if isinstance(inner, dict):
                inner[draw(st.text(max_size=3))] = draw(json_values)
            case _:
                inner[last] = draw(json_values)
    return value


# bpe.json


@pytest.fixture(scope="module")
def bpe_json():
    with warnings.catch_warnings(action="ignore"):
        tok = Tokenizer.train([TEXT], vocab_size=290, pattern="gpt2", special_tokens=["<s>"])
    return tok._content.to_bytes()


def encodes_rightly_or_is_refused(path):
    try:
        tok = Tokenizer.load(path)
    except BytepairError as error:
        assert str(path) in str(error)
        return
    for text in (TEXT, "low" * 300):
        ids = tok.encode(text)
        assert ids == PythonEncoder(tok.merges, tok.pattern).encode(text)
        assert tok.decode(ids) == text


@given(st.data())
def test_the_bytes_of_bpe_json(bpe_json, tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "bpe.json"
    path.write_bytes(data.draw(damaged_bytes(bpe_json)))
    encodes_rightly_or_is_refused(path)


@given(st.data())
def test_the_values_of_bpe_json(bpe_json, tmp_path_factory, data):
    path = tmp_path_factory.getbasetemp() / "bpe.json"
    path.write_text(json.dumps(data.draw(damaged_json(json.loads(bpe_json)))), encoding="utf-8")
    encodes_rightly_or_is_refused(path)


@given(st.lists(st.tuples(st.integers(0, 300), st.integers(0, 300)), max_size=40))
def test_the_merges_of_bpe_json(bpe_json, tmp_path_factory, merges):
    content = json.loads(bpe_json) | {"merges": merges, "vocab_size": 257 + len(merges)}
    content["special_tokens"] = {"<s>": 256 + len(merges)}
    path = tmp_path_factory.getbasetemp() / "bpe.json"
    path.write_text(json.dumps(content), encoding="utf-8")
    encodes_rightly_or_is_refused(path)


# Chunk counts

COUNTS_FILES = ("chunks.bin", "ends.bin", "counts.bin")


@pytest.fixture(scope="module")
def counts_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("counts")
    ChunkCounts.count([TEXT, TEXT], pattern="gpt2", special_tokens=["<s>"]).save(folder)
    return {name: (folder / name).read_bytes() for name in COUNTS_FILES}, read_record(
        folder / "index.json"
    )


def trains_rightly_or_is_refused(folder, files, index):
    for name, content in files.items():
        (folder / name).write_bytes(content)
    write_record(folder / "index.json", index)
    try:
        counts = ChunkCounts.load(folder)
    except ArtifactError as error:
        assert str(folder) in str(error)
        return
    assert len(counts.counts) == len(files["counts.bin"]) // 8
    if not counts.counts:  # three empty files, which fit each other
        with pytest.raises(TrainingError):
            train(counts.counts, merges=40, min_count=1)
        return
    found = train(counts.counts, merges=40, min_count=1)
    assert found == train_in_python(counts.counts, merges=40, min_count=1)


@given(st.data())
def test_the_arrays_of_counts(counts_files, tmp_path_factory, data):
    files, index = counts_files
    files = dict(files)
    for name in data.draw(st.sets(st.sampled_from(COUNTS_FILES), min_size=1)):
        numeric = name != "chunks.bin" and data.draw(st.booleans())
        files[name] = data.draw(
            damaged_numbers(files[name], "Q") if numeric else damaged_bytes(files[name])
        )
    sizes = {
        "distinct": len(files["counts.bin"]) // 8,
        "total": sum(np.frombuffer(files["counts.bin"][: len(files["counts.bin"]) // 8 * 8], "<u8").tolist()),
        "files": {name: sha256(content) for name, content in files.items()},
    }  # fmt: skip
    trains_rightly_or_is_refused(tmp_path_factory.getbasetemp(), files, index | sizes)


@given(st.data())
def test_the_index_of_counts(counts_files, tmp_path_factory, data):
    files, index = counts_files
    trains_rightly_or_is_refused(
        tmp_path_factory.getbasetemp(), files, data.draw(damaged_json(index))
    )


# Tokens

TOKENS_FILES = ("tokens.npy", "documents.npy")


@pytest.fixture(scope="module", params=[300, 70_000], ids=["uint16", "uint32"])
def tokens_files(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("tokens")
    documents = [("one", [1, 2, 3, 4, 1, 2]), ("none", []), ("two", [256, 298, 1, 2, 1, 2])]
    write_tokens(
        folder, documents, vocab_size=request.param, separator_id=299,
        tokenizer_sha256="a" * 64, text_sha256="b" * 64, text_bytes=40, separator_bytes=13,
    )  # fmt: skip
    return {name: (folder / name).read_bytes() for name in TOKENS_FILES}, read_record(
        folder / "index.json"
    )


def reads_rightly_or_is_refused(folder, files, index):
    folder /= "train"
    folder.mkdir(exist_ok=True)
    for name, content in files.items():
        (folder / name).unlink(missing_ok=True)  # the last one may still be mapped
        (folder / name).write_bytes(content)
    write_record(folder / "index.json", index)
    for verify in (False, True):
        try:
            tokens = open_tokens(folder, verify=verify)
        except ArtifactError as error:
            assert str(folder) in str(error)
            continue
        joined = [ids.tolist() for _, ids in tokens.documents()]
        gaps = 0 if tokens.index.separator_id is None else max(0, len(joined) - 1)
        assert sum(map(len, joined)) + gaps == len(tokens)
        assert tokens.ids.nbytes + 128 == (folder / "tokens.npy").stat().st_size
        if verify:
            assert int(tokens.ids.max(initial=0)) < tokens.index.vocab_size
            run_baseline(folder.parent, folder.parent / "model", order=2)


def sealed(index, files, itemsize):
    """The index with the lengths and hashes of these files."""
    index = copy.deepcopy(index)
    index["tokens"] = {
        "length": max(0, len(files["tokens.npy"]) - 128) // itemsize,
        "sha256": sha256(files["tokens.npy"]),
    }
    index["documents"]["sha256"] = sha256(files["documents.npy"])
    return index


@given(st.data())
def test_the_arrays_of_tokens(tokens_files, tmp_path_factory, data):
    files, index = tokens_files
    files = dict(files)
    itemsize = 2 if index["dtype"] == "<u2" else 4
    for name in data.draw(st.sets(st.sampled_from(TOKENS_FILES), min_size=1)):
        header, content = files[name][:128], files[name][128:]
        kind = "Q" if name == "documents.npy" else "H" if itemsize == 2 else "I"
        match data.draw(st.sampled_from(["numbers", "numbers", "content", "all"])):
            case "numbers":
                files[name] = header + data.draw(damaged_numbers(content, kind))
            case "content":
                files[name] = header + data.draw(damaged_bytes(content))
            case _:
                files[name] = data.draw(damaged_bytes(files[name]))
    folder = tmp_path_factory.getbasetemp()
    reads_rightly_or_is_refused(folder, files, sealed(index, files, itemsize))


@given(st.data())
def test_the_index_of_tokens(tokens_files, tmp_path_factory, data):
    files, index = tokens_files
    damaged = data.draw(damaged_json(index))
    reads_rightly_or_is_refused(tmp_path_factory.getbasetemp(), files, damaged)
