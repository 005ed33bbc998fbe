"""sources.py: names that lead to one file, and servers that give less than they should."""

import http.server
import re
import threading
from email.utils import formatdate
from pathlib import Path

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from bytepair.corpora import sources
from bytepair.corpora.shards import make_manifest, read_shard
from bytepair.corpora.sources import find_shards, shard_path
from bytepair.errors import CorpusError, FetchError
from bytepair.shard_params import ReadRules
from shards import json_lines

RULES = ReadRules()
DATA = json_lines({"text": f"line {n}"} for n in range(20_000))


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sources, "PAUSES", (0.01, 0.01))
    monkeypatch.setattr(sources, "BLOCK", 1 << 16)
    Path("web").mkdir()
    Path("web/a.txt").write_bytes(b"x")


# One file, one name


def test_a_file_by_two_names_is_refused(tmp_path):
    Path("link").symlink_to("web")
    for other in (
        "web/../web/a.txt",
        f"{tmp_path}/web/*",
        f"file://{tmp_path}/web/a.txt",
        "link/*",
    ):
        with pytest.raises(CorpusError) as refused:
            find_shards(["web/a.txt", other])
        assert str(refused.value).startswith("fetch.shards: ")
        assert "'web/a.txt'" in str(refused.value)
        assert str(refused.value).endswith(" are one file. Name it once.")
    assert find_shards(["./web/*", "web//a.txt", "file://web/a.txt"]) == ["web/a.txt"]
    Path("web/b.txt").symlink_to("a.txt")  # as DVC does with files of the same bytes
    Path("web/c.txt").hardlink_to("web/a.txt")
    assert find_shards(["web/*"]) == ["web/a.txt", "web/b.txt", "web/c.txt"]


def test_links_that_lead_in_a_circle_end_the_search_at_once():
    for name in ("one", "two", "three"):  # 3^40 paths
        Path(f"web/{name}").symlink_to(".")
    with pytest.raises(CorpusError, match=r"'web/.*a\.txt' are one file\. Name it once\."):
        find_shards(["web/**/*.txt"])


def test_a_link_that_leads_nowhere_is_no_missing_shard():
    Path("web/b.txt").symlink_to("gone.txt")
    for pattern in ("web/*.txt", "web/b.txt", "web/**"):
        with pytest.raises(CorpusError) as refused:
            find_shards([pattern])
        assert str(refused.value) == (
            "web/b.txt: a link to gone.txt, which is not there. Restore that file, or delete the "
            "link."
        )


def test_urls_of_this_machine_are_its_paths(tmp_path):
    Path("web/b.txt").symlink_to("a.txt")
    Path("web/.hidden.txt").write_bytes(b"x")
    expected = [f"{tmp_path}/web/a.txt", f"{tmp_path}/web/b.txt"]
    for scheme in ("", "file://", "local://"):
        assert find_shards([f"{scheme}{tmp_path}/web/*.txt"]) == expected


def test_the_same_path_everywhere():
    urls = ["/data/a b.txt", "s3://bucket/data/a b.txt", "file:///data/a b.txt"]
    urls += [f"https://example.org/data/{name}.txt?key=1#x" for name in ("a%20b", "a b")]
    assert {shard_path(url) for url in urls} == {"data/a b.txt"}


class HostFileSystem(MemoryFileSystem):
    """Files of hosts, which are not in paths, as those of sftp and hdfs are."""

    protocol = "host"
    cachable = True

    @classmethod
    def _strip_protocol(cls, path):
        stripped = f"/{path.partition('://')[2].partition('/')[2]}" if "://" in path else path
        return stripped.rstrip("/")

    @staticmethod
    def _get_kwargs_from_urls(url):
        return {"host": url.partition("://")[2].partition("/")[0]}


def test_a_host_stays_in_the_urls_that_a_pattern_stands_for():
    fsspec.register_implementation("host", HostFileSystem, clobber=True)
    MemoryFileSystem().pipe("/dir/a.txt", b"x")
    assert find_shards(["host://one/dir/*.txt", "host://two/dir/a.txt"]) == [
        "host://one/dir/a.txt",
        "host://two/dir/a.txt",
    ]


# Servers


class Server:
    """What a server says, to be changed while it runs."""

    data = DATA
    time = 1_700_000_000
    requests = 0

    def part(self, first, last):
        """The bytes of a range."""
        return self.data[first : last + 1]


@pytest.fixture
def server():
    """A server by http without ETags, and the URL of a file there."""
    state = Server()

    class Handler(http.server.BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"
        disable_nagle_algorithm = True

        def do_GET(self):
            state.requests += 1
            asked = re.match(r"bytes=(\d+)-(\d+)", self.headers.get("Range", ""))
            data = state.part(*map(int, asked.groups())) if asked else state.data
            self.send_response(206 if asked else 200)
            self.send_header("Last-Modified", formatdate(state.time, usegmt=True))
            if "chunked" in self.path:
                self.send_header("Transfer-Encoding", "chunked")
            else:
                self.send_header("Content-Length", len(data))
            self.end_headers()
            if self.command == "GET":
                self.wfile.write(b"0\r\n\r\n" if "chunked" in self.path else data)

        do_HEAD = do_GET  # noqa: N815  the name that http.server calls

        def log_message(self, *args):
            pass

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield state, f"http://127.0.0.1:{server.server_address[1]}/a.jsonl"
        finally:
            server.shutdown()
            thread.join()


@pytest.mark.parametrize("kept", [0, 70_000, len(DATA) - 1])
def test_a_server_that_gives_too_little_is_no_end_of_a_file(server, kept, monkeypatch):
    state, url = server
    monkeypatch.setattr(state, "part", lambda first, last: DATA[first : min(last + 1, kept)])
    with pytest.raises(FetchError) as refused:
        make_manifest([url], RULES)
    assert str(refused.value).startswith(f"{url}: OSError: the server gives ")
    assert f" of {len(DATA):,} bytes, 3 times." in str(refused.value)


def test_a_shard_without_an_etag_that_is_overwritten_while_it_is_read(server):
    state, url = server
    (shard,) = make_manifest([url], RULES).shards
    assert shard.version.startswith("sha256:")
    assert len(list(read_shard(shard, RULES))) == 20_000
    reading = read_shard(shard, RULES)
    next(reading)
    state.data, state.time = DATA.replace(b"line", b"word"), state.time + 1
    with pytest.raises(CorpusError, match=r"a\.jsonl: the shard was changed while it was read"):
        list(reading)


def test_an_empty_shard_on_a_server(server):
    state, url = server
    state.data = b""
    with pytest.raises(CorpusError, match=r"there is no document in 1 shards"):
        make_manifest([url], RULES)


def test_a_server_that_does_not_say_how_large_a_shard_is(server):
    _, url = server
    url = url.replace("a.jsonl", "chunked/a.jsonl")
    with pytest.raises(FetchError) as refused:
        make_manifest([url], RULES)
    assert str(refused.value) == (
        f"{url}: the server does not say how large it is, or gives no parts of files. Copy the "
        "shard elsewhere."
    )


def test_what_is_asked_wrongly_is_asked_once(monkeypatch):
    monkeypatch.setattr(sources.time, "sleep", lambda _: pytest.fail("asked again"))
    for pattern in ("nope://a/*.txt", "memory://a/**.txt"):
        with pytest.raises(FetchError) as refused:
            find_shards([pattern])
        assert str(refused.value).startswith(f"{pattern}: ValueError: ")
        assert "times" not in str(refused.value)
