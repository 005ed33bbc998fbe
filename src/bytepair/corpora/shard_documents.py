"""What reading a shard gives: documents, and records that give none."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple


class Document(NamedTuple):
    """A document; `group` is its id where there are no groups."""

    id: str
    group: str
    text: str


class Malformed(NamedTuple):
    """A record that gives no document, by its number from 1."""

    record: int
    reason: str


Records = Iterator[Document | Malformed]


class MalformedError(ValueError):
    """Why a record gives no document; whoever catches it knows which record it is."""


def too_large(largest: int) -> str:
    """The reason for a record of more than `largest` bytes."""
    return f"larger than {largest:,} bytes"


def decode_record(data: bytes | bytearray) -> str:
    """The text of UTF-8.

    Raises:
        MalformedError: it is none; the reason has the offset in the record.
    """
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise MalformedError(
            f"not UTF-8: byte 0x{data[error.start]:02x} at byte offset {error.start} of it"
        ) from None
