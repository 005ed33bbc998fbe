"""Run the examples of docs/tutorial.md and put what they print below them.

Run it in the project's folder after `make repro`; with --check, it writes nothing and fails if
something else is printed than stands there. A block below `<!-- needs NAME -->` is left as it is
where the corpus NAME has not been split, and a line on stdout says so. A blank line is shown as
`<BLANKLINE>`.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import doctest
import io
import re
import sys
import traceback
from pathlib import Path
from typing import Any

TUTORIAL = Path("docs", "tutorial.md")
BLOCK = re.compile(r"(?ms)(?:^<!-- needs (?P<corpus>[\w-]+) -->\n)?^```python\n(?P<code>.*?)^```$")


def printed(source: str, names: dict[str, Any]) -> str:
    """What one example writes to stdout, or the traceback that it ends with, cut to two lines."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        try:
            exec(compile(source, str(TUTORIAL), "single"), names)
        except Exception as error:  # noqa: BLE001 -- whatever it is, it is shown
            last = traceback.format_exception_only(error)[-1]
            out.write(f"Traceback (most recent call last):\n{last}")
    return re.sub(r"(?m)^$(?=\n)", "<BLANKLINE>", out.getvalue())


def run_block(code: str, names: dict[str, Any]) -> str:
    """The block again, each example followed by what it prints now."""
    parts: list[str] = []
    for part in doctest.DocTestParser().parse(code):
        if isinstance(part, str):
            parts.append(part)
        else:
            first, *rest = part.source.splitlines()
            parts += [f">>> {first}\n", *(f"... {line}".rstrip() + "\n" for line in rest)]
            parts.append(printed(part.source, names))
    return "".join(parts)


def run(text: str) -> tuple[str, list[str]]:
    """The tutorial with what its examples print now, and the corpora that blocks lacked."""
    names: dict[str, Any] = {"__name__": "__tutorial__"}
    missing: list[str] = []

    def replaced(match: re.Match[str]) -> str:
        corpus = match["corpus"]
        if corpus is not None and not Path("data", "corpora", corpus, "splits").is_dir():
            missing.append(corpus)
            return match[0]
        before, code, after = match[0].partition(match["code"])
        return before + run_block(code, names) + after

    return BLOCK.sub(replaced, text), missing


def main() -> int:
    """Write the tutorial again, or say in what it differs."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--check", action="store_true", help="write nothing")
    check = parser.parse_args().check
    old = TUTORIAL.read_text(encoding="utf-8")
    new, missing = run(old)
    for corpus in sorted(set(missing)):
        print(f"{TUTORIAL}: {missing.count(corpus)} blocks not run, without the corpus {corpus}")
    if not check:
        TUTORIAL.write_text(new, encoding="utf-8", newline="\n")
        return 0
    lines = old.splitlines(), new.splitlines()
    difference = list(difflib.unified_diff(*lines, "as it stands", "as it runs", lineterm=""))
    print(*difference, sep="\n", end="", file=sys.stderr)
    return 1 if difference else 0


if __name__ == "__main__":
    sys.exit(main())
