"""What the pipeline did not do, tried on the spot: other vocabulary sizes, and leakage.

All of it is exact and in memory; nothing is written. Texts that are too large to be trained on
again in a second are left out by the caller.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytepair.counts import ChunkCounts
from bytepair.errors import ArtifactError
from bytepair.intrinsic import tokens_by_merges
from bytepair.tokenizer import Tokenizer
from bytepair.training import train

LARGER = 4  # times the merges there are
MOST_MERGES = 1 << 16

Counts = Mapping[str, NDArray[np.int64]]


@dataclass(frozen=True)
class Texts:
    """The documents of each split, the bytes of its text, and whether an id separates documents."""

    documents: Mapping[str, Sequence[str]]
    sizes: Mapping[str, int]
    separated: bool

    def tokens(self, split: str, tokenizer: Tokenizer) -> list[NDArray[Any]]:
        """The ids of each document of a split."""
        return [tokenizer.encode_array(text) for text in self.documents[split]]

    def gaps(self, split: str) -> int:
        """The separator ids between the documents of a split."""
        return len(self.documents[split]) - 1 if self.separated else 0


@dataclass(frozen=True)
class Curve:
    """Bytes per token of a split after 0, 1, 2, ... merges: (merges + 1,)."""

    split: str
    bytes_per_token: tuple[float, ...]

    @classmethod
    def of(cls, split: str, size: int, lengths: Sequence[int]) -> Curve:
        """From the bytes of the split and its tokens after each merge."""
        return cls(split, tuple(size / length if length else 0.0 for length in lengths))


def own_curve(tokenizer: Tokenizer, counts: Counts) -> dict[str, list[int]]:
    """Of each split, the tokens that the tokenizer's first 0, 1, 2, ... merges leave."""
    return {
        split: tokens_by_merges(split_counts.tolist(), tokenizer.merges)
        for split, split_counts in counts.items()
    }


def larger_vocabulary(
    tokenizer: Tokenizer, counts: ChunkCounts, texts: Texts, min_count: int
) -> dict[str, list[int]]:
    """The same, with as many merges more as training finds, up to four times as many.

    Raises:
        ArtifactError: the counts give other merges than the tokenizer has.
    """
    counts.check_made_with(tokenizer.pattern, tuple(tokenizer.special_tokens))
    wanted = min(LARGER * len(tokenizer.merges), max(MOST_MERGES, len(tokenizer.merges)))
    merges = train(counts.counts, merges=wanted, min_count=min_count).merges
    if tuple(merges[: len(tokenizer.merges)]) != tokenizer.merges:
        raise ArtifactError(
            "the chunk counts give other merges than bpe.json has. Run `dvc repro`: the stage "
            "train-tokenizer must run again."
        )
    larger = Tokenizer(merges, pattern=tokenizer.pattern)
    lengths = {}
    for split in ("train", "val"):
        parts = texts.tokens(split, larger)
        split_counts = np.bincount(np.concatenate(parts), minlength=larger.vocab_size)
        gaps = texts.gaps(split)
        lengths[split] = [
            length + gaps for length in tokens_by_merges(split_counts.tolist(), larger.merges)
        ]
    return lengths


def leakage(tokenizer: Tokenizer, texts: Texts, min_count: int) -> float | None:
    """Bytes per token on val of a tokenizer trained on all documents, val among them.

    It is trained as this one was: same pattern, same special tokens, as many merges.
    """
    counts = ChunkCounts.count(
        [text for documents in texts.documents.values() for text in documents],
        pattern=tokenizer.pattern,
        special_tokens=tuple(tokenizer.special_tokens),
    )
    merges = train(counts.counts, merges=len(tokenizer.merges), min_count=min_count).merges
    leaky = Tokenizer(merges, pattern=tokenizer.pattern)
    tokens = sum(map(len, texts.tokens("val", leaky))) + texts.gaps("val")
    return texts.sizes["val"] / tokens if tokens else None
