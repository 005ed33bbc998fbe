"""The command `bytepair` in tests: in this process, and as people run it."""

import subprocess

from click.testing import CliRunner

import pipeline
from bytepair.cli import main


def run(*arguments, stdin=None, code=0):
    """The result of a command in this process, which must end with `code`."""
    result = CliRunner().invoke(main, [str(argument) for argument in arguments], input=stdin)
    assert result.exit_code == code, result.output
    return result


def refused(*arguments, stdin=None, code=1):
    """What a command says when it is refused."""
    result = run(*arguments, stdin=stdin, code=code)
    assert result.stdout == ""
    return " ".join(result.stderr.split())


def piped(script, folder, **changes):
    """A shell script in which `bytepair` is on the path."""
    environment = pipeline.environment(folder, **changes)
    return subprocess.run(
        ["bash", "-c", script], cwd=folder, env=environment, capture_output=True, check=False
    )
