r"""Character classes written out, so that a pattern means the same on every machine.

`re` and `regex` take their Unicode tables from the Python or the library that is installed, so the
same `\w` can cut the same text differently after an upgrade. Here the tables are those of Unicode
16.0: each class in a pattern is replaced by its code point ranges before Python's `re` compiles
it. What cannot be frozen this way is refused.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import cache

from bytepair.errors import PatternError
from bytepair.unicode16 import TABLES

# Class bodies: what stands between [ and ].

# Python's \s, and the property White_Space that \s means elsewhere. Neither has changed since
# Unicode 6.3, and characters are no longer added to them.
_PYTHON_SPACE = "9-D 1C-20 85 A0 1680 2000-200A 2028-2029 202F 205F 3000"
_WHITE_SPACE = "9-D 20 85 A0 1680 2000-200A 2028-2029 202F 205F 3000"


def _table(*names: str) -> str:
    """The tables whose category starts with one of `names`, joined."""
    return " ".join(text for category, text in TABLES.items() if category.startswith(names))


def _runs(table: str) -> list[tuple[int, int]]:
    """The code point ranges of a table, ascending and joined where they touch."""
    runs: list[tuple[int, int]] = []
    for first, last in sorted(
        (int(first, 16), int(last or first, 16))
        for first, _, last in (entry.partition("-") for entry in table.split())
    ):
        if runs and first == runs[-1][1] + 1:
            runs[-1] = (runs[-1][0], last)
        else:
            runs.append((first, last))
    return runs


def _body(runs: list[tuple[int, int]]) -> str:
    return "".join(f"\\U{first:08X}-\\U{last:08X}" for first, last in runs)


def _complement(runs: list[tuple[int, int]]) -> list[tuple[int, int]]:
    edges = [-1, *(edge for run in runs for edge in run), 0x110000]
    return [(a + 1, b - 1) for a, b in zip(edges[::2], edges[1::2], strict=True) if a + 1 < b]


@cache
def _python_classes() -> dict[str, str]:
    r"""Bodies of Python's classes: \w is letters, everything numeric and `_`, no marks."""
    bodies = {}
    for name, table in (
        ("w", _table("L", "N") + " 5F"),
        ("d", _table("Nd")),
        ("s", _PYTHON_SPACE),
    ):
        runs = _runs(table)
        bodies[rf"\{name}"] = _body(runs)
        bodies[rf"\{name.upper()}"] = _body(_complement(runs))
    return bodies


@cache
def _preset_classes() -> dict[str, str]:
    r"""Bodies of the classes in the published `regex` patterns."""
    properties = ("L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "N")
    bodies = {rf"\p{{{name}}}": _body(_runs(_table(name))) for name in properties}
    bodies[r"\s"] = _body(_runs(_WHITE_SPACE))
    bodies[r"\S"] = _body(_complement(_runs(_WHITE_SPACE)))
    return bodies


_OUTSIDE = re.compile(
    r"""
      \\p\{\w+\}              # a property
    | \\N\{[^}]*\}            # a character by name
    | \\.                     # an escape
    | \(\?\#[^)]*\)           # a comment
    | \(\?[a-zA-Z-]*[:)]     # flags
    | \[\^?\]?                # a class begins; a ] that is first in it is a character
    | .
    """,
    re.VERBOSE | re.DOTALL,
)
_INSIDE = re.compile(r"\\p\{\w+\}|\\N\{[^}]*\}|\\.|.", re.DOTALL)
_NON_ASCII_ESCAPE = re.compile(r"\\(?:u|U|x[89a-fA-F]|[23][0-7][0-7])")


def _rewrite(regex: str, classes: dict[str, str], other: Callable[[str], str]) -> str:
    """Write classes out as ranges; `other` handles every other token but those inside [...]."""
    parts = []
    inside = False
    position = 0
    while match := (_INSIDE if inside else _OUTSIDE).match(regex, position):
        token = match.group()
        position = match.end()
        if token in classes:
            parts.append(classes[token] if inside else f"[{classes[token]}]")
        elif inside:
            parts.append(token)
            inside = token != "]"
        else:
            parts.append(other(token))
            inside = token.startswith("[")
    return "".join(parts)


def freeze_preset(regex: str) -> str:
    """A published `regex` pattern in the words of `re`, with its classes as ranges."""
    return _rewrite(regex, _preset_classes(), lambda token: token)


def freeze_re(regex: str) -> str:
    """The same pattern with Python's classes as ranges.

    Raises:
        PatternError: a construct whose meaning depends on the Python version.
    """
    word = _python_classes()[r"\w"]
    boundaries = {
        r"\b": f"(?:(?<=[{word}])(?![{word}])|(?<![{word}])(?=[{word}]))",
        r"\B": f"(?:(?<=[{word}])(?=[{word}])|(?<![{word}])(?![{word}]))",
    }
    non_ascii = not regex.isascii() or _NON_ASCII_ESCAPE.search(regex)

    if r"\N{" in regex:
        raise PatternError(f"pattern {regex!r}: write \\N{{...}} as \\uXXXX; names vary by Python.")

    def other(token: str) -> str:
        if token.startswith("(?") and token[2:3].isalpha():
            flags = token[2:-1].partition("-")[0]
            if set(flags) & set("axL"):
                raise PatternError(
                    f"pattern {regex!r}: the flags {token} change what classes mean: write the "
                    "pattern on one line with the characters themselves, such as [A-Za-z]."
                )
            if "i" in flags and non_ascii:
                raise PatternError(
                    f"pattern {regex!r}: {token} with characters beyond ASCII depends on Python's "
                    "case tables: write both cases, such as [éÉ]."
                )
        return boundaries.get(token, token)

    return _rewrite(regex, _python_classes(), other)
