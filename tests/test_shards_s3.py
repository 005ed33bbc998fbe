"""Shards behind a real S3 API, and behind http, on this machine."""

import gc
import subprocess
import sys
from pathlib import Path

import pytest
import s3fs

from bytepair.corpora import sources
from bytepair.corpora.manifest import Manifest
from bytepair.corpora.shard_documents import Document
from bytepair.corpora.shards import make_manifest, read_shard
from bytepair.corpora.sources import find_shards
from bytepair.errors import CorpusError, FetchError
from bytepair.shard_params import ReadRules
from s3 import ENVIRONMENT, client, failing_proxy, s3_server
from shards import COMPRESS, json_lines, write_parquet

RULES = ReadRules(id="url", separator="|")


@pytest.fixture(scope="module")
def server():
    with s3_server() as port:
        yield port


@pytest.fixture
def use(monkeypatch):
    """Make s3:// the server at a port."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)

    def use(port):
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        s3fs.S3FileSystem.clear_instance_cache()

    yield use
    s3fs.S3FileSystem.clear_instance_cache()
    gc.collect()


@pytest.fixture
def bucket(server, use, request_name):
    """A bucket with shards of every format; gives its name and what was put."""
    use(server)
    client(server).create_bucket(Bucket=request_name)
    objects = shards()
    for key, data in objects.items():
        put(server, request_name, key, data)
    return request_name, objects


@pytest.fixture
def request_name(request):
    """A bucket's name for each test."""
    return "b-" + str(abs(hash(request.node.name)))


def put(server, bucket, key, data):
    client(server).put_object(Bucket=bucket, Key=key, Body=data, ACL="public-read")


def shards():
    found = {}
    for number, packed in enumerate(COMPRESS):
        records = [{"text": f"t{number} {n}", "url": f"u{number}-{n}"} for n in range(10)]
        found[f"web/{number}.jsonl{packed}"] = COMPRESS[packed](json_lines(records))
        found[f"web/sub/{number}.txt{packed}"] = COMPRESS[packed](b"one|two|three")
    path = Path("a.parquet")
    write_parquet(path, {"text": ["a", "b"], "url": ["pa", "pb"]})
    found["web/a.parquet"] = path.read_bytes()
    return found


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sources, "PAUSES", (0.01,) * len(sources.PAUSES))


def documents(manifest):
    return [list(read_shard(shard, manifest.rules)) for shard in manifest.shards]


def test_finding_and_reading(bucket, server):
    name, objects = bucket
    assert find_shards([f"s3://{name}/web/**"]) == sorted(f"s3://{name}/{key}" for key in objects)
    assert find_shards([f"s3://{name}/web/*.jsonl.*"]) == [
        f"s3://{name}/web/{n}.jsonl{packed}" for n, packed in enumerate(COMPRESS) if packed
    ]
    assert find_shards([f"s3://{name}/web/a.parquet"]) == [f"s3://{name}/web/a.parquet"]
    remote = make_manifest([f"s3://{name}/web/**"], RULES)
    assert all(shard.version.startswith("etag:") for shard in remote.shards)
    for key, data in objects.items():
        path = Path(key)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    local = make_manifest(["web/**/*.*"], RULES)
    assert documents(remote) == documents(local)  # with the same ids, so on the same sides
    assert (remote.documents, remote.bytes) == (local.documents, local.bytes) == (67, 257)
    paths = sorted(f"http://127.0.0.1:{server}/{name}/{key}" for key in objects)
    by_http = make_manifest(paths, RULES)
    assert [shard.version for shard in by_http.shards] == [shard.version for shard in remote.shards]
    assert by_http.documents == 67
    remote.save("manifest.json")
    assert documents(Manifest.load("manifest.json")) == documents(remote)


def test_keys_that_look_like_patterns_and_what_no_wildcard_stands_for(server, use, request_name):
    use(server)
    client(server).create_bucket(Bucket=request_name)
    url = f"s3://{request_name}"
    keys = ["a b.txt", "b[1].txt", "what?.txt", "whats.txt", "p%20q.txt", "é#1.txt"]
    for key in [*keys, ".hidden.txt", "sub/.git/x.txt"]:
        put(server, request_name, f"web/{key}", key.encode())
    put(server, request_name, "web/folder/", b"")
    expected = sorted(f"{url}/web/{key}" for key in keys)
    assert find_shards([f"{url}/web/*"]) == find_shards([f"{url}/web/**"]) == expected
    assert find_shards([f"{url}/web/what?.txt", f"{url}/web/b[1].txt"]) == [
        f"{url}/web/b[1].txt",
        f"{url}/web/what?.txt",
    ]
    assert find_shards([f"{url}/web/.*.txt"]) == [f"{url}/web/.hidden.txt"]
    found = make_manifest(expected, ReadRules())
    assert [[d.id for d in of_shard] for of_shard in documents(found)] == [
        [f"web/{key}:1"] for key in sorted(keys)
    ]
    with pytest.raises(CorpusError) as refused:
        find_shards([f"{url}/web/a*.txt", f"s3a://{request_name}/web/a b.txt"])
    assert str(refused.value) == (
        f"fetch.shards: '{url}/web/a b.txt' and 's3a://{request_name}/web/a b.txt' are one file. "
        "Name it once."
    )


def test_what_is_not_there(bucket, monkeypatch):
    name, _ = bucket
    for pattern in (f"s3://{name}/nothing/*.txt", f"s3://{name}-2/*.txt"):
        with pytest.raises((CorpusError, FetchError)) as refused:
            find_shards([pattern])
        assert pattern in str(refused.value)
    with pytest.raises(FetchError, match=rf"^s3://{name}/web/9\.txt: FileNotFoundError: "):
        make_manifest([f"s3://{name}/web/9.txt"], RULES)
    asked = []
    monkeypatch.setattr(sources.time, "sleep", asked.append)
    with pytest.raises(FetchError, match=r"^nope://a/b\.txt: ValueError: Protocol not known: nope"):
        make_manifest(["nope://a/b.txt"], RULES)
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.delenv(name)
    s3fs.S3FileSystem.clear_instance_cache()
    with pytest.raises(
        FetchError, match=r"credentials\. Set AWS_ACCESS_KEY_ID and .*FSSPEC_S3_ANON"
    ):
        find_shards([f"s3://{bucket[0]}/web/*"])
    assert not asked  # nothing here gets better by waiting


@pytest.mark.parametrize("method", ["GET", "HEAD"])
@pytest.mark.parametrize("status", [500])
def test_a_server_that_fails_twice_is_asked_again(bucket, server, use, method, status):
    name, objects = bucket
    expected = make_manifest([f"s3://{name}/web/**"], RULES)
    with failing_proxy(server, 2, method=method, status=status) as (port, failed):
        use(port)
        assert make_manifest([f"s3://{name}/web/**"], RULES) == expected
        assert +failed == {f"/{name}/{key}": 2 for key in objects}


def test_an_http_server_that_fails_twice_is_asked_again(bucket, server):
    name, objects = bucket
    with failing_proxy(server, 2) as (port, failed):
        found = make_manifest([f"http://127.0.0.1:{port}/{name}/{key}" for key in objects], RULES)
    assert found.documents == 67
    assert +failed == {f"/{name}/{key}": 2 for key in objects}


def test_a_server_that_fails_for_good(bucket, server):
    name, _ = bucket
    with failing_proxy(server, 1000) as (port, _), pytest.raises(FetchError) as refused:
        make_manifest([f"http://127.0.0.1:{port}/{name}/web/a.parquet"], RULES)
    assert str(refused.value).startswith(f"http://127.0.0.1:{port}/{name}/web/a.parquet: ")
    assert "500" in str(refused.value)
    assert "5 times" in str(refused.value)


def test_a_shard_that_was_overwritten_after_the_manifest(bucket, server):
    name, objects = bucket
    manifest = make_manifest([f"s3://{name}/web/**"], RULES)
    for key, data in objects.items():
        put(server, name, key, data[:-1] + b"x")  # of the same size
    for shard in manifest.shards:
        with pytest.raises(CorpusError) as refused:
            next(read_shard(shard, RULES))
        assert str(refused.value).startswith(
            f"{shard.url}: the shard was changed after the manifest was made: version etag:"
        )
    for key, data in objects.items():
        put(server, name, key, data)
    assert sum(map(len, documents(manifest))) == 67


@pytest.mark.parametrize("scheme", ["s3", "http"])
def test_a_shard_that_is_overwritten_while_it_is_read(bucket, server, monkeypatch, scheme):
    name, _ = bucket
    url = {"s3": f"s3://{name}", "http": f"http://127.0.0.1:{server}/{name}"}[scheme]
    monkeypatch.setattr(sources, "BLOCK", 1 << 16)
    data = json_lines({"text": "x" * 1000, "url": str(n)} for n in range(5_000))
    put(server, name, "web/long.jsonl", data)
    (shard,) = make_manifest([f"{url}/web/long.jsonl"], RULES).shards
    reading = read_shard(shard, RULES)
    assert next(reading) == Document("0", "0", "x" * 1000)
    put(server, name, "web/long.jsonl", data.replace(b"xx", b"yy"))
    with pytest.raises(CorpusError, match=r"long\.jsonl: the shard was changed while it was read"):
        list(reading)


def test_more_shards_are_listed_and_the_others_not_read_again(bucket, server, use):
    name, objects = bucket
    before = make_manifest([f"s3://{name}/web/**"], RULES)
    put(server, name, "web/more.txt", b"more")
    with failing_proxy(server, 1, method="GET") as (port, asked):
        use(port)
        after = make_manifest([f"s3://{name}/web/**"], RULES, previous=before)
    assert set(before.shards) < set(after.shards)
    assert len(after.shards) == len(objects) + 1
    assert +asked == {f"/{name}/web/more.txt": 1}


def test_a_damaged_shard_is_named(bucket, server):
    name, objects = bucket
    for key, damaged in {
        "bad/a.jsonl.gz": objects["web/1.jsonl.gz"][:-9],
        "bad/a.txt.zst": objects["web/sub/2.txt.zst"][:-3],
        "bad/a.parquet": objects["web/a.parquet"][:-30],
    }.items():
        put(server, name, key, damaged)
        with pytest.raises(
            CorpusError, match=rf"^s3://{name}/{key}: (the file is cut short|damaged)"
        ):
            make_manifest([f"s3://{name}/{key}"], RULES)


def test_importing_reading_needs_no_library():
    program = "import sys, bytepair.corpora.shards; print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, check=True, encoding="utf-8"
    )
    heavy = {"fsspec", "s3fs", "aiohttp", "pyarrow", "numpy", "orjson", "backports", "pooch"}
    assert not heavy & {name.partition(".")[0] for name in found.stdout.split()}
