"""The stages on a corpus of shards: the bytes of one process, from bucket to bucket, after kills."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from decimal import Decimal

import numpy as np
import psutil
import pytest

import pipeline
import sharded
from bytepair import Tokenizer, tokens
from bytepair.corpora.hash_split import split_of
from bytepair.corpora.manifest import Manifest
from bytepair.corpora.shards import read_shard
from dask_cluster import DaskCluster
from s3 import ENVIRONMENT, client, failing_proxy, s3_server
from test_dvc import Clone

TOKENIZER = "data/tokenizers/web-400"
KERNEL = "src/bytepair/kernel"


def fresh(tmp_path, engine, shards=("web/*",), **fetch):
    """Another copy, in which nothing has run; with the kernel, if there is one."""
    project = pipeline.copy_project(tmp_path / "project")
    for built in (pipeline.ROOT / KERNEL).glob("_kernel*"):
        shutil.copyfile(built, project / KERNEL / built.name)
    (project / "params.yaml").write_text(
        sharded.params(list(shards), engine=engine, **fetch), encoding="utf-8"
    )
    return project


def documents(project):
    """Each split's (id, text), read shard by shard."""
    manifest = Manifest.load(project / "data/corpora/web/raw/manifest.json")
    found = {"train": [], "val": [], "test": []}
    split = {"seed": 1, "val": 0.15, "test": 0.1}
    for shard in manifest.shards:
        for document in read_shard(shard, manifest.rules):
            found[split_of(document.group, **split)].append((document.id, document.text))
    return found


def test_it_equals_training_and_encoding_in_one_go(sharded_project, monkeypatch):
    monkeypatch.chdir(sharded_project)
    found = documents(sharded_project)
    assert min(map(len, found.values())) > 5
    tok = Tokenizer.load(f"{TOKENIZER}/bpe.json")
    texts = [text for _, text in found["train"]]
    trained = Tokenizer.train(
        texts, vocab_size=400, pattern="gpt2", special_tokens=["<|endoftext|>"]
    )
    assert trained.merges == tok.merges
    for name, own in found.items():
        split = tokens.open(f"{TOKENIZER}/tokens/{name}", tokenizer_sha256=tok.sha256)
        assert list(split.index.names) == [document_id for document_id, _ in own]
        for number, (_, text) in enumerate(own):
            assert split.document(number).tolist() == tok.encode(text)
        assert np.count_nonzero(split.ids == tok.eos_id) == len(own) - 1


@pytest.mark.parametrize(
    "engine",
    [{"workers": 1}, {"workers": 2, "memory": "200MB"}, {"name": "dask", "workers": 2}],
    ids=["one process", "two processes", "dask"],
)
def test_any_engine_gives_the_same_bytes(engine, sharded_project, tmp_path):
    project = fresh(tmp_path, engine)
    sharded.write_shards(project / "web")
    said = sharded.run_stages(project)
    assert sharded.results(project) == sharded.results(sharded_project)
    for stage in ("fetch", "count_chunks", "encode_splits"):
        lines = sharded.lines(said[stage])
        assert sum("shard" in line for line in lines) == 24
        assert lines[-1]["shards"] == 24


@pytest.mark.parametrize("number", [24, pytest.param(200, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", ["processes", "dask"])
def test_from_bucket_to_bucket(number, name, tmp_path):
    """Beside the same shards on disk, in one process; the bucket answers 500 twice, workers die."""
    local = fresh(tmp_path / "local", {"name": "serial"})
    names = sharded.write_shards(local / "web", number)
    sharded.run_stages(local)
    with ExitStack() as stack:
        port = stack.enter_context(s3_server())
        proxy, failed = stack.enter_context(failing_proxy(port, 2, only="/web/000"))
        s3 = client(port)
        for bucket in ("web", "out"):
            s3.create_bucket(Bucket=bucket)
        for shard in names:
            s3.upload_file(str(local / "web" / shard), "web", shard)
        access = {**ENVIRONMENT, "AWS_ENDPOINT_URL": f"http://127.0.0.1:{proxy}"}
        engine = {"name": name, "workers": 2, "store": "s3://out/work"}
        workers = []
        if name == "dask":
            cluster = stack.enter_context(DaskCluster(tmp_path / "cluster"))
            workers = [cluster.start_worker("--no-nanny", **access).pid for _ in range(2)]
            engine["address"] = cluster.address
            del engine["workers"]
        project = fresh(tmp_path / "remote", engine, ["s3://web/*"])
        env = pipeline.environment(project, **access)
        for stage in sharded.STAGES[0]:
            pipeline.run_stage(project, f"stages/{stage}.py", "web", env=env)
        assert sum(failed.values()) == 2
        kill_a_worker_and_the_run(project, env, workers)
        counted = len(settled(lambda: receipts(s3)))
        assert 10 <= counted < number
        said = sharded.run_stages(project, env=env)
        lines = [line for line in sharded.lines(said["count_chunks"]) if "shard" in line]
        assert sum(line["reused"] for line in lines) == counted
        assert sharded.results(project) == sharded.results(local)
        assert len(receipts(s3)) == 4 * len(names)


def receipts(s3):
    """The receipts in the bucket `out`."""
    listed = s3.get_paginator("list_objects_v2").paginate(Bucket="out")
    keys = [entry["Key"] for page in listed for entry in page["Contents"]]
    return [key for key in keys if key.endswith("receipt.json")]


def settled(look):
    """What is seen when it is the same as 3 s ago: a Dask worker finishes what it has in hand."""
    before = None
    while before != (found := look()):
        before = found
        time.sleep(3)
    return found


def kill_a_worker_and_the_run(project, env, workers):
    """Kill a worker of count-chunks in the middle, then the run, and wait until its work ends."""
    command = [sys.executable, "stages/count_chunks.py", "web-400"]
    with subprocess.Popen(
        command, cwd=project, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as run:
        await_shards(run, 5)
        mine = children(run.pid)
        os.kill((workers or mine)[-1], signal.SIGKILL)
        await_shards(run, 5)
        mine = children(run.pid)
        run.kill()
    _, left = psutil.wait_procs(
        [psutil.Process(pid) for pid in mine if psutil.pid_exists(pid)], timeout=60
    )
    assert not left


def await_shards(run, number):
    """Read what a run prints until so many shards more are done."""
    while number:
        line = run.stderr.readline()
        assert line, "the run has ended"
        number -= b'"shard"' in line


def children(pid):
    """The processes that a process has started and that work, the youngest last."""
    found = psutil.Process(pid).children()
    return [child.pid for child in found if any("spawn_main" in word for word in child.cmdline())]


def kill_a_run(project):
    """Kill count-chunks when three shards are done, and wait until its workers have noticed."""
    command = [sys.executable, "stages/count_chunks.py", "web-400"]
    with subprocess.Popen(
        command, cwd=project, env=pipeline.environment(project),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    ) as run:  # fmt: skip
        for _ in range(3):
            run.stderr.readline()
        workers = psutil.Process(run.pid).children(recursive=True)
        run.kill()
    _, left = psutil.wait_procs(workers, timeout=60)
    assert not left


def test_a_run_that_was_killed_does_only_what_is_missing(sharded_project, tmp_path):
    project = fresh(tmp_path, {"workers": 2})
    sharded.write_shards(project / "web")
    for stage in sharded.STAGES[0]:
        pipeline.run_stage(project, f"stages/{stage}.py", "web")
    counts = project / TOKENIZER / "shards" / "counts"
    receipts = []
    while not 3 <= len(receipts) < 24:  # on a busy machine, they may be done before the kill
        shutil.rmtree(counts, ignore_errors=True)
        shutil.rmtree(project / TOKENIZER / "counts", ignore_errors=True)
        kill_a_run(project)
        receipts = list(counts.glob("*/receipt.json"))
    assert not (project / TOKENIZER / "counts" / "index.json").exists()
    said = sharded.run_stages(project)
    counted = [line for line in sharded.lines(said["count_chunks"]) if "shard" in line]
    assert sum(line["reused"] for line in counted) == len(receipts)
    assert sharded.results(project) == sharded.results(sharded_project)


def refused(project, stage, name):
    run = pipeline.run_stage(project, f"stages/{stage}.py", name, check=False)
    assert run.returncode == 1, run.stdout
    return run.stderr.decode()


def test_damaged_shards_are_named_and_nothing_is_left(tmp_path):
    project = fresh(tmp_path, {"workers": 2})
    names = sharded.write_shards(project / "web")
    folder = project / "web"
    for name, damage in ((names[1], lambda data: data[:-20]), (names[6], lambda data: data[:200])):
        whole = (folder / name).read_bytes()
        (folder / name).write_bytes(damage(whole))
        assert name in refused(project, "fetch", "web")
        assert not (project / "data/corpora/web/raw/manifest.json").exists()
        (folder / name).write_bytes(whole)
    for stage in sharded.STAGES[0]:
        pipeline.run_stage(project, f"stages/{stage}.py", "web")
    changed = (
        folder / names[0]
    ).read_bytes() + b'{"text": "new", "meta": {"id": "x"}, "site": "y"}\n'
    whole = (folder / names[0]).read_bytes()
    (folder / names[0]).write_bytes(changed)
    said = refused(project, "count_chunks", "web-400")
    assert names[0] in said
    assert "fetch" in said
    assert not (project / TOKENIZER / "counts").exists()
    (folder / names[0]).write_bytes(whole)
    pipeline.run_stage(project, "stages/count_chunks.py", "web-400")


def test_malformed_records_are_refused_or_counted(tmp_path):
    project = fresh(tmp_path, {"name": "serial"}, skip=1)
    names = sharded.write_shards(project / "web")
    path = project / "web" / names[0]
    path.write_bytes(path.read_bytes() + b'{"text": 5}\n')
    run = pipeline.run_stage(project, "stages/fetch.py", "web")
    assert b"1 malformed records skipped" in run.stdout
    path.write_bytes(path.read_bytes() + b'{"text": 5}\n')
    said = refused(project, "fetch", "web")
    assert names[0] in said


def test_texts_cut_by_a_separator(tmp_path):
    project = fresh(tmp_path, {"name": "serial"}, ["texts/*.txt.gz"], separator="\n\n\n")
    content = sharded.params(["texts/*.txt.gz"], engine={"name": "serial"}, separator="\n\n\n")
    (project / "params.yaml").write_text(
        content.replace("      id: meta.id\n      group: site\n", ""), encoding="utf-8"
    )
    sharded.write_texts(project / "texts")
    sharded.run_stages(project)
    metrics = json.loads((project / "metrics" / "web-400.json").read_bytes())
    assert metrics["train"]["bytes_per_token"] > 1.5


def test_dvc_runs_what_has_changed(tmp_path):
    project = fresh(tmp_path, {"name": "serial"})
    sharded.write_shards(project / "web")
    (project / "dvc.lock").unlink()
    clone = Clone(project)
    clone.git("init", "-q")
    clone.git("add", "-A")
    clone.git("commit", "-qm", "all")
    everything = {
        "fetch@web", "strip@web", "split@web",
        *(f"{stage}@web-400" for stage in ("count-chunks", "train-tokenizer", "encode-splits", "baseline", "measure")),
    }  # fmt: skip
    assert clone.repro() == everything
    clone.edit("params.yaml", "name: serial", "name: processes")  # where shards run
    assert clone.repro() == set()
    before = (project / TOKENIZER / "bpe.json").read_bytes()
    names = sharded.write_shards(project / "more", 3)
    (project / "more" / names[0]).rename(project / "web" / "zzz.jsonl")
    clone.dvc("repro", "-f", "-s", "fetch@web")
    run = clone.dvc("repro")
    lines = [line for line in sharded.lines(run.stderr) if "shard" in line]
    counted = {line["shard"]: line["reused"] for line in lines if line["stage"] == "count"}
    assert len(counted) == 25
    assert [name for name, reused in counted.items() if not reused] == [
        name for name in counted if name.startswith("zzz")
    ]
    assert (project / TOKENIZER / "bpe.json").read_bytes() != before
    checked = clone.run("bytepair", "check")
    assert "8 stages; 1 of 1 tokenizers made again" in checked.stdout


@pytest.mark.parametrize("stage", ["count_chunks", "encode_splits"])
def test_a_pattern_that_never_ends_is_given_up(stage, tmp_path):
    project = fresh(tmp_path, {"workers": 1})
    content = (project / "params.yaml").read_text(encoding="utf-8")
    (project / "params.yaml").write_text(content.replace("name: gpt2", "regex: (a+)+b"))
    folder = project / "web"
    folder.mkdir()
    endless = {"count_chunks": "train", "encode_splits": "val"}[stage]  # where it is met first
    for number in range(20):
        split = split_of(f"site{number}", seed=1, val=Decimal("0.15"), test=Decimal("0.1"))
        text = "a" * 60 + "c" if split == endless else "aab"
        record = {"text": text, "meta": {"id": f"{number}"}, "site": f"site{number}"}
        (folder / f"{number}.jsonl").write_text(json.dumps(record) + "\n")
    env = pipeline.environment(project, BYTEPAIR_PATIENCE="1")
    for before in sharded.STAGES[0]:
        pipeline.run_stage(project, f"stages/{before}.py", "web", env=env)
    for before in sharded.STAGES[1][: sharded.STAGES[1].index(stage)]:
        pipeline.run_stage(project, f"stages/{before}.py", "web-400", env=env)
    run = pipeline.run_stage(project, f"stages/{stage}.py", "web-400", env=env, check=False)
    said = run.stderr.decode()
    assert run.returncode == 1
    assert re.search(
        r"^Error: web/\d+\.jsonl: .*cut by '\(a\+\)\+b': given up after 1 s\.", said, re.MULTILINE
    )
    assert re.search(
        r"^Error: web/\d+\.jsonl: 3 workers died over it \(the last by SIGTERM\)",
        said,
        re.MULTILINE,
    )
