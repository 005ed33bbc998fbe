"""`bytepair verify`: every file of the pipeline, read again."""

from __future__ import annotations

from pathlib import Path

import click

from bytepair.commands import examples


@click.command(epilog=examples("bytepair verify", "bytepair verify sample-512"))
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
