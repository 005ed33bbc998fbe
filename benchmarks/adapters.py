"""Each tool behind one face: what is measured, and what is only set-up or a look at the result.

An adapter imports its tool, reads what it needs and returns the work, a function that is timed.
The work returns a function that reads its result; that is not timed. Training results are the
tokens made, in rank order: they determine the merges. Encoding results are arrays of ids.

Every tool gets its best way to do the job: bytes or str as it prefers, one long text or blocks,
arrays where it can make them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from importlib import metadata
from pathlib import Path
from typing import Any

GPT2 = r"'(?:[sdmt]|ll|ve|re)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+"
BLOCK = 1 << 20
_SAFE_CUT = re.compile(rb"[a-z](?= [a-z])")  # every pattern here begins a chunk at that space

Read = Callable[[], Any]
Work = Callable[[], Read]

DISTRIBUTIONS = (
    "bytepair", "bpeasy", "gigabpe", "gigatoken", "rustbpe", "splintr-rs", "tiktoken", "tokenizers",
)  # fmt: skip


def versions() -> dict[str, str]:
    """What is installed of each tool."""
    return {name: metadata.version(name) for name in DISTRIBUTIONS}


def read_text(path: Path) -> str:
    """A file as str, its line ends untouched."""
    return path.read_bytes().decode("utf-8")


def blocks(text: bytes, size: int) -> Iterator[bytes]:
    """Cut a text into blocks of `size` bytes and a little more, never through a chunk.

    >>> list(blocks(b"one two three", 5))
    [b'one two', b' three']
    """
    start = 0
    while start < len(text):
        cut = _SAFE_CUT.search(text, start + size - 1)
        end = cut.end() if cut else len(text)
        yield text[start:end]
        start = end


# ---- training: train(file, number of merges) -----------------------------------------------------


def train_bytepair(path: Path, merges: int) -> Work:
    import bytepair.counts
    import bytepair.training  # noqa: F401 - imported when first used
    from bytepair import Tokenizer

    def work() -> Read:
        found = Tokenizer.train_files([path], vocab_size=256 + merges, pattern="gpt2", threads=1)
        return lambda: found.vocab[256:]

    return work


def train_gigabpe(path: Path, merges: int) -> Work:
    import gigabpe

    from vocabulary import to_bytes

    alphabet: set[int] = set()  # its vocabulary begins with the bytes that occur, not with all
    with path.open("rb") as file:
        while block := file.read(BLOCK):
            alphabet.update(block)
    size = len(alphabet) + merges

    def work() -> Read:
        _, pairs = gigabpe.train_bpe([str(path)], size, pretokenizer="bytelevel", threads=1)
        return lambda: [to_bytes(left + right) for left, right in pairs]

    return work


def train_gigatoken(path: Path, merges: int) -> Work:
    import gigatoken

    def work() -> Read:
        _, pairs = gigatoken.train_bpe(path, 256 + merges, [], tie_breaking="raw_token_ids")
        return lambda: [left + right for left, right in pairs]

    return work


def train_rustbpe(path: Path, merges: int) -> Work:
    import rustbpe

    def work() -> Read:
        tokenizer = rustbpe.Tokenizer()
        tokenizer.train_from_iterator(iter([read_text(path)]), 256 + merges, pattern=GPT2)
        return lambda: [bytes(token) for token, rank in tokenizer.get_mergeable_ranks()][256:]

    return work


def train_tokenizers(path: Path, merges: int) -> Work:
    from tokenizers import Tokenizer, models, pre_tokenizers, trainers

    from vocabulary import to_bytes

    def work() -> Read:
        tokenizer = Tokenizer(models.BPE())
        tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        trainer = trainers.BpeTrainer(
            vocab_size=256 + merges,
            min_frequency=2,
            initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
            show_progress=False,
        )
        tokenizer.train([str(path)], trainer)
        return lambda: [to_bytes(tokenizer.id_to_token(256 + rank) or "") for rank in range(merges)]

    return work


def train_bpeasy(path: Path, merges: int) -> Work:
    import bpeasy

    def work() -> Read:
        ranks = bpeasy.train_bpe(iter([read_text(path)]), GPT2, 1 << 30, 256 + merges)
        return lambda: sorted(ranks, key=ranks.__getitem__)[256:]

    return work


TRAIN: dict[str, Callable[[Path, int], Work]] = {
    "bytepair": train_bytepair,
    "gigabpe": train_gigabpe,
    "gigatoken": train_gigatoken,
    "rustbpe": train_rustbpe,
    "bpeasy": train_bpeasy,
    "tokenizers": train_tokenizers,
}

# ---- encoding: encode(file, folder of the vocabulary) --------------------------------------------


def encode_bytepair(path: Path, folder: Path) -> Work:
    import numpy as np

    import bytepair.id_arrays  # noqa: F401 - imported when first used
    from bytepair import Tokenizer
    from vocabulary import BPE

    tokenizer = Tokenizer.load(folder / BPE)
    text = path.read_bytes()
    out: Any = None

    def work() -> Read:
        nonlocal out
        ids = tokenizer.encode_array(text, threads=1, out=out)
        if out is None:
            out = np.empty(len(text) + 16, ids.dtype)  # for the passes after the first
        return lambda: ids

    return work


def encode_gigatoken(path: Path, folder: Path) -> Work:
    import gigatoken

    from vocabulary import RANKS

    tokenizer = gigatoken.Tokenizer.from_tiktoken(folder / RANKS, "gpt2")
    source = gigatoken.BytesSource(path.read_bytes())

    def work() -> Read:
        rows = tokenizer.encode_batch(source, parallel=False)
        return lambda: _joined(rows)

    return work


def encode_gigatoken_blocks(path: Path, folder: Path) -> Work:
    import gigatoken

    from vocabulary import RANKS

    tokenizer = gigatoken.Tokenizer.from_tiktoken(folder / RANKS, "gpt2")
    texts = list(blocks(path.read_bytes(), BLOCK))

    def work() -> Read:
        rows = tokenizer.encode_batch(texts, parallel=False)
        return lambda: _joined(rows)

    return work


def encode_splintr(path: Path, folder: Path) -> Work:
    import numpy as np
    import splintr

    from vocabulary import RANKS

    # Its own spelling of the pattern: with ours it falls back to a regex engine, at half the rate.
    tokenizer = splintr.Tokenizer(str(folder / RANKS), splintr.GPT2_PATTERN, {})
    text = read_text(path)

    def work() -> Read:
        flat = tokenizer.encode_flat(text)
        return lambda: np.frombuffer(flat, np.uint32)

    return work


def encode_tiktoken(path: Path, folder: Path) -> Work:
    import tiktoken

    from vocabulary import RANKS, load_ranks

    ranks = load_ranks(folder / RANKS)
    tokenizer = tiktoken.Encoding(
        "benchmark", pat_str=GPT2, mergeable_ranks=ranks, special_tokens={}
    )
    text = read_text(path)

    def work() -> Read:
        ids = tokenizer.encode_ordinary(text)  # quicker than its encode_to_numpy
        return lambda: ids

    return work


def encode_rustbpe(path: Path, folder: Path) -> Work:
    import rustbpe

    from bytepair import Tokenizer
    from vocabulary import BPE

    size = Tokenizer.load(folder / BPE).vocab_size
    text = read_text(path)
    tokenizer = rustbpe.Tokenizer()  # it cannot load a vocabulary, so it trains the same one
    tokenizer.train_from_iterator(iter([text]), size, pattern=GPT2)

    def work() -> Read:
        ids = tokenizer.encode(text)
        return lambda: ids

    return work


def encode_tokenizers(path: Path, folder: Path) -> Work:
    from tokenizers import Tokenizer

    from vocabulary import TOKENIZER_JSON

    tokenizer = Tokenizer.from_file(str(folder / TOKENIZER_JSON))
    texts = [block.decode("utf-8") for block in blocks(path.read_bytes(), 1 << 13)]

    def work() -> Read:
        ids = [tokenizer.encode_batch_fast([text])[0].ids for text in texts]
        return lambda: _joined(ids)

    return work


def _joined(rows: Any) -> Any:
    import numpy as np

    return np.concatenate([np.asarray(row) for row in rows])


ENCODE: dict[str, Callable[[Path, Path], Work]] = {
    "bytepair": encode_bytepair,
    "gigatoken": encode_gigatoken,
    "gigatoken, blocks": encode_gigatoken_blocks,
    "splintr": encode_splintr,
    "tiktoken": encode_tiktoken,
    "rustbpe": encode_rustbpe,
    "tokenizers": encode_tokenizers,
}

# ---- parts of our own ----------------------------------------------------------------------------


def count(path: Path, threads: int) -> Work:
    """Count the chunks of a file."""
    from bytepair.counts import ChunkCounts

    def work() -> Read:
        found = ChunkCounts.count_files([path], pattern="gpt2", threads=threads)
        return lambda: [b"%s %d" % item for item in sorted(found.counts.items())]

    return work


def core_python(path: Path, merges: int) -> Work:
    """Train from saved counts without the kernel."""
    os.environ["BYTEPAIR_KERNEL"] = "0"
    from bytepair.counts import ChunkCounts
    from bytepair.training import train

    counts = ChunkCounts.load(path).counts

    def work() -> Read:
        found = train(counts, merges=merges)
        return lambda: [b"%d %d" % pair for pair in found.merges]

    return work


def core_reference(path: Path, merges: int) -> Work:
    """Train from saved counts, counting every pair again at every step."""
    from bytepair.counts import ChunkCounts
    from bytepair.reference import train

    counts = ChunkCounts.load(path).counts

    def work() -> Read:
        found = train(counts, merges=merges)
        return lambda: [b"%d %d" % pair for pair in found]

    return work


CORE: dict[str, Callable[[Path, int], Work]] = {
    "bytepair": core_python,
    "reference": core_reference,
}
