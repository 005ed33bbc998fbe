"""Typed access to the blocks of params.yaml, with errors that name file, key, value and fix."""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable
from decimal import Decimal
from typing import Any, NoReturn

from bytepair.errors import ParamsError
from bytepair.files import StrPath

_TYPES = {bool: "a boolean", int: "an integer", float: "a float", str: "a string"}
_NAME = re.compile(r"[a-z0-9_][a-z0-9_-]*")
_SIZE = re.compile(r"([0-9]{1,15}) ?(B|kB|MB|GB|TB|KiB|MiB|GiB|TiB)")
_UNITS = {
    "B": 1,
    **{unit: 1000**power for power, unit in enumerate(("kB", "MB", "GB", "TB"), 1)},
    **{unit: 1024**power for power, unit in enumerate(("KiB", "MiB", "GiB", "TiB"), 1)},
}


class Block:
    """A mapping of the file and its place there; what it gives out has been checked.

    An empty `known` allows any key. Every refusal is a ParamsError that names the file, the key
    and its value, and says what to write instead.
    """

    def __init__(self, path: StrPath, where: str, value: Any, *known: str) -> None:
        self._path = os.fspath(path)
        self._where = where
        self._known = known
        if not isinstance(value, dict):
            self.refuse(
                "", f"expected a mapping, got {describe(value)}. Write {{}} for an empty one."
            )
        self.values: dict[str, Any] = value
        for key in value:
            if known and key not in known:
                self.refuse("", f"the key {key!r} is not known. {choices(key, known)}")

    def refuse(self, key: str, message: str) -> NoReturn:
        place = ": ".join(filter(None, (self._path, _dotted(self._where, key))))
        raise ParamsError(f"{place}: {message}")

    def block(self, key: str, *known: str) -> Block:
        if key not in self.values:
            keys = f" ({', '.join(known)})" if known else ""
            self.refuse(
                "",
                f"the block {key!r} is missing, and a stage depends on it. Add `{key}:` and its "
                f"keys{keys}, or `{key}: {{}}` if it needs none.",
            )
        return Block(self._path, _dotted(self._where, key), self.values[key], *known)

    def named(self, name: str, *known: str) -> Block:
        """The block that a person has named, as those of corpora and tokenizers are."""
        if name not in self.values:
            self.refuse("", f"there is no block {name!r}. {choices(name, self.values)}")
        if not _NAME.fullmatch(name):
            self.refuse(name, "a name is made of a-z, 0-9, - and _. Rename the block.")
        return self.block(name, *known)

    def blocks(self, key: str, *known: str) -> list[Block]:
        return [
            Block(self._path, _dotted(self._where, f"{key}[{index}]"), value, *known)
            for index, value in enumerate(self._list(key, "mappings"))
        ]

    def string(self, key: str, *, default: str | None = None, may_be_empty: bool = False) -> str:
        return self._string(key, self.get(key, default), may_be_empty=may_be_empty)

    def optional_string(self, key: str) -> str | None:
        return None if self.values.get(key) is None else self.string(key)

    def choice(self, key: str, known: Iterable[str], *, default: str | None = None) -> str:
        if key not in self.values and default is None:
            self.refuse("", f"the key {key!r} is missing. Write one of: {', '.join(known)}.")
        value = self.string(key, default=default)
        if value not in known:
            self.refuse(key, f"{value!r} is not known. {choices(value, known)}")
        return value

    def strings(self, key: str, *, may_be_empty: bool = False) -> tuple[str, ...]:
        """Strings that are not empty and differ from each other."""
        items = self._list(key, "strings", may_be_empty=may_be_empty)
        strings = [self._string(f"{key}[{index}]", item) for index, item in enumerate(items)]
        for index, string in enumerate(strings):
            if string in strings[:index]:
                self.refuse(f"{key}[{index}]", f"{string!r} stands twice. Delete one of the two.")
        return tuple(strings)

    def optional_strings(self, key: str) -> tuple[str, ...] | None:
        return None if self.values.get(key) is None else self.strings(key)

    def integer(
        self,
        key: str,
        *,
        minimum: int,
        maximum: int | None = None,
        because: str = "",
        default: int | None = None,
    ) -> int:
        value = self.get(key, default)
        if isinstance(value, bool) or not isinstance(value, int):
            fix = "Write a whole number."
            if isinstance(value, str) and re.fullmatch("[0-9]+", value):
                fix = "Write it without quotes."
            elif isinstance(value, float) and value.is_integer():
                fix = f"Write {value:.0f}."
            self.refuse(key, f"expected an integer, got {describe(value)}. {fix}")
        if value < minimum or (maximum is not None and value > maximum):
            limits = f"at least {minimum}" if maximum is None else f"{minimum} to {maximum}"
            self.refuse(key, f"expected {limits}{because}, got {value}.")
        return value

    def optional_integer(self, key: str, *, minimum: int) -> int | None:
        return None if self.values.get(key) is None else self.integer(key, minimum=minimum)

    def size(self, key: str, *, default: int) -> int:
        """A number of bytes, at least 1: `16MB` is 16 * 1000^2 of them, `16MiB` is 16 * 1024^2."""
        value = self.get(key, default)
        match = _SIZE.fullmatch(value) if isinstance(value, str) else None
        size = int(match[1]) * _UNITS[match[2]] if match else value
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            units = ", ".join(_UNITS)
            self.refuse(
                key, f"expected a size such as 16MB, got {describe(value)}. Units: {units}."
            )
        return size

    def optional_share(self, key: str) -> Decimal | None:
        """A part of the whole, above 0 and below 1, as the decimal that the file says."""
        value = self.values.get(key)
        if value is None:
            return None
        share = Decimal(repr(value)) if type(value) in {int, float} else None
        if share is None or not 0 < share < 1:
            self.refuse(
                key,
                f"expected a share above 0 and below 1, such as 0.01, got {describe(value)}. "
                "Delete the key for none.",
            )
        return share

    def boolean(self, key: str, *, default: bool) -> bool:
        value = self.get(key, default)
        if not isinstance(value, bool):
            self.refuse(
                key, f"expected a boolean, got {describe(value)}. Write true or false, unquoted."
            )
        return value

    def get(self, key: str, default: Any = None) -> Any:
        if key in self.values:
            return self.values[key]
        if default is None:
            self.refuse("", f"the key {key!r} is missing. It takes: {', '.join(self._known)}.")
        return default

    def _list(self, key: str, items: str, *, may_be_empty: bool = False) -> list[Any]:
        value = self.get(key)
        if not isinstance(value, list):
            self.refuse(
                key, f"expected a list of {items}, got {describe(value)}. Write it in [brackets]."
            )
        if not (value or may_be_empty):
            self.refuse(
                key, f"asked for and empty: expected {items}. Add one, or delete an optional key."
            )
        return value

    def _string(self, key: str, value: Any, *, may_be_empty: bool = False) -> str:
        if not isinstance(value, str):
            fix = "Put it in quotes." if isinstance(value, int | float) else "Write one string."
            self.refuse(key, f"expected a string, got {describe(value)}. {fix}")
        if not (value or may_be_empty):
            self.refuse(key, "expected a string that is not empty, got ''.")
        return value


def choices(value: str, known: Iterable[str]) -> str:
    """What there is to choose from, and the nearest to `value` if one is near.

    >>> choices("heading", ["headings", "characters"])
    "Known: headings, characters. Did you mean 'headings'?"
    """
    known = list(known)
    near = difflib.get_close_matches(value, known, 1)
    listed = f"Known: {', '.join(known) or 'none'}."
    return f"{listed} Did you mean {near[0]!r}?" if near else listed


def describe(value: Any) -> str:
    """A value and its type in YAML's words, for error messages.

    >>> describe("512"), describe(True), describe([])
    ("'512' (a string)", 'true (a boolean)', 'a list')
    """
    if value is None:
        return "nothing (null)"
    if isinstance(value, list | dict):
        return "a list" if isinstance(value, list) else "a mapping"
    shown = str(value).lower() if isinstance(value, bool) else repr(value)
    return f"{shown} ({_TYPES[type(value)]})"


def _dotted(where: str, key: str) -> str:
    return f"{where}.{key}" if where and key else where or key
