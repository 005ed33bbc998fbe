"""`bytepair check` and `bytepair verify` on a corpus of shards."""

import json
import shutil
import socket

import numpy as np
import pytest
from click.testing import CliRunner

import sharded
from bytepair.audit.check import check
from bytepair.audit.printing import verdict_lines, verification_lines
from bytepair.audit.rebuild import PARAMS, Rebuild
from bytepair.audit.sharded import decoding_errors_of_shards
from bytepair.audit.verify import AGAIN, RECEIPTS, RECORDED, steps_of, verify, verify_steps
from bytepair.cli import main
from bytepair.corpora import sources
from bytepair.counts import ChunkCounts
from bytepair.engine import ENGINES
from bytepair.files import read_record, sha256, write_record
from bytepair.shards import store
from bytepair.tokenizer import Tokenizer
from bytepair.tokens import open_tokens
from test_check import all_times, commit, problems, remedies

CORPUS, TOKENIZER = "data/corpora/web", "data/tokenizers/web-400"
MANIFEST, RULE = f"{CORPUS}/raw/manifest.json", f"{CORPUS}/splits/val/rule.json"
BPE, METRICS = f"{TOKENIZER}/bpe.json", "metrics/web-400.json"
SHARD = "web/003.jsonl"
STAGES = {
    *(f"{stage}@web" for stage in ("fetch", "strip", "split")),
    *(
        f"{stage}@web-400"
        for stage in ("count-chunks", "train-tokenizer", "encode-splits", "baseline", "measure")
    ),
}


@pytest.fixture(scope="module")
def locked(sharded_project, tmp_path_factory):
    """The project with a dvc.lock of what is there; not to be changed."""
    project = shutil.copytree(sharded_project, tmp_path_factory.mktemp("locked") / "project")
    (project / "dvc.lock").unlink(missing_ok=True)
    commit(project)
    shutil.rmtree(project / ".dvc" / "cache")
    return project


@pytest.fixture
def project(locked, tmp_path):
    """A copy of it, to be changed."""
    return shutil.copytree(locked, tmp_path / "project")


@pytest.fixture(scope="module")
def again(locked, tmp_path_factory):
    """What was made again of the untouched project."""
    rebuild = Rebuild(locked, tmp_path_factory.mktemp("again"))
    assert verify_steps(steps_of(locked / PARAMS), rebuild).good
    return rebuild.folder


def hows(found):
    return {part.stage: part.how for part in found.verified}


def said(found):
    return {(each.path, each.stage): each.problem for each in found.differences}


def edit(path, old, new):
    text = path.read_text(encoding="utf-8")
    assert old in text, old
    path.write_text(text.replace(old, new, 1), encoding="utf-8", newline="\n")


def sealed(path, change):
    """Change a record, and mend its seal."""
    record = read_record(path)
    change(record)
    write_record(path, record)


def change_first_shard(record):
    record["shards"][3]["documents"] += 1
    record["documents"] += 1


def change_an_id(project):
    """One id of val, with all hashes of it mended; measure could not tell."""
    folder = project / TOKENIZER / "tokens" / "val"
    tokens = open_tokens(folder)
    place = int(np.flatnonzero(tokens.ids == ord("e"))[0])
    data = bytearray((folder / "tokens.npy").read_bytes())
    data[128 + 2 * place] = ord("a")
    (folder / "tokens.npy").write_bytes(data)
    sealed(folder / "index.json", lambda record: record["tokens"].update(sha256=sha256(data)))
    return place


def add_a_count(project):
    """One chunk more often, with all hashes of it mended."""
    folder = project / TOKENIZER / "counts"
    data = bytearray((folder / "counts.bin").read_bytes())
    data[0] += 1

    def mend(record):
        record["total"] += 1
        record["files"]["counts.bin"] = sha256(data)

    (folder / "counts.bin").write_bytes(data)
    sealed(folder / "index.json", mend)
    assert ChunkCounts.load(folder).total


def train_another(project):
    counts = ChunkCounts.load(project / TOKENIZER / "counts")
    Tokenizer.trace_from_counts(counts, vocab_size=399)[0].save(project / BPE)


def grow(project):
    """A shard gets a document more."""
    path = project / SHARD
    path.write_bytes(path.read_bytes() + b'{"text": "new", "meta": {"id": "x"}, "site": "y"}\n')


def without_data(project):
    """As a clone is."""
    shutil.rmtree(project / CORPUS)
    for name in ("counts", "tokens", "baseline", "shards"):
        shutil.rmtree(project / TOKENIZER / name)


def without_shards(project):
    shutil.rmtree(project / "web")


@pytest.fixture
def no_network(monkeypatch):
    """No file system but this machine's is asked for."""

    def refuse(*args):
        raise AssertionError(f"asked: {args}")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(sources, "_file_system", refuse)


@pytest.fixture
def remote(project, no_network):
    """The same corpus in a bucket."""
    edit(project / PARAMS, "- web/*", "- s3://web/*")

    def move(record):
        for shard in record["shards"]:
            shard["url"] = f"s3://{shard['url']}"

    sealed(project / MANIFEST, move)
    shutil.rmtree(project / "web")
    for step in list(steps_of(project / PARAMS, ["web"]))[1:]:
        shutil.rmtree(project / step.outputs[0])
        Rebuild(project, project).run(step)
    commit(project)
    return project


def test_verify_makes_everything_again_and_writes_nothing(project):
    before = all_times(project)
    found = verify(project)
    assert found.good
    assert hows(found) == dict.fromkeys(STAGES, AGAIN)
    assert (found.absent, found.not_verified, found.not_at_hand) == ([], [], {})
    corpus = [path for path in (project / CORPUS).rglob("*") if path.is_file()]
    made = len(corpus) + len(sharded.results(project))
    assert sum(part.files for part in found.verified) == made
    assert all_times(project) == before


@pytest.mark.parametrize(
    ("change", "file", "stage", "problem"),
    [
        (
            lambda project: sealed(project / MANIFEST, change_first_shard),
            MANIFEST,
            "fetch@web",
            f"shards[{SHARD}].documents is 21, expected 20",
        ),
        (
            lambda project: edit(project / CORPUS / "clean/clean.txt", SHARD, "web/004.jsonl"),
            f"{CORPUS}/clean/clean.txt",
            "strip@web",
            "byte offset",
        ),
        (
            lambda project: sealed(project / RULE, lambda record: record.update(seed=2)),
            RULE,
            "split@web",
            "seed is 2, expected 1",
        ),
        (
            lambda project: sealed(project / CORPUS / "splits/test/manifest.json", change_first_shard),
            f"{CORPUS}/splits/test/manifest.json",
            "split@web",
            f"shards[{SHARD}].documents is 21, expected 20",
        ),
        (train_another, BPE, "train-tokenizer@web-400", "vocab_size is 399, expected 400"),
        (
            lambda project: edit(project / METRICS, '"requested": 400', '"requested": 401'),
            METRICS,
            "measure@web-400",
            "vocab.requested is 401, expected 400",
        ),
        (
            lambda project: edit(project / TOKENIZER / "report/measures.json", '"id": ', '"id": 1'),
            f"{TOKENIZER}/report/measures.json",
            "measure@web-400",
            "longest_tokens[0].id is ",
        ),
    ],
)  # fmt: skip
def test_verify_finds_a_file_that_was_changed(change, file, stage, problem, project, again):
    change(project)
    rebuild = Rebuild(project, again)
    differences = said(verify_steps(steps_of(project / PARAMS), rebuild))
    assert differences.keys() == {(file, stage)}
    assert differences[file, stage].startswith(problem)


@pytest.mark.parametrize("source", ["shards at hand", "store alone"])
def test_verify_finds_changes_whose_hashes_were_mended(source, project):
    if source == "store alone":
        without_shards(project)
    add_a_count(project)
    place = change_an_id(project)
    found = verify(project)
    differences = said(found)
    folder = f"{TOKENIZER}/counts"
    assert differences[f"{folder}/counts.bin", "count-chunks@web-400"].startswith("byte offset 0 ")
    assert (f"{folder}/index.json", "count-chunks@web-400") in differences
    folder = f"{TOKENIZER}/tokens/val"
    assert differences[f"{folder}/tokens.npy", "encode-splits@web-400"] == (
        f"[{place}] is 97, expected 101"
    )
    assert (f"{folder}/index.json", "encode-splits@web-400") in differences
    assert len(differences) == 4


def test_verify_finds_a_shard_that_was_changed(project):
    grow(project)
    found = verify(project)
    assert said(found).keys() == {(MANIFEST, "fetch@web")}
    size = (project / SHARD).stat().st_size
    assert said(found)[MANIFEST, "fetch@web"].endswith(f", expected {size}")
    assert said(found)[MANIFEST, "fetch@web"].startswith(f"shards[{SHARD}].size is ")
    # The rest is held against what was made of the shards as they were.
    assert hows(found) == {
        **dict.fromkeys(STAGES - {"fetch@web"}, AGAIN),
        "count-chunks@web-400": RECEIPTS,
        "encode-splits@web-400": RECEIPTS,
    }


def test_verify_finds_a_shard_that_is_new(project):
    shutil.copyfile(project / SHARD, project / "web" / "zzz.jsonl")
    found = verify(project)
    ((place, problem),) = said(found).items()
    assert place == (MANIFEST, "fetch@web")
    assert problem.startswith("shards[web/zzz.jsonl] is nothing, expected {")
    assert hows(found) == dict.fromkeys(STAGES - {"fetch@web"}, AGAIN)


def test_verify_names_a_damaged_shard_and_a_malformed_record(project):
    path = project / "web" / "001.jsonl.gz"
    path.write_bytes(path.read_bytes()[:-20])
    found = verify(project)
    assert said(found).keys() == {(path.relative_to(project).as_posix(), "fetch@web")}
    assert hows(found)["encode-splits@web-400"] == RECEIPTS
    shutil.rmtree(project / CORPUS / "raw")  # so that the tokenizer's stages come upon it
    found = verify(project)
    assert said(found).keys() == {(path.relative_to(project).as_posix(), "fetch@web")}
    assert "count-chunks@web-400" not in hows(found)
    assert hows(found)["encode-splits@web-400"] == RECEIPTS


def test_verify_says_in_a_line_which_records_are_malformed(project):
    path = project / SHARD
    path.write_bytes(path.read_bytes() + b'{"text": 5}\n')
    found = verify(project, ["web"])
    (difference,) = found.differences
    assert (difference.path, difference.stage) == (f"{CORPUS}/raw", "fetch@web")
    assert f"fetch.skip allows, 0: {SHARD}: record 21: " in difference.problem
    assert "\n" not in difference.problem


def test_verify_without_shards_holds_files_to_the_store_or_to_their_hashes(project):
    without_shards(project)
    found = verify(project)
    assert found.good
    made = {**dict.fromkeys(STAGES, AGAIN), "fetch@web": RECORDED}
    tasks = ("count-chunks@web-400", "encode-splits@web-400")
    assert hows(found) == {**made, **dict.fromkeys(tasks, RECEIPTS)}
    assert found.not_at_hand == {"web": "none of its shards web/* is here"}
    arrays = (project / TOKENIZER / "shards/tokens/val").glob("*/tokens.npy")
    damaged = max(arrays, key=lambda path: path.stat().st_size)  # not every shard has val
    data = damaged.read_bytes()
    damaged.write_bytes(data[:-2] + b"\0\0")
    ((place, problem),) = said(verify(project)).items()
    assert place == (damaged.relative_to(project).as_posix(), "encode-splits@web-400")
    assert "are not those that its receipt vouches for" in problem
    damaged.with_name("receipt.json").unlink()
    assert hows(verify(project))["encode-splits@web-400"] == RECORDED
    shutil.rmtree(project / TOKENIZER / "shards")
    found = verify(project)
    assert hows(found) == {**made, **dict.fromkeys(tasks, RECORDED)}
    array = project / TOKENIZER / "tokens/val/tokens.npy"
    data = array.read_bytes()
    array.write_bytes(data[:-2] + b"\0\0")
    assert array.relative_to(project).as_posix() in {
        each.path for each in verify(project).differences
    }


def test_verify_holds_those_shards_that_are_here_to_their_manifest(project):
    (project / "web" / "001.jsonl.gz").unlink()
    found = verify(project)
    assert found.good
    assert found.not_at_hand == {"web": "its shard web/001.jsonl.gz is not here"}
    grow(project)
    found = verify(project)
    ((place, problem),) = said(found).items()
    assert place == (MANIFEST, "fetch@web")
    assert problem.startswith(f"shards[{SHARD}].size is ")


@pytest.mark.parametrize(
    ("old", "new", "file", "problem"),
    [
        ("group: site", "group: meta.id", MANIFEST, 'rules.group is "site", expected "meta.id"'),
        ("- web/*", "- web/0*\n      - web/00?.txt", MANIFEST, "it has no shard web/00?.txt"),
        ("- web/*", "- web/00*", MANIFEST, "params.yaml does not name web/010."),
        ("seed: 1", "seed: 2", f"{CORPUS}/splits/test/rule.json", "seed is 1, expected 2"),
        ("      val: 0.15\n", "", f"{CORPUS}/splits", "it has ['test', 'train', 'val'], expected ["),
    ],
)  # fmt: skip
def test_verify_without_shards_holds_records_to_params(old, new, file, problem, project):
    without_shards(project)
    edit(project / PARAMS, old, new)
    if file != MANIFEST:  # what split would be made from
        shutil.rmtree(project / CORPUS / "raw")
        shutil.rmtree(project / CORPUS / "clean")
    difference = verify(project).differences[0]
    assert difference.path == file
    assert difference.problem.startswith(problem)
    assert difference.stage == ("fetch@web" if file == MANIFEST else "split@web")


@pytest.mark.parametrize("pattern", ["./web/*", "web/**/*.*", "w?b/[0-9]*"])
def test_another_pattern_of_the_same_shards_is_as_good(pattern, project):
    edit(project / PARAMS, "- web/*", f"- {pattern}")
    assert verify(project, ["web"]).good
    without_shards(project)
    found = verify(project, ["web"])
    assert found.good
    assert hows(found)["fetch@web"] == RECORDED


def test_verify_without_shards_asks_no_store_elsewhere(project, monkeypatch):
    without_shards(project)
    edit(project / PARAMS, "name: serial", "name: serial\n  store: s3://nowhere/work")
    monkeypatch.setattr(store, "RemoteStore", None)  # using it is an error
    found = verify(project)
    assert found.good
    assert hows(found)["encode-splits@web-400"] == RECORDED


def test_verify_names_a_damaged_clean_text_that_nothing_can_make_again(project):
    without_shards(project)
    shutil.rmtree(project / CORPUS / "raw")
    clean = f"{CORPUS}/clean/clean.txt"
    edit(project / clean, SHARD, "web/004.jsonl")
    ((place, problem),) = said(verify(project)).items()
    assert place == (clean, "strip@web")
    assert "record_sha256" in problem


def test_verify_without_shards_holds_malformed_records_to_params(project):
    def skip(record):
        record["shards"][3]["skipped"] = record["skipped"] = 1

    without_shards(project)
    sealed(project / MANIFEST, skip)
    assert said(verify(project, ["web"]))[MANIFEST, "fetch@web"] == (
        "skipped is 1, but params.yaml allows 0"
    )


def test_verify_does_not_ask_for_remote_shards(remote):
    found = verify(remote)
    assert found.good
    assert hows(found)["fetch@web"] == RECORDED
    assert hows(found)["split@web"] == AGAIN
    assert hows(found)["count-chunks@web-400"] == RECORDED
    why = "its shards are remote, as s3://web/*, and the network is not used"
    assert found.not_at_hand == {"web": why}
    assert f"  corpus web: {why}." in verification_lines(found)
    shutil.rmtree(remote / CORPUS / "raw")  # so that only the splits say where shards are
    why = why.replace("*", "000.jsonl")
    assert verify(remote).not_at_hand == {"web": why}


def test_verify_finds_a_manifest_of_remote_shards_that_params_do_not_name(remote):
    edit(remote / PARAMS, "- s3://web/*", "- web/*")
    assert said(verify(remote)).keys() == {(MANIFEST, "fetch@web")}


def test_shards_by_the_scheme_file_are_at_hand(project):
    edit(project / PARAMS, "- web/*", f"- file://{project.as_posix()}/web/*")
    shutil.rmtree(project / CORPUS)
    for step in steps_of(project / PARAMS, ["web"]):
        Rebuild(project, project).run(step)
    found = verify(project, ["web"])
    assert found.good
    assert hows(found)["fetch@web"] == AGAIN
    (project / SHARD).unlink()
    assert verify(project, ["web"]).not_at_hand == {
        "web": f"its shard {project.as_posix()}/{SHARD} is not here"
    }


def test_verify_finds_tokens_that_do_not_decode_to_the_shards(project, monkeypatch):
    """An encoder that loses something makes them, and makes them again."""
    encode = Tokenizer.encode_batch_array

    def lose(self, texts, **options):
        ids, offsets = encode(self, texts, **options)
        return ids[:-1], [*offsets[:-1], offsets[-1] - 1]

    monkeypatch.setattr(
        Tokenizer, "encode_batch_array",
        lambda self, texts, **options: tuple(map(np.asarray, lose(self, texts, **options))),
    )  # fmt: skip
    for name in ("tokens", "shards"):
        shutil.rmtree(project / TOKENIZER / name)
    steps = {step.stage: step for step in steps_of(project / PARAMS)}
    Rebuild(project, project).run(steps["encode-splits"])
    differences = said(verify(project))
    for name in ("train", "val", "test"):
        problem = differences[f"{TOKENIZER}/tokens/{name}/tokens.npy", "encode-splits@web-400"]
        assert problem.startswith("document 'tale/")
        assert "when decoded: has " in problem


def test_documents_of_tokens_are_those_of_the_shards(project):
    step = next(step for step in steps_of(project / PARAMS) if step.stage == "encode-splits")
    rebuild = Rebuild(project, project)
    assert list(decoding_errors_of_shards(step, rebuild)) == []
    folder = project / TOKENIZER / "tokens"
    name = read_record(folder / "val/index.json")["documents"]["names"][0]
    sealed(
        folder / "val/index.json", lambda record: record["documents"]["names"].__setitem__(0, "x")
    )
    ((path, problem),) = decoding_errors_of_shards(step, rebuild)
    assert path == folder / "val/tokens.npy"
    assert problem == f"where document {name!r} should be, there is 'x'"
    train = project / CORPUS / "splits/train"

    def lose(record):
        shard = record["shards"].pop()
        for key in ("documents", "bytes"):
            record[key] -= shard[key]

    sealed(train / "manifest.json", lose)
    lost = json.loads((train / "manifest.json").read_bytes())["record_sha256"]
    sealed(train / "rule.json", lambda record: record.update(manifest_sha256=lost))
    problems = {
        path.parent.name: problem for path, problem in decoding_errors_of_shards(step, rebuild)
    }
    assert problems.keys() == {"train", "val", "test"}
    assert problems["train"].startswith("no shard has its document 'tale/")


@pytest.mark.parametrize(
    "engine",
    [
        "{name: dask, address: 'tcp://127.0.0.1:9', store: 's3://nowhere/work'}",
        "{workers: 2, memory: 200MB, store: elsewhere}",
    ],
)
def test_neither_the_engine_nor_the_store_of_params_is_used(engine, project, monkeypatch):
    monkeypatch.setitem(ENGINES, "dask", ("nowhere", "Nothing"))
    edit(project / PARAMS, "engine:\n  name: serial\n", f"engine: {engine}\n")
    verdict = check(project)
    assert verdict.findings == []
    assert verdict.tokenizers["web-400"]["made_again"]
    assert hows(verify(project)) == dict.fromkeys(STAGES, AGAIN)
    assert not (project / "elsewhere").exists()


@pytest.mark.parametrize("data", [True, False])
def test_check_finds_nothing_and_writes_nothing(data, project):
    if not data:
        without_data(project)
    before = all_times(project)
    verdict = check(project)
    assert verdict.findings == []
    assert verdict.stages == len(STAGES)
    assert verdict.not_checked == {"src/bytepair": "another copy of the package runs here"}
    assert all(verdict.absent.values())
    assert bool(verdict.absent) is not data
    assert verdict.tokenizers["web-400"]["made_again"]
    assert verdict.corpora["web"]["made_again"]
    assert verdict.corpora["web"]["manifest"]["shards"] == 24
    assert all_times(project) == before
    lines = list(verdict_lines(verdict))
    assert "  split    val 0.15  test 0.1  seed 1" in lines
    assert "1 of 1 tokenizers made again" in lines[-1]


@pytest.mark.parametrize("lost", ["web", SHARD])
def test_check_holds_absent_shards_for_no_fault(lost, project):
    path = project / lost
    shutil.rmtree(path) if path.is_dir() else path.unlink()
    verdict = check(project)
    assert verdict.findings == []
    why = f"its shard {SHARD} is not here" if lost == SHARD else "none of its shards web/* is here"
    assert verdict.not_checked["corpus web"] == why
    assert verdict.not_checked["tokenizer web-400"] == "its corpus web was not made again"
    assert verdict.corpora["web"]["manifest"]["shards"] == 24  # as in dvc.lock
    without_data(project)
    if lost == "web":
        assert check(project).findings == []
        assert check(project).corpora["web"] == {"made_again": False}


def test_check_does_not_ask_for_remote_shards(remote, monkeypatch):
    monkeypatch.chdir(remote)
    result = CliRunner().invoke(main, ["check"])
    assert result.exit_code == 0, result.output
    why = "its shards are remote, as s3://web/*, and the network is not used"
    assert f"  corpus web: {why}.\n" in result.output
    assert "0 of 1 tokenizers made again" in result.output


@pytest.mark.parametrize(
    ("change", "problem", "stage"),
    [
        (grow, f"{MANIFEST}: shards[{SHARD}].size is ", "fetch@web"),
        (
            lambda project: sealed(project / MANIFEST, change_first_shard),
            f"{MANIFEST}: shards[{SHARD}].documents is 21, expected 20",
            "fetch@web",
        ),
        (
            lambda project: sealed(project / RULE, lambda record: record.update(seed=2)),
            f"{RULE}: seed is 2, expected 1",
            "split@web",
        ),
        (
            add_a_count,
            f"{TOKENIZER}/counts/counts.bin: byte offset 0 is ",
            "count-chunks@web-400",
        ),
        (train_another, f"{BPE}: vocab_size is 399, expected 400", "train-tokenizer@web-400"),
        (change_an_id, f"{TOKENIZER}/tokens/val/tokens.npy: [", "encode-splits@web-400"),
        (
            lambda project: edit(project / METRICS, '"requested": 400', '"requested": 401'),
            f"{METRICS}: vocab.requested is 401, expected 400",
            "measure@web-400",
        ),
    ],
)  # fmt: skip
def test_check_finds_what_dvc_commit_made_look_right(change, problem, stage, project):
    change(project)
    commit(project)
    verdict = check(project)
    assert any(found.startswith(problem) for found in problems(verdict)), problems(verdict)
    assert set(remedies(verdict)) == {f"Run `dvc repro --force {stage}`."}


def test_check_says_what_is_wrong_with_the_engine(project):
    edit(project / PARAMS, "name: serial", "name: serail")
    (problem,) = problems(check(project))
    assert problem.startswith("params.yaml: engine.name: 'serail' is not known.")
