"""Token arrays as the files that other trainers read: nanoGPT, llm.c, Megatron-LM.

    nanogpt     NAME.bin    the ids, uint16 or uint32, and nothing else
    llmc        NAME.bin    256 int32 (20240520, 1, tokens, 0, ...), then the ids as uint16
    megatron    NAME.bin    the ids, uint16 or int32
                NAME.idx    where each document lies in it

All numbers are little-endian. Beside each export lies NAME.json, a record of what it was made from
and the hashes of its files; it is removed first and written last, so an export that has one is
complete. None of the three readers looks at it.

Layouts: github.com/karpathy/nanoGPT, data/openwebtext/prepare.py; github.com/karpathy/llm.c,
llmc/dataloader.h and dev/data/data_common.py; github.com/NVIDIA/Megatron-LM,
megatron/core/datasets/indexed_dataset.py.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, Literal, get_args

import numpy as np
from numpy.typing import NDArray

from bytepair import files
from bytepair.errors import ArtifactError, TokenError
from bytepair.tokens import Tokens

Format = Literal["nanogpt", "llmc", "megatron"]
Separator = Literal["after", "before", "between", "none"]

VERSION = 1
BLOCK = 1 << 20  # ids written in one go
INT32_MAX = (1 << 31) - 1
LLMC_MAGIC, LLMC_VERSION, LLMC_HEADER = 20240520, 1, 256  # of GPT-2; what llm.c in C reads
MEGATRON_MAGIC, MEGATRON_VERSION = b"MMIDIDX\x00\x00", 1
MEGATRON_DTYPES = {"<u2": 8, "<i4": 4}  # there is no uint32


@dataclass(frozen=True)
class Layout:
    """One format: its ids, what stands before them, and its index.

    Attributes:
        separator: where the id that divides documents usually stands.
        dtype: from the stored type and the size of the vocabulary to the type in the file.
        header: from the number of tokens to the bytes before the ids.
        index: from each document's length, (documents,) int64, and the type to NAME.idx.
    """

    separator: Separator
    dtype: Callable[[str, int], str]
    header: Callable[[int], bytes] = lambda _: b""
    index: Callable[[NDArray[np.int64], str], bytes] | None = None


@dataclass(frozen=True)
class Export:
    """What was written: its files, the record last, and what is in them."""

    paths: tuple[Path, ...]
    tokens: int
    documents: int
    dtype: str
    separator: Separator


def export_tokens(
    tokens: Tokens,
    out: files.StrPath,
    *,
    format: Format,  # noqa: A002 -- the word for it
    separator: Separator | None = None,
    force: bool = False,
) -> Export:
    """Write `tokens` for another trainer, a block at a time.

    Args:
        tokens: one split.
        out: NAME or NAME.bin.
        format: one of the three above.
        separator: whether the separator's id goes after each document, before each, or between
            two; "none" leaves it out. None is what is usual: nanogpt "between", as it is stored;
            llmc "before" (its dev/data scripts); megatron "after" (`--append-eod` of its
            tools/preprocess_data.py); "none" where there is no separator.
        force: replace files that are there.

    Raises:
        TokenError: the format is unknown or cannot hold these ids, or there is no separator.
        ArtifactError: there are no tokens, or a file is there already.
    """
    if format not in LAYOUTS:
        raise TokenError(f"format must be one of {tuple(LAYOUTS)}, but is {format!r}.")
    layout = LAYOUTS[format]
    separator = _separator(tokens, layout.separator, separator)
    dtype = layout.dtype(tokens.index.dtype, tokens.index.vocab_size)
    lengths = document_lengths(tokens, separator)
    total = int(lengths.sum())
    if not total:
        raise ArtifactError(f"{tokens.folder}: holds no token, so there is nothing to export.")
    header = layout.header(total)
    index = None if layout.index is None else layout.index(lengths, dtype)
    paths = _paths(out, indexed=index is not None, force=force)
    record: dict[str, Any] = {
        "version": VERSION,
        "format": format,
        "tokenizer_sha256": tokens.index.tokenizer_sha256,
        "tokens_sha256": tokens.index.tokens_sha256,
        "vocab_size": tokens.index.vocab_size,
        "separator_id": tokens.index.separator_id,
        "separator": separator,
        "dtype": dtype,
        "tokens": total,
        "documents": len(lengths),
    }
    with ExitStack() as stack:
        bodies = [stack.enter_context(files.replacing(path)) for path in paths[:-1]]
        written = [_write(bodies[0], header, _blocks(tokens, separator), dtype)]
        if index is not None:
            bodies[1].write(index)
            written.append({"sha256": files.sha256(index), "bytes": len(index)})
        for body in bodies:
            body.flush()  # a full disk shows here, while all that was there still is
        paths[-1].unlink(missing_ok=True)
    record["files"] = {path.name: one for path, one in zip(paths[:-1], written, strict=True)}
    files.write_record(paths[-1], record)
    return Export(paths, total, len(lengths), dtype, separator)


def document_lengths(tokens: Tokens, separator: Separator) -> NDArray[np.int64]:
    """Ids of each document, with the separator that is on its side: (documents,), int64."""
    starts = tokens.starts.astype(np.int64)
    lengths: NDArray[np.int64] = np.append(starts[1:], len(tokens))[: len(starts)] - starts
    if tokens.index.separator_id is None or not len(lengths):
        return lengths
    lengths[:-1] -= 1  # back to the documents alone
    if separator in ("after", "before"):
        return lengths + 1
    if separator == "between":
        lengths[:-1] += 1
    return lengths


def llmc_header(total: int) -> bytes:
    """The 1,024 bytes in front of `total` ids.

    Raises:
        TokenError: there are more than the header can count.
    """
    if total > INT32_MAX:
        raise TokenError(
            f"llm.c counts the tokens of a file in 31 bits, up to {INT32_MAX}, but these are "
            f"{total}. Split the corpus into several."
        )
    fields = np.zeros(LLMC_HEADER, "<i4")
    fields[:3] = LLMC_MAGIC, LLMC_VERSION, total
    return fields.tobytes()


def megatron_index(lengths: NDArray[np.int64], dtype: str) -> bytes:
    """NAME.idx for documents of one sequence each.

    Magic, version (u64), dtype code (u8), sequences (u64), entries of the last list (u64); then of
    each sequence its length (i4) and offset in bytes (i8); then the number of the sequence at
    which each document starts, and the number of all (i8).

    Raises:
        TokenError: a document is longer than its field can say.
    """
    longest = int(lengths.max(initial=0))
    if longest > INT32_MAX:
        raise TokenError(
            f"Megatron counts the ids of a document in 31 bits, up to {INT32_MAX}, but document "
            f"{int(lengths.argmax())} has {longest}. Divide it."
        )
    offsets = np.concatenate([[0], np.cumsum(lengths)[:-1]]) * np.dtype(dtype).itemsize
    return b"".join(
        (
            MEGATRON_MAGIC,
            MEGATRON_VERSION.to_bytes(8, "little"),
            MEGATRON_DTYPES[dtype].to_bytes(1, "little"),
            len(lengths).to_bytes(8, "little"),
            (len(lengths) + 1).to_bytes(8, "little"),
            lengths.astype("<i4").tobytes(),
            offsets.astype("<i8").tobytes(),
            np.arange(len(lengths) + 1, dtype="<i8").tobytes(),
        )
    )


def _as_stored(dtype: str, _: int) -> str:
    return dtype


def _uint16_alone(dtype: str, vocab_size: int) -> str:
    if dtype != "<u2":
        raise TokenError(
            f"llm.c reads ids of 16 bits, below 65536, but the vocabulary has {vocab_size}. "
            "Export as nanogpt or megatron."
        )
    return dtype


def _no_uint32(dtype: str, vocab_size: int) -> str:
    if vocab_size > INT32_MAX + 1:
        raise TokenError(
            f"Megatron reads ids of 31 bits, but the vocabulary has {vocab_size}. "
            "Export as nanogpt."
        )
    return "<i4" if dtype == "<u4" else dtype


LAYOUTS = {
    "nanogpt": Layout("between", _as_stored),
    "llmc": Layout("before", _uint16_alone, header=llmc_header),
    "megatron": Layout("after", _no_uint32, index=megatron_index),
}


def _separator(tokens: Tokens, usual: Separator, asked: Separator | None) -> Separator:
    if asked is not None and asked not in get_args(Separator):
        raise TokenError(f"separator must be one of {get_args(Separator)}, but is {asked!r}.")
    if tokens.index.separator_id is None:
        if asked not in (None, "none"):
            raise TokenError(
                f"{tokens.folder}: was encoded without a separator, so there is none to put "
                f"{asked} documents. Leave the option out, or name one under `encode` in "
                "params.yaml."
            )
        return "none"
    return asked or usual


def _paths(out: files.StrPath, *, indexed: bool, force: bool) -> tuple[Path, ...]:
    """NAME.bin, NAME.idx if there is one, and NAME.json; refused if they are there."""
    body = Path(out)
    if body.suffix != ".bin":
        body = body.with_name(body.name + ".bin")
    index, record = body.with_suffix(".idx"), body.with_suffix(".json")
    if index.exists() and not indexed:
        raise ArtifactError(
            f"{index}: belongs to an export of another format. Delete it, or choose another name."
        )
    paths = (body, index, record) if indexed else (body, record)
    for path in paths:
        if path.exists() and not force:
            raise ArtifactError(f"{path}: is there already. Use --force, or choose another name.")
    return paths


def _blocks(tokens: Tokens, separator: Separator) -> Iterator[NDArray[Any]]:
    """All ids in order. The array has its separators between documents already."""
    mark = np.array([tokens.index.separator_id or 0], tokens.index.dtype)
    pieces: Iterable[NDArray[Any]] = [tokens.ids]
    if separator == "none" and tokens.index.separator_id is not None:
        pieces = (ids for _, ids in tokens.documents())
    if separator == "before":
        yield mark
    for piece in pieces:
        for first in range(0, len(piece), BLOCK):
            yield piece[first : first + BLOCK]
    if separator == "after":
        yield mark


def _write(
    file: IO[bytes], header: bytes, blocks: Iterator[NDArray[Any]], dtype: str
) -> dict[str, Any]:
    """Write header and ids; the hash and the size of the whole."""
    digest = hashlib.sha256(header)
    size = file.write(header)
    for block in blocks:
        data = block.astype(dtype).tobytes()
        digest.update(data)
        size += file.write(data)
    return {"sha256": digest.hexdigest(), "bytes": size}
