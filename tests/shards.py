"""Making shards, for the tests of sharded corpora."""

import bz2
import gzip
import json
import lzma
import sys

import pyarrow as pa
from pyarrow import parquet

from bytepair.corpora.shard_documents import Document
from bytepair.corpora.shards import make_manifest, read_shard
from bytepair.shard_params import ReadRules

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

CHECKSUM = {zstd.CompressionParameter.checksum_flag: 1}  # as the command zstd does
COMPRESS = {
    "": lambda data: data,
    ".gz": lambda data: gzip.compress(data, mtime=0),
    ".zst": lambda data: zstd.compress(data, options=CHECKSUM),
    ".bz2": bz2.compress,
    ".xz": lzma.compress,
}


def json_lines(records):
    """Lines of JSON in UTF-8."""
    return "".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records).encode()


def write_parquet(path, columns, **options):
    """A file of columns, each a list or an array of Arrow."""
    parquet.write_table(pa.table(columns), path, **options)


def read(path, rules=None, *, skip=0, **fields):
    """All that the shard at `path` gives, by way of a manifest."""
    rules = rules or ReadRules(**fields)
    (shard,) = make_manifest([str(path)], rules, skip=skip).shards
    return list(read_shard(shard, rules))


def texts(found):
    """The texts of documents, which all must be."""
    assert all(isinstance(document, Document) for document in found), found
    return [document.text for document in found]
