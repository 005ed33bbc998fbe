"""Ids as bytes, to be piped and stored: as text, JSON, .npy, or plain little-endian integers.

numpy is imported for the binary formats only.
"""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from typing import Any

from bytepair.errors import ArtifactError, TokenError
from bytepair.files import dump_json, parse_json

FORMATS = ("text", "json", "npy", "u16", "u32")
_RAW = {"u16": "<u2", "u32": "<u4"}


def is_binary(name: str) -> bool:
    """Whether a format is none for a terminal."""
    return name not in {"text", "json"}


def check_width(name: str, vocab_size: int) -> None:
    """Refuse `u16` for a vocabulary with larger ids.

    Raises:
        TokenError: there are ids from 65,536 on.
    """
    if name == "u16" and vocab_size > 1 << 16:
        raise TokenError(
            f"u16 holds ids below 65,536, but this tokenizer has {vocab_size:,}: take u32."
        )


def dump_ids(ids: Any, name: str) -> bytes:
    r"""Ids in a format; for the binary ones they are best an array.

    >>> dump_ids([104, 257], "text"), dump_ids([104, 257], "u16")
    (b'104 257\n', b'h\x00\x01\x01')
    """
    if name == "text":
        return " ".join(map(str, ids)).encode("ascii") + b"\n"
    if name == "json":
        return dump_json(list(ids), indent=None)
    import numpy as np

    from bytepair.arrays import npy_bytes

    array = np.asarray(ids)
    return npy_bytes(array) if name == "npy" else array.astype(_RAW[name]).tobytes()


def parse_ids(data: bytes, name: str, where: str) -> Iterable[int]:
    """Ids from what dump_ids made, or another program; whether the ids exist is not checked.

    Args:
        data: all of the file.
        name: of the format.
        where: the file, for messages.

    Raises:
        TokenError: something is not a whole number.
        ArtifactError: the data are not of this format.
    """
    if name == "text":
        return _parse_text(data, where)
    if name == "json":
        ids = parse_json(data, where)
        if not isinstance(ids, list):
            raise ArtifactError(f"{where}: {json.dumps(ids)[:40]} is not a JSON list of ids.")
        return ids
    import numpy as np

    if name == "npy":
        try:
            array = np.load(io.BytesIO(data), allow_pickle=False)
        except (ValueError, EOFError) as error:
            raise ArtifactError(f"{where}: not a .npy file: {error}") from None
        if not isinstance(array, np.ndarray) or array.ndim != 1 or array.dtype.kind not in "ui":
            raise ArtifactError(f"{where}: not an array of integers of one dimension.")
        return array
    width = np.dtype(_RAW[name]).itemsize
    if len(data) % width:
        raise ArtifactError(
            f"{where}: {len(data):,} bytes are no whole number of ids of {width} bytes."
        )
    return np.frombuffer(data, _RAW[name])


def _parse_text(data: bytes, where: str) -> list[int]:
    ids = []
    for number, word in enumerate(data.split(), 1):
        if not word.isdigit() or len(word) > 20:
            raise TokenError(
                f"{where}: {word.decode('utf-8', 'backslashreplace')[:40]!r}, number {number}, is "
                "not an id: ids are whole numbers with white space between them."
            )
        ids.append(int(word))
    return ids
