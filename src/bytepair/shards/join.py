"""The tokens of all shards as one folder of tokens, written block by block."""

from __future__ import annotations

import hashlib
import io
from array import array
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO, BinaryIO

import numpy as np

from bytepair.arrays import HEADER_BYTES, npy_bytes, npy_header
from bytepair.errors import ArtifactError
from bytepair.fields import damaged
from bytepair.files import parse_record, replacing, sha256, write_bytes, write_record
from bytepair.shards.merge import train_sha256
from bytepair.shards.receipts import Receipt
from bytepair.shards.store import Store, open_store
from bytepair.shards.work import Done, EncodeTask
from bytepair.tokens import (
    OFFSET_DTYPE,
    TokensIndex,
    index_record,
    parse_index,
    storage_dtype,
)

BLOCK = 1 << 20


def join_tokens(
    tasks: Sequence[EncodeTask],
    done: Sequence[Done],
    split: str,
    folder: Path,
    *,
    vocab_size: int,
) -> TokensIndex:
    """Join the tokens of a split, in the order of tasks, as write_tokens would have written them.

    Args:
        tasks: of one store and tokenizer.
        done: what encode_shard made of each.
        split: one of theirs.
        folder: on this machine; index.json is written last.
        vocab_size: the tokenizer's.

    Raises:
        ArtifactError: the files of a shard are not what its receipt says, or no shard has a
            document of the split.
    """
    store = open_store(tasks[0].store)
    parts = [
        (task.folder(split), receipt)
        for task, one in zip(tasks, done, strict=True)
        if (receipt := one.receipts[task.splits.index(split)]).documents
    ]
    if not parts:
        raise ArtifactError(
            f"{folder}: no document falls to {split}. Ask for a larger share in params.yaml."
        )
    indices = [_index(store, name, receipt) for name, receipt in parts]
    separator_id, dtype = indices[0].separator_id, storage_dtype(vocab_size)
    separator = b"" if separator_id is None else np.array([separator_id], dtype).tobytes()
    gaps = len(parts) - 1
    length = sum(index.length for index in indices) + (0 if separator_id is None else gaps)
    index_path = folder / "index.json"
    index_path.unlink(missing_ok=True)
    starts, first = array("Q"), 0
    names: list[str] = []
    with replacing(folder / "tokens.npy") as file:
        out = _Hashed(file)
        out.write(npy_header(dtype, length))
        for number, ((name, receipt), index) in enumerate(zip(parts, indices, strict=True)):
            if number:
                out.write(separator)
                first += len(separator) // np.dtype(dtype).itemsize
            for block in _checked(store, name, receipt, "tokens.npy"):
                out.write(block)
            offsets = b"".join(_checked(store, name, receipt, "documents.npy"))
            starts.extend((np.frombuffer(offsets, OFFSET_DTYPE) + np.uint64(first)).tolist())
            names += index.names
            first += index.length
    starts_file = npy_bytes(np.array(starts, OFFSET_DTYPE))
    write_bytes(folder / "documents.npy", starts_file)
    record = index_record(
        tokenizer_sha256=sha256(tasks[0].tokenizer),
        vocab_size=vocab_size,
        separator_id=separator_id,
        text_sha256=train_sha256([receipt for _, receipt in parts]),
        text_bytes=sum(receipt.text_bytes for _, receipt in parts)
        + gaps * indices[0].separator_bytes,
        separator_bytes=indices[0].separator_bytes,
        length=length,
        tokens_sha256=out.sha256,
        documents_sha256=sha256(starts_file),
        names=names,
    )
    joined = parse_index(record, index_path)
    write_record(index_path, record)
    return joined


class _Hashed:
    """A file that is hashed as it is written."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self._hash = hashlib.sha256()

    def write(self, data: bytes) -> None:
        self._file.write(data)
        self._hash.update(data)

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


def _index(store: Store, folder: str, receipt: Receipt) -> TokensIndex:
    data = b"".join(_checked(store, folder, receipt, "index.json", header=0))
    name = store.name(f"{folder}/index.json")
    return parse_index(parse_record(data, name), name)


def _checked(
    store: Store, folder: str, receipt: Receipt, name: str, *, header: int = HEADER_BYTES
) -> Iterator[bytes]:
    """The bytes of an output after its header, held to the receipt when all have been read."""
    digest = hashlib.sha256()
    path = f"{folder}/{name}"
    with store.open(path) as file:
        digest.update(_exactly(file, header))
        while block := file.read(BLOCK):
            digest.update(block)
            yield block
    if digest.hexdigest() != receipt.outputs[name].sha256:
        raise damaged(store.name(path), "its bytes are not those that its receipt vouches for")


def _exactly(file: BinaryIO, size: int) -> bytes:
    """So many bytes, since a raw read may give fewer."""
    found = io.BytesIO()
    while found.tell() < size and (read := file.read(size - found.tell())):
        found.write(read)
    return found.getvalue()
