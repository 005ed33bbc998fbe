"""Where in a text its tokens stand, in bytes and in characters.

Both follow from the tokens' own bytes, since joined they are the text: a byte of 80 to BF goes on
with a character, and every other byte begins one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

Span = tuple[int, int]  # start and end, the end excluded

_GOING_ON = bytes(range(0x80, 0xC0))


@dataclass(frozen=True)
class Encoding:
    """The ids of a text and the place of each token in it.

    Attributes:
        ids: of the text.
        byte_spans: of each token in the text's UTF-8; they follow each other without a gap.
        char_spans: of each token in the str. A token that holds part of a character spans all of
            it, as Hugging Face has it, so neighbours may overlap.
    """

    ids: list[int]
    byte_spans: list[Span]
    char_spans: list[Span]

    @classmethod
    def of(cls, ids: list[int], vocab: Sequence[bytes]) -> Self:
        """From ids that together are UTF-8, and the bytes of every id."""
        byte_spans, char_spans = [], []
        size = begun = 0  # bytes, and characters that begin in them
        for token_id in ids:
            token = vocab[token_id]
            first = begun - (0x80 <= token[0] < 0xC0)
            begun += len(token.translate(None, _GOING_ON))
            char_spans.append((first, begun))
            byte_spans.append((size, size + len(token)))
            size += len(token)
        return cls(ids, byte_spans, char_spans)
