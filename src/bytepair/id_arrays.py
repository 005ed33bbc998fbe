"""The ids of texts as numpy arrays, with special tokens between the pieces that are encoded."""

from __future__ import annotations

from array import array
from collections.abc import Iterable
from itertools import accumulate
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from bytepair.chunks import check_text
from bytepair.encoding import is_utf8
from bytepair.files import decode_utf8
from bytepair.kernel.encode import SLACK
from bytepair.special_tokens import Cutter


class _EncodesInto(Protocol):
    def encode_into(
        self, text: bytes, ends: array[int], ids: NDArray[Any], *, threads: int
    ) -> array[int]: ...


def encode_to_array(
    encoder: _EncodesInto,
    cutter: Cutter | None,
    texts: Iterable[str | bytes],
    *,
    vocab_size: int,
    threads: int,
    out: NDArray[Any] | None = None,
) -> tuple[NDArray[Any], NDArray[np.uint64]]:
    """The ids of texts, joined, and where each text's begin: (tokens,) and (texts + 1,).

    Raises:
        TextError: a text is not UTF-8, or holds a lone surrogate.
        ValueError: `out` is too short, or of another type.
    """
    pieces: list[bytes] = []
    after: list[int] = []  # each piece: the id of a special token, or -1
    numbers = [0]  # of pieces up to each text's beginning
    for text in texts:
        for piece, special in _pieces(text, cutter):
            pieces.append(piece)
            after.append(-1 if special is None else special)
        numbers.append(len(pieces))
    joined = b"".join(pieces)  # a single piece is not copied
    ids = _room(len(joined), vocab_size, threads, out)
    ends = encoder.encode_into(
        joined, array("Q", accumulate(map(len, pieces))), ids, threads=threads
    )
    offsets = np.array([0, *ends], np.uint64)
    found = ids[: int(offsets[-1])]
    specials = np.array(after, np.int64)
    is_special = specials >= 0
    if is_special.any():
        whole = np.insert(
            found, offsets[1:][is_special].astype(np.int64), specials[is_special].astype(ids.dtype)
        )
        offsets[1:] += np.cumsum(is_special).astype(np.uint64)
        found = whole if out is None else out[: len(whole)]
        found[:] = whole
    return found, offsets[numbers]


def _pieces(text: str | bytes, cutter: Cutter | None) -> Iterable[tuple[bytes, int | None]]:
    if isinstance(text, bytes):
        if cutter is None and is_utf8(text):
            return [(text, None)]
        text = decode_utf8(text, "the text")  # says what is not UTF-8
    check_text(text)
    if cutter is None:
        return [(text.encode("utf-8"), None)]
    return ((piece.encode("utf-8"), special) for piece, special in cutter(text))


def _room(size: int, vocab_size: int, threads: int, out: NDArray[Any] | None) -> NDArray[Any]:
    dtype = np.uint16 if vocab_size <= 1 << 16 else np.uint32
    if out is None:
        return np.empty(size + threads * SLACK, dtype)
    if out.dtype != dtype or out.ndim != 1 or not (out.flags.c_contiguous and out.flags.writeable):
        raise ValueError(
            f"out is an array of shape {out.shape} and type {out.dtype}: it must be writable, "
            f"contiguous, of one dimension and type {np.dtype(dtype)}."
        )
    if len(out) < size + SLACK:
        raise ValueError(
            f"out has room for {len(out)} ids: {size} bytes of text need room for {size + SLACK}."
        )
    return out
