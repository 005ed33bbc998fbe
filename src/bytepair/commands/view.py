"""`bytepair view`: a text with its tokens."""

from __future__ import annotations

import os
import sys
from io import BufferedReader

import click

from bytepair.commands import examples
from bytepair.commands._texts import FILE, allow_special_option, allowed, file_name
from bytepair.commands._tokenizers import in_option, load_tokenizer


@click.command(
    epilog=examples(
        "echo 'Holmes, extraordinary: 1234567' | bytepair view -t sherlock-512",
        "bytepair view -t sherlock-512 README.md",
        "bytepair view -t sherlock-512 README.md --color always | head -5",
    )
)
@click.argument("file", type=FILE, default="-")
@in_option
@allow_special_option
@click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Colours, or bars; auto: colours in a terminal, unless NO_COLOR is set.",
)
def view(file: BufferedReader, tokenizer: str, allow_special: tuple[str, ...], color: str) -> None:
    """Show a text with the edges of its tokens.

    Tokens have different colours, or bars between them. A line feed is shown as ↵, and what is not
    a whole character, or would not be seen, as bytes in hex. The last line counts. A text may be
    large: it is read piece by piece.
    """
    from bytepair.piecewise import pieces
    from bytepair.viewing import View

    loaded = load_tokenizer(tokenizer)
    choice = allowed(allow_special)
    colour = color == "always" or (color == "auto" and _terminal_with_colours())
    drawing = View(loaded.vocab, first_special=256 + len(loaded.merges), colour=colour)
    loaded.encode("", allowed_special=choice)  # before reading: are they known?
    specials = tuple(loaded.special_tokens) if choice == "all" else tuple(choice)
    for piece in pieces(file, file_name(file), loaded.pattern, specials):
        ids = loaded.encode(piece, allowed_special=choice)
        click.echo(drawing.draw(ids), nl=False, color=colour)
    click.echo(drawing.finish(), nl=False)


def _terminal_with_colours() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")
