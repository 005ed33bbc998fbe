"""The command `bytepair`: what is done with a pipeline folder besides running its stages.

Each command imports what it needs when it runs, so that none pays for the others. Exit codes: 0 as
it should be, 1 something is wrong, 2 wrong usage.
"""

from __future__ import annotations

import io
import os
import sys
from pathlib import Path
from typing import Any

import click

from bytepair import __version__
from bytepair.errors import BytepairError


class _Commands(click.Group):
    """Commands whose expected errors are one message on stderr and exit code 1."""

    def main(self, *args: Any, **kwargs: Any) -> Any:
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):  # a token may be what the locale cannot show
                stream.reconfigure(errors="backslashreplace")
        return super().main(*args, **kwargs)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except BytepairError as error:
            raise click.ClickException(str(error)) from error
        except OSError as error:
            if isinstance(error, BrokenPipeError):  # click ends without a word
                raise
            where = "" if error.filename is None else f"{error.filename}: "
            raise click.ClickException(f"{where}{error.strerror or error}") from error


def _examples(*commands: str) -> str:
    """An epilog for help; click leaves the lines after a backspace as they are."""
    return "\n".join(("\b", "Examples:", *(f"  {command}" for command in commands)))


@click.group(cls=_Commands, epilog=_examples("bytepair check", "bytepair verify sample-512"))
@click.version_option(__version__, prog_name="bytepair")
def main() -> None:
    """Look after a bytepair pipeline, in the folder that holds its dvc.yaml."""


@main.command(epilog=_examples("bytepair check", "bytepair check --json-out check.json"))
@click.option(
    "--json-out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Save the verdict and all statistics there as JSON.",
)
@click.pass_context
def check(ctx: click.Context, json_out: Path | None) -> None:
    """Say whether dvc.lock belongs to this code and these parameters.

    Where a text is at hand (as raw.txt, in the folder CORPUS_CACHE, or inside the project), every
    stage runs again in a temporary folder, and what it makes is compared with what git and
    dvc.lock have. Absent data are no fault, and the network is not used.
    """
    from bytepair.audit.check import check
    from bytepair.audit.printing import verdict_lines
    from bytepair.files import write_json

    cache = os.environ.get("CORPUS_CACHE")
    verdict = check(Path(), cache=Path(cache) if cache else None)
    if json_out is not None:
        write_json(json_out, verdict.as_json())
    for line in verdict_lines(verdict):
        click.echo(line)
    ctx.exit(1 if verdict.findings else 0)


@main.command(epilog=_examples("bytepair verify", "bytepair verify sample-512"))
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.pass_context
def verify(ctx: click.Context, names: tuple[str, ...]) -> None:
    """Read every file of the pipeline and hold it against what its stage makes.

    NAME is a corpus, or a tokenizer, with which goes its corpus. What is named must be there;
    without a name, whatever is there is verified. Each difference is shown with the stage to run.
    """
    from bytepair import params
    from bytepair.audit.printing import verification_lines
    from bytepair.audit.rebuild import PARAMS
    from bytepair.audit.verify import verify
    from bytepair.blocks import choices

    corpora, tokenizers = params.names(PARAMS)
    known = (*corpora, *tokenizers)
    for name in names:
        if name not in known:
            raise click.BadParameter(f"{name!r} is no corpus or tokenizer. {choices(name, known)}")
    found = verify(Path(), names)
    for line in verification_lines(found):
        click.echo(line)
    ctx.exit(0 if found.good else 1)
