"""Strings that people ask about, how the tokenizer splits them, and why.

A split has two reasons only: the pattern cuts, or no merge joins two tokens that stand side by
side. Both are read off the tokenizer, so what is said here is never a guess.
"""

from __future__ import annotations

from dataclasses import dataclass

from bytepair.chunks import cut
from bytepair.merging import merge_chunk
from bytepair.tokenizer import Tokenizer


@dataclass(frozen=True)
class Probe:
    """A question, strings that answer it, and what they teach."""

    title: str
    texts: tuple[str, ...]
    lesson: str


PROBES = (
    Probe(
        "Spelling",
        ("strawberry", " strawberry", "extraordinary"),
        "A model sees ids, not letters. How many r’s there are is nowhere in the ids: it has to "
        "be learned for each token by itself.",
    ),
    Probe(
        "Numbers",
        ("1234567", "127 + 677", " 127 + 677"),
        "Digits are tokens like any others. Where tokens do not line up with places of ten, "
        "adding has to be learned for each way of cutting a number.",
    ),
    Probe(
        "The same word, four times",
        ("the", " the", "The", "THE"),
        "To a tokenizer these are four strings. The space in front belongs to the word, so the "
        "form that is usual inside a sentence has the best chance of an id of its own.",
    ),
    Probe(
        "Sentences",
        ("hello how are you", "the king and the queen", "Hello, world! It's 2026 already."),
        "A text like the one trained on needs fewest tokens. If no pattern cuts, tokens may "
        "reach from one word into the next.",
    ),
    Probe(
        "Accents",
        ("café naïve", "cafe\u0301"),
        "The second café is written with e and a combining accent. It looks the same and is other "
        "bytes, hence other tokens: nothing is normalized.",
    ),
    Probe(
        "Other scripts",
        ("你好你好你好", "Привет, мир", "नमस्ते"),
        "A character outside ASCII is two to four bytes. Where training never saw it, every byte "
        "is a token: nothing is unknown, but it is dear.",
    ),
    Probe(
        "One emoji of seven code points",
        ("👩\u200d👩\u200d👧\u200d👦",),
        "Four faces held together by zero-width joiners: one glyph on the screen, 25 bytes.",
    ),
    Probe(
        "Code",
        ("def f(x):\n    return x\n", "\tif (i == 0) {"),
        "Indentation costs as many tokens as there are white-space tokens needed for it. "
        "Tokenizers for code learn long runs of spaces.",
    ),
)


@dataclass(frozen=True)
class Split:
    """How a text is split.

    Attributes:
        chunks: the ids of each chunk that the pattern cuts.
        stops: in the first chunk of several tokens, the first two ids that no merge joins.
        broken: characters whose bytes are in several tokens, each once.
    """

    text: str
    chunks: tuple[tuple[int, ...], ...]
    stops: tuple[int, int] | None
    broken: tuple[str, ...]

    @property
    def tokens(self) -> int:
        return sum(map(len, self.chunks))


class Splitter:
    """Splits texts with a tokenizer and keeps the chunks apart."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.vocab = tokenizer.vocab
        self._ids = {pair: 256 + rank for rank, pair in enumerate(tokenizer.merges)}
        self._pattern = tokenizer.pattern.compiled()

    def split(self, text: str) -> Split:
        """The chunks of a text and their tokens."""
        chunks = tuple(
            tuple(merge_chunk(chunk.encode(), self._ids)) for chunk in cut(text, self._pattern)
        )
        several = next((chunk for chunk in chunks if len(chunk) > 1), None)
        return Split(
            text=text,
            chunks=chunks,
            stops=several[:2] if several else None,  # type: ignore[arg-type]
            broken=self._broken(text, [token for chunk in chunks for token in chunk]),
        )

    def _broken(self, text: str, ids: list[int]) -> tuple[str, ...]:
        edges, end = set(), 0
        for token in ids:
            end += len(self.vocab[token])
            edges.add(end)
        found, start = [], 0
        for character in text:
            stop = start + len(character.encode())
            if character not in found and not edges.isdisjoint(range(start + 1, stop)):
                found.append(character)
            start = stop
        return tuple(found)
