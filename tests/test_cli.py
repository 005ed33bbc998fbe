"""The root of the command: its help, its version, and that it imports one command only."""

import subprocess
import sys

import click
import pytest
from click.testing import CliRunner

import pipeline
from bytepair.cli import COMMANDS, main
from bytepair.kernel import library

LOADED = "print([name for name in sys.modules if name.startswith('bytepair')])"


def run(program, **environment):
    return subprocess.run(
        [sys.executable, "-c", program],
        env=pipeline.environment(pipeline.ROOT, **environment),
        check=True, capture_output=True,
    ).stdout.decode()  # fmt: skip


def test_help_lists_every_command_and_imports_none():
    show = "import sys; from bytepair.cli import main; main(['--help'], standalone_mode=False)"
    program = f"{show}; {LOADED}"
    *shown, loaded = run(program).splitlines()
    assert loaded == "['bytepair', 'bytepair.commands', 'bytepair.errors', 'bytepair.cli']"
    begun = [line.split()[0] for line in shown if line.startswith("  ")]
    assert [name for name in begun if name in COMMANDS] == list(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_says_what_the_command_says_of_itself(name):
    command = main.get_command(click.Context(main), name)
    assert command.name == name
    assert " ".join(command.help.partition("\n\n")[0].split()) == COMMANDS[name]
    assert "Examples:" in command.epilog
    assert CliRunner().invoke(main, [name, "--help"]).exit_code == 0


def test_every_module_of_a_command_is_listed():
    folder = pipeline.ROOT / "src" / "bytepair" / "commands"
    modules = {path.stem for path in folder.glob("[!_]*.py")}
    assert modules == {name.replace("-", "_") for name in COMMANDS}


def test_the_version_says_which_core_runs():
    show = "from bytepair.cli import main; main(['--version'])"
    assert run(show, BYTEPAIR_KERNEL="0") == "bytepair 0.1.0 (Python core)\n"
    core = "Python" if library() is None else "compiled"
    assert run(show) == f"bytepair 0.1.0 ({core} core)\n"


def test_an_unknown_command_is_wrong_usage():
    result = CliRunner().invoke(main, ["chek"])
    assert result.exit_code == 2
    assert "No such command 'chek'." in result.output
