"""`bytepair tokens`: what is done with arrays of token ids."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from bytepair.commands import examples

FORMATS = ("nanogpt", "llmc", "megatron")
SEPARATORS = ("after", "before", "between", "none")
TRAIN = "data/tokenizers/sample-512/tokens/train"


@click.group(epilog=examples(f"bytepair tokens export {TRAIN} train.bin --format nanogpt"))
def tokens() -> None:
    """Hand the token arrays of a split to another trainer."""


@tokens.command(
    epilog=examples(
        f"bytepair tokens export {TRAIN} train.bin --format nanogpt",
        f"bytepair tokens export {TRAIN} tales_train.bin --format llmc",
        f"bytepair tokens export {TRAIN} tales --format megatron --separator none",
    )
)
@click.argument("folder", metavar="TOKENS_FOLDER", type=click.Path(path_type=Path))
@click.argument("out", metavar="OUT", type=click.Path(path_type=Path))
@click.option("--format", type=click.Choice(FORMATS), required=True, help="Whose reader it is for.")
@click.option(
    "--separator",
    type=click.Choice(SEPARATORS),
    help="Where the separator's id stands, seen from a document. Without this: between for "
    "nanogpt, as it is stored; before for llmc and after for megatron, as their own tools put it.",
)
@click.option("--force", is_flag=True, help="Replace files that are there.")
def export(folder: Path, out: Path, **options: Any) -> None:
    """Write the split in TOKENS_FOLDER as the files that another trainer reads.

    \b
    nanogpt    OUT.bin             raw uint16 or uint32
    llmc       OUT.bin             header of 256 int32, then uint16
    megatron   OUT.bin, OUT.idx    uint16 or int32, and where each document lies

    The folder is verified first. Beside the files goes OUT.json, which says what they were made
    from, with their hashes. OUT may end in .bin.
    """  # noqa: D301 -- click's mark for lines to leave alone
    from bytepair.token_exports import export_tokens
    from bytepair.tokens import open_tokens

    source = open_tokens(folder)
    made = export_tokens(source, out, **options)
    separator = (
        "no separator"
        if made.separator == "none"
        else f"separator {source.index.separator_id} {made.separator} documents"
    )
    click.echo(f"{made.tokens:,} tokens of {made.documents:,} documents, {made.dtype}, {separator}")
    for path in made.paths:
        click.echo(f"{path}: {path.stat().st_size:,} bytes")
    if options["format"] == "nanogpt" and made.dtype == "<u4":
        click.echo("nanoGPT's train.py maps uint16: change both places to uint32.", err=True)
