"""Exports of token arrays, read as their consumers read them."""

import importlib.util
import json
import struct
import subprocess
import sys
import tempfile
import tracemalloc
from pathlib import Path
from typing import get_args

import numpy as np
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from bytepair import files, tokens
from bytepair.arrays import npy_header
from bytepair.cli import main
from bytepair.commands.tokens import FORMATS, SEPARATORS
from bytepair.errors import ArtifactError, TokenError
from bytepair.token_exports import (
    INT32_MAX,
    LAYOUTS,
    Format,
    Separator,
    document_lengths,
    export_tokens,
    llmc_header,
    megatron_index,
)

A, B = "a" * 64, "b" * 64
DOCUMENTS = [[1, 2, 3], [], [300, 299]]


def stored(folder, documents=DOCUMENTS, *, vocab_size=512, separator_id=511):
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


def placed(documents, separator_id, separator):
    """Each document with its separator, spelled out."""
    if separator_id is None or separator == "none":
        return documents
    last = len(documents) - 1
    return [
        [separator_id] * (separator == "before")
        + ids
        + [separator_id] * (separator == "after" or (separator == "between" and number < last))
        for number, ids in enumerate(documents)
    ]


# The readers, as published: nanoGPT's and llm.c's are a few lines each.


def read_nanogpt(name, dtype):
    return np.memmap(f"{name}.bin", dtype=dtype, mode="r").tolist()


def read_llmc(name):
    data = Path(f"{name}.bin").read_bytes()
    magic, version, count, *rest = struct.unpack("<256i", data[:1024])
    assert (magic, version) == (20240520, 1)
    assert not any(rest)
    assert count > 0
    assert len(data) == 256 * 4 + count * 2
    return list(struct.unpack(f"<{count}H", data[1024:]))


def read_megatron(name):
    """Sequences and document index, by the published layout of version 1."""
    data = Path(f"{name}.idx").read_bytes()
    assert data[:9] == b"MMIDIDX\x00\x00"
    version, code, sequences, documents = struct.unpack("<QBQQ", data[9:34])
    assert version == 1
    lengths = struct.unpack(f"<{sequences}i", data[34:][: 4 * sequences])
    pointers = struct.unpack(f"<{sequences}q", data[34 + 4 * sequences :][: 8 * sequences])
    index = struct.unpack(f"<{documents}q", data[34 + 12 * sequences :])
    dtype = {8: "<u2", 4: "<i4"}[code]
    body = Path(f"{name}.bin").read_bytes()
    read = [
        np.frombuffer(body, dtype, length, pointer).tolist() if length else []
        for length, pointer in zip(lengths, pointers, strict=True)
    ]
    assert sum(lengths) * np.dtype(dtype).itemsize == len(body)
    return read, list(index)


@pytest.mark.parametrize("separator_id", [511, None])
@pytest.mark.parametrize("separator", SEPARATORS)
def test_each_reader_gets_the_documents(tmp_path, separator, separator_id):
    source = stored(tmp_path / "tokens", separator_id=separator_id)
    asked = separator if separator_id is not None or separator == "none" else None
    expected = placed(DOCUMENTS, separator_id, separator)
    flat = [number for ids in expected for number in ids]
    for name in LAYOUTS:
        export_tokens(source, tmp_path / name, format=name, separator=asked)
    assert read_nanogpt(tmp_path / "nanogpt", np.uint16) == flat
    assert read_llmc(tmp_path / "llmc") == flat
    assert read_megatron(tmp_path / "megatron") == (expected, [0, 1, 2, 3])


def test_the_usual_places_of_the_separator(tmp_path):
    source = stored(tmp_path / "tokens")
    for name, separator in (("nanogpt", "between"), ("llmc", "before"), ("megatron", "after")):
        made = export_tokens(source, tmp_path / name, format=name)
        assert made.separator == separator
        assert made.documents == 3
        assert made.tokens == sum(map(len, placed(DOCUMENTS, 511, separator)))


def test_nanogpt_is_the_array_without_its_header(tmp_path):
    source = stored(tmp_path / "tokens")
    export_tokens(source, tmp_path / "train.bin", format="nanogpt")
    body = (tmp_path / "tokens" / "tokens.npy").read_bytes()[128:]
    assert (tmp_path / "train.bin").read_bytes() == body


def test_golden_bytes(tmp_path):
    source = stored(tmp_path / "tokens", [[7], [8, 9]])
    export_tokens(source, tmp_path / "m", format="megatron")
    assert (tmp_path / "m.bin").read_bytes().hex(" ", 2) == "0700 ff01 0800 0900 ff01"
    number = "0{}00000000000000".format
    assert (tmp_path / "m.idx").read_bytes() == bytes.fromhex(
        f"{b'MMIDIDX'.hex()} 0000 {number(1)} 08 {number(2)} {number(3)}"
        f"02000000 03000000 {number(0)} {number(4)} {number(0)} {number(1)} {number(2)}"
    )
    export_tokens(source, tmp_path / "l", format="llmc")
    assert (tmp_path / "l.bin").read_bytes() == (
        bytes.fromhex("88d83401 01000000 05000000") + bytes(253 * 4)
        + bytes.fromhex("ff01 0700 ff01 0800 0900")
    )  # fmt: skip


@given(
    documents=st.lists(st.lists(st.integers(0, 69_998), max_size=9), min_size=1, max_size=6),
    wide=st.booleans(),
    separator=st.sampled_from(SEPARATORS),
)
def test_any_documents_come_back(documents, wide, separator):
    vocab_size = 70_000 if wide else 65_536
    documents = [[number % (vocab_size - 1) for number in ids] for ids in documents]
    expected = placed(documents, vocab_size - 1, separator)
    flat = [number for ids in expected for number in ids]
    with tempfile.TemporaryDirectory() as folder:
        source = stored(
            Path(folder, "tokens"), documents, vocab_size=vocab_size, separator_id=vocab_size - 1
        )
        assert document_lengths(source, separator).tolist() == [len(ids) for ids in expected]
        for name in LAYOUTS:
            if name == "llmc" and wide:
                continue
            out = Path(folder, name)
            if not flat:
                with pytest.raises(ArtifactError, match="nothing to export"):
                    export_tokens(source, out, format=name, separator=separator)
                continue
            export_tokens(source, out, format=name, separator=separator)
        if flat:
            assert read_megatron(Path(folder, "megatron"))[0] == expected
            assert read_nanogpt(Path(folder, "nanogpt"), "<u4" if wide else "<u2") == flat
            if not wide:
                assert read_llmc(Path(folder, "llmc")) == flat


def test_ids_at_the_edge_of_two_bytes(tmp_path):
    narrow = stored(tmp_path / "narrow", [[0, 65_535]], vocab_size=65_536, separator_id=None)
    wide = stored(tmp_path / "wide", [[65_535, 65_536]], vocab_size=65_537, separator_id=None)
    for name in LAYOUTS:
        export_tokens(narrow, tmp_path / name, format=name)
    assert read_nanogpt(tmp_path / "nanogpt", np.uint16) == [0, 65_535]
    assert read_llmc(tmp_path / "llmc") == [0, 65_535]
    assert read_megatron(tmp_path / "megatron")[0] == [[0, 65_535]]
    assert export_tokens(wide, tmp_path / "n", format="nanogpt").dtype == "<u4"
    assert read_nanogpt(tmp_path / "n", np.uint32) == [65_535, 65_536]
    assert export_tokens(wide, tmp_path / "m", format="megatron").dtype == "<i4"
    assert read_megatron(tmp_path / "m")[0] == [[65_535, 65_536]]
    with pytest.raises(TokenError, match="below 65536, but the vocabulary has 65537"):
        export_tokens(wide, tmp_path / "l", format="llmc")
    assert not (tmp_path / "l.bin").exists()


def test_what_a_format_cannot_count(tmp_path):
    most = stored(tmp_path / "most", [[INT32_MAX]], vocab_size=2**31, separator_id=None)
    export_tokens(most, tmp_path / "most", format="megatron")
    assert read_megatron(tmp_path / "most")[0] == [[INT32_MAX]]
    more = stored(tmp_path / "more", [[1]], vocab_size=2**31 + 1, separator_id=None)
    with pytest.raises(TokenError, match="31 bits, but the vocabulary has 2147483649"):
        export_tokens(more, tmp_path / "more", format="megatron")

    assert struct.unpack("<3i", llmc_header(INT32_MAX)[:12]) == (20240520, 1, INT32_MAX)
    with pytest.raises(TokenError, match="but these are 2147483648"):
        llmc_header(INT32_MAX + 1)
    with pytest.raises(TokenError, match="but document 1 has 2147483648"):
        megatron_index(np.array([5, INT32_MAX + 1]), "<u2")


def test_offsets_beyond_four_gigabytes():
    lengths = np.array([INT32_MAX, INT32_MAX, 3], np.int64)
    data = megatron_index(lengths, "<i4")
    assert struct.unpack("<3q", data[34 + 12 : 34 + 36]) == (0, INT32_MAX * 4, INT32_MAX * 8)


def sparse(folder, length, starts):
    """A split of `length` zeros that take no room on disk; its hash is left unsaid."""
    source = stored(folder, [[0]] * len(starts), separator_id=None)
    record = files.read_record(folder / "index.json")
    with (folder / "tokens.npy").open("wb") as file:
        file.write(npy_header("<u2", length))
        file.truncate(128 + 2 * length)
    data = np.array(starts, "<u8")
    (folder / "documents.npy").write_bytes(npy_header("<u8", len(starts)) + data.tobytes())
    record["tokens"]["length"] = length
    files.write_record(folder / "index.json", record)
    del source
    return tokens.open(folder, verify=False)


def test_a_split_beyond_the_count_of_llmc_is_refused_before_a_byte_is_written(tmp_path):
    source = sparse(tmp_path / "tokens", 2**31 + 10, [0, 2**31 + 5])
    with pytest.raises(TokenError, match="Split the corpus"):
        export_tokens(source, tmp_path / "out" / "train", format="llmc")
    with pytest.raises(TokenError, match="document 0 has 2147483653"):
        export_tokens(source, tmp_path / "out" / "train", format="megatron")
    assert not (tmp_path / "out").exists()


@pytest.mark.slow
def test_a_split_of_more_than_2_31_tokens(tmp_path):
    length = 2**31 + 10
    source = sparse(tmp_path / "tokens", length, [0, 2**30, 2**31 + 5])
    made = export_tokens(source, tmp_path / "m", format="megatron")
    assert made.tokens == length
    assert (tmp_path / "m.bin").stat().st_size == 2 * length
    data = (tmp_path / "m.idx").read_bytes()
    assert struct.unpack("<3q", data[34 + 12 : 34 + 36]) == (0, 2**31, 2 * (2**31 + 5))


def test_memory_does_not_grow_with_the_split(tmp_path):
    source = sparse(tmp_path / "tokens", 1 << 25, [0])
    tracemalloc.start()
    export_tokens(source, tmp_path / "out", format="megatron")
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (tmp_path / "out.bin").stat().st_size == 1 << 26
    assert 1 << 20 < peak < 1 << 24


# The record beside an export


def test_the_record(tmp_path):
    source = stored(tmp_path / "tokens")
    made = export_tokens(source, tmp_path / "train", format="megatron")
    assert [path.name for path in made.paths] == ["train.bin", "train.idx", "train.json"]
    record = files.read_record(tmp_path / "train.json")
    assert record == {
        "version": 1,
        "format": "megatron",
        "tokenizer_sha256": A,
        "tokens_sha256": source.index.tokens_sha256,
        "vocab_size": 512,
        "separator_id": 511,
        "separator": "after",
        "dtype": "<u2",
        "tokens": 8,
        "documents": 3,
        "files": {
            path.name: {
                "sha256": files.sha256(path.read_bytes()),
                "bytes": path.stat().st_size,
            }
            for path in made.paths[:2]
        },
    }
    assert str(tmp_path) not in (tmp_path / "train.json").read_text()


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def test_the_same_bytes_again(tmp_path):
    source = stored(tmp_path / "tokens")
    for name in LAYOUTS:
        for time in ("first", "second"):
            export_tokens(source, tmp_path / time / name, format=name)
    assert contents(tmp_path / "first") == contents(tmp_path / "second")


# What is refused, and what stays


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("there", ["bin", "json"])
def test_files_that_are_there_stay_without_force(tmp_path, name, there):
    source = stored(tmp_path / "tokens")
    path = tmp_path / f"train.{there}"
    path.write_bytes(b"mine")
    with pytest.raises(ArtifactError, match=rf"train\.{there}: is there already\. Use --force"):
        export_tokens(source, tmp_path / "train", format=name)
    assert contents(tmp_path) == {path.name: b"mine"}
    export_tokens(source, tmp_path / "train", format=name, force=True)
    assert files.read_record(tmp_path / "train.json")["format"] == name


def test_an_index_of_another_export_never_stands_beside_other_ids(tmp_path):
    source = stored(tmp_path / "tokens")
    export_tokens(source, tmp_path / "train", format="megatron")
    before = contents(tmp_path)
    with pytest.raises(ArtifactError, match=r"train\.idx: belongs to an export of another format"):
        export_tokens(source, tmp_path / "train", format="nanogpt", force=True)
    assert contents(tmp_path) == before


@pytest.mark.parametrize("name", LAYOUTS)
def test_a_failed_write_leaves_what_was_there(tmp_path, name):
    export_tokens(stored(tmp_path / "tokens"), tmp_path / "out" / "t", format=name)
    before = contents(tmp_path / "out")
    stored(tmp_path / "longer", [[5] * 9_000])
    program = (
        "import resource, sys\n"
        "from bytepair.cli import main\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (16_000, 16_000))\n"
        "main(['tokens', 'export', *sys.argv[1:]])"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, tmp_path / "longer", tmp_path / "out" / "t",
         "--format", name, "--force"],
        check=False, capture_output=True, text=True,
    )  # fmt: skip
    assert run.returncode == 1
    assert run.stderr == f"Error: {tmp_path / 'out' / 't.bin'}: File too large\n"
    assert contents(tmp_path / "out") == before


def test_a_failure_before_the_end_leaves_the_record_too(tmp_path):
    export_tokens(stored(tmp_path / "tokens"), tmp_path / "out" / "t", format="nanogpt")
    before = contents(tmp_path / "out")
    other = stored(tmp_path / "other", [[5] * 9])
    with pytest.raises(TokenError, match="llm.c reads ids"):
        wide = stored(tmp_path / "wide", [[5]], vocab_size=65_537, separator_id=None)
        export_tokens(wide, tmp_path / "out" / "t", format="llmc", force=True)
    with pytest.raises(TokenError, match="separator must be one of"):
        export_tokens(other, tmp_path / "out" / "t", format="llmc", separator="x", force=True)
    assert contents(tmp_path / "out") == before


@pytest.mark.parametrize("name", LAYOUTS)
def test_nothing_to_export(tmp_path, name):
    for number, documents in enumerate(([], [[]])):
        source = stored(tmp_path / str(number), documents, separator_id=None)
        with pytest.raises(ArtifactError, match="holds no token"):
            export_tokens(source, tmp_path / "out", format=name)


def test_no_separator_to_place(tmp_path):
    source = stored(tmp_path / "tokens", separator_id=None)
    with pytest.raises(TokenError, match="encoded without a separator.*`encode`"):
        export_tokens(source, tmp_path / "out", format="megatron", separator="after")


# The command


def run(*arguments):
    return CliRunner().invoke(main, ["tokens", "export", *map(str, arguments)])


def test_the_command_says_what_it_wrote(tmp_path):
    stored(tmp_path / "tokens")
    result = run(tmp_path / "tokens", tmp_path / "train.bin", "--format", "megatron")
    assert result.exit_code == 0
    assert result.stdout.splitlines() == [
        "8 tokens of 3 documents, <u2, separator 511 after documents",
        f"{tmp_path / 'train.bin'}: 16 bytes",
        f"{tmp_path / 'train.idx'}: 102 bytes",
        f"{tmp_path / 'train.json'}: {(tmp_path / 'train.json').stat().st_size} bytes",
    ]
    assert run(tmp_path / "tokens", tmp_path / "train", "--format", "megatron").exit_code == 1
    forced = run(
        tmp_path / "tokens", tmp_path / "train", "--format=megatron", "--separator=none", "--force"
    )
    assert forced.stdout.splitlines()[0] == "5 tokens of 3 documents, <u2, no separator"


def test_the_command_warns_of_what_nanogpt_would_misread(tmp_path):
    stored(tmp_path / "tokens", vocab_size=65_537)
    result = run(tmp_path / "tokens", tmp_path / "train", "--format", "nanogpt")
    assert result.exit_code == 0
    assert "change both places to uint32" in result.stderr


def test_the_command_offers_what_there_is(tmp_path):
    assert FORMATS == tuple(LAYOUTS) == get_args(Format)
    assert get_args(Separator) == SEPARATORS
    with pytest.raises(TokenError, match="format must be one of .* but is 'onnx'"):
        export_tokens(stored(tmp_path / "tokens"), tmp_path / "out", format="onnx")


def test_wrong_usage_and_folders_that_are_none(tmp_path):
    assert run(tmp_path, tmp_path / "out").exit_code == 2
    assert run(tmp_path, tmp_path / "out", "--format", "onnx").exit_code == 2
    result = run(tmp_path, tmp_path / "out", "--format", "llmc")
    assert result.exit_code == 1
    assert "index.json: no such file. Run `dvc repro`" in result.stderr


@pytest.mark.parametrize("name", ["tokens.npy", "documents.npy", "index.json"])
def test_a_damaged_folder_is_refused(tmp_path, name):
    stored(tmp_path / "tokens")
    path = tmp_path / "tokens" / name
    good = path.read_bytes()
    for bad in (good[:-1], good + b"\0", good[:-3] + b"\7" + good[-2:], b""):
        path.write_bytes(bad)
        result = run(tmp_path / "tokens", tmp_path / "out", "--format", "nanogpt")
        assert result.exit_code == 1, result.output
        assert name in result.stderr
    assert not (tmp_path / "out.bin").exists()


# Megatron's own reader. It needs torch, so it is no dependency: pip install megatron-core torch

READ = """
import json, sys
import numpy
from megatron.core.datasets.indexed_dataset import IndexedDataset
out = {}
for mmap in (True, False):
    dataset = IndexedDataset(sys.argv[1], mmap=mmap)
    out[str(mmap)] = {
        "documents": [dataset[number].tolist() for number in range(len(dataset))],
        "index": dataset.document_indices.tolist(),
        "dtype": numpy.dtype(dataset.index.dtype).name,
    }
print(json.dumps(out))
"""


@pytest.mark.skipif(
    importlib.util.find_spec("megatron") is None or importlib.util.find_spec("torch") is None,
    reason="needs Megatron's own reader: pip install megatron-core torch",
)
@pytest.mark.parametrize("vocab_size", [512, 65_536, 65_537])
@pytest.mark.parametrize("separator", SEPARATORS)
def test_megatron_core_reads_it(tmp_path, separator, vocab_size):
    documents = [[1, 2, 3], [], [vocab_size - 2], [300] * 40]
    source = stored(
        tmp_path / "tokens", documents, vocab_size=vocab_size, separator_id=vocab_size - 1
    )
    export_tokens(source, tmp_path / "train", format="megatron", separator=separator)
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", READ, tmp_path / "train"],
        check=True, capture_output=True,
    )  # fmt: skip
    expected = {
        "documents": placed(documents, vocab_size - 1, separator),
        "index": [0, 1, 2, 3, 4],
        "dtype": "uint16" if vocab_size <= 65_536 else "int32",
    }
    assert json.loads(run.stdout.splitlines()[-1]) == {"True": expected, "False": expected}
