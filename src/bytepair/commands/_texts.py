"""Texts that are given as files, `-` for stdin, and the special tokens that count in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import IO, TYPE_CHECKING

import click

if TYPE_CHECKING:
    from bytepair.counts import ChunkCounts
    from bytepair.special_tokens import Choice

FILE = click.File("rb")
FILES = click.Path(exists=True, dir_okay=False, allow_dash=True)

allow_special_option = click.option(
    "--allow-special",
    multiple=True,
    metavar="all|TEXT",
    help="Special tokens whose text becomes their id; without it, none.",
)


def allowed(texts: tuple[str, ...]) -> Choice:
    """What --allow-special means to Tokenizer.encode."""
    return "all" if "all" in texts else texts


def file_name(file: IO[bytes]) -> str:
    """What messages call it; a stdin that a program has put there has no name."""
    return getattr(file, "name", "<stdin>")


def read_text(file: IO[bytes]) -> str:
    """A file's text, every character as it is.

    Raises:
        TextError: it is not UTF-8.
    """
    from bytepair.files import decode_utf8

    return decode_utf8(file.read(), file_name(file))


def counter(paths: Iterable[str]) -> Callable[..., ChunkCounts]:
    """ChunkCounts.count_files of the paths, or ChunkCounts.count if stdin is one of them."""
    from bytepair.counts import ChunkCounts

    paths = list(paths)
    if "-" not in paths:
        return partial(ChunkCounts.count_files, paths)
    texts = []
    for path in paths:
        with click.open_file(path, "rb") as file:
            texts.append(read_text(file))
    return partial(ChunkCounts.count, texts)
