"""Progress: a bar on a real terminal, else JSON lines that a program can read."""

import io
import json
import os
import pty
import re
import termios
import threading

from bytepair.shards.progress import Progress, ShardLine

LINES = [
    ShardLine(shard="a", seconds=0.5, bytes=2_000_000, documents=3, tokens=900, skipped=0, reused=False),
    ShardLine(shard="b", seconds=0.1, bytes=1_000_000, documents=2, tokens=400, skipped=1, reused=True),
]  # fmt: skip
SUMMARY = "2 shards (1 done before), 5 documents, 3,000,000 bytes, 1,300 tokens, 1 records skipped"


def show(stream, dashboard="http://127.0.0.1:8787/status", stored=300):
    with Progress(
        "encode", shards=2, stored=stored, dashboard=dashboard, stream=stream
    ) as progress:
        for line in LINES:
            progress.add(line, stored=150 if stored else 1)
        return progress.summary()


def test_lines_of_json():
    stream = io.StringIO()
    assert show(stream) == SUMMARY
    dashboard, first, second, summary = map(json.loads, stream.getvalue().splitlines())
    assert dashboard == {"stage": "encode", "dashboard": "http://127.0.0.1:8787/status"}
    assert first == {
        "stage": "encode", "shard": "a", "seconds": 0.5, "bytes": 2_000_000, "documents": 3,
        "tokens": 900, "skipped": 0, "reused": False, "mb_per_s": 4.0,
    }  # fmt: skip
    assert (second["reused"], second["mb_per_s"], second["skipped"]) == (True, None, 1)
    assert summary.pop("seconds") >= 0
    assert summary.pop("mb_per_s") > 0
    assert summary == {
        "stage": "encode", "shards": 2, "reused": 1, "bytes": 3_000_000, "documents": 5,
        "tokens": 1300, "skipped": 1,
    }  # fmt: skip


def on_a_terminal(**options):
    """What a terminal is sent."""
    parent, child = pty.openpty()
    termios.tcsetwinsize(child, (24, 120))
    shown = bytearray()

    def read():
        try:
            while data := os.read(parent, 1 << 16):
                shown.extend(data)
        except OSError:  # the other end is closed
            return

    reader = threading.Thread(target=read)
    reader.start()
    with os.fdopen(child, "w") as stream:
        assert show(stream, **options) == SUMMARY
    reader.join()
    os.close(parent)
    return shown.decode()


def test_a_bar_on_a_terminal():
    text = on_a_terminal()
    assert "encode: Dask dashboard at http://127.0.0.1:8787/status" in text
    assert "300/300" in text
    assert "2 of 2 shards" in text
    assert "{" not in text
    assert re.search(re.escape(f"encode: {SUMMARY}") + r"; \d+\.\d s, [\d.]+ MB/s", text)


def test_a_bar_of_shards_whose_sizes_are_not_known_yet():
    text = on_a_terminal(stored=None)
    assert re.search(r"encode: +100%.*2/2 \[[^]]* shards/s\]", text)
    assert "of 2 shards" not in text
