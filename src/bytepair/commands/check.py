"""`bytepair check`: the verdict before a run."""

from __future__ import annotations

import os
from pathlib import Path

import click

from bytepair.commands import examples


@click.command(epilog=examples("bytepair check", "bytepair check --json-out check.json"))
@click.option(
    "--json-out",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Save the verdict and all statistics there as JSON.",
)
@click.pass_context
def check(ctx: click.Context, json_out: Path | None) -> None:
    """Say whether dvc.lock belongs to this code and these parameters.

    Where a text is at hand (as raw.txt, in the folder CORPUS_CACHE, or inside the project; of a
    sharded corpus, all shards as files of this machine), every stage runs again in a temporary
    folder, and what it makes is compared with what git and dvc.lock have. Absent data are no
    fault, and the network is not used.
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
