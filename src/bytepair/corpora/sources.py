"""Where shards lie, on disk or behind a URL of fsspec: finding, opening, and telling versions.

A version is the server's ETag where it has one, `etag:...`, and else the hash of the bytes,
`sha256:...`. Whatever a remote file system raises becomes a FetchError that names the shard; what
may be over by the next try is tried again.
"""

from __future__ import annotations

import contextlib
import errno
import glob
import hashlib
import io
import os
import re
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar
from urllib.parse import urlsplit

from bytepair.errors import CorpusError, FetchError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PAUSES = (0.5, 1, 2, 4)  # seconds before each further try
BLOCK = 8 << 20  # bytes asked of a server at a time
_HTTP = ("http://", "https://")
_WILDCARD = re.compile(r"[*?\[]")
_WILDCARD_OF_HTTP = re.compile(r"[*\[]")  # a ? begins the query
_FINAL = (
    FileNotFoundError,
    PermissionError,
    IsADirectoryError,
    NotImplementedError,
    ImportError,
    ValueError,
)
_NO_CREDENTIALS = "NoCredentialsError"  # of botocore, which may not be here

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Source:
    """An open shard: its bytes as stored, from the beginning and seekable, and what they are."""

    url: str
    stream: io.BufferedReader
    size: int
    version: str


def find_shards(patterns: Iterable[str]) -> list[str]:
    """The URLs that paths, URLs and patterns of either stand for, each once, in order.

    A local path is relative to the working folder, as params have it, with forward slashes.

    Raises:
        CorpusError: a pattern matches no file.
        FetchError: a file system cannot be asked.
    """
    found: set[str] = set()
    for pattern in patterns:
        urls = _find_remote(pattern) if "://" in pattern else _find_local(pattern)
        if not urls:
            raise CorpusError(f"fetch.shards: {pattern!r} matches no file. Correct params.yaml.")
        found.update(urls)
    for url in found:
        if re.search(r"[\ud800-\udfff]", url):
            raise CorpusError(f"{url!r}: the name is not UTF-8. Rename the file.")
    return sorted(found)


def shard_path(url: str) -> str:
    """The path of a shard without scheme and host or bucket, so that a mirror has the same.

    >>> shard_path("s3://bucket/web/0.jsonl.zst"), shard_path("data/0.txt")
    ('web/0.jsonl.zst', 'data/0.txt')
    """
    return url.split("://", 1)[1].partition("/")[2] if "://" in url else url


def shard_name(url: str) -> str:
    """The file's name, whose suffixes tell what it holds.

    >>> shard_name("https://example.org/a/b.txt.gz?key=1")
    'b.txt.gz'
    """
    path = urlsplit(url).path if url.startswith(_HTTP) else url
    return path.rpartition("/")[2]


@contextlib.contextmanager
def open_source(url: str) -> Iterator[Source]:
    """Open a shard. One without an ETag is read once here, for its hash.

    Raises:
        CorpusError: when it is closed: it is not what it was when it was opened.
        FetchError: it is not there, may not be read, or the server still fails at the last try.
    """
    file, etag = _open_remote(url) if "://" in url else (_open_local(url), None)
    with contextlib.closing(file):
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        stamp = None if "://" in url else _stamp(file)
        if etag is None:
            version = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
            file.seek(0)
        else:
            version = f"etag:{etag}"
        yield Source(url, file, size, version)
        if stamp is not None and stamp != _stamp(file):
            _refuse_changed(url)
    if etag is not None and _attempt(url, lambda: _etag(url)) != etag:
        _refuse_changed(url)


def _find_local(pattern: str) -> list[str]:
    paths = [pattern] if Path(pattern).exists() else glob.glob(pattern, recursive=True)  # noqa: PTH207  Path.glob takes no absolute pattern
    return [Path(path).as_posix() for path in paths if Path(path).is_file()]


def _open_local(path: str) -> io.BufferedReader:
    try:
        return Path(path).open("rb")
    except OSError as error:
        raise FetchError(
            f"{path}: {error.strerror}. Does params.yaml name it rightly? If it is gone, look for "
            "shards again: `dvc repro -f -s fetch@CORPUS`."
        ) from None


def _stamp(file: io.BufferedReader) -> tuple[int, int]:
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def _find_remote(pattern: str) -> list[str]:
    def find() -> list[str]:
        filesystem, path = _file_system(pattern)
        wildcard = _WILDCARD_OF_HTTP if pattern.startswith(_HTTP) else _WILDCARD
        if not wildcard.search(path):
            return [pattern]
        found = filesystem.glob(path, detail=True)
        return [
            filesystem.unstrip_protocol(name)
            for name, entry in found.items()
            if entry["type"] == "file"
        ]

    return _attempt(pattern, find)


def _open_remote(url: str) -> tuple[io.BufferedReader, str | None]:
    def opened() -> tuple[Any, str | None]:
        filesystem, path = _file_system(url)
        file = filesystem.open(path, "rb", block_size=BLOCK, cache_type="readahead")
        return file, _etag(url)

    file, etag = _attempt(url, opened)
    if not file.seekable():
        raise FetchError(f"{url}: the server gives no parts of files. Copy the shard elsewhere.")
    return io.BufferedReader(_Remote(file, url), 1 << 16), etag


def _etag(url: str) -> str | None:
    filesystem, path = _file_system(url)
    details = filesystem.info(path)
    etag = details.get("ETag") or details.get("etag")
    return etag.strip('"') if isinstance(etag, str) else None


def _file_system(url: str) -> tuple[Any, str]:
    """The file system of a URL and the path on it; what it has listed before is not believed."""
    import fsspec

    found: tuple[Any, str] = fsspec.url_to_fs(url, use_listings_cache=False)
    return found


class _Remote(io.RawIOBase):
    """A file of fsspec, whose reads are tried again where they fail."""

    def __init__(self, file: Any, url: str) -> None:
        self._file = file
        self._url = url

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        return int(self._file.seek(offset, whence))

    def tell(self) -> int:
        return int(self._file.tell())

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        start = self._file.tell()

        def read() -> bytes:
            self._file.seek(start)
            data: bytes = self._file.read(len(view))
            return data

        data = _attempt(self._url, read)
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


def _attempt(url: str, action: Callable[[], T]) -> T:
    """What `action` gives at the first try that succeeds."""
    for pause in (*PAUSES, None):
        try:
            return action()
        except Exception as error:  # noqa: BLE001  each file system has exceptions of its own
            if pause is None or _is_final(_true(error, url)):
                _refuse(url, _true(error, url))
            time.sleep(pause)
    raise AssertionError


def _true(error: Exception, url: str) -> BaseException:
    """What happened: fsspec says that a file is not there whatever an http server answers."""
    is_hidden = isinstance(error, FileNotFoundError) and url.startswith(_HTTP)
    return error.__cause__ or error if is_hidden else error


def _is_final(error: BaseException) -> bool:
    """Whether asking again would not help."""
    status = getattr(error, "status", None)  # of an answer by http
    refused = isinstance(status, int) and 400 <= status < 500 and status not in {408, 429}
    is_final = isinstance(error, _FINAL) or type(error).__name__ == _NO_CREDENTIALS
    return refused or is_final or _has_changed(error)


def _has_changed(error: BaseException) -> bool:
    """Whether the object is another one than was opened: s3fs says so, by If-Match."""
    return isinstance(error, OSError) and error.errno == errno.EBUSY


def _refuse(url: str, error: BaseException) -> NoReturn:
    if isinstance(error, ImportError):
        raise FetchError(f"{url}: {error}. Install it: pip install 'bytepair[shards]'.") from None
    if _has_changed(error):
        _refuse_changed(url)
    if type(error).__name__ == _NO_CREDENTIALS:
        raise FetchError(
            f"{url}: {error}. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or, for a public "
            "bucket, FSSPEC_S3_ANON=true."
        ) from None
    reason = str(error) or type(error).__name__
    tries = "" if _is_final(error) else f", {len(PAUSES) + 1} times"
    raise FetchError(
        f"{url}: {type(error).__name__}: {reason}{tries}. Is the URL right, and the server there?"
    ) from None


def _refuse_changed(url: str) -> NoReturn:
    raise CorpusError(f"{url}: the shard was changed while it was read. Run it again.") from None
