"""What the real DVC runs again, and what it does not, in a clone with the bundled sample.

`sample-300` is a second tokenizer of the same corpus, so that "nothing else" can be seen.
"""

import copy
import http.server
import re
import shutil
import socket
import subprocess
import sys
import threading

import pytest
import yaml
from dvc.repo import Repo

import pipeline

ALL = {
    *(f"{stage}@sample" for stage in ("fetch", "strip", "split")),
    *(
        f"{stage}@{tokenizer}"
        for stage in ("count-chunks", "train-tokenizer", "encode-splits", "baseline", "measure")
        for tokenizer in ("sample-512", "sample-300")
    ),
}
UNREACHABLE = "http://127.0.0.1:9"


def one(tokenizer, *stages):
    return {f"{stage}@{tokenizer}" for stage in stages}


class Clone:
    """A clone in which DVC can be run, and put back as it was."""

    def __init__(self, folder):
        self.folder = folder
        self.env = pipeline.environment(
            folder, CORPUS_CACHE=None, HTTPS_PROXY=UNREACHABLE, HTTP_PROXY=UNREACHABLE,
            NO_PROXY="127.0.0.1", DVC_NO_ANALYTICS="1",
        )  # fmt: skip

    def run(self, *command, check=True):
        run = subprocess.run(
            command, cwd=self.folder, env=self.env, check=False, capture_output=True, text=True,
            encoding="utf-8", errors="replace",
        )  # fmt: skip
        assert not (check and run.returncode), f"{command}:\n{run.stdout}\n{run.stderr}"
        return run

    def git(self, *arguments):
        return self.run("git", *arguments).stdout

    def dvc(self, *arguments, check=True):
        return self.run(sys.executable, "-m", "dvc", *arguments, check=check)

    def repro(self, *arguments):
        """The stages that really ran."""
        output = self.dvc("repro", *arguments).stdout
        return set(re.findall(r"Running stage '([^']+)'", output))

    def status(self):
        return {stage.rpartition("dvc.yaml:")[2] for stage in Repo(self.folder).status()}

    def edit(self, name, old, new):
        path = self.folder / name
        text = path.read_text(encoding="utf-8")
        assert old in text, old
        path.write_text(text.replace(old, new, 1), encoding="utf-8", newline="\n")

    def restore(self):
        self.git("reset", "-q", "--hard")
        self.git("clean", "-qfd")
        self.dvc("checkout", "-q")


def only_the_sample(params):
    """params.yaml with the sample alone, and a second tokenizer of it."""
    blocks = yaml.safe_load(params)
    sample = blocks["tokenizers"]["sample-512"]
    second = copy.deepcopy(sample) | {"train": {"vocab_size": 300}}
    return yaml.safe_dump(
        {
            "corpora": {"sample": blocks["corpora"]["sample"]},
            "tokenizers": {"sample-512": sample, "sample-300": second},
        },
        allow_unicode=True,
        sort_keys=False,
    )


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    clone = Clone(pipeline.copy_project(tmp_path_factory.mktemp("clone") / "project"))
    params = clone.folder / "params.yaml"
    text = only_the_sample(params.read_text(encoding="utf-8"))
    params.write_text(text, encoding="utf-8", newline="\n")
    (clone.folder / "dvc.lock").unlink(missing_ok=True)
    shutil.rmtree(clone.folder / "data" / "tokenizers", ignore_errors=True)
    shutil.rmtree(clone.folder / "metrics", ignore_errors=True)
    clone.git("init", "-q")
    assert clone.repro() == ALL
    clone.git("add", "-A")
    clone.git("commit", "-qm", "all")
    return clone


@pytest.fixture
def clone(built):
    built.restore()
    assert built.status() == set()
    return built


def test_nothing_runs_twice(clone):
    assert clone.repro() == set()
    assert clone.git("status", "--porcelain") == ""
    assert clone.dvc("status", "-q", check=False).returncode == 0


def test_forced_runs_give_the_same_bytes(clone):
    assert clone.repro("--force") == ALL
    assert clone.git("status", "--porcelain") == ""


def test_c44_a_comment_or_another_order_in_params_runs_nothing(clone):
    clone.edit("params.yaml", "tokenizers:\n", "# a comment\ntokenizers:\n")
    clone.edit("params.yaml", "      vocab_size: 300\n", "      vocab_size: 300  # few\n")
    params = clone.folder / "params.yaml"
    blocks = yaml.safe_load(params.read_text(encoding="utf-8"))
    turned = {
        kind: {name: dict(reversed(block.items())) for name, block in blocks[kind].items()}
        for kind in reversed(blocks)
    }
    assert clone.status() == set()
    text = yaml.safe_dump(turned, allow_unicode=True, sort_keys=False)
    params.write_text(text, encoding="utf-8", newline="\n")
    assert clone.status() == set()


def test_another_size_trains_one_tokenizer_from_the_same_counts(clone):
    clone.edit("params.yaml", "vocab_size: 300", "vocab_size: 280")
    assert clone.repro() == one(
        "sample-300", "train-tokenizer", "encode-splits", "baseline", "measure"
    )


def test_c40_a_size_as_a_string_is_a_change_and_is_refused(clone):
    clone.edit("params.yaml", "vocab_size: 300", "vocab_size: '300'")
    assert "train-tokenizer@sample-300" in clone.status()
    run = clone.dvc("repro", check=False)
    assert run.returncode != 0
    assert "tokenizers.sample-300.train.vocab_size: expected an integer" in run.stderr + run.stdout


def test_a_report_parameter_measures_again(clone):
    clone.edit("params.yaml", "report:\n      test: true", "report:\n      test: false")
    assert clone.repro() == one("sample-512", "measure")
    assert b'"test"' not in (clone.folder / "metrics" / "sample-512.json").read_bytes()


def test_a_comment_in_the_trainer_trains_again_and_stops_there(clone):
    with (clone.folder / "src/bytepair/training.py").open("a", encoding="utf-8") as file:
        file.write("# a comment\n")
    before = (clone.folder / "data/tokenizers/sample-512/bpe.json").read_bytes()
    assert clone.repro() == {"train-tokenizer@sample-512", "train-tokenizer@sample-300"}
    assert (clone.folder / "data/tokenizers/sample-512/bpe.json").read_bytes() == before
    assert clone.git("status", "--porcelain").split() == [
        "M",
        "dvc.lock",
        "M",
        "src/bytepair/training.py",
    ]


def test_c44_each_module_runs_exactly_the_stages_that_import_it(clone):
    stages = yaml.safe_load((clone.folder / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    modules = sorted((clone.folder / "src").rglob("*.py")) + sorted(
        (clone.folder / "stages").glob("*.py")
    )
    for path in modules:
        name = path.relative_to(clone.folder).as_posix()
        expected = {stage for stage, entry in stages.items() if name in entry["do"]["deps"]}
        before = path.read_bytes()
        path.write_bytes(before + b"# a comment\n")
        changed = {stage.partition("@")[0] for stage in clone.status()}
        assert changed == expected, name
        path.write_bytes(before)


def pin_new_text(clone):
    """Put the hashes of a changed sample into params.yaml, as fetch --force prints them."""
    run = clone.run(sys.executable, "stages/fetch.py", "sample", "--force")
    raw, clean = re.findall(r"[0-9a-f]{64}", run.stdout)
    params = clone.folder / "params.yaml"
    blocks = yaml.safe_load(params.read_text(encoding="utf-8"))
    blocks["corpora"]["sample"]["fetch"] |= {"raw_sha256": [raw], "clean_sha256": clean}
    text = yaml.safe_dump(blocks, allow_unicode=True, sort_keys=False)
    params.write_text(text, encoding="utf-8", newline="\n")


def test_another_val_text_trains_no_tokenizer(clone):
    text = (clone.folder / "data/sample/tales.txt").read_text(encoding="utf-8")
    heading = re.search(r"(?m)^XI\. .*\n\n", text).group()
    clone.edit("data/sample/tales.txt", heading, f"{heading}A new beginning.\n\n")
    pin_new_text(clone)
    again = ("encode-splits", "baseline", "measure")
    assert clone.repro() == {
        *one("sample", "fetch", "strip", "split"),
        *one("sample-512", *again),
        *one("sample-300", *again),
    }


class Served:
    """A web server on this machine that gives one body for every path."""

    def __init__(self, body):
        class Handler(http.server.BaseHTTPRequestHandler):
            def do_GET(self):
                self.send_response(200)
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, *_):
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/tales.txt"

    def __enter__(self):
        threading.Thread(target=self.server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self.server.shutdown()
        self.server.server_close()


def test_a_fresh_download_in_another_wrapping_runs_nothing_after_strip(clone):
    text = (clone.folder / "data/sample/tales.txt").read_bytes()
    wrapped = b"\xef\xbb\xbfOf another day.\r\n" + text.replace(b"\n", b"\r\n") + b"\r\nMore.\r\n"
    with Served(wrapped) as served:
        clone.edit("params.yaml", "data/sample/tales.txt", served.url)
        shutil.rmtree(clone.folder / "data/corpora/sample/raw")
        assert clone.repro() == one("sample", "fetch", "strip")
    raw = clone.folder / "data/corpora/sample/raw/raw.txt"
    assert raw.read_bytes() == wrapped
    changed = [line for line in clone.git("diff", "-U0", "dvc.lock").splitlines() if "@@" in line]
    assert {line.rpartition("@@")[2].strip() for line in changed} <= {
        "schema: '2.0'", "stages:", "fetch@sample:", "strip@sample:",
    }  # fmt: skip


def test_a_failed_training_keeps_the_old_tokenizer(clone):
    before = (clone.folder / "data/tokenizers/sample-512/bpe.json").read_bytes()
    clone.edit("params.yaml", "vocab_size: 512", "vocab_size: 256")
    run = clone.dvc("repro", "train-tokenizer@sample-512", check=False)
    assert run.returncode != 0
    assert "expected at least 257" in run.stdout + run.stderr
    assert (clone.folder / "data/tokenizers/sample-512/bpe.json").read_bytes() == before


def test_a_new_block_is_all_it_takes_to_add_a_tokenizer(clone):
    params = clone.folder / "params.yaml"
    blocks = yaml.safe_load(params.read_text(encoding="utf-8"))
    blocks["tokenizers"]["mine"] = {
        "corpus": "sample",
        "chunks": {"pattern": {"name": "cl100k"}, "special_tokens": ["<|end|>"]},
        "train": {"vocab_size": 400},
        "encode": {"separator": "<|end|>"},
        "baseline": {"order": 3},
        "report": {},
    }
    text = yaml.safe_dump(blocks, allow_unicode=True, sort_keys=False)
    params.write_text(text, encoding="utf-8", newline="\n")
    assert clone.repro() == one(
        "mine", "count-chunks", "train-tokenizer", "encode-splits", "baseline", "measure"
    )
    table = clone.dvc("metrics", "show").stdout
    assert "metrics/mine.json" in table.replace("\\", "/")
    assert "val.bits_per_byte" in table
    new = clone.git("status", "--porcelain", "--untracked-files=all").split()[1::2]
    assert not [name for name in new if "tokens" in name.split("/")]


def test_an_experiment_sweeps_a_size(clone):
    size = "tokenizers.sample-300.train.vocab_size"
    clone.dvc("exp", "run", "-S", f"{size}=290", "-n", "few", "measure@sample-300")
    clone.git("checkout", "-q", ".")
    shown = clone.dvc("exp", "show", "--csv", "--only-changed").stdout
    assert "290" in shown
    clone.dvc("exp", "remove", "few")


def test_an_interrupted_pull_or_a_lost_cache_is_made_again(clone):
    shutil.rmtree(clone.folder / "data/tokenizers/sample-300/tokens")
    assert clone.repro() == set()  # it comes back from the cache
    assert (clone.folder / "data/tokenizers/sample-300/tokens/train/index.json").is_file()


def test_plots_can_be_shown_offline(clone):
    out = clone.dvc("plots", "show", "--json").stdout
    assert "bytes_per_token" in out


def test_push_and_pull_by_a_remote(clone, tmp_path):
    clone.dvc("remote", "add", "--default", "storage", str(tmp_path / "storage"))
    clone.dvc("push", "-q")
    other = tmp_path / "other"
    clone.git("clone", "-q", str(clone.folder), str(other))
    shutil.copyfile(clone.folder / ".dvc" / "config", other / ".dvc" / "config")
    elsewhere = Clone(other)
    elsewhere.dvc("pull", "-q")
    assert elsewhere.status() == set()
    assert elsewhere.repro() == set()


def test_a_conflict_in_the_lock_is_resolved_by_running(clone):
    """As README says: take one side of what is generated, and let DVC run the rest."""
    main = clone.git("branch", "--show-current").strip()
    clone.git("checkout", "-qb", "theirs")
    clone.edit("src/bytepair/training.py", "from __future__", "# theirs\nfrom __future__")
    clone.edit("params.yaml", "vocab_size: 300", "vocab_size: 290")
    clone.repro()
    clone.git("commit", "-qam", "theirs")
    clone.git("checkout", "-q", main)
    clone.dvc("checkout", "-q")
    with (clone.folder / "src/bytepair/training.py").open("a", encoding="utf-8") as file:
        file.write("# ours\n")
    clone.repro()
    clone.git("commit", "-qam", "ours")
    merged = clone.run("git", "merge", "theirs", check=False)
    assert "CONFLICT (content): Merge conflict in dvc.lock" in merged.stdout
    clone.git("checkout", "--ours", "dvc.lock", "data/tokenizers", "metrics")
    assert clone.repro() >= {"train-tokenizer@sample-512", "train-tokenizer@sample-300"}
    clone.git("add", "dvc.lock", "data/tokenizers", "metrics")
    clone.git("commit", "-qm", "merged")
    assert clone.status() == set()
    assert clone.git("status", "--porcelain") == ""
    for name, size in (("sample-512", 512), ("sample-300", 290)):
        data = (clone.folder / "metrics" / f"{name}.json").read_text(encoding="utf-8")
        assert f'"size": {size}' in data
    clone.git("reset", "-q", "--hard", "HEAD~2")
    clone.git("branch", "-qD", "theirs")


def test_without_copy_or_network_fetch_says_what_was_tried(tmp_path):
    clone = Clone(pipeline.copy_project(tmp_path / "project"))
    clone.git("init", "-q")
    run = clone.dvc("repro", "fetch@sherlock", check=False)
    said = run.stdout + run.stderr
    assert run.returncode != 0
    assert "pg1661.txt could not be had" in said
    assert "https://www.gutenberg.org/cache/epub/1661/pg1661.txt" in said
    assert "CORPUS_CACHE" in said
    assert not (clone.folder / "data/corpora/sherlock/raw/raw.txt").exists()


def test_a_fresh_clone_repeats_the_lock_to_the_letter(corpus_cache, tmp_path, monkeypatch):
    cache = {corpus_cache(name).parent for name in ("pg1661.txt", "tinyshakespeare.txt")}
    clone = Clone(pipeline.copy_project(tmp_path / "project"))
    clone.env["CORPUS_CACHE"] = str(cache.pop().resolve())
    clone.git("init", "-q")
    clone.git("add", "-A")
    clone.git("commit", "-qm", "all")
    ran = {stage.partition("@")[0] for stage in clone.repro()}
    # The results that are in git are there already, and DVC finds them to be the right ones.
    assert ran == {"fetch", "strip", "split", "count-chunks", "encode-splits", "baseline"}
    assert clone.git("status", "--porcelain") == ""
    assert clone.dvc("status", "-q", check=False).returncode == 0
    assert clone.repro() == set()


def test_the_network_is_really_out_of_reach():
    """The proxies above must refuse, or the tests of missing sources would prove nothing."""
    with socket.socket() as probe, pytest.raises(OSError):
        probe.connect(("127.0.0.1", 9))
