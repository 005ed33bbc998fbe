"""The files of a corpus by name, and the record that one stage leaves of them for the next.

A record is a SHA-256 and a size. It stands in the JSON file of the stage that made the file, and
whoever opens the file holds it to that record. The folders themselves are layout's.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from bytepair.errors import ArtifactError
from bytepair.files import read_record, read_verified, sha256

if TYPE_CHECKING:
    from pathlib import Path

RAW, FETCH_RECORD = "raw.txt", "fetch.json"
CLEAN, STRIP_RECORD = "clean.txt", "strip.json"
TEXT, DOCUMENTS, SPLIT_RECORD = "text.txt", "documents.json", "split.json"


@dataclass(frozen=True, slots=True)
class FileRecord:
    """The SHA-256 of a file as 64 lower-case hex digits, and its size in bytes."""

    sha256: str
    size: int

    @classmethod
    def of(cls, data: bytes) -> FileRecord:
        """Record `data`."""
        return cls(sha256(data), len(data))

    @classmethod
    def from_json(cls, value: Any, where: str) -> FileRecord:
        """Read what as_json gave; `where` names file and field.

        Raises:
            ArtifactError: it is something else.
        """
        match value:
            case {"sha256": str(digest), "bytes": int(size), **others} if (
                not others and len(digest) == 64 and type(size) is int and size >= 0
            ):
                return cls(digest, size)
        raise ArtifactError(
            f'{where}: expected {{"sha256": 64 hex digits, "bytes": size}}, found {value!r:.80}. '
            "The file is damaged: delete it and run `dvc repro`."
        )

    def as_json(self) -> dict[str, Any]:
        """The form in which JSON files hold it."""
        return {"sha256": self.sha256, "bytes": self.size}


def read_recorded(path: Path, record_path: Path, field: str) -> tuple[bytes, FileRecord]:
    """The bytes at `path`, held to the record in `field` of the JSON file at `record_path`.

    Raises:
        ArtifactError: a file is absent or damaged, or the bytes are not the recorded ones.
    """
    content = read_record(record_path)
    record = FileRecord.from_json(content.get(field), f"{record_path}: {field}")
    return read_verified(path, record.sha256), record
