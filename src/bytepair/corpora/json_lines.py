r"""Documents of .jsonl files: an object of JSON a line.

A line of white space alone is no record, though it counts as a line. JSON with a byte order mark
is refused, as everywhere here. Which fields are read, params say; of the others it does not matter
what they hold, nor whether one stands twice.

Most lines are read by orjson, which takes a quarter of the time. It takes the last of duplicate
keys and has limits of its own, so it has no say in doubt: a line that it refuses, or that might
have such a key twice, goes to the standard library, whose strict reading decides. What a line
gives, or why it is refused, is therefore the same with orjson and without.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any, BinaryIO, NoReturn

from bytepair.corpora.shard_documents import (
    Document,
    Malformed,
    MalformedError,
    Records,
    decode_record,
    too_large,
)
from bytepair.shard_params import ReadRules

MAX_DEPTH = 256
_LONGEST_INTEGER = 20  # digits and sign of a number of 64 bits
_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")  # names that JSON can write in another way by \u alone
_ESCAPED_PLAIN = re.compile(rb"\\u00(?:2[dDeE]|3[0-9]|[4-7][0-9a-fA-F])")
_SURROGATE = re.compile("[\ud800-\udfff]")
_KINDS = {dict: "an object", list: "a list", str: "a string", bool: "a boolean"}


def read_json_lines(stream: BinaryIO, rules: ReadRules, path: str) -> Records:
    """The documents of lines of JSON."""
    names = [name for name in (rules.id, rules.group) if name is not None]
    read = LineReader(rules.text, *names).read
    for number, line in enumerate(_lines(stream, rules.largest), start=1):
        if line is not None and line.isspace():
            continue
        try:
            if line is None:
                raise MalformedError(too_large(rules.largest))  # noqa: TRY301
            text, *others = read(line)
            if not text:
                raise MalformedError(f"{rules.text!r} is empty")  # noqa: TRY301
        except MalformedError as error:
            yield Malformed(number, str(error))
            continue
        name = f"{path}:{number}" if rules.id is None else others[0]
        yield Document(name, name if rules.group is None else others[-1], text)


def _lines(stream: BinaryIO, largest: int) -> Iterator[bytes | None]:
    """The lines; None for one of more than `largest` bytes without its LF."""
    while line := stream.readline(largest + 1):
        if len(line) <= largest or line.endswith(b"\n"):
            yield line
            continue
        while line and not line.endswith(b"\n"):
            line = stream.readline(1 << 20)
        yield None


class LineReader:
    r"""Reads named fields of objects; a dot in a name leads into a nested object.

    >>> read = LineReader("text", "meta.id").read
    >>> read(b'{"text": "Once.", "meta": {"id": 7}}')
    ['Once.', '7']
    >>> read(b'{"text": "Once.", "text": "Twice.", "meta": {"id": 7}}')
    Traceback (most recent call last):
    bytepair.corpora.shard_documents.MalformedError: the key 'text' stands twice
    """

    def __init__(self, text: str, *others: str) -> None:
        self._paths = [tuple(name.split(".")) for name in (text, *others)]
        keys = sorted({key for path in self._paths for key in path})
        self._loads = _orjson_loads() if all(map(_PLAIN.fullmatch, keys)) else None
        self._keys = [
            (f'"{key}"'.encode(), re.compile(rf'"{re.escape(key)}"\s*:'.encode())) for key in keys
        ]

    def read(self, line: bytes) -> list[str]:
        """The text, which must be a string, and the other fields; these may be integers, too.

        Raises:
            MalformedError: the reason.
        """
        if self._loads is not None and self._has_no_key_twice(line):
            try:
                record = self._loads(line)
                found = [_walk(record, path) for path in self._paths]
            except (ValueError, RecursionError):  # a MalformedError is one
                pass
            else:
                kinds = [type(value) for value in found]
                if kinds[0] is str and {str, int}.issuperset(kinds) and not _is_deep(record):
                    return list(map(str, found))
        return self.read_strictly(line)

    def read_strictly(self, line: bytes) -> list[str]:
        """The same, by the standard library alone."""
        record = _parse(line)
        found = [_walk(record, path) for path in self._paths]
        for number, (value, path) in enumerate(zip(found, self._paths, strict=True)):
            name = ".".join(path)
            if type(value) is not str and (number == 0 or type(value) is not int):
                wanted = "a string or an integer of 64 bits" if number else "a string"
                raise MalformedError(f"{name!r} is {_kind(value)}, expected {wanted}")
            if type(value) is str and (half := _SURROGATE.search(value)):
                raise MalformedError(
                    f"{name!r} holds a lone surrogate, \\u{ord(half[0]):04x}, at position "
                    f"{half.start()}"
                )
        return list(map(str, found))

    def _has_no_key_twice(self, line: bytes) -> bool:
        """Whether each key that matters certainly stands once at most, at whatever depth."""
        return not _ESCAPED_PLAIN.search(line) and all(
            line.count(quoted) <= 1 or len(key.findall(line)) <= 1 for quoted, key in self._keys
        )


def _orjson_loads() -> Callable[[bytes], Any] | None:
    try:
        import orjson
    except ImportError:
        return None
    return orjson.loads


class _HasTwice(dict[str, Any]):
    """An object in which keys stand twice."""

    twice: frozenset[str]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    times = Counter(name for name, _ in pairs)
    marked = _HasTwice(found)
    marked.twice = frozenset(name for name in found if times[name] > 1)
    return marked


def _integer(digits: str) -> int | float:
    """An integer of 64 bits, signed or not; any other is a float, as it is to orjson."""
    value = int(digits) if len(digits) <= _LONGEST_INTEGER else 1 << 64
    return value if -(1 << 63) <= value < 1 << 64 else float(value)


def _constant(name: str) -> NoReturn:
    raise MalformedError(f"not JSON: {name} is none of its numbers")


_decode = json.JSONDecoder(
    object_pairs_hook=_object, parse_int=_integer, parse_constant=_constant
).decode


def _parse(line: bytes) -> Any:
    if line.startswith(b"\xef\xbb\xbf"):
        raise MalformedError("starts with a byte order mark")
    try:
        record = _decode(decode_record(line))
    except json.JSONDecodeError as error:
        raise MalformedError(f"not JSON: {error.msg}, at character {error.pos}") from None
    except RecursionError:  # deeper than Python goes, and that is deeper than MAX_DEPTH
        is_deep = True
    else:
        is_deep = _is_deep(record)
    if is_deep:
        raise MalformedError(f"nested deeper than {MAX_DEPTH} levels")
    return record


def _is_deep(record: Any) -> bool:
    """Whether lists and objects are nested more than MAX_DEPTH deep."""
    level = [record]
    for _ in range(MAX_DEPTH):
        level = [
            item
            for value in level
            if isinstance(value, list | dict)
            for item in (value.values() if isinstance(value, dict) else value)
            if isinstance(item, list | dict)
        ]
        if not level:
            return False
    return True


def _walk(record: Any, path: tuple[str, ...]) -> Any:
    value = record
    for depth, key in enumerate(path):
        if not isinstance(value, dict):
            name = repr(".".join(path[:depth])) if depth else "the line"
            raise MalformedError(f"{name} is {_kind(value)}, expected an object")
        if key not in value:
            raise MalformedError(f"there is no field {'.'.join(path[: depth + 1])!r}")
        if isinstance(value, _HasTwice) and key in value.twice:
            raise MalformedError(f"the key {key!r} stands twice")
        value = value[key]
    return value


def _kind(value: Any) -> str:
    return "null" if value is None else _KINDS.get(type(value), "a number")
