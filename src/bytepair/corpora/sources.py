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
from urllib.parse import unquote, urlsplit

from bytepair.errors import CorpusError, FetchError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

PAUSES = (0.5, 1, 2, 4)  # seconds before each further try
BLOCK = 8 << 20  # bytes asked of a server at a time
_LOCAL = ("file://", "local://")
_HTTP = ("http://", "https://")
_WILDCARD = re.compile(r"[*?\[]")
_WILDCARD_OF_HTTP = re.compile(r"[*\[]")  # a ? begins the query
# How file systems without ETags call the time of the last change.
_TIMES = ("Last-Modified", "LastModified", "last_modified", "mtime", "modificationTime", "updated")
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

    A local path is relative to the working folder, as params have it, with forward slashes; a URL
    of this machine becomes a path. A name with ? or [ in it that is there is no pattern. A wildcard
    stands for no dot at the beginning of a name, wherever files are.

    Raises:
        CorpusError: a pattern matches no file, a link leads nowhere, or a file has two names:
            its documents would count twice, and might be on two sides.
        FetchError: a file system cannot be asked.
    """
    found: dict[Any, str] = {}
    for pattern in patterns:
        path = pattern.partition("://")[2] if pattern.startswith(_LOCAL) else pattern
        matches = _find_remote(path) if "://" in path else _find_local(path)
        is_found = False
        for place, url in matches:
            is_found = True
            names = sorted({found.setdefault(place, url), url})
            if len(names) > 1:
                raise CorpusError(
                    f"fetch.shards: {' and '.join(map(repr, names))} are one file. Name it once."
                )
        if not is_found:
            raise CorpusError(f"fetch.shards: {pattern!r} matches no file. Correct params.yaml.")
    for url in found.values():
        if re.search(r"[\ud800-\udfff]", url):
            raise CorpusError(f"{url!r}: the name is not UTF-8. Rename the file.")
    return sorted(found.values())


def shard_path(url: str) -> str:
    """The path of a shard without scheme and host or bucket, so that a mirror has the same.

    >>> shard_path("s3://bucket/web/0.jsonl.zst"), shard_path("/data/0.txt")
    ('web/0.jsonl.zst', 'data/0.txt')
    >>> shard_path("https://example.org/web/a%20b.txt?signature=1")
    'web/a b.txt'
    """
    if url.startswith(_HTTP):
        return unquote(urlsplit(url).path).lstrip("/")
    return url.split("://", 1)[1].partition("/")[2] if "://" in url else url.lstrip("/")


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
    file, marks = _open_remote(url) if "://" in url else (_open_local(url), _Marks())
    with contextlib.closing(file):
        size = file.seek(0, io.SEEK_END)
        file.seek(0)
        stamp = None if "://" in url else _stamp(file)
        if marks.etag is None:
            version = f"sha256:{hashlib.file_digest(file, 'sha256').hexdigest()}"
            file.seek(0)
        else:
            version = f"etag:{marks.etag}"
        yield Source(url, file, size, version)
        if stamp is not None and stamp != _stamp(file):
            _refuse_changed(url)
    if "://" in url and _attempt(url, lambda: _marks(_info(url))) != marks:
        _refuse_changed(url)


def _find_local(pattern: str) -> Iterator[tuple[str, str]]:
    """Where each file is, and its name.

    Links to folders are followed, also to one that they are in; then the first file that is met
    again ends the search.
    """
    folders: dict[Path, Path] = {}
    is_name = os.path.lexists(pattern)
    for name in [pattern] if is_name else glob.iglob(pattern, recursive=True):  # noqa: PTH207  Path.glob takes no absolute pattern
        path = Path(name)
        if path.is_file():
            if path.parent not in folders:
                folders[path.parent] = path.parent.resolve()
            yield str(folders[path.parent] / path.name), path.as_posix()
        elif path.is_symlink() and not path.exists():
            raise CorpusError(
                f"{path.as_posix()}: a link to {path.readlink()}, which is not there. Restore "
                "that file, or delete the link."
            )


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


def _find_remote(pattern: str) -> list[tuple[tuple[Any, str], str]]:
    """Where each file is, and its URL."""
    is_http = pattern.startswith(_HTTP)

    def place(filesystem: Any, path: str) -> tuple[Any, str]:
        return filesystem, unquote(path) if is_http else path

    def find() -> list[tuple[tuple[Any, str], str]]:
        filesystem, path = _file_system(pattern)
        wildcard = (_WILDCARD_OF_HTTP if is_http else _WILDCARD).search(path)
        if wildcard is None or ("*" not in path and not is_http and _is_file(filesystem, path)):
            return [(place(filesystem, path), pattern)]
        fixed = path.rfind("/", 0, wildcard.start()) + 1
        # The URL's beginning has the host, which the paths of some file systems lack.
        prefix = pattern.removesuffix(path) if pattern.endswith(path) else None
        return [
            (
                place(filesystem, name),
                filesystem.unstrip_protocol(name) if prefix is None else prefix + name,
            )
            for name, entry in filesystem.glob(path, detail=True).items()
            if entry["type"] != "directory"
            and not name.endswith("/")  # an empty object that stands for a folder
            and (not _has_dot(name[fixed:]) or _has_dot(path[fixed:]))
        ]

    return _attempt(pattern, find)


def _is_file(filesystem: Any, path: str) -> bool:
    try:
        return bool(filesystem.info(path)["type"] == "file")
    except FileNotFoundError:
        return False


def _has_dot(path: str) -> bool:
    """Whether a name in the path begins with one."""
    return any(name.startswith(".") for name in path.split("/"))


@dataclass(frozen=True, slots=True)
class _Marks:
    """By what a remote file is known again: its ETag or, without one, its size and time."""

    etag: str | None = None
    others: tuple[str, ...] = ()


def _open_remote(url: str) -> tuple[io.BufferedReader, _Marks]:
    def opened() -> tuple[Any, _Marks]:
        filesystem, path = _file_system(url)
        details = filesystem.info(path)
        if details.get("size") == 0:  # http then gives a file that cannot be sought in
            return io.BytesIO(), _marks(details)
        file = filesystem.open(path, "rb", block_size=BLOCK, cache_type="readahead")
        return file, _marks(details)

    file, marks = _attempt(url, opened)
    try:
        size = file.seek(0, io.SEEK_END)
    except (OSError, ValueError):
        raise FetchError(
            f"{url}: the server does not say how large it is, or gives no parts of files. Copy the "
            "shard elsewhere."
        ) from None
    return io.BufferedReader(_Remote(file, url, size), 1 << 16), marks


def _info(url: str) -> Any:
    filesystem, path = _file_system(url)
    return filesystem.info(path)


def _marks(details: Any) -> _Marks:
    etag = details.get("ETag") or details.get("etag")
    if isinstance(etag, str):
        return _Marks(etag.strip('"'))
    return _Marks(None, tuple(str(details.get(name)) for name in ("size", *_TIMES)))


def _file_system(url: str) -> tuple[Any, str]:
    """The file system of a URL and the path on it; what it has listed before is not believed."""
    import fsspec

    found: tuple[Any, str] = fsspec.url_to_fs(url, use_listings_cache=False)
    return found


class _Remote(io.RawIOBase):
    """A file of fsspec, whose reads are tried again where they fail."""

    def __init__(self, file: Any, url: str, size: int) -> None:
        self._file = file
        self._url = url
        self._size = size

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
            if view and not data and start < self._size:  # or it would seem to end here
                raise OSError(f"the server gives {start:,} of {self._size:,} bytes")
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
    reason = str(error).rstrip(".") or type(error).__name__
    tries = "" if _is_final(error) else f", {len(PAUSES) + 1} times"
    raise FetchError(
        f"{url}: {type(error).__name__}: {reason}{tries}. Is the URL right, and the server there?"
    ) from None


def _refuse_changed(url: str) -> NoReturn:
    raise CorpusError(f"{url}: the shard was changed while it was read. Run it again.") from None
