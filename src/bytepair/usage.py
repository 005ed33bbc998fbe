"""How often each id of a tokenizer occurs in a text, from the text's chunk counts alone."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from bytepair.encoding import make_encoder
from bytepair.kernel.encode import SLACK
from bytepair.packed import PackedCounts
from bytepair.patterns import Pattern


def count_ids(merges: Sequence[tuple[int, int]], counts: Mapping[bytes, int]) -> NDArray[np.int64]:
    """The occurrences of each byte and merge in a text: (256 + merges,), exact.

    Each distinct chunk is encoded once, and its ids count as often as it does.

    Args:
        merges: pairs of ids in rank order.
        counts: from each chunk's bytes to how often it occurs.
    """
    packed = PackedCounts.of(counts)
    text = bytes(packed.chunks)
    ids = np.empty(len(text) + SLACK, np.uint32)
    uncut = make_encoder(merges, Pattern(None))  # a chunk is not cut again
    id_ends = np.array([0, *uncut.encode_into(text, packed.ends, ids, threads=1)], np.int64)
    weights = np.array(packed.numbers, np.int64)
    used = np.zeros(256 + len(merges), np.int64)
    # Not bincount, whose weights are floats.
    np.add.at(used, ids[: id_ends[-1]], np.repeat(weights, np.diff(id_ends)))
    return used
