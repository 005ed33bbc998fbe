"""The benchmarks' tables are what their results give, and our own adapters work."""

import hashlib
import json
import subprocess
import sys

import pytest

import adapters
import asked
import chart
import medians
import pipeline
import report
import vocabulary
from bytepair import Tokenizer
from bytepair.counts import ChunkCounts
from bytepair.files import parse_json

FOLDER = pipeline.ROOT / "benchmarks"
TEXT = "The tide was out, and it's 2026 — they'll see: naïve café.\n\n  Low, lower, lowest.\n" * 40


@pytest.fixture(scope="module")
def results():
    path = FOLDER / "results.json"
    return parse_json(path.read_bytes(), path)


def test_medians_are_those_of_the_runs(results):
    assert medians.added_to(results) == results


def test_tables_and_chart_are_what_the_results_give(results):
    assert (FOLDER / "RESULTS.md").read_text(encoding="utf-8") == report.results_page(results)
    assert (FOLDER / "chart.svg").read_text(encoding="utf-8") == chart.draw(results)
    readme = (pipeline.ROOT / "README.md").read_text(encoding="utf-8")
    assert report.readme_parts(readme)[1] == report.readme_block(results)


def test_tools_that_claim_to_agree_did(results):
    assert [
        found for found in results["agreement"] if found["claimed"] and not found["equal"]
    ] == []
    claims = {(found["tool"], found["text"]) for found in results["agreement"] if found["claimed"]}
    assert {
        ("rustbpe", "english"),
        ("tiktoken", "english"),
        ("gigatoken", "multilingual"),
    } <= claims


def test_medians_rates_and_ratios():
    def run(*cpu, peak=5):
        return {"cpu": list(cpu), "wall": list(cpu), "peak": peak}

    runs = {
        "train": {"t": {"bytepair": [run(9, 2), run(9, 1), run(9, 4)], "other": [run(6, peak=7)]}},
        "encode": {"t": {"bytepair": [run(4, 1, 3, 2)], "other": [run(2, 2), run(4, 4)]}},
    }
    found = medians.of_all(runs, {"t": {"bytes": 6_000_000}})
    assert found["train"]["t"]["other"] == {
        "rounds": 1, "cpu": 6, "wall": 6, "peak": 7, "cpu_rate": 1.0, "cpu_ratio": 3.0,
    }  # fmt: skip
    assert found["train"]["t"]["bytepair"]["cpu"] == 2
    own, other = found["encode"]["t"].values()
    assert (own["cold"], own["warm"], own["warm_rate"]) == (4, 2, 3.0)
    assert (other["cold_ratio"], other["warm_ratio"]) == (0.75, 1.5)


def test_a_goal_is_met_or_not():
    assert asked.times("train", "peer", 2, 1.999).met is False
    assert asked.times("train", "peer", 2, 2.0) == ("train", "2 × peer", "2.00 ×", True)
    assert asked.linear("train", {1: {"cpu": 1}, 2: {"cpu": 2.0}, 4: {"cpu": 4.1}}).met
    assert not asked.linear("train", {1: {"cpu": 1}, 2: {"cpu": 2.2}, 4: {"cpu": 4.1}}).met


def test_blocks_are_cut_where_every_pattern_cuts():
    text = TEXT.encode()
    found = list(adapters.blocks(text, 20))
    assert len(found) > 50
    assert b"".join(found) == text
    tokenizer = Tokenizer.train(TEXT, vocab_size=300, pattern="gpt2")
    ids = [i for block in found for i in tokenizer.encode(block.decode())]
    assert ids == tokenizer.encode(TEXT)


in_a_child = pytest.mark.skipif(
    sys.platform == "win32", reason="peak memory comes from getrusage, which Windows does not have"
)


def run_one(*arguments):
    command = [sys.executable, str(FOLDER / "run_one.py"), *map(str, arguments)]
    child = subprocess.run(command, check=True, capture_output=True)
    return json.loads(child.stdout)


@pytest.fixture(scope="module")
def small(tmp_path_factory):
    """A text, its vocabulary and its counts."""
    folder = tmp_path_factory.mktemp("small")
    (folder / "text").write_text(TEXT, encoding="utf-8", newline="\n")
    tokenizer = Tokenizer.train(TEXT, vocab_size=300, pattern="gpt2")
    vocabulary.save(tokenizer, folder)
    ChunkCounts.count([TEXT], pattern="gpt2").save(folder / "counts")
    return folder, tokenizer


@in_a_child
def test_training_in_a_child_process(small):
    folder, tokenizer = small
    saved = folder / "tokens"
    found = run_one("bytepair", "train", folder / "text", 44, "--passes", 2, "--save", saved)
    assert [bytes.fromhex(line) for line in saved.read_text().split()] == tokenizer.vocab[256:]
    assert found["size"] == 44
    assert len(found["cpu"]) == len(found["wall"]) == 2
    assert 0 < found["peak_before"] <= found["peak"]


@in_a_child
def test_encoding_in_a_child_process(small):
    folder, tokenizer = small
    ids = tokenizer.encode_array(TEXT)
    found = run_one("bytepair", "encode", folder / "text", folder, "--passes", 3)
    assert found["size"] == len(ids)
    assert found["sha256"] == hashlib.sha256(ids.astype("<u4").tobytes()).hexdigest()


@in_a_child
def test_parts_of_our_own_agree(small):
    folder, _ = small
    one, two = (run_one("bytepair", "count", folder / "text", threads) for threads in (1, 2))
    assert one["sha256"] == two["sha256"]
    ours, reference = (
        run_one(tool, "core", folder / "counts", 44) for tool in ("bytepair", "reference")
    )
    assert ours["sha256"] == reference["sha256"]
    assert ours["size"] == 44


def test_the_vocabulary_as_peers_read_it(small):
    folder, tokenizer = small
    model = json.loads((folder / vocabulary.TOKENIZER_JSON).read_bytes())["model"]
    assert list(map(vocabulary.to_bytes, model["vocab"])) == tokenizer.vocab
    assert [vocabulary.to_bytes(a + b) for a, b in model["merges"]] == tokenizer.vocab[256:]
    ranks = folder / vocabulary.RANKS
    assert ranks.read_bytes().splitlines()[97] == b"YQ== 97"
    assert vocabulary.load_ranks(ranks) == {token: i for i, token in enumerate(tokenizer.vocab)}
