"""Where the outputs of shards lie: a folder, or any URL of fsspec such as s3://bucket/web.

A file appears whole or not at all: locally it is renamed into its place, and an object store shows
an upload when it is complete. What a file system of another kind leaves of a broken upload, no
receipt vouches for.
"""

from __future__ import annotations

import contextlib
import errno
import io
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, Protocol

from bytepair.errors import ArtifactError, BytepairError

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

# Object stores have no folders; asked for one, their file systems would make a bucket.
_FLAT = frozenset({"s3", "gs", "az", "abfs", "oci", "oss"})
_SCRATCH = ".work"


class Store(Protocol):
    """Files by relative paths with forward slashes."""

    def read(self, path: str) -> bytes | None:
        """All of a file; None if there is none."""

    def size(self, path: str) -> int | None:
        """The bytes of a file; None if there is none."""

    def open(self, path: str) -> BinaryIO:
        """A file's bytes from the beginning, for large reads."""

    def put(self, written: Path, path: str) -> None:
        """Move a file of this machine, out of `scratch`, into its place."""

    def remove(self, path: str) -> None:
        """Remove a file, if it is there."""

    def scratch(self) -> contextlib.AbstractContextManager[Path]:
        """A new folder on this machine, removed at the end of the block."""

    def name(self, path: str) -> str:
        """A path in full, for messages."""


def open_store(url: str) -> Store:
    """The store at a path or URL; nothing is made or asked for yet."""
    if url.startswith("file://"):
        url = url.removeprefix("file://")
    return RemoteStore(url) if "://" in url else LocalStore(Path(url))


def write(store: Store, path: str, data: bytes) -> None:
    """Write a small file."""
    with store.scratch() as scratch:
        (scratch / "file").write_bytes(data)
        store.put(scratch / "file", path)


class LocalStore:
    """A folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def read(self, path: str) -> bytes | None:
        try:
            return (self._root / path).read_bytes()
        except FileNotFoundError:
            return None

    def size(self, path: str) -> int | None:
        try:
            return (self._root / path).stat().st_size
        except FileNotFoundError:
            return None

    def open(self, path: str) -> BinaryIO:
        try:
            return (self._root / path).open("rb", buffering=0)
        except FileNotFoundError:
            raise _absent(self.name(path)) from None

    def put(self, written: Path, path: str) -> None:
        target = self._root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        try:
            with written.open("rb+") as file:
                os.fsync(file.fileno())
            written.replace(target)
        except OSError as error:
            error.filename = str(target)  # what is written has a name that nobody knows
            raise

    def remove(self, path: str) -> None:
        (self._root / path).unlink(missing_ok=True)

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        # In the store, so that a rename moves a file out of it, and where there is room.
        parent = self._root / _SCRATCH
        parent.mkdir(parents=True, exist_ok=True)
        made = tempfile.TemporaryDirectory(dir=parent, ignore_cleanup_errors=True)
        with made as folder, _full(self._root):
            yield Path(folder)

    def remove_scratch(self) -> None:
        """Remove what killed processes left; nobody may be at work in the store."""
        shutil.rmtree(self._root / _SCRATCH, ignore_errors=True)

    def name(self, path: str) -> str:
        return str(self._root / path)


class RemoteStore:
    """A URL of fsspec."""

    def __init__(self, url: str) -> None:
        self._url = url.rstrip("/")
        try:
            import fsspec

            self._files, self._root = fsspec.url_to_fs(self._url, use_listings_cache=False)
            protocols = self._files.protocol
            self._is_flat = not _FLAT.isdisjoint(
                (protocols,) if isinstance(protocols, str) else protocols
            )
        except ImportError as error:
            raise BytepairError(
                f"{url}: {error}. Install it: pip install 'bytepair[shards]'."
            ) from None
        except ValueError as error:
            raise BytepairError(f"{url}: {error}. Correct the URL of the store.") from None

    def read(self, path: str) -> bytes | None:
        try:
            with _named(self.name(path)):
                return bytes(self._files.cat_file(self._place(path)))
        except FileNotFoundError:
            return None

    def size(self, path: str) -> int | None:
        try:
            with _named(self.name(path)):
                return int(self._files.info(self._place(path))["size"])
        except FileNotFoundError:
            return None

    def open(self, path: str) -> BinaryIO:
        name = self.name(path)
        try:
            with _named(name):
                file = self._files.open(self._place(path), "rb", cache_type="none")
        except FileNotFoundError:
            raise _absent(name) from None
        return io.BufferedReader(_Remote(file, name), 1 << 16)

    def put(self, written: Path, path: str) -> None:
        place, size = self._place(path), written.stat().st_size
        try:
            with _named(self.name(path)):
                if not self._is_flat:
                    self._files.makedirs(place.rpartition("/")[0], exist_ok=True)
                self._files.put_file(str(written), place)
                found = self._files.info(place)["size"]
        except FileNotFoundError as error:
            raise BytepairError(f"{self.name(path)}: {error}. Make the bucket first.") from None
        if found != size:
            raise ArtifactError(
                f"{self.name(path)}: {size} bytes were written, but {found} are there. Run again."
            )
        written.unlink()

    def remove(self, path: str) -> None:
        with contextlib.suppress(FileNotFoundError), _named(self.name(path)):
            self._files.rm_file(self._place(path))

    @contextlib.contextmanager
    def scratch(self) -> Iterator[Path]:
        made = tempfile.TemporaryDirectory(prefix="bytepair-", ignore_cleanup_errors=True)
        with made as folder, _full(Path(folder).parent):
            yield Path(folder)

    def name(self, path: str) -> str:
        return f"{self._url}/{path}"

    def _place(self, path: str) -> str:
        return f"{self._root}/{path}"


class _Remote(io.RawIOBase):
    """A file of fsspec, whose errors say its name."""

    def __init__(self, file: Any, name: str) -> None:
        self._file = file
        self._name = name

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        view = memoryview(buffer).cast("B")
        with _named(self._name):
            data: bytes = self._file.read(len(view))
        view[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._file.close()
        super().close()


@contextlib.contextmanager
def _named(name: str) -> Iterator[None]:
    """Say which file an exception is about; each file system has its own, and its own tries."""
    try:
        yield
    except (FileNotFoundError, BytepairError):
        raise
    except Exception as error:
        raise BytepairError(
            f"{name}: {type(error).__name__}: {error}. Is the store there, and may it be written?"
        ) from error


@contextlib.contextmanager
def _full(folder: Path) -> Iterator[None]:
    """Say which folder has no room left, since an exception of `write` does not."""
    try:
        yield
    except OSError as error:
        if error.errno in {errno.ENOSPC, errno.EDQUOT} and error.filename is None:
            error.filename = str(folder)
        raise


def _absent(name: str) -> ArtifactError:
    return ArtifactError(f"{name}: no such file, though a receipt names it. Run again.")
