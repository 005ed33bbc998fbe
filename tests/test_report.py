"""The facts of a report, the bytes of its page, and the command."""

import json
import re
import subprocess

import pytest

import pipeline
from bytepair import Tokenizer
from bytepair.layout import TokenizerPaths
from bytepair.report.facts import of_pipeline, of_text
from bytepair.report.page import render
from bytepair.report.probes import PROBES, Splitter
from report_page import bytepair, data_of

# Facts


def test_figures_are_those_of_the_pipeline(sample_project):
    facts = of_pipeline(sample_project, "sample-512")
    figures = json.loads(TokenizerPaths(sample_project, "sample-512").metrics.read_bytes())
    measures = json.loads(TokenizerPaths(sample_project, "sample-512").measures.read_bytes())
    curves = {curve.split: curve.bytes_per_token for curve in facts.curves}
    for split in facts.splits:
        assert round(split.bytes_per_token, 6) == figures[split.name]["bytes_per_token"]
        assert split.measures == measures["intrinsic"][split.name]
        by_document = measures["documents"][split.name]
        assert [d.size / d.tokens for d in split.documents] == [
            pytest.approx(entry["bytes_per_token"], abs=1e-6) for entry in by_document
        ]
        if split.name in curves:
            merges = len(facts.tokenizer.merges)
            assert curves[split.name][merges] == split.bytes_per_token
            assert len(curves[split.name]) > 2 * merges
    assert facts.cost.value == figures["val"]["bits_per_byte"]


def test_leakage_and_rivals_of_the_published_tokenizers(project):
    facts = of_pipeline(project, "sherlock-512")
    assert round(facts.leaked, 4) == 2.2017
    assert round(facts.split("val").bytes_per_token, 4) == 2.1874
    assert [rival.name for rival in facts.rivals] == ["sherlock-512", "chat-1024"]
    assert facts.rivals[1].difference.value == pytest.approx(-0.0596, abs=5e-5)
    page = render(facts).decode()
    assert "2.2017" in page
    assert "170 ids of 512 never occur in train: 170 raw bytes." in page
    assert "chat-1024 pays 0.0596 bits per byte less than sherlock-512" in page


def test_probes_of_the_published_tokenizers(project):
    tok = Tokenizer.load(TokenizerPaths(project, "notebook-316").bpe)
    splitter = Splitter(tok)
    lengths = {
        "extraordinary": 10, "1234567": 7, "127 + 677": 9, "hello how are you": 9,
        "你好你好你好": 18, "the king and the queen": 10, "café naïve": 12,
    }  # fmt: skip
    assert {text: splitter.split(text).tokens for text in lengths} == lengths
    assert lengths.keys() <= {text for probe in PROBES for text in probe.texts}


@pytest.mark.parametrize("pattern", [None, "words", "gpt2-ascii", "o200k"])
def test_a_probe_splits_as_the_tokenizer_encodes(pattern):
    tok = Tokenizer.train(
        "the café 你好 " * 9 + "how are you now " * 9, vocab_size=264, pattern=pattern
    )
    splitter = Splitter(tok)
    for probe in PROBES:
        for text in probe.texts:
            found = splitter.split(text)
            assert [token for chunk in found.chunks for token in chunk] == tok.encode(text)
            assert found.stops is None or found.stops not in tok.merges
            assert ("你" in found.broken) == ("你" in text and len(tok.encode("你")) > 1)


def test_the_test_split_is_shown_only_where_params_say_so(sample_project, sample_page, tmp_path):
    shown = sample_page.read_text(encoding="utf-8")
    assert list(data_of(shown)["counts"]) == ["train", "val", "test"]
    hidden = pipeline.copy_project(tmp_path / "project")
    for name in ("data", "metrics"):
        subprocess.run(["cp", "-r", str(sample_project / name), str(hidden)], check=True)
    params = hidden / "params.yaml"
    text = params.read_text(encoding="utf-8")
    block = text.index("  sample-512:")
    text = text[:block] + text[block:].replace("report: {test: true}", "report: {test: false}", 1)
    params.write_text(text, encoding="utf-8", newline="\n")
    pipeline.run_stage(hidden, "stages/measure.py", "sample-512")
    facts = of_pipeline(hidden, "sample-512")
    page = render(facts).decode()
    assert list(data_of(page)["counts"]) == ["train", "val"]
    assert "The test split is not shown" in page
    assert ">test<" not in page
    # What it holds is not used either: the tokenizer that saw all documents has not seen it.
    for path in (hidden / "data").glob("**/test/*"):
        path.write_bytes(b"not to be opened")
    assert render(of_pipeline(hidden, "sample-512")).decode() == page


def test_a_text_of_ones_own(sample):
    text = "The tide, “the tide”.\n" * 40
    facts = of_text(pipeline.ROOT / "data/tokenizers/sample-512/bpe.json", text, "mine")
    assert facts.splits[0].size == len(text.encode())
    assert len(facts.splits[0].ids) == len(sample.encode(text))
    page = render(facts).decode()
    assert list(data_of(page)["counts"]) == ["text"]
    assert "<h1>mine</h1>" in page


# The file


def test_the_same_bytes_anywhere(sample_project, sample_page, tmp_path):
    for number, environment in enumerate(
        (
            {"PYTHONHASHSEED": "1", "LC_ALL": "C", "PYTHONUTF8": "0"},
            {"PYTHONHASHSEED": "2", "LC_ALL": "de_DE.UTF-8", "TZ": "Asia/Tokyo"},
            {"BYTEPAIR_KERNEL": "0"},
        )
    ):
        path = tmp_path / f"{number}.html"
        bytepair(
            sample_project, "report", "sample-512", "--output", str(path), environment=environment
        )
        assert path.read_bytes() == sample_page.read_bytes()
    assert str(sample_project).encode() not in sample_page.read_bytes()


def test_no_address_and_no_inline_style(sample_page):
    page = sample_page.read_text(encoding="utf-8")
    assert not re.search(r"(?i)(src|href)=\"(?!#|data:)", page)
    assert not re.search(r"https?://", page)
    assert " style=" not in page


# The command


def test_names_and_outputs(sample_project, sample_page, tmp_path):
    for name in ("params.yaml", "data", "metrics"):
        (tmp_path / name).symlink_to(sample_project / name)
    said = bytepair(tmp_path, "report", "sample-512").stdout.decode()
    assert said == f"sample-512.html: sample-512, {sample_page.stat().st_size:,} bytes\n"
    assert (tmp_path / "sample-512.html").read_bytes() == sample_page.read_bytes()
    piped = bytepair(tmp_path, "report", "sample-512", "--output", "-").stdout
    assert piped == sample_page.read_bytes()
    bpe = "data/tokenizers/sample-512/bpe.json"
    for name in (bpe, "sample-512"):
        path = tmp_path / "text.html"
        text = "It was low tide."
        bytepair(
            tmp_path, "report", name, "--text", "-", "--output", str(path), input=text.encode()
        )
        assert list(data_of(path.read_text(encoding="utf-8"))["counts"]) == ["text"]
        assert "<h1>sample-512</h1>" in path.read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("arguments", "code", "said"),
    [
        (["sample-51"], 2, "'sample-51' is no tokenizer. Known: sample-512"),
        (["sample-512", "chat-1024", "--output", "a.html"], 2, "--output is one file"),
        (["--text", "params.yaml"], 2, "--text needs a bpe.json"),
        (["params.yaml"], 2, "with --text FILE"),
        (["chat-1024"], 1, "Run `dvc repro"),
        (["sample-512", "--text", "nowhere.txt"], 1, "nowhere.txt: No such file"),
        (["sample-512", "--text", "latin1.txt"], 1, "latin1.txt: not UTF-8: byte 0xe9"),
        (["params.yaml", "--text", "params.yaml"], 1, "params.yaml: not JSON"),
    ],
)
def test_wrong_usage_and_what_is_missing(sample_project, tmp_path, arguments, code, said):
    for name in ("params.yaml", "data", "metrics"):
        (tmp_path / name).symlink_to(sample_project / name)
    (tmp_path / "latin1.txt").write_bytes(b"caf\xe9")
    old = tmp_path / "chat-1024.html"
    old.write_bytes(b"old")
    result = bytepair(tmp_path, "report", *arguments, check=False)
    assert result.returncode == code
    assert said in result.stderr.decode()
    assert old.read_bytes() == b"old"
