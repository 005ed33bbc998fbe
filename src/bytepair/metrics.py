"""The figures to judge a tokenizer by, and a check that the books balance.

`measure` gives the few numbers of `dvc metrics show`, `report` the lists behind them. Bytes are
counted by the tokens' own bytes, never by decoding: a decoder that puts U+FFFD for a broken
character would count bytes that no text has. How good the tokens are is left to the reader.
"""

from __future__ import annotations

import heapq
from collections.abc import Collection, Iterator, Mapping, Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any

import numpy as np

from bytepair.comparison import cost_by_block
from bytepair.errors import ArtifactError
from bytepair.intrinsic import count_words, fertility, intrinsic, renyi_efficiency
from bytepair.layout import SPLITS

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bytepair.baseline import Baseline
    from bytepair.tokens import Ids, Tokens

LONGEST = 20
LISTED = 1000  # documents of a split that are listed one by one
HARDEST = 100
BLOCK = 1 << 20  # ids counted at a time: bincount widens them to 8 bytes each


def measure(
    splits: Mapping[str, Tokens],
    vocabulary: Sequence[bytes],
    *,
    requested: int,
    show_test: bool,
    baseline: Baseline | None = None,
) -> dict[str, Any]:
    """The contents of metrics/<tokenizer>.json.

    Args:
        splits: the tokens of each split that exists.
        vocabulary: the bytes of every id, special tokens included.
        requested: the vocabulary size that was asked for.
        show_test: whether the test split may be seen; its books are checked all the same.
        baseline: gives val its `bits_per_byte`; `fertility` and `renyi_efficiency` it has always.

    Raises:
        ArtifactError: a split's tokens do not add up to its bytes, or two things given here were
            not made from each other.
    """
    counts = {name: _count_ids(splits[name], vocabulary, name) for name in SPLITS if name in splits}
    for name, split_counts in counts.items():
        _check_books(splits[name], split_counts, vocabulary, name)
    figures: dict[str, Any] = {}
    for name in _shown(splits, show_test=show_test):
        size, tokens = splits[name].index.text_bytes, len(splits[name])
        figures[name] = {"bytes": size, "tokens": tokens, "bytes_per_token": _ratio(size, tokens)}
    if "val" in splits:
        figures["val"] |= _figures_of_val(splits["val"], counts["val"], vocabulary, baseline)
    unused = int(np.count_nonzero(counts["train"] == 0)) if "train" in counts else None
    figures["vocab"] = {"requested": requested, "size": len(vocabulary), "unused_on_train": unused}
    return figures


def report(
    splits: Mapping[str, Tokens],
    vocabulary: Sequence[bytes],
    *,
    special_ids: Collection[int],
    show_test: bool,
    baseline: Baseline | None = None,
) -> dict[str, Any]:
    r"""The contents of report/measures.json: longest tokens, unused ids, figures by document.

    Special tokens, which nobody learned, are not among the longest. A token's bytes are shown as
    text with \xNN for what is not UTF-8; a document's bytes are those of its tokens. `intrinsic` is
    what intrinsic.py defines, `val_cost` what the baseline pays for val, with an interval and by
    block (see comparison.py). Of more than LISTED documents in a split, only the HARDEST that have
    the fewest bytes a token are listed, in their order.
    """
    learned = [number for number in range(len(vocabulary)) if number not in special_ids]
    learned.sort(key=lambda number: (-len(vocabulary[number]), number))
    counts = {name: _count_ids(splits[name], vocabulary, name) for name in SPLITS if name in splits}
    shown = _shown(splits, show_test=show_test)
    return {
        "longest_tokens": [
            {"id": number, "text": vocabulary[number].decode("utf-8", errors="backslashreplace")}
            for number in learned[:LONGEST]
        ],
        "unused_on_train": (
            np.flatnonzero(counts["train"] == 0).tolist() if "train" in counts else None
        ),
        "intrinsic": {
            name: intrinsic(counts[name], _documents(splits[name]), vocabulary) for name in shown
        },
        "documents": {name: _by_document(splits[name], vocabulary) for name in shown},
        "val_cost": _val_cost(splits, vocabulary, baseline),
    }


def _shown(splits: Mapping[str, Tokens], *, show_test: bool) -> list[str]:
    return [name for name in SPLITS if name in splits and (show_test or name != "test")]


def _count_ids(tokens: Tokens, vocabulary: Sequence[bytes], name: str) -> NDArray[np.int64]:
    """How often each id occurs: (vocab_size,)."""
    size = tokens.index.vocab_size
    if size != len(vocabulary):
        raise ArtifactError(
            f"{name}: its tokens are of a vocabulary of {size}, but {len(vocabulary)} tokens were "
            "given. Run `dvc repro` to encode it again."
        )
    counts = np.zeros(size, np.int64)
    for start in range(0, len(tokens), BLOCK):
        counts += np.bincount(tokens.ids[start : start + BLOCK], minlength=size)
    return counts


def _check_books(
    tokens: Tokens,
    counts: NDArray[np.int64],
    vocabulary: Sequence[bytes],
    name: str,
) -> None:
    lengths = _lengths(vocabulary)
    if tokens.index.separator_id is not None:
        lengths[tokens.index.separator_id] = 0
    gaps = max(len(tokens.starts) - 1, 0)
    found = int(counts @ lengths) + gaps * tokens.index.separator_bytes
    if found != tokens.index.text_bytes:
        raise ArtifactError(
            f"{name}: its tokens and {gaps} separators stand for {found} bytes, but its text has "
            f"{tokens.index.text_bytes}. Run `dvc repro` to encode it again."
        )


def _figures_of_val(
    val: Tokens, counts: NDArray[np.int64], vocabulary: Sequence[bytes], baseline: Baseline | None
) -> dict[str, Any]:
    figures: dict[str, Any] = {}
    if baseline is not None:
        _check_val(baseline, val)
        figures["bits_per_byte"] = baseline.manifest["val"]["bits_per_byte"]
    words, tokens = count_words(_documents(val), vocabulary)
    figures["fertility"] = fertility(tokens, words)
    figures["renyi_efficiency"] = renyi_efficiency(counts)
    return figures


def _check_val(baseline: Baseline, val: Tokens) -> None:
    evaluated = baseline.manifest["val"]["tokens_sha256"]
    if evaluated != val.index.tokens_sha256:
        raise ArtifactError(
            f"val: its tokens have the sha256 {val.index.tokens_sha256}, but the baseline was "
            f"evaluated on {evaluated}. Run `dvc repro`: its stage baseline must run again."
        )


def _val_cost(
    splits: Mapping[str, Tokens], vocabulary: Sequence[bytes], baseline: Baseline | None
) -> dict[str, Any] | None:
    if baseline is None or "val" not in splits:
        return None
    val = splits["val"]
    _check_val(baseline, val)
    return cost_by_block(val, baseline.bits(val), vocabulary).record()


def _documents(tokens: Tokens) -> Iterator[Ids]:
    for _, ids in tokens.documents():
        yield ids


def _by_document(tokens: Tokens, vocabulary: Sequence[bytes]) -> list[dict[str, Any]]:
    lengths = _lengths(vocabulary)
    entries = (
        {"name": name, "bytes": size, "tokens": len(ids), "bytes_per_token": _ratio(size, len(ids))}
        for name, ids in tokens.documents()
        for size in (int(lengths[ids].sum()),)
    )
    if len(tokens.starts) <= LISTED:
        return list(entries)
    hardest = heapq.nsmallest(
        HARDEST,
        (
            (entry["bytes_per_token"], number, entry)
            for number, entry in enumerate(entries)
            if entry["tokens"]
        ),
    )
    return [entry for _, number, entry in sorted(hardest, key=itemgetter(1))]


def _lengths(vocabulary: Sequence[bytes]) -> NDArray[np.int64]:
    return np.array([len(token) for token in vocabulary], np.int64)


def _ratio(size: int, tokens: int) -> float | None:
    return round(size / tokens, 6) if tokens else None
