"""Tasks through an engine, with progress."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import TypeVar

from bytepair.engine import Engine, Map
from bytepair.shards.progress import Progress, ShardLine
from bytepair.shards.store import LocalStore, open_store
from bytepair.shards.work import CountTask, Done, EncodeTask

T = TypeVar("T")
R = TypeVar("R")
TaskT = TypeVar("TaskT", CountTask, EncodeTask)


def run_shards(
    stage: str, function: Callable[[TaskT], Done], tasks: Sequence[TaskT], engine: Engine
) -> list[Done]:
    """What each task came to, in the order of tasks; see count_shard and encode_shard.

    Args:
        stage: a word for progress.
        function: what is done with a task.
        tasks: all of one store, in which nobody else may be at work.
        engine: where they run.
    """
    for store in {task.store for task in tasks}:
        opened = open_store(store)
        if isinstance(opened, LocalStore):
            opened.remove_scratch()  # what a run that was killed has left
    map_tasks: Map[TaskT, Done] = with_progress(stage, engine, line_of, size=_size)
    done = dict(map_tasks(function, tasks))
    return [done[number] for number in range(len(tasks))]


def with_progress(
    stage: str,
    engine: Engine,
    describe: Callable[[R, float], ShardLine],
    *,
    size: Callable[[T], int] | None = None,
) -> Map[T, R]:
    """The map of an engine, which shows how far it is.

    Args:
        stage: a word for progress.
        engine: where tasks run.
        describe: what is shown of a result and the seconds that it took a worker.
        size: a task's part of the bar; None makes all parts the same.
    """

    def map_tasks(function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
        sizes = [1 if size is None else size(task) for task in tasks]
        with Progress(
            stage,
            shards=len(tasks),
            stored=None if size is None else sum(sizes),
            dashboard=engine.dashboard,
        ) as progress:
            for number, (result, seconds) in engine.map(partial(_timed, function), tasks):
                progress.add(describe(result, seconds), stored=sizes[number])
                yield number, result
            progress.summary()

    return map_tasks


def line_of(done: Done, seconds: float) -> ShardLine:
    """What is shown of a task of a shard, or of a sum of shards."""
    tokens = [receipt.tokens for receipt in done.receipts if receipt.tokens is not None]
    return ShardLine(
        shard=done.name,
        seconds=seconds,
        bytes=sum(receipt.text_bytes for receipt in done.receipts),
        documents=sum(receipt.documents for receipt in done.receipts),
        tokens=sum(tokens) if tokens else None,
        skipped=max(receipt.skipped for receipt in done.receipts),
        reused=done.is_reused,
    )


def _size(task: CountTask | EncodeTask) -> int:
    return task.source.size


def _timed(function: Callable[[T], R], task: T) -> tuple[R, float]:
    start = time.perf_counter()
    result = function(task)
    return result, time.perf_counter() - start
