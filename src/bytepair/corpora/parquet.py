"""Documents of .parquet files: a row each, of the columns that are needed and no other.

A string column is UTF-8 by its type, but no writer is forced to keep to that, so each value is
decoded strictly; binary columns are taken, too. A dot in a name leads into a struct.

A row group is read a page at a time and a batch of rows at a time, so memory grows with the largest
page, not with the file, and has room for MOST_BYTES of texts that a dictionary repeats, or that
begin as the text before them does. Pages are held to their checksums, where a writer made them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, BinaryIO

from bytepair.blocks import choices
from bytepair.corpora.compressions import FREE, RATIO
from bytepair.corpora.shard_documents import (
    Document,
    Malformed,
    MalformedError,
    Records,
    decode_record,
    too_large,
)
from bytepair.errors import CorpusError, FetchError
from bytepair.shard_params import ReadRules

BATCH_BYTES = 1 << 20
MOST_ROWS = 256
MOST_BYTES = 32 << 20

_VARINT = rb"([\x80-\xff]{0,4}[\x00-\x7f])"
_PAGE_HEADER = re.compile(rb"\x15" + _VARINT + rb"\x15" + _VARINT, re.DOTALL)
_DICTIONARY_PAGE = 2


def read_parquet(stream: BinaryIO, rules: ReadRules, path: str, *, url: str, size: int) -> Records:
    """The documents of an open file of `size` bytes.

    Raises:
        CorpusError: the file is damaged, or has no such column.
    """
    names = [name for name in (rules.text, rules.id, rules.group) if name is not None]
    number = 0
    for texts, *others in _batches(stream, names, url, size):
        for row in range(len(texts)):
            number += 1
            try:
                text = _text(texts[row], rules.text, rules.largest)
                keys = [
                    _key(column[row], name, rules.largest)
                    for column, name in zip(others, names[1:], strict=True)
                ]
            except MalformedError as error:
                yield Malformed(number, str(error))
                continue
            name = f"{path}:{number}" if rules.id is None else keys[0]
            yield Document(name, name if rules.group is None else keys[-1], text)


def _text(value: Any, name: str, largest: int) -> str:
    """The text of a scalar of Arrow, which is not copied before its size is known."""
    buffer = value.as_buffer() if value.is_valid else None
    if buffer is None:
        raise MalformedError(f"{name!r} is null")
    if buffer.size > largest:
        raise MalformedError(too_large(largest))
    if not buffer.size:
        raise MalformedError(f"{name!r} is empty")
    return decode_record(buffer.to_pybytes())


def _key(value: Any, name: str, largest: int) -> str:
    if not value.is_valid:
        raise MalformedError(f"{name!r} is null")
    if not hasattr(value, "as_buffer"):
        return str(value.as_py())
    buffer = value.as_buffer()
    if buffer.size > largest:
        raise MalformedError(f"{name!r} is {too_large(largest)}")
    return decode_record(buffer.to_pybytes())


def _batches(stream: BinaryIO, names: list[str], url: str, size: int) -> Iterator[list[Any]]:
    """The columns of some rows after the others, an array of strings or integers each."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError:
        raise FetchError(
            f"{url}: a .parquet shard needs a library: pip install 'bytepair[parquet]'."
        ) from None
    try:
        file = parquet.ParquetFile(
            stream, buffer_size=BATCH_BYTES, pre_buffer=False, page_checksum_verification=True
        )
        _check_columns(file.schema_arrow, names, url)
        leaves = [n for n in range(len(file.schema)) if file.schema.column(n).path in names]
        _check_size(file.metadata, leaves, url, size)
        for group in range(file.metadata.num_row_groups):
            rows = _rows_of_a_batch(stream, file.metadata.row_group(group), leaves)
            for batch in file.iter_batches(
                rows, row_groups=[group], columns=sorted(set(names)), use_threads=False
            ):
                yield [_column(batch, name.split(".")) for name in names]
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # the last: names of columns
        reason = " ".join(str(error).split())
        raise CorpusError(
            f"{url}: damaged ({reason:.200}). Get a whole copy of the shard."
        ) from None


def _column(batch: Any, path: list[str]) -> Any:
    import pyarrow as pa
    from pyarrow import compute

    column = batch.column(path[0])
    if len(path) > 1:
        column = compute.struct_field(column, path[1:])
    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    views = {pa.string_view(): pa.large_string(), pa.binary_view(): pa.large_binary()}
    return column.cast(views[column.type]) if column.type in views else column


def _check_columns(schema: Any, names: Iterable[str], url: str) -> None:
    """Refuse a file that lacks a column, or whose column holds something else."""
    from pyarrow import types

    for number, name in enumerate(names):
        first, *rest = name.split(".")
        found: Any = schema.field(first).type if schema.names.count(first) == 1 else None
        for part in rest:
            is_there = found and types.is_struct(found) and found.get_field_index(part) >= 0
            found = found.field(part).type if is_there else None
        if found is None and name in schema.names:
            why = "stands twice" if not rest else "has a dot in its name, which stands for nesting"
            raise CorpusError(f"{url}: column {name!r} {why}. Rename it.")
        if found is None:
            raise CorpusError(f"{url}: there is no column {name!r}. {choices(name, schema.names)}")
        if types.is_dictionary(found):
            found = found.value_type
        is_string = any(
            test(found)
            for test in (
                types.is_string,
                types.is_large_string,
                types.is_binary,
                types.is_large_binary,
                types.is_string_view,
                types.is_binary_view,
            )
        )
        if not is_string and (number == 0 or not types.is_integer(found)):
            wanted = "strings or integers" if number else "strings"
            raise CorpusError(f"{url}: column {name!r} holds {found}, expected {wanted}.")


def _check_size(metadata: Any, leaves: list[int], url: str, size: int) -> None:
    """Hold what the columns decompress to, as the file says, to the limit of compressed shards."""
    groups = map(metadata.row_group, range(metadata.num_row_groups))
    total = sum(group.column(leaf).total_uncompressed_size for group in groups for leaf in leaves)
    limit = FREE + RATIO * size
    if total > limit:
        raise CorpusError(
            f"{url}: decompresses to {total:,} bytes, above {RATIO} times its size and "
            f"{FREE >> 20} MiB, {limit:,}. If that is no decompression bomb, store it plain."
        )


def _rows_of_a_batch(stream: BinaryIO, group: Any, leaves: list[int]) -> int:
    """So many rows that a batch has BATCH_BYTES on the average, and MOST_BYTES at the worst."""
    columns = [group.column(leaf) for leaf in leaves]
    total = sum(column.total_uncompressed_size for column in columns)
    average = max(1, total // max(1, group.num_rows))
    longest = max(1, *(_longest_repeated(stream, column) for column in columns))
    rows: int = min(MOST_ROWS, BATCH_BYTES // average, MOST_BYTES // longest)
    return max(1, rows)


def _longest_repeated(stream: BinaryIO, column: Any) -> int:
    """At most so long is a text of which each row can have a copy that takes no room in the file.

    What a text has in common with the one before it is not stored again by DELTA_BYTE_ARRAY.
    """
    if "DELTA_BYTE_ARRAY" in column.encodings:
        return int(column.total_uncompressed_size)
    return _dictionary_bytes(stream, column)


def _dictionary_bytes(stream: BinaryIO, column: Any) -> int:
    """What a column's dictionary in a row group decompresses to; 0 if it has none.

    One text in a dictionary may stand in every row, so the file's size says nothing of the rows'.
    Arrow does not tell this size. It is in the header of the first page, whose fields 1 and 2,
    the page's type and its size, are zigzag integers in Thrift's compact protocol.
    """
    offsets = filter(None, (column.dictionary_page_offset, column.data_page_offset))
    stream.seek(max(0, min(offsets, default=0)))  # a damaged file may say anything
    header = _PAGE_HEADER.match(stream.read(16))
    if header is None or _zigzag(header[1]) != _DICTIONARY_PAGE:
        return 0
    return _zigzag(header[2])


def _zigzag(data: bytes) -> int:
    value = sum((byte & 0x7F) << 7 * place for place, byte in enumerate(data))
    return (value >> 1) ^ -(value & 1)
