"""The manifest of a sharded corpus: which shards it has, how they are read, and what they hold.

A shard's entry depends on that shard and the rules alone, and entries are in the order of URLs. So
the same corpus has the same manifest wherever it is made, and more shards change no other entry.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from bytepair.fields import COUNT, TEXT, Check, check_fields, damaged
from bytepair.files import StrPath, dump_json, read_record, sha256, write_record
from bytepair.shard_params import ReadRules

MANIFEST = "manifest.json"
VERSION = 1

_OPTIONAL: Check = ("a string or null", lambda value: value is None or isinstance(value, str))
_SUMS = ("documents", "bytes", "skipped")
_RULES: Mapping[str, Any] = {
    "text": TEXT,
    "id": _OPTIONAL,
    "group": _OPTIONAL,
    "separator": _OPTIONAL,
    "largest": COUNT,
}
_SHARD: Mapping[str, Any] = {
    "url": TEXT,
    "size": COUNT,
    "version": TEXT,
    **dict.fromkeys(_SUMS, COUNT),
}
_FIELDS: Mapping[str, Any] = {
    "version": (f"{VERSION}", lambda value: type(value) is int and value == VERSION),
    "rules": _RULES,
    **dict.fromkeys(_SUMS, COUNT),
    "shards": ("a list", lambda value: isinstance(value, list)),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Shard:
    """A file of a corpus, as it was when the manifest was made."""

    url: str
    size: int
    """In bytes, as stored."""
    version: str
    """`etag:...`, or `sha256:...` of the bytes as stored."""
    documents: int
    bytes: int
    """Of the documents' texts in UTF-8."""
    skipped: int
    """Malformed records."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """Shards in the order of their URLs, and the rules by which they are read."""

    rules: ReadRules
    shards: tuple[Shard, ...]

    @property
    def documents(self) -> int:
        """The number of documents in all shards."""
        return sum(shard.documents for shard in self.shards)

    @property
    def bytes(self) -> int:
        """The bytes of all documents' texts."""
        return sum(shard.bytes for shard in self.shards)

    @property
    def skipped(self) -> int:
        """The number of malformed records in all shards."""
        return sum(shard.skipped for shard in self.shards)

    @property
    def sha256(self) -> str:
        """The corpus's identity: the hash of the canonical JSON of `as_json`."""
        return sha256(dump_json(self.as_json()))

    def as_json(self) -> dict[str, Any]:
        """The form in which the file holds it."""
        return {
            "version": VERSION,
            "rules": asdict(self.rules),
            **{name: getattr(self, name) for name in _SUMS},
            "shards": [asdict(shard) for shard in self.shards],
        }

    def save(self, path: StrPath) -> None:
        """Write the manifest as a record, whose `record_sha256` is `sha256`."""
        write_record(path, self.as_json())

    @classmethod
    def load(cls, path: StrPath) -> Manifest:
        """Read what `save` wrote.

        Raises:
            ArtifactError: the file is absent, damaged, or not as it was written.
        """
        path = Path(path)
        content = read_record(path)
        check_fields(content, _FIELDS, path)
        for number, entry in enumerate(content["shards"]):
            check_fields(entry, _SHARD, path, f"shards[{number}]")
        found = cls(
            rules=ReadRules(**content["rules"]),
            shards=tuple(Shard(**entry) for entry in content["shards"]),
        )
        urls = [shard.url for shard in found.shards]
        if urls != sorted(set(urls)):
            raise damaged(path, "shards must be in the order of their URLs, each once")
        if found.as_json() != content:
            raise damaged(path, "documents, bytes and skipped must be the sums of the shards'")
        return found
