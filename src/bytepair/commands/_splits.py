"""Texts to compare on: the splits of a tokenizer's corpus, and files."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from bytepair.corpora.documents import Split


def corpus_splits(name: str) -> dict[str, Split]:
    """The splits of the corpus of a tokenizer of the pipeline, as far as they are at hand."""
    from bytepair import params
    from bytepair.corpora.documents import has_split, read_split
    from bytepair.layout import SPLITS, CorpusPaths

    file = Path("params.yaml")
    if not file.is_file() or name not in params.names(file)[1]:
        return {}
    folder = CorpusPaths(Path(), params.load_tokenizer(file, name).corpus).splits
    return {split: read_split(folder / split) for split in SPLITS if has_split(folder, split)}


def split_texts(name: str, path: Path) -> dict[str, list[str]]:
    """The documents of those splits, if the tokenizer at `path` is the pipeline's own."""
    from bytepair.layout import TokenizerPaths

    if path.resolve() != TokenizerPaths(Path(), name).bpe.resolve():
        return {}
    return {
        split: [document.text for document in content.documents]
        for split, content in corpus_splits(name).items()
    }


def read_texts(paths: tuple[Path, ...]) -> dict[str, list[str]]:
    """The text of each file by the file's name.

    Raises:
        click.BadParameter: two files have the same name.
    """
    from bytepair.files import decode_utf8, read_bytes

    texts: dict[str, list[str]] = {}
    for path in paths:
        if path.name in texts:
            raise click.BadParameter(f"two texts are named {path.name!r}: rename one.")
        texts[path.name] = [decode_utf8(read_bytes(path), path)]
    return texts
