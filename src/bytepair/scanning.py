"""What the compiled kernel needs to cut text by a named pattern: its number, and its classes.

The classes are made from the same frozen tables as the patterns of `re`, so the two cannot differ.
A pattern of one's own has no scanner: it is cut in Python.
"""

from __future__ import annotations

from functools import cache

from bytepair.freezing import PYTHON_SPACE, WHITE_SPACE, categories, ranges
from bytepair.kernel import library
from bytepair.kernel.scan import Scanner
from bytepair.patterns import PRESETS, Pattern

# The numbers of patterns are those of kernel/bytepair.h, those of classes are of kernel/scan.h.
_PATTERNS = {"words": 0, "notebook": 1, "gpt2-ascii": 2, "gpt2": 3, "cl100k": 4, "o200k": 5}
_LETTER, _DIGIT, _UPPER, _LOWER, _MARK, _SPACE, _LINE = range(1, 8)

_WORD = ((_LETTER, categories("L", "N") + " 5F"), (_SPACE, PYTHON_SPACE))
_CLASSES = {
    "words": _WORD,
    "notebook": _WORD,
    "gpt2-ascii": ((_LETTER, "41-5A 61-7A"), (_DIGIT, "30-39"), (_SPACE, PYTHON_SPACE)),
    "gpt2": ((_LETTER, categories("L")), (_DIGIT, categories("N")), (_SPACE, WHITE_SPACE)),
    "cl100k": (
        (_LETTER, categories("L")),
        (_DIGIT, categories("N")),
        (_SPACE, WHITE_SPACE),
        (_LINE, "A D"),
    ),
    "o200k": (
        (_LETTER, categories("Lm", "Lo")),
        (_UPPER, categories("Lu", "Lt")),
        (_LOWER, categories("Ll")),
        (_MARK, categories("M")),
        (_DIGIT, categories("N")),
        (_SPACE, WHITE_SPACE),
        (_LINE, "A D"),
    ),
}


@cache
def kernel_scanner(pattern: Pattern) -> Scanner | None:
    """The kernel's scanner for a named pattern; None for another, or if there is no kernel."""
    if library() is None:
        return None
    for name, number in _PATTERNS.items():
        preset = PRESETS[name]
        if (pattern.regex, pattern.engine) == (preset.regex, preset.engine):
            classes = (
                (first, last, class_)
                for class_, members in _CLASSES[name]
                for first, last in ranges(members)
            )
            return Scanner(number, tuple(classes))
    return None
