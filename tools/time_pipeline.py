"""Time the stages of one tokenizer and what DVC adds to them; prints the README's table.

    python tools/time_pipeline.py sherlock-512

Run it in the environment that `make repro` made, with the corpora at hand. Each command runs in a
process of its own; figures are medians of five, in seconds.
"""

from __future__ import annotations

import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path

import yaml

RUNS = 5


def run(*command: str) -> tuple[float, float]:
    """CPU seconds of the command and its children, and wall seconds: each the median."""
    cpu, wall = [], []
    for _ in range(RUNS):
        before, started = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
        subprocess.run(command, check=True, capture_output=True)
        wall.append(time.perf_counter() - started)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        cpu.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(cpu), statistics.median(wall)


def main(tokenizer: str) -> None:
    """Print a Markdown table."""
    params, pipeline = (
        yaml.safe_load(Path(name).read_text(encoding="utf-8"))
        for name in ("params.yaml", "dvc.yaml")
    )
    corpus = params["tokenizers"][tokenizer]["corpus"]
    print("| command | CPU s | wall s |\n| --- | ---: | ---: |")
    start_up = 0.0
    for stage in pipeline["stages"].values():
        script = stage["do"]["cmd"].split()[1]
        name = corpus if stage["foreach"] == "${corpora}" else tokenizer
        cpu, wall = run(sys.executable, script, name)
        start_up = max(start_up, run(sys.executable, script, "--help")[1])
        print(f"| `python {script} {name}` | {cpu:.2f} | {wall:.2f} |")
    print(f"| the slowest script's own start-up (`--help`) | | {start_up:.2f} |")
    dvc = (sys.executable, "-m", "dvc")
    for words in (("repro", "measure@" + tokenizer), ("repro", "-f", "measure@" + tokenizer)):
        cpu, wall = run(*dvc, *words)
        note = "nothing to do" if "-f" not in words else "all of it again"
        print(f"| `dvc {' '.join(words)}`, {note} | {cpu:.2f} | {wall:.2f} |")


if __name__ == "__main__":
    main(sys.argv[1])
