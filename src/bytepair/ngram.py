"""An n-gram model over ids: interpolated Kneser-Ney of order 1 to 3, exact and in NumPy.

Where h' is the context h without its first token:

    p(w | h) = (max(c(h w) - D, 0) + D t(h) p(w | h')) / c(h)       or p(w | h') if c(h) = 0

At the highest order c(h w) counts occurrences; below it counts the different tokens seen before
h w (one order up). c(h) is the sum of c(h w) over w, and t(h) how many w have c(h w) > 0. Under
order 1 lies the uniform distribution, so no id is impossible. Each order has one discount, D =
n1 / (n1 + 2 n2), n1 and n2 being how many of its n-grams have c = 1 and c = 2; it is 0.5 if either
is 0.

Kneser and Ney, "Improved backing-off for m-gram language modeling", ICASSP 1995; D: Ney, Essen and
Kneser, Computer Speech and Language 8 (1994); interpolation and the uniform end: Chen and Goodman,
Computer Speech and Language 13 (1999). Their modified form, with three discounts, is left out, as
are higher orders and pruning.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytepair.errors import TokenError, TrainingError

Integers = NDArray[np.integer[Any]]
Int64s = NDArray[np.int64]
Figures = dict[str, float | None]

HIGHEST_ORDER = 3
FALLBACK_DISCOUNT = 0.5
KEY_LIMIT = 1 << 63  # an n-gram is packed into one int64, the id of its last token lowest


@dataclass(frozen=True, eq=False)
class NGramModel:
    """Counts of the n-grams of one order; all else follows from them.

    Attributes:
        vocab_size: how many ids there are.
        order: n.
        ngrams: (n-grams,), int64: each n-gram once, packed, in ascending order.
        counts: (n-grams,), int64: how often each occurs.
    """

    vocab_size: int
    order: int
    ngrams: Int64s
    counts: Int64s

    @cached_property
    def discounts(self) -> tuple[float, ...]:
        """The discount D of each order, order 1 first."""
        return tuple(level.discount for level in self._levels)

    def log2_probabilities(self, ids: Integers, starts: Integers) -> NDArray[np.float64]:
        """The binary logarithm of each id's probability after the ids before it: (tokens,).

        See train for `ids` and `starts`.
        """
        ids = _checked(ids, self.vocab_size)
        probabilities = np.full(len(ids), 1 / self.vocab_size)
        for reach, level in enumerate(self._levels):
            at = _with_context(len(ids), starts, reach)
            contexts = _pack(ids, at, reach, self.vocab_size)
            probabilities[at] = level.interpolate(contexts, ids[at], probabilities[at])
        logarithms: NDArray[np.float64] = np.log2(probabilities)
        return logarithms

    @cached_property
    def _levels(self) -> tuple[_Level, ...]:
        levels = [_Level(self.vocab_size, self.ngrams, self.counts)]
        for order in range(self.order - 1, 0, -1):
            # Each n-gram is there once, so counting what they end in counts what stands before it.
            suffixes = levels[0].ngrams % self.vocab_size**order
            ngrams, counts = np.unique(suffixes, return_counts=True)
            levels.insert(0, _Level(self.vocab_size, ngrams, counts.astype(np.int64)))
        return tuple(levels)


class _Level:
    """One order: c(h w) by n-gram; c(h) and t(h) by context."""

    def __init__(self, vocab_size: int, ngrams: Int64s, counts: Int64s) -> None:
        self.vocab_size, self.ngrams, self.counts = vocab_size, ngrams, counts
        self.contexts, first = np.unique(ngrams // vocab_size, return_index=True)
        self.totals = np.add.reduceat(counts, first)
        self.kinds = np.diff(first, append=len(ngrams))
        once, twice = (int(np.count_nonzero(counts == times)) for times in (1, 2))
        self.discount = once / (once + 2 * twice) if once and twice else FALLBACK_DISCOUNT

    def interpolate(
        self, contexts: Int64s, ids: Int64s, lower: NDArray[np.float64]
    ) -> NDArray[np.float64]:
        """p(w | h) for each pair of a packed context and an id, given each p(w | h')."""
        counts = _look_up(self.ngrams, self.counts, contexts * self.vocab_size + ids)
        totals = _look_up(self.contexts, self.totals, contexts)
        kinds = _look_up(self.contexts, self.kinds, contexts)
        own = np.maximum(counts - self.discount, 0)
        shared = self.discount * kinds * lower
        return np.where(totals > 0, (own + shared) / np.maximum(totals, 1), lower)


def train(
    ids: Integers,
    starts: Integers,
    *,
    vocab_size: int,
    order: int,
    max_tokens: int | None = None,
) -> NGramModel:
    """Count the n-grams of `ids`, or of its first `max_tokens`.

    Args:
        ids: (tokens,), integers below `vocab_size`.
        starts: (any,), integers: offsets over which no context reaches back; the first token is
            always one. Documents with a separator's id between them need no others.
        vocab_size: how many ids there are.
        order: 1 to 3. With no n-gram to count, the model is the uniform distribution.
        max_tokens: None for all.

    Raises:
        TokenError: an id is outside the vocabulary.
        TrainingError: the order is another, or too high for the vocabulary.

    >>> nothing = np.array([], np.int64)
    >>> model = train(np.array([0, 1, 1, 1]), nothing, vocab_size=4, order=1)
    >>> np.exp2(model.log2_probabilities(np.array([0, 1, 2]), nothing)).round(4).tolist()
    [0.1875, 0.6875, 0.0625]
    """
    if not 1 <= order <= HIGHEST_ORDER or vocab_size**order > KEY_LIMIT:
        raise TrainingError(
            f"an n-gram model of order {order} over {vocab_size} ids: the order must be 1, 2 or 3, "
            "and the size to that power at most 2**63. Lower `order`."
        )
    if max_tokens is not None and max_tokens < 1:
        raise TrainingError(f"max_tokens is {max_tokens}: it must be 1 or more, or null for all.")
    ids = _checked(ids[:max_tokens], vocab_size)
    at = _with_context(len(ids), starts, order - 1)
    ngrams, counts = np.unique(_pack(ids, at + 1, order, vocab_size), return_counts=True)
    return NGramModel(vocab_size, order, ngrams, counts.astype(np.int64))


def evaluate(model: NGramModel, ids: Integers, starts: Integers, *, text_bytes: int) -> Figures:
    """What the model makes of a split: bits per stored byte, nats per token, perplexity.

    Each is rounded to 6 decimals, and None where there is nothing to divide by. The sum is exact
    before it is rounded, so its order has no part in it.
    """
    bits = abs(math.fsum(model.log2_probabilities(ids, starts).tolist()))
    tokens = len(ids)
    return {
        "bits_per_byte": round(bits / text_bytes, 6) if text_bytes else None,
        "nats_per_token": round(bits / tokens * math.log(2), 6) if tokens else None,
        "perplexity": round(2 ** (bits / tokens), 6) if tokens else None,
    }


def _checked(ids: Integers, vocab_size: int) -> Int64s:
    if len(ids) and not 0 <= ids.min() <= ids.max() < vocab_size:
        raise TokenError(
            f"ids go from {ids.min()} to {ids.max()}, but the vocabulary has 0 to "
            f"{vocab_size - 1}. Use the tokens of one tokenizer throughout."
        )
    return ids.astype(np.int64)


def _with_context(length: int, starts: Integers, reach: int) -> Int64s:
    """The places, ascending, that have `reach` ids before them in their own document."""
    reached = np.ones(length, np.bool_)
    reached[:reach] = False
    for offset in range(reach):
        places = starts.astype(np.int64) + offset
        reached[places[places < length]] = False
    return np.flatnonzero(reached).astype(np.int64)


def _pack(ids: Int64s, at: Int64s, width: int, vocab_size: int) -> Int64s:
    """The `width` ids before each place in `at`, as one number per place."""
    keys = np.zeros(len(at), np.int64)
    for back in range(width, 0, -1):
        keys = keys * vocab_size + ids[at - back]
    return keys


def _look_up(keys: Int64s, values: Int64s, wanted: Int64s) -> Int64s:
    """The value of each wanted key; 0 if it is not among `keys`, which ascend."""
    if not len(keys):
        return np.zeros(len(wanted), np.int64)
    places = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[places] == wanted, values[places], 0)
