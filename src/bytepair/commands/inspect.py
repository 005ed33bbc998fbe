"""`bytepair inspect`: a vocabulary, to be read."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bytepair.commands import examples
from bytepair.commands._tokenizers import load_tokenizer

if TYPE_CHECKING:
    from bytepair.tokenizer import Tokenizer


@click.command(
    epilog=examples(
        "bytepair inspect sherlock-512 | head -20",
        "bytepair inspect sherlock-512 --longest 20",
        "bytepair inspect sherlock-512 --unused data/sample/tales.txt",
        "bytepair inspect sherlock-512 --token ' Holmes'",
        "bytepair inspect sherlock-512 --token 412",
    )
)
@click.argument("tokenizer")
@click.option("--longest", "number", type=click.IntRange(min=1), help="Only so many, by length.")
@click.option(
    "--unused",
    "text",
    type=click.Path(exists=True, path_type=Path),
    help="Only ids that never occur in a text: a file, or a folder of chunk counts.",
)
@click.option(
    "--token",
    metavar="TEXT|ID",
    help='Only this token, and the tree of its merges; "12" in quotes of its own is a text.',
)
def inspect(tokenizer: str, number: int | None, text: Path | None, token: str | None) -> None:
    """Show a tokenizer's vocabulary, or how a token of it is made.

    A line an id: its token, the number of its bytes, the bytes, and the two tokens it was merged
    from. What cannot be seen is written as bytes in hex.
    """
    from bytepair import inspection

    loaded = load_tokenizer(tokenizer)
    if token is not None:
        found = inspection.find_token(loaded, token)
        _print(*inspection.table(loaded, [found]), "", *inspection.tree(loaded, found))
        return
    ids = list(range(loaded.vocab_size)) if text is None else _unused(loaded, text)
    shown = ids if number is None else inspection.longest(loaded, ids, number)
    _print(*inspection.summary(loaded))
    if text is not None:
        few = f"; the {len(shown):,} longest of them" if len(shown) < len(ids) else ""
        _print(f"{len(ids):,} ids, special tokens aside, never occur in {text}{few}")
    _print("", *inspection.table(loaded, shown))


def _unused(tokenizer: Tokenizer, text: Path) -> list[int]:
    from bytepair.counts import ChunkCounts

    if text.is_dir():
        return tokenizer.unused_ids(ChunkCounts.load(text))
    specials = tuple(tokenizer.special_tokens)
    counts = ChunkCounts.count_files(text, pattern=tokenizer.pattern, special_tokens=specials)
    return tokenizer.unused_ids(counts)


def _print(*lines: str) -> None:
    click.echo("\n".join(lines))
