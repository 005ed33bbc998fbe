"""Run one tool at one task in this process, and print one line of JSON.

    python benchmarks/run_one.py TOOL train TEXT MERGES
    python benchmarks/run_one.py TOOL encode TEXT VOCABULARY_FOLDER
    python benchmarks/run_one.py bytepair count TEXT THREADS
    python benchmarks/run_one.py bytepair|reference core COUNTS_FOLDER MERGES

`--passes N` does the work N times. The line holds CPU seconds (of all threads, user and system)
and wall seconds of each pass, the process's peak resident memory in bytes before the first pass
and after the last, and the size and hash of the result. Imports, set-up and the reading of the
result are not timed. One thread on one CPU, except for `count`.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

for variable in ("RAYON_NUM_THREADS", "OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
    os.environ[variable] = "1"
os.environ["TOKENIZERS_PARALLELISM"] = "false"

import adapters  # noqa: E402 - its imports may start threads


def pin() -> None:
    """Stay on the last CPU of those that are allowed, away from where interrupts tend to go."""
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})


def peak_memory() -> int:
    """The process's peak resident memory in bytes.

    Linux's VmHWM, where there is one: getrusage also counts the moment before exec, when the
    process still had its parent's memory.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return int(status.partition("VmHWM:")[2].split()[0]) * 1024
    except OSError:
        import resource

        peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return peak if sys.platform == "darwin" else peak * 1024


def make_work(tool: str, task: str, path: Path, argument: str) -> adapters.Work:
    """What is to be timed."""
    if task == "train":
        return adapters.TRAIN[tool](path, int(argument))
    if task == "encode":
        return adapters.ENCODE[tool](path, Path(argument))
    if task == "core":
        return adapters.CORE[tool](path, int(argument))
    return adapters.count(path, int(argument))


def measure(work: adapters.Work, passes: int) -> tuple[dict[str, Any], Any]:
    """The measures, and the last pass's result."""
    cpu, wall = [], []
    before = peak_memory()
    for _ in range(passes):
        read = None  # frees the result of the pass before
        cpu_start, wall_start = time.process_time(), time.perf_counter()
        read = work()
        wall.append(round(time.perf_counter() - wall_start, 6))
        cpu.append(round(time.process_time() - cpu_start, 6))
    measures = {"cpu": cpu, "wall": wall, "peak_before": before, "peak": peak_memory()}
    assert read is not None
    return measures, read()


def digest(result: Any) -> str:
    """SHA-256 of a list of byte strings, or of ids as 32-bit little-endian integers."""
    if isinstance(result, list) and result and isinstance(result[0], bytes):
        return hashlib.sha256(b"".join(b"%d:%s" % (len(item), item) for item in result)).hexdigest()
    import numpy as np

    return hashlib.sha256(np.asarray(result, dtype="<u4").tobytes()).hexdigest()


def main() -> None:
    """Print the measures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("tool")
    parser.add_argument("task", choices=("train", "encode", "count", "core"))
    parser.add_argument("path", type=Path)
    parser.add_argument("argument")
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--save", type=Path, help="write the tokens made, in hex, one a line")
    options = parser.parse_args()
    out = os.dup(1)
    os.dup2(2, 1)  # some tools print while they work
    if options.task != "count":
        pin()
    work = make_work(options.tool, options.task, options.path, options.argument)
    measures, result = measure(work, options.passes)
    if options.save:
        options.save.write_text("".join(f"{token.hex()}\n" for token in result), encoding="ascii")
    measures |= {"size": len(result), "sha256": digest(result)}
    os.write(out, json.dumps(measures).encode() + b"\n")


if __name__ == "__main__":
    main()
