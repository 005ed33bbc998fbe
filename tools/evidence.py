"""Make every fault of tests/faults.py on the bundled sample, and put the numbers into the README.

    python tools/evidence.py            # writes the table between <!-- faults --> comments
    python tools/evidence.py --check    # compares instead; exit code 1 if a number differs

Run it in the environment that `make test` made; it takes some minutes. A kind of fault that this
machine does not let us make keeps its numbers, and the reason is printed.
"""

from __future__ import annotations

import importlib
import sys
import tempfile
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
BEGIN, END = "<!-- faults -->\n", "<!-- /faults -->"
HEAD = "| fault | tried | survived | detected |\n| --- | ---: | ---: | ---: |"


def row(kind: str, outcomes: list[Any]) -> str:
    """A line of the table; detected counts only where there is something to detect."""
    survived = sum(outcome.survived for outcome in outcomes)
    judged = [outcome.detected for outcome in outcomes if outcome.detected is not None]
    detected = "" if not judged else f"{sum(judged):,}"
    if judged and len(judged) < len(outcomes):
        detected += f" of {len(judged):,}"
    return f"| {kind} | {len(outcomes):,} | {survived:,} | {detected} |"


def rows(known: list[str]) -> list[str]:
    """The table's lines; those of `known` stand where a fault cannot be tried."""
    sys.path.insert(0, str(ROOT / "tests"))
    faults = importlib.import_module("faults")
    lines = []
    with tempfile.TemporaryDirectory() as folder:
        lab = faults.Lab(Path(folder))
        for kind, outcomes_of in faults.KINDS.items():
            try:
                outcomes = list(outcomes_of(lab))
            except faults.Unavailable as reason:
                print(f"{kind}: not tried: {reason}")
                lines += [line for line in known if line.startswith(f"| {kind} |")]
                continue
            lines.append(row(kind, outcomes))
            for outcome in outcomes:
                if not outcome.good:
                    print(f"{outcome}\n", file=sys.stderr)
            print(lines[-1], flush=True)
    return lines


def parts() -> tuple[str, str, str]:
    """What README.md has before the table, the table, and what comes after it."""
    before, begin, rest = README.read_text(encoding="utf-8").partition(BEGIN)
    table, end, after = rest.partition(END)
    if not (begin and end):
        sys.exit(f"README.md: no lines {BEGIN.strip()} and {END}")
    return before, table, after


def main() -> int:
    """Write or compare the table."""
    found = "\n".join([HEAD, *rows(parts()[1].splitlines()), ""])
    before, table, after = parts()  # once more, for somebody may have edited it meanwhile
    if "--check" in sys.argv[1:]:
        print("as in README.md" if found == table else "README.md has other numbers")
        return int(found != table)
    text = f"{before}{BEGIN}{found}{END}{after}"
    README.write_text(text, encoding="utf-8", newline="\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
