"""Measure counting and encoding of shards: rates, and the memory of workers.

    python tools/measure_shards.py speed FOLDER     # 1 GB in 20 shards: 1 and 2 processes, Dask
    python tools/measure_shards.py memory FOLDER    # 2 GB in 200 shards, tens of millions of chunks
    python tools/measure_shards.py growth FOLDER TEXT    # an eighth, a quarter, half, all of a text

FOLDER takes the generated text (kept for the next time) and what is made of it. Each run is in a
process of its own; CPU seconds are those of all its workers, and the peak is that of the largest.
Dask's workers are not this process's children, so there only the time by the clock is known. Speed
is the median of ROUNDS, in each of which all engines take their turn.
"""

from __future__ import annotations

import json
import resource
import shutil
import subprocess
import sys
import time
from decimal import Decimal
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytepair.corpora.manifest import Manifest
from bytepair.corpora.shards import make_manifest
from bytepair.counts import ChunkCounts
from bytepair.engine import EngineParams, open_engine
from bytepair.patterns import Pattern
from bytepair.shard_params import HashSplit, ReadRules
from bytepair.shards.merge import merge_shards
from bytepair.shards.run import run_shards
from bytepair.shards.source import sources_of
from bytepair.shards.work import (
    CountTask,
    EncodeTask,
    count_shard,
    encode_shard,
    shard_name,
)
from bytepair.tokenizer import Tokenizer

SEPARATOR = "\n\n\n"
SPLIT = HashSplit(seed=1, val=Decimal("0.01"), test=Decimal("0.01"), separator=SEPARATOR)
SPECIAL = "<|endoftext|>"
MEMORY = 512_000_000
ROUNDS = 5
LETTERS = np.frombuffer(b"etaoinshrdlucmfwypvbgkqjxz", np.uint8)


def words(generator: np.random.Generator, number: int) -> NDArray[np.uint8]:
    """Words of seven letters with a space before: (number, 8)."""
    made = np.full((number, 8), ord(" "), np.uint8)
    made[:, 1:] = LETTERS[generator.integers(0, len(LETTERS), (number, 7))]
    return made


def generate(folder: Path, *, shards: int, size: int, new: float) -> None:
    """Text of which a share of words occur once, and the rest as words do, by Zipf's law."""
    known = words(np.random.default_rng(0), 200_000)
    weights = 1 / np.arange(1, len(known) + 1)
    for number in range(shards):
        path = folder / f"{number:04}.txt"
        if path.exists():
            continue
        generator = np.random.default_rng(number + 1)
        text = known[generator.choice(len(known), size // 8, p=weights / weights.sum())]
        is_new = generator.random(len(text)) < new
        text[is_new] = words(generator, int(is_new.sum()))
        text[::600, 5:] = ord("\n")  # a document is 4,800 bytes
        temporary = path.with_suffix(".tmp")
        temporary.write_bytes(text.tobytes())
        temporary.replace(path)


def prepare(folder: Path, *, shards: int, size: int, new: float) -> Manifest:
    """The corpus, made if it is not there."""
    (folder / "text").mkdir(parents=True, exist_ok=True)
    generate(folder / "text", shards=shards, size=size, new=new)
    if not (folder / "manifest.json").exists():
        rules = ReadRules(separator=SEPARATOR)
        make_manifest([f"{folder}/text/*.txt"], rules, skip=0).save(folder / "manifest.json")
    return Manifest.load(folder / "manifest.json")


def count_tasks(folder: Path) -> list[CountTask]:
    """A task for each shard."""
    return [
        CountTask(
            name=shard_name(source.name),
            source=source,
            separator=SEPARATOR,
            pattern=Pattern.named("gpt2"),
            special_tokens=(SPECIAL,),
            store=str(folder / "store"),
            memory=MEMORY,
        )
        for source in sources_of(Manifest.load(folder / "manifest.json"), SPLIT)
    ]


def encode_tasks(folder: Path, bpe: bytes) -> list[EncodeTask]:
    """A task for each shard."""
    return [
        EncodeTask(
            name=shard_name(source.name),
            source=source,
            splits=("train", "val", "test"),
            separator=SEPARATOR,
            tokenizer=bpe,
            special=SPECIAL,
            store=str(folder / "store"),
        )
        for source in sources_of(Manifest.load(folder / "manifest.json"), SPLIT)
    ]


def measure(folder: Path, what: str, params: EngineParams) -> None:
    """One run; its figures as a line of JSON."""
    start = time.perf_counter()
    if what == "merge":
        tasks = count_tasks(folder)
        done = list(map(count_shard, tasks))  # which only reads their receipts
        merge_shards(tasks, done, folder / "counts", memory=MEMORY)
    elif what == "train":
        counts = ChunkCounts.load(folder / "counts")
        Tokenizer.from_counts(counts, vocab_size=32_768).save(folder / "bpe.json")
    elif what == "count":
        with open_engine(params) as engine:
            run_shards(what, count_shard, count_tasks(folder), engine)
    else:
        bpe = (folder / "bpe.json").read_bytes()
        with open_engine(params) as engine:
            run_shards(what, encode_shard, encode_tasks(folder, bpe), engine)
    wall = time.perf_counter() - start
    usage = [resource.getrusage(w) for w in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    figures = {
        "what": what,
        "engine": f"{params.name} {params.workers}",
        "wall_s": round(wall, 2),
        "cpu_s": round(sum(one.ru_utime + one.ru_stime for one in usage), 1),
        "peak_mb": round(usage[what not in {"merge", "train"}].ru_maxrss * 1024 / 1e6),
    }
    if params.name == "dask":
        del figures["cpu_s"], figures["peak_mb"]
    print(json.dumps(figures), flush=True)


def cut(text: Path, folder: Path, share: float) -> Manifest:
    """The beginning of a text in shards of 8 MB, cut at line ends."""
    rest = text.read_bytes()[: int(text.stat().st_size * share)]
    (folder / "text").mkdir(parents=True)
    for number in range(1 + len(rest) // 8_000_000):
        end = rest.rfind(b"\n", 0, 8_000_000) + 1 or len(rest)
        (folder / "text" / f"{number:04}.txt").write_bytes(rest[:end])
        rest = rest[end:]
    rules = ReadRules(separator=SEPARATOR)
    manifest = make_manifest([f"{folder}/text/*.txt"], rules, skip=1000)
    manifest.save(folder / "manifest.json")
    return manifest


def grow(folder: Path, text: Path) -> None:
    """The same on more and more of a text, in one process."""
    for eighths in (1, 2, 4, 8):
        part = folder / f"growth-{eighths}"
        manifest = cut(text, part, eighths / 8)
        print(f"{manifest.bytes:,} bytes, {manifest.documents:,} documents")
        for what in ("count", "merge", "train", "encode"):
            in_a_process(part, what, "processes", 1)
        index = json.loads((part / "counts" / "index.json").read_bytes())
        print(f"{index['distinct']:,} distinct chunks of {index['total']:,}", flush=True)


def compare(folder: Path, what: str) -> None:
    """One process, two, and Dask, in turns; the medians and how they compare."""
    engines = (("processes", 1), ("processes", 2), ("dask", 2))
    walls: dict[tuple[str, int], list[float]] = {engine: [] for engine in engines}
    for _ in range(ROUNDS):
        for engine in engines:
            walls[engine].append(in_a_process(folder, what, *engine)["wall_s"])
    one, two, dask = (median(walls[engine]) for engine in engines)
    print(f"{what}: two processes {one / two:.2f} x one, Dask {dask / two - 1:+.0%}", flush=True)


def in_a_process(folder: Path, what: str, name: str, workers: int) -> dict[str, Any]:
    """Measure with a fresh store, and workers whose usage is theirs alone."""
    if what in {"count", "encode"}:
        shutil.rmtree(
            folder / "store" / {"count": "counts"}.get(what, "tokens"), ignore_errors=True
        )
    command = [sys.executable, __file__, what, str(folder), name, str(workers)]
    with (folder / "log").open("wb") as log:
        printed = subprocess.run(command, check=True, stdout=subprocess.PIPE, stderr=log).stdout
    print(printed.decode(), end="", flush=True)
    figures: dict[str, Any] = json.loads(printed)
    return figures


def main() -> None:
    """Generate, and measure what is asked for."""
    what, folder = sys.argv[1], Path(sys.argv[2]).absolute()
    if what in {"count", "encode", "merge", "train"}:
        measure(folder, what, EngineParams(name=sys.argv[3], workers=int(sys.argv[4])))
        return
    if what == "growth":
        grow(folder, Path(sys.argv[3]))
        return
    if what == "memory":
        manifest = prepare(folder, shards=200, size=10_000_000, new=0.25)
        print(f"{manifest.bytes:,} bytes, {manifest.documents:,} documents")
        in_a_process(folder, "count", "processes", 2)
        in_a_process(folder, "merge", "serial", 1)
        index = json.loads((folder / "counts" / "index.json").read_bytes())
        print(f"{index['distinct']:,} distinct chunks of {index['total']:,}")
        return
    manifest = prepare(folder, shards=20, size=50_000_000, new=0.002)
    print(f"{manifest.bytes:,} bytes, {manifest.documents:,} documents")
    compare(folder, "count")
    in_a_process(folder, "merge", "serial", 1)
    if not (folder / "bpe.json").exists():
        counts = ChunkCounts.load(folder / "counts")
        Tokenizer.from_counts(counts, vocab_size=32_768).save(folder / "bpe.json")
    compare(folder, "encode")


if __name__ == "__main__":
    main()
