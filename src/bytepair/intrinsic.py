"""Measures of a tokenizer on a text that need no model: how it cuts, and how it uses its ids.

They are taken from ids and the bytes of each id, never from decoded text. What they leave out is
whether a model likes the tokens: no figure here replaces a loss on held-out text.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

Int64s = NDArray[np.int64]
Ids = NDArray[np.unsignedinteger[Any]]

ALPHA = 2.5  # where Rényi efficiency followed the quality of translations best (Zouhar et al.)
RARE = (1, 5, 20, 100)


def intrinsic(
    counts: Int64s, documents: Iterable[Ids], vocabulary: Sequence[bytes]
) -> dict[str, Any]:
    """All measures of one split as JSON; a figure that has nothing to divide by is null.

    Args:
        counts: (vocab_size,), how often each id occurs, separators included.
        documents: the ids of each document, without separators.
        vocabulary: the bytes of every id.
    """
    words, tokens = count_words(documents, vocabulary)
    return {
        "words": words,
        "fertility": fertility(tokens, words),
        "renyi_efficiency": renyi_efficiency(counts),
        "share_used": share_used(counts),
        "seen_fewer_than": [
            {"times": times, "tokens": seen_fewer_than(counts, times)} for times in RARE
        ],
    }


def fertility(tokens: int, words: int) -> float | None:
    """Tokens per word; 1 would be a word list, and a text of bytes has its mean word length.

    Source: Rust, Pfeiffer, Vulić, Ruder, Gurevych, How Good is Your Tokenizer? (ACL 2021). They
    count the subwords of words that a treebank has cut. Here a word is a run of bytes other than
    ASCII white space, as `wc -w` counts, and all tokens of the documents count, those of white
    space too. So it is of no use for scripts that put no space between words.
    """
    return round(tokens / words, 6) if words else None


def count_words(documents: Iterable[Ids], vocabulary: Sequence[bytes]) -> tuple[int, int]:
    """The words of documents and their tokens; a word never reaches over a document's edge.

    >>> count_words([np.array([2, 0, 1, 2], np.uint16)], [b"low", b" ", b"er l"])
    (4, 4)
    """
    inside, first, last = _word_edges(vocabulary)
    words = tokens = 0
    for ids in documents:
        tokens += len(ids)
        words += int(inside[ids].sum())
        opens, closed = first[ids], ~last[ids]
        words += int(opens[:1].sum()) + int(np.count_nonzero(opens[1:] & closed[:-1]))
    return words, tokens


def renyi_efficiency(counts: Int64s, alpha: float = ALPHA) -> float | None:
    """Rényi entropy of the ids' frequencies, over the entropy of ids that are all as frequent.

    1 if every id of the vocabulary occurs equally often, towards 0 if few ids make up the text.

    Source: Zouhar, Meister, Gastaldi, Du, Sachan, Cotterell, Tokenization and the Noiseless
    Channel (ACL 2023): H(p) / log |V| with H(p) = log(sum of p^alpha) / (1 - alpha). |V| is the
    whole vocabulary here, unused ids included, since a model pays for them; their program
    `tokenization-scorer` takes the ids that occur unless it is told the size.

    >>> renyi_efficiency(np.array([3, 3, 3, 3])), renyi_efficiency(np.array([9, 0, 0, 0]))
    (1.0, 0.0)
    """
    total = int(counts.sum())
    if not total or len(counts) < 2:
        return None
    moment = math.fsum((count / total) ** alpha for count in counts[counts > 0].tolist())
    return round(math.log(moment) / (1 - alpha) / math.log(len(counts)), 6) + 0.0


def share_used(counts: Int64s) -> float | None:
    """The share of the vocabulary that occurs at all."""
    return round(int(np.count_nonzero(counts)) / len(counts), 6) if len(counts) else None


def seen_fewer_than(counts: Int64s, times: int) -> int:
    """How many ids occur fewer than so many times: 1 gives those never seen.

    A model learns little of such an id's embedding, and nothing of one that training never shows.
    Ids that were never trained can be called up by chance (Land, Bartolo, Fishing for Magikarp:
    Automatically Detecting Under-trained Tokens in Large Language Models, EMNLP 2024).
    """
    return int(np.count_nonzero(counts < times))


def merge_uses(counts: Sequence[int], merges: Sequence[tuple[int, int]]) -> list[int]:
    """How often each merge is applied while a text is encoded: (merges,).

    A token is made by one tree of merges, so counts of ids go down the trees, the youngest first.

    >>> merge_uses([0] * 256 + [1, 5], [(104, 101), (256, 121)])  # `he` 1, `hey` 5
    [6, 5]
    """
    uses = list(counts[: 256 + len(merges)])
    for rank in range(len(merges) - 1, -1, -1):
        for part in merges[rank]:
            uses[part] += uses[256 + rank]
    return uses[256:]


def tokens_by_merges(counts: Sequence[int], merges: Sequence[tuple[int, int]]) -> list[int]:
    """The tokens that the first 0, 1, 2, ... merges leave of a text: (merges + 1,), exact.

    Encoding works off ranks in ascending order (merging.py), so the first n merges leave what all
    of them have made of the text when the n-th is done. Each application after that makes two
    tokens one. So nothing needs to be encoded again.

    Args:
        counts: how often each id occurs when all merges are applied, special tokens included.
        merges: in rank order.
    """
    later = accumulate(reversed(merge_uses(counts, merges)), initial=0)
    total = sum(counts)
    return [total + applications for applications in later][::-1]


def _word_edges(
    vocabulary: Sequence[bytes],
) -> tuple[Int64s, NDArray[np.bool_], NDArray[np.bool_]]:
    """Of each id: words that start after its first byte; whether a word is at its first, last."""
    first = np.array([not token[:1].isspace() for token in vocabulary], bool)
    last = np.array([not token[-1:].isspace() for token in vocabulary], bool)
    return np.array([len(token.split()) for token in vocabulary], np.int64) - first, first, last
