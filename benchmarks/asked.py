"""What we set out to reach, against what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NamedTuple

NOISE = 1.05  # what linear growth may be off by

# (text, {tool: how many times bytepair's CPU seconds it must need})
TRAIN = (
    ("shakespeare", {"gigabpe": 2}),
    ("english10", {"gigabpe": 2.5, "rustbpe": 10, "tokenizers": 30}),
    ("multilingual", {"gigabpe": 3, "gigatoken": 6}),
    ("english", {"gigabpe": 4, "gigatoken": 4, "rustbpe": 18, "tokenizers": 60}),
)
ENCODE = (
    ("cold", "english", {"gigatoken": 1.3, "tiktoken": 12}),
    ("warm", "english", {"gigatoken": 1.3}),
    ("warm", "multilingual", {"gigatoken": 1.3}),
    ("warm", "english10", {"gigatoken": 1.0}),
)
THREADS = 1.7
PEAK = 150e6
CORE = 15
IMPORT = 0.060


class Goal(NamedTuple):
    """One line of the table."""

    work: str
    asked: str
    measured: str
    met: bool


def goals(medians: dict[str, Any]) -> Iterator[Goal]:
    """Every goal with what came of it."""
    train, encode = medians["train"], medians["encode"]
    for text, tools in TRAIN:
        for tool, ratio in tools.items():
            yield times(f"train, {text}", tool, ratio, train[text][tool]["cpu_ratio"])
    for pass_, text, tools in ENCODE:
        for tool, ratio in tools.items():
            rows = [row for row in encode[text] if row.partition(",")[0] == tool]
            found = min(encode[text][row][f"{pass_}_ratio"] for row in rows)
            yield times(f"encode, {text}, {pass_}", tool, ratio, found)
    one, two = (medians["count"]["english"][threads]["wall"] for threads in ("1", "2"))
    yield times("count on two threads, english, wall time", "one thread", THREADS, one / two)
    for text, rows in train.items():
        own, other = rows["bytepair"]["peak"], rows["gigabpe"]["peak"]
        yield Goal(
            f"peak memory, train, {text}", "below gigabpe", f"{mb(own)} to {mb(other)}", own < other
        )
    own = train["english"]["bytepair"]["peak"]
    yield Goal("peak memory, train, english", f"at most {mb(PEAK)}", mb(own), own <= PEAK)
    core = medians["core"]["sherlock-512"]
    yield times("Python core, sherlock-512", "reference", CORE, core["reference"]["cpu_ratio"])
    for task, sizes in medians["growth"].items():
        yield linear(task, {int(size): row for size, row in sizes.items()})
    for statement, row in medians["import"]["bytepair"].items():
        yield Goal(
            f"`{statement}`",
            f"below {IMPORT * 1000:.0f} ms",
            f"{row['cpu'] * 1000:.1f} ms",
            row["cpu"] < IMPORT,
        )


def times(work: str, tool: str, asked: float, found: float) -> Goal:
    """A goal of so many times the speed of another."""
    return Goal(work, f"{asked:g} × {tool}", f"{found:.2f} ×", found >= asked)


def linear(task: str, sizes: dict[int, dict[str, float]]) -> Goal:
    """Time against the size of the text."""
    growth = growths(task, sizes)
    return Goal(
        f"{task}, {', '.join(map(str, growth))} × a text",
        "at most linear",
        ", ".join(f"{ratio:.2f}" for ratio in growth.values()),
        all(ratio <= size * NOISE for size, ratio in growth.items()),
    )


def growths(task: str, sizes: dict[int, dict[str, float]]) -> dict[int, float]:
    """From each size to its time, both against the smallest."""
    kind = "cold" if task == "encode" else "cpu"
    return {size: row[kind] / sizes[min(sizes)][kind] for size, row in sorted(sizes.items())}


def mb(size: float) -> str:
    """Bytes for people."""
    return f"{size / 1e6:.0f} MB"
