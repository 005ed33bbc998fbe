"""Token arrays written document by document, so that only a batch of them is in memory."""

from __future__ import annotations

import hashlib
import shutil
from array import array
from pathlib import Path
from typing import BinaryIO, Self

import numpy as np

from bytepair.arrays import npy_bytes, npy_header
from bytepair.files import record_bytes, sha256
from bytepair.tokenizer import Tokenizer
from bytepair.tokens import OFFSET_DTYPE, TokensIndex, index_record, parse_index, storage_dtype

BATCH = 4 << 20  # bytes of text that are encoded in one go


class TokensWriter:
    """Writes a folder of tokens, the bytes of which are those that write_tokens writes.

    Args:
        folder: on this machine.
        tokenizer: what encodes.
        special: the special token between two documents, if any.
    """

    def __init__(self, folder: Path, tokenizer: Tokenizer, special: str | None) -> None:
        folder.mkdir(parents=True)
        self._folder = folder
        self._tokenizer = tokenizer
        self._separator = None if special is None else tokenizer.special_tokens[special]
        self._dtype = storage_dtype(tokenizer.vocab_size)
        self._file = (folder / "ids").open("wb")
        self._texts: list[bytes] = []
        self.waiting = 0
        """Bytes of documents that are not encoded yet."""
        self._names: list[str] = []
        self._starts = array("Q")
        self._length = 0
        self.sha256: dict[str, str] = {}
        """After `close`: the hash of each file."""

    def add(self, name: str, text: bytes) -> None:
        """The next document, in UTF-8."""
        self._names.append(name)
        self._texts.append(text)
        self.waiting += len(text)
        if self.waiting >= BATCH:
            self._write()

    def close(self, *, text_sha256: str, text_bytes: int, separator_bytes: int) -> TokensIndex:
        """Write what is left, and the index; its arguments are those of write_tokens."""
        self._write()
        self._file.close()
        header = npy_header(self._dtype, self._length)
        digest = hashlib.sha256()
        with (self._folder / "ids").open("rb") as ids, self._open("tokens.npy") as whole:
            whole.write(header)
            shutil.copyfileobj(ids, whole, 1 << 20)
            whole.seek(0)
            while block := whole.read(1 << 20):
                digest.update(block)
        (self._folder / "ids").unlink()
        starts = npy_bytes(np.frombuffer(self._starts, np.uint64).astype(OFFSET_DTYPE, copy=False))
        record = index_record(
            tokenizer_sha256=self._tokenizer.sha256,
            vocab_size=self._tokenizer.vocab_size,
            separator_id=self._separator,
            text_sha256=text_sha256,
            text_bytes=text_bytes,
            separator_bytes=separator_bytes,
            length=self._length,
            tokens_sha256=digest.hexdigest(),
            documents_sha256=sha256(starts),
            names=self._names,
        )
        index = record_bytes(record)
        for name, data in (("documents.npy", starts), ("index.json", index)):
            with self._open(name) as file:
                file.write(data)
        self.sha256 = {
            "tokens.npy": digest.hexdigest(),
            "documents.npy": sha256(starts),
            "index.json": sha256(index),
        }
        return parse_index(record, self._folder / "index.json")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def _open(self, name: str) -> BinaryIO:
        return (self._folder / name).open("wb+")

    def _write(self) -> None:
        """Encode what waits, a separator before each document but the very first."""
        if not self._texts:
            return
        ids, offsets = self._tokenizer.encode_batch_array(self._texts, threads=1)
        starts = offsets[:-1].astype(np.int64)
        if self._separator is not None:
            ids = np.insert(ids, starts, self._separator)
            starts += np.arange(1, len(starts) + 1)
            if not self._starts:
                ids, starts = ids[1:], starts - 1
        self._file.write(ids.astype(self._dtype, copy=False).tobytes())
        self._starts.frombytes((starts + self._length).astype(np.uint64).tobytes())
        self._length += len(ids)
        self._texts, self.waiting = [], 0
