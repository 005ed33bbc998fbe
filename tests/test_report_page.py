"""The page that `bytepair report` writes, in a real browser, and the plots of DVC."""

import html
import json
import os
import random
import re
import resource
import subprocess
import sys

import pytest

import headless
import pipeline
from bytepair import Tokenizer
from bytepair.merging import merge_chunk
from bytepair.report.facts import of_pipeline, of_text
from bytepair.report.markup import text_of, visible
from bytepair.report.page import render
from report_page import bytepair, data_of


def test_tokens_shown_by_pointer_and_by_keyboard(browser, sample_page, sample):
    with headless.opened(browser, sample_page) as page:
        ids = [
            int(i)
            for i in page.locator("#text [role=option]").evaluate_all(
                "all => all.map((o) => o.dataset.i)"
            )
        ]
        shown = sample.decode(ids)
        assert 1_500 < len(shown) < 2_500
        page.hover("#t7")
        readout = page.locator("#token").inner_text()
        assert f"id {ids[7]}" in readout
        assert sample.vocab[ids[7]].hex(" ") in readout
        assert page.locator("#t7").get_attribute("aria-selected") == "true"
        page.focus("#text")
        page.keyboard.press("ArrowRight")
        assert page.locator("#text").get_attribute("aria-activedescendant") == "t8"
        assert f"id {ids[8]}, " in page.locator("#t8").get_attribute("aria-label")
        assert "in train" in page.locator("#token").inner_text()
        for key, place in (("Home", 0), ("End", len(ids) - 1), ("ArrowRight", len(ids) - 1)):
            page.keyboard.press(key)
            assert (
                page.locator("[role=option][aria-selected=true]").get_attribute("id") == f"t{place}"
            )
        page.keyboard.press("Home")
        page.keyboard.press("ArrowDown")
        tops = page.evaluate(
            """["t0", document.querySelector("#text [aria-selected=true]").id]
               .map((id) => document.getElementById(id).getBoundingClientRect().top)"""
        )
        assert tops[0] < tops[1] < tops[0] + 60


def test_counts_in_the_page_are_those_of_the_tokens(sample_project, sample_page):
    facts = of_pipeline(sample_project, "sample-512")
    data = data_of(sample_page.read_text(encoding="utf-8"))
    for split in facts.splits:
        assert data["counts"][split.name] == split.counts.tolist()
        assert sum(data["counts"][split.name]) == len(split.ids)


def test_words_are_built_as_they_are_encoded(browser, sample_page, sample):
    pairs = {pair: 256 + rank for rank, pair in enumerate(sample.merges)}
    random_ = random.Random(0)
    letters = "etaoin shrdlu the and ing’é你\n"
    words = [" extraordinary", "aaaaaaa", "  ", "👩‍👧", "the the the", "<|endoftext|>", "é" * 9]
    words += ["".join(random_.choices(letters, k=random_.randrange(1, 60))) for _ in range(60)]
    with headless.opened(browser, sample_page) as page:
        assert page.locator("#word").input_value().strip().isalpha()
        for word in words:
            typed = word.replace("\n", "")  # a field of one line has none
            page.fill("#word", typed)
            said = page.locator("#word-says").inner_text()
            ids = merge_chunk(typed.encode(), pairs)
            assert said.partition(": ")[2].split() == [str(token) for token in ids], typed
            steps = page.locator("#steps li")
            merges = int(re.search(r"(\d+) merge", said)[1])
            assert steps.count() == merges + 1
            last = steps.last.locator(".chip").all_text_contents()
            assert last == [visible(text_of(sample.vocab[token])) for token in ids]
        page.fill("#word", "")
        assert page.locator("#word-says").inner_text() == "Nothing typed: no tokens."


def test_every_token_can_be_found(browser, sample_page, sample):
    vocabulary = sample.vocab
    with headless.opened(browser, sample_page) as page:

        def search(query):
            page.fill("#search", query)
            said = page.locator("#search-says").inner_text()
            rows = page.locator("#list tbody tr:not(.spacer)")
            return said, [int(row.split("\t")[0]) for row in rows.all_inner_texts()]

        for query in ("th", " th", "The", "ing"):
            expected = [i for i, token in enumerate(vocabulary) if query in text_of(token)]
            said, found = search(query)
            assert found == expected[: len(found)], query
            assert said == f"{len(expected)} of 512 tokens match."
        assert search("#300") == ("1 of 512 tokens match.", [300])
        assert search("x20 74")[1] == [i for i, t in enumerate(vocabulary) if b" t" in t]
        assert (
            search("x0a")[1]
            == search("↵")[1]
            == [i for i, t in enumerate(vocabulary) if b"\n" in t]
        )
        assert search("no such token") == ("0 of 512 tokens match.", [])
        assert page.locator("#search-says").evaluate("o => o.localName") == "output"
        # Every row, as it is scrolled past, says what Python says of the token.
        page.fill("#search", "")
        seen = {}
        while len(seen) < len(vocabulary):
            before = len(seen)
            for row in page.locator("#list tbody tr:not(.spacer)").all():
                cells = row.locator("th, td").all_text_contents()
                seen[int(cells[0])] = cells
            page.evaluate(
                """() => {
                  const list = document.getElementById("list");
                  list.scrollTop += 1200;
                  return new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
                }"""
            )
            assert len(seen) > before
        for token, cells in seen.items():
            assert cells[1] == visible(text_of(vocabulary[token]))
            assert cells[2] == vocabulary[token].hex(" ")
            if 256 <= token < 511:
                parts = [visible(text_of(vocabulary[part])) for part in sample.merges[token - 256]]
                assert cells[5] == " + ".join(parts)


def test_the_table_sorts(browser, sample_page):
    counts = data_of(sample_page.read_text(encoding="utf-8"))["counts"]["val"]
    with headless.opened(browser, sample_page) as page:
        page.get_by_role("button", name="val").click()
        first = page.locator("#list tbody th").first.inner_text()
        assert counts[int(first)] == max(counts)
        assert page.locator("#list [aria-sort]").get_attribute("aria-sort") == "descending"
        page.get_by_role("button", name="val").click()
        first = page.locator("#list tbody th").first.inner_text()
        assert counts[int(first)] == 0
        assert page.locator("#list [aria-sort]").get_attribute("aria-sort") == "ascending"


def test_sizes_are_tried_with_the_slider(browser, sample_project, sample_page):
    facts = of_pipeline(sample_project, "sample-512")
    curves = {curve.split: curve.bytes_per_token for curve in facts.curves}
    with headless.opened(browser, sample_page) as page:
        page.focus("#size")
        for key in ("Home", "PageUp", "ArrowRight", "End"):
            page.keyboard.press(key)
            said = page.locator("#size-says").inner_text()
            assert page.locator("#size").get_attribute("aria-valuetext") == said
            size = int(said.partition(" ids")[0].replace(",", ""))
            for split, curve in curves.items():
                assert f"{split} {round(curve[size - 257], 6):.3f}" in said
        assert size == 257 + len(curve) - 1


# What reaches over the right edge, unless it scrolls by itself.
OVERFLOWING = """
    [...document.querySelectorAll("main *, header *, footer *")]
        .filter((e) => !e.closest(".wide, svg") && e.getBoundingClientRect().right > innerWidth)
        .map((e) => e.outerHTML.slice(0, 80))
"""


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("width", [360, 1280])
def test_nothing_is_wider_than_the_screen_and_all_is_accessible(browser, sample_page, width, dark):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright")
    with headless.opened(browser, sample_page, width=width, dark=dark) as page:
        assert page.evaluate("document.documentElement.scrollWidth") == width
        page.hover("#t3")
        page.focus("#text")
        for _ in range(40):  # some of these tokens have long lists of facts
            page.keyboard.press("ArrowRight")
            assert page.evaluate(OVERFLOWING) == []
        found = axe.Axe().run(page)
        assert found.violations_count == 0, found.generate_report()
        passed = {rule["id"] for rule in found.response["passes"]}
        assert {"color-contrast", "label", "heading-order", "region", "aria-allowed-attr"} <= passed
        background = page.evaluate("getComputedStyle(document.body).backgroundColor")
        channels = [int(part) for part in re.findall(r"\d+", background)]
        assert (max(channels) < 60) is dark


def test_the_keyboard_reaches_everything_and_is_seen(browser, sample_page):
    with headless.opened(browser, sample_page) as page:
        reached = []
        for _ in range(60):
            page.keyboard.press("Tab")
            where, outline = page.evaluate(
                "[document.activeElement.id || document.activeElement.localName,"
                " getComputedStyle(document.activeElement).outlineStyle]"
            )
            assert outline != "none", where
            reached.append(where)
            if where == "list":
                break
        assert {"text", "word", "size", "search", "list"} <= set(reached)
        assert len(reached) < 50  # and not through every token


def test_what_can_be_read_without_script(browser, sample_page, sample):
    with headless.opened(browser, sample_page, script=False) as page:
        text = page.locator("#text").inner_text()
        assert len(text) > 1_000
        assert page.locator("svg[role=img]").count() == 3
        assert page.locator("#probes .chip").count() > 100
        assert "needs this page’s own script" in page.locator("#tokens").inner_text()


# A vocabulary of 50,000


@pytest.fixture(scope="module")
def large(tmp_path_factory):
    """A tokenizer of 50,000 ids with a text: invented words of random syllables."""
    folder = tmp_path_factory.mktemp("large")
    random_ = random.Random(1)
    syllables = [
        a + b for a in "bcdfghklmnprstvwz" for b in ("a", "e", "i", "ou", "ai", "on", "er")
    ]
    words = ["".join(random_.choices(syllables, k=random_.randrange(1, 6))) for _ in range(60_000)]
    text = " ".join(random_.choices(words, k=150_000))
    tok = Tokenizer.train(
        text, vocab_size=50_000, pattern="gpt2", special_tokens=["<|end|>"], min_count=1
    )
    assert tok.vocab_size == 50_000
    tok.save(folder / "bpe.json")
    (folder / "text.txt").write_text(text, encoding="utf-8")
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    bytepair(folder, "report", "bpe.json", "--text", "text.txt", "--output", "page.html")
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    spent = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return folder / "page.html", spent


def test_a_large_vocabulary_takes_less_than_two_seconds(large):
    path, spent = large
    if os.environ.get("BYTEPAIR_KERNEL") != "0":
        assert spent < 2
    assert path.stat().st_size < 3_000_000


def test_a_large_vocabulary_is_searched_at_once(browser, large):
    with headless.opened(browser, large[0]) as page:
        took = page.evaluate(
            """() => {
              const field = document.getElementById("search");
              return ["bai", "x20 62", "#49999", "zzz"].map((query) => {
                const start = performance.now();
                field.value = query;
                field.dispatchEvent(new Event("input"));
                return performance.now() - start;
              });
            }"""
        )
        assert max(took) < 1_000, took
        assert page.locator("#search-says").inner_text() == "0 of 50,000 tokens match."
        page.fill("#search", "")
        assert page.locator("#list tbody tr").count() < 100
        page.evaluate("document.getElementById('list').scrollTop = 1e9")
        page.wait_for_selector("#list [aria-rowindex='50001']")
        assert "<|end|>" in page.locator("#list [aria-rowindex='50001']").inner_text()


# The plots of DVC


def test_the_plots_of_dvc_need_no_network(browser, tmp_path):
    folder = pipeline.copy_project(tmp_path / "project")
    subprocess.run(["git", "init", "-q"], cwd=folder, check=True)
    env = pipeline.environment(folder, DVC_NO_ANALYTICS="1")
    for command in (["git", "add", "-A"], ["git", "commit", "-qm", "all"]):
        subprocess.run(command, cwd=folder, env=env, check=True)
    curve = folder / "data/tokenizers/sample-512/report/training.json"
    rows = json.loads(curve.read_bytes())
    curve.write_text(
        json.dumps([row | {"bytes_per_token": 1.1 * row["bytes_per_token"]} for row in rows])
    )
    for command, lines in ((["show"], 1), (["diff", "HEAD"], 2)):
        dvc = [sys.executable, "-m", "dvc", "plots", *command, "-o", "plots"]
        subprocess.run(dvc, cwd=folder, env=env, check=True, capture_output=True)
        with headless.opened(browser, folder / "plots" / "index.html") as page:
            drawn = page.locator("#data_tokenizers_sample-512_report_training_json polyline")
            assert drawn.count() == lines
            points = drawn.first.get_attribute("points").split()
            assert len(points) == len(rows)
            text = html.unescape(page.locator("body").inner_text())
            assert "Bytes per token on the train split, by number of merges" in text
            assert f"at {rows[-1]['merges']}" in text


@pytest.mark.parametrize("text", ["", "a", "\x00", "</script><script>alert(1)</script>" * 50])
def test_texts_that_are_little_or_hostile(browser, tmp_path, text):
    Tokenizer([], special_tokens=["</script>", "<!--"]).save(tmp_path / "bpe.json")
    facts = of_text(tmp_path / "bpe.json", text, "a<b>&")
    path = tmp_path / "page.html"
    path.write_bytes(render(facts))
    with headless.opened(browser, path) as page:
        assert page.title() == "a<b>&: a tokenizer"
        assert page.locator("#list tbody th").count() > 10
