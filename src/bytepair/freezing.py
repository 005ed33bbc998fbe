r"""Character classes written out, so that a pattern means the same on every machine.

`re` and `regex` take their Unicode tables from the Python or the library that is installed, so the
same `\w` can cut the same text differently after an upgrade. Here the tables are those of Unicode
16.0: each class in a pattern is replaced by its code point ranges before Python's `re` compiles
it. What cannot be frozen this way is refused.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from bytepair.errors import PatternError
from bytepair.unicode16 import TABLES

# Class bodies: what stands between [ and ].

# Python's \s, and the property White_Space that \s means elsewhere. Neither has changed since
# Unicode 6.3, and characters are no longer added to them.
PYTHON_SPACE = "9-D 1C-20 85 A0 1680 2000-200A 2028-2029 202F 205F 3000"
WHITE_SPACE = "9-D 20 85 A0 1680 2000-200A 2028-2029 202F 205F 3000"


def categories(*names: str) -> str:
    """The tables whose category starts with one of `names`, joined."""
    return " ".join(text for category, text in TABLES.items() if category.startswith(names))


def ranges(table: str) -> list[tuple[int, int]]:
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
        ("w", categories("L", "N") + " 5F"),
        ("d", categories("Nd")),
        ("s", PYTHON_SPACE),
    ):
        runs = ranges(table)
        bodies[rf"\{name}"] = _body(runs)
        bodies[rf"\{name.upper()}"] = _body(_complement(runs))
    return bodies


@cache
def _preset_classes() -> dict[str, str]:
    r"""Bodies of the classes in the published `regex` patterns."""
    properties = ("L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "N")
    bodies = {rf"\p{{{name}}}": _body(ranges(categories(name))) for name in properties}
    bodies[r"\s"] = _body(ranges(WHITE_SPACE))
    bodies[r"\S"] = _body(_complement(ranges(WHITE_SPACE)))
    return bodies


_OUTSIDE = re.compile(
    r"""
      \\p\{\w+\}              # a property
    | \\N\{[^}]*\}            # a character by name
    | \\(?:x..|u.{4}|U.{8}|[0-7]{3})  # a character by number
    | \\.                     # another escape
    | \(\?\#[^)]*\)           # a comment
    | \(\?[a-zA-Z-]*[:)]     # flags
    | \[\^?\]?                # a class begins; a ] that is first in it is a character
    | .
    """,
    re.VERBOSE | re.DOTALL,
)
_INSIDE = re.compile(r"\\p\{\w+\}|\\N\{[^}]*\}|\\(?:x..|u.{4}|U.{8}|[0-7]{3})|\\.|.", re.DOTALL)
_NON_ASCII_ESCAPE = re.compile(r"\\(?:u|U|x[89a-fA-F]|[23][0-7][0-7])")


def freeze_preset(regex: str) -> str:
    """A published `regex` pattern in the words of `re`, with its classes as ranges."""
    classes = _preset_classes()
    return "".join(
        (classes[token] if inside else f"[{classes[token]}]") if token in classes else token
        for token, inside, _ in _tokens(regex)
    )


def freeze_re(regex: str) -> str:
    """The same pattern with Python's classes as ranges.

    Raises:
        PatternError: a construct whose meaning depends on the Python version.
    """
    classes = _python_classes()
    word = classes[r"\w"]
    boundaries = {
        r"\b": f"(?:(?<=[{word}])(?![{word}])|(?<![{word}])(?=[{word}]))",
        r"\B": f"(?:(?<=[{word}])(?=[{word}])|(?<![{word}])(?![{word}]))",
    }
    parts = []
    for token, inside, flags in _tokens(regex):
        ignores_case = flags.ignores_case
        _check_token(regex, token, inside=inside, ignores_case=ignores_case)
        if inside:
            parts.append(classes.get(token, token))
        elif token in classes:
            # under (?i), ranges would also take what folds into them
            parts.append(f"(?-i:[{classes[token]}])" if ignores_case else f"[{classes[token]}]")
        elif token in boundaries:
            parts.append(f"(?-i:{boundaries[token]})" if ignores_case else boundaries[token])
        else:
            parts.append(token)
    return "".join(parts)


class _Flags:
    """Whether case is ignored here: set by (?i), (?i:...) and (?-i:...), undone by the )."""

    def __init__(self) -> None:
        self.groups = [False]

    @property
    def ignores_case(self) -> bool:
        return self.groups[-1]

    def follow(self, token: str) -> None:
        if token == ")":
            self.groups[1:] = self.groups[1:-1]
        elif token.startswith("(") and not token.startswith("(?#"):
            on, _, off = token.strip("(?:)").partition("-")
            ignores = (self.ignores_case or "i" in on) and "i" not in off
            if token.endswith(")"):
                self.groups[-1] = ignores
            else:
                self.groups.append(ignores)


def _tokens(regex: str) -> Iterator[tuple[str, bool, _Flags]]:
    """Each token, whether it stands inside [...], and the flags that hold there."""
    flags = _Flags()
    inside = False
    position = 0
    while match := (_INSIDE if inside else _OUTSIDE).match(regex, position):
        token = match.group()
        position = match.end()
        yield token, inside, flags
        if inside:
            inside = token != "]"
        else:
            flags.follow(token)
            inside = token.startswith("[")


def _check_token(regex: str, token: str, *, inside: bool, ignores_case: bool) -> None:
    if token.startswith(r"\N{"):
        raise PatternError(f"pattern {regex!r}: write {token} as \\uXXXX; names vary by Python.")
    if not inside and re.match(r"\(\?[a-zA-Z]*[axL][a-zA-Z]*[-:)]", token):
        raise PatternError(
            f"pattern {regex!r}: the flags {token} change what classes mean: write the "
            "pattern on one line with the characters themselves, such as [A-Za-z]."
        )
    if not ignores_case:
        return
    if not token.isascii() or _NON_ASCII_ESCAPE.match(token):
        raise PatternError(
            f"pattern {regex!r}: {token} where case is ignored depends on Python's case tables: "
            "write both cases, such as [éÉ]."
        )
    if inside and token in _python_classes():
        raise PatternError(
            f"pattern {regex!r}: {token} inside [...] where case is ignored also takes what folds "
            "into it: put (?-i:...) around the [...]."
        )
