r"""tiktoken's rank files: a token in base64, a space and its rank on each line.

>>> dump_ranks([b"a", b"\n", b"a\n"])
b'YQ== 0\nCg== 1\nYQo= 2\n'
>>> parse_ranks(b'YQ== 0\nCg== 1\nYQo= 2\n', "mine.tiktoken")
{b'a': 0, b'\n': 1, b'a\n': 2}
"""

from __future__ import annotations

import base64
import binascii
import gzip
import os
import zlib
from collections.abc import Iterable

from bytepair.errors import ArtifactError
from bytepair.files import StrPath

_GZIP = b"\x1f\x8b"


def dump_ranks(tokens: Iterable[bytes]) -> bytes:
    """The file in which the first token has rank 0, and so on."""
    return b"".join(b"%b %d\n" % (base64.b64encode(token), n) for n, token in enumerate(tokens))


def parse_ranks(data: bytes, path: StrPath) -> dict[bytes, int]:
    """The ranks in a file, which may be compressed by gzip.

    Raises:
        ArtifactError: a line is not base64, a space and a number, or a token or rank stands twice.
    """
    where = os.fspath(path)
    data = decompress(data, path)
    ranks: dict[bytes, int] = {}
    for number, line in enumerate(data.splitlines(), 1):
        if not line.strip():
            continue
        parsed = _parse_line(line)
        if parsed is None:
            raise ArtifactError(
                f"{where}: line {number} is {line[:60]!r}: expected base64, a space and a rank."
            )
        token, rank = parsed
        if token in ranks:
            raise ArtifactError(f"{where}: line {number} gives {token!r} a second rank.")
        ranks[token] = rank
    if len(set(ranks.values())) < len(ranks):
        taken = {rank: token for token, rank in ranks.items()}
        token = next(token for token, rank in ranks.items() if taken[rank] != token)
        raise ArtifactError(
            f"{where}: {token!r} and {taken[ranks[token]]!r} both have rank {ranks[token]}."
        )
    if not ranks:
        raise ArtifactError(f"{where}: no ranks in it.")
    return ranks


def decompress(data: bytes, path: StrPath) -> bytes:
    """What gzip has compressed; other data as they are."""
    if not data.startswith(_GZIP):
        return data
    try:
        return gzip.decompress(data)
    except (OSError, EOFError, zlib.error) as error:
        raise ArtifactError(f"{os.fspath(path)}: not gzip after all: {error}.") from None


def _parse_line(line: bytes) -> tuple[bytes, int] | None:
    encoded, _, rank = line.strip().partition(b" ")
    try:
        token = base64.b64decode(encoded, validate=True)
    except binascii.Error:
        return None
    return (token, int(rank)) if token and rank.isdigit() else None
