"""What tells two tokenizers apart: their merges and tokens.

Ids are not compared, since the same token may have another id in each; merges are compared by the
bytes of their two parts. How two tokenizers cut a text is in word_cuts.py.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import zip_longest

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


def _merges(tokenizer: Tokenizer) -> list[Merge]:
    vocab = tokenizer.vocab
    return [(vocab[left], vocab[right]) for left, right in tokenizer.merges]


def _at(merges: Sequence[Merge], rank: int) -> Merge | None:
    return merges[rank] if rank < len(merges) else None


def _without(tokens: Sequence[bytes], others: Sequence[bytes]) -> list[bytes]:
    known = set(others)
    return [token for token in tokens if token not in known]
