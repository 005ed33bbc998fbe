"""`bytepair compare`: what a text costs with each of several tokenizers."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from bytepair.commands import examples

if TYPE_CHECKING:
    from bytepair.compare import Entry, Text

_READ = click.Path(exists=True, dir_okay=False, path_type=Path)


@click.command(
    epilog=examples(
        "bytepair compare sherlock-512 chat-1024 --train-hf",
        "bytepair compare sherlock-512 cl100k_base o200k_base --text book.txt",
        "bytepair compare bpe.json tokenizer.json ranks.tiktoken --text book.txt --json",
    )
)
@click.argument("tokenizers", metavar="TOKENIZER...", nargs=-1, required=True)
@click.option(
    "--text",
    "paths",
    type=_READ,
    multiple=True,
    help="Compare on this file; default: train and val of the first tokenizer's corpus.",
)
@click.option(
    "--train-hf",
    is_flag=True,
    help="Also train with Hugging Face's tokenizers: the first tokenizer's size and train split.",
)
@click.option(
    "--prove/--no-prove",
    default=None,
    help="Compare ids with the library of each foreign tokenizer; default: if it is installed.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the rows as JSON.")
def compare(
    tokenizers: tuple[str, ...],
    paths: tuple[Path, ...],
    train_hf: bool,
    prove: bool | None,
    as_json: bool,
) -> None:
    """Set tokenizers side by side on a text, ours and those of other libraries.

    TOKENIZER is a name in the pipeline of this folder, a bpe.json, a tokenizer.json of Hugging Face
    or its folder, ranks of tiktoken with their .json beside them, or cl100k_base or o200k_base,
    which the package bpe-openai holds. bytes/token counts a separator between documents as one
    token; tokens/word counts as words what stands between white space.
    """
    from bytepair.compare import compare, table
    from bytepair.files import dump_json

    entries = list(map(_open, tokenizers))
    texts = _texts(tokenizers[0], paths)
    if train_hf:
        entries.append(_trained(tokenizers[0], entries[0]))
    for entry in entries:
        _prove(entry, texts, prove)
    rows = compare(entries, texts)
    if as_json:
        click.echo(dump_json([row.as_json() for row in rows]), nl=False)
    else:
        click.echo("\n".join(table(rows)))


def _open(argument: str) -> Entry:
    from bytepair.commands._tokenizers import find_tokenizer
    from bytepair.compare import Entry, open_vocabulary
    from bytepair.export.published import PUBLISHED
    from bytepair.tokenizer import Tokenizer

    if Path(argument).exists() or argument in PUBLISHED:
        return open_vocabulary(argument)
    name, path = find_tokenizer(argument)
    return Entry(name, Tokenizer.load(path))


def _texts(first: str, paths: tuple[Path, ...]) -> list[Text]:
    from bytepair.commands._splits import corpus_splits, read_texts
    from bytepair.compare import Text

    if paths:
        return [Text(name, documents) for name, documents in read_texts(paths).items()]
    splits = corpus_splits(first)
    texts = [
        Text(name, [document.text for document in split.documents], split.separator)
        for name, split in splits.items()
        if name != "test"  # nobody should choose a tokenizer by it unawares
    ]
    if not texts:
        raise click.UsageError(f"no splits of {first} are at hand: name a text with --text FILE.")
    return texts


def _trained(first: str, entry: Entry) -> Entry:
    from bytepair.commands._splits import corpus_splits
    from bytepair.compare import train_huggingface

    train = corpus_splits(first).get("train")
    if train is None:
        raise click.UsageError(
            f"--train-hf trains on the train split of {first}, which is not at hand: run "
            "`dvc repro` or `dvc pull`, and name a tokenizer of the pipeline first."
        )
    return train_huggingface(
        [document.text for document in train.documents],
        vocab_size=entry.vocabulary.vocab_size,
        special_tokens=tuple(entry.vocabulary.special_tokens),
    )


def _prove(entry: Entry, texts: list[Text], wanted: bool | None) -> None:
    from bytepair.export.prove import prove_on
    from bytepair.export.publish import Proof
    from bytepair.vocabulary import Vocabulary

    if entry.reader is None or not isinstance(entry.vocabulary, Vocabulary):
        return
    if Proof(wanted).library_is_there(entry.library):
        reader = entry.reader()
        for text in texts:
            prove_on(entry.vocabulary, reader, f"{entry.name}, {text.name}", text.documents)
