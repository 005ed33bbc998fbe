"""The one place that writes files, and the strict reader of the JSON we wrote.

A file is written whole to a temporary name in its own folder and then renamed over the old one:
whoever looks sees the old bytes or the new ones. JSON has one canonical layout, so equal values
are equal bytes on every machine.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO, Any

from bytepair.errors import ArtifactError, TextError

StrPath = str | os.PathLike[str]

_SEAL = "record_sha256"


def sha256(data: bytes | bytearray | memoryview) -> str:
    """The SHA-256 of `data` as 64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()


def decode_utf8(data: bytes, path: StrPath) -> str:
    """Decode strictly; a bad byte is a TextError that names the file, its offset and the byte."""
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise TextError(
            f"{os.fspath(path)}: not UTF-8: byte 0x{data[error.start]:02x} at byte offset "
            f"{error.start} ({error.reason}). Convert the file to UTF-8."
        ) from None


@contextlib.contextmanager
def replacing(path: StrPath) -> Iterator[IO[bytes]]:
    """A file to write to, which takes the place of the one at `path` when the block ends well.

    Its folder is made if need be. After an error, the file at `path` is what it was.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(
        prefix=f".{path.name}.", suffix=".tmp", dir=path.parent
    )
    try:
        with os.fdopen(descriptor, "wb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        Path(temporary).chmod(0o666 & ~_umask())  # mkstemp makes it 0600
        Path(temporary).replace(path)
    except BaseException as error:
        if isinstance(error, OSError) and error.errno and error.filename is None:  # a full disk
            error.filename = os.fspath(path)
        with contextlib.suppress(OSError):
            Path(temporary).unlink()
        raise


def write_bytes(path: StrPath, data: bytes | bytearray | memoryview) -> None:
    """Replace the file at `path` by `data` in one step; its folder is made if need be."""
    with replacing(path) as file:
        file.write(data)


def dump_json(value: Any, *, indent: int | None = 1) -> bytes:
    r"""The canonical JSON bytes of `value`: UTF-8, LF, one final LF, keys in the order given.

    >>> dump_json({"name": "café", "ids": [1, 2]}, indent=None)
    b'{"name": "caf\xc3\xa9", "ids": [1, 2]}\n'
    """
    text = json.dumps(value, ensure_ascii=False, allow_nan=False, indent=indent)
    return text.encode("utf-8") + b"\n"


def write_json(path: StrPath, value: Any) -> None:
    """Write `value` as canonical JSON."""
    write_bytes(path, dump_json(value))


def parse_json(data: bytes, path: StrPath) -> Any:
    """Parse JSON strictly: no BOM, no duplicate key, no NaN or Infinity, nothing after the value.

    Raises:
        ArtifactError: what is wrong, with the file's name.
    """
    if data.startswith(b"\xef\xbb\xbf"):
        raise ArtifactError(f"{os.fspath(path)}: starts with a byte order mark. Save it without.")

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        keys = dict(pairs)
        if len(keys) < len(pairs):
            names = [name for name, _ in pairs]
            twice = next(name for name in names if names.count(name) > 1)
            raise ArtifactError(f"{os.fspath(path)}: the key {twice!r} stands twice in one object.")
        return keys

    def refuse(constant: str) -> Any:
        raise ArtifactError(f"{os.fspath(path)}: {constant} is not a JSON number.")

    try:
        return json.loads(data.decode("utf-8"), object_pairs_hook=unique, parse_constant=refuse)
    except UnicodeDecodeError as error:
        raise ArtifactError(
            f"{os.fspath(path)}: not UTF-8: byte 0x{data[error.start]:02x} at byte offset "
            f"{error.start}."
        ) from None
    except json.JSONDecodeError as error:
        raise ArtifactError(
            f"{os.fspath(path)}: not JSON: {error}. The file is damaged or cut short."
        ) from None
    except ValueError as error:  # an integer of more digits than Python reads
        raise ArtifactError(f"{os.fspath(path)}: not ours: {error}.") from None
    except RecursionError:
        raise ArtifactError(f"{os.fspath(path)}: not ours: nested too deeply.") from None


def read_bytes(path: StrPath) -> bytes:
    """The bytes of a file that a stage before this one has made.

    Raises:
        ArtifactError: there is no such file.
    """
    try:
        return Path(path).read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        raise ArtifactError(
            f"{os.fspath(path)}: no such file. Run `dvc repro`, or `dvc pull` with a remote."
        ) from None


def read_json(path: StrPath) -> Any:
    """Read JSON that bytepair wrote; see parse_json for what is refused."""
    return parse_json(read_bytes(path), path)


def write_record(path: StrPath, record: dict[str, Any]) -> None:
    """Write a JSON object that ends with the hash of the rest of it, so that no byte can change.

    What a stage leaves for the next ones is such a record; its own hash covers it, and the hashes
    in it cover the files beside it.
    """
    write_bytes(path, record_bytes(record))


def record_bytes(record: dict[str, Any]) -> bytes:
    """The bytes that write_record writes."""
    return dump_json({**record, _SEAL: sha256(dump_json(record))})


def read_record(path: StrPath) -> dict[str, Any]:
    """Read what write_record wrote, without the hash.

    Raises:
        ArtifactError: the file is absent, or not every byte is as it was written.
    """
    return parse_record(read_bytes(path), path)


def parse_record(data: bytes, path: StrPath) -> dict[str, Any]:
    """The same for bytes that have been read; `path` is for the message."""
    record = parse_json(data, path)
    with contextlib.suppress(AttributeError, TypeError, ValueError):  # not what we would write
        seal = record.pop(_SEAL, None)
        if seal == sha256(dump_json(record)) and data == dump_json({**record, _SEAL: seal}):
            return record  # type: ignore[no-any-return]
    raise ArtifactError(
        f"{os.fspath(path)}: its {_SEAL} does not fit its content. The file was changed after it "
        "was made: delete its folder and run `dvc repro`."
    )


def read_verified(path: StrPath, expected_sha256: str) -> bytes:
    """The bytes of a file whose hash is on record.

    Raises:
        ArtifactError: the file is absent, or its bytes are not the recorded ones.
    """
    data = read_bytes(path)
    found = sha256(data)
    if found != expected_sha256:
        raise ArtifactError(
            f"{os.fspath(path)}: sha256 is {found}, but {expected_sha256} is on record. "
            "The file was changed after it was made: delete it and run `dvc repro`."
        )
    return data


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask
