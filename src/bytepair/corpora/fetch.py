"""Retrieve a published file, and take its bytes only if the hashes in params.yaml allow it.

Two hashes answer two questions. The raw hash records a retrieval: a site may wrap the same text
anew at any time. The clean hash, of the text that strip takes out of it, is the corpus's identity.
So a file is taken if its stripped text has the pinned clean hash or, where no clean hash is
pinned, if its raw hash is pinned. A file that is on disk already must also be one seen before:
its raw hash is pinned, or recorded by the fetch that retrieved it.

Where the bytes came from is told to whoever runs the stage and is not written down: fetch.json is
the same for everyone who has the same raw.txt.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import tempfile
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from textwrap import indent
from typing import IO, TYPE_CHECKING, Any
from urllib.parse import urljoin, urlsplit

from bytepair.corpora.records import FETCH_RECORD, RAW, FileRecord
from bytepair.corpora.strip import strip
from bytepair.errors import ArtifactError, BytepairError, CorpusError, FetchError, TextError
from bytepair.files import read_record, write_bytes, write_record

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from bytepair.params import FetchParams, StripParams

MAX_BYTES = 1 << 30
RETRIES = 2  # after a broken connection or a server's fault; pooch waits one second, then two
TIMEOUT = (10, 30)  # seconds to connect, and between two packets
LOCAL_HOSTS = frozenset({"localhost", "127.0.0.1", "::1"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Fetched:
    """The file that is now raw.txt, and what strip makes of it."""

    raw: FileRecord
    clean: FileRecord
    origin: str | None
    """The source, as params name it; None if raw.txt was there already."""

    @property
    def pins(self) -> str:
        """The lines that pin this file; in quotes, for YAML takes some hex strings for floats."""
        return f'raw_sha256: ["{self.raw.sha256}"]\nclean_sha256: "{self.clean.sha256}"'

    def fits(self, pins: FetchParams) -> bool:
        """Whether the pins allow this file: the clean one decides, else the raw ones."""
        if pins.clean_sha256 is not None:
            return self.clean.sha256 == pins.clean_sha256
        return self.raw.sha256 in pins.raw_sha256


def fetch(
    params: FetchParams,
    strip_params: StripParams,
    raw_folder: Path,
    *,
    root: Path = Path(),
    cache: Path | None = None,
    force: bool = False,
) -> Fetched:
    """Have a raw.txt in `raw_folder` that the pins allow, with fetch.json beside it.

    A good raw.txt is kept untouched, and no network is needed. Otherwise the file is taken from
    the folder `cache`, or from the first source in params that has it; a source that is a path
    starts at `root` and stays inside. `force` takes the first text to be had, whatever the pins.

    Raises:
        FetchError: nothing was had that the pins allow, or there is no pin. The message has each
            source with its reason, expected and found hashes, and what to do. raw.txt is as it was.
    """
    _remove_leftovers(raw_folder)
    pinned = bool(params.raw_sha256) or params.clean_sha256 is not None
    pins = params if pinned and not force else None
    failures: list[str] = []
    if pins is not None and (raw_folder / RAW).exists():
        try:
            kept = _check_kept(raw_folder, pins, strip_params)
        except FetchError as error:
            failures.append(f"{RAW} on disk: {error}")
        else:
            _write_record(raw_folder, params, kept)
            return kept
    for origin, read in _sources(params, root, cache, raw_folder, trust_http=pins is not None):
        try:
            data = read()
            found = _check(data, origin, pins, strip_params)
        except (BytepairError, OSError, ValueError) as error:
            failures.append(f"{origin}: {error}")
            continue
        if not (pinned or force):
            raise FetchError(_unpinned(params, found))
        write_bytes(raw_folder / RAW, data)
        _write_record(raw_folder, params, found)
        return found
    raise FetchError(_exhausted(params, failures))


def _remove_leftovers(raw_folder: Path) -> None:
    """What a fetch that was killed has left: DVC keeps this folder, and would keep them too."""
    for path in raw_folder.glob(".*.tmp"):
        path.unlink()
    for folder in raw_folder.parent.glob(".fetch-*"):
        shutil.rmtree(folder)


def _check_kept(raw_folder: Path, pins: FetchParams, strip_params: StripParams) -> Fetched:
    """What raw.txt is, if it was seen before and the pins allow it; else a FetchError."""
    data = (raw_folder / RAW).read_bytes()
    raw = FileRecord.of(data)
    if raw.sha256 not in pins.raw_sha256 and raw != _recorded(raw_folder):
        raise FetchError(f"its sha256 {raw.sha256} is neither pinned nor the one fetch recorded")
    return _check(data, None, pins, strip_params)


def _recorded(raw_folder: Path) -> FileRecord | None:
    """The last fetch's record of raw.txt; a damaged one counts as none, for it is made anew."""
    try:
        return FileRecord.from_json(read_record(raw_folder / FETCH_RECORD).get("raw"), FETCH_RECORD)
    except ArtifactError:
        return None


def _check(
    data: bytes, origin: str | None, pins: FetchParams | None, strip_params: StripParams
) -> Fetched:
    """What `data` is, if it strips and fits the pins, when there are any.

    Raises:
        FetchError, CorpusError, TextError: expected and found hashes, or why it does not strip.
    """
    raw = FileRecord.of(data)
    try:
        text = strip(data, strip_params, path="the file").text
    except (CorpusError, TextError) as error:
        if pins is None:
            raise
        raise FetchError(f"{_compare('raw', raw, pins.raw_sha256)}; {error}") from None
    found = Fetched(raw=raw, clean=FileRecord.of(text), origin=origin)
    if pins is None or found.fits(pins):
        return found
    clean_pins = () if pins.clean_sha256 is None else (pins.clean_sha256,)
    changed = " Was `strip` changed?" if raw.sha256 in pins.raw_sha256 else ""
    raise FetchError(
        f"{_compare('raw', raw, pins.raw_sha256)}; {_compare('clean', found.clean, clean_pins)}."
        + changed
    )


def _compare(kind: str, found: FileRecord, pins: tuple[str, ...]) -> str:
    if found.sha256 in pins:
        verdict = "as pinned"
    else:
        verdict = f"expected {' or '.join(pins)}" if pins else "none is pinned"
    return f"{kind} sha256 is {found.sha256} ({found.size:,} bytes), {verdict}"


def _write_record(raw_folder: Path, params: FetchParams, found: Fetched) -> None:
    """Write fetch.json, unless it says so already."""
    path = raw_folder / FETCH_RECORD
    record = {
        "sources": list(params.sources),
        "raw": found.raw.as_json(),
        "clean": found.clean.as_json(),
    }
    with contextlib.suppress(ArtifactError):
        if read_record(path) == record:
            return
    write_record(path, record)


def _sources(
    params: FetchParams, root: Path, cache: Path | None, raw_folder: Path, *, trust_http: bool
) -> Iterator[tuple[str, Callable[[], bytes]]]:
    """Each place to look, in order: its name for messages, and what reads it."""
    if cache is not None:
        path = cache / params.file
        yield str(path), partial(_read_file, path)
    for source in params.sources:
        if "://" in source:
            yield source, partial(_download, source, raw_folder.parent, trust_http=trust_http)
        else:
            yield source, partial(_read_inside, root, source)


def _read_inside(root: Path, source: str) -> bytes:
    """The bytes of the file at the POSIX path `source`, which must lie inside `root`."""
    if source.startswith("/") or ".." in source.split("/") or "\\" in source or ":" in source:
        raise FetchError(
            "neither an https URL nor a path inside this project, such as data/sample/tales.txt"
        )
    path = (root / source).resolve()
    if not path.is_relative_to(root.resolve()):
        raise FetchError(f"leads out of this project, to {path}")
    return _read_file(path)


def _read_file(path: Path) -> bytes:
    if not path.is_file():
        raise FetchError("no such file")
    if path.stat().st_size > MAX_BYTES:
        raise FetchError(f"larger than {MAX_BYTES:,} bytes")
    return path.read_bytes()


def _download(url: str, scratch: Path, *, trust_http: bool) -> bytes:
    """The body that a GET of `url` gives, by way of a temporary folder in `scratch`."""
    _check_url(url, trust_http=trust_http)
    import pooch

    def check(response: Any, **_: object) -> None:
        if response.is_redirect:
            target = urljoin(response.url, response.headers["location"])
            _check_url(target, trust_http=trust_http and urlsplit(url).scheme == "http")
        elif 400 <= response.status_code < 500:  # asking again would not help
            response.close()
            raise FetchError(f"the server answered {response.status_code} {response.reason}")

    get = pooch.HTTPDownloader(
        progressbar=sys.stderr.isatty(),
        chunk_size=1 << 16,
        timeout=TIMEOUT,
        hooks={"response": check},
    )

    def download(url: str, output_file: str, _: object) -> None:
        with Path(output_file).open("wb") as file:
            get(url, _Limited(file, MAX_BYTES), None)

    pooch.get_logger().setLevel("ERROR")  # it would print our temporary paths
    scratch.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix=".fetch-", dir=scratch) as folder:
        store = pooch.Pooch(
            folder, base_url="", registry={RAW: None}, urls={RAW: url}, retry_if_failed=RETRIES
        )
        try:
            return Path(store.fetch(RAW, downloader=download)).read_bytes()
        except OSError as error:  # all that requests raises is one
            short = "a short read: " if "IncompleteRead" in str(error) else ""
            raise FetchError(f"{short}{error}") from None


def _check_url(url: str, *, trust_http: bool) -> None:
    """Refuse http where no pin would show a forged answer, and all else but https."""
    parts = urlsplit(url)
    if parts.scheme == "https":
        return
    if parts.scheme == "http" and (trust_http or parts.hostname in LOCAL_HOSTS):
        return
    raise FetchError(
        f"{url} is not https; http is taken from this machine, and elsewhere only while a pin "
        "decides and https was not asked for"
    )


class _Limited:
    """What pooch writes to, with an end: the size that a server states need not be true."""

    def __init__(self, file: IO[bytes], limit: int) -> None:
        self.file = file
        self.left = limit

    def write(self, data: bytes) -> None:
        self.left -= len(data)
        if self.left < 0:
            raise FetchError(f"larger than {MAX_BYTES:,} bytes")
        self.file.write(data)

    def flush(self) -> None:
        """Leave it to close: pooch asks for one after each chunk."""


def _unpinned(params: FetchParams, found: Fetched) -> str:
    return (
        f"{params.file}: params.yaml does not say which bytes are right. {found.origin} gives "
        f"{found.raw.size:,} bytes, {found.clean.size:,} when stripped. If they are, put these "
        f"lines under `fetch`:\n{indent(found.pins, ' ' * 6)}"
    )


def _exhausted(params: FetchParams, failures: list[str]) -> str:
    reasons = "".join(f"\n  {failure}" for failure in failures)
    return (
        f"{params.file} could not be had:{reasons}\n"
        f"If you have a copy, put it as {params.file} into a folder and set the environment "
        "variable CORPUS_CACHE to that folder. To take a new text whatever the pins say, run the "
        "script by hand with --force."
    )
