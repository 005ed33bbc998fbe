"""What tells two tokenizers apart: their merges, their tokens, and how they cut a text.

Ids are not compared, since the same token may have another id in each; merges are compared by the
bytes of their two parts.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytepair.tokenizer import Tokenizer

Merge = tuple[bytes, bytes]


@dataclass(frozen=True)
class MergeDifference:
    """How the merges of two tokenizers differ; specials are not looked at.

    Attributes:
        common: merges that both have, at whatever rank.
        same: the first merges that are the same, rank by rank.
        first: what each has at the first rank that differs, None where it has no more merges; None
            for both if all are the same.
        only: the tokens that only the one, and only the other, has, in id order.
    """

    common: int
    same: int
    first: tuple[Merge | None, Merge | None]
    only: tuple[list[bytes], list[bytes]]


@dataclass(frozen=True)
class WordDifference:
    """A word that is cut in two ways: how often so, and the pieces at the first such place."""

    word: bytes
    times: int
    pieces: tuple[list[bytes], list[bytes]]


@dataclass(frozen=True)
class TextDifference:
    """How two tokenizers cut a text. A word is a run of bytes other than ASCII white space.

    Attributes:
        size: bytes of the text.
        tokens: of each tokenizer.
        words: in the text.
        different: words inside of which the edges of tokens are not the same.
        examples: the most frequent of these, by times, then bytes.
    """

    size: int
    tokens: tuple[int, int]
    words: int
    different: int
    examples: list[WordDifference]


def compare_merges(one: Tokenizer, other: Tokenizer) -> MergeDifference:
    """Compare merges by the bytes they join."""
    merges, others = _merges(one), _merges(other)
    pairs = enumerate(zip_longest(merges, others))
    same = next((rank for rank, (mine, theirs) in pairs if mine != theirs), len(merges))
    tokens, other_tokens = ([left + right for left, right in found] for found in (merges, others))
    return MergeDifference(
        common=len(set(merges) & set(others)),
        same=same,
        first=(_at(merges, same), _at(others, same)),
        only=(_without(tokens, other_tokens), _without(other_tokens, tokens)),
    )


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


def _merges(tokenizer: Tokenizer) -> list[Merge]:
    vocab = tokenizer.vocab
    return [(vocab[left], vocab[right]) for left, right in tokenizer.merges]


def _at(merges: Sequence[Merge], rank: int) -> Merge | None:
    return merges[rank] if rank < len(merges) else None


def _without(tokens: Sequence[bytes], others: Sequence[bytes]) -> list[bytes]:
    known = set(others)
    return [token for token in tokens if token not in known]


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
