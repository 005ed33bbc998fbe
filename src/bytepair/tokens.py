"""Token ids on disk: a folder per split, which any program with NumPy can read.

    tokens.npy      (tokens,)     <u2 or <u4   the documents' ids, a separator id between two
    documents.npy   (documents,)  <u8          the offset in tokens.npy at which each one starts
    index.json                                 what they were made from: hashes, sizes, names

The index is written last and removed first, so a folder that has one is complete. A tokenizer is
known here by its hash and the size of its vocabulary; turning ids into text is left to it.

A trainer takes batches from them, on any step and in any process the same:

    from bytepair import tokens

    windows = tokens.open("data/tokenizers/T/tokens/train").windows(256, batch=32, seed=1)
    inputs, targets = windows.batch(step)
"""

from __future__ import annotations

import reprlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from bytepair import files
from bytepair.arrays import HEADER_BYTES, load_npy, npy_bytes, npy_header
from bytepair.errors import ArtifactError, TokenError
from bytepair.fields import COUNT, SHA256, TEXT, Check, check_fields, damaged

if TYPE_CHECKING:
    from bytepair.windows import Order, Windows

Ids = NDArray[np.unsignedinteger[Any]]
Documents = Iterable[tuple[str, Sequence[int] | NDArray[np.integer[Any]]]]  # names and ids

VERSION = 1
MAX_VOCABULARY = 1 << 32
OFFSET_DTYPE = "<u8"
BLOCK = 1 << 22  # ids looked at in one go

FORMAT: Check = (
    f"{VERSION}, the only version that this bytepair reads",
    lambda value: type(value) is int and value == VERSION,
)
VOCAB_SIZE: Check = (
    f"a whole number from 1 to {MAX_VOCABULARY}",
    lambda value: type(value) is int and 0 < value <= MAX_VOCABULARY,
)
INDEX_FIELDS: Mapping[str, Any] = {
    "version": FORMAT,
    "tokenizer_sha256": SHA256,
    "text": {"sha256": SHA256, "bytes": COUNT, "separator_bytes": COUNT},
    "vocab_size": VOCAB_SIZE,
    "separator_id": ("an id or null", lambda value: value is None or COUNT[1](value)),
    "dtype": TEXT,
    "tokens": {"length": COUNT, "sha256": SHA256},
    "documents": {
        "length": COUNT,
        "sha256": SHA256,
        "names": (
            "a list of strings",
            lambda value: isinstance(value, list) and all(isinstance(name, str) for name in value),
        ),
    },
}


@dataclass(frozen=True)
class TokensIndex:
    """What index.json states; the two array hashes are of whole files."""

    tokenizer_sha256: str
    text_sha256: str
    text_bytes: int
    separator_bytes: int
    vocab_size: int
    separator_id: int | None
    dtype: str
    length: int
    tokens_sha256: str
    documents_sha256: str
    names: tuple[str, ...]


@dataclass(frozen=True, eq=False)
class Tokens:
    """One split's tokens, read-only; `len` counts all ids, separators included.

    Pickled, as for a worker process that is spawned, they are a path: the worker maps the files
    again. A worker that is forked shares the mapping.

    Attributes:
        ids: (tokens,), uint16 or uint32, mapped from disk.
        starts: (documents,), uint64.
        index: what index.json states.
        folder: where they were opened; None if they are in memory only.
    """

    ids: Ids
    starts: NDArray[np.uint64]
    index: TokensIndex
    folder: Path | None = None

    def __len__(self) -> int:
        return len(self.ids)

    def document(self, number: int) -> Ids:
        """The ids of one document, counted from 0, without the separator after it: (n,), a view."""
        if not 0 <= number < len(self.starts):
            raise IndexError(f"document {number}: there are {len(self.starts)}, counted from 0")
        start = int(self.starts[number])
        if number + 1 == len(self.starts):
            return self.ids[start:]
        gap = 0 if self.index.separator_id is None else 1
        return self.ids[start : int(self.starts[number + 1]) - gap]

    def documents(self) -> Iterator[tuple[str, Ids]]:
        """Name and ids of each document in order, as write_tokens takes them."""
        for number, name in enumerate(self.index.names):
            yield name, self.document(number)

    def windows(
        self,
        length: int,
        *,
        batch: int,
        seed: int,
        order: Order = "random",
        within_documents: bool = False,
    ) -> Windows:
        """Batches of `batch` windows of `length` ids; see bytepair.windows.Windows."""
        from bytepair.windows import Windows

        return Windows(
            self,
            length,
            batch_size=batch,
            seed=seed,
            order=order,
            within_documents=within_documents,
        )

    def __reduce__(self) -> tuple[Any, ...]:
        if self.folder is None:
            return Tokens, (self.ids, self.starts, self.index)
        return _open_again, (self.folder, self.index)


def storage_dtype(vocab_size: int) -> str:
    """The type of every array of a vocabulary, whichever ids a split happens to hold.

    >>> storage_dtype(65_536), storage_dtype(65_537)
    ('<u2', '<u4')
    """
    if not VOCAB_SIZE[1](vocab_size):
        raise TokenError(f"vocab_size must be {VOCAB_SIZE[0]}, but is {vocab_size!r}.")
    return "<u2" if vocab_size <= 1 << 16 else "<u4"


def write_tokens(
    folder: files.StrPath,
    documents: Documents,
    *,
    vocab_size: int,
    separator_id: int | None,
    tokenizer_sha256: str,
    text_sha256: str,
    text_bytes: int,
    separator_bytes: int,
) -> TokensIndex:
    """Store (name, ids) documents with `separator_id`, if any, between two of them.

    The text they come from has `text_bytes` bytes, `separator_bytes` of them between two documents.

    Raises:
        TokenError: an id is outside the vocabulary, or a document holds the separator's id.
        ArtifactError: a hash or a size is not one, so that the index could not be read again.
    """
    path = Path(folder) / "index.json"
    dtype = storage_dtype(vocab_size)
    tokens_file, starts, names = _join(documents, dtype, vocab_size, separator_id)
    starts_file = npy_bytes(np.array(starts, OFFSET_DTYPE))
    record = index_record(
        tokenizer_sha256=tokenizer_sha256,
        vocab_size=vocab_size,
        separator_id=separator_id,
        text_sha256=text_sha256,
        text_bytes=text_bytes,
        separator_bytes=separator_bytes,
        length=(len(tokens_file) - HEADER_BYTES) // np.dtype(dtype).itemsize,
        tokens_sha256=files.sha256(tokens_file),
        documents_sha256=files.sha256(starts_file),
        names=names,
    )
    index = parse_index(record, path)
    path.unlink(missing_ok=True)
    files.write_bytes(path.with_name("tokens.npy"), tokens_file)
    files.write_bytes(path.with_name("documents.npy"), starts_file)
    files.write_record(path, record)
    return index


def index_record(
    *,
    tokenizer_sha256: str,
    vocab_size: int,
    separator_id: int | None,
    text_sha256: str,
    text_bytes: int,
    separator_bytes: int,
    length: int,
    tokens_sha256: str,
    documents_sha256: str,
    names: Sequence[str],
) -> dict[str, Any]:
    """What index.json says, before its seal."""
    return {
        "version": VERSION,
        "tokenizer_sha256": tokenizer_sha256,
        "text": {
            "sha256": text_sha256,
            "bytes": text_bytes,
            "separator_bytes": separator_bytes,
        },
        "vocab_size": vocab_size,
        "separator_id": separator_id,
        "dtype": storage_dtype(vocab_size),
        "tokens": {"length": length, "sha256": tokens_sha256},
        "documents": {"length": len(names), "sha256": documents_sha256, "names": list(names)},
    }


def open_tokens(
    folder: files.StrPath, *, tokenizer_sha256: str | None = None, verify: bool = True
) -> Tokens:
    """Open what write_tokens stored; the ids stay on disk until they are looked at.

    Args:
        folder: where index.json lies.
        tokenizer_sha256: the tokenizer that the ids will be used with; None accepts any.
        verify: read everything once, to check hashes, separators and the range of the ids.

    Raises:
        ArtifactError: a file is absent, damaged, or made with another tokenizer.
    """
    path = Path(folder) / "index.json"
    index = parse_index(files.read_record(path), path)
    check_tokenizer(path, index.tokenizer_sha256, tokenizer_sha256, stage="encode-splits")
    digests = (index.tokens_sha256, index.documents_sha256) if verify else (None, None)
    tokens_path, starts_path = path.with_name("tokens.npy"), path.with_name("documents.npy")
    ids = load_npy(tokens_path, index.dtype, index.length, digests[0])
    starts = load_npy(starts_path, OFFSET_DTYPE, len(index.names), digests[1])
    _check_starts(starts, index, starts_path)
    if verify:
        _check_ids(ids, starts, index, tokens_path)
    return Tokens(ids, starts, index, path.parent.absolute())


open = open_tokens  # noqa: A001 -- tokens.open(...), for those who import the module


def _open_again(folder: Path, index: TokensIndex) -> Tokens:
    tokens = open_tokens(folder, verify=False)
    if tokens.index != index:
        raise ArtifactError(f"{folder}: written again since it was opened. Open it again.")
    return tokens


def check_tokenizer(path: Path, found: str, expected: str | None, *, stage: str) -> None:
    """Refuse what was made with a tokenizer other than `expected`; None expects nothing."""
    if expected not in (None, found):
        raise ArtifactError(
            f"{path}: made with the tokenizer whose sha256 is {found}, but used with {expected}. "
            f"Run `dvc repro`: its stage {stage} must run again."
        )


def _join(
    documents: Documents, dtype: str, vocab_size: int, separator_id: int | None
) -> tuple[bytearray, list[int], list[str]]:
    """The bytes of tokens.npy, with where each document starts and how it is called."""
    separator = b""
    if separator_id is not None:
        separator = _stored("the separator", [separator_id], dtype, vocab_size).tobytes()
    buffer = bytearray(HEADER_BYTES)
    itemsize = np.dtype(dtype).itemsize
    starts: list[int] = []
    names: list[str] = []
    for name, ids in documents:
        array = _stored(f"document {name!r}", ids, dtype, vocab_size)
        if separator_id is not None and (array == separator_id).any():
            raise TokenError(
                f"document {name!r}: the separator's id {separator_id} stands inside, at "
                f"{int((array == separator_id).argmax())}. Encode it without special tokens."
            )
        if names:
            buffer += separator
        starts.append((len(buffer) - HEADER_BYTES) // itemsize)
        names.append(name)
        buffer += array.tobytes()
    buffer[:HEADER_BYTES] = npy_header(dtype, (len(buffer) - HEADER_BYTES) // itemsize)
    return buffer, starts, names


def _stored(
    what: str, ids: Sequence[int] | NDArray[np.integer[Any]], dtype: str, vocab_size: int
) -> Ids:
    array = np.asarray(ids)
    if array.ndim != 1 or (array.size and array.dtype.kind not in "iu"):
        raise TokenError(f"{what}: ids must be whole numbers in a row, not {reprlib.repr(ids)}.")
    outside = (array < 0) | (array >= vocab_size)
    if outside.any():
        at = int(outside.argmax())
        raise TokenError(
            f"{what}: id {array[at]} at {at}, but the vocabulary has 0 to {vocab_size - 1}. "
            "Encode with the tokenizer whose vocabulary it is."
        )
    return array.astype(dtype)


def parse_index(record: Any, path: files.StrPath) -> TokensIndex:
    """The index of a record, checked; `path` is for messages."""
    check_fields(record, INDEX_FIELDS, path)
    vocab_size, separator_id = record["vocab_size"], record["separator_id"]
    names, count = record["documents"]["names"], record["documents"]["length"]
    if len(names) != count:
        raise damaged(path, f"documents.length is {count}, but documents.names has {len(names)}")
    if separator_id is not None and separator_id >= vocab_size:
        raise damaged(path, f"separator_id is {separator_id}, but vocab_size is {vocab_size}")
    if record["dtype"] != storage_dtype(vocab_size):
        raise damaged(path, f"dtype is {record['dtype']!r}, but vocab_size is {vocab_size}")
    return TokensIndex(
        tokenizer_sha256=record["tokenizer_sha256"],
        text_sha256=record["text"]["sha256"],
        text_bytes=record["text"]["bytes"],
        separator_bytes=record["text"]["separator_bytes"],
        vocab_size=vocab_size,
        separator_id=separator_id,
        dtype=record["dtype"],
        length=record["tokens"]["length"],
        tokens_sha256=record["tokens"]["sha256"],
        documents_sha256=record["documents"]["sha256"],
        names=tuple(names),
    )


def _check_starts(starts: NDArray[np.uint64], index: TokensIndex, path: Path) -> None:
    # Compared, never subtracted: unsigned differences wrap.
    precedes = np.less_equal if index.separator_id is None else np.less
    if not len(starts):
        divided = index.length == 0
    else:
        inside = starts[0] == 0 and starts[-1] <= index.length
        divided = bool(inside and precedes(starts[:-1], starts[1:]).all())
    if not divided:
        raise damaged(path, f"its offsets do not divide {index.length} tokens into documents")


def _check_ids(ids: Ids, starts: NDArray[np.uint64], index: TokensIndex, path: Path) -> None:
    highest = int(ids.max(initial=0))
    if highest >= index.vocab_size:
        raise damaged(path, f"it holds id {highest}, but vocab_size is {index.vocab_size}")
    if index.separator_id is not None:
        places = [
            first + np.flatnonzero(ids[first : first + BLOCK] == index.separator_id)
            for first in range(0, len(ids), BLOCK)  # a billion ids need no billion bytes more
        ]
        found = np.concatenate([np.empty(0, np.int64), *places])
        if not np.array_equal(found, starts[1:].astype(np.int64) - 1):
            raise damaged(path, f"id {index.separator_id} does not separate its documents")
