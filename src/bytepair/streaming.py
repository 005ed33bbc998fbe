"""Decoding: ids that are checked, and ids that come one by one, as a model gives them out."""

from __future__ import annotations

import codecs
import contextlib
import operator
from collections.abc import Iterable, Iterator
from typing import Any, Literal, Protocol

from bytepair.errors import TokenError

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


def checked_ids(ids: Iterable[int], size: int) -> Iterator[int]:
    """The same, as int; integers of another type than int, such as numpy's, are taken.

    Raises:
        TokenError: something is not an id of a vocabulary of `size`.
    """
    for value in ids.tolist() if hasattr(ids, "tolist") else ids:  # an array's own integers
        token_id = value if type(value) is int else _as_id(value)
        if not 0 <= token_id < size:
            raise TokenError(f"{value!r} is not an id of this tokenizer: 0 to {size - 1} are.")
        yield token_id


def _as_id(value: Any) -> int:
    if not isinstance(value, bool):
        with contextlib.suppress(TypeError):
            return operator.index(value)
    raise TokenError(f"{value!r} is not an id: ids are integers.")
