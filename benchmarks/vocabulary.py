"""One vocabulary in the formats that the peers read: tiktoken's ranks and tokenizer.json.

tokenizer.json writes bytes as characters, in GPT-2's alphabet: printable Latin-1 stands for itself,
the other 68 bytes for the characters from U+0100 on, in byte order.
"""

from __future__ import annotations

import base64
from pathlib import Path
from typing import Any

from bytepair import Tokenizer
from bytepair.files import write_bytes, write_json

BPE, RANKS, TOKENIZER_JSON = "bpe.json", "ranks.tiktoken", "tokenizer.json"

_PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
_OTHERS = [byte for byte in range(256) if byte not in _PRINTABLE]
ALPHABET = {byte: chr(byte) for byte in _PRINTABLE} | {
    byte: chr(0x100 + number) for number, byte in enumerate(_OTHERS)
}
_BYTES = {character: byte for byte, character in ALPHABET.items()}


def to_characters(token: bytes) -> str:
    r"""A token as tokenizer.json writes it.

    >>> to_characters(b" caf\xc3\xa9")
    'ĠcafÃ©'
    """
    return "".join(map(ALPHABET.__getitem__, token))


def to_bytes(token: str) -> bytes:
    r"""The inverse.

    >>> to_bytes("ĠcafÃ©")
    b' caf\xc3\xa9'
    """
    return bytes(map(_BYTES.__getitem__, token))


def save(tokenizer: Tokenizer, folder: Path) -> None:
    """Write a tokenizer of the gpt2 pattern and without special tokens in all three formats."""
    tokenizer.save(folder / BPE)
    ranks = (
        b"%s %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokenizer.vocab)
    )
    write_bytes(folder / RANKS, b"".join(ranks))
    write_json(folder / TOKENIZER_JSON, _tokenizer_json(tokenizer))


def load_ranks(path: Path) -> dict[bytes, int]:
    """From each token to its rank.

    tiktoken's own reader keeps a copy of any file by its path, and would find an older vocabulary.
    """
    lines = map(bytes.split, path.read_bytes().splitlines())
    return {base64.b64decode(token): int(rank) for token, rank in lines}


def _tokenizer_json(tokenizer: Tokenizer) -> dict[str, Any]:
    tokens = list(map(to_characters, tokenizer.vocab))
    byte_level = {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True}
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": [],
        "normalizer": None,
        "pre_tokenizer": {**byte_level, "use_regex": True},
        "post_processor": None,
        "decoder": {**byte_level, "use_regex": True},
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: number for number, token in enumerate(tokens)},
            "merges": [[tokens[left], tokens[right]] for left, right in tokenizer.merges],
        },
    }
