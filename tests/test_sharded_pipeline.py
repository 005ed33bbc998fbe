"""The stages on a corpus of shards: the bytes of one process, from bucket to bucket, after kills."""

import json
import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

import pipeline
import sharded
from bytepair import Tokenizer, tokens
from bytepair.corpora.hash_split import split_of
from bytepair.corpora.manifest import Manifest
from bytepair.corpora.shards import read_shard
from s3 import ENVIRONMENT, client, failing_proxy, s3_server
from test_dvc import Clone

# Servers, clusters and killed workers, whose times a busy machine stretches: `make test-slow`.
pytestmark = pytest.mark.slow

TOKENIZER = "data/tokenizers/web-400"


def fresh(tmp_path, engine, shards=("web/*",), **fetch):
    """Another copy, in which nothing has run."""
    project = pipeline.copy_project(tmp_path / "project")
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
    sharded.run_stages(project)
    assert sharded.results(project) == sharded.results(sharded_project)


@pytest.mark.parametrize("number", [24, pytest.param(200, marks=pytest.mark.slow)])
def test_from_bucket_to_bucket(number, tmp_path):
    """Beside the same shards on disk, in one process; the bucket answers 500 twice, workers die."""
    local = fresh(tmp_path / "local", {"name": "serial"})
    names = sharded.write_shards(local / "web", number)
    sharded.run_stages(local)
    with s3_server() as port, failing_proxy(port, 2, only="/web/000") as (proxy, failed):
        s3 = client(port)
        for bucket in ("web", "out"):
            s3.create_bucket(Bucket=bucket)
        for name in names:
            s3.upload_file(str(local / "web" / name), "web", name)
        engine = {"workers": 2, "store": "s3://out/work"}
        project = fresh(tmp_path / "remote", engine, ["s3://web/*"])
        env = pipeline.environment(
            project, **ENVIRONMENT, AWS_ENDPOINT_URL=f"http://127.0.0.1:{proxy}"
        )
        for stage in sharded.STAGES[0]:
            pipeline.run_stage(project, f"stages/{stage}.py", "web", env=env)
        assert sum(failed.values()) == 2
        killed = kill_a_worker(project, env)
        assert killed
        said = sharded.run_stages(project, env=env)
        assert any(line.get("reused") for line in sharded.lines(said["count_chunks"]))
        assert sharded.results(project) == sharded.results(local)
        listed = s3.get_paginator("list_objects_v2").paginate(Bucket="out")
        kept = [entry["Key"] for page in listed for entry in page["Contents"]]
        assert sum(key.endswith("receipt.json") for key in kept) == 4 * len(names)


def kill_a_worker(project, env):
    """Run count-chunks, kill one of its workers in the middle, then the run itself."""
    command = [sys.executable, "stages/count_chunks.py", "web-400"]
    with subprocess.Popen(
        command, cwd=project, env=env, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as run:
        first = [run.stderr.readline() for _ in range(10)]
        workers = children(run.pid)
        assert workers, first
        os.kill(workers[-1], signal.SIGKILL)
        for _ in range(10):
            assert b'"shard"' in run.stderr.readline()
        run.kill()
    return workers


def children(pid):
    """The processes that a process has started and that work, the youngest last."""
    listed = subprocess.run(["ps", "-ww", "-o", "pid=,args=", "--ppid", str(pid)], capture_output=True, check=True)  # fmt: skip
    return [
        int(line.split()[0]) for line in listed.stdout.decode().splitlines() if "spawn_main" in line
    ]


def test_a_run_that_was_killed_does_only_what_is_missing(sharded_project, tmp_path):
    project = fresh(tmp_path, {"workers": 2})
    sharded.write_shards(project / "web")
    for stage in sharded.STAGES[0]:
        pipeline.run_stage(project, f"stages/{stage}.py", "web")
    command = [sys.executable, "stages/count_chunks.py", "web-400"]
    with subprocess.Popen(
        command, cwd=project, env=pipeline.environment(project),
        stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
    ) as run:  # fmt: skip
        for _ in range(5):
            run.stderr.readline()
        run.kill()
    time.sleep(1)  # workers notice that nobody waits for them
    receipts = list((project / TOKENIZER / "shards" / "counts").glob("*/receipt.json"))
    assert 5 <= len(receipts) < 24
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
    assert "shards" in checked.stdout
