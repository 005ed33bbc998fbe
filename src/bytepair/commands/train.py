"""`bytepair train`: a tokenizer from text files, without a pipeline."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import TYPE_CHECKING

import click

from bytepair.commands import examples
from bytepair.commands._texts import FILES, counter
from bytepair.patterns import ENGINES, PRESETS

if TYPE_CHECKING:
    from bytepair.patterns import Pattern

DEFAULT = "gpt2"


@click.command(
    epilog=examples(
        "bytepair train data/sample/tales.txt --vocab-size 512 -o bpe.json",
        "bytepair train *.txt --vocab-size 32768 --pattern o200k"
        " --special '<|endoftext|>' -o mine/bpe.json",
        r"gzip -dc corpus.gz | bytepair train - --vocab-size 1024 --regex '\w+|\W' -o bpe.json",
    )
)
@click.argument("files", nargs=-1, required=True, type=FILES)
@click.option("-o", "--output", required=True, type=click.Path(dir_okay=False, path_type=Path))
@click.option(
    "--vocab-size", required=True, type=int, help="Bytes, merges and special tokens together."
)
@click.option(
    "--pattern",
    "name",
    type=click.Choice([*PRESETS]),
    help=f"What cuts text into chunks, which no token reaches over; default: {DEFAULT}.",
)
@click.option("--regex", help="A regular expression of your own instead.")
@click.option("--engine", type=click.Choice(ENGINES), help="What reads it; default: re.")
@click.option("--no-pattern", is_flag=True, help="Do not cut.")
@click.option(
    "--special",
    multiple=True,
    metavar="TEXT",
    help="A special token; repeat it for more, in order.",
)
@click.option(
    "--min-count",
    type=click.IntRange(min=1),
    default=2,
    show_default=True,
    help="How often a pair must occur to be merged.",
)
@click.option("--threads", type=click.IntRange(min=1), help="Default: one a core.")
def train(
    *,
    files: tuple[str, ...],
    output: Path,
    vocab_size: int,
    name: str | None,
    regex: str | None,
    engine: str | None,
    no_pattern: bool,
    special: tuple[str, ...],
    min_count: int,
    threads: int | None,
) -> None:
    """Train a tokenizer on text files and write its bpe.json.

    Each of FILES is UTF-8, - is stdin, and each is a document: no token reaches from one into the
    next. The same files in any order, on any machine, give the same bytes.
    """
    from bytepair.special_tokens import check_special_tokens
    from bytepair.tokenizer import Tokenizer
    from bytepair.training import count_merges

    pattern = _pattern(name, regex, engine, no_pattern=no_pattern)
    count_merges(vocab_size, check_special_tokens(special))  # before reading any text
    counts = counter(files)(pattern=pattern, special_tokens=special, threads=threads)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        tokenizer, trace = Tokenizer.trace_from_counts(
            counts, vocab_size=vocab_size, min_count=min_count
        )
    for warning in caught:
        click.echo(f"Warning: {warning.message}", err=True)
    tokenizer.save(output)
    click.echo(
        f"{output}: {tokenizer.vocab_size:,} ids, {len(tokenizer.merges):,} merges, "
        f"{trace.lengths[0] / trace.lengths[-1]:.4f} bytes/token on the text trained on"
    )
    click.echo(f"sha256 {tokenizer.sha256}")


def _pattern(
    name: str | None, regex: str | None, engine: str | None, *, no_pattern: bool
) -> Pattern:
    from bytepair.patterns import Pattern

    if (name is not None) + (regex is not None) + no_pattern > 1:
        raise click.UsageError("give one of --pattern, --regex and --no-pattern.")
    if engine is not None and regex is None:
        raise click.UsageError("--engine goes with --regex.")
    if regex is not None:
        return Pattern(regex, engine or "re")
    return Pattern(None) if no_pattern else Pattern.named(name or DEFAULT)
