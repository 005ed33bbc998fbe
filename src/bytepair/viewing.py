"""A text with the edges of its tokens, for a terminal: in colours, or with bars between tokens.

What a terminal would obey instead of showing it, such as an escape sequence, is written as bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from bytepair.inspection import counted, visible

BAR, NEWLINE = "│", "↵"

# Backgrounds of xterm's 256 colours, light enough for black text, no two neighbours alike.
_BACKGROUNDS = (153, 223, 157, 218, 229, 183)
_RESET = "\x1b[0m"


class View:
    """Draws tokens one after the other, and counts them.

    A line feed is shown as ↵ and ends the line, too; a byte that is no character is shown as xNN.

    Args:
        vocab: the bytes of each id.
        first_special: the id from which on they are special; they are drawn in reverse.
        colour: by background colours, else with a bar between two tokens.

    Attributes:
        tokens: how many were drawn.
        size: their bytes.
    """

    def __init__(self, vocab: Sequence[bytes], *, first_special: int, colour: bool) -> None:
        self._vocab = vocab
        self._first_special = first_special
        self._colour = colour
        self._shown: dict[int, str] = {}
        self._at_line_start = True
        self.tokens = 0
        self.size = 0

    def draw(self, ids: Iterable[int]) -> str:
        """What stands for some more ids."""
        return "".join(self._coloured(ids) if self._colour else self._barred(ids))

    def finish(self) -> str:
        """The last line: what was counted."""
        begin = "" if self._at_line_start else "\n"
        ratio = f", {self.size / self.tokens:.4f} bytes/token" if self.tokens else ""
        return f"{begin}\n{counted(self.tokens, 'token')}, {counted(self.size, 'byte')}{ratio}\n"

    def _barred(self, ids: Iterable[int]) -> Iterator[str]:
        for token_id in ids:
            if self.tokens:
                yield BAR
            yield self._next(token_id)

    def _coloured(self, ids: Iterable[int]) -> Iterator[str]:
        for token_id in ids:
            background = f"\x1b[30;48;5;{_BACKGROUNDS[self.tokens % len(_BACKGROUNDS)]}m"
            style = "\x1b[7m" if token_id >= self._first_special else background
            for line in self._next(token_id).splitlines(keepends=True):
                end = "\n" if line.endswith("\n") else ""
                yield f"{style}{line.removesuffix(end)}{_RESET}{end}"

    def _next(self, token_id: int) -> str:
        token = self._vocab[token_id]
        shown = self._shown.get(token_id)
        if shown is None:
            shown = self._shown[token_id] = _shown(token)
        self.tokens += 1
        self.size += len(token)
        self._at_line_start = shown.endswith("\n")
        return shown


def _shown(token: bytes) -> str:
    text = token.decode("utf-8", "surrogateescape")
    if text.isprintable():
        return text
    return "".join(f"{NEWLINE}\n" if c == "\n" else c if c == "\t" else visible(c) for c in text)
