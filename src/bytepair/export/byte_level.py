"""The byte-level alphabet of GPT-2 and Hugging Face: a printable character for each byte.

Bytes that print in Latin-1 stand for themselves; the others, among them space, line feed and the
soft hyphen, are the characters from U+0100 on, in order.
"""

from __future__ import annotations

from functools import cache

from bytepair.errors import ArtifactError

_PRINTED = (*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100))


@cache
def alphabet() -> tuple[str, ...]:
    r"""The character of each byte, in byte order.

    >>> alphabet()[0x0A], alphabet()[0x20], alphabet()[0x41]
    ('Ċ', 'Ġ', 'A')
    """
    moved = iter(range(0x100, 0x200))
    return tuple(chr(byte if byte in _PRINTED else next(moved)) for byte in range(256))


@cache
def _bytes() -> dict[str, int]:
    return {character: byte for byte, character in enumerate(alphabet())}


def to_text(token: bytes) -> str:
    r"""A token as Hugging Face writes it.

    >>> to_text(b" caf\xc3")
    'ĠcafÃ'
    """
    return "".join(map(alphabet().__getitem__, token))


def to_bytes(text: str) -> bytes:
    """The token that is so written.

    Raises:
        ArtifactError: a character is none of the alphabet.
    """
    try:
        return bytes(map(_bytes().__getitem__, text))
    except KeyError as error:
        raise ArtifactError(
            f"{text!r} holds {error.args[0]!r}, which stands for no byte: not a byte-level token."
        ) from None
