"""corpora/fetch.py: case C01 against a real server on loopback, and the rules of acceptance."""

import json
import os
import subprocess
import sys
import threading
from dataclasses import dataclass, replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from types import SimpleNamespace

import pytest
import yaml

from bytepair.corpora import fetch as module
from bytepair.corpora.fetch import fetch
from bytepair.corpora.strip import strip_file
from bytepair.errors import CorpusError, FetchError
from bytepair.files import read_record, sha256, write_record
from bytepair.params import FetchParams, StripParams

FILES = Path(__file__).parent / "files"
STAGES = Path(__file__).parents[1] / "stages"
EXPECTED = json.loads((FILES / "expected.json").read_bytes())
BOOK = (FILES / "pg00_plain.txt").read_bytes()
CRLF_BOOK = (FILES / "pg08_all_crlf.txt").read_bytes()  # the same text, wrapped anew
OTHER_BOOK = (FILES / "pg18_credits_inside.txt").read_bytes()
HTML = (FILES / "pg20_html_error_page.txt").read_bytes()
RAW_PIN = EXPECTED["pg00_plain.txt"]["sha256_in"]
CLEAN_PIN = EXPECTED["pg00_plain.txt"]["body_sha256"]
MARKERS = StripParams(
    start="*** START OF THE PROJECT GUTENBERG EBOOK",
    end="*** END OF THE PROJECT GUTENBERG EBOOK",
)


@dataclass
class Answer:
    """What the server says: `length` is the Content-Length if it is not true."""

    body: bytes = b""
    status: int = 200
    length: int | None = None
    location: str | None = None
    hang_up: bool = False


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        answers = self.server.answers[self.path]
        self.server.asked.append(self.path)
        answer = answers.pop(0) if len(answers) > 1 else answers[0]
        if answer.hang_up:
            return
        self.send_response(answer.status)
        if answer.location:
            self.send_header("Location", answer.location)
        self.send_header("Content-Length", str(answer.length or len(answer.body)))
        self.end_headers()
        self.wfile.write(answer.body)

    def log_message(self, *args):
        """Say nothing."""


@pytest.fixture
def serve(monkeypatch):
    """A function that serves answers, one path per name, and gives the base URL."""
    monkeypatch.setenv("no_proxy", "127.0.0.1,localhost")
    monkeypatch.setenv("NO_PROXY", "127.0.0.1,localhost")
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.answers = {}
        server.asked = []
        server.url = f"http://127.0.0.1:{server.server_address[1]}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()

        def add(name, *answers):
            server.answers[f"/{name}"] = list(answers)
            return f"{server.url}/{name}"

        yield SimpleNamespace(add=add, asked=server.asked)
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def waits(monkeypatch):
    """Pooch's waits between attempts, noted instead of waited for."""
    seconds = []
    monkeypatch.setattr("pooch.core.time", SimpleNamespace(sleep=seconds.append))
    return seconds


@pytest.fixture
def raw(tmp_path):
    return tmp_path / "book" / "raw"


def pinned(*sources, raw_sha256=(RAW_PIN,), clean_sha256=None):
    return FetchParams(
        sources=sources, file="book.txt", raw_sha256=raw_sha256, clean_sha256=clean_sha256
    )


def put(folder, data, recorded=None):
    """A raw.txt on disk and, if asked for, the record of one."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.joinpath("raw.txt").write_bytes(data)
    if recorded is not None:
        record = {"raw": {"sha256": sha256(recorded), "bytes": len(recorded)}}
        write_record(folder / "fetch.json", record)


def contents(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def refuse(params, raw, **options):
    """The message of a fetch that must fail and leave every file as it was, and no other."""
    before = contents(raw.parent.parent)
    with pytest.raises(FetchError) as caught:
        fetch(params, options.pop("strip_params", MARKERS), raw, **options)
    assert contents(raw.parent.parent) == before
    assert not raw.parent.exists() or not list(raw.parent.glob(".*"))
    return str(caught.value)


ON_DISK = pytest.mark.parametrize("on_disk", [None, b"whatever was here before\n"])


def test_c01_the_pinned_bytes_are_taken_and_kept(serve, raw):
    params = pinned(serve.add("book.txt", Answer(BOOK)))
    found = fetch(params, MARKERS, raw)
    assert sha256((raw / "raw.txt").read_bytes()) == RAW_PIN
    assert found.origin == params.sources[0]
    assert found.clean.sha256 == CLEAN_PIN
    assert read_record(raw / "fetch.json") == {
        "sources": list(params.sources),
        "raw": {"sha256": RAW_PIN, "bytes": 357},
        "clean": {"sha256": CLEAN_PIN, "bytes": 86},
    }
    assert sorted(contents(raw.parent)) == ["raw/fetch.json", "raw/raw.txt"]
    os.utime(raw / "raw.txt", ns=(10**18, 10**18))
    os.utime(raw / "fetch.json", ns=(10**18, 10**18))
    assert fetch(params, MARKERS, raw) == replace(found, origin=None)
    assert (raw / "raw.txt").stat().st_mtime_ns == 10**18
    assert (raw / "fetch.json").stat().st_mtime_ns == 10**18
    assert serve.asked == ["/book.txt"]


def test_c01_what_a_killed_fetch_left_is_removed(serve, raw):
    params = pinned(serve.add("book.txt", Answer(BOOK)))
    fetch(params, MARKERS, raw)
    (raw / ".raw.txt.x1.tmp").write_bytes(b"half")
    (raw.parent / ".fetch-x1").mkdir()
    (raw.parent / ".fetch-x1" / "raw.txt").write_bytes(b"half")
    fetch(params, MARKERS, raw)
    assert sorted(contents(raw.parent)) == ["raw/fetch.json", "raw/raw.txt"]


@ON_DISK
def test_c01_an_error_page_with_status_200_is_refused(serve, raw, on_disk):
    if on_disk:
        put(raw, on_disk)
    url = serve.add("book.txt", Answer(HTML))
    message = refuse(pinned(url), raw)
    assert f"raw sha256 is {sha256(HTML)} (93 bytes), expected {RAW_PIN}" in message
    assert "no line starts with '*** START OF" in message


@ON_DISK
def test_c01_an_error_status_is_shown_and_not_asked_for_again(serve, raw, on_disk):
    if on_disk:
        put(raw, on_disk)
    url = serve.add("book.txt", Answer(HTML, status=403))
    assert f"{url}: the server answered 403 Forbidden" in refuse(pinned(url), raw)
    assert serve.asked == ["/book.txt"]


@ON_DISK
def test_c01_a_short_read_is_said_to_be_one(serve, raw, waits, on_disk):
    if on_disk:
        put(raw, on_disk)
    url = serve.add("book.txt", Answer(BOOK[:100], length=len(BOOK)))
    message = refuse(pinned(url), raw)
    assert f"{url}: a short read: " in message
    assert "100 bytes read, 257 more expected" in message
    assert len(serve.asked) == 3
    assert waits == [1, 2]


def test_c01_a_dropped_connection_is_refused(serve, raw):
    url = serve.add("book.txt", Answer(hang_up=True))
    assert f"{url}: ('Connection aborted" in refuse(pinned(url), raw)
    assert len(serve.asked) == 3


def test_c01_a_download_cut_short_does_not_poison_later_runs(serve, raw):
    put(raw, BOOK[:100])
    fetch(pinned(serve.add("book.txt", Answer(BOOK))), MARKERS, raw)
    assert (raw / "raw.txt").read_bytes() == BOOK


def test_a_server_that_recovers_is_asked_again(serve, raw, waits):
    url = serve.add("book.txt", Answer(HTML, status=500), Answer(BOOK))
    fetch(pinned(url), MARKERS, raw)
    assert (raw / "raw.txt").read_bytes() == BOOK
    assert waits == [1]


def test_a_server_that_does_not_recover_is_given_up(serve, raw):
    url = serve.add("book.txt", Answer(HTML, status=500))
    assert f"{url}: 500 Server Error" in refuse(pinned(url), raw)
    assert len(serve.asked) == 3


def test_sources_are_tried_in_order(serve, raw):
    sources = (
        serve.add("gone", Answer(status=404)),
        serve.add("wrong", Answer(OTHER_BOOK)),
        serve.add("right", Answer(BOOK)),
        serve.add("never", Answer(BOOK)),
    )
    assert fetch(pinned(*sources), MARKERS, raw).origin == sources[2]
    assert serve.asked == ["/gone", "/wrong", "/right"]
    assert read_record(raw / "fetch.json")["sources"] == list(sources)


def test_a_failure_lists_each_source_and_the_way_out(serve, raw, tmp_path):
    url = serve.add("gone", Answer(status=404))
    put(raw, HTML)
    message = refuse(pinned(url, "no/such.txt"), raw, root=tmp_path, cache=tmp_path / "cache")
    assert message.splitlines()[:5] == [
        "book.txt could not be had:",
        f"  raw.txt on disk: its sha256 {sha256(HTML)} is neither pinned nor the one fetch recorded",
        f"  {tmp_path / 'cache' / 'book.txt'}: no such file",
        f"  {url}: the server answered 404 Not Found",
        "  no/such.txt: no such file",
    ]
    assert (
        "put it as book.txt into a folder and set the environment variable CORPUS_CACHE" in message
    )


def test_no_network_fails_in_words(serve, raw):
    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as closed:
        port = closed.server_address[1]
    assert "refused" in refuse(pinned(f"http://127.0.0.1:{port}/book.txt"), raw)


def test_a_new_wrapping_of_the_pinned_text_is_taken_and_then_kept(serve, raw):
    url = serve.add("book.txt", Answer(CRLF_BOOK))
    params = pinned(url, clean_sha256=CLEAN_PIN)
    assert fetch(params, MARKERS, raw).origin == url
    assert (raw / "raw.txt").read_bytes() == CRLF_BOOK
    assert (
        strip_file(raw, raw.parent / "clean", MARKERS).text.decode()
        == EXPECTED["pg00_plain.txt"]["body"]
    )
    serve.asked.clear()
    assert fetch(params, MARKERS, raw).origin is None
    assert fetch(replace(params, raw_sha256=()), MARKERS, raw).origin is None
    assert serve.asked == []


def test_a_changed_file_on_disk_is_not_taken_for_a_new_wrapping(raw, tmp_path):
    put(raw, CRLF_BOOK, recorded=BOOK)
    params = pinned("book.txt", clean_sha256=CLEAN_PIN)
    assert "neither pinned nor the one fetch recorded" in refuse(params, raw, root=tmp_path)
    (tmp_path / "book.txt").write_bytes(BOOK)
    fetch(params, MARKERS, raw, root=tmp_path)
    assert (raw / "raw.txt").read_bytes() == BOOK


def test_a_raw_pin_alone_is_not_overruled_by_the_record(raw, tmp_path):
    put(raw, CRLF_BOOK, recorded=CRLF_BOOK)
    message = refuse(pinned("book.txt"), raw, root=tmp_path)
    assert f"raw sha256 is {sha256(CRLF_BOOK)} (371 bytes), expected {RAW_PIN}" in message
    assert f"clean sha256 is {CLEAN_PIN} (86 bytes), none is pinned" in message


def test_a_pinned_file_that_strips_to_another_text_is_refused(raw, tmp_path):
    (tmp_path / "book.txt").write_bytes(BOOK)
    put(raw, BOOK)
    params = pinned("book.txt", clean_sha256=CLEAN_PIN)
    message = refuse(params, raw, root=tmp_path, strip_params=replace(MARKERS, end=None))
    assert f"raw sha256 is {RAW_PIN} (357 bytes), as pinned; clean sha256 is" in message
    assert f"expected {CLEAN_PIN}. Was `strip` changed?" in message


def test_one_of_several_raw_pins_is_enough(raw, tmp_path):
    (tmp_path / "book.txt").write_bytes(BOOK)
    params = pinned("book.txt", raw_sha256=("0" * 64, RAW_PIN))
    fetch(params, MARKERS, raw, root=tmp_path)
    assert "expected 0000" in refuse(
        replace(params, raw_sha256=("0" * 64, "1" * 64)), raw, root=tmp_path
    )


@pytest.mark.parametrize("record", [b"", b"[]", b"{}", b'{"raw": 1}', b'"raw"', b"\xff"])
def test_a_damaged_record_is_made_anew(raw, record):
    put(raw, BOOK)
    (raw / "fetch.json").write_bytes(record)
    fetch(pinned(), MARKERS, raw)
    assert read_record(raw / "fetch.json")["raw"]["sha256"] == RAW_PIN
    (raw / "fetch.json").write_bytes(record)
    assert "nor the one fetch recorded" in refuse(
        pinned(raw_sha256=(), clean_sha256=CLEAN_PIN), raw
    )


def test_without_pins_both_hashes_are_printed_to_paste_and_nothing_is_written(raw, tmp_path):
    (tmp_path / "book.txt").write_bytes(BOOK)
    params = pinned("book.txt", raw_sha256=())
    message = refuse(params, raw, root=tmp_path)
    assert not raw.exists()
    lines = "\n".join(message.splitlines()[-2:])
    assert yaml.safe_load(lines) == {"raw_sha256": [RAW_PIN], "clean_sha256": CLEAN_PIN}
    put(raw, BOOK, recorded=BOOK)
    assert lines in refuse(params, raw, root=tmp_path)


def test_pins_that_yaml_would_read_as_a_number_are_quoted():
    record = replace(module.FileRecord.of(b""), sha256="1e" + "0" * 62)
    found = module.Fetched(raw=record, clean=record, origin=None)
    pins = yaml.safe_load(found.pins)
    assert pins == {"raw_sha256": [record.sha256], "clean_sha256": record.sha256}


@pytest.mark.parametrize("pins", [{}, {"raw_sha256": ()}, {"clean_sha256": CLEAN_PIN}])
def test_force_takes_a_new_text(raw, tmp_path, pins):
    put(raw, BOOK, recorded=BOOK)
    (tmp_path / "book.txt").write_bytes(OTHER_BOOK)
    params = pinned("book.txt", **pins)
    found = fetch(params, MARKERS, raw, root=tmp_path, force=True)
    assert (raw / "raw.txt").read_bytes() == OTHER_BOOK
    assert read_record(raw / "fetch.json")["raw"]["sha256"] == sha256(OTHER_BOOK)
    pasted = replace(params, raw_sha256=(found.raw.sha256,), clean_sha256=found.clean.sha256)
    assert fetch(pasted, MARKERS, raw).origin is None
    refuse(params, raw)


def test_force_does_not_take_what_is_not_a_text(raw, tmp_path):
    (tmp_path / "book.txt").write_bytes(HTML)
    assert "book.txt: the file: no line" in refuse(
        pinned("book.txt"), raw, root=tmp_path, force=True
    )


def test_the_cache_comes_first(raw, tmp_path, monkeypatch):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "book.txt").write_bytes(BOOK)
    monkeypatch.chdir(tmp_path)
    params = pinned("no/such.txt")
    assert fetch(params, MARKERS, raw, cache=Path("cache")).origin == str(Path("cache/book.txt"))
    assert str(tmp_path) not in (raw / "fetch.json").read_text(encoding="utf-8")
    assert "cache" not in (raw / "fetch.json").read_text(encoding="utf-8")


def test_a_wrong_file_in_the_cache_is_passed_over(raw, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "book.txt").write_bytes(HTML)
    (tmp_path / "other.txt").write_bytes(BOOK)
    found = fetch(pinned("other.txt"), MARKERS, raw, root=tmp_path, cache=tmp_path / "cache")
    assert found.origin == "other.txt"


def test_the_record_does_not_depend_on_who_gave_the_bytes(serve, tmp_path):
    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "book.txt").write_bytes(BOOK)
    (tmp_path / "book.txt").write_bytes(BOOK)
    sources = (serve.add("book.txt", Answer(BOOK), Answer(status=404)), "book.txt")
    for number, cache in enumerate([None, None, tmp_path / "cache"]):
        fetch(pinned(*sources), MARKERS, tmp_path / str(number), root=tmp_path, cache=cache)
    assert len({(tmp_path / str(number) / "fetch.json").read_bytes() for number in range(3)}) == 1
    assert serve.asked == ["/book.txt", "/book.txt"]


@pytest.mark.parametrize(
    "source",
    ["/book.txt", "../book.txt", "a/../../book.txt", "a\\book.txt", "C:book.txt", "file:book.txt"],
)
def test_a_path_that_is_not_inside_the_project_is_refused(raw, tmp_path, source):
    root = tmp_path / "root" / "project"
    (root / "a").mkdir(parents=True)
    for folder in (tmp_path / "root", root, root / "a"):
        (folder / "book.txt").write_bytes(BOOK)
    message = refuse(pinned(source), raw, root=root)
    assert f"{source}: neither an https URL nor a path inside this project" in message


def test_a_link_out_of_the_project_is_refused(raw, tmp_path):
    root = tmp_path / "project"
    root.mkdir()
    (tmp_path / "book.txt").write_bytes(BOOK)
    try:
        (root / "link").symlink_to(tmp_path, target_is_directory=True)
    except OSError:
        pytest.skip("this user may not make symbolic links")
    assert "leads out of this project" in refuse(pinned("link/book.txt"), raw, root=root)


@pytest.mark.parametrize("source", ["ftp://example.org/x", "file:///etc/hosts", "https+x://a/b"])
def test_other_protocols_are_refused(raw, source):
    assert f"{source}: {source} is not https" in refuse(pinned(source), raw)


@pytest.mark.parametrize("source", ["https://[/x", "http://127.0.0.1:port/x"])
def test_a_broken_url_is_a_reason_like_any_other(raw, source):
    assert f"  {source}: " in refuse(pinned(source), raw)


@pytest.mark.parametrize(
    ("params", "force"),
    [
        (pinned("http://example.invalid/x", raw_sha256=()), False),
        (pinned("http://example.invalid/x", raw_sha256=()), True),
        (pinned("http://example.invalid/x"), True),
    ],
)
def test_http_is_refused_where_no_pin_decides(raw, params, force):
    assert "http://example.invalid/x is not https" in refuse(params, raw, force=force)


@pytest.mark.parametrize("url", ["http://localhost:1/x", "http://127.0.0.1/x", "http://[::1]:80/x"])
def test_http_from_this_machine_is_taken(url):
    module._check_url(url, trust_http=False)


def test_redirects_are_followed(serve, raw):
    serve.add("there", Answer(BOOK))
    url = serve.add("here", Answer(status=302, location="/there"))
    assert fetch(pinned(url), MARKERS, raw).origin == url
    assert serve.asked == ["/here", "/there"]


def test_a_redirect_to_http_is_refused_where_no_pin_decides(serve, raw):
    url = serve.add("here", Answer(status=302, location="http://example.invalid/x"))
    message = refuse(pinned(url), raw, force=True)
    assert f"{url}: http://example.invalid/x is not https" in message


@pytest.mark.parametrize(("scheme", "refused"), [("https", True), ("http", False)])
def test_a_redirect_from_https_to_http_is_refused(tmp_path, monkeypatch, scheme, refused):
    def downloader(*, hooks, **_):
        def get(url, output, _):
            hooks["response"](
                SimpleNamespace(
                    is_redirect=True, url=url, headers={"location": "http://b.invalid/"}
                )
            )
            output.write(BOOK)

        return get

    monkeypatch.setattr("pooch.HTTPDownloader", downloader)
    url = f"{scheme}://a.invalid/"
    if refused:
        with pytest.raises(FetchError, match=r"http://b\.invalid/ is not https"):
            module._download(url, tmp_path, trust_http=True)
    else:
        assert module._download(url, tmp_path, trust_http=True) == BOOK
    assert list(tmp_path.iterdir()) == []


def test_what_is_too_large_is_refused(serve, raw, tmp_path, monkeypatch):
    monkeypatch.setattr(module, "MAX_BYTES", 356)
    (tmp_path / "book.txt").write_bytes(BOOK)
    url = serve.add("book.txt", Answer(BOOK))
    message = refuse(pinned(url, "book.txt"), raw, root=tmp_path)
    assert message.count("larger than 356 bytes") == 2
    assert len(serve.asked) == 1
    monkeypatch.setattr(module, "MAX_BYTES", 357)
    fetch(pinned(url), MARKERS, raw)


def test_strip_holds_raw_to_the_record_of_fetch(raw, tmp_path):
    (tmp_path / "book.txt").write_bytes(BOOK)
    fetch(pinned("book.txt"), MARKERS, raw, root=tmp_path)
    assert strip_file(raw, tmp_path / "clean", MARKERS).start_line == 5
    (raw / "raw.txt").write_bytes(CRLF_BOOK)
    with pytest.raises(ValueError, match=r"raw\.txt: sha256 is"):
        strip_file(raw, tmp_path / "clean", MARKERS)


def test_pooch_is_imported_only_to_download():
    code = "import sys, bytepair.corpora.fetch; sys.exit('pooch' in sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)


def test_fetch_error_is_no_value_error():
    assert not issubclass(FetchError, CorpusError)


PARAMS = r"""
corpora:
  book:
    fetch: {sources: [no/such.txt], file: book.txt, raw_sha256: ["%s"]}
    strip: {start: "*** START OF THE PROJECT", end: "*** END OF THE PROJECT"}
    split: {by: headings, pattern: '^(I\.|It) ', expect: ["I.", It], val: [It]}
"""


def test_c01_the_scripts_from_the_cache_to_the_splits(tmp_path):
    def run(script, *options):
        return subprocess.run(
            [sys.executable, STAGES / script, "book", *options],
            check=False,
            cwd=tmp_path,
            env={**os.environ, "CORPUS_CACHE": "cache"},
            capture_output=True,
            encoding="utf-8",
        )

    (tmp_path / "cache").mkdir()
    (tmp_path / "cache" / "book.txt").write_bytes(BOOK)
    (tmp_path / "params.yaml").write_text(PARAMS % ("0" * 64), encoding="utf-8")
    refused = run("fetch.py")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert refused.stderr.startswith("Error: book.txt could not be had:\n  ")
    assert not (tmp_path / "data" / "corpora" / "book" / "raw").exists()
    assert run("fetch.py", "--force").stdout.splitlines()[1:] == [
        f'raw_sha256: ["{RAW_PIN}"]',
        f'clean_sha256: "{CLEAN_PIN}"',
    ]
    (tmp_path / "params.yaml").write_text(PARAMS % RAW_PIN.upper(), encoding="utf-8")
    assert run("fetch.py").stdout == "book: kept, 357 bytes, 86 when stripped\n"
    assert run("strip.py").stdout == "book: 86 bytes, from line 5 to line 11\n"
    assert run("split.py").stdout == (
        "book: train 73 bytes (documents: 1), val 13 bytes (documents: 1); 0 bytes dropped\n"
    )
    (tmp_path / "params.yaml").write_text(PARAMS % RAW_PIN[1:], encoding="utf-8")
    assert "expected a sha256, 64 hex digits" in run("fetch.py").stderr


def test_sherlock_comes_from_the_cache_by_its_clean_hash(corpus_cache, raw):
    path = corpus_cache("pg1661.txt")
    params = FetchParams(
        sources=("https://www.gutenberg.org/cache/epub/1661/pg1661.txt",),
        file="pg1661.txt",
        raw_sha256=(),
        clean_sha256="3552d466d95a92fb58e96bbfabbfc02370d359ac95933b5feafe4ebaf3f243b3",
    )
    found = fetch(params, MARKERS, raw, cache=path.parent)
    assert found.clean.size == 575_804
    assert fetch(params, MARKERS, raw).origin is None
