"""The first model stage downstream, standing for all others: n-grams over the token arrays.

It opens the arrays, learns from train and says how many bits a byte of val costs: a figure that
tokenizers share, which nats per token and perplexity are not. Its manifest names the tokenizer,
and what it was made with is refused to any other. What the model is stands in ngram.py.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytepair import files
from bytepair.arrays import load_npy, npy_bytes
from bytepair.fields import COUNT, SHA256, Check, check_fields, damaged
from bytepair.ngram import HIGHEST_ORDER, KEY_LIMIT, Figures, Integers, NGramModel, evaluate, train
from bytepair.tokens import FORMAT, VERSION, VOCAB_SIZE, Ids, Tokens, check_tokenizer, open_tokens

_FIGURE: Check = (
    "a number from 0 on, or null",
    lambda value: value is None or (type(value) is float and value >= 0),
)
_FIGURES = {"bits_per_byte": _FIGURE, "nats_per_token": _FIGURE, "perplexity": _FIGURE}
_ARRAY = {"length": COUNT, "sha256": SHA256}
_MANIFEST: Mapping[str, Any] = {
    "version": FORMAT,
    "tokenizer_sha256": SHA256,
    "vocab_size": VOCAB_SIZE,
    "order": ("1, 2 or 3", lambda value: type(value) is int and 1 <= value <= HIGHEST_ORDER),
    "discounts": ("a list", lambda value: isinstance(value, list)),
    "train": {"tokens_sha256": SHA256, "tokens": COUNT},
    "val": {
        "tokens_sha256": ("a sha256 or null", lambda value: value is None or SHA256[1](value)),
        **_FIGURES,
        "unigram": _FIGURES,
        "uniform": _FIGURES,
    },
    "ngrams": _ARRAY,
    "counts": _ARRAY,
}


@dataclass(frozen=True, eq=False)
class Baseline:
    """A model, and what baseline.json states: what it was made from and how well it does on val."""

    model: NGramModel
    manifest: Mapping[str, Any]

    def bits(self, tokens: Tokens) -> NDArray[np.float64]:
        """What each token of a split costs, in bits: (tokens,)."""
        return -self.model.log2_probabilities(tokens.ids, _barriers(tokens))


def run(
    tokens_folder: files.StrPath,
    folder: files.StrPath,
    *,
    order: int,
    max_tokens: int | None = None,
) -> Baseline:
    """Train on the split `train`, evaluate on `val` if there is one, write the result.

    Raises:
        ArtifactError: a split is damaged, or the two were encoded with different tokenizers.
    """
    learned = open_tokens(Path(tokens_folder) / "train")
    index, val = learned.index, None
    if (Path(tokens_folder) / "val").is_dir():
        val = open_tokens(Path(tokens_folder) / "val", tokenizer_sha256=index.tokenizer_sha256)

    def fit(ids: Ids, order: int) -> NGramModel:
        starts = _barriers(learned)
        return train(ids, starts, vocab_size=index.vocab_size, order=order, max_tokens=max_tokens)

    model = fit(learned.ids, order)
    manifest = {
        "version": VERSION,
        "tokenizer_sha256": index.tokenizer_sha256,
        "vocab_size": index.vocab_size,
        "order": order,
        "discounts": _rounded(model.discounts),
        "train": {
            "tokens_sha256": index.tokens_sha256,
            "tokens": len(learned.ids[:max_tokens]),
        },
        "val": {
            "tokens_sha256": None if val is None else val.index.tokens_sha256,
            **_figures(model, val),
            "unigram": _figures(fit(learned.ids, 1), val),
            "uniform": _figures(fit(learned.ids[:0], 1), val),
        },
    }
    return write_baseline(folder, model, manifest)


def write_baseline(
    folder: files.StrPath, model: NGramModel, manifest: Mapping[str, Any]
) -> Baseline:
    """Write ngrams.npy and counts.npy, then baseline.json: `manifest`, and the arrays' hashes."""
    path = Path(folder) / "baseline.json"
    arrays = {"ngrams": npy_bytes(model.ngrams), "counts": npy_bytes(model.counts)}
    hashes = {
        name: {"length": len(model.ngrams), "sha256": files.sha256(data)}
        for name, data in arrays.items()
    }
    record = {**manifest, **hashes}
    check_fields(record, _MANIFEST, path)
    path.unlink(missing_ok=True)
    for name, data in arrays.items():
        files.write_bytes(path.with_name(f"{name}.npy"), data)
    files.write_record(path, record)
    return Baseline(model, record)


def load_baseline(folder: files.StrPath, *, tokenizer_sha256: str) -> Baseline:
    """Read what write_baseline wrote, for use with the tokenizer of that hash.

    Raises:
        ArtifactError: a file is absent, damaged, or made with another tokenizer.
    """
    path = Path(folder) / "baseline.json"
    record = files.read_record(path)
    check_fields(record, _MANIFEST, path)
    check_tokenizer(path, record["tokenizer_sha256"], tokenizer_sha256, stage="baseline")
    ngrams, counts = (
        load_npy(path.with_name(f"{name}.npy"), "<i8", **record[name])
        for name in ("ngrams", "counts")
    )
    model = NGramModel(record["vocab_size"], record["order"], ngrams, counts)
    _check_model(model, record["discounts"], path)
    return Baseline(model, record)


def _check_model(model: NGramModel, discounts: list[Any], path: Path) -> None:
    ngrams, counts, size = model.ngrams, model.counts, model.vocab_size**model.order
    if len(ngrams) != len(counts) or size > KEY_LIMIT:
        raise damaged(path, f"{len(ngrams)} n-grams, {len(counts)} counts, {size} possible n-grams")
    ascending = bool((ngrams[:-1] < ngrams[1:]).all())
    if len(ngrams) and not (ascending and 0 <= ngrams[0] <= ngrams[-1] < size):
        raise damaged(path.with_name("ngrams.npy"), "its n-grams are not in order, or impossible")
    if counts.min(initial=1) < 1:
        raise damaged(path.with_name("counts.npy"), f"it holds the count {counts.min()}")
    if discounts != _rounded(model.discounts):
        raise damaged(path, f"discounts are {discounts}, but counts give {model.discounts}")


def _figures(model: NGramModel, val: Tokens | None) -> Figures:
    if val is None:
        return dict.fromkeys(_FIGURES)
    return evaluate(model, val.ids, _barriers(val), text_bytes=val.index.text_bytes)


def _barriers(tokens: Tokens) -> Integers:
    """Where contexts end: at each document, unless separators stand there and say so."""
    return tokens.starts if tokens.index.separator_id is None else tokens.starts[:0]


def _rounded(numbers: Iterable[float]) -> list[float]:
    return [round(number, 6) for number in numbers]
