"""Holding the JSON files that stages write against what their fields must be."""

from __future__ import annotations

import os
import re
import reprlib
from collections.abc import Callable, Mapping
from typing import Any

from bytepair.errors import ArtifactError
from bytepair.files import StrPath

Check = tuple[str, Callable[[Any], bool]]  # what a value must be, in words and as a test

TEXT: Check = ("a string", lambda value: isinstance(value, str))
SHA256: Check = (
    "64 lower-case hex digits",
    lambda value: isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) is not None,
)
COUNT: Check = ("a whole number from 0 on", lambda value: type(value) is int and value >= 0)


def check_fields(value: Any, fields: Mapping[str, Any], path: StrPath, name: str = "") -> None:
    """Hold JSON against `fields`, in which each key has a Check or fields of its own.

    `path`, which may be a URL, is for messages.

    Raises:
        ArtifactError: a key is missing or unknown, or a value is not as it must be.
    """
    if not isinstance(value, dict):
        raise damaged(path, f"{name or 'all of it'} must be an object, is {reprlib.repr(value)}")
    prefix = f"{name}." if name else ""
    for key in sorted(fields.keys() ^ value.keys()):
        raise damaged(path, f"{prefix}{key} is {'missing' if key in fields else 'unknown'}")
    for key, expected in fields.items():
        if isinstance(expected, Mapping):
            check_fields(value[key], expected, path, prefix + key)
        elif not expected[1](value[key]):
            found = reprlib.repr(value[key])
            raise damaged(path, f"{prefix}{key} must be {expected[0]}, but is {found}")


def damaged(path: StrPath, what: str) -> ArtifactError:
    """The error for a file that cannot have been written as it is."""
    return ArtifactError(
        f"{os.fspath(path)}: {what}. Delete the folder it is in and run `dvc repro`."
    )
