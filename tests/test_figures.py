"""The published figures, out of what the pipeline makes of the cached corpora."""

import hashlib
import json
import subprocess
import time

import numpy as np
import pytest

from bytepair import ChunkCounts, Tokenizer, reference
from bytepair.corpora.documents import read_split
from bytepair.corpora.strip import strip
from bytepair.layout import CorpusPaths, TokenizerPaths
from bytepair.params import StripParams
from bytepair.tokens import open_tokens
from bytepair.training import train

CHAT_SPECIALS = ["<pad>", "<bos>", "<eos>", "<user>", "<assistant>"]


def merges_sha256(merges):
    return hashlib.sha256(json.dumps([list(pair) for pair in merges]).encode()).hexdigest()


def metrics(project, name):
    return json.loads((project / "metrics" / f"{name}.json").read_bytes())


def load(project, name):
    return Tokenizer.load(TokenizerPaths(project, name).bpe)


def split_text(project, corpus, name):
    return (CorpusPaths(project, corpus).splits / name / "text.txt").read_bytes()


def documents(project, corpus, name):
    return [doc.text for doc in read_split(CorpusPaths(project, corpus).splits / name).documents]


def figures(bytes_, tokens, bytes_per_token):
    return {"bytes": bytes_, "tokens": tokens, "bytes_per_token": bytes_per_token}


def shown(entry):
    """What FACTS give of a split: bytes, tokens, and their ratio to four places."""
    return figures(entry["bytes"], entry["tokens"], round(entry["bytes_per_token"], 4))


def test_the_clean_text_is_that_of_sed_and_tr(project, corpus_cache):
    clean = (CorpusPaths(project, "sherlock").clean / "clean.txt").read_bytes()
    assert len(clean) == 575_804
    digest = "3552d466d95a92fb58e96bbfabbfc02370d359ac95933b5feafe4ebaf3f243b3"
    assert hashlib.sha256(clean).hexdigest() == digest
    sed = ["sed", "-n", "28,11959p", corpus_cache("pg1661.txt")]
    by_line = subprocess.run(sed, check=True, capture_output=True).stdout
    by_line = subprocess.run(["tr", "-d", "\r"], input=by_line, check=True, capture_output=True)
    assert by_line.stdout == clean


def test_no_project_gutenberg_is_left(project):
    for path in (project / "data").rglob("*.txt"):
        if path.parent.name != "raw":
            assert b"PROJECT GUTENBERG" not in path.read_bytes().upper(), path
    clean = (CorpusPaths(project, "sherlock").clean / "clean.txt").read_bytes()
    assert b'"' not in clean


def test_sherlock_splits(project):
    train = split_text(project, "sherlock", "train")
    digest = "e6e9e3dda8fdf4ee3beed15f16d27e1b9b3a1d9661d63ed3b5b3d35876ac437e"
    assert hashlib.sha256(train).hexdigest() == digest
    assert train.count(b"<|endoftext|>") == 9
    sizes = [
        len(text.encode())
        for name in ("train", "val", "test")
        for text in documents(project, "sherlock", name)
    ]
    assert sizes == [
        47838, 50567, 38751, 52462, 40402, 50248, 43341, 54100, 45650, 45372, 52164, 54354,
    ]  # fmt: skip


def test_sherlock_512_metrics(project):
    found = metrics(project, "sherlock-512")
    assert shown(found["train"]) == figures(468_848, 217_572, 2.1549)
    assert shown(found["val"]) == figures(52_164, 23_848, 2.1874)
    assert shown(found["test"]) == figures(54_354, 25_216, 2.1555)
    assert found["vocab"] == {"requested": 512, "size": 512, "unused_on_train": 170}
    assert 1 < found["val"]["bits_per_byte"] < 8


def test_sherlock_512_merges(project):
    tok = load(project, "sherlock-512")
    assert len(tok.merges) == 255
    digest = "236e5febe8e1ad92322949bd40a81f8abb92bc7ccbeeda5bd730a202a0a5af98"
    assert merges_sha256(tok.merges) == digest
    assert tok.special_tokens == {"<|endoftext|>": 511}
    assert tok.vocab[263] == b" the"
    assert tok.vocab[412] == b" Holmes"
    counts = ChunkCounts.load(TokenizerPaths(project, "sherlock-512").counts)
    assert (counts.total, len(counts.counts)) == (112_090, 9_756)
    assert sum(map(len, counts.counts)) == 71_043
    trace = train(counts.counts, merges=6)
    assert list(zip(trace.merges, trace.pair_counts, strict=True)) == [
        ((32, 116), 10557), ((104, 101), 9389), ((32, 97), 8226), ((105, 110), 6225),
        ((226, 128), 5589), ((32, 119), 5498),
    ]  # fmt: skip
    assert tok.train_sha256 == hashlib.sha256(split_text(project, "sherlock", "train")).hexdigest()


def test_sherlock_512_longest_and_unused_tokens(project):
    measures = json.loads(TokenizerPaths(project, "sherlock-512").measures.read_bytes())
    assert [token["text"] for token in measures["longest_tokens"]] == [
        " Holmes", " little", " which", " there", " would", " that", " with", " have", "olmes",
        " said", " from", " upon", " this", " your", " been", " very", " were", " some", "ittle",
        "ather",
    ]  # fmt: skip
    assert len(measures["unused_on_train"]) == 170
    assert max(measures["unused_on_train"]) < 256


def test_sherlock_512_arrays(project):
    paths = TokenizerPaths(project, "sherlock-512")
    tok = load(project, "sherlock-512")
    for name, separators in (("train", 9), ("val", 0), ("test", 0)):
        tokens = open_tokens(paths.tokens / name, tokenizer_sha256=tok.sha256)
        assert tokens.ids.dtype == np.uint16
        assert int((tokens.ids == 511).sum()) == separators
        assert tok.decode_bytes(tokens.ids) == split_text(project, "sherlock", name)


def test_sherlock_512_leaks_if_trained_on_all_stories(project):
    everything = [
        text for name in ("train", "val", "test") for text in documents(project, "sherlock", name)
    ]
    leaked = Tokenizer.train(
        everything, vocab_size=512, pattern="gpt2-ascii", special_tokens=["<|endoftext|>"]
    )
    (val,) = documents(project, "sherlock", "val")
    assert round(52_164 / len(leaked.encode(val)), 4) == 2.2017


def test_chat_1024(project):
    found = metrics(project, "chat-1024")
    assert shown(found["train"]) == figures(468_848, 171_433, 2.7349)
    assert shown(found["val"]) == figures(52_164, 18_733, 2.7846)
    assert shown(found["test"]) == figures(54_354, 19_783, 2.7475)
    tok = load(project, "chat-1024")
    assert len(tok.merges) == 763
    assert tok.merges[:5] == ((32, 116), (104, 101), (32, 97), (105, 110), (226, 128))
    assert tok.merges[-1] == (101, 120)
    digest = "69a360dc02379193849cc673affdb1df8089177ee991a7dac2abfaaa5fcc4cb2"
    assert merges_sha256(tok.merges) == digest
    assert list(tok.special_tokens.items()) == list(
        zip(CHAT_SPECIALS, range(1019, 1024), strict=True)
    )
    tokens = open_tokens(TokenizerPaths(project, "chat-1024").tokens / "train")
    assert int((tokens.ids == tok.special_tokens["<eos>"]).sum()) == 9


def test_c18_the_pipeline_inserts_separators_and_no_other_special(project):
    for name in ("sherlock-512", "chat-1024", "sample-512", "notebook-316"):
        specials = load(project, name).special_tokens.values()
        for folder in TokenizerPaths(project, name).tokens.iterdir():
            tokens = open_tokens(folder)
            inserted = len(tokens.starts) - 1 if tokens.index.separator_id is not None else 0
            assert int(np.isin(tokens.ids, list(specials)).sum()) == inserted


def test_the_book_holds_a_fraction_that_only_pythons_word_class_takes(project):
    train = split_text(project, "sherlock", "train").decode()
    whole = train + split_text(project, "sherlock", "val").decode()
    whole += split_text(project, "sherlock", "test").decode()
    assert whole.count("½") == 1


def test_notebook_316(project):
    found = metrics(project, "notebook-316")
    assert shown(found["train"]) == figures(20_000, 13_227, 1.5121)
    assert shown(found["val"]) == figures(111_540, 76_451, 1.4590)
    assert "test" not in found
    tok = load(project, "notebook-316")
    assert tok.vocab_size == 316
    assert tok.merges[:5] == ((101, 32), (116, 104), (116, 32), (115, 32), (111, 117))
    digest = "69698edb5b8acb4286ff1f70e7e7a3774bf6d4180c09be4db4c4be64d718e4c9"
    assert merges_sha256(tok.merges) == digest


PROBES = {
    "extraordinary": (10, 9, 10),
    "1234567": (7, 7, 7),
    "127 + 677": (9, 9, 9),
    "hello how are you": (9, 7, 8),
    "你好你好你好": (18, 18, 18),
    "the king and the queen": (10, 9, 12),
    "café naïve": (12, 11, 10),
}


def test_notebook_variants(project):
    (text,) = documents(project, "shakespeare", "train")
    longer = Tokenizer.train(text, vocab_size=556)
    assert len(longer.encode(text)) == 8_827
    assert round(20_000 / 8_827, 4) == 2.2658
    digest = "e98eb21789a0b0d97e1a49e5140dd225b39ed9d7be436adef701c10a3f3acb4e"
    assert merges_sha256(longer.merges) == digest
    cut = Tokenizer.train(text, vocab_size=316, pattern="notebook")
    assert len(cut.encode(text)) == 13_361
    assert round(20_000 / 13_361, 4) == 1.4969
    digest = "cd4faf3ed981b1bea2c90ed614e9ee933b7e1e45972f9929d314e826750a5d04"
    assert merges_sha256(cut.merges) == digest
    plain = load(project, "notebook-316")
    for probe, expected in PROBES.items():
        assert tuple(len(tok.encode(probe)) for tok in (plain, longer, cut)) == expected, probe
    # no token straddles two words once text is cut before merging
    assert not [token for token in cut.vocab if b" " in token[1:] and token.strip()]
    assert [token for token in plain.vocab if b" " in token[1:] and token.strip()]


def test_training_is_15_times_as_quick_as_counting_again_at_every_step(project):
    counts = ChunkCounts.load(TokenizerPaths(project, "sherlock-512").counts).counts
    started = time.process_time()
    merges = train(counts, merges=255).merges
    ours = time.process_time() - started
    assert reference.train(counts, merges=255) == merges
    theirs = time.process_time() - started - ours
    assert theirs > 15 * ours


def test_what_is_committed_is_what_the_pipeline_makes(project):
    """The tokenizers, metrics and reports in git; a change of code must not leave them behind."""
    committed = pytest.importorskip("pipeline").ROOT
    for name in ("sample-512", "sherlock-512", "chat-1024", "notebook-316"):
        paths, theirs = TokenizerPaths(project, name), TokenizerPaths(committed, name)
        assert paths.bpe.read_bytes() == theirs.bpe.read_bytes()
        assert paths.metrics.read_bytes() == theirs.metrics.read_bytes()
        assert paths.measures.read_bytes() == theirs.measures.read_bytes()
        assert paths.training_curve.read_bytes() == theirs.training_curve.read_bytes()


def test_every_other_wrapping_gives_the_same_text(corpus_cache):
    raw = corpus_cache("pg1661.txt").read_bytes()
    params = StripParams(
        start="*** START OF THE PROJECT GUTENBERG EBOOK",
        end="*** END OF THE PROJECT GUTENBERG EBOOK",
    )
    texts = {
        strip(data, params, path="pg1661.txt").text
        for data in (raw, raw.replace(b"\r\n", b"\n"), raw.removeprefix(b"\xef\xbb\xbf"))
    }
    assert len(texts) == 1
