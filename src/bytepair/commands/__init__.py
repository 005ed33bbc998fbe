"""One module for each command of `bytepair`, imported only when that command is run.

The module `commands/NAME.py` holds the click command as `NAME` (`-` is `_`); cli.py lists them.
"""

from __future__ import annotations


def examples(*commands: str) -> str:
    """An epilog for help; click leaves the lines after a backspace as they are."""
    return "\n".join(("\b", "Examples:", *(f"  {command}" for command in commands)))
