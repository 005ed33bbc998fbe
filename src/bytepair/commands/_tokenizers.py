"""The argument TOKENIZER of all commands: a bpe.json, a folder that holds one, or a name."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

if TYPE_CHECKING:
    from bytepair.tokenizer import Tokenizer

in_option = click.option(
    "-t",
    "--tokenizer",
    required=True,
    metavar="TOKENIZER",
    help="A bpe.json, a folder that holds one, or a tokenizer's name in this pipeline.",
)


def find_tokenizer(argument: str) -> tuple[str, Path]:
    """Its name and its bpe.json.

    Raises:
        click.BadParameter: there is neither such a file nor such a tokenizer.
    """
    from bytepair.layout import TokenizerPaths

    named = TokenizerPaths(Path(), argument).bpe
    for path in (Path(argument), Path(argument, named.name), named):
        if path.is_file():
            return path.resolve().parent.name if path.name == named.name else path.stem, path
    known = sorted(path.parent.name for path in Path("data", "tokenizers").glob("*/bpe.json"))
    there = f" Here are: {', '.join(known)}." if known else ""
    raise click.BadParameter(
        f"{argument!r} is neither a {named.name}, nor a folder that holds one, nor a tokenizer's "
        f"name.{there}"
    )


def load_tokenizer(argument: str) -> Tokenizer:
    """Read it.

    Raises:
        click.BadParameter: there is none.
        TokenizerFileError: it is damaged.
    """
    from bytepair.tokenizer import Tokenizer

    return Tokenizer.load(find_tokenizer(argument)[1])
