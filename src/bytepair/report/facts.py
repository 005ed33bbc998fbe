"""What a report tells, gathered from what the pipeline left or from one text.

Arrays and records are read with the readers that check them. The test split is not even opened
unless the tokenizer's block in params.yaml says that it may be shown.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytepair import files
from bytepair.comparison import Costs, Estimate, compare, load_costs
from bytepair.corpora.documents import read_split
from bytepair.counts import ChunkCounts
from bytepair.errors import ArtifactError
from bytepair.intrinsic import intrinsic
from bytepair.layout import SPLITS, CorpusPaths, TokenizerPaths
from bytepair.params import TokenizerParams, load_tokenizer, names
from bytepair.patterns import PRESETS, Pattern
from bytepair.report.experiments import Curve, Texts, larger_vocabulary, leakage, own_curve
from bytepair.tokenizer import Tokenizer
from bytepair.tokens import open_tokens

PARAMS = "params.yaml"
TRY_BYTES = 1 << 23  # larger texts are not trained on again: the report is to take seconds


@dataclass(frozen=True)
class Document:
    """A document by its name, bytes and tokens, without separators."""

    name: str
    size: int
    tokens: int


@dataclass(frozen=True, eq=False)
class SplitFacts:
    """One split, or one text.

    Attributes:
        name: `train`, `val`, `test` or `text`.
        size: its bytes, separators included.
        ids: (tokens,), all ids of the array, separators included.
        documents: in order.
        counts: (vocab_size,), how often each id occurs.
        measures: what intrinsic.py says of it.
    """

    name: str
    size: int
    ids: NDArray[Any]
    documents: tuple[Document, ...]
    counts: NDArray[np.int64]
    measures: dict[str, Any]

    @property
    def bytes_per_token(self) -> float:
        return self.size / len(self.ids) if len(self.ids) else 0.0


@dataclass(frozen=True)
class Rival:
    """Another tokenizer of the same corpus, or this one: its row in the comparison.

    Attributes:
        figures: its metrics/NAME.json.
        pattern: the preset's name, `none`, or `of its own`.
        difference: its bits per byte minus those of the report's tokenizer; None for itself.
    """

    name: str
    pattern: str
    figures: dict[str, Any]
    difference: Estimate | None


@dataclass(frozen=True, eq=False)
class Facts:
    """All that a report tells; what could not be had is None or empty, and its section says so."""

    name: str
    tokenizer: Tokenizer
    pattern: str
    splits: tuple[SplitFacts, ...]
    curves: tuple[Curve, ...]
    corpus: str | None = None
    cost: Estimate | None = None
    leaked: float | None = None
    rivals: tuple[Rival, ...] = ()
    hides_test: bool = False

    def split(self, name: str) -> SplitFacts | None:
        """The split of that name, if there is one."""
        return next((split for split in self.splits if split.name == name), None)

    @property
    def held_out(self) -> SplitFacts:
        """The split to show text and figures of: val, else whatever comes last."""
        return self.split("val") or self.splits[-1]

    @property
    def shown_bytes(self) -> int:
        """The bytes of all splits that may be shown, on which leakage is tried."""
        return sum(split.size for split in self.splits)

    @property
    def trained_on(self) -> SplitFacts | None:
        """The train split, which is unknown for a tokenizer without a pipeline."""
        return self.split("train")


def of_pipeline(root: Path, name: str) -> Facts:
    """Gather the facts of a tokenizer of params.yaml.

    Raises:
        ParamsError: there is no such tokenizer, or its block is wrong.
        ArtifactError: a file is absent, damaged or made with something else; what to run.
    """
    params = load_tokenizer(root / PARAMS, name)
    paths = TokenizerPaths(root, name)
    tokenizer = Tokenizer.load(paths.bpe)
    shown = [split for split in SPLITS if split != "test" or params.report.test]
    splits = tuple(_splits(paths, tokenizer, shown))
    if not splits:
        raise ArtifactError(
            f"{paths.tokens}: there is no split in it. Run `dvc repro encode-splits@{name}`."
        )
    cost = _costs(paths)
    texts = _texts(CorpusPaths(root, params.corpus), params, shown)
    curves, leaked = own_curve(tokenizer, {split.name: split.counts for split in splits}), None
    if texts is not None:
        counts = ChunkCounts.load(paths.counts)
        curves = larger_vocabulary(tokenizer, counts, texts, params.train.min_count)
        leaked = leakage(tokenizer, texts, params.train.min_count)
    sizes = {split.name: split.size for split in splits}
    return Facts(
        name=name,
        tokenizer=tokenizer,
        pattern=_pattern_name(tokenizer.pattern),
        splits=splits,
        curves=tuple(Curve.of(split, sizes[split], lengths) for split, lengths in curves.items()),
        corpus=params.corpus,
        cost=cost.estimate() if cost else None,
        leaked=leaked,
        rivals=tuple(_rivals(root, params, cost)),
        hides_test=not params.report.test and (paths.tokens / "test").is_dir(),
    )


def of_text(path: Path, text: str, name: str) -> Facts:
    """Gather the facts of one bpe.json on a text of one's own, taken as one document."""
    tokenizer = Tokenizer.load(path)
    ids = tokenizer.encode_array(text)
    size = len(text.encode())
    split = _facts("text", size, ids, [("", ids)], tokenizer)
    curves = own_curve(tokenizer, {"text": split.counts})
    return Facts(
        name=name,
        tokenizer=tokenizer,
        pattern=_pattern_name(tokenizer.pattern),
        splits=(split,),
        curves=tuple(Curve.of("text", size, lengths) for lengths in curves.values()),
    )


def _splits(
    paths: TokenizerPaths, tokenizer: Tokenizer, shown: Sequence[str]
) -> Iterator[SplitFacts]:
    for name in shown:
        if (paths.tokens / name).is_dir():
            tokens = open_tokens(paths.tokens / name, tokenizer_sha256=tokenizer.sha256)
            documents = list(tokens.documents())
            yield _facts(name, tokens.index.text_bytes, tokens.ids, documents, tokenizer)


def _facts(
    name: str,
    size: int,
    ids: NDArray[Any],
    documents: Sequence[tuple[str, NDArray[Any]]],
    tokenizer: Tokenizer,
) -> SplitFacts:
    vocabulary = tokenizer.vocab
    lengths = np.array([len(token) for token in vocabulary], np.int64)
    counts = np.bincount(ids, minlength=len(vocabulary))
    return SplitFacts(
        name=name,
        size=size,
        ids=ids,
        documents=tuple(
            Document(document, int(lengths[part].sum()), len(part)) for document, part in documents
        ),
        counts=counts,
        measures=intrinsic(counts, (part for _, part in documents), vocabulary),
    )


def _texts(paths: CorpusPaths, params: TokenizerParams, shown: Sequence[str]) -> Texts | None:
    """The documents of the splits that may be shown, unless there are none or they are large."""
    folders = {name: paths.splits / name for name in shown if (paths.splits / name).is_dir()}
    sizes = [(folder / "text.txt").stat().st_size for folder in folders.values()]
    if not {"train", "val"} <= folders.keys() or sum(sizes) > TRY_BYTES:
        return None
    splits = {name: read_split(folder) for name, folder in folders.items()}
    return Texts(
        documents={
            name: tuple(document.text for document in split.documents)
            for name, split in splits.items()
        },
        sizes={name: split.size for name, split in splits.items()},
        separated=params.encode.separator is not None,
    )


def _costs(paths: TokenizerPaths) -> Costs | None:
    """What the baseline pays for val, where there is a val split and it was measured."""
    measures = files.read_json(paths.measures)
    return load_costs(paths.measures) if measures.get("val_cost") is not None else None


def _rivals(root: Path, params: TokenizerParams, cost: Costs | None) -> Iterator[Rival]:
    """This tokenizer and the others of its corpus that have been measured, in params' order."""
    for name in names(root / PARAMS)[1]:
        other = load_tokenizer(root / PARAMS, name)
        paths = TokenizerPaths(root, name)
        if other.corpus != params.corpus or not paths.metrics.is_file():
            continue
        cut = other.chunks.pattern
        theirs = _costs(paths) if cost is not None and name != params.name else None
        yield Rival(
            name=name,
            pattern="none" if cut is None else cut.name or "its own",
            figures=files.read_json(paths.metrics),
            difference=None if theirs is None or cost is None else compare(theirs, cost),
        )


def _pattern_name(pattern: Pattern) -> str:
    """The preset's name, `none`, or `its own`."""
    if pattern.regex is None:
        return "none"
    names_ = (name for name, preset in PRESETS.items() if preset.regex == pattern.regex)
    return next(names_, "its own")
