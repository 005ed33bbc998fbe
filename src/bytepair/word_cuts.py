"""How two tokenizers cut the words of a text.

A word is a run of bytes other than ASCII white space, as `wc -w` has it; it is cut differently if
the edges of tokens inside of it are not the same.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytepair.tokenizer import Tokenizer


@dataclass(frozen=True)
class WordDifference:
    """A word that is cut in two ways: how often so, and the pieces at the first such place."""

    word: bytes
    times: int
    pieces: tuple[list[bytes], list[bytes]]


@dataclass(frozen=True)
class TextDifference:
    """How two tokenizers cut a text.

    Attributes:
        size: bytes of the text.
        tokens: of each tokenizer.
        words: in the text.
        different: those of them that are cut differently.
        examples: the most frequent of these, by times, then bytes.
    """

    size: int
    tokens: tuple[int, int]
    words: int
    different: int
    examples: list[WordDifference]


def compare_on_text(
    one: Tokenizer, other: Tokenizer, text: str, *, examples: int = 10
) -> TextDifference:
    """Cut a text with both; special tokens are text."""
    data = text.encode("utf-8")
    edges, other_edges = _edges(one, data), _edges(other, data)
    starts, ends, inside = _words(data)
    differs = np.cumsum(np.append(0, (edges ^ other_edges)[:-1] & inside))
    chosen = np.flatnonzero(differs[ends] > differs[starts])
    spans = list(zip(starts[chosen].tolist(), ends[chosen].tolist(), strict=True))
    times: Counter[bytes] = Counter()
    first: dict[bytes, int] = {}
    for start, end in spans:
        word = data[start:end]
        times[word] += 1
        first.setdefault(word, start)
    most = sorted(times.items(), key=lambda item: (-item[1], item[0]))[:examples]
    return TextDifference(
        size=len(data),
        tokens=(int(edges.sum()), int(other_edges.sum())),
        words=len(starts),
        different=len(spans),
        examples=[
            WordDifference(
                word,
                number,
                (_pieces(word, edges[first[word] :]), _pieces(word, other_edges[first[word] :])),
            )
            for word, number in most
        ],
    )


def _edges(tokenizer: Tokenizer, data: bytes) -> NDArray[np.bool_]:
    """Whether a token begins at each byte, and at the end none: (bytes + 1,)."""
    lengths = np.array([len(token) for token in tokenizer.vocab], np.int64)
    begins = np.zeros(len(data) + 1, bool)
    sizes = lengths[tokenizer.encode_array(data)]
    begins[np.cumsum(sizes) - sizes] = True
    return begins


def _words(data: bytes) -> tuple[NDArray[Any], NDArray[Any], NDArray[np.bool_]]:
    """Where words start and end, and of each byte whether it goes on with a word: (bytes,)."""
    is_space = np.zeros(256, bool)
    is_space[list(b"\t\n\v\f\r ")] = True
    in_word = np.zeros(len(data) + 2, bool)
    in_word[1:-1] = ~is_space[np.frombuffer(data, np.uint8)]
    starts = np.flatnonzero(in_word[1:] & ~in_word[:-1])
    ends = np.flatnonzero(in_word[:-1] & ~in_word[1:])
    return starts, ends, (in_word[1:] & in_word[:-1])[:-1]


def _pieces(word: bytes, edges: NDArray[np.bool_]) -> list[bytes]:
    inner = (np.flatnonzero(edges[1 : len(word)]) + 1).tolist()
    return [word[a:b] for a, b in zip([0, *inner], [*inner, len(word)], strict=True)]
