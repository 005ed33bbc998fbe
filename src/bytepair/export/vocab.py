"""A vocabulary for people to read, one token a line. Nothing can be loaded from it."""

from __future__ import annotations

from bytepair.export.publish import file_name
from bytepair.files import StrPath, write_bytes
from bytepair.tokenizer import Tokenizer

_HEAD = """\
# Lossy: for people to read; bytes that are not UTF-8 stand as \\xNN. Programs load bpe.json.
# bpe.json has sha256 {sha256}
# id  token  what it is made of
"""


def export_vocab(tokenizer: Tokenizer, path: StrPath) -> None:
    """Write every id with its token, and the two tokens that were merged into it."""
    write_bytes(file_name(path), vocab_text(tokenizer).encode("utf-8"))


def vocab_text(tokenizer: Tokenizer) -> str:
    r"""The file's text.

    >>> lossy = vocab_text(Tokenizer([(110, 195), (256, 169)], special_tokens=["<end>"]))
    >>> print("\n".join(lossy.splitlines()[-4:]))
    255  "\xff"
    256  "n\xc3"  = 110 "n" + 195 "\xc3"
    257  "né"  = 256 "n\xc3" + 169 "\xa9"
    258  "<end>"  special
    """
    vocab = tokenizer.vocab
    lines = [f"{byte}  {shown(vocab[byte])}" for byte in range(256)]
    for token_id, (left, right) in enumerate(tokenizer.merges, 256):
        parts = f"{left} {shown(vocab[left])} + {right} {shown(vocab[right])}"
        lines.append(f"{token_id}  {shown(vocab[token_id])}  = {parts}")
    lines += (
        f"{token_id}  {shown(vocab[token_id])}  special"
        for token_id in tokenizer.special_tokens.values()
    )
    return _HEAD.format(sha256=tokenizer.sha256) + "\n".join(lines) + "\n"


def shown(token: bytes) -> str:
    r"""A token in double quotes, with what cannot be seen written as an escape.

    >>> print(shown(" né\n".encode()), shown(b"\xc3"), shown(b'"'))
    " né\n" "\xc3" "\""
    """
    text = token.decode("utf-8", "surrogateescape")
    return f'"{"".join(map(_shown_character, text))}"'


def _shown_character(character: str) -> str:
    if "\udc80" <= character <= "\udcff":  # a byte that is not UTF-8
        return f"\\x{ord(character) - 0xDC00:02x}"
    if character in '"\\':
        return f"\\{character}"
    if character.isprintable():
        return character
    return character.encode("unicode_escape").decode("ascii")
