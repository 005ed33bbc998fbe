"""Where what was found differs from what was expected, said in a few words with both values."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from bytepair.arrays import HEADER_BYTES
from bytepair.errors import ArtifactError
from bytepair.files import parse_json

ABSENT = object()
"""Stands for a value or a file on the side that does not have it."""

_SHOWN = 72  # a SHA-256 is shown whole
_BLOCK = 1 << 16


def differing_files(expected: Path, found: Path) -> Iterator[tuple[Path, str]]:
    """Each file at or below `found` that is not as it is at or below `expected`, and how."""
    for name in sorted(_files(expected) | _files(found)):
        good, path = expected / name, found / name
        if not path.is_file():
            yield path, "absent"
        elif not good.is_file():
            yield path, "is not among the files that the stage writes"
        elif difference := first_difference(good.read_bytes(), path.read_bytes(), path.name):
            yield path, difference


def first_difference(expected: bytes, found: bytes, name: str) -> str | None:
    r"""The first difference between two files that are called `name`, or None.

    >>> first_difference(b"[[1, 2], [3, 4]]", b"[[1, 2], [3, 5]]", "merges.json")
    '[1] is [3, 5], expected [3, 4]'
    >>> first_difference(b"once", b"on", "text.txt")
    'has 2 bytes, expected 4; byte offset 2 is nothing, expected 0x63'
    """
    if expected == found:
        return None
    inside = None
    if name.endswith(".json"):
        inside = _first_in_json(expected, found)
    elif name.endswith(".npy"):
        inside = _first_in_array(expected, found)
    return inside or _first_byte(expected, found)


def differences(expected: Any, found: Any, where: str = "") -> Iterator[tuple[str, Any, Any]]:
    """Every place at which two JSON values differ, with what was expected and what was found.

    A short list of scalars, such as a merge, is one value; the shards of a manifest go by URL.

    >>> list(differences({"a": [1, 2], "b": 1}, {"a": [1, 3], "c": 1}))[0]
    ('a', [1, 2], [1, 3])
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        for key in [*expected, *(key for key in found if key not in expected)]:
            inner = f"{where}.{key}" if where else str(key)
            yield from differences(expected.get(key, ABSENT), found.get(key, ABSENT), inner)
    elif isinstance(expected, list) and isinstance(found, list) and not _short(expected, found):
        goods, bads = _entries(expected, found)
        for key in goods | bads:
            yield from differences(goods.get(key, ABSENT), bads.get(key, ABSENT), f"{where}[{key}]")
    elif type(expected) is not type(found) or expected != found:
        yield where, expected, found


def shown(value: Any) -> str:
    """A value in JSON, cut short; `nothing` if it is absent."""
    if value is ABSENT:
        return "nothing"
    text = json.dumps(value, ensure_ascii=False, default=str)
    return text if len(text) <= _SHOWN else f"{text[: _SHOWN - 3]}..."


def _files(path: Path) -> set[str]:
    if path.is_file():
        return {""}
    return {file.relative_to(path).as_posix() for file in path.rglob("*") if file.is_file()}


def _short(*lists: list[Any]) -> bool:
    return all(
        len(part) < 4 and not any(isinstance(v, list | dict) for v in part) for part in lists
    )


def _entries(*lists: list[Any]) -> Iterator[dict[Any, Any]]:
    """The items of each list by their URLs, if all have one, or by their places."""
    by_url = all(isinstance(item, dict) and "url" in item for part in lists for item in part)
    for part in lists:
        yield {item["url"] if by_url else place: item for place, item in enumerate(part)}


def _first_in_json(expected: bytes, found: bytes) -> str | None:
    try:
        found_all = differences(parse_json(expected, ""), parse_json(found, ""))
        where, good, bad = next(found_all)
        if not where.startswith("shards["):  # the sums of a manifest, which tell of no shard
            is_shard = (each for each in found_all if each[0].startswith("shards["))
            where, good, bad = next(is_shard, (where, good, bad))
    except (ArtifactError, StopIteration):  # no JSON, or the same values in another layout
        return None
    return f"{where or 'all of it'} is {shown(bad)}, expected {shown(good)}"


def _first_in_array(expected: bytes, found: bytes) -> str | None:
    """The first number that differs, if the headers do not."""
    if len(expected) != len(found) or expected[:HEADER_BYTES] != found[:HEADER_BYTES]:
        return None
    dtype = np.dtype(expected[:HEADER_BYTES].split(b"'")[3].decode())
    good, bad = (np.frombuffer(data, dtype, offset=HEADER_BYTES) for data in (expected, found))
    index = int((good != bad).argmax())
    return f"[{index}] is {bad[index]}, expected {good[index]}"


def _first_byte(expected: bytes, found: bytes) -> str:
    start = 0
    while expected[start : start + _BLOCK] == found[start : start + _BLOCK]:
        start += _BLOCK
    offset = start
    while expected[offset : offset + 1] == found[offset : offset + 1]:
        offset += 1
    good, bad = (
        f"0x{data[offset]:02x}" if offset < len(data) else "nothing" for data in (expected, found)
    )
    sizes = ""
    if len(expected) != len(found):
        sizes = f"has {len(found):,} bytes, expected {len(expected):,}; "
    return f"{sizes}byte offset {offset} is {bad}, expected {good}"
