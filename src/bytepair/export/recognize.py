r"""Patterns of other libraries as ours: a preset where it means the same, else with Unicode 16.0.

tiktoken 0.14 and tokenizers 0.23 have the tables of Unicode 16.0, which are ours, while the package
regex has newer ones: only a pattern with classes beyond those of our presets is left to it.

What means the same was found by cutting all texts of up to six of a dozen characters. The pattern
that Llama 3 and older releases of tiktoken have for cl100k is not among them: before white space
at the end of a text it cuts after the last line feed, today's does not.
"""

from __future__ import annotations

import re
from functools import cache

from bytepair.errors import ArtifactError, PatternError
from bytepair.export.portable import portable_regex
from bytepair.freezing import freeze_preset
from bytepair.patterns import PRESETS, Pattern

_SPELLINGS = {
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+": "gpt2",
    r"'(?:[sdmt]|ll|ve|re)| ?\p{L}++| ?\p{N}++| ?[^\s\p{L}\p{N}]++|\s++$|\s+(?!\S)|\s": "gpt2",
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s+$|\s*[\r\n]|\s+(?!\S)|\s": "cl100k",
}
_WHOLE_TEXT = r"[\x{0}-\x{10FFFF}]+"
_CLASS = re.compile(r"""\\[pP](?:\{[^}]*\}|.) | \\[a-zA-Z] | \[\[ | &&""", re.VERBOSE)
_FROZEN = {
    *(rf"\p{{{name}}}" for name in ("L", "Lu", "Ll", "Lt", "Lm", "Lo", "M", "N")),
    *(rf"\{letter}" for letter in "sSrnt"),
}
_PORTABLE_ESCAPE = re.compile(r"\\(?:x\{([0-9A-F]{1,6})\}|([Az]))")


def recognize(regex: str) -> Pattern:
    r"""Our pattern for a pattern in the words of Oniguruma or fancy-regex.

    >>> recognize(r"[\x{61}-\x{7A}]+|(?:(?![\x{61}-\x{7A}]+)[\x{0}-\x{10FFFF}])+").engine
    're'
    >>> recognize(r"\p{Lu}?\p{Ll}+|\S").engine
    're'
    >>> recognize(r"\p{Han}+|\P{Han}+").engine
    'regex'

    Raises:
        ArtifactError: it does not compile here.
    """
    known = _presets().get(regex)
    if known is not None:
        return Pattern.named(known)
    if regex == _WHOLE_TEXT:
        return Pattern(None)
    try:
        if "\\" not in _PORTABLE_ESCAPE.sub("", regex):
            return Pattern(_PORTABLE_ESCAPE.sub(_python_escape, regex))
        if set(_CLASS.findall(regex)) <= _FROZEN:
            return Pattern(freeze_preset(regex))
        return Pattern(regex, "regex")
    except PatternError as error:
        raise ArtifactError(str(error)) from None


def covers_every_text(pattern: Pattern) -> bool:
    """Whether it is known to match every character of every text."""
    return pattern.regex in {preset.regex for preset in PRESETS.values()}


@cache
def _presets() -> dict[str, str]:
    found = dict(_SPELLINGS)
    for name, preset in PRESETS.items():
        portable = portable_regex(Pattern.named(name))
        if portable is not None:
            found[portable] = name
        if preset.engine == "regex":  # others would read \w and \s in their own way
            found[preset.regex] = name
    return found


def _python_escape(escape: re.Match[str]) -> str:
    if escape[2]:
        return {"A": r"\A", "z": r"\Z"}[escape[2]]
    return f"\\U{int(escape[1], 16):08X}"
