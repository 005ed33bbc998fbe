"""`bytepair sweep`: each row is the tokenizer that training by itself would give."""

import xml.etree.ElementTree as ET
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pipeline
from bytepair import ChunkCounts, Tokenizer
from bytepair.files import read_json
from bytepair.sweep_plot import sweep_svg
from bytepair.sweeping import Trial, sweep
from bytepair.training import train
from commands import refused, run

SAMPLE = pipeline.ROOT / "data" / "sample" / "tales.txt"
VAL = "The harbour was quiet. <|e|> She waited, naïvely."


@settings(max_examples=300)
@given(
    st.dictionaries(st.text("abc", min_size=1, max_size=12).map(str.encode), st.integers(1, 9), min_size=1),
    st.integers(0, 30),
    st.integers(0, 30),
)  # fmt: skip
def test_the_merges_of_a_smaller_size_are_the_first(counts, size, more):
    small, large = (train(counts, merges=merges) for merges in (size, size + more))
    assert large.merges[:size] == small.merges
    assert large.lengths[: size + 1] == small.lengths
    assert large.pair_counts[:size] == small.pair_counts


@pytest.mark.parametrize("pattern", ["gpt2", "o200k", "none"])
def test_each_row_is_a_training_of_its_own(tmp_path, pattern):
    (tmp_path / "val.txt").write_text(VAL, encoding="utf-8")
    result = run(
        "sweep", SAMPLE, "--vocab-sizes", "600,300,300,259", "--patterns", pattern,
        "--special", "<|e|>", "--val", tmp_path / "val.txt", "-o", tmp_path / "table.json",
    )  # fmt: skip
    rows = read_json(tmp_path / "table.json")
    assert [row["vocab_size"] for row in rows] == [259, 300, 600]
    preset = None if pattern == "none" else pattern
    counts = ChunkCounts.count_files(SAMPLE, pattern=preset, special_tokens=["<|e|>"])
    for row, line in zip(rows, result.stdout.splitlines()[1:], strict=False):
        tok = Tokenizer.train_files(
            SAMPLE, vocab_size=row["requested"], pattern=preset, special_tokens=["<|e|>"]
        )
        train_tokens = len(tok.encode(SAMPLE.read_text(encoding="utf-8")))
        val_tokens = len(tok.encode(VAL))
        assert row == {
            "pattern": pattern,
            "requested": tok.vocab_size,
            "vocab_size": tok.vocab_size,
            "sha256": tok.sha256,
            "train_tokens": train_tokens,
            "train_bytes_per_token": round(SAMPLE.stat().st_size / train_tokens, 6),
            "unused_on_train": len(tok.unused_ids(counts)),
            "val_tokens": val_tokens,
            "val_bytes_per_token": round(len(VAL.encode()) / val_tokens, 6),
        }
        assert line.split()[:2] == [pattern, str(tok.vocab_size)]
        assert line.endswith(f"  {tok.sha256[:12]}")


def test_training_that_ends_early_is_said(tmp_path):
    result = run("sweep", "-", "--vocab-sizes", "258,300", "--plot", tmp_path / "plot.svg", stdin=b"ab ab ab")  # fmt: skip
    assert [line.split()[1] for line in result.stdout.splitlines()[1:3]] == ["258", "258"]
    assert result.stderr.startswith("Warning: gpt2: training stopped at 258 ids of 300")
    ET.parse(tmp_path / "plot.svg")


def test_the_text_on_stdin_serves_every_pattern():
    both = run("sweep", "-", "--vocab-sizes", "300", "--patterns", "words,none", stdin=SAMPLE.read_bytes())  # fmt: skip
    one = run("sweep", SAMPLE, "--vocab-sizes", "300", "--patterns", "none")
    assert both.stdout.splitlines()[2] == one.stdout.splitlines()[1].replace("none   ", "none   ")


def test_the_plot(tmp_path):
    arguments = ("sweep", SAMPLE, "--vocab-sizes", "300,512,1024", "--patterns", "gpt2,o200k,none")
    for name in ("a.svg", "b.svg"):
        run(*arguments, "--plot", tmp_path / name)
    assert (tmp_path / "a.svg").read_bytes() == (tmp_path / "b.svg").read_bytes()
    svg = ET.parse(tmp_path / "a.svg").getroot()
    space = "{http://www.w3.org/2000/svg}"
    lines = svg.findall(f"{space}polyline")
    assert len(lines) == len({line.get("stroke") for line in lines}) == 3
    for line in lines:
        points = [tuple(map(float, point.split(","))) for point in line.get("points").split()]
        assert len(points) == 3
        assert all(b[0] > a[0] and b[1] < a[1] for a, b in pairwise(points)), "right and up"
    texts = [text.text for text in svg.findall(f"{space}text")]
    assert {"300", "512", "1,024", "gpt2", "o200k", "none", "ids in the vocabulary"} <= set(texts)
    assert "bytes per token, text trained on" in texts
    assert svg.find(f"{space}title").text.startswith("Bytes per token of the text trained on")


@given(
    st.lists(
        st.tuples(st.sampled_from("ab<"), st.integers(256, 10**6), st.floats(0.1, 500)),
        min_size=1,
    )
)
def test_any_figures_stay_inside(rows):
    svg = sweep_svg(
        [Trial(name, size, size, "", 1, value, 0, None, None) for name, size, value in rows]
    )
    for circle in ET.fromstring(svg).iter("{http://www.w3.org/2000/svg}circle"):
        assert 56 <= float(circle.get("cx")) <= 500
        assert 20 <= float(circle.get("cy")) <= 350


def test_patterns_count_once_each():
    asked = []

    def count(**options):
        asked.append(options["pattern"].regex)
        return ChunkCounts.count(["low lower lowest low lower"], **options)

    from bytepair import Pattern

    patterns = {name: Pattern.named(name) for name in ("words", "gpt2")}
    assert len(list(sweep(count, patterns, [257, 258, 259]))) == 6
    assert asked == [pattern.regex for pattern in patterns.values()]


@pytest.mark.parametrize(
    ("options", "said", "code"),
    [
        (["--vocab-sizes", "512,x"], "'512,x': write numbers such as 512,1024", 2),
        (["--vocab-sizes", "512", "--patterns", "gpt3"], "'gpt3' is none of gpt2-ascii", 2),
        (["--vocab-sizes", "512,200"], "vocab_size is 200", 1),
        ([], "Missing option '--vocab-sizes'", 2),
    ],
)
def test_what_is_wrong_is_named(options, said, code):
    assert said in refused("sweep", SAMPLE, *options, code=code)
