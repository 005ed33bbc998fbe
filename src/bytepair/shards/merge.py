"""The sum of the counts of all shards: groups of shards where the engine runs them, then all here.

Only files go between the two, so nobody ever holds all counts in memory; and sums are the same in
any order, so neither groups nor engine show in the result.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, BinaryIO

from bytepair.counts import ChunkCounts
from bytepair.engine import Map
from bytepair.files import dump_json, sha256, write_record
from bytepair.shards.merged_counts import RUN_FILES, RunFacts, SortedRun, merge_runs
from bytepair.shards.receipts import RECEIPT, Receipt, find_receipt, write_receipt
from bytepair.shards.store import LocalStore, Store, open_store
from bytepair.shards.work import CountTask, Done, put_outputs

GROUP = 64  # shards that a worker adds up


@dataclass(frozen=True, slots=True, kw_only=True)
class MergeTask:
    """Add up counts that lie in one store, into STORE/merges/NAME.

    Attributes:
        name: of the folder.
        parts: folders of counts, with their receipts.
        store: a path or URL.
        memory: bytes that the worker may have.
    """

    name: str
    parts: tuple[tuple[str, Receipt], ...]
    store: str
    memory: int

    def __str__(self) -> str:
        return f"the sum of {self.parts[0][0]} to {self.parts[-1][0]}"

    @property
    def folder(self) -> str:
        """Where in the store the sum lies."""
        return f"merges/{self.name}"

    @property
    def inputs(self) -> dict[str, Any]:
        """What the receipt says the sum was made from."""
        return {"parts": [facts(receipt, folder).to_json() for folder, receipt in self.parts]}


def merge_group(task: MergeTask) -> Done:
    """Add up a group, unless its receipt says that it is done."""
    store = open_store(task.store)
    receipt = find_receipt(store, task.folder, task.inputs)
    if receipt is not None:
        return Done(task.name, (receipt,), True)
    store.remove(f"{task.folder}/{RECEIPT}")
    with store.scratch() as scratch:
        found = _merge(store, task.parts, scratch, task.memory)
        outputs = put_outputs(store, task.folder, scratch / "run", RUN_FILES, found.sha256)
    receipts = [receipt for _, receipt in task.parts]
    receipt = Receipt(
        kind="merge",
        inputs=task.inputs,
        outputs=outputs,
        text_sha256=train_sha256(receipts),
        text_bytes=sum(receipt.text_bytes for receipt in receipts),
        documents=sum(receipt.documents for receipt in receipts),
        skipped=sum(receipt.skipped for receipt in receipts),
        counts=found.to_json(),
    )
    write_receipt(store, task.folder, receipt)
    return Done(task.name, (receipt,), False)


def merge_shards(
    tasks: Sequence[CountTask],
    done: Sequence[Done],
    folder: Path,
    *,
    memory: int,
    map_tasks: Map[MergeTask, Done] | None = None,
) -> ChunkCounts:
    """Add up the counts of shards that are done, into the files that ChunkCounts.save writes.

    Args:
        tasks: of one store, pattern and split.
        done: what count_shard made of each.
        folder: on this machine; what was there is replaced, index.json last.
        memory: bytes that buffers may have, here and in each worker.
        map_tasks: the `map` of an engine that adds up groups first, where there are several of
            them; None does all here.

    Returns:
        counts of nothing with the pattern and hash of these: they may not fit in memory.
        ChunkCounts.load reads them.

    Raises:
        ArtifactError: the files of a shard are not what its receipt says.
    """
    store = open_store(tasks[0].store)
    receipts = [one.receipts[0] for one in done]
    parts = [(task.folder, receipt) for task, receipt in zip(tasks, receipts, strict=True)]
    groups: list[MergeTask] = []
    if map_tasks is not None and len(parts) > GROUP:
        groups = [
            MergeTask(
                name=f"{first // GROUP:06}",
                parts=tuple(parts[first : first + GROUP]),
                store=tasks[0].store,
                memory=memory,
            )
            for first in range(0, len(parts), GROUP)
        ]
        sums = dict(map_tasks(merge_group, groups))
        parts = [(group.folder, sums[n].receipts[0]) for n, group in enumerate(groups)]
    local = LocalStore(folder)
    local.remove("index.json")
    with local.scratch() as scratch:
        found = _merge(store, parts, scratch, memory)
        put_outputs(local, ".", scratch / "run", RUN_FILES, found.sha256)
    local.remove_scratch()
    counts = tasks[0].counts_of(train_sha256(receipts))
    sizes = {"distinct": found.distinct, "total": found.total, "files": dict(found.sha256)}
    write_record(folder / "index.json", {**counts.header(), **sizes})
    for group in groups:
        for name in (RECEIPT, *RUN_FILES):
            store.remove(f"{group.folder}/{name}")
    return counts


def train_sha256(receipts: Sequence[Receipt]) -> str:
    """The hash of a text in parts: of the part if it is one, else of the sorted hashes in JSON.

    Shards without a document of the split are no parts.
    """
    parts = sorted(receipt.text_sha256 for receipt in receipts if receipt.documents)
    return parts[0] if len(parts) == 1 else sha256(dump_json(parts, indent=None))


def facts(receipt: Receipt, folder: str) -> RunFacts:
    """What the receipt of counts says of their run."""
    return RunFacts.from_json(receipt.counts, f"{folder}/{RECEIPT}")


def _merge(
    store: Store, parts: Sequence[tuple[str, Receipt]], scratch: Path, memory: int
) -> RunFacts:
    """Merge runs of a store into the folder `run` of the scratch."""
    runs = [
        SortedRun(store.name(folder), facts(receipt, folder), partial(_open_in, store, folder))
        for folder, receipt in parts
    ]
    return merge_runs(runs, scratch / "run", memory=memory, scratch=scratch)


def _open_in(store: Store, folder: str, name: str) -> BinaryIO:
    return store.open(f"{folder}/{name}")
