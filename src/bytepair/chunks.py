"""Cutting text into chunks.

A chunk (a "pretoken") is what the pattern cuts; merges never cross its edge. Special tokens are
cut out before (special_tokens.py).
"""

from __future__ import annotations

import re

from bytepair.errors import TextError


def check_text(text: str) -> None:
    r"""Refuse a str that has no UTF-8 form.

    >>> check_text("a\ud83db")
    Traceback (most recent call last):
    bytepair.errors.TextError: lone surrogate U+D83D at position 1: the text has no UTF-8 form. ...
    """
    if not isinstance(text, str):
        raise TypeError(f"text must be a str, not {type(text).__name__}.")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError as error:
        raise TextError(
            f"lone surrogate U+{ord(text[error.start]):04X} at position {error.start}: the text "
            "has no UTF-8 form. Decode its source strictly, or replace the character yourself."
        ) from None


def cut(text: str, pattern: re.Pattern[str] | None) -> list[str]:
    r"""The chunks of a text in order; joined they are the text again.

    Whole matches are chunks, and so is what lies between two of them; empty matches are not.

    >>> cut("Hi, you!", re.compile(r"\w+"))
    ['Hi', ', ', 'you', '!']
    """
    if pattern is None:
        return [text] if text else []
    if not pattern.groups:
        matches: list[str] = pattern.findall(text)
        if sum(map(len, matches)) == len(text):
            return [match for match in matches if match] if "" in matches else matches
    chunks: list[str] = []
    end = 0
    for match in pattern.finditer(text):
        start, stop = match.span()
        chunks += (text[end:start], text[start:stop])
        end = stop
    chunks.append(text[end:])
    return [chunk for chunk in chunks if chunk]
