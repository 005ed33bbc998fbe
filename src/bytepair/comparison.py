"""How far a figure in bits per byte can be trusted, and whether two differ by more than chance.

A text is cut into blocks, and what a model pays is added up by block. Drawing as many blocks with
replacement, a thousand times, shows how far the figure moves with the text (the bootstrap: Efron,
Annals of Statistics 7, 1979). Single tokens are no such units, since what is hard to predict comes
in runs: by blocks of 16, 512 and 1,024 bytes the interval of sherlock-512 on val is 0.043, 0.052
and 0.052 wide, that of notebook-316 0.058, 0.082 and 0.091. Blocks of 512 bytes catch most of it,
and a story has a hundred of them.

Blocks are cut by bytes, not by tokens: a token counts in the block in which it begins. So models
that read the same text have the same blocks, whatever their tokenizers, and the difference of two
is drawn as one. A passage that is hard for both then adds no noise.

What an interval leaves out is chance in training, and that one text is harder than the next. A
model trained on two stories of Holmes was tried on the other eight of train, in pieces of 25 kB:
the intervals of 10 in 14 held the figure of all eight, and the difference of two tokenizers was
held by 14 in 14.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytepair import files
from bytepair.errors import ArtifactError
from bytepair.fields import COUNT, SHA256, Check, check_fields, damaged
from bytepair.tokens import Tokens

Floats = NDArray[np.float64]
Int64s = NDArray[np.int64]

BLOCK_BYTES = 512
MOST_BLOCKS = 1_000  # of a longer text the blocks are longer
FEWEST_BLOCKS = 10  # in the trial above 92 % of pieces of 10 blocks held the difference, 84 % of 8
MANY_DOCUMENTS = 30  # from here on, no block ends inside a document
RESAMPLES = 1_000
OUTSIDE = 25  # of them, on either side of a 95 % interval
SEED = b"bytepair"

_NUMBER: Check = ("a number or null", lambda value: value is None or type(value) is float)
_FIELDS: Mapping[str, Any] = {
    "text_sha256": SHA256,
    "bits_per_byte": _NUMBER,
    "low": _NUMBER,
    "high": _NUMBER,
    "block_bytes": (
        "a list of whole numbers from 0 on",
        lambda value: isinstance(value, list) and all(COUNT[1](size) for size in value),
    ),
    "block_bits": (
        "a list of numbers from 0 on",
        lambda value: (
            isinstance(value, list) and all(type(bits) is float and bits >= 0 for bits in value)
        ),
    ),
}


@dataclass(frozen=True, slots=True)
class Estimate:
    """Bits per byte and a 95 % interval, rounded to 6 decimals.

    `value` is None where there are no bytes, `low` and `high` where there are too few blocks.
    """

    value: float | None
    low: float | None
    high: float | None

    @property
    def excludes_zero(self) -> bool:
        """Of a difference: whether it is more than chance."""
        return self.low is not None and self.high is not None and not self.low <= 0 <= self.high


@dataclass(frozen=True, eq=False)
class Costs:
    """What a model pays for each block of a text.

    Attributes:
        text_sha256: the text's hash.
        block_bytes: (blocks,), how long each is; together they are the text.
        block_bits: (blocks,), rounded to 6 decimals.
    """

    text_sha256: str
    block_bytes: Int64s
    block_bits: Floats

    def estimate(self) -> Estimate:
        """Bits per byte of the whole text, and how far that can be trusted."""
        return _estimate(self.block_bits, self.block_bytes)

    def record(self) -> dict[str, Any]:
        """The estimate and the blocks as JSON. Under the key `val_cost`, load_costs finds it."""
        estimate = self.estimate()
        return {
            "text_sha256": self.text_sha256,
            "bits_per_byte": estimate.value,
            "low": estimate.low,
            "high": estimate.high,
            "block_bytes": self.block_bytes.tolist(),
            "block_bits": self.block_bits.tolist(),
        }


def compare(first: Costs, second: Costs) -> Estimate:
    """The first's bits per byte minus the second's: below zero, the first is the better one.

    Raises:
        ArtifactError: the two are not of the same text.

    >>> sizes = np.full(40, 512)
    >>> bits = np.arange(1_000.0, 1_040)
    >>> better, worse = Costs("a" * 64, sizes, bits), Costs("a" * 64, sizes, bits + 256)
    >>> better.estimate()
    Estimate(value=1.991211, low=1.984375, high=1.998291)
    >>> compare(better, worse)
    Estimate(value=-0.5, low=-0.5, high=-0.5)
    >>> compare(better, Costs("b" * 64, sizes, bits))
    Traceback (most recent call last):
    bytepair.errors.ArtifactError: bits per byte of two texts, whose sha256 are aaa...
    """
    if first.text_sha256 != second.text_sha256:
        raise ArtifactError(
            f"bits per byte of two texts, whose sha256 are {first.text_sha256} and "
            f"{second.text_sha256}, cannot be compared. Compare models of one corpus."
        )
    if not np.array_equal(first.block_bytes, second.block_bytes):
        raise ArtifactError(
            f"the text whose sha256 is {first.text_sha256} was cut into blocks in two ways, "
            f"{len(first.block_bytes)} and {len(second.block_bytes)} of them. Run `dvc repro`: "
            "the stages that cut it must run again."
        )
    return _estimate(first.block_bits - second.block_bits, first.block_bytes)


def cost_by_block(tokens: Tokens, bits: Floats, vocabulary: Sequence[bytes]) -> Costs:
    """Add up what a model pays for a split's tokens, by block of its text.

    Args:
        tokens: of one split.
        bits: (tokens,), what each costs: the negative binary logarithm of its probability.
        vocabulary: the bytes of every id, special tokens included.

    Raises:
        ArtifactError: the tokens are of another vocabulary.
    """
    begins, documents = _places(tokens, vocabulary)
    size = tokens.index.text_bytes
    step = max(BLOCK_BYTES, -(-size // MOST_BLOCKS))
    edges = np.arange(0, max(size, 1), step, dtype=np.int64)
    if len(documents) >= MANY_DOCUMENTS:  # an edge moves back to where its document starts
        edges = np.unique(documents[np.searchsorted(documents, edges, "right") - 1])
    blocks = np.searchsorted(edges, begins, "right") - 1
    sums = np.bincount(blocks, bits, minlength=len(edges)).astype(np.float64)
    return Costs(tokens.index.text_sha256, np.diff(edges, append=size), sums.round(6))


def load_costs(path: files.StrPath) -> Costs:
    """Read `val_cost` of a tokenizer's report/measures.json, or of a model's own manifest.

    Raises:
        ArtifactError: the file is absent or damaged, or tells of no val split.
    """
    value = files.read_json(path)
    record = value.get("val_cost") if isinstance(value, dict) else None
    if record is None:
        raise ArtifactError(
            f"{os.fspath(path)}: no val_cost in it. Name a file that a stage wrote for a corpus "
            "with a val split, such as report/measures.json."
        )
    path = Path(path)
    check_fields(record, _FIELDS, path, "val_cost")
    sizes, bits = record["block_bytes"], record["block_bits"]
    if len(sizes) != len(bits):
        raise damaged(path, f"val_cost has {len(sizes)} block_bytes, but {len(bits)} block_bits")
    return Costs(record["text_sha256"], np.array(sizes, np.int64), np.array(bits, np.float64))


def _places(tokens: Tokens, vocabulary: Sequence[bytes]) -> tuple[Int64s, Int64s]:
    """The byte at which each token begins, and the one at which each document starts."""
    index, starts = tokens.index, tokens.starts.astype(np.int64)
    if len(vocabulary) != index.vocab_size:
        raise ArtifactError(
            f"the tokens are of a vocabulary of {index.vocab_size}, but {len(vocabulary)} tokens "
            "were given. Give those of the tokenizer that encoded them."
        )
    lengths = np.array([len(token) for token in vocabulary], np.int64)
    if index.separator_id is not None:
        lengths[index.separator_id] = index.separator_bytes  # it stands for the corpus's own
    edges = np.concatenate([[0], np.cumsum(lengths[tokens.ids])])
    begins, documents = edges[:-1], edges[starts]
    if index.separator_id is None:  # the bytes between documents have no token
        gaps = np.searchsorted(starts, np.arange(len(begins)), "right") - 1
        begins = begins + gaps * index.separator_bytes
        documents = documents + np.arange(len(documents)) * index.separator_bytes
    return begins, documents


def _estimate(bits: Floats, sizes: Int64s) -> Estimate:
    if not sizes.any():
        return Estimate(None, None, None)
    value = _rounded(bits.sum() / sizes.sum())
    if len(bits) < FEWEST_BLOCKS:
        return Estimate(value, None, None)
    drawn = _draw(len(bits))
    figures = np.sort(bits[drawn].sum(axis=1) / sizes[drawn].sum(axis=1))
    return Estimate(value, _rounded(figures[OUTSIDE]), _rounded(figures[-OUTSIDE - 1]))


def _draw(blocks: int) -> Int64s:
    """The blocks of each resample: (RESAMPLES, blocks), numbers below `blocks`.

    They are 32-bit words of SHAKE-256, scaled down, which favours none by more than one in four
    million. NumPy may change what its generators draw; a published standard does not change.
    """
    words = np.frombuffer(hashlib.shake_256(SEED).digest(4 * RESAMPLES * blocks), "<u4")
    return (words.astype(np.int64) * blocks >> 32).reshape(RESAMPLES, blocks)


def _rounded(number: np.floating[Any]) -> float:
    return round(float(number), 6) + 0.0  # never -0.0
