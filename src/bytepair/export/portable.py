r"""Patterns in the words that Python's `re`, Rust's `fancy-regex` and Oniguruma read alike.

tiktoken reads a pattern with fancy-regex, Hugging Face's tokenizers with Oniguruma. The three
disagree on `\s`, `\w`, `$`, `{1,3}+`, on what (?i) folds, and on the version of Unicode. So only
what they agree on is written: code point ranges, groups, lookarounds, atomic groups, `\A` and `\z`.
What a pattern means is taken from Python's own parser, after freezing.py has written out the
classes. Those of a pattern for the package `regex` are written out as that package has them now.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import cache, lru_cache
from importlib import import_module
from typing import Any

from bytepair.chunks import cut
from bytepair.export import ExportError
from bytepair.patterns import PRESETS, Pattern

Ranges = list[tuple[int, int]]

_LAST = 0x10FFFF
_SURROGATES = (0xD800, 0xDFFF)
_PRESET_REGEXES = frozenset(preset.regex for preset in PRESETS.values())


@lru_cache(maxsize=32)
def portable_regex(pattern: Pattern) -> str | None:
    r"""The pattern's chunks as the matches of a portable regular expression; None for no cut.

    Presets match every character of every text. To another pattern an alternative is added for
    the text between its matches, which is a chunk here and would be lost elsewhere.

    >>> portable_regex(Pattern("[0-9]{1,3}"))
    '[0-9]{1,3}|(?:(?![0-9]{1,3})[\\x{0}-\\x{10FFFF}])+'
    >>> portable_regex(Pattern(r"(.)\1|."))
    Traceback (most recent call last):
    bytepair.export.ExportError: pattern '(.)\\1|.': group references mean ...

    Raises:
        ExportError: the pattern has no such form.
    """
    if pattern.regex is None:
        return None
    tree = _parse(pattern)
    if tree.getwidth()[0] == 0:
        raise ExportError(
            f"pattern {pattern.regex!r}: it can match nothing at all, and no two libraries agree "
            "on where such matches are. Write + for *."
        )
    written = _Writer(pattern.regex).alternatives(tree, re.RegexFlag(tree.state.flags))
    if pattern.regex in _PRESET_REGEXES:
        return written
    return f"{written}|(?:(?!{written}){_class([(0, _LAST)])})+"


def _parse(pattern: Pattern) -> Any:
    """Python's syntax tree of a pattern in which no class depends on a library's tables."""
    compiled = pattern.compiled()
    source: str = getattr(compiled, "pattern")  # noqa: B009
    if pattern.needs_regex_library:
        source = _with_classes_of_library(source)
    parser: Any = import_module("re._parser")
    try:
        tree = parser.parse(source)
        if pattern.needs_regex_library:
            _check_same(pattern, re.compile(source))
    except re.error as error:
        raise ExportError(
            f"pattern {pattern.regex!r}: only the package regex reads it ({error}), so there is "
            "no form for other libraries."
        ) from None
    return tree


class _Writer:
    """Writes a syntax tree of Python's `re._parser`; `flags` are those that hold at a node."""

    def __init__(self, regex: str) -> None:
        self._regex = regex

    def alternatives(self, items: Any, flags: re.RegexFlag) -> str:
        """A sequence of nodes, or the alternatives that are all there is in it."""
        if len(items) == 1 and str(items[0][0]) == "BRANCH":
            return "|".join(self.sequence(branch, flags) for branch in items[0][1][1])
        return self.sequence(items, flags)

    def sequence(self, items: Any, flags: re.RegexFlag) -> str:
        return "".join(self.node(str(op), value, flags) for op, value in items)

    def node(self, op: str, value: Any, flags: re.RegexFlag) -> str:  # noqa: PLR0911
        match op:
            case "LITERAL" | "NOT_LITERAL" | "IN" | "ANY":
                return _class(_members(op, value, flags))
            case "BRANCH":
                return f"(?:{'|'.join(self.sequence(branch, flags) for branch in value[1])})"
            case "SUBPATTERN":
                _, added, removed, items = value
                inner = (flags | re.RegexFlag(added)) & ~re.RegexFlag(removed)
                return f"(?:{self.alternatives(items, inner)})"
            case "ATOMIC_GROUP":
                return f"(?>{self.alternatives(value, flags)})"
            case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
                return self.repeat(op, value, flags)
            case "ASSERT" | "ASSERT_NOT":
                sign = "=" if op == "ASSERT" else "!"
                behind = "<" if value[0] < 0 else ""
                return f"(?{behind}{sign}{self.alternatives(value[1], flags)})"
            case "AT":
                return self.place(str(value), flags)
            case "FAILURE":
                return "(?!)"
        raise ExportError(
            f"pattern {self._regex!r}: group references mean different things to different "
            "libraries, so there is no form for them all."
            if op.startswith("GROUPREF")
            else f"pattern {self._regex!r}: there is no form for other libraries ({op})."
        )

    def repeat(self, op: str, value: Any, flags: re.RegexFlag) -> str:
        """A quantifier; possessive ones as atomic groups, since `{1,3}+` is none in Oniguruma."""
        least, most, items = value
        inner = self.sequence(items, flags)
        if len(items) != 1 or str(items[0][0]) not in ("LITERAL", "NOT_LITERAL", "IN", "ANY"):
            inner = f"(?:{inner})"
        unbounded = str(most) == "MAXREPEAT"
        match (least, None if unbounded else most):
            case (0, None):
                sign = "*"
            case (1, None):
                sign = "+"
            case (0, 1):
                sign = "?"
            case (_, None):
                sign = f"{{{least},}}"
            case _:
                sign = f"{{{least}}}" if least == most else f"{{{least},{most}}}"
        if op == "POSSESSIVE_REPEAT":
            return f"(?>{inner}{sign})"
        lazy = op == "MIN_REPEAT" and least != most  # `{3}?` is optional in Oniguruma
        return f"{inner}{sign}{'?' if lazy else ''}"

    def place(self, where: str, flags: re.RegexFlag) -> str:
        multiline = bool(flags & re.MULTILINE)
        line_feed = _class([(10, 10)])
        match where:
            case "AT_BEGINNING_STRING":
                return r"\A"
            case "AT_END_STRING":
                return r"\z"
            case "AT_BEGINNING":
                return f"(?<!{_class(_complement([(10, 10)]))})" if multiline else r"\A"
            case "AT_END":
                others = _class(_complement([(10, 10)]))
                return f"(?!{others})" if multiline else rf"(?={line_feed}?\z)"
        raise ExportError(f"pattern {self._regex!r}: there is no form for other libraries.")


def _members(op: str, value: Any, flags: re.RegexFlag) -> Ranges:
    """The code points that a node for one character matches."""
    if op == "ANY":
        return [(0, _LAST)] if flags & re.DOTALL else _complement([(10, 10)])
    if op == "IN":
        negated = str(value[0][0]) == "NEGATE"
        ranges = [_range(str(kind), item) for kind, item in value[negated:]]
    else:
        negated = op == "NOT_LITERAL"
        ranges = [(value, value)]
    ranges = _joined(ranges)
    if flags & re.IGNORECASE:
        return _ignoring_case(tuple(ranges), negated=negated)
    return _complement(ranges) if negated else ranges


@lru_cache(maxsize=256)
def _ignoring_case(ranges: tuple[tuple[int, int], ...], *, negated: bool) -> Ranges:
    """What Python's re takes for one of `ranges`, or for none of them, where case is ignored."""
    body = "".join(f"\\U{first:08X}-\\U{last:08X}" for first, last in ranges)
    matched = re.findall(f"[{'^' if negated else ''}{body}]", _every_character(), re.IGNORECASE)
    return _joined((ord(character), ord(character)) for character in matched)


def _range(kind: str, item: Any) -> tuple[int, int]:
    if kind == "RANGE":
        return item[0], item[1]
    if kind == "LITERAL":
        return item, item
    raise ExportError(f"a class of Python's re was not written out ({kind} {item}).")


def _joined(ranges: Iterable[tuple[int, int]]) -> Ranges:
    """Ranges ascending, joined where they touch or overlap."""
    runs: Ranges = []
    for first, last in sorted(ranges):
        if runs and first <= runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], max(last, runs[-1][1]))
        else:
            runs.append((first, last))
    return runs


def _complement(ranges: Ranges) -> Ranges:
    edges = [-1, *(edge for run in ranges for edge in run), _LAST + 1]
    return [(a + 1, b - 1) for a, b in zip(edges[::2], edges[1::2], strict=True) if a + 1 < b]


def _class(ranges: Ranges) -> str:
    """A class in the shorter of its two forms; surrogates, which no text has, may be in or out."""
    inside, outside = (_around_surrogates(part) for part in (ranges, _complement(ranges)))
    if not inside:
        return "(?!)"
    if outside and len(outside) < len(inside):
        return f"[^{_body(outside)}]"
    one = len(inside) == 1 and inside[0][0] == inside[0][1]
    return _body(inside) if one else f"[{_body(inside)}]"


def _around_surrogates(ranges: Ranges) -> Ranges:
    """The fewest ranges with the same characters, none of which ends at a surrogate."""
    first, last = _SURROGATES
    return [
        (last + 1 if first <= a <= last else a, first - 1 if first <= b <= last else b)
        for a, b in _joined([*ranges, _SURROGATES])
        if not first <= a <= b <= last
    ]


def _body(ranges: Ranges) -> str:
    return "".join(
        _character(first) if first == last else f"{_character(first)}-{_character(last)}"
        for first, last in ranges
    )


def _character(number: int) -> str:
    """Letters, digits and the apostrophe as they are; all else by number, which needs no escape."""
    character = chr(number)
    return (
        character
        if character.isascii() and (character.isalnum() or character == "'")
        else (f"\\x{{{number:X}}}")
    )


@cache
def _every_character() -> str:
    return "".join(chr(n) for n in range(_LAST + 1) if not 0xD800 <= n <= 0xDFFF)


_ESCAPE = re.compile(r"\\[pP](?:\{[^}]*\}|\w)|\\.|\[\^?\]?|\]|.", re.DOTALL)
_BOUNDARIES = {
    r"\b": "(?:(?<=[{w}])(?![{w}])|(?<![{w}])(?=[{w}]))",
    r"\B": "(?:(?<=[{w}])(?=[{w}])|(?<![{w}])(?![{w}]))",
}
_CLASS_ESCAPE = re.compile(r"\\[pP](?:\{[^}]*\}|\w)|\\[wWdDsS]")


def _with_classes_of_library(source: str) -> str:
    """A pattern for the package `regex` with its classes written out as the library has them."""
    inside = False
    parts = []
    for token in _ESCAPE.findall(source):
        if _CLASS_ESCAPE.fullmatch(token):
            body = _library_class(token)
            parts.append(body if inside else f"[{body}]")
        elif token in _BOUNDARIES and not inside:
            parts.append(_BOUNDARIES[token].format(w=_library_class(r"\w")))
        else:
            parts.append(token)
            inside = token != "]" if inside else token.startswith("[")
    return "".join(parts)


@lru_cache(maxsize=64)
def _library_class(token: str) -> str:
    import regex

    members = regex.findall(token, _every_character())
    runs = _joined((ord(character), ord(character)) for character in members)
    return "".join(f"\\U{first:08X}-\\U{last:08X}" for first, last in runs)


def _check_same(pattern: Pattern, rewritten: re.Pattern[str]) -> None:
    """Refuse if the rewritten pattern does not cut as the package `regex` does."""
    from bytepair.export.probes import cut_probes

    for text in cut_probes():
        theirs, ours = cut(text, pattern.compiled()), cut(text, rewritten)
        if theirs != ours:
            first = next(a for a, b in zip(theirs, ours, strict=False) if a != b)
            raise ExportError(
                f"pattern {pattern.regex!r}: what the package regex reads in it has no form for "
                f"other libraries; the first difference is at {first!r}."
            )
