"""`bytepair report`: a page about a tokenizer, to look at instead of reading about it."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bytepair.commands import examples

if TYPE_CHECKING:
    from bytepair.report.facts import Facts


@click.command(
    epilog=examples(
        "bytepair report",
        "bytepair report sherlock-512 --output sherlock.html",
        "bytepair report bpe.json --text novel.txt",
    )
)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option(
    "--text",
    metavar="FILE",
    help="Report on a bpe.json with this text instead of a pipeline's; `-` is standard input.",
)
@click.option(
    "--output", metavar="FILE", help="Write there instead of NAME.html; `-` is standard output."
)
def report(names: tuple[str, ...], text: str | None, output: str | None) -> None:
    """Write one self-contained HTML file about a tokenizer.

    NAME is a tokenizer of params.yaml, all of them if none is given; with --text it is a bpe.json,
    or a tokenizer still. The page works offline, and the same files give the same page.
    """
    from bytepair.files import write_bytes
    from bytepair.report.page import render

    names = names or _all_names(text)
    if output is not None and len(names) > 1:
        raise click.UsageError(f"--output is one file, but there are {len(names)} tokenizers.")
    read = None if text is None else _read(text)
    for name in names:
        facts = _gather(name, read)
        page = render(facts)
        if output == "-":
            sys.stdout.buffer.write(page)
            continue
        path = Path(output or f"{facts.name}.html")
        write_bytes(path, page)
        click.echo(f"{path}: {facts.name}, {len(page):,} bytes")


def _all_names(text: str | None) -> tuple[str, ...]:
    from bytepair.params import names

    if text is not None:
        raise click.UsageError("--text needs a bpe.json, or the name of a tokenizer.")
    return names("params.yaml")[1]


def _gather(name: str, text: str | None) -> Facts:
    from bytepair import params
    from bytepair.blocks import choices
    from bytepair.layout import TokenizerPaths
    from bytepair.report.facts import of_pipeline, of_text

    path = Path(name)
    if text is not None:
        if not path.is_file():
            path = TokenizerPaths(Path(), name).bpe
        return of_text(path, text, path.parent.name if path.stem == "bpe" else path.stem)
    if path.is_file():
        raise click.UsageError(f"{name} is a file: give a text to try it on, with --text FILE.")
    known = params.names("params.yaml")[1]
    if name not in known:
        raise click.BadParameter(f"{name!r} is no tokenizer. {choices(name, known)}")
    return of_pipeline(Path(), name)


def _read(text: str) -> str:
    from bytepair.files import decode_utf8

    if text == "-":
        return decode_utf8(sys.stdin.buffer.read(), "standard input")
    return decode_utf8(Path(text).read_bytes(), text)
