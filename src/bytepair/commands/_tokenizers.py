"""The argument TOKENIZER: a bpe.json, or the name of a tokenizer of the pipeline in this folder."""

from __future__ import annotations

from pathlib import Path

import click


def find_tokenizer(argument: str) -> tuple[str, Path]:
    """Its name and its bpe.json.

    Raises:
        click.BadParameter: there is neither such a file nor such a tokenizer.
    """
    from bytepair.layout import TokenizerPaths

    named = TokenizerPaths(Path(), argument).bpe
    if not Path(argument).is_file():
        if named.is_file():
            return argument, named
        known = sorted(path.parent.name for path in Path("data", "tokenizers").glob("*/bpe.json"))
        there = f" Here are: {', '.join(known)}." if known else ""
        raise click.BadParameter(f"{argument!r} is neither a file nor a tokenizer's name.{there}")
    path = Path(argument)
    return path.parent.name if path.name == named.name else path.stem, path


def split_texts(name: str, path: Path) -> dict[str, list[str]]:
    """The documents of the splits of the tokenizer's corpus, as far as they are at hand."""
    from bytepair import params
    from bytepair.corpora.documents import has_split, read_split
    from bytepair.layout import SPLITS, CorpusPaths, TokenizerPaths

    file = Path("params.yaml")
    if not file.is_file() or path.resolve() != TokenizerPaths(Path(), name).bpe.resolve():
        return {}
    if name not in params.names(file)[1]:
        return {}
    folder = CorpusPaths(Path(), params.load_tokenizer(file, name).corpus).splits
    return {
        split: [document.text for document in read_split(folder / split).documents]
        for split in SPLITS
        if has_split(folder, split)
    }


def read_texts(paths: tuple[Path, ...]) -> dict[str, list[str]]:
    """The text of each file by its name."""
    from bytepair.files import decode_utf8, read_bytes

    return {path.name: [decode_utf8(read_bytes(path), path)] for path in paths}
