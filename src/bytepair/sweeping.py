"""Vocabulary sizes and patterns, tried on one text.

The sizes of a pattern share its chunk counts and one training: each merge depends only on those
before it, so the merges of a smaller vocabulary are the first of a larger one's.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from bytepair.tokenizer import Tokenizer
from bytepair.training import count_merges, train
from bytepair.usage import count_ids

if TYPE_CHECKING:
    from bytepair.counts import ChunkCounts
    from bytepair.patterns import Pattern


@dataclass(frozen=True)
class Trial:
    """One tokenizer and its figures.

    Attributes:
        pattern: its name.
        requested: the vocabulary size asked for.
        vocab_size: what training reached.
        sha256: of its bpe.json.
        train_tokens: in the chunks of the text trained on.
        train_bytes_per_token: of these chunks.
        unused_on_train: ids that never occur there, special tokens aside.
        val_tokens: in the held-out text, if one was given.
        val_bytes_per_token: of that text.
    """

    pattern: str
    requested: int
    vocab_size: int
    sha256: str
    train_tokens: int
    train_bytes_per_token: float
    unused_on_train: int
    val_tokens: int | None
    val_bytes_per_token: float | None

    def record(self) -> dict[str, Any]:
        """The same as JSON has it."""
        return asdict(self)


def sweep(
    count: Callable[..., ChunkCounts],
    patterns: Mapping[str, Pattern],
    sizes: Iterable[int],
    *,
    special_tokens: tuple[str, ...] = (),
    min_count: int = 2,
    threads: int | None = None,
    val: str | None = None,
) -> Iterator[Trial]:
    """Train a tokenizer of each size with each pattern: patterns as given, sizes ascending.

    Args:
        count: counts the text's chunks, such as ChunkCounts.count with the texts bound.
        patterns: by name.
        sizes: of vocabularies, special tokens included.
        special_tokens: see Tokenizer.
        min_count: how often a pair must occur to be merged.
        threads: for counting, None for one a core.
        val: a text to be encoded with each; special tokens in it are text.

    Raises:
        TrainingError: a size is below 256 and the special tokens, or there is no text.
    """
    wanted = {size: count_merges(size, special_tokens) for size in sorted(set(sizes))}
    held_out = None if val is None else val.encode("utf-8")
    for name, pattern in patterns.items():
        counts = count(pattern=pattern, special_tokens=special_tokens, threads=threads)
        trace = train(counts.counts, merges=max(wanted.values()), min_count=min_count)
        for size, merges in wanted.items():
            tokenizer = Tokenizer(
                trace.merges[:merges],
                pattern=pattern,
                special_tokens=special_tokens,
                train_sha256=counts.train_sha256,
            )
            tokens = trace.lengths[len(tokenizer.merges)]
            val_tokens = None if held_out is None else len(tokenizer.encode_array(held_out))
            unused = np.count_nonzero(count_ids(tokenizer.merges, counts.counts) == 0)
            yield Trial(
                pattern=name,
                requested=size,
                vocab_size=tokenizer.vocab_size,
                sha256=tokenizer.sha256,
                train_tokens=tokens,
                train_bytes_per_token=round(trace.lengths[0] / tokens, 6),
                unused_on_train=int(unused),
                val_tokens=val_tokens,
                val_bytes_per_token=(
                    round(len(held_out) / val_tokens, 6) if held_out and val_tokens else None
                ),
            )
