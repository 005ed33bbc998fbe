"""Counting and encoding shards: the bytes of one process, receipts, relaunches, S3, small memory."""

import dataclasses
import gzip
import json
import os
import random
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
from decimal import Decimal
from functools import partial
from pathlib import Path

import pytest
import s3fs

import peak
from bytepair import ChunkCounts, Pattern, Tokenizer
from bytepair.corpora.shards import make_manifest
from bytepair.engine import EngineParams, open_engine
from bytepair.errors import ArtifactError, BytepairError
from bytepair.files import sha256
from bytepair.shard_params import HashSplit, ReadRules
from bytepair.shards import counted_runs, work
from bytepair.shards import merge as shard_merge
from bytepair.shards.join import join_tokens
from bytepair.shards.merge import MergeTask, merge_group, merge_shards, train_sha256
from bytepair.shards.merged_counts import RUN_FILES
from bytepair.shards.receipts import RECEIPT, Receipt
from bytepair.shards.source import sources_of
from bytepair.shards.store import LocalStore, open_store, write
from bytepair.shards.work import (
    CountTask,
    EncodeTask,
    count_shard,
    encode_shard,
    shard_name,
)
from bytepair.tokens import open_tokens, write_tokens
from s3 import ENVIRONMENT, client, failing_proxy, s3_server

SPLIT = HashSplit(seed=1, val=Decimal("0.2"), test=Decimal("0.1"), separator="\n\n")
SPECIAL = "<|endoftext|>"
WORDS = ["the", "quick", " 1892", "dogs,", "schöner", "Tag;", "良い", "天気", "🙂", SPECIAL, "\n\n"]
ENGINES = [
    EngineParams(name="serial"),
    EngineParams(workers=1),
    EngineParams(workers=2),
    EngineParams(name="dask", workers=2),
]


@pytest.fixture(scope="module")
def corpus(tmp_path_factory):
    """Twelve shards: jsonl, gzip and text, one without documents, one with a malformed record."""
    folder = tmp_path_factory.mktemp("corpus")
    chooser = random.Random(5)
    for number in range(12):
        texts = [
            " ".join(chooser.choices(WORDS, k=chooser.randrange(1, 60))) for _ in range(chooser.randrange(1, 30))
        ]  # fmt: skip
        lines = "".join(json.dumps({"text": text}) + "\n" for text in texts)
        if number % 3 == 0:
            (folder / f"{number}.jsonl").write_text(lines)
        elif number % 3 == 1:
            (folder / f"{number}.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
        else:
            (folder / f"{number}.txt").write_text(" ".join(texts), encoding="utf-8")
    (folder / "empty.jsonl").write_text("")
    (folder / "wrong.jsonl").write_text('{"text": "right"}\n{"text": 7}\n')
    manifest = make_manifest([f"{folder}/*"], ReadRules(), skip=1)
    return sources_of(manifest, SPLIT)


@pytest.fixture(scope="module")
def documents(corpus):
    """What a single process reads: shard, split, name, text."""
    return [
        (source.name, *document)
        for source in corpus
        for document in source.documents(lambda record, reason: None)
    ]


@pytest.fixture(scope="module")
def tokenizer(documents):
    texts = [text for _, split, _, text in documents if split == "train"]
    return Tokenizer.train(texts, vocab_size=300, pattern="gpt2", special_tokens=[SPECIAL])


def count_tasks(corpus, store, **changes):
    return [
        CountTask(
            name=shard_name(source.name),
            source=source,
            **{
                "separator": SPLIT.separator,
                "pattern": Pattern.named("gpt2"),
                "special_tokens": (SPECIAL,),
                "store": str(store),
                "memory": 256_000_000,
                **changes,
            },
        )
        for source in corpus
    ]


def encode_tasks(corpus, store, tokenizer):
    from bytepair.bpe_file import BpeFile

    data = BpeFile(
        tokenizer.pattern, tuple(tokenizer.special_tokens), tokenizer.train_sha256, tokenizer.merges
    ).to_bytes()
    return [
        EncodeTask(
            name=shard_name(source.name),
            source=source,
            splits=("train", "val", "test"),
            separator=SPLIT.separator,
            tokenizer=data,
            special=SPECIAL,
            store=str(store),
        )
        for source in corpus
    ]


def tree(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in sorted(Path(folder).rglob("*"))
        if path.is_file()
    }


def run(params, function, tasks):
    with open_engine(params) as engine:
        return [done for _, done in sorted(engine.map(function, tasks))]


@pytest.fixture(scope="module")
def expected(corpus, documents, tokenizer, tmp_path_factory):
    """Counts and tokens without any of the code that is tested: in memory, all at once."""
    folder = tmp_path_factory.mktemp("expected")
    parts = []
    for source in corpus:
        texts = [t for shard, split, _, t in documents if (shard, split) == (source.name, "train")]
        if texts:
            parts.append(sha256(SPLIT.separator.join(texts).encode()))
        for split in ("train", "val", "test"):
            mine = [(n, t) for shard, s, n, t in documents if (shard, s) == (source.name, split)]
            text = SPLIT.separator.join(text for _, text in mine).encode()
            write_tokens(
                folder / "tokens" / split / shard_name(source.name),
                [(name, tokenizer.encode(text)) for name, text in mine],
                vocab_size=tokenizer.vocab_size,
                separator_id=tokenizer.special_tokens[SPECIAL],
                tokenizer_sha256=tokenizer.sha256,
                text_sha256=sha256(text),
                text_bytes=len(text),
                separator_bytes=len(SPLIT.separator.encode()),
            )
    counts = ChunkCounts.count(
        [text for _, split, _, text in documents if split == "train"],
        pattern="gpt2",
        special_tokens=[SPECIAL],
        train_sha256=sha256((json.dumps(sorted(parts)) + "\n").encode()),
    )
    counts.save(folder / "counts")
    return folder


@pytest.mark.parametrize("params", ENGINES, ids="{0.name}-{0.workers}".format)
def test_any_engine_gives_the_bytes_of_one_process(params, corpus, tokenizer, expected, tmp_path):
    store = tmp_path / "store"
    tasks = count_tasks(corpus, store)
    done = run(params, count_shard, tasks)
    assert [one.name for one in done] == [task.name for task in tasks]
    assert sum(one.receipts[0].skipped for one in done) == 1
    merge_shards(tasks, done, tmp_path / "counts", memory=1 << 20)
    assert tree(tmp_path / "counts") == tree(expected / "counts")
    done = run(params, encode_shard, encode_tasks(corpus, store, tokenizer))
    found = {path: data for path, data in tree(store / "tokens").items() if RECEIPT not in path}
    assert found == tree(expected / "tokens")
    for one in done:
        for split, receipt in zip(("train", "val", "test"), one.receipts, strict=True):
            tokens = open_tokens(
                store / "tokens" / split / one.name, tokenizer_sha256=tokenizer.sha256
            )
            assert (receipt.tokens, receipt.documents) == (len(tokens), len(tokens.starts))


def test_training_from_merged_counts_equals_training_from_text(corpus, tokenizer, tmp_path):
    tasks = count_tasks(corpus, tmp_path / "store")
    merged = merge_shards(tasks, list(map(count_shard, tasks)), tmp_path / "counts", memory=1 << 20)
    counts = ChunkCounts.load(tmp_path / "counts")
    trained = Tokenizer.from_counts(counts, vocab_size=300)
    assert trained.merges == tokenizer.merges
    assert trained.train_sha256 == merged.train_sha256 == counts.train_sha256


@pytest.mark.parametrize("params", ENGINES, ids="{0.name}-{0.workers}".format)
def test_groups_of_shards_are_added_up_by_the_engine(
    params, corpus, expected, tmp_path, monkeypatch
):
    monkeypatch.setattr(shard_merge, "GROUP", 4)
    tasks = count_tasks(corpus, tmp_path / "store")
    with open_engine(params) as engine:
        done = [done for _, done in sorted(engine.map(count_shard, tasks))]
        before = tree(tmp_path / "store")
        merge_shards(tasks, done, tmp_path / "counts", memory=1 << 20, map_tasks=engine.map)
    assert tree(tmp_path / "counts") == tree(expected / "counts")
    assert tree(tmp_path / "store") == before


def test_a_group_that_is_done_is_not_added_up_again(corpus, tmp_path):
    tasks = count_tasks(corpus, tmp_path / "store")
    parts = tuple((task.folder, count_shard(task).receipts[0]) for task in tasks)
    group = MergeTask(name="0", parts=parts, store=str(tmp_path / "store"), memory=1 << 20)
    assert str(group) == f"the sum of {tasks[0].folder} to {tasks[-1].folder}"
    first, second = merge_group(group), merge_group(group)
    assert (first.is_reused, second.is_reused) == (False, True)
    assert first.receipts == second.receipts
    assert not merge_group(dataclasses.replace(group, parts=parts[1:])).is_reused


@pytest.mark.parametrize("with_kernel", [True, False], ids=["kernel", "python"])
def test_a_memory_that_is_too_small_for_the_counts_gives_the_same(
    corpus, expected, tmp_path, monkeypatch, with_kernel
):
    if not with_kernel:
        monkeypatch.setattr(counted_runs, "kernel_scanner", lambda pattern: None)
    monkeypatch.setattr(counted_runs, "_PYTHON_ENTRY", 1 << 16)
    runs = []
    real = counted_runs.write_run
    monkeypatch.setattr(
        counted_runs,
        "write_run",
        lambda folder, counts: runs.append(folder) or real(folder, counts),
    )
    if with_kernel:  # a part as soon as there is anything
        monkeypatch.setattr(
            counted_runs, "count_in_parts", lambda texts, *rest, memory: (
                part for text in texts for part in real_parts([text], *rest, memory=1)
            )
        )  # fmt: skip
    from bytepair.counting import count_in_parts as real_parts

    tasks = count_tasks(corpus, tmp_path / "store", memory=1 << 20)
    done = list(map(count_shard, tasks))
    assert len(runs) > 2 * len(tasks)
    merge_shards(tasks, done, tmp_path / "counts", memory=1 << 20)
    assert tree(tmp_path / "counts") == tree(expected / "counts")
    assert tree(tmp_path / "store").keys() == {
        f"counts/{task.name}/{name}" for task in tasks for name in (*RUN_FILES, RECEIPT)
    }


MEASURE = """
    import sys
    from peak import peak
    from many_chunks import ManyChunks
    from bytepair.patterns import Pattern
    from bytepair.shards.work import CountTask, count_shard
    task = CountTask(
        name="shard", source=ManyChunks(1_000_000 * int(sys.argv[2])), separator="",
        pattern=Pattern.named("gpt2"), special_tokens=(), store=sys.argv[1],
        memory=int(sys.argv[3]),
    )
    counts = count_shard(task).receipts[0].counts
    print(counts["distinct"], peak())
"""


@pytest.mark.parametrize(
    ("millions", "memory"),
    [(4, 160_000_000), pytest.param(40, 512_000_000, marks=pytest.mark.slow)],
)
def test_counting_keeps_to_the_memory(millions, memory, tmp_path):
    """A shard of words that hardly repeat: all of its counts would take much more."""
    result = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(MEASURE), tmp_path, str(millions), str(memory)],
        env=peak.environment(),
        check=True,
        capture_output=True,
    )
    distinct, most = map(int, result.stdout.split())
    assert distinct > 0.99 * 1_000_000 * millions
    assert most < memory


def test_a_relaunch_does_only_what_is_missing(corpus, tokenizer, tmp_path):
    store = tmp_path / "store"
    counts, tokens = count_tasks(corpus, store), encode_tasks(corpus, store, tokenizer)
    first = [*map(count_shard, counts), *map(encode_shard, tokens)]
    assert not any(done.is_reused for done in first)
    name = max(first, key=lambda done: done.receipts[0].text_bytes).name  # others may hold nothing
    whole = tree(store)
    assert all(done.is_reused for done in [*map(count_shard, counts), *map(encode_shard, tokens)])
    for path, damage in [
        (f"counts/{name}/{RECEIPT}", lambda p: p.unlink()),
        (
            f"counts/{name}/{RECEIPT}",
            lambda p: p.write_bytes(p.read_bytes().replace(b"1", b"2", 1)),
        ),
        (f"counts/{name}/{RECEIPT}", lambda p: p.write_bytes(p.read_bytes()[:-9])),
        (f"counts/{name}/chunks.bin", lambda p: p.unlink()),
        (f"counts/{name}/ends.bin", lambda p: p.write_bytes(p.read_bytes()[:-8])),
        (f"tokens/val/{name}/{RECEIPT}", lambda p: p.unlink()),
        (f"tokens/test/{name}/tokens.npy", lambda p: p.write_bytes(b"")),
    ]:
        damage(store / path)
        done = [*map(count_shard, counts), *map(encode_shard, tokens)]
        assert [one.name for one in done if not one.is_reused] == [name]
        assert tree(store) == whole


def test_other_inputs_are_counted_again(corpus, tmp_path):
    store = tmp_path / "store"
    list(map(count_shard, count_tasks(corpus, store)))
    for changes in ({"special_tokens": ()}, {"pattern": Pattern.named("words")}, {"split": "val"}):
        tasks = count_tasks(corpus, store, **changes)
        assert not any(done.is_reused for done in map(count_shard, tasks))
        assert all(done.is_reused for done in map(count_shard, tasks))


def test_another_version_of_regex_counts_and_encodes_again(corpus, tmp_path, monkeypatch):
    store = tmp_path / "store"
    own = Tokenizer.train(
        ["the the"], vocab_size=259, pattern=Pattern(r"\w+|\W", "regex"), special_tokens=[SPECIAL]
    )
    count, encode = (
        count_tasks(corpus, store, pattern=own.pattern),
        encode_tasks(corpus, store, own),
    )
    named = count_tasks(corpus, tmp_path / "named")

    def reused():
        done = [map(count_shard, count), map(encode_shard, encode), map(count_shard, named)]
        return [{one.is_reused for one in part} for part in done]

    assert reused() == [{False}, {False}, {False}]
    assert reused() == [{True}, {True}, {True}]
    monkeypatch.setattr(work, "version", lambda name: {"regex": "1.0"}[name])
    assert reused() == [{False}, {False}, {True}]


def test_a_changed_shard_is_an_error_that_names_it_and_leaves_no_receipt(tmp_path):
    shard = tmp_path / "a.jsonl"
    shard.write_text('{"text": "one"}\n{"text": "two"}\n')
    corpus = sources_of(make_manifest([str(shard)], ReadRules(), skip=0), SPLIT)
    tasks = count_tasks(corpus, tmp_path / "store")
    list(map(count_shard, tasks))
    shard.write_text('{"text": "one"}\n{"text": "six"}\n')
    (tmp_path / "store" / tasks[0].folder / RECEIPT).unlink()
    before = tree(tmp_path / "store")
    with pytest.raises(BytepairError, match=r"a\.jsonl: the shard was changed"):
        run(EngineParams(workers=1), count_shard, tasks)
    assert tree(tmp_path / "store") == before


def test_a_damaged_output_is_found_by_the_merge(corpus, tmp_path):
    tasks = count_tasks(corpus, tmp_path / "store")
    done = list(map(count_shard, tasks))
    path = max(
        (tmp_path / "store").glob("counts/*/counts.bin"), key=lambda file: file.stat().st_size
    )
    data = bytearray(path.read_bytes())
    data[0] ^= 2
    path.write_bytes(data)
    with pytest.raises(ArtifactError, match=path.parent.name):
        merge_shards(tasks, done, tmp_path / "counts", memory=1 << 20)
    assert not (tmp_path / "counts" / "index.json").exists()


SCRIPT = """
    import pickle, sys
    from bytepair.engine import EngineParams, open_engine
    from bytepair.shards.work import count_shard
    if __name__ == "__main__":
        tasks = pickle.loads(open(sys.argv[1], "rb").read())
        with open_engine(EngineParams(workers=2)) as engine:
            for number, done in engine.map(count_shard, tasks):
                print(number, flush=True)
"""


def test_a_run_that_is_killed_leaves_only_what_the_next_one_overwrites(corpus, expected, tmp_path):
    import pickle

    (tmp_path / "script.py").write_text(textwrap.dedent(SCRIPT))
    store = tmp_path / "store"
    tasks = count_tasks(corpus, store)
    (tmp_path / "tasks").write_bytes(pickle.dumps(tasks))
    for shown in range(5):
        process = subprocess.Popen(
            [sys.executable, str(tmp_path / "script.py"), str(tmp_path / "tasks")],
            stdout=subprocess.PIPE,
        )
        for _ in range(shown):
            process.stdout.readline()
        os.kill(process.pid, signal.SIGKILL)
        process.communicate()
    before = {path for path in tree(store) if path.endswith(RECEIPT)}
    assert before
    for path in before:  # whole, whatever else there is
        receipt = Receipt.parse((store / path).read_bytes(), path)
        for name, output in receipt.outputs.items():
            assert sha256((store / path).with_name(name).read_bytes()) == output.sha256
    LocalStore(store).remove_scratch()
    done = list(map(count_shard, tasks))
    assert sum(one.is_reused for one in done) >= len(before)
    merge_shards(tasks, done, tmp_path / "counts", memory=1 << 20)
    assert tree(tmp_path / "counts") == tree(expected / "counts")
    assert not [path for path in tree(store) if not path.startswith("counts/")]


@pytest.fixture(scope="module")
def server():
    """A real S3 API on this machine, with a bucket; gives its port."""
    with s3_server() as port:
        client(port).create_bucket(Bucket="bucket")
        yield port


@pytest.fixture
def bucket(server, monkeypatch):
    """Make s3:// the server, also for workers; gives what reads it without our code."""
    for name, value in ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server}")
    s3fs.S3FileSystem.clear_instance_cache()
    yield s3fs.S3FileSystem()
    s3fs.S3FileSystem.clear_instance_cache()


@pytest.mark.parametrize("method", ["PUT", "GET", "HEAD"])
def test_a_bucket_that_fails_twice_is_asked_again(
    method, corpus, bucket, server, tmp_path, monkeypatch
):
    with failing_proxy(server, 2, method=method) as (port, failed):
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{port}")
        s3fs.S3FileSystem.clear_instance_cache()
        tasks = count_tasks(corpus[:1], f"s3://bucket/fails-{method}")
        merge_shards(tasks, list(map(count_shard, tasks)), tmp_path / "counts", memory=1 << 20)
        s3fs.S3FileSystem.clear_instance_cache()
    assert max(failed.values()) == 2
    local = count_tasks(corpus[:1], tmp_path / "store")
    merge_shards(local, list(map(count_shard, local)), tmp_path / "expected", memory=1 << 20)
    assert tree(tmp_path / "counts") == tree(tmp_path / "expected")


@pytest.mark.parametrize("params", ENGINES[2:], ids="{0.name}-{0.workers}".format)
def test_outputs_in_a_bucket_are_the_same(params, corpus, tokenizer, expected, bucket, tmp_path):
    store = f"s3://bucket/{params.name}"
    tasks = count_tasks(corpus, store)
    merge_shards(tasks, run(params, count_shard, tasks), tmp_path / "counts", memory=1 << 20)
    assert tree(tmp_path / "counts") == tree(expected / "counts")
    encode = encode_tasks(corpus, store, tokenizer)
    run(params, encode_shard, encode)
    for path, data in tree(expected / "tokens").items():
        assert bucket.cat_file(f"{store}/tokens/{path}") == data
    assert all(done.is_reused for done in run(params, encode_shard, encode))
    bucket.rm_file(f"{store}/tokens/val/{encode[5].name}/{RECEIPT}")
    done = run(params, encode_shard, encode)
    assert [number for number, one in enumerate(done) if not one.is_reused] == [5]


def test_stores(tmp_path, bucket):
    for url in (str(tmp_path / "local"), f"file://{tmp_path}/other", "s3://bucket/stores"):
        store = open_store(url)
        assert (store.read("a/b"), store.size("a/b")) == (None, None)
        with pytest.raises(ArtifactError, match="a/b: no such file"):
            store.open("a/b").read(1)
        store.remove("a/b")
        with store.scratch() as scratch:
            (scratch / "written").write_bytes(b"123")
            store.put(scratch / "written", "a/b")
        assert (store.read("a/b"), store.size("a/b")) == (b"123", 3)
        with store.open("a/b") as file:
            assert (file.read(2), file.read(2)) == (b"12", b"3")
        store.remove("a/b")
        assert store.read("a/b") is None
    with pytest.raises(BytepairError, match="s3://no-such-bucket/a/b: .* Make the bucket first"):
        write(open_store("s3://no-such-bucket"), "a/b", b"123")
    with pytest.raises(BytepairError, match="no-such-protocol"):
        open_store("no-such-protocol://bucket")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
@pytest.mark.parametrize("url", ["{0}/store", "s3://bucket/full"])
def test_a_full_disk_is_named(url, tmp_path, bucket, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    folder = {"s": tmp_path, "{": tmp_path / "store"}[url[0]]
    with (
        pytest.raises(OSError, match="No space left on device") as caught,
        open_store(url.format(tmp_path)).scratch(),
        Path("/dev/full").open("wb", buffering=0) as full,
    ):
        full.write(b"1")
    assert caught.value.filename == str(folder)


def test_what_stands_in_the_way_of_an_output_is_named(tmp_path):
    (tmp_path / "a" / "b").mkdir(parents=True)
    with pytest.raises(OSError, match="directory") as caught:
        write(open_store(str(tmp_path)), "a/b", b"123")
    assert caught.value.filename == str(tmp_path / "a/b")


def test_one_part_is_its_own_hash():
    receipt = partial(Receipt, kind="counts", inputs={}, outputs={}, text_bytes=1, skipped=0)
    parts = [receipt(text_sha256=letter * 64, documents=n) for letter, n in (("b", 1), ("a", 0))]
    assert train_sha256(parts) == "b" * 64
    more = [*parts, receipt(text_sha256="a" * 64, documents=2)]
    assert train_sha256(more) == train_sha256(more[::-1]) == sha256(f'["{"a" * 64}", "{"b" * 64}"]\n'.encode())  # fmt: skip


def test_a_worker_killed_in_the_middle_changes_nothing(corpus, expected, tmp_path):
    import multiprocessing

    tasks = count_tasks(corpus, tmp_path / "store")
    killed = []

    def kill():
        for child in multiprocessing.active_children()[:1]:
            os.kill(child.pid, signal.SIGKILL)
            killed.append(child.pid)

    with open_engine(EngineParams(workers=2)) as engine:
        done = {}
        for number, (task, one) in enumerate(engine.map(count_shard, tasks)):
            done[task] = one
            if number in {1, 4, 7}:
                killer = threading.Thread(target=kill)
                killer.start()
                killer.join()
    assert len(killed) == 3
    merge_shards(tasks, [done[n] for n in range(len(tasks))], tmp_path / "counts", memory=1 << 20)
    assert tree(tmp_path / "counts") == tree(expected / "counts")


def test_a_damaged_object_is_named_by_its_url(corpus, tokenizer, bucket, tmp_path):
    store = "s3://bucket/damaged"
    tasks = encode_tasks(corpus, store, tokenizer)
    done = list(map(encode_shard, tasks))
    number = next(n for n, one in enumerate(done) if one.receipts[0].documents)
    for name in ("tokens.npy", "index.json"):
        url = f"{store}/{tasks[number].folder('train')}/{name}"
        whole = bucket.cat_file(url)
        bucket.pipe_file(url, whole[:-1] + bytes([whole[-1] ^ 1]))
        with pytest.raises(ArtifactError, match=f"^{url}: "):
            join_tokens(tasks, done, "train", tmp_path / "tokens", vocab_size=300)
        bucket.pipe_file(url, whole)
    joined = join_tokens(tasks, done, "train", tmp_path / "tokens", vocab_size=300)
    assert joined.length > 0
