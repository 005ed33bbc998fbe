r"""A tokenizer's vocabulary as people can read it: tokens in quotes, tables, trees of merges.

A token in quotes is exact: what cannot be seen is written byte by byte, as `\xNN`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence

from bytepair.errors import TokenError
from bytepair.patterns import PRESETS, Pattern
from bytepair.tokenizer import Tokenizer

WIDEST = (12, 8, 24, 36)  # of a table's columns; longer cells push what follows
DEEPEST = 64  # levels of a tree

_ESCAPES = {"\\": b"\\", '"': b'"', "n": b"\n", "r": b"\r", "t": b"\t"}
_WRITTEN = {raw.decode(): f"\\{letter}" for letter, raw in _ESCAPES.items()}
_ESCAPED = re.compile(r'\\(?:x([0-9a-fA-F]{2})|([\\"nrt]))')


def visible(character: str) -> str:
    r"""A character that prints, else its bytes; a lone surrogate stands for a byte (PEP 383).

    >>> visible("é"), visible("\u200d"), visible("\udcc3")
    ('é', '\\xe2\\x80\\x8d', '\\xc3')
    """
    if character.isprintable():
        return character
    return "".join(f"\\x{byte:02x}" for byte in character.encode("utf-8", "surrogateescape"))


def quoted(token: bytes) -> str:
    r"""A token in quotes, from which `unquoted` gets it back.

    >>> print(quoted(" né\n".encode()), quoted(b"\xc3"), quoted(b'"'))
    " né\n" "\xc3" "\""
    """
    text = token.decode("utf-8", "surrogateescape")
    if not text.isprintable() or '"' in text or "\\" in text:
        text = "".join(_WRITTEN.get(character) or visible(character) for character in text)
    return f'"{text}"'


def unquoted(text: str) -> bytes:
    r"""The token that `quoted` wrote.

    >>> unquoted(r'"n\xc3\n"')
    b'n\xc3\n'

    Raises:
        TokenError: a backslash is followed by something else.
    """
    token, end = b"", 1
    for match in _ESCAPED.finditer(text, 1, len(text) - 1):
        token += _plain(text, end, match.start())
        byte, letter = match.groups()
        token += bytes.fromhex(byte) if byte else _ESCAPES[letter]
        end = match.end()
    return token + _plain(text, end, len(text) - 1)


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "token"), counted(2000, "token")
    ('1 token', '2,000 tokens')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def pattern_name(pattern: Pattern) -> str:
    """The preset's name, `none`, or the regular expression in full."""
    if pattern.regex is None:
        return "none"
    for name, preset in PRESETS.items():
        if (preset.regex, preset.engine) == (pattern.regex, pattern.engine):
            return name
    return f"{pattern.regex!r} ({pattern.engine})"


def summary(tokenizer: Tokenizer) -> Iterator[str]:
    """What a tokenizer is, in lines."""
    specials = ", ".join(tokenizer.special_tokens) or "none"
    yield f"{tokenizer.vocab_size:,} ids: 256 bytes and {counted(len(tokenizer.merges), 'merge')}"
    yield f"special tokens {specials}"
    yield f"pattern {pattern_name(tokenizer.pattern)}"
    yield f"sha256 {tokenizer.sha256}"


def longest(tokenizer: Tokenizer, ids: Iterable[int], number: int) -> list[int]:
    """Some ids' longest tokens, by length, then id; special tokens, which nobody learned, are none.

    >>> longest(Tokenizer([(97, 98)], special_tokens=["<end>"]), range(258), 2)
    [256, 0]
    """
    vocab, learned = tokenizer.vocab, 256 + len(tokenizer.merges)
    return sorted((i for i in ids if i < learned), key=lambda i: (-len(vocab[i]), i))[:number]


def table(tokenizer: Tokenizer, ids: Iterable[int]) -> Iterator[str]:
    r"""Of each id a line: how many bytes its token has, the token, its two parts, the bytes in hex.

    >>> print("\n".join(table(Tokenizer([(110, 195), (256, 169)]), [110, 257])))
     id  bytes  token  made of                   in hex
    110      1  "n"    a byte                    6e
    257      3  "né"   256 "n\xc3" + 169 "\xa9"  6e c3 a9
    """
    vocab = tokenizer.vocab
    rows = [("id", "bytes", "token", "made of", "in hex")]
    for i in ids:
        token = vocab[i]
        parts = _parts(tokenizer, i, vocab)
        rows.append((str(i), str(len(token)), quoted(token), parts, token.hex(" ")))
    places = [min(max(_width(row[n]) for row in rows), WIDEST[n]) for n in range(4)]
    for token_id, size, token_, parts, in_hex in rows:
        numbers = f"{token_id:>{places[0]}}  {size:>{places[1]}}"
        yield f"{numbers}  {_padded(token_, places[2])}  {_padded(parts, places[3])}  {in_hex}"


def tree(tokenizer: Tokenizer, token_id: int) -> Iterator[str]:
    r"""How a token is built, merge by merge.

    A part that is drawn already is not drawn again.

    >>> print("\n".join(tree(Tokenizer([(97, 98), (256, 256), (257, 99)]), 258)))
    258 "ababc"
    ├─ 257 "abab"
    │  ├─ 256 "ab"
    │  │  ├─ 97 "a"
    │  │  └─ 98 "b"
    │  └─ 256 "ab" as above
    └─ 99 "c"
    """
    vocab, merges = tokenizer.vocab, tokenizer.merges
    drawn: set[int] = set()
    left = [(token_id, "", "", 0)]
    while left:
        current, begin, below, depth = left.pop()
        line = f"{begin}{current} {quoted(vocab[current])}"
        if not 256 <= current < 256 + len(merges):
            yield line
        elif current in drawn:
            yield f"{line} as above"
        elif depth == DEEPEST:
            yield f"{line} …"
        else:
            yield line
            drawn.add(current)
            first, second = merges[current - 256]
            left.append((second, f"{below}└─ ", f"{below}   ", depth + 1))
            left.append((first, f"{below}├─ ", f"{below}│  ", depth + 1))


def find_token(tokenizer: Tokenizer, wanted: str) -> int:
    r"""The id that someone asks for: by number, by text, or in quotes as tables have it.

    >>> tok = Tokenizer([(49, 50)], special_tokens=["<end>"])
    >>> find_token(tok, "12"), find_token(tok, '"12"'), find_token(tok, "<end>")
    (12, 256, 257)

    Raises:
        TokenError: there is no such token; the message has the ids that its text becomes.
    """
    if wanted.isascii() and wanted.isdigit():
        if len(wanted) < 10 and int(wanted) < tokenizer.vocab_size:
            return int(wanted)
        raise TokenError(
            f"{wanted} is not an id: 0 to {tokenizer.vocab_size - 1} are. To find the token of a "
            f"text of digits, put it in quotes twice: '\"{wanted}\"'."
        )
    in_quotes = len(wanted) > 1 and wanted[0] == wanted[-1] == '"'
    token = unquoted(wanted) if in_quotes else wanted.encode("utf-8", "surrogateescape")
    vocab = tokenizer.vocab
    if token in vocab:
        return vocab.index(token)
    ids = tokenizer.encode(token.decode("utf-8", "replace"))
    as_tokens = " ".join(f"{i} {quoted(vocab[i])}" for i in ids[:12])
    raise TokenError(
        f"{quoted(token)} is not a token: a text of it is {as_tokens}{' …' if ids[12:] else ''}."
    )


def _parts(tokenizer: Tokenizer, token_id: int, vocab: Sequence[bytes]) -> str:
    if token_id < 256:
        return "a byte"
    if token_id >= 256 + len(tokenizer.merges):
        return "special"
    return " + ".join(f"{part} {quoted(vocab[part])}" for part in tokenizer.merges[token_id - 256])


def _plain(text: str, start: int, end: int) -> bytes:
    if "\\" in text[start:end]:
        raise TokenError(
            rf"{text}: a backslash is followed by xNN, n, r, t, a quote, or another backslash."
        )
    return text[start:end].encode("utf-8", "surrogateescape")


def _padded(text: str, columns: int) -> str:
    return text + " " * (columns - _width(text))


def _width(text: str) -> int:
    """The columns that a text takes in a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )
