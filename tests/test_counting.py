"""Blocks and threads change nothing: counting from files and streams, encoding in segments."""

import io
import subprocess
import sys
from array import array
from itertools import accumulate

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import peak
from bytepair import ChunkCounts, Tokenizer, encoding
from bytepair.counting import count_streams
from bytepair.counts import _count
from bytepair.errors import TextError
from bytepair.kernel import library
from bytepair.kernel.count import Counter
from bytepair.kernel.scan import is_utf8
from bytepair.patterns import PRESETS, Pattern
from bytepair.scanning import kernel_scanner
from test_kernel import in_python, named, texts

pytestmark = pytest.mark.filterwarnings("ignore:training stopped")
needs_kernel = pytest.mark.skipif(library() is None, reason="the kernel is not built, or off")
SPECIALS = ("<|end|>", "<|end|><", "a b", "é", "\n")
some_specials = st.lists(st.sampled_from(SPECIALS), unique=True, max_size=3)
with_specials = st.lists(texts | st.sampled_from(SPECIALS), max_size=8).map("".join)


def in_blocks(documents, pattern, specials=(), *, threads=1, block=1):
    streams = [io.BytesIO(document.encode()) for document in documents]
    scanner = kernel_scanner(Pattern.named(pattern))
    return dict(count_streams(streams, scanner, specials, threads=threads, block=block))


@needs_kernel
@settings(max_examples=500)
@given(named, st.lists(with_specials, max_size=4), some_specials, st.integers(1, 80))
def test_blocks_of_any_size_count_the_same(pattern, documents, specials, block):
    expected = _count(documents, Pattern.named(pattern), specials)
    assert in_blocks(documents, pattern, specials, block=block) == expected


@needs_kernel
@pytest.mark.parametrize("threads", [1, 2, 7])
@pytest.mark.parametrize("corpus", ["pg1661.txt", "tinyshakespeare.txt"])
def test_threads_and_blocks_on_the_books(corpus, threads, corpus_cache):
    text = corpus_cache(corpus).read_text(encoding="utf-8")[:200_000]
    for pattern in PRESETS:
        expected = _count([text], Pattern.named(pattern))
        for block in (1, 63, 4096, 1 << 20):
            if block == 1 and pattern != "gpt2":
                continue  # slow, and block edges at every offset are tried above
            assert in_blocks([text], pattern, threads=threads, block=block) == expected


@needs_kernel
@settings(max_examples=500)
@given(named, texts)
def test_a_safe_cut_changes_no_chunk_and_stands_after_each_word(pattern, text):
    scanner = kernel_scanner(Pattern.named(pattern))
    data = text.encode()
    for size in range(len(data) + 1):
        cut = scanner.safe_cut(data[:size])
        assert 0 <= cut <= size
        apart = Counter(scanner)
        apart.feed(data[:cut])
        apart.feed(data[cut:])
        assert dict(apart.take()) == _count([text], Pattern.named(pattern))
    assert scanner.safe_cut(b"a word and") == len("a word")
    assert scanner.safe_cut("中文\n汉字".encode()) == (
        0 if pattern == "gpt2-ascii" else len("中文".encode())
    )


@needs_kernel
@settings(max_examples=2000)
@given(st.binary(max_size=40) | texts.map(str.encode), st.integers(0, 40), st.integers(0, 255))
def test_utf8_is_what_python_decodes(data, at, byte):
    for given_bytes in (data, data[:at], data[:at] + bytes([byte]) + data[at + 1 :]):
        try:
            given_bytes.decode("utf-8")
        except UnicodeDecodeError:
            assert not is_utf8(given_bytes)
        else:
            assert is_utf8(given_bytes)


@needs_kernel
def test_every_character_of_three_bytes_and_the_edges_of_four():
    for first in range(0xE0, 0xF6):
        for second in range(256):
            for end in (b"\x80", b"\xbf", b"\x7f", b"\xc0"):
                data = bytes([first, second]) + end * (2 if first >= 0xF0 else 1)
                try:
                    data.decode("utf-8")
                except UnicodeDecodeError:
                    assert not is_utf8(data)
                else:
                    assert is_utf8(data)


@pytest.mark.parametrize("threads", [1, 2, None])
@pytest.mark.parametrize("pattern", ["gpt2", r"\w+|\W", None])
def test_files_count_as_their_texts_do(tmp_path, pattern, threads):
    documents = ["Some words <|end|>and words\r\n" * 900, "", "naïve 中文 words" * 999]
    paths = []
    for number, document in enumerate(documents):
        paths.append(tmp_path / f"{number}.txt")
        paths[-1].write_bytes(document.encode())
    options = {"pattern": pattern, "special_tokens": ["<|end|>"]}
    expected = ChunkCounts.count(documents, **options)
    found = ChunkCounts.count_files(paths, **options, threads=threads)
    assert dict(found.counts) == dict(expected.counts)
    assert found.chunker_sha256 == expected.chunker_sha256
    trained = Tokenizer.train_files(paths, vocab_size=300, **options)
    assert trained == Tokenizer.train(documents, vocab_size=300, **options)
    assert ChunkCounts.count_files(str(paths[0]), **options).total < expected.total


@pytest.mark.parametrize("pattern", ["gpt2", None])
@pytest.mark.parametrize("threads", [1, 2])
def test_a_file_that_is_not_utf8_is_named_with_the_place(tmp_path, pattern, threads):
    good, bad = tmp_path / "good.txt", tmp_path / "bad.txt"
    good.write_bytes(b"word " * 1000)
    bad.write_bytes(b"word " * 600_000 + b"\xff word " + b"word " * 600_000)
    with pytest.raises(TextError, match=r"bad\.txt: not UTF-8: byte 0xff at byte offset 3000000"):
        ChunkCounts.count_files([good, bad], pattern=pattern, threads=threads)
    with pytest.raises(TextError, match="the text: not UTF-8: byte 0xff at byte offset 4"):
        Tokenizer([], pattern=pattern).encode_array(b"abcd\xff")


@pytest.mark.parametrize("threads", [0, -1, 2.0, "2", True])
def test_threads_are_a_whole_number(threads):
    with pytest.raises(ValueError, match="threads is"):
        ChunkCounts.count(["a"], pattern="gpt2", threads=threads)
    with pytest.raises(ValueError, match="threads is"):
        Tokenizer([]).encode_array("a", threads=threads)


@needs_kernel
def test_a_file_is_counted_in_blocks_not_in_memory(tmp_path):
    path = tmp_path / "large.txt"
    words = "".join(f"word{number} and text\n" for number in range(5000))
    path.write_text(words * 800)
    assert path.stat().st_size > 64_000_000
    program = (
        "import sys\n"
        "from peak import peak\n"
        "from bytepair import ChunkCounts\n"
        "ChunkCounts.count(['a b'], pattern='gpt2')\n"
        "before = peak()\n"
        "ChunkCounts.count_files(sys.argv[1], pattern='gpt2', threads=2)\n"
        "print(peak() - before)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", program, path],
        check=True,
        capture_output=True,
        env=peak.environment(),
    )
    assert int(run.stdout) < 32_000_000  # half of the file


@needs_kernel
@settings(max_examples=300)
@given(named | st.none(), st.lists(with_specials, max_size=6), some_specials, st.integers(1, 7))
def test_threads_and_batches_encode_the_same(pattern, documents, specials, threads):
    tok = Tokenizer([(97, 98), (32, 97), (257, 97)], pattern=pattern, special_tokens=specials)
    least, encoding.LEAST_FOR_A_THREAD = encoding.LEAST_FOR_A_THREAD, 1
    try:
        for allowed in ((), specials):
            ids, offsets = tok.encode_batch_array(
                documents, allowed_special=allowed, threads=threads
            )
            assert (len(offsets), offsets[0], offsets[-1]) == (len(documents) + 1, 0, len(ids))
            for number, document in enumerate(documents):
                expected = tok.encode(document, allowed_special=allowed)
                assert ids[int(offsets[number]) : int(offsets[number + 1])].tolist() == expected
                out = np.full(len(document.encode()) + 40, 7, np.uint16)
                found = tok.encode_array(
                    document.encode(), allowed_special=allowed, threads=threads, out=out
                )
                assert found.tolist() == expected
                assert not len(found) or np.shares_memory(found, out)
    finally:
        encoding.LEAST_FOR_A_THREAD = least


@needs_kernel
def test_segments_are_cut_inside_long_texts(corpus_cache, monkeypatch):
    text = corpus_cache("pg1661.txt").read_text(encoding="utf-8")
    tok = Tokenizer.train(text, vocab_size=600, pattern="gpt2")
    expected = in_python(tok, text)
    used = []
    encode_into = tok._encoder._encoder.encode_into
    monkeypatch.setattr(
        tok._encoder._encoder,
        "encode_into",
        lambda part, *rest: used.append(len(part)) or encode_into(part, *rest),
    )
    assert tok.encode_array(text, threads=2).tolist() == expected
    assert len(used) == 2
    assert min(used) > 250_000
    monkeypatch.setattr(encoding, "LEAST_FOR_A_THREAD", 1000)
    assert tok.encode_array(text, threads=7).tolist() == expected
    assert len(used) == 9


def test_out_must_fit():
    tok = Tokenizer([])
    for out in (np.empty(19, np.uint16), np.empty(20, np.uint32), np.empty((20, 1), np.uint16)):
        with pytest.raises(ValueError, match="out "):
            tok.encode_array("abcd", out=out)
    frozen = np.empty(20, np.uint16)
    frozen.flags.writeable = False
    with pytest.raises(ValueError, match="out "):
        tok.encode_array("abcd", out=frozen)
    assert tok.encode_array("abcd", out=np.empty(20, np.uint16)).tolist() == [97, 98, 99, 100]


@needs_kernel
def test_ends_that_do_not_fit_are_refused():
    scanner = kernel_scanner(Pattern.named("gpt2"))
    for ends in ([1], [3, 2, 4], [4, 5], []):
        with pytest.raises(Exception, match="refused its input"):
            Counter(scanner).feed_texts(b"a bc", array("Q", ends))
        with pytest.raises(Exception, match="refused its input"):
            encoding.Encoder([], scanner).encode_into(
                b"a bc", array("Q", ends), np.empty(20, np.uint16), 2
            )
    whole = Counter(scanner)
    whole.feed_texts(b"a bc", array("Q", accumulate([1, 0, 2, 1])))
    assert dict(whole.take()) == {b"a": 1, b" b": 1, b"c": 1}
