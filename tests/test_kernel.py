"""The compiled kernel counts and encodes as the Python core does; without it, Python serves."""

import concurrent.futures
import os
import random
import subprocess
import sys

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import pipeline
from bytepair import ChunkCounts, Tokenizer
from bytepair.counts import _count
from bytepair.encoding import PythonEncoder
from bytepair.freezing import TABLES, ranges
from bytepair.kernel import library
from bytepair.kernel.count import Counter
from bytepair.patterns import PRESETS, Pattern
from bytepair.scanning import kernel_scanner

pytestmark = [
    pytest.mark.skipif(library() is None, reason="the kernel is not built, or turned off"),
    pytest.mark.filterwarnings("ignore:training stopped"),
]

EDGES = sorted(
    chr(code_point)
    for table in TABLES.values()
    for first, last in ranges(table)
    for code_point in (first - 1, first, last, last + 1)
    if not 0xD800 <= code_point < 0xE000
)
alphabets = st.sampled_from(
    [
        "abAB' 12\n", "a' sdtmlverSDLLVERE", "\r\n\t  \x0b\x1c/!", "0123456789_ ", "ab ",
        "é“”½٣\u0301\u0345ſʰǅ中ａ\u2028\u3000\x85\xa0 a'",
    ]
)  # fmt: skip
texts = st.one_of(
    st.tuples(alphabets, alphabets).flatmap(
        lambda two: st.text(alphabet="".join(two), max_size=300)
    ),
    st.lists(st.one_of(st.sampled_from(EDGES), st.sampled_from(" a1'\n")), max_size=150).map(
        "".join
    ),
)
named = st.sampled_from(list(PRESETS))


def in_python(tok, text):
    return PythonEncoder(tok.merges, tok.pattern).encode(text)


def count(pattern, documents, *, piece=None):
    counter = Counter(kernel_scanner(Pattern.named(pattern)))
    for document in documents:
        data = document.encode()
        if piece is None:
            counter.feed(data)
        else:
            for start in range(0, len(data), piece):
                counter.feed(data[start : start + piece], last=False)
            counter.feed(b"")
    return dict(counter.take())


@settings(max_examples=1500)
@given(named, st.lists(texts, max_size=3), st.sampled_from([None, 1, 3, 64]))
def test_counting_equals_python(pattern, documents, piece):
    assert count(pattern, documents, piece=piece) == _count(documents, Pattern.named(pattern))


@pytest.mark.parametrize("pattern", PRESETS)
def test_every_code_point_is_classed_as_python_does(pattern):
    everything = "".join(chr(n) for n in range(0x110000) if not 0xD800 <= n < 0xE000)
    in_context = "".join(f"a{c} 1{c}'s{c}{c} " for c in EDGES)
    for text in (everything, in_context):
        assert count(pattern, [text]) == _count([text], Pattern.named(pattern))


@pytest.mark.parametrize("pattern", PRESETS)
def test_blocks_of_the_input_cut_no_chunk(pattern):
    """At every offset of what the kernel reads at a time, 256 KiB."""
    word = "don't “stop” 1234  now\n\n"
    for shift in range(70):
        text = "x" * ((1 << 18) - shift) + word * 3
        assert count(pattern, [text]) == _count([text], Pattern.named(pattern))


def test_counters_merge():
    scanner = kernel_scanner(Pattern.named("gpt2"))
    texts = ["the cat", "a rather considerable extraordinarily " * 3, "the dog’s"]
    first, second = Counter(scanner), Counter(scanner)
    for text in texts[:2]:
        first.feed(text.encode())
    second.feed(texts[2].encode())
    first.merge(second)
    assert dict(first.take()) == _count(texts, Pattern.named("gpt2"))


@settings(max_examples=600)
@given(st.one_of(st.none(), named, st.just(r"\w+")), texts, texts, st.integers(0, 60))
def test_encoding_equals_python(pattern, corpus, text, merges):
    tok = Tokenizer.train([corpus, "aa"], vocab_size=256 + merges, pattern=pattern, min_count=1)
    expected = in_python(tok, text)
    assert tok.encode(text) == expected
    assert tok.encode(text) == expected  # from its memory
    assert tok.encode_array(text).tolist() == expected


def test_ids_beyond_16_bits():
    pairs = [(a, b) for a in range(256) for b in range(256)] + [(256 + n, 97) for n in range(1000)]
    tok = Tokenizer(pairs, pattern="gpt2")
    text = "".join(chr(n) for n in range(32, 127)) * 3 + " the end"
    assert max(tok.encode(text)) < len(pairs) + 256
    assert tok.encode(text) == in_python(tok, text) == tok.encode_array(text).tolist()


def test_the_books(corpus_cache):
    for name in ("pg1661.txt", "tinyshakespeare.txt"):
        text = corpus_cache(name).read_bytes().decode()
        for pattern in PRESETS:
            counts = ChunkCounts.count([text], pattern=pattern)
            assert dict(counts.counts) == _count([text], Pattern.named(pattern))
            tok = Tokenizer.from_counts(counts, vocab_size=1000)
            assert tok.encode_array(text).tolist() == in_python(tok, text)


def test_c28_what_an_encoder_remembers_is_bounded():
    tok = Tokenizer([(97, 98)], pattern="gpt2")
    lib = library()[1]
    for start in range(0, 1_500_000, 500_000):
        tok.encode_array(" ".join(f"w{n}" for n in range(start, start + 500_000)), threads=1)
    (encoder,) = tok._encoder._encoder._idle
    assert 0 < lib.bp_encoder_remembers(encoder) <= 655_360
    before = lib.bp_encoder_remembers(encoder)
    tok.encode_array("a" * 1_000_000, threads=1)
    assert lib.bp_encoder_remembers(encoder) == before


def test_threads_have_encoders_of_their_own():
    words = [
        " ".join(random.Random(n).choices(["the", "cat", "sat", "on", "a", "mat"], k=300))
        for n in range(50)
    ]
    tok = Tokenizer.train(words, vocab_size=300, pattern="gpt2")
    expected = [in_python(tok, text) for text in words]
    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        for found in pool.map(lambda _: tok.encode_batch(words), range(20)):
            assert found == expected


@pytest.mark.parametrize(
    ("value", "prints"), [("0", "False"), ("1", "True"), ("", "True"), ("yes", "write 0, 1")]
)
def test_the_kernel_can_be_forced_on_and_off(value, prints):
    program = "from bytepair.kernel import library; print(library() is not None)"
    env = {**os.environ, "BYTEPAIR_KERNEL": value}
    run = subprocess.run([sys.executable, "-c", program], env=env, capture_output=True, check=False)
    assert prints in (run.stdout + run.stderr).decode()


def test_the_sample_gives_the_same_bytes_with_the_kernel(sample_project, tmp_path):
    """The stages of `sample_project` ran where no kernel is built; these run with it."""
    copy = pipeline.copy_project(tmp_path / "project")
    env = pipeline.environment(copy, PYTHONPATH=None, BYTEPAIR_KERNEL="1")
    assert pipeline.run_pipeline(copy, only=pipeline.SAMPLE, env=env) == pipeline.results(
        sample_project
    )
