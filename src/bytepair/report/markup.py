"""Small pieces of HTML: escaped text, tokens as people can see them, numbers, tables.

Numbers are written the same in every locale. There is no style attribute anywhere, since the page
forbids inline styles but its own sheet.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from html import escape
from itertools import chain

# What shows nothing, or moves what stands beside it: controls, soft hyphen, zero-width and
# bidirectional marks, line separators, variation selectors, tags. page.js has the same list.
_UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f"
    "\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U000e0000-\U000e0fff]"
)
SPACE, TAB, NEWLINE = "␣", "⇥", "↵"


def text_of(token: bytes) -> str:
    r"""A token's text, with \xNN for each byte that is not part of a character."""
    return token.decode("utf-8", errors="backslashreplace")


def visible(text: str) -> str:
    r"""Text with every character to be seen.

    >>> visible(" a\tb\n\u200d")
    '␣a⇥b↵\\u200d'
    """
    shown = text.replace(" ", SPACE).replace("\t", TAB).replace("\n", NEWLINE)
    return _UNSEEN.sub(lambda match: _escape_sequence(match.group()), shown)


def hexadecimal(token: bytes) -> str:
    """A token's bytes as people write them: `20 74 68 65`."""
    return token.hex(" ")


def chip(token: bytes, token_id: int) -> str:
    """A token in a box of its own; hovering tells its id and bytes."""
    return (
        f'<span class="chip" title="id {token_id}, bytes {hexadecimal(token)}">'
        f"{escape(visible(text_of(token)))}</span>"
    )


def code(text: str) -> str:
    """Text in the typeface of code."""
    return f"<code>{escape(text)}</code>"


def number(value: float | None, digits: int = 0) -> str:
    """A number with thousands separated; a dash for None.

    >>> number(1234567), number(2.15491, 4), number(None)
    ('1,234,567', '2.1549', '–')
    """
    return "–" if value is None else f"{value:,.{digits}f}".replace("-", "−")


def percent(share: float | None, digits: int = 1) -> str:
    """A share in percent: `66.8 %`, with a space that does not break."""
    return "–" if share is None else f"{number(100 * share, digits)}\N{NO-BREAK SPACE}%"


def counted(value: int, one: str, many: str | None = None) -> str:
    """A number with its noun.

    >>> counted(1, "merge"), counted(2_000, "merge")
    ('1 merge', '2,000 merges')
    """
    return f"{number(value)} {one if value == 1 else many or one + 's'}"


def listed(parts: Sequence[str]) -> str:
    """Parts joined by commas and a last `and`."""
    return " and ".join(filter(None, (", ".join(parts[:-1]), *parts[-1:])))


def ranges(numbers: Iterable[int]) -> str:
    """Ascending numbers in few words.

    >>> ranges([0, 1, 2, 5, 7, 8])
    '0–2, 5, 7–8'
    """
    runs: list[list[int]] = []
    for value in numbers:
        if runs and value == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], value]
        else:
            runs.append([value])
    return ", ".join("–".join(map(str, run)) for run in runs)


def table(caption: str, header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table whose cells are HTML; the first cell of a row is its heading.

    It scrolls by itself where the screen is too narrow for it.
    """
    head = "".join(f'<th scope="col">{cell}</th>' for cell in header)
    body = "\n".join(
        f'<tr><th scope="row">{first}</th>' + "".join(f"<td>{cell}</td>" for cell in rest) + "</tr>"
        for first, *rest in rows
    )
    return (
        f'<div class="wide" tabindex="0" role="region" aria-label="{escape(caption)}">'
        f"<table><caption>{escape(caption)}</caption><thead><tr>{head}</tr></thead>\n"
        f"<tbody>{body}</tbody></table></div>"
    )


def paragraphs(*texts: str) -> str:
    """Each text that is not empty as a paragraph."""
    return "\n".join(f"<p>{text}</p>" for text in texts if text)


def definitions(pairs: Iterable[tuple[str, str]]) -> str:
    """Terms, and what is said of each, in HTML."""
    inside = chain.from_iterable((f"<dt>{term}</dt>", f"<dd>{said}</dd>") for term, said in pairs)
    return f"<dl>{''.join(inside)}</dl>"


def _escape_sequence(character: str) -> str:
    point = ord(character)
    if point <= 0x1F or point == 0x7F:
        return f"\\x{point:02x}"
    return f"\\u{point:04x}" if point <= 0xFFFF else f"\\U{point:08x}"
