"""Decoding ids one by one, as a model gives them out."""

from __future__ import annotations

import codecs
from collections.abc import Iterable
from typing import Literal, Protocol

Errors = Literal["replace", "strict"]


class _DecodesBytes(Protocol):
    def decode_bytes(self, ids: Iterable[int], *, skip_special_tokens: bool = ...) -> bytes: ...


class StreamDecoder:
    """Turns ids into text as they come, holding back a character until it is whole.

    >>> from bytepair import Tokenizer
    >>> decoder = Tokenizer([]).stream_decoder()
    >>> [decoder.feed(i) for i in "é".encode()]
    ['', 'é']
    >>> decoder.finish()
    ''
    """

    def __init__(
        self,
        tokenizer: _DecodesBytes,
        *,
        errors: Errors = "replace",
        skip_special_tokens: bool = False,
    ) -> None:
        self._tokenizer = tokenizer
        self._skip_special_tokens = skip_special_tokens
        self._decoder = codecs.getincrementaldecoder("utf-8")(errors)

    def feed(self, ids: int | Iterable[int]) -> str:
        """The text that is whole after one more id, or several."""
        if not isinstance(ids, Iterable):
            ids = (ids,)
        return self._decoder.decode(
            self._tokenizer.decode_bytes(ids, skip_special_tokens=self._skip_special_tokens)
        )

    def finish(self) -> str:
        """What is left of an unfinished character; the decoder can then be used again.

        Raises:
            UnicodeDecodeError: there is something left, with errors="strict".
        """
        try:
            return self._decoder.decode(b"", final=True)
        finally:
            self._decoder.reset()
