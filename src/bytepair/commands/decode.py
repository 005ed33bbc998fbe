"""`bytepair decode`: ids to bytes."""

from __future__ import annotations

from typing import BinaryIO

import click

from bytepair.commands import examples
from bytepair.commands._texts import FILE, file_name
from bytepair.commands._tokenizers import in_option, load_tokenizer
from bytepair.id_formats import FORMATS, parse_ids


@click.command(
    epilog=examples(
        "echo 412 263 | bytepair decode -t sherlock-512",
        "bytepair encode -t sherlock-512 README.md | bytepair decode -t sherlock-512",
        "bytepair decode -t sherlock-512 --format npy tales.npy",
    )
)
@click.argument("file", type=FILE, default="-")
@in_option
@click.option(
    "--format",
    "name",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="What FILE holds; see `bytepair encode`.",
)
def decode(file: BinaryIO, tokenizer: str, name: str) -> None:
    """Turn ids back into the text's bytes.

    The bytes are exact, whether they are UTF-8 or not, and nothing is put after them. Without FILE,
    or with -, ids are read from stdin.
    """
    loaded = load_tokenizer(tokenizer)
    ids = parse_ids(file.read(), name, file_name(file))
    click.echo(loaded.decode_bytes(ids), nl=False)
