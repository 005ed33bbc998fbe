"""results.json as tables: RESULTS.md, and the short form between comments in the README."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import asked
import chart
from bytepair.files import parse_json, write_bytes

ROOT = Path(__file__).parent.parent
README = ROOT / "README.md"
BEGIN, END = "<!-- benchmarks -->\n", "<!-- /benchmarks -->"
_NUMBER = re.compile(r"[\d.,]*")

LINES = "the same pattern, but line by line"
PATTERNS = {"gigabpe": LINES, "tokenizers": LINES}
WHAT = {
    "shakespeare": "256 merges, the second time in a process",
    "english10": "32,512 merges",
    "multilingual": "32,512 merges",
    "english": "32,512 merges",
}
INTRODUCTION = """\
# Benchmarks

Written by `make bench` from [results.json](results.json), which has every run; `python
benchmarks/run.py --from-results` writes it again. Medians of interleaved runs, each in a process of
its own, on one CPU and one thread unless said. CPU seconds are user and system time of the work
alone, without imports and set-up. Rates are millions of bytes of text a CPU second. Peak memory is
that of the whole process: interpreter, libraries and, when encoding, the text. A ratio says how
many times bytepair's CPU seconds a tool needs. Tools that need long ran fewer rounds.
"""
NOTES = """\
All trainers cut text by the pattern of GPT-2; gigabpe and tokenizers read files line by line, so
their chunks never hold a line end and what follows it. gigabpe gets a smaller vocabulary to ask
for, so that it too makes the same number of merges (its alphabet has only the bytes that occur).
gigatoken is asked for ties as we break them (`raw_token_ids`). tiktoken and splintr do not train.

All encoders have the vocabulary that bytepair trained on the text and give the same ids: bytepair
as uint16, gigatoken and splintr as 32-bit arrays, the others as lists. The first pass in a process
is cold, the median of those after it warm; bytepair's write into the same array. gigatoken is
measured on the text in one piece and in blocks of 1 MiB, and goals are held against the better.
tokenizers encodes blocks of 8 KiB, which takes it less time than one long text. rustbpe cannot load
a vocabulary and trains it first, which is not counted. tokenizers and rustbpe are left out where
that would take minutes. bpeasy encodes with tiktoken; gigabpe does not encode.
"""


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A Markdown table; columns of nothing but numbers stand to the right."""
    rows = list(rows)
    columns = zip(*rows, strict=True)
    marks = ["---:" if all(map(_NUMBER.fullmatch, cells)) else "---" for cells in columns]
    return "".join(f"| {' | '.join(row)} |\n" for row in (head, marks, *rows))


def seconds(value: float) -> str:
    """Three significant digits, give or take one."""
    for limit, digits in ((0.1, 4), (1, 3), (10, 2)):
        if value < limit:
            return f"{value:.{digits}f}"
    return f"{value:.1f}"


def rate(value: float) -> str:
    return f"{value:.0f}" if value >= 100 else f"{value:.1f}"


def ratio(value: float) -> str:
    return f"{value:.1f}" if value >= 10 else f"{value:.2f}"


def by_time(rows: dict[str, Any], kind: str) -> list[tuple[str, Any]]:
    return sorted(rows.items(), key=lambda item: item[1][kind])


def named(name: str, results: dict[str, Any]) -> str:
    """A text's name and size."""
    return f"{name}, {results['texts'][name]['bytes'] / 1e6:.1f} MB"


def training(name: str, rows: dict[str, Any]) -> str:
    """A table of trainers on one text."""
    head = ("tool", "CPU s", "MB/s", "ratio", "peak MB", "wall s", "runs", "pattern")
    lines = [
        (
            tool, *training_cells(row), seconds(row["wall"]), str(row["rounds"]),
            PATTERNS.get(tool, "gpt2"),
        )
        for tool, row in by_time(rows, "cpu")
    ]  # fmt: skip
    return f"\n### {name}: {WHAT[name.partition(',')[0]]}\n\n" + table(head, lines)


def encoding(name: str, rows: dict[str, Any]) -> str:
    """A table of encoders on one text."""
    head = ("tool", "cold s", "MB/s", "ratio", "warm s", "MB/s", "ratio", "peak MB", "runs")
    lines = [
        (
            tool, seconds(row["cold"]), rate(row["cold_rate"]), ratio(row["cold_ratio"]),
            seconds(row["warm"]), rate(row["warm_rate"]), ratio(row["warm_ratio"]),
            f"{row['peak'] / 1e6:.0f}", str(row["rounds"]),
        )
        for tool, row in by_time(rows, "cold")
    ]  # fmt: skip
    return f"\n### {name}\n\n" + table(head, lines)


def agreement(found: list[dict[str, Any]]) -> str:
    """Which tools made the same tokens and ids."""
    groups: dict[tuple[str, str, str], tuple[list[str], list[str]]] = {}
    for one in found:
        equal, differ = groups.setdefault((one["task"], one["text"], one["other"]), ([], []))
        if one["equal"]:
            equal.append(one["tool"])
        elif one["task"] == "train":
            part = f"{one['alike']:,} merges alike, then {100 * one['common']:.2f} % in common"
            differ.append(f"{one['tool']} ({part})")
        else:
            differ.append(one["tool"])
    lines = [
        (task, text, other, "; ".join(equal), "; ".join(differ))
        for (task, text, other), (equal, differ) in groups.items()
    ]
    return table(("task", "text", "against", "equal", "not equal"), lines)


def own(results: dict[str, Any]) -> str:
    """What is measured on bytepair alone."""
    medians = results["medians"]
    count, core = medians["count"]["english"], medians["core"]["sherlock-512"]
    imports = medians["import"]["bytepair"]
    lines = [
        ("counting english on one thread", seconds(count["1"]["cpu"]), seconds(count["1"]["wall"])),
        ("on two threads", seconds(count["2"]["cpu"]), seconds(count["2"]["wall"])),
    ]
    for name, row in (
        ("Python core, sherlock-512 from its counts", core["bytepair"]),
        ("the reference, the same", core["reference"]),
        *((f"`{statement}`", row) for statement, row in imports.items()),
    ):
        lines.append((name, seconds(row["cpu"]), seconds(row["wall"])))
    return table(("work", "CPU s", "wall s"), lines)


def growth(results: dict[str, Any]) -> str:
    """Time against size, training and encoding."""
    lines = []
    for task, sizes in results["medians"]["growth"].items():
        found = asked.growths(task, as_sizes(sizes))
        lines.append((task, *(f"{value:.2f}" for value in found.values())))
    return table(("time against", "1 × text", "2 ×", "4 ×", "8 ×"), lines)


def results_page(results: dict[str, Any]) -> str:
    """RESULTS.md."""
    medians = results["medians"]
    host = table(("machine", ""), results_machine(results))
    versions = table(("tool", "version"), sorted(results["versions"].items()))
    goals = [
        (goal.work, goal.asked, goal.measured, "yes" if goal.met else "**no**")
        for goal in asked.goals(medians)
    ]
    texts = [
        (name, f"{text['bytes']:,}", f"`{text['sha256']}`")
        for name, text in results["texts"].items()
    ]
    return "".join([
        INTRODUCTION, "\n![Rates of trainers and encoders](chart.svg)\n",
        "\n## Asked and measured\n\n",
        table(("work", "asked", "measured", "met"), goals),
        "\n## Training\n",
        *(training(named(name, results), rows) for name, rows in medians["train"].items()),
        "\n## Encoding\n",
        *(encoding(named(name, results), rows) for name, rows in medians["encode"].items()),
        "\n## How they were run\n\n", NOTES,
        "\n## Growth, threads and Python\n\n", growth(results), "\n", own(results),
        "\n## Agreement\n\n", agreement(results["agreement"]),
        "\n## Texts, machine, versions\n\n",
        "`benchmarks/texts.py` says what they are made of.\n\n",
        table(("text", "bytes", "sha256"), texts), "\n", host, "\n", versions,
    ])  # fmt: skip


def results_machine(results: dict[str, Any]) -> list[tuple[str, str]]:
    return [(key, str(value)) for key, value in results["machine"].items()]


def readme_block(results: dict[str, Any]) -> str:
    """The short form: training and encoding of the two large texts, and growth."""
    train, encode = results["medians"]["train"], results["medians"]["encode"]
    english, multilingual = named("english", results), named("multilingual", results)
    head = (
        "train, 32,768 ids", f"{english}: CPU s", "MB/s", "ratio", "peak MB",
        f"{multilingual}: CPU s", "MB/s", "ratio", "peak MB",
    )  # fmt: skip
    lines = [
        (f"`{tool}`", *training_cells(row), *training_cells(train["multilingual"][tool]))
        for tool, row in by_time(train["english"], "cpu")
    ]
    trained = table(head, lines)
    head = (
        "encode, one thread", f"{english}: cold MB/s", "ratio", "warm MB/s", "ratio",
        f"{multilingual}: cold MB/s", "ratio", "warm MB/s", "ratio",
    )  # fmt: skip
    lines = [
        (f"`{tool}`", *encoding_cells(encode["english"].get(tool)), *encoding_cells(row))
        for tool, row in by_time(encode["multilingual"], "cold")
    ]
    return f"{trained}\n{table(head, lines)}\n{growth_line(results)}\n"


def training_cells(row: dict[str, float]) -> tuple[str, ...]:
    return (
        seconds(row["cpu"]), rate(row["cpu_rate"]), ratio(row["cpu_ratio"]),
        f"{row['peak'] / 1e6:.0f}",
    )  # fmt: skip


def encoding_cells(row: dict[str, float] | None) -> tuple[str, ...]:
    if row is None:
        return ("",) * 4
    return (
        rate(row["cold_rate"]), ratio(row["cold_ratio"]),
        rate(row["warm_rate"]), ratio(row["warm_ratio"]),
    )  # fmt: skip


def growth_line(results: dict[str, Any]) -> str:
    """Time against size, in words."""
    found = {
        task: ", ".join(
            f"{value:.2f}" for value in list(asked.growths(task, as_sizes(sizes)).values())[1:]
        )
        for task, sizes in results["medians"]["growth"].items()
    }
    return (
        "Growth: 2, 4 and 8 times as much English takes "
        f"{found['train']} times as long to train on,\nand {found['encode']} times to encode."
    )


def as_sizes(rows: dict[str, Any]) -> dict[int, Any]:
    """JSON's keys are strings."""
    return {int(size): row for size, row in rows.items()}


def readme_parts(text: str) -> tuple[str, str, str]:
    """What the README has before the block, the block, and what comes after it."""
    before, begin, rest = text.partition(BEGIN)
    block, end, after = rest.partition(END)
    if not (begin and end):
        raise SystemExit(f"README.md has no block between {BEGIN.strip()} and {END}.")
    return before + begin, block, end + after


def write(results_path: Path) -> None:
    """Write RESULTS.md, chart.svg and the README's block."""
    results = parse_json(results_path.read_bytes(), results_path)
    write_bytes(results_path.with_name("RESULTS.md"), results_page(results).encode())
    write_bytes(results_path.with_name("chart.svg"), chart.draw(results).encode())
    before, _, after = readme_parts(README.read_text(encoding="utf-8"))
    write_bytes(README, (before + readme_block(results) + after).encode())
