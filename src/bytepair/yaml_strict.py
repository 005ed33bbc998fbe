"""YAML read so that no two readers of it can disagree.

PyYAML reads YAML 1.1, DVC (through ruamel.yaml) YAML 1.2: `0512` is 330 to the one and 512 to the
other, `1e3` a string or a number, `yes` true or a string. What both read alike is accepted; all
else is refused with its line and the fix. So are duplicate keys, keys that are not strings, tags,
anchors, merge keys, directives and a second document: params.yaml needs none of them.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any, NoReturn

import yaml
from yaml.reader import ReaderError
from yaml.resolver import Resolver
from yaml.scanner import ScannerError

from bytepair.blocks import describe
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
