"""What vouches for the outputs of a shard: from which inputs they were made, and their hashes.

    {"version": 1, "kind": "counts", "inputs": {"source": {...}, "chunker_sha256": "8fbe..."},
     "outputs": {"chunks.bin": {"bytes": 71043, "sha256": "bda7..."}, ...},
     "text": {"sha256": "e6e9...", "bytes": 468848}, "documents": 10, "skipped": 0,
     "tokens": null, "counts": {"distinct": 9756, ...}, "record_sha256": "4fa5..."}

A receipt is removed before an output is written and written after the last, so outputs that have
one are whole. `inputs` is all that decides the bytes of the outputs: if those of a task are others,
the receipt is not its.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from bytepair.errors import ArtifactError
from bytepair.fields import COUNT, SHA256, TEXT, check_fields
from bytepair.files import dump_json, parse_record, record_bytes
from bytepair.shards.store import Store, write

RECEIPT = "receipt.json"
VERSION = 1

_FIELDS: Mapping[str, Any] = {
    "version": ("1", lambda value: type(value) is int and value == VERSION),
    "kind": TEXT,
    "inputs": ("an object", lambda value: isinstance(value, dict)),
    "outputs": ("an object", lambda value: isinstance(value, dict)),
    "text": {"sha256": SHA256, "bytes": COUNT},
    "documents": COUNT,
    "skipped": COUNT,
    "tokens": ("a number or null", lambda value: value is None or COUNT[1](value)),
    "counts": ("an object or null", lambda value: value is None or isinstance(value, dict)),
}


@dataclass(frozen=True, slots=True)
class Output:
    """A file beside the receipt."""

    size: int
    sha256: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Receipt:
    """What one folder holds.

    Attributes:
        kind: "counts" or "tokens".
        inputs: JSON of all that decides the outputs.
        outputs: by the names of the files beside the receipt.
        text_sha256: of the split's documents in this shard, joined as a split's text.txt is.
        text_bytes: of the same.
        documents: of the split in this shard.
        skipped: malformed records of the shard.
        tokens: separators included; None for counts.
        counts: facts of a sorted run; None for tokens.
    """

    kind: str
    inputs: Mapping[str, Any]
    outputs: Mapping[str, Output]
    text_sha256: str
    text_bytes: int
    documents: int
    skipped: int
    tokens: int | None = None
    counts: Mapping[str, Any] | None = None

    def to_bytes(self) -> bytes:
        """The file's bytes."""
        return record_bytes(
            {
                "version": VERSION,
                "kind": self.kind,
                "inputs": dict(self.inputs),
                "outputs": {
                    name: {"bytes": output.size, "sha256": output.sha256}
                    for name, output in self.outputs.items()
                },
                "text": {"sha256": self.text_sha256, "bytes": self.text_bytes},
                "documents": self.documents,
                "skipped": self.skipped,
                "tokens": self.tokens,
                "counts": None if self.counts is None else dict(self.counts),
            }
        )

    @classmethod
    def parse(cls, data: bytes, name: str) -> Receipt:
        """What `to_bytes` gave.

        Raises:
            ArtifactError: it is something else; the message has `name`.
        """
        record = parse_record(data, name)
        check_fields(record, _FIELDS, name)
        for output in record["outputs"].values():
            check_fields(output, {"bytes": COUNT, "sha256": SHA256}, name, "outputs")
        return cls(
            kind=record["kind"],
            inputs=record["inputs"],
            outputs={
                file: Output(value["bytes"], value["sha256"])
                for file, value in record["outputs"].items()
            },
            text_sha256=record["text"]["sha256"],
            text_bytes=record["text"]["bytes"],
            documents=record["documents"],
            skipped=record["skipped"],
            tokens=record["tokens"],
            counts=record["counts"],
        )


def find_receipt(store: Store, folder: str, inputs: Mapping[str, Any]) -> Receipt | None:
    """The receipt of outputs that were made from `inputs` and are all there; None to make them."""
    path = f"{folder}/{RECEIPT}"
    data = store.read(path)
    if data is None:
        return None
    try:
        receipt = Receipt.parse(data, store.name(path))
    except ArtifactError:  # of another version, or damaged: as good as none
        return None
    if dump_json(receipt.inputs) != dump_json(inputs):  # where a tuple is a list
        return None
    for name, output in receipt.outputs.items():
        if store.size(str(PurePosixPath(folder, name))) != output.size:
            return None
    return receipt


def write_receipt(store: Store, folder: str, receipt: Receipt) -> None:
    """Vouch for outputs that have all been written."""
    write(store, f"{folder}/{RECEIPT}", receipt.to_bytes())
