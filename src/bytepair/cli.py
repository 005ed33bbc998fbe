"""The command `bytepair`: what is done with tokenizers besides running the pipeline's stages.

A command's module is imported when that command is run, so that none pays for the others. Exit
codes: 0 as it should be, 1 something is wrong, 2 wrong usage.
"""

from __future__ import annotations

import io
import sys
from importlib import import_module
from typing import Any

import click

from bytepair import __version__
from bytepair.commands import examples
from bytepair.errors import BytepairError

# In the order in which help shows them; each in the module of its name, with the first sentence
# of its docstring.
COMMANDS = {
    "train": "Train a tokenizer on text files and write its bpe.json.",
    "encode": "Turn a text into ids.",
    "decode": "Turn ids back into the text's bytes.",
    "inspect": "Show a tokenizer's vocabulary, or how a token of it is made.",
    "view": "Show a text with the edges of its tokens.",
    "diff": "Tell two tokenizers apart.",
    "sweep": "Try vocabulary sizes and patterns on one text.",
    "check": "Say whether dvc.lock belongs to this code and these parameters.",
    "verify": "Read every file of the pipeline and hold it against what its stage makes.",
    "export": "Write a tokenizer for other libraries, and prove that they give the same ids.",
    "compare": "Set tokenizers side by side on a text, ours and those of other libraries.",
    "report": "Write one self-contained HTML file about a tokenizer.",
    "tokens": "Hand the token arrays of a split to another trainer.",
}


class _Commands(click.Group):
    """Commands whose expected errors are one message on stderr and exit code 1."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        if cmd_name not in COMMANDS:
            return None
        name = cmd_name.replace("-", "_")
        command: click.Command = getattr(import_module(f"bytepair.commands.{name}"), name)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

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


def _show_version(ctx: click.Context, _: click.Parameter, wanted: bool) -> None:  # noqa: FBT001
    if wanted and not ctx.resilient_parsing:
        from bytepair.kernel import library

        core = "Python" if library() is None else "compiled"
        click.echo(f"bytepair {__version__} ({core} core)")
        ctx.exit()


@click.group(
    cls=_Commands,
    epilog=examples(
        "bytepair view -t sample-512 README.md",
        "bytepair train data/sample/tales.txt --vocab-size 512 -o bpe.json",
        "bytepair verify sample-512",
    ),
)
@click.option(
    "--version",
    is_flag=True,
    expose_value=False,
    is_eager=True,
    callback=_show_version,
    help="Show the version and which core runs.",
)
def main() -> None:
    """Make, use and look at tokenizers, and look after a pipeline that makes them.

    A tokenizer is a bpe.json, a folder that holds one, or, in the folder of a pipeline's dvc.yaml,
    its name there. Where a file is read, - is stdin.
    """
