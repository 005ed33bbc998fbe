"""Run every tool at every task, several times and interleaved, and write results.json.

    python benchmarks/run.py [--rounds 5] [--seconds 45] [--only train/english]
    python benchmarks/run.py --from-results       # only the tables and the chart again

`make bench` does all of it. A round runs each tool once, each run in a process of its own
(run_one.py). A tool that has used up its `--seconds` in one task takes no part in further rounds of
it, but every tool runs at least once; the tables show how often. What tools claim to agree on is
compared, and a difference makes the exit code 1.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections import Counter
from itertools import takewhile
from pathlib import Path
from subprocess import run
from typing import Any

import adapters
import machine
import medians
import report
import texts
from bytepair.files import write_json

RESULTS = Path(__file__).parent / "results.json"
RUN_ONE = Path(__file__).parent / "run_one.py"
MERGES = texts.VOCAB_SIZE - 256
TRAINED = ("shakespeare", "english10", "multilingual", "english")
ENCODED = ("english10", "multilingual", "english")
SIZES = {"1": "english1", "2": "english2", "4": "english4", "8": "english"}
SLOW = {"tiktoken", "rustbpe", "tokenizers"}  # one warm pass is enough to see it
LEFT_OUT = {("encode/english", "tokenizers"), ("encode/english", "rustbpe")}  # minutes a pass
IMPORTS = ("import bytepair", "from bytepair import Tokenizer")
TIME_IMPORT = """
import time
cpu, wall = time.process_time(), time.perf_counter()
{}
cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
import json
print(json.dumps({{"cpu": [round(cpu, 6)], "wall": [round(wall, 6)]}}))
"""

# Trainers compared, and whether one claims to make the other's tokens: those that let the smallest
# pair of ids win a tie, bytepair's; gigabpe, those of tokenizers. All encoders claim the same ids.
COMPARED = {
    ("rustbpe", "bytepair"): True,
    ("gigatoken", "bytepair"): True,
    ("bpeasy", "bytepair"): True,
    ("gigabpe", "bytepair"): False,
    ("tokenizers", "bytepair"): False,
    ("gigabpe", "tokenizers"): True,
}

Command = list[str]


def schedule() -> dict[str, dict[str, Command]]:
    """All series, cheap ones first: name, and the command of each row."""
    series: dict[str, dict[str, Command]] = {
        "import/bytepair": {
            statement: ["-c", TIME_IMPORT.format(statement)] for statement in IMPORTS
        },
        "core/sherlock-512": {
            tool: one(tool, "core", texts.SHERLOCK_COUNTS, 255) for tool in adapters.CORE
        },
        "count/english": {
            str(threads): one("bytepair", "count", texts.text_path("english"), threads)
            for threads in (1, 2)
        },
    }
    for task in ("train", "encode"):
        series[f"growth/{task}"] = {
            size: command(task, "bytepair", name, vocabulary="english")
            for size, name in SIZES.items()
        }
    for task, names, tools in (
        ("train", TRAINED, adapters.TRAIN),
        ("encode", ENCODED, adapters.ENCODE),
    ):
        for name in names:
            rows = {tool: command(task, tool, name) for tool in tools}
            series[f"{task}/{name}"] = {
                tool: row for tool, row in rows.items() if (f"{task}/{name}", tool) not in LEFT_OUT
            }
    return series


def command(task: str, tool: str, name: str, *, vocabulary: str | None = None) -> Command:
    """Train on a text, once (the small one twice: once to warm up), or encode it cold and warm.

    A vocabulary of another text is given where only the cold pass counts.
    """
    if task == "train":
        small = name == "shakespeare"
        merges, passes = (256, 2) if small else (MERGES, 1)
        return one(tool, task, texts.text_path(name), merges, passes)
    folder = texts.vocabulary_path(vocabulary or name)
    return one(tool, task, texts.text_path(name), folder, 2 if tool in SLOW or vocabulary else 4)


def one(tool: str, task: str, path: Path, argument: object, passes: int = 1) -> Command:
    """The arguments of one child process."""
    return [str(RUN_ONE), tool, task, str(path), str(argument), "--passes", str(passes)]


def run_child(arguments: Command) -> dict[str, Any]:
    """The line of JSON that a child process prints."""
    child = run([sys.executable, *arguments], check=False, capture_output=True)
    if child.returncode:
        sys.exit(f"{' '.join(arguments)}\n{child.stderr.decode(errors='replace')}")
    measures: dict[str, Any] = json.loads(child.stdout)
    return measures


def run_series(
    name: str, rows: dict[str, Command], *, rounds: int, seconds: float, folder: Path
) -> dict[str, list[dict[str, Any]]]:
    """All runs of a series; the first round's tokens are left in `folder`."""
    runs: dict[str, list[dict[str, Any]]] = {row: [] for row in rows}
    spent: Counter[str] = Counter()
    for number in range(rounds):
        for row, arguments in rows.items():
            if number and spent[row] * (number + 1) / number > seconds:
                continue
            save = ["--save", str(folder / row)] if not number and name.startswith("train/") else []
            start = time.monotonic()
            runs[row].append(run_child(arguments + save))
            spent[row] += time.monotonic() - start  # type: ignore[assignment]
            shown = " ".join(f"{cpu:.3f}" for cpu in runs[row][-1]["cpu"])
            print(f"{name}, round {number + 1}, {row}: {shown} CPU s", flush=True)
    return runs


def compare_tokens(text: str, folder: Path) -> list[dict[str, Any]]:
    """How far the tokens that the trainers made are the same."""
    made = {path.name: path.read_bytes().split() for path in folder.iterdir()}
    found = []
    for (tool, other), claimed in COMPARED.items():
        ours, theirs = made[other], made[tool]
        alike = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(ours, theirs)))  # noqa: B905
        common = len(set(ours) & set(theirs)) / len(ours)
        found.append({
            "task": "train", "text": text, "tool": tool, "other": other,
            "claimed": claimed, "equal": ours == theirs,
            "alike": alike, "common": round(common, 6),
        })  # fmt: skip
    return found


def compare_ids(text: str, runs: dict[str, list[dict[str, Any]]]) -> list[dict[str, Any]]:
    """Whether the encoders gave the same ids, in every run."""
    (ours,) = {run["sha256"] for run in runs["bytepair"]}
    return [
        {
            "task": "encode", "text": text, "tool": tool, "other": "bytepair",
            "claimed": True, "equal": {run["sha256"] for run in runs[tool]} == {ours},
        }
        for tool in runs
        if tool != "bytepair"
    ]  # fmt: skip


def measure(options: argparse.Namespace) -> dict[str, Any]:
    """Run all that was asked for."""
    results: dict[str, Any] = {
        "machine": machine.describe(),
        "versions": adapters.versions(),
        "settings": {"rounds": options.rounds, "seconds": options.seconds},
        "texts": {name: machine.fingerprint(texts.text_path(name)) for name in TRAINED},
        "runs": {},
        "agreement": [],
    }
    for name, rows in schedule().items():
        if options.only and name not in options.only:
            continue
        task, _, text = name.partition("/")
        with tempfile.TemporaryDirectory() as folder:
            runs = run_series(
                name, rows, rounds=options.rounds, seconds=options.seconds, folder=Path(folder)
            )
            if task == "train":
                results["agreement"] += compare_tokens(text, Path(folder))
        if task == "encode":
            results["agreement"] += compare_ids(text, runs)
        results["runs"].setdefault(task, {})[text] = runs
    return results


def main() -> None:
    """Measure, write results.json, and from it the tables and the chart."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=45)
    parser.add_argument("--only", action="append", help="a series; the results are only printed")
    parser.add_argument("--from-results", action="store_true")
    options = parser.parse_args()
    if options.from_results:
        report.write(RESULTS)
        return
    results = measure(options)
    if not options.only:
        write_json(RESULTS, medians.added_to(results))
        report.write(RESULTS)
    wrong = [found for found in results["agreement"] if found["claimed"] and not found["equal"]]
    if wrong:
        sys.exit(f"these claim to agree and do not: {json.dumps(wrong, indent=1)}")


if __name__ == "__main__":
    main()
