"""`bytepair check`: what makes dvc.lock wrong is found and named, and what is absent is no fault."""

import contextlib
import json
import re
import shutil
import socket
import subprocess
import sys

import pytest
import yaml
from click.testing import CliRunner
from dvc.repo import Repo

import pipeline
from bytepair.audit.check import check
from bytepair.audit.printing import verdict_lines
from bytepair.cli import main

BPE, METRICS = "data/tokenizers/sample-512/bpe.json", "metrics/sample-512.json"
DATA = {
    *(f"data/corpora/sample/{name}" for name in ("raw", "clean", "splits")),
    *(f"data/tokenizers/sample-512/{name}" for name in ("counts", "tokens", "baseline")),
}
STAGES = (
    *(f"{stage}@sample" for stage in ("fetch", "strip", "split")),
    *(
        f"{stage}@sample-512"
        for stage in ("count-chunks", "train-tokenizer", "encode-splits", "baseline", "measure")
    ),
)


@pytest.fixture(scope="module")
def locked(sample_project, tmp_path_factory):
    """The project with the sample alone, and a dvc.lock of what is there; not to be changed."""
    project = shutil.copytree(sample_project, tmp_path_factory.mktemp("locked") / "project")
    params = yaml.safe_load((project / "params.yaml").read_bytes())
    kept = {"corpora": "sample", "tokenizers": "sample-512"}
    for kind, only in kept.items():
        params[kind] = {name: block for name, block in params[kind].items() if name == only}
    (project / "params.yaml").write_bytes(yaml.safe_dump(params, sort_keys=False).encode())
    (project / "dvc.lock").unlink(missing_ok=True)
    commit(project)
    shutil.rmtree(project / ".dvc" / "cache")
    return project


def commit(project):
    """What `dvc commit --force` does: whatever is there goes into dvc.lock."""
    with contextlib.chdir(project), Repo(config={"core": {"no_scm": True}}) as repo:
        repo.commit(force=True)


@pytest.fixture
def project(locked, tmp_path):
    """A copy of it, to be changed."""
    return shutil.copytree(locked, tmp_path / "project")


@pytest.fixture
def edit(project):
    def edit(name, old, new):
        path = project / name
        text = path.read_text(encoding="utf-8")
        assert old in text, old
        path.write_text(text.replace(old, new, 1), encoding="utf-8", newline="\n")

    return edit


def without_data(project):
    for name in DATA:
        shutil.rmtree(project / name)


def problems(verdict):
    """What was found, with the stages concerned."""
    return {finding.problem: finding.stages for finding in verdict.findings}


def remedies(verdict):
    return [finding.remedy for finding in verdict.findings]


def all_times(project):
    """When each file of the project was written; .dvc is DVC's own."""
    paths = [path for path in project.rglob("*") if path.relative_to(project).parts[0] != ".dvc"]
    return {path: path.stat().st_mtime_ns for path in paths}


def test_all_is_right_and_nothing_is_written(project):
    before = all_times(project)
    verdict = check(project)
    assert verdict.findings == []
    assert verdict.stages == len(STAGES)
    assert (verdict.absent, verdict.changes) == ({}, [])
    assert verdict.not_checked == {"src/bytepair": "another copy of the package runs here"}
    assert verdict.tokenizers["sample-512"]["made_again"]
    assert all_times(project) == before


def test_all_is_right_without_data(project):
    without_data(project)
    verdict = check(project)
    assert verdict.findings == []
    assert verdict.absent == dict.fromkeys(DATA, True)


def test_this_projects_own_lock_is_right(tmp_path):
    """As committed, with no data and no text but the sample's."""
    verdict = check(pipeline.copy_project(tmp_path / "project"))
    assert verdict.findings == []
    assert {path for path, again in verdict.absent.items() if again} == DATA
    assert verdict.absent["data/corpora/sherlock/splits"] is False
    assert "pg1661.txt" in verdict.not_checked["corpus sherlock"]
    assert verdict.not_checked["tokenizer chat-1024"] == "its corpus sherlock was not made again"
    assert verdict.tokenizers["chat-1024"]["chunks"] is None
    assert verdict.tokenizers["chat-1024"]["merges"]["number"] == 763
    assert verdict.corpora["sherlock"] == {"made_again": False}
    said = "\n".join(verdict_lines(verdict))
    assert "  data/corpora/sherlock: raw, clean, splits (not checked)\n" in said
    assert "1 of 4 tokenizers made again from their text." in said


def dependencies(project, stage):
    stages = yaml.safe_load((project / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    return stages[stage.partition("@")[0]]["do"]["deps"]


def test_a_changed_module_makes_its_stages_stale(project, edit):
    without_data(project)
    edit("src/bytepair/training.py", "from __future__", "# a comment\nfrom __future__")
    edit("src/bytepair/errors.py", "class BytepairError", "# a comment\nclass BytepairError")
    (project / "src/bytepair/merging.py").unlink()
    verdict = check(project)
    assert problems(verdict) == {
        "src/bytepair/errors.py has changed": STAGES,
        "src/bytepair/training.py has changed": ("train-tokenizer@sample-512",),
        "src/bytepair/merging.py is gone": tuple(
            stage for stage in STAGES if "src/bytepair/merging.py" in dependencies(project, stage)
        ),
    }
    assert verdict.changes == []
    lines = list(verdict_lines(verdict))
    assert (
        "8 stages (fetch, strip, split, count-chunks, train-tokenizer, encode-splits, baseline, "
        "measure): src/bytepair/errors.py has changed. Run `dvc repro`."
    ) in lines
    said = "train-tokenizer@sample-512: src/bytepair/training.py has changed. Run `dvc repro train"
    assert f"{said}-tokenizer@sample-512`." in lines


def test_a_changed_parameter_is_named_with_both_values_and_what_it_changes(project, edit):
    edit("params.yaml", "vocab_size: 512", "vocab_size: 300")
    edit("params.yaml", "val:\n      - XI", "val:\n      - X")
    verdict = check(project)
    both = ("train-tokenizer@sample-512", "measure@sample-512")
    assert problems(verdict) == {
        'corpora.sample.split.val was ["XI"], is ["X"]': ("split@sample",),
        "tokenizers.sample-512.train.vocab_size was 512, is 300": both,
    }
    changed = {change.partition(": ")[0] for change in verdict.changes}
    assert {BPE, METRICS} <= changed
    assert not [path for path in changed if "tokens" in path.split("/")]


def test_a_changed_pattern_and_a_lost_block(project, edit):
    edit("params.yaml", "name: gpt2-ascii", "regex: '[a-z]+'")
    edit("params.yaml", "    report:\n      test: true\n", "")
    found = problems(check(project))
    cuts = tuple(
        f"{stage}@sample-512" for stage in ("count-chunks", "train-tokenizer", "encode-splits")
    )
    place = "tokenizers.sample-512.chunks.pattern"
    assert found.pop(f'{place}.name was "gpt2-ascii", is nothing') == cuts
    assert found.pop(f'{place}.regex was nothing, is "[a-z]+"') == cuts
    assert found.pop('tokenizers.sample-512.report was {"test": true}, is nothing')
    (refusal,) = found
    assert refusal.startswith("params.yaml: tokenizers.sample-512: the block 'report' is missing")


def test_changes_of_dvc_yaml(project, edit):
    edit("dvc.yaml", "python stages/strip.py ${key}", "python stages/strip.py ${key} -v")
    edit(
        "dvc.yaml", "        - stages/split.py\n", "        - stages/split.py\n        - LICENSE\n"
    )
    edit("dvc.yaml", "        - stages/measure.py\n", "")
    verdict = check(project)
    assert problems(verdict) == {
        'its command was "python stages/strip.py sample", is "python stages/strip.py sample -v"': (
            "strip@sample",
        ),
        "LICENSE is new to it": ("split@sample",),
        "dvc.lock has the dependency stages/measure.py, dvc.yaml has not": ("measure@sample-512",),
    }
    assert remedies(verdict)[-1] == "Run `dvc repro --force measure@sample-512`."


def change_lock(project, change):
    path = project / "dvc.lock"
    content = yaml.safe_load(path.read_bytes())
    change(content["stages"])
    path.write_text(yaml.safe_dump(content), encoding="utf-8")


def entry(stages, stage, kind, path):
    return next(entry for entry in stages[stage][kind] if entry["path"] == path)


def test_stages_missing_from_the_lock_and_left_over_in_it(project):
    def change(stages):
        stages["measure@old"] = stages.pop("measure@sample-512")

    change_lock(project, change)
    assert problems(check(project)) == {
        "it is not in dvc.lock": ("measure@sample-512",),
        "it is only in dvc.lock": ("measure@old",),
    }


def test_no_lock_at_all(project):
    (project / "dvc.lock").unlink()
    assert problems(check(project)) == {"it is not in dvc.lock": STAGES}


@pytest.mark.parametrize("data", [True, False])
def test_an_input_in_the_lock_that_is_not_the_output_there(project, data):
    splits = "data/corpora/sample/splits"

    def change(stages):
        old = {"md5": "0" * 32}
        entry(stages, "encode-splits@sample-512", "deps", BPE).update(old)
        old = {"md5": f"{'0' * 32}.dir"}
        entry(stages, "count-chunks@sample-512", "deps", f"{splits}/train").update(old)

    change_lock(project, change)
    if not data:
        without_data(project)
    how = "than the one that dvc.lock says was made"
    assert problems(check(project)) == {
        f"it ran on another {splits}/train {how}": ("count-chunks@sample-512",),
        f"it ran on another {BPE} {how}": ("encode-splits@sample-512",),
    }


def test_an_output_in_the_lock_that_no_stage_makes(project):
    """All entries agree with each other, so DVC would restore it, or fail to."""
    without_data(project)
    lie = f"{'0' * 32}.dir"

    def change(stages):
        clean = "data/corpora/sample/clean"
        entry(stages, "strip@sample", "outs", clean)["md5"] = lie
        counts = "data/tokenizers/sample-512/counts"
        entry(stages, "count-chunks@sample-512", "outs", counts)["md5"] = lie
        entry(stages, "train-tokenizer@sample-512", "deps", counts)["md5"] = lie

    change_lock(project, change)
    verdict = check(project)
    assert [finding.problem.split(" but is made")[0] for finding in verdict.findings] == [
        f"data/corpora/sample/clean has the md5 {lie} in dvc.lock,",
        f"data/tokenizers/sample-512/counts has the md5 {lie} in dvc.lock,",
    ]
    assert remedies(verdict)[0] == "Run `dvc repro --force strip@sample`."


def test_changed_results_in_git(project, edit):
    edit(BPE, "[32, 116]", "[32, 117]")
    edit(METRICS, "34689", "34690")
    verdict = check(project)
    assert problems(verdict) == {
        f"{BPE}: merges[0] is [32, 117], expected [32, 116]": (),
        f"{METRICS}: train.tokens is 34690, expected 34689": (),
    }
    assert remedies(verdict)[0] == "Run `dvc repro train-tokenizer@sample-512`."
    (project / METRICS).unlink()
    assert f"{METRICS} is absent, but git should hold it" in problems(check(project))


def test_changed_data(project):
    tokens = "data/tokenizers/sample-512/tokens/val/tokens.npy"
    data = bytearray((project / tokens).read_bytes())
    data[128:130] = b"\x01\x00"
    (project / tokens).write_bytes(data)
    (problem,) = problems(check(project))
    assert problem.startswith(f"{tokens}: [0] is 1, expected ")


def test_changed_results_without_the_text(project, edit):
    edit("params.yaml", "data/sample/tales.txt", "https://example.org/tales.txt")
    commit(project)
    without_data(project)
    assert check(project).tokenizers["sample-512"]["merges"]["number"] == 255
    edit(BPE, "[32, 116]", "[32, 117]")
    verdict = check(project)
    assert problems(verdict) == {f"{BPE} is not the one in dvc.lock": ()}
    # Nothing vouches for what is there.
    assert verdict.tokenizers["sample-512"] == {"made_again": False}


def test_a_tokenizer_that_dvc_commit_made_look_right(project, edit):
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    edit(BPE, "[32, 116]", "[32, 117]")
    subprocess.run(
        [sys.executable, "-m", "dvc", "commit", "--force", "--quiet"],
        cwd=project, env=pipeline.environment(project, DVC_NO_ANALYTICS="1"), check=True,
    )  # fmt: skip
    assert Repo(project).status() == {}
    verdict = check(project)
    assert problems(verdict) == {f"{BPE}: merges[0] is [32, 117], expected [32, 116]": ()}
    assert remedies(verdict) == ["Run `dvc repro --force train-tokenizer@sample-512`."]


def test_figures_that_dvc_commit_made_look_right(project, edit):
    edit(METRICS, "34689", "34690")
    commit(project)
    verdict = check(project)
    assert problems(verdict) == {f"{METRICS}: train.tokens is 34690, expected 34689": ()}
    assert remedies(verdict) == ["Run `dvc repro --force measure@sample-512`."]


def test_a_stage_that_a_lie_has_misled_is_not_blamed(project, edit):
    edit(BPE, "[32, 116]", "[32, 117]")
    edit(METRICS, "34689", "34690")
    commit(project)
    verdict = check(project)
    assert problems(verdict) == {f"{BPE}: merges[0] is [32, 117], expected [32, 116]": ()}
    assert verdict.changes == [f"{METRICS}: train.tokens is 34690, expected 34689"]


def test_a_text_that_is_not_the_pinned_one(project, tmp_path):
    raw = "data/corpora/sample/raw/raw.txt"
    (project / raw).write_bytes(b"*** START")
    cache = tmp_path / "cache"
    cache.mkdir()
    (cache / "tales.txt").write_bytes(b"other")
    # The source inside the project is good, so everything can be made again.
    (problem,) = problems(check(project, cache=cache))
    assert problem.startswith(f"{raw}: has 9 bytes, expected 88,725; byte offset ")
    (project / "data/sample/tales.txt").write_bytes(b"neither")
    verdict = check(project, cache=cache)
    assert len(verdict.findings) == 2
    assert "tales.txt: raw sha256 is " in verdict.findings[0].problem
    assert verdict.findings[0].remedy == "Run `python stages/fetch.py sample`."
    assert "data/corpora/sample/raw is not the one in dvc.lock" in problems(verdict)


def test_the_text_in_another_wrapping_is_as_good(project, tmp_path):
    without_data(project)
    text = (project / "data/sample/tales.txt").read_bytes()
    (tmp_path / "tales.txt").write_bytes(b"\xef\xbb\xbf" + text.replace(b"\n", b"\r\n"))
    verdict = check(project, cache=tmp_path)
    assert verdict.findings == []
    raw_and_clean = {path for path, again in verdict.absent.items() if not again}
    assert raw_and_clean == {f"data/corpora/sample/{name}" for name in ("raw", "clean")}


def test_the_network_is_not_used(project, edit, monkeypatch):
    def refuse(*_):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    edit("params.yaml", "data/sample/tales.txt", "https://example.org/tales.txt")
    raw = "data/corpora/sample/raw/raw.txt"
    (project / raw).write_bytes(b"other")
    (finding, *_) = check(project).findings
    assert finding.problem.startswith(f"{raw}: raw.txt on disk: its sha256 ")
    without_data(project)
    verdict = check(project)
    assert "tales.txt" in verdict.not_checked["corpus sample"]
    assert [problem[:34] for problem in problems(verdict)] == ["corpora.sample.fetch.sources was ["]


def test_the_command(project, monkeypatch, edit):
    monkeypatch.chdir(project)
    monkeypatch.delenv("CORPUS_CACHE", raising=False)
    invoke = CliRunner().invoke
    good = invoke(main, ["check", "--json-out", "check.json"])
    assert good.exit_code == 0, good.output
    assert good.output.splitlines()[-1] == (
        "dvc.lock belongs to this code and these parameters: 8 stages; "
        "1 of 1 tokenizers made again from their text."
    )
    saved = json.loads((project / "check.json").read_bytes())
    assert (saved["right"], saved["stages"], saved["findings"]) == (True, 8, [])
    assert saved["corpora"]["sample"]["clean"]["bytes"] == 88_334
    edit("params.yaml", "vocab_size: 512", "vocab_size: 300")
    bad = invoke(main, ["check", "--json-out", "check.json"])
    assert bad.exit_code == 1
    *_, finding, number = bad.output.splitlines()
    assert finding == (
        "train-tokenizer@sample-512, measure@sample-512: "
        "tokenizers.sample-512.train.vocab_size was 512, is 300. Run `dvc repro`."
    )
    assert number == "findings: 1"
    assert json.loads((project / "check.json").read_bytes())["right"] is False
    assert invoke(main, ["check", "sample"]).exit_code == 2
    (project / "dvc.lock").write_text("<<<<<<< ours\n", encoding="utf-8")
    broken = invoke(main, ["check"])
    assert broken.exit_code == 1
    assert re.search(
        r"^Error: .*dvc\.lock.*git checkout --ours dvc\.lock", broken.output, re.MULTILINE
    )


def test_examples_in_the_help_run(project, monkeypatch):
    monkeypatch.chdir(project)
    invoke = CliRunner().invoke
    examples = set()
    for command in ([], ["check"], ["verify"]):
        shown = invoke(main, [*command, "--help"]).output.partition("Examples:\n")[2]
        assert "    bytepair " in shown
        examples |= set(re.findall(r"(?m)^ +bytepair ((?:check|verify).*)$", shown))
    assert len(examples) > 3
    for example in examples:
        assert invoke(main, example.split()).exit_code == 0, example


FIRST = [
    ([32, 116], 10557), ([104, 101], 9389), ([32, 97], 8226), ([105, 110], 6225),
    ([226, 128], 5589), ([32, 119], 5498),
]  # fmt: skip
STORIES = [
    47838, 50567, 38751, 52462, 40402, 50248, 43341, 54100, 45650, 45372, 52164, 54354,
]  # fmt: skip
LONGEST = [
    " Holmes", " little", " which", " there", " would", " that", " with", " have", "olmes",
    " said", " from", " upon", " this", " your", " been", " very", " were", " some", "ittle",
    "ather",
]  # fmt: skip


def test_the_published_figures_of_sherlock_512(corpus_cache, tmp_path, monkeypatch):
    for name in ("pg1661.txt", "tinyshakespeare.txt"):
        monkeypatch.setenv("CORPUS_CACHE", str(corpus_cache(name).parent.resolve()))
    monkeypatch.chdir(pipeline.copy_project(tmp_path / "project"))
    CliRunner().invoke(main, ["check", "--json-out", "check.json"], catch_exceptions=False)
    saved = json.loads((tmp_path / "project" / "check.json").read_bytes())
    corpus, found = saved["corpora"]["sherlock"], saved["tokenizers"]["sherlock-512"]
    assert corpus["made_again"]
    assert corpus["raw"]["bytes"] == 607_609
    assert corpus["clean"] == {
        "sha256": "3552d466d95a92fb58e96bbfabbfc02370d359ac95933b5feafe4ebaf3f243b3",
        "bytes": 575_804,
    }
    train = corpus["splits"]["train"]
    digest = "e6e9e3dda8fdf4ee3beed15f16d27e1b9b3a1d9661d63ed3b5b3d35876ac437e"
    assert (train["bytes"], train["sha256"]) == (468_848, digest)
    sizes = [entry["bytes"] for split in corpus["splits"].values() for entry in split["documents"]]
    assert sizes == STORIES
    assert corpus["dropped"] == [{"name": "front matter", "bytes": 555}]

    assert found["made_again"]
    assert found["train_sha256"] == digest
    assert found["chunks"] == {"total": 112_090, "distinct": 9_756, "positions": 71_043}
    assert found["merges"] == {
        "number": 255,
        "sha256": "236e5febe8e1ad92322949bd40a81f8abb92bc7ccbeeda5bd730a202a0a5af98",
        "first": [{"pair": pair, "count": count} for pair, count in FIRST],
    }
    shown = {
        name: (split["bytes"], split["tokens"], round(split["bytes_per_token"], 4))
        for name, split in found["splits"].items()
    }
    assert shown == {
        "train": (468_848, 217_572, 2.1549),
        "val": (52_164, 23_848, 2.1874),
        "test": (54_354, 25_216, 2.1555),
    }
    assert found["splits"]["train"]["separators"] == 9
    assert found["splits"]["train"]["largest_id"] == 511
    assert len(found["unused_on_train"]) == 170
    assert max(found["unused_on_train"]) < 256
    assert [token["text"] for token in found["longest_tokens"]] == LONGEST
    digests = {name: facts["merges"]["sha256"] for name, facts in saved["tokenizers"].items()}
    assert digests["chat-1024"].startswith("69a360dc02379193")
    assert digests["notebook-316"].startswith("69698edb5b8acb42")
    assert "test" not in saved["tokenizers"]["notebook-316"]["splits"]
