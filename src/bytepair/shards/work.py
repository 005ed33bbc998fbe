"""What is done with a shard, as pure functions: its counts, and its tokens.

    STORE/counts/NAME/         chunks.bin, ends.bin, counts.bin   as ChunkCounts.save writes them
    STORE/tokens/SPLIT/NAME/   tokens.npy, documents.npy, index.json   as write_tokens does

Each folder has a receipt.json, written last. The same task gives the same bytes wherever and
however often it runs; where its receipt is there already, nothing runs. Where documents come from,
and in which split each is, a task's source knows: nothing here reads a shard.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import lru_cache
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from bytepair import bpe_file
from bytepair.chunks import check_text
from bytepair.counts import ChunkCounts
from bytepair.errors import TextError
from bytepair.files import sha256
from bytepair.patience import CHARACTERS_PER_SECOND, Watch
from bytepair.patterns import Pattern
from bytepair.shards.counted_runs import count_to_run
from bytepair.shards.merged_counts import RUN_FILES
from bytepair.shards.receipts import (
    RECEIPT,
    Output,
    Receipt,
    find_receipt,
    write_receipt,
)
from bytepair.shards.store import Store, open_store
from bytepair.shards.tokens import TokensWriter
from bytepair.tokenizer import Tokenizer

Skip = Callable[[int, str], None]


class Source(Protocol):
    """The documents of one shard; it can be pickled, since it goes to where the work is done."""

    @property
    def name(self) -> str:
        """The shard's URL, for messages."""

    @property
    def size(self) -> int:
        """The shard's bytes as stored, for progress."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """JSON of all that decides the documents: the shard and its version, and the rules."""

    def documents(self, skip: Skip) -> Iterator[tuple[str, str, str]]:
        """Split, name and text of each document; `skip` is told each malformed record, and why."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CountTask:
    """Count the chunks of one split's documents in a shard.

    Attributes:
        name: of the shard's folder; see shard_name.
        source: where documents come from.
        split: whose documents are counted.
        separator: what stands between documents in the split's text, for its hash.
        pattern: what cuts documents.
        special_tokens: cut out of them.
        store: a path or URL.
        memory: bytes that the worker may have.
    """

    name: str
    source: Source
    split: str = "train"
    separator: str
    pattern: Pattern
    special_tokens: tuple[str, ...]
    store: str
    memory: int

    def __str__(self) -> str:
        return self.source.name

    @property
    def folder(self) -> str:
        """Where in the store the counts lie."""
        return f"counts/{self.name}"

    @property
    def inputs(self) -> dict[str, Any]:
        """What the receipt says the counts were made from."""
        return {
            "source": dict(self.source.identity),
            "split": self.split,
            "separator": self.separator,
            "chunker_sha256": self.counts_of(None).chunker_sha256,
            **_regex_version(self.pattern),
        }

    def counts_of(self, train_sha256: str | None) -> ChunkCounts:
        """Counts of nothing, made as these are."""
        return ChunkCounts({}, self.pattern, self.special_tokens, train_sha256)


@dataclass(frozen=True, slots=True, kw_only=True)
class EncodeTask:
    """Encode the documents of a shard, those of each split into arrays of their own.

    Attributes:
        name: of the shard's folder; see shard_name.
        source: where documents come from.
        splits: those that are encoded; documents of others are passed over.
        separator: what stands between documents in a split's text, for its hash.
        tokenizer: the bytes of bpe.json.
        special: the special token between two documents, if any.
        store: a path or URL.
    """

    name: str
    source: Source
    splits: tuple[str, ...]
    separator: str
    tokenizer: bytes
    special: str | None
    store: str

    def __str__(self) -> str:
        return self.source.name

    def folder(self, split: str) -> str:
        """Where in the store the tokens of a split lie."""
        return f"tokens/{split}/{self.name}"

    def inputs(self, split: str) -> dict[str, Any]:
        """What the receipt says the tokens of a split were made from."""
        return {
            "source": dict(self.source.identity),
            "split": split,
            "separator": self.separator,
            "tokenizer_sha256": sha256(self.tokenizer),
            "special": self.special,
            **_regex_version(_tokenizer(self.tokenizer).pattern),
        }


class Done(NamedTuple):
    """What a task came to: its receipts, and whether they were there already."""

    name: str
    receipts: tuple[Receipt, ...]
    is_reused: bool


def _regex_version(pattern: Pattern) -> dict[str, str]:
    """The version of the package `regex`, where cuts depend on it."""
    return {"regex_version": version("regex")} if pattern.needs_regex_library else {}


def shard_name(url: str) -> str:
    """The folder of a shard: no other URL's, and the same when shards are added.

    >>> shard_name("s3://bucket/web/0.jsonl.zst")
    '0.jsonl.zst-ba3dbef7bcb8'
    """
    last = url.rstrip("/").rpartition("/")[2]
    readable = "".join(c if c.isascii() and (c.isalnum() or c in "._-") else "_" for c in last)
    return f"{readable[-80:]}-{sha256(url.encode())[:12]}"


def count_shard(task: CountTask) -> Done:
    """Count a shard, unless its receipt says that it is done."""
    store = open_store(task.store)
    receipt = find_receipt(store, task.folder, task.inputs)
    if receipt is not None:
        return Done(task.name, (receipt,), True)
    store.remove(f"{task.folder}/{RECEIPT}")
    with store.scratch() as scratch, _watch(task.pattern) as watch:
        documents = _Documents(task.source, task.separator, watch)
        facts = count_to_run(
            (data for _, _, data in documents.of((task.split,))),
            scratch / "run",
            pattern=task.pattern,
            special_tokens=task.special_tokens,
            memory=task.memory,
            scratch=scratch,
        )
        outputs = put_outputs(store, task.folder, scratch / "run", RUN_FILES, facts.sha256)
    text = documents.text(task.split)
    receipt = Receipt(
        kind="counts",
        inputs=task.inputs,
        outputs=outputs,
        text_sha256=text.sha256,
        text_bytes=text.size,
        documents=text.documents,
        skipped=documents.skipped,
        counts=facts.to_json(),
    )
    write_receipt(store, task.folder, receipt)
    return Done(task.name, (receipt,), False)


def encode_shard(task: EncodeTask) -> Done:
    """Encode a shard, unless its receipts say that it is done."""
    store = open_store(task.store)
    found = [find_receipt(store, task.folder(split), task.inputs(split)) for split in task.splits]
    if None not in found:
        return Done(task.name, tuple(filter(None, found)), True)
    for split in task.splits:
        store.remove(f"{task.folder(split)}/{RECEIPT}")
    tokenizer = _tokenizer(task.tokenizer)
    receipts = []
    with store.scratch() as scratch, _watch(tokenizer.pattern) as watch, ExitStack() as stack:
        documents = _Documents(task.source, task.separator, watch)
        writers = {
            split: stack.enter_context(TokensWriter(scratch / split, tokenizer, task.special))
            for split in task.splits
        }
        for split, name, data in documents.of(task.splits):
            writers[split].add(name, data)
        for split, writer in writers.items():
            text = documents.text(split)
            subject = f"{task}: the last documents of {split}, {writer.waiting:,} bytes"
            watch.begin(subject, writer.waiting // CHARACTERS_PER_SECOND)
            index = writer.close(
                text_sha256=text.sha256,
                text_bytes=text.size,
                separator_bytes=len(task.separator.encode()),
            )
            watch.end()
            hashes = writer.sha256
            receipts.append(
                Receipt(
                    kind="tokens",
                    inputs=task.inputs(split),
                    outputs=put_outputs(store, task.folder(split), scratch / split, hashes, hashes),
                    text_sha256=text.sha256,
                    text_bytes=text.size,
                    documents=text.documents,
                    skipped=documents.skipped,
                    tokens=index.length,
                )
            )
    for split, receipt in zip(task.splits, receipts, strict=True):
        write_receipt(store, task.folder(split), receipt)
    return Done(task.name, tuple(receipts), False)


def _watch(pattern: Pattern) -> Watch:
    """A watch on a pattern of one's own, which may take longer than anyone will wait."""
    return Watch(None if pattern.is_named else pattern.regex)


class _Text:
    """A split's documents in a shard, joined by a separator and hashed as they pass."""

    def __init__(self) -> None:
        self._hash = hashlib.sha256()
        self.size = self.documents = 0

    def add(self, data: bytes, separator: bytes) -> None:
        if self.documents:
            self._hash.update(separator)
            self.size += len(separator)
        self._hash.update(data)
        self.size += len(data)
        self.documents += 1

    @property
    def sha256(self) -> str:
        return self._hash.hexdigest()


class _Documents:
    """The documents of a source as they are read, and what was seen of them."""

    def __init__(self, source: Source, separator: str, watch: Watch) -> None:
        self._source = source
        self._watch = watch
        self._separator = separator.encode()
        self._texts: dict[str, _Text] = {}
        self.skipped = 0

    def of(self, splits: Sequence[str]) -> Iterator[tuple[str, str, bytes]]:
        for split, name, text in self._source.documents(self._skip):
            if split in splits:
                data = self._encoded(name, text)
                self.text(split).add(data, self._separator)
                if self._watch.is_on:
                    subject = (
                        f"{self._source.name}: document {name!r:.80}, {len(text):,} characters"
                    )
                    self._watch.begin(subject, len(text) // CHARACTERS_PER_SECOND)
                yield split, name, data
        self._watch.end()

    def _encoded(self, name: str, text: str) -> bytes:
        try:
            check_text(text)
        except TextError as error:
            raise TextError(f"{self._source.name}: document {name!r}: {error}") from None
        return text.encode("utf-8")

    def text(self, split: str) -> _Text:
        return self._texts.setdefault(split, _Text())

    def _skip(self, record: int, reason: str) -> None:
        del record, reason  # the manifest has been refused if there are too many
        self.skipped += 1


@lru_cache(maxsize=1)
def _tokenizer(data: bytes) -> Tokenizer:
    """Made once in a worker, not once a shard: it remembers chunks."""
    content = bpe_file.parse(data, "bpe.json")
    return Tokenizer(
        content.merges,
        pattern=content.pattern,
        special_tokens=content.special_tokens,
        train_sha256=content.train_sha256,
    )


def put_outputs(
    store: Store, folder: str, written: Path, names: Iterable[str], hashes: Mapping[str, str]
) -> dict[str, Output]:
    """Move files of this machine into a folder of the store."""
    outputs = {}
    for name in names:
        outputs[name] = Output((written / name).stat().st_size, hashes[name])
        store.put(written / name, f"{folder}/{name}")
    return outputs
