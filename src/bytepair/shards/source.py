"""The documents of a shard of a corpus, as work.py wants them: where the two rooms meet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

from bytepair.corpora.hash_split import split_of
from bytepair.corpora.manifest import Manifest, Shard
from bytepair.corpora.shard_documents import Document
from bytepair.corpora.shards import read_shard
from bytepair.shard_params import HashSplit, ReadRules


@dataclass(frozen=True, slots=True)
class ShardSource:
    """A shard, how it is read, and how its documents are dealt; see work.Source."""

    shard: Shard
    rules: ReadRules
    split: HashSplit

    @property
    def name(self) -> str:
        return self.shard.url

    @property
    def size(self) -> int:
        return self.shard.size

    @property
    def identity(self) -> dict[str, Any]:
        shares = {"val": self.split.val, "test": self.split.test}
        return {
            "shard": asdict(self.shard),
            "rules": asdict(self.rules),
            "split": {
                "seed": self.split.seed,
                **{name: None if share is None else str(share) for name, share in shares.items()},
            },
        }

    def documents(self, skip: Callable[[int, str], None]) -> Iterator[tuple[str, str, str]]:
        for record in read_shard(self.shard, self.rules):
            if isinstance(record, Document):
                split = split_of(
                    record.group, seed=self.split.seed, val=self.split.val, test=self.split.test
                )
                yield split, record.id, record.text
            else:
                skip(*record)


def sources_of(manifest: Manifest, split: HashSplit) -> list[ShardSource]:
    """A source for each shard, in the manifest's order."""
    return [ShardSource(shard, manifest.rules, split) for shard in manifest.shards]
