"""`bytepair export`: a tokenizer in the formats of other libraries, and the proof that it fits."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from bytepair.commands import examples

if TYPE_CHECKING:
    from bytepair.export.publish import Proof
    from bytepair.tokenizer import Tokenizer

_FILE = click.Path(dir_okay=False, path_type=Path)
_READ = click.Path(exists=True, dir_okay=False, path_type=Path)


def _proof_options(command: Callable[..., None]) -> Callable[..., None]:
    prove = click.option(
        "--prove/--no-prove",
        default=None,
        help="Load the export with its library and compare ids; default: if it is installed.",
    )
    text = click.option(
        "--text", "texts", type=_READ, multiple=True, help="Compare on this file, too."
    )
    return prove(text(command))


@click.group(
    epilog=examples(
        "bytepair export hf sherlock-512 exports/sherlock-512",
        "bytepair export tiktoken sherlock-512 exports/sherlock-512.tiktoken",
        "bytepair export vocab sherlock-512 -",
    )
)
def export() -> None:
    """Write a tokenizer for other libraries, and prove that they give the same ids.

    TOKENIZER is a bpe.json, or a name in the pipeline of this folder; then the texts of its splits
    are compared, too, if they are at hand. What a library cannot express is refused with the first
    difference, and an older export stays as it was. The receipt says what was compared.
    """


@export.command(epilog=examples("bytepair export hf sherlock-512 exports/sherlock-512"))
@click.argument("tokenizer")
@click.argument("folder", metavar="DIR", type=click.Path(file_okay=False, path_type=Path))
@click.option("--name", help="What the model card calls it; default: the tokenizer's name.")
@click.option(
    "--chat-template", type=_READ, help="A file in Jinja, for transformers' apply_chat_template."
)
@_proof_options
def hf(
    tokenizer: str,
    folder: Path,
    name: str | None,
    chat_template: Path | None,
    prove: bool | None,
    texts: tuple[Path, ...],
) -> None:
    """A folder for Hugging Face's tokenizers and transformers."""
    from bytepair.export.huggingface import RECEIPT, export_huggingface
    from bytepair.files import decode_utf8, read_bytes

    found, loaded, proof = _load(tokenizer, prove, texts)
    template = (
        None if chat_template is None else decode_utf8(read_bytes(chat_template), chat_template)
    )
    receipt = export_huggingface(
        loaded, folder, name=name or found, chat_template=template, proof=proof
    )
    _report(folder, receipt, folder / RECEIPT)


@export.command(epilog=examples("bytepair export tiktoken sherlock-512 sherlock-512.tiktoken"))
@click.argument("tokenizer")
@click.argument("file", type=_FILE)
@_proof_options
def tiktoken(
    tokenizer: str,
    file: Path,
    prove: bool | None,
    texts: tuple[Path, ...],
) -> None:
    """Ranks for tiktoken.

    The pattern and the special tokens go to FILE.json. Load both with
    bytepair.export.tiktoken.load(FILE), which gives a tiktoken.Encoding.
    """
    from bytepair.export.tiktoken import export_tiktoken

    _, loaded, proof = _load(tokenizer, prove, texts)
    receipt = export_tiktoken(loaded, file, proof=proof)
    _report(file, receipt, Path(f"{file}.receipt.json"))


@export.command(epilog=examples("bytepair export vocab sherlock-512 - | less"))
@click.argument("tokenizer")
@click.argument("file", type=click.Path(dir_okay=False, path_type=Path, allow_dash=True))
def vocab(tokenizer: str, file: Path) -> None:
    """The vocabulary for people to read (lossy).

    FILE may be -, for the terminal. Nothing can be loaded from it.
    """
    from bytepair.commands._tokenizers import find_tokenizer
    from bytepair.export.vocab import export_vocab, vocab_text
    from bytepair.tokenizer import Tokenizer

    loaded = Tokenizer.load(find_tokenizer(tokenizer)[1])
    if str(file) == "-":
        click.echo(vocab_text(loaded), nl=False)
    else:
        export_vocab(loaded, file)
        click.echo(f"{file}: {loaded.vocab_size:,} ids, for people to read.")


def _load(
    argument: str,
    wanted: bool | None,
    paths: tuple[Path, ...],
) -> tuple[str, Tokenizer, Proof]:
    from bytepair.commands._splits import read_texts, split_texts
    from bytepair.commands._tokenizers import find_tokenizer
    from bytepair.export.publish import Proof
    from bytepair.tokenizer import Tokenizer

    name, path = find_tokenizer(argument)
    texts = {} if wanted is False else {**split_texts(name, path), **read_texts(paths)}
    return name, Tokenizer.load(path), Proof(wanted, texts)


def _report(written: Path, receipt: dict[str, Any] | None, receipt_path: Path) -> None:
    if receipt is None:
        click.echo(f"{written}: not proved, since no library was asked.")
        return
    for proved in receipt["proved"]:
        library = " with ".join(f"{name} {number}" for name, number in proved["versions"].items())
        compared = proved["compared"]
        tokens = sum(part.get("tokens", 0) for part in compared.values())
        own = compared["texts"]
        tokens += sum(part["tokens"] for part in own.values())
        on = f", {', '.join(own)} among them" if own else ""
        click.echo(f"{library}: the same ids, {tokens:,} of them{on}.")
    click.echo(f"{written}: proved; what was compared is in {receipt_path}.")
