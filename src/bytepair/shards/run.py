"""All shards of a corpus through an engine, with progress."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from bytepair.engine import EngineParams, open_engine
from bytepair.shards.progress import Progress, ShardLine
from bytepair.shards.store import LocalStore, open_store
from bytepair.shards.work import CountTask, Done, EncodeTask

TaskT = TypeVar("TaskT", CountTask, EncodeTask)


def run_shards(
    stage: str, function: Callable[[TaskT], Done], tasks: Sequence[TaskT], params: EngineParams
) -> list[Done]:
    """What each task came to, in the order of tasks; see count_shard and encode_shard.

    Args:
        stage: a word for progress.
        function: what is done with a task.
        tasks: all of one store, in which nobody else may be at work.
        params: where they run.
    """
    for store in {task.store for task in tasks}:
        opened = open_store(store)
        if isinstance(opened, LocalStore):
            opened.remove_scratch()  # what a run that was killed has left
    done: dict[int, Done] = {}
    with (
        open_engine(params) as engine,
        Progress(
            stage,
            shards=len(tasks),
            stored=sum(task.source.size for task in tasks),
            dashboard=engine.dashboard,
        ) as progress,
    ):
        for number, result in engine.map(function, tasks):
            done[number] = result
            progress.add(_line(result), stored=tasks[number].source.size)
        progress.summary()
    return [done[number] for number in range(len(tasks))]


def _line(done: Done) -> ShardLine:
    tokens = [receipt.tokens for receipt in done.receipts if receipt.tokens is not None]
    return ShardLine(
        shard=done.name,
        seconds=done.seconds,
        bytes=sum(receipt.text_bytes for receipt in done.receipts),
        documents=sum(receipt.documents for receipt in done.receipts),
        tokens=sum(tokens) if tokens else None,
        skipped=max(receipt.skipped for receipt in done.receipts),
        reused=done.is_reused,
    )
