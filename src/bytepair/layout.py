"""Where everything lies, relative to the folder that holds dvc.yaml; nothing else knows a path."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

SPLITS = ("train", "val", "test")
RULE = "rule.json"  # in a split of a sharded corpus, in place of its text


@dataclass(frozen=True)
class CorpusPaths:
    """The folders of one corpus."""

    root: Path
    name: str

    @property
    def folder(self) -> Path:
        return self.root / "data" / "corpora" / self.name

    @property
    def raw(self) -> Path:
        return self.folder / "raw"

    @property
    def manifest(self) -> Path:
        """Of a sharded corpus, in place of a raw text."""
        return self.raw / "manifest.json"

    @property
    def clean(self) -> Path:
        return self.folder / "clean"

    @property
    def splits(self) -> Path:
        return self.folder / "splits"


@dataclass(frozen=True)
class TokenizerPaths:
    """The files and folders of one tokenizer."""

    root: Path
    name: str

    @property
    def folder(self) -> Path:
        return self.root / "data" / "tokenizers" / self.name

    @property
    def counts(self) -> Path:
        return self.folder / "counts"

    @property
    def bpe(self) -> Path:
        return self.folder / "bpe.json"

    @property
    def tokens(self) -> Path:
        return self.folder / "tokens"

    @property
    def shards(self) -> Path:
        """What was made of each shard of a sharded corpus, unless params name another place."""
        return self.folder / "shards"

    @property
    def baseline(self) -> Path:
        return self.folder / "baseline"

    @property
    def report(self) -> Path:
        return self.folder / "report"

    @property
    def training_curve(self) -> Path:
        return self.report / "training.json"

    @property
    def measures(self) -> Path:
        return self.report / "measures.json"

    @property
    def metrics(self) -> Path:
        return self.root / "metrics" / f"{self.name}.json"
