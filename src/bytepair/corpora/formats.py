"""Which reader a shard's name asks for: its format, and how it is compressed."""

from __future__ import annotations

from typing import BinaryIO

from bytepair.corpora.compressions import COMPRESSIONS, decompressed
from bytepair.corpora.json_lines import read_json_lines
from bytepair.corpora.parquet import read_parquet
from bytepair.corpora.shard_documents import Records
from bytepair.corpora.sources import Source, shard_name, shard_path
from bytepair.corpora.text_files import read_text_file
from bytepair.errors import CorpusError
from bytepair.shard_params import ReadRules

PARQUET = ".parquet"
_STREAMED = {".txt": read_text_file, ".jsonl": read_json_lines, ".ndjson": read_json_lines}


def format_of(url: str) -> tuple[str, str]:
    """The format and the compression, if any, that a shard's name ends in.

    >>> format_of("s3://bucket/web/0.jsonl.zst"), format_of("a.TXT")
    (('.jsonl', '.zst'), ('.txt', ''))

    Raises:
        CorpusError: the name tells neither.
    """
    name = shard_name(url).lower()
    compression = next((suffix for suffix in COMPRESSIONS if name.endswith(suffix)), "")
    stem = name.removesuffix(compression)
    if stem.endswith(PARQUET) and not compression:
        return PARQUET, ""
    for known in _STREAMED:
        if stem.endswith(known):
            return known, compression
    raise CorpusError(
        f"{url}: its name does not tell what it holds. Known: {PARQUET}, {', '.join(_STREAMED)}; "
        f"the last {len(_STREAMED)} also with {', '.join(COMPRESSIONS)} after it. Narrow "
        "fetch.shards."
    )


def read_records(source: Source, rules: ReadRules) -> Records:
    """The documents of an open shard, and what is malformed, in order.

    Raises:
        CorpusError: the shard as a whole cannot be read: it is damaged, or lacks a column.
        FetchError: a library for it is missing, or the server fails.
    """
    known, compression = format_of(source.url)
    path = shard_path(source.url)
    if known == PARQUET:
        return read_parquet(source.stream, rules, path, url=source.url, size=source.size)
    stream: BinaryIO = source.stream
    if compression:
        stream = decompressed(stream, compression, size=source.size, url=source.url)
    return _STREAMED[known](stream, rules, path)
