"""How far the shards are: a bar on a terminal, else a line of JSON for each on standard error.

    {"stage": "count", "shard": "0.jsonl.zst-5c0b...", "seconds": 1.25, "bytes": 48017408,
     "documents": 1200, "tokens": null, "skipped": 0, "reused": false, "mb_per_s": 38.4}

`bytes` are those of the documents as UTF-8, a MB is 10^6 of them, and `seconds` a worker's.
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass
from typing import Any, Self, TextIO


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardLine:
    """What one shard came to; `tokens` is None where none are made."""

    shard: str
    seconds: float
    bytes: int
    documents: int
    tokens: int | None
    skipped: int
    reused: bool


class Progress:
    """Shows shards as they are done, and a summary at the end.

    Args:
        stage: a word for what is done with them.
        shards: how many there are.
        stored: their bytes as stored, by which the bar moves; None to move it by shards.
        dashboard: the address of an engine's page, shown first.
        stream: a bar is drawn if it is a terminal.
    """

    def __init__(
        self,
        stage: str,
        *,
        shards: int,
        stored: int | None,
        dashboard: str | None = None,
        stream: TextIO | None = None,
    ) -> None:
        self._stage = stage
        self._shards = shards
        self._stored = stored
        self._dashboard = dashboard
        self._stream = sys.stderr if stream is None else stream
        self._bar: Any = None
        self._done = self._reused = self._documents = self._skipped = 0
        self._bytes = self._new_bytes = 0
        self._tokens: int | None = None

    def __enter__(self) -> Self:
        self._start = time.perf_counter()
        if self._stream.isatty():
            from tqdm import tqdm

            if self._dashboard is not None:
                self._print(f"{self._stage}: Dask dashboard at {self._dashboard}")
            self._bar = tqdm(
                total=self._shards if self._stored is None else self._stored,
                desc=self._stage,
                unit=" shards" if self._stored is None else "B",
                unit_scale=self._stored is not None,
                file=self._stream,
                dynamic_ncols=True,
            )
            self._show_done()
        elif self._dashboard is not None:
            self._print_json({"dashboard": self._dashboard})
        return self

    def __exit__(self, *_: object) -> None:
        if self._bar is not None:
            self._bar.close()

    def add(self, line: ShardLine, *, stored: int) -> None:
        """A shard is done, of so many bytes as stored (1 if the bar moves by shards)."""
        self._done += 1
        self._documents += line.documents
        self._skipped += line.skipped
        self._bytes += line.bytes
        if line.reused:
            self._reused += 1
        else:
            self._new_bytes += line.bytes
        if line.tokens is not None:
            self._tokens = (self._tokens or 0) + line.tokens
        if self._bar is not None:
            self._show_done()
            if line.reused:  # no part of the rate
                self._bar.initial += stored
            self._bar.update(stored)
            return
        self._print_json(
            {
                "shard": line.shard,
                "seconds": round(line.seconds, 3),
                "bytes": line.bytes,
                "documents": line.documents,
                "tokens": line.tokens,
                "skipped": line.skipped,
                "reused": line.reused,
                "mb_per_s": None if line.reused else _rate(line.bytes, line.seconds),
            }
        )

    def summary(self) -> str:
        """What all shards came to, in a line, which is shown too."""
        seconds = time.perf_counter() - self._start
        rate = _rate(self._new_bytes, seconds)
        tokens = "" if self._tokens is None else f", {self._tokens:,} tokens"
        text = (
            f"{self._done:,} shards ({self._reused:,} done before), {self._documents:,} documents, "
            f"{self._bytes:,} bytes{tokens}, {self._skipped:,} records skipped"
        )
        if self._bar is not None:
            self._bar.close()
            self._print(f"{self._stage}: {text}; {seconds:.1f} s, {rate} MB/s")
        else:
            self._print_json(
                {
                    "shards": self._done,
                    "reused": self._reused,
                    "seconds": round(seconds, 3),
                    "bytes": self._bytes,
                    "documents": self._documents,
                    "tokens": self._tokens,
                    "skipped": self._skipped,
                    "mb_per_s": rate,
                }
            )
        return text

    def _show_done(self) -> None:
        if self._stored is not None:
            self._bar.set_postfix_str(f"{self._done} of {self._shards} shards", refresh=False)

    def _print_json(self, values: dict[str, Any]) -> None:
        self._print(json.dumps({"stage": self._stage, **values}, ensure_ascii=False))

    def _print(self, line: str) -> None:
        print(line, file=self._stream, flush=True)


def _rate(size: int, seconds: float) -> float:
    return round(size / 1e6 / seconds, 1) if seconds > 0 else 0.0
