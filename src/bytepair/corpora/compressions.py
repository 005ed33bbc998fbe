"""Decompressing shards as they are read: .gz, .bz2, .xz and .zst, of any number of members.

Nothing is left unread and nothing is guessed: the last member must be whole, its checksum right,
and what follows a member is another one or zero bytes, which some tools pad with. A shard that
decompresses to more than it can honestly hold is refused on the way, not at the end.
"""

from __future__ import annotations

import bz2
import io
import lzma
import sys
import zlib
from collections.abc import Callable
from typing import TYPE_CHECKING, BinaryIO, NoReturn, Protocol

from bytepair.errors import CorpusError, FetchError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# Text shrinks to a third or a tenth, tables and logs to a hundredth; .gz cannot do better than
# 1/1032, other formats know no limit. So a shard of n bytes may hold FREE + RATIO * n.
RATIO = 200
FREE = 64 << 20
# What a decompressor may need for its window: `xz -9` takes 65 MiB, `zstd --long` 128 MiB.
MEMORY = 128 << 20
_BLOCK = 1 << 18


class Decompressor(Protocol):
    """One member, as the classes of bz2 and lzma read it."""

    @property
    def eof(self) -> bool: ...
    @property
    def needs_input(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, max_length: int) -> bytes: ...


class _Gzip:
    """zlib's object in the form of the others."""

    def __init__(self) -> None:
        self._zlib = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)

    @property
    def eof(self) -> bool:
        return self._zlib.eof

    @property
    def needs_input(self) -> bool:
        return not self._zlib.unconsumed_tail

    @property
    def unused_data(self) -> bytes:
        return self._zlib.unused_data

    def decompress(self, data: bytes, max_length: int) -> bytes:
        return self._zlib.decompress(self._zlib.unconsumed_tail + data, max_length)


def _zstandard() -> Callable[[], Decompressor]:
    if sys.version_info >= (3, 14):
        from compression import zstd
    else:
        try:
            from backports import zstd
        except ImportError:
            raise FetchError(
                "a .zst shard needs a library: pip install 'bytepair[shards]'."
            ) from None
    options = {int(zstd.DecompressionParameter.window_log_max): MEMORY.bit_length() - 1}
    return lambda: zstd.ZstdDecompressor(options=options)


_MAKERS: dict[str, Callable[[], Callable[[], Decompressor]]] = {
    ".gz": lambda: _Gzip,
    ".zst": _zstandard,
    ".bz2": lambda: bz2.BZ2Decompressor,
    ".xz": lambda: lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ, memlimit=MEMORY),
}
COMPRESSIONS = tuple(_MAKERS)


def decompressed(stream: BinaryIO, compression: str, *, size: int, url: str) -> BinaryIO:
    """The text of a compressed shard of `size` bytes, to be read once from start to end.

    Reading raises:
        CorpusError: the data is damaged, cut short, or of more than FREE + RATIO * size bytes.
    """
    make = _MAKERS[compression]()
    return io.BufferedReader(_Decompressed(stream, make, FREE + RATIO * size, url), 1 << 20)


class _Decompressed(io.RawIOBase):
    def __init__(
        self, stream: BinaryIO, make: Callable[[], Decompressor], limit: int, url: str
    ) -> None:
        self._stream = stream
        self._make = make
        self._member = make()
        self._left = limit
        self._limit = limit
        self._url = url

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        data = self._read(len(view))
        self._left -= len(data)
        if self._left < 0:
            raise CorpusError(
                f"{self._url}: decompresses to more than {self._limit:,} bytes, {RATIO} times its "
                f"size and {FREE >> 20} MiB. If that is no decompression bomb, store it plain."
            )
        view[: len(data)] = data
        return len(data)

    def _read(self, size: int) -> bytes:
        """Up to `size` bytes; none at the end of the last member."""
        while True:
            data, ended = b"", False
            if self._member.eof:
                data = self._next_member()
                if not data:
                    return b""
                self._member = self._make()
            elif self._member.needs_input:
                data = self._stream.read(_BLOCK)
                ended = not data
            if text := self._decompress(data, size):
                return text
            if ended and not self._member.eof:
                self._refuse("the file is cut short")

    def _next_member(self) -> bytes:
        """The beginning of what follows a member, without padding; nothing at the file's end."""
        data = self._member.unused_data.lstrip(b"\0")
        while not data:
            block = self._stream.read(_BLOCK)
            if not block:
                break
            data = block.lstrip(b"\0")
        return data

    def _decompress(self, data: bytes, size: int) -> bytes:
        try:
            return self._member.decompress(data, size)
        except Exception as error:  # noqa: BLE001  each format has an exception of its own
            if "memory" in str(error).lower():  # of zstd and of xz
                raise CorpusError(
                    f"{self._url}: takes more than {MEMORY >> 20} MiB of memory to decompress. "
                    "Compress it again; `xz -9` and `zstd --long` need no more."
                ) from None
            self._refuse(f"the file is damaged ({error})")

    def _refuse(self, problem: str) -> NoReturn:
        raise CorpusError(f"{self._url}: {problem}. Get a whole copy of the shard.")
