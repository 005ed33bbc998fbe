"""`bytepair sweep`: which vocabulary size, which pattern?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO

import click

from bytepair.commands import examples
from bytepair.commands._texts import FILE, FILES, counter, read_text
from bytepair.patterns import PRESETS, Pattern

if TYPE_CHECKING:
    from bytepair.sweeping import Trial

NO_PATTERN = "none"
_OUTPUT = click.Path(dir_okay=False, path_type=Path)


def _sizes(_: click.Context, __: click.Parameter, value: str) -> list[int]:
    try:
        return [int(size) for size in value.split(",")]
    except ValueError:
        raise click.BadParameter(f"{value!r}: write numbers such as 512,1024.") from None


def _patterns(_: click.Context, __: click.Parameter, value: str) -> dict[str, Pattern]:
    known = (*PRESETS, NO_PATTERN)
    for name in value.split(","):
        if name not in known:
            raise click.BadParameter(f"{name!r} is none of {', '.join(known)}.")
    return {
        name: Pattern(None) if name == NO_PATTERN else Pattern.named(name)
        for name in value.split(",")
    }


@click.command(
    epilog=examples(
        "bytepair sweep data/sample/tales.txt --vocab-sizes 512,1024,2048 --patterns gpt2,o200k",
        "bytepair sweep train/*.txt --val val.txt --vocab-sizes 8192,16384,32768"
        " --patterns cl100k -o sweep.json --plot sweep.svg",
    )
)
@click.argument("files", nargs=-1, required=True, type=FILES)
@click.option("--vocab-sizes", required=True, metavar="N,N,...", callback=_sizes)
@click.option(
    "--patterns",
    default="gpt2",
    show_default=True,
    metavar="NAME,NAME,...",
    callback=_patterns,
    help=f"Of {', '.join(PRESETS)}, and {NO_PATTERN}.",
)
@click.option("--val", type=FILE, help="A held-out text, encoded with each tokenizer.")
@click.option(
    "--special",
    multiple=True,
    metavar="TEXT",
    help="A special token; repeat it for more, in order.",
)
@click.option("--min-count", type=click.IntRange(min=1), default=2, show_default=True)
@click.option("--threads", type=click.IntRange(min=1), help="Default: one a core.")
@click.option("-o", "--output", type=_OUTPUT, help="The table as JSON, too.")
@click.option("--plot", type=_OUTPUT, help="Bytes per token against vocabulary size, as SVG.")
def sweep(
    *,
    files: tuple[str, ...],
    vocab_sizes: list[int],
    patterns: dict[str, Pattern],
    val: BinaryIO | None,
    special: tuple[str, ...],
    min_count: int,
    threads: int | None,
    output: Path | None,
    plot: Path | None,
) -> None:
    """Try vocabulary sizes and patterns on one text.

    FILES are trained on, each a document of UTF-8. Each pattern is counted and trained once, for
    the largest size; the merges of a smaller vocabulary are the first of these. The sha256 is that
    of the bpe.json which `bytepair train` would write.
    """
    from bytepair.files import write_bytes, write_json
    from bytepair.special_tokens import check_special_tokens
    from bytepair.sweep_plot import sweep_svg
    from bytepair.sweeping import sweep

    trials: list[Trial] = []
    found = sweep(
        counter(files),
        patterns,
        vocab_sizes,
        special_tokens=check_special_tokens(special),
        min_count=min_count,
        threads=threads,
        val=None if val is None else read_text(val),
    )
    trials.extend(found)
    for line in _table(trials):
        click.echo(line)
    for line in _short(trials):
        click.echo(line, err=True)
    if output is not None:
        write_json(output, [trial.record() for trial in trials])
    if plot is not None:
        write_bytes(plot, sweep_svg(trials).encode("utf-8"))


def _table(trials: Sequence[Trial]) -> Iterator[str]:
    name = max(len("pattern"), *(len(trial.pattern) for trial in trials))
    yield f"{'pattern':<{name}}     ids   train    val  unused  sha256"
    for trial in trials:
        val = "–" if trial.val_bytes_per_token is None else f"{trial.val_bytes_per_token:.4f}"
        yield (
            f"{trial.pattern:<{name}} {trial.vocab_size:>7,}  {trial.train_bytes_per_token:.4f} "
            f"{val:>6}  {trial.unused_on_train:>6,}  {trial.sha256[:12]}"
        )
    yield "train, val: bytes/token; unused: ids that the text trained on never uses"


def _short(trials: Sequence[Trial]) -> Iterator[str]:
    for trial in trials:
        if trial.vocab_size < trial.requested:
            yield (
                f"Warning: {trial.pattern}: training stopped at {trial.vocab_size:,} ids of "
                f"{trial.requested:,}: no pair is left that occurs often enough."
            )
