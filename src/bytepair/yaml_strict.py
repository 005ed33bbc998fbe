"""YAML read so that no two readers of it can disagree, and typed access to what was read.

PyYAML reads YAML 1.1, DVC (through ruamel.yaml) YAML 1.2: `0512` is 330 to the one and 512 to the
other, `1e3` a string or a number, `yes` true or a string. What both read alike is accepted; all
else is refused with its line and the fix. So are duplicate keys, keys that are not strings, tags,
anchors, merge keys, directives and a second document: params.yaml needs none of them.
"""

from __future__ import annotations

import difflib
import os
import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NoReturn

import yaml
from yaml.reader import ReaderError
from yaml.resolver import Resolver
from yaml.scanner import ScannerError

from bytepair.errors import ParamsError
from bytepair.files import StrPath

_MAX_DEPTH = 32  # params.yaml has 5 levels, and Python's recursion ends somewhere

_CONSTANTS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL")),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
}
_INTEGER = re.compile(r"[-+]?(?:0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(?:0|[1-9][0-9]*)\.[0-9]*(?:[eE][-+][0-9]+)?")

# A number to YAML 1.2, be it to its core schema or to ruamel.yaml, or a boolean to the letter of
# YAML 1.1 (PyYAML leaves y and n alone). PyYAML's own resolver knows the rest of YAML 1.1.
_OTHER_READERS = re.compile(
    r"""[yYnN]
    | [-+]?0[box][0-9a-fA-F_]+
    | (?=[-+.0-9])[-+]?(?:[0-9_]+\.?[0-9_]*|\.[0-9_]+)(?:[eE][-+]?[0-9]+)?""",
    re.VERBOSE,
)

# Line ends to YAML 1.1 but text to YAML 1.2; and a byte order mark inside the file.
_UNSAFE = re.compile("[\x85\u2028\u2029]|(?<!^)\ufeff")
_SURROGATE = re.compile("[\ud800-\udfff]")
# A block of text whose indentation scanners do not agree on.
_UNCLEAR_BLOCK = re.compile(r"[^\n]*\n+(?:[ \t]+(?:\n|\Z)| *\t)")

_FIXES = {
    "escape": "In double quotes a backslash begins an escape: use single quotes.",
    "colon": "Put a space after the colon, or the value in quotes.",
}

_TYPES = {bool: "a boolean", int: "an integer", float: "a float", str: "a string"}
_Place = tuple[str | int, ...]


def load_yaml(path: StrPath) -> dict[str, Any]:
    """Read a YAML file, every value of which is the same to YAML 1.1 and to YAML 1.2.

    Returns:
        The mapping that the file is, made of dict, list, str (without lone surrogates), int,
        float, bool and None; empty for an empty file, as DVC has it.

    Raises:
        ParamsError: the file, the line, the key and the value, and how to write it instead.
    """
    try:
        data = Path(path).read_bytes()
    except FileNotFoundError:
        raise ParamsError(
            f"{os.fspath(path)}: no such file. Run this in the folder that holds it."
        ) from None
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        raise ParamsError(
            f"{os.fspath(path)}: line {line}: not UTF-8: byte 0x{data[error.start]:02x} at byte "
            f"offset {error.start}. Save the file as UTF-8."
        ) from None
    return _Reader(text.replace("\r\n", "\n").replace("\r", "\n"), path).document()


class _Loader(yaml.SafeLoader):
    """PyYAML's scanner, less what other scanners cut differently or what crashes it."""

    def fetch_value(self) -> None:
        # {"a":1} and {a:{}}: one pair to some, an error to others
        if self.flow_level and self.peek(1) not in " \t\n\0":
            self._refuse("found a colon without a space after it")
        super().fetch_value()

    def scan_plain(self) -> Any:
        token = super().scan_plain()
        # {a:1} is the key 'a:1' to PyYAML, and an error to libyaml, which ruamel.yaml may use
        if self.flow_level and ":" in token.value:
            self._refuse(f"found a colon inside {token.value!r}")
        return token

    def scan_flow_scalar(self, style: str) -> Any:
        try:
            return super().scan_flow_scalar(style)
        except (ValueError, OverflowError):
            self._refuse("found an escape beyond \\U0010FFFF")

    def _refuse(self, problem: str) -> NoReturn:
        raise ScannerError(None, None, problem, self.get_mark())


class _Reader:
    """Builds values from PyYAML's events, and so sees what its constructor lets pass."""

    def __init__(self, text: str, path: StrPath) -> None:
        self._text = text
        self._path = os.fspath(path)
        self._events = yaml.parse(text, Loader=_Loader)
        self._resolver = Resolver()

    def document(self) -> dict[str, Any]:
        unsafe = _UNSAFE.search(self._text)
        if unsafe:
            self._refuse_character(unsafe.start())
        try:
            return self._document()
        except ReaderError as error:
            self._refuse_character(error.position)
        except yaml.MarkedYAMLError as error:
            self._refuse_syntax(error)

    def _document(self) -> dict[str, Any]:
        next(self._events)  # the start of the stream
        start: Any = next(self._events)
        if isinstance(start, yaml.StreamEndEvent):
            return {}
        if start.version or start.tags:
            self._refuse(start, (), "a % directive changes how the file is read. Delete it.")
        top = next(self._events)
        value = self._value(top, ())
        end: Any = next(self._events)
        if end.explicit or not isinstance(next(self._events), yaml.StreamEndEvent):
            self._refuse(end, (), "the document ends before the file does. Delete `---` or `...`.")
        if value is None:
            return {}
        if not isinstance(value, dict):
            self._refuse(top, (), f"expected `key: value` at the top, got {describe(value)}.")
        return value

    def _value(self, event: Any, place: _Place) -> Any:
        extra = None
        if isinstance(event, yaml.AliasEvent):
            extra = f"*{event.anchor} is an alias"
        elif event.anchor is not None:
            extra = f"&{event.anchor} is an anchor"
        elif event.tag is not None:
            extra = f"{event.tag} is a tag"
        if extra:
            self._refuse(event, place, f"{extra}. Write the value itself, or put it in quotes.")
        if len(place) > _MAX_DEPTH:
            self._refuse(event, place, f"nested deeper than {_MAX_DEPTH} levels.")
        if isinstance(event, yaml.ScalarEvent):
            return self._plain(event, place) if event.implicit[0] else self._quoted(event, place)
        if isinstance(event, yaml.SequenceStartEvent):
            return self._sequence(place)
        return self._mapping(place)

    def _sequence(self, place: _Place) -> list[Any]:
        values: list[Any] = []
        while not isinstance(event := next(self._events), yaml.SequenceEndEvent):
            values.append(self._value(event, (*place, len(values))))
        return values

    def _mapping(self, place: _Place) -> dict[str, Any]:
        values: dict[str, Any] = {}
        while not isinstance(event := next(self._events), yaml.MappingEndEvent):
            if isinstance(event, yaml.CollectionStartEvent):
                self._refuse(event, place, "a key is a string, got a list or a mapping. Quote it.")
            key = self._value(event, place)
            if not isinstance(key, str):
                self._refuse(event, place, f"a key is a string, got {describe(key)}. Quote it.")
            if key in values:
                self._refuse(event, (*place, key), "the key stands twice. Delete one of the two.")
            values[key] = self._value(next(self._events), (*place, key))
        return values

    def _quoted(self, event: Any, place: _Place) -> str:
        value: str = event.value
        surrogate = _SURROGATE.search(value)
        if surrogate:
            half = f"\\u{ord(surrogate[0]):04x} is half of a character"
            self._refuse(event, place, f"{half}. Write all of it, as \\U and 8 digits.")
        if event.style in "|>" and _UNCLEAR_BLOCK.match(self._text, event.start_mark.index):
            self._refuse(event, place, f"blanks alone, or a tab, after {event.style}. Delete them.")
        return value

    def _plain(self, event: Any, place: _Place) -> Any:
        value: str = event.value
        if value in _CONSTANTS:
            return _CONSTANTS[value]
        if _INTEGER.fullmatch(value):
            try:
                return int(value)
            except ValueError:
                self._refuse(event, place, f"an integer of {len(value)} digits is too long.")
        if _FLOAT.fullmatch(value):
            return float(value)
        if value == "<<":
            self._refuse(event, place, "<< merges keys. Write the keys out, or put it in quotes.")
        tag = self._resolver.resolve(  # type: ignore[no-untyped-call]
            yaml.ScalarNode, value, (True, False)
        )
        if tag != Resolver.DEFAULT_SCALAR_TAG or _OTHER_READERS.fullmatch(value):
            self._refuse(
                event,
                place,
                f"{value} is one thing to YAML 1.1 and another to YAML 1.2. Put it in quotes if it "
                "is text; else write true, false or a plain decimal number.",
            )
        return value

    def _refuse_character(self, position: int) -> NoReturn:
        code = ord(self._text[position])
        raise ParamsError(
            f"{self._path}: line {self._text.count(chr(10), 0, position) + 1}: the character "
            f'U+{code:04X} must not stand here as it is. Delete it, or write "\\u{code:04x}" in '
            "double quotes."
        ) from None

    def _refuse_syntax(self, error: yaml.MarkedYAMLError) -> NoReturn:
        mark = error.problem_mark or error.context_mark
        number = 0 if mark is None else mark.line
        words = ": ".join(part for part in (error.context, error.problem) if part)
        line = self._text.split("\n")[number].strip()[:80]
        fix = next(
            (fix for word, fix in _FIXES.items() if word in words),
            "Check brackets, quotes and indentation here and above, or put the value in quotes.",
        )
        shown = f", in `{line}`" if line else ""
        raise ParamsError(
            f"{self._path}: line {number + 1}: not YAML: {words}{shown}. {fix}"
        ) from None

    def _refuse(self, event: Any, place: _Place, message: str) -> NoReturn:
        where = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place)
        raise ParamsError(
            f"{self._path}: line {event.start_mark.line + 1}: "
            f"{where[1:] + ': ' if where else ''}{message}"
        ) from None


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
