r"""Patterns that cut text into chunks: presets by name, and one's own.

Every `re` pattern and the published `regex` patterns of PRESETS mean the same on every machine
for ever (freezing.py says how). A `regex` pattern of one's own is left to the library that is
installed, and params.yaml says which version that must be.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, Protocol

from bytepair.errors import PatternError
from bytepair.freezing import freeze_preset, freeze_re

ENGINES = ("re", "regex")


@dataclass(frozen=True)
class Preset:
    """A published pattern under a name."""

    regex: str
    engine: str
    origin: str


PRESETS = {
    "gpt2-ascii": Preset(
        r"'(?:[sdmt]|ll|ve|re)| ?[A-Za-z]+| ?[0-9]{1,3}| ?[^\sA-Za-z0-9]+|\s+(?!\S)|\s+",
        "re",
        "GPT-2's pattern for ASCII letters, with digits in groups of three",
    ),
    "words": Preset(
        r" ?\w+| ?[^\w\s]+|\s+",
        "re",
        "words, punctuation and white space; a space goes with what follows",
    ),
    "notebook": Preset(
        r"'s|'t|'re|'ve|'m|'ll|'d| ?\w+| ?[^\s\w]+|\s+",
        "re",
        "GPT-2's pattern in Python's re, as notebooks write it",
    ),
    "gpt2": Preset(
        r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
        "regex",
        "github.com/openai/gpt-2, encoder.py; the form of tiktoken's r50k_base",
    ),
    "cl100k": Preset(
        r"'(?i:[sdmt]|ll|ve|re)|[^\r\n\p{L}\p{N}]?+\p{L}++|\p{N}{1,3}+"
        r"| ?[^\s\p{L}\p{N}]++[\r\n]*+|\s++$|\s*[\r\n]|\s+(?!\S)|\s",
        "regex",
        "github.com/openai/tiktoken, cl100k_base",
    ),
    "o200k": Preset(
        r"[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*"
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)?"
        r"|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+",
        "regex",
        "github.com/openai/tiktoken, o200k_base",
    ),
}
_NAMED = frozenset((preset.regex, preset.engine) for preset in PRESETS.values())
_FROZEN_REGEX = frozenset(preset.regex for preset in PRESETS.values() if preset.engine == "regex")


class PatternChoice(Protocol):
    """What params.yaml may say of a pattern: a preset's name, or a regex and how it is read."""

    @property
    def name(self) -> str | None: ...
    @property
    def regex(self) -> str | None: ...
    @property
    def engine(self) -> str: ...
    @property
    def regex_version(self) -> str | None: ...


@dataclass(frozen=True)
class Pattern:
    r"""How text is cut into chunks: `regex` read by `engine`, or no cut at all (`regex` None).

    >>> Pattern.named("words")
    Pattern(regex=' ?\\w+| ?[^\\w\\s]+|\\s+', engine='re')
    >>> Pattern(r"\w+(")
    Traceback (most recent call last):
    bytepair.errors.PatternError: pattern '\\w+(': missing ), unterminated subpattern at position 3

    Raises:
        PatternError: the pattern does not compile, or its meaning cannot be frozen.
    """

    regex: str | None
    engine: str = "re"

    def __post_init__(self) -> None:
        if self.engine not in ENGINES:
            raise PatternError(f"engine {self.engine!r} is not known: write one of {ENGINES}.")
        if self.regex is None:
            if self.engine != "re":
                raise PatternError("with no pattern there is nothing to read: engine must be 're'.")
        elif not isinstance(self.regex, str):
            raise PatternError(f"a pattern is a string or null, not {self.regex!r}.")
        elif self.regex == "":
            raise PatternError("the pattern is empty and matches nothing: write null for no cut.")
        elif (self.regex, self.engine) not in _NAMED:  # those compile, which takes 30 ms
            _compile(self.regex, self.engine)

    @classmethod
    def named(cls, name: str) -> Pattern:
        """The preset of that name."""
        try:
            preset = PRESETS[name]
        except KeyError:
            raise PatternError(
                f"no pattern is named {name!r}: choose one of {', '.join(PRESETS)}."
            ) from None
        return cls(preset.regex, preset.engine)

    @classmethod
    def of(cls, pattern: Pattern | str | None) -> Pattern:
        """From what callers may pass: a Pattern, a preset's name, a regex for `re`, or None."""
        if isinstance(pattern, Pattern):
            return pattern
        if isinstance(pattern, str) and pattern in PRESETS:
            return cls.named(pattern)
        if pattern is None or isinstance(pattern, str):
            return cls(pattern)
        raise PatternError(f"a pattern is a string, a Pattern or None, not {pattern!r}.")

    @classmethod
    def chosen(cls, choice: PatternChoice | None, where: str = "params.yaml") -> Pattern:
        """The pattern that params.yaml asks for at `where`, with the `regex` that it declares."""
        if choice is None:
            return cls(None)
        try:
            if choice.name is not None:
                return cls.named(choice.name)
            pattern = cls(choice.regex, choice.engine)
            if pattern.needs_regex_library:
                _check_regex_version(choice.regex_version)
        except PatternError as error:
            key = "regex" if choice.name is None else "name"
            raise PatternError(f"{where}.{key}: {error}") from None
        return pattern

    @property
    def is_named(self) -> bool:
        """Whether it is a preset, or no cut at all: such take linear time over any text."""
        return self.regex is None or (self.regex, self.engine) in _NAMED

    @property
    def needs_regex_library(self) -> bool:
        """Whether the cuts depend on the version of the package `regex`."""
        return self.engine == "regex" and self.regex not in _FROZEN_REGEX

    def compiled(self) -> re.Pattern[str] | None:
        """The compiled pattern; None where text is not cut."""
        return None if self.regex is None else _compile(self.regex, self.engine)


def _check_regex_version(declared: str | None) -> None:
    """What a `regex` pattern means depends on the library, so params.yaml says which version."""
    from importlib.metadata import version

    _import_regex()
    installed = version("regex")
    if installed != declared:
        raise PatternError(
            f"regex_version is {declared!r}, but regex {installed} is installed, whose tables may "
            f"differ. Install regex=={declared}, or write regex_version: {installed!r}."
        )


@lru_cache(maxsize=64)
def _compile(regex: str, engine: str) -> re.Pattern[str]:
    if not _is_utf8(regex):
        raise PatternError(f"pattern {regex!r}: holds a lone surrogate.")
    if engine == "regex" and regex not in _FROZEN_REGEX:
        return _compile_with_library(regex)
    try:
        if engine == "regex":
            return re.compile(freeze_preset(regex))
        re.compile(regex)  # its messages point into what the user wrote
        return re.compile(freeze_re(regex))
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternError(f"pattern {regex!r}: {error}") from None


def _compile_with_library(source: str) -> re.Pattern[str]:
    regex = _import_regex()
    try:
        compiled: re.Pattern[str] = regex.compile(source)
    except (regex.error, ValueError, RecursionError, OverflowError) as error:
        raise PatternError(f"pattern {source!r}: {error}") from None
    if compiled.flags & regex.REVERSE:
        raise PatternError(f"pattern {source!r}: (?r) matches backwards: leave it out.")
    return compiled


def _is_utf8(text: str) -> bool:
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _import_regex() -> Any:
    try:
        import regex
    except ImportError:
        raise PatternError(
            "a pattern for the engine 'regex' needs the package regex: `pip install regex`."
        ) from None
    return regex
