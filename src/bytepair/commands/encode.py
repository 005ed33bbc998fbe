"""`bytepair encode`: text to ids."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import BinaryIO

import click

from bytepair.commands import examples
from bytepair.commands._texts import FILE, allow_special_option, allowed, read_text
from bytepair.commands._tokenizers import in_option, load_tokenizer
from bytepair.id_formats import FORMATS, check_width, dump_ids, is_binary


@click.command(
    epilog=examples(
        "echo 'Elementary, my dear Watson.' | bytepair encode -t sherlock-512",
        "bytepair encode -t sherlock-512 data/sample/tales.txt --format npy -o tales.npy",
        "bytepair encode -t sherlock-512 data/sample/tales.txt --format u16 > tales.bin",
        "echo 'The end.<|endoftext|>' | bytepair encode -t sherlock-512 --allow-special all",
    )
)
@click.argument("file", type=FILE, default="-")
@in_option
@allow_special_option
@click.option(
    "--format",
    "name",
    type=click.Choice(FORMATS),
    default="text",
    show_default=True,
    help="text, JSON, .npy, or plain little-endian integers of 16 or 32 bits.",
)
@click.option(
    "-o", "--output", type=click.Path(dir_okay=False, path_type=Path), help="Default: stdout."
)
def encode(
    file: BinaryIO, tokenizer: str, allow_special: tuple[str, ...], name: str, output: Path | None
) -> None:
    """Turn a text into ids.

    FILE is UTF-8, taken as it is, to the last newline; without it, or with -, stdin is read.
    """
    from bytepair.files import write_bytes

    if output is None and is_binary(name) and sys.stdout.isatty():
        raise click.UsageError(f"{name} is not for a terminal: give -o FILE, or a pipe.")
    loaded = load_tokenizer(tokenizer)
    check_width(name, loaded.vocab_size)
    text = read_text(file)
    encode = loaded.encode_array if is_binary(name) else loaded.encode
    data = dump_ids(encode(text, allowed_special=allowed(allow_special)), name)
    if output is None:
        click.echo(data, nl=False)
    else:
        write_bytes(output, data)
