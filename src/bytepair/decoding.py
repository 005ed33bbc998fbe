"""Ids back to bytes and text: the half of a tokenizer that needs to know no merges."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from bytepair.special_tokens import SpecialTokens, by_role
from bytepair.streaming import Errors, StreamDecoder, checked_ids


class Decoder:
    """What ids stand for; Tokenizer adds how a text becomes ids.

    Args:
        tokens: the bytes of each id, special tokens left out.
        special_tokens: distinct texts, whose ids come after.
    """

    def __init__(self, tokens: Sequence[bytes], special_tokens: Sequence[str]) -> None:
        self._specials = SpecialTokens(
            {text: token_id for token_id, text in enumerate(special_tokens, len(tokens))}
        )
        self._vocab = [*tokens, *(text.encode("utf-8") for text in special_tokens)]

    @property
    def vocab_size(self) -> int:
        """The number of ids: bytes, merges and special tokens."""
        return len(self._vocab)

    @property
    def vocab(self) -> list[bytes]:
        """Each id's bytes, in id order; a special token's are its text in UTF-8."""
        return list(self._vocab)

    @property
    def special_tokens(self) -> dict[str, int]:
        """From each special token's text to its id, in id order."""
        return dict(self._specials.ids)

    @property
    def bos_id(self) -> int | None:
        """The id that begins a text, of `<bos>`, `<s>` or another text of special_tokens.ROLES."""
        return self._id_of_role("bos")

    @property
    def eos_id(self) -> int | None:
        """The id that ends a text, of `<eos>`, `</s>`, `<|endoftext|>` or the like, or None.

        >>> from bytepair import Tokenizer
        >>> Tokenizer([], special_tokens=["<|endoftext|>"]).eos_id
        256
        """
        return self._id_of_role("eos")

    @property
    def pad_id(self) -> int | None:
        """The id that fills a batch, of `<pad>`, `<|pad|>` or `[PAD]`, or None."""
        return self._id_of_role("pad")

    @property
    def unk_id(self) -> int | None:
        """The id of `<unk>`, `<|unk|>` or `[UNK]`, or None; no text ever needs it."""
        return self._id_of_role("unk")

    def decode_bytes(self, ids: Iterable[int], *, skip_special_tokens: bool = False) -> bytes:
        """The bytes of ids, joined: exact for every list of ids.

        Raises:
            TokenError: something is not an id of this tokenizer.
        """
        size = self.vocab_size - len(self._specials.ids) if skip_special_tokens else None
        vocab = self._vocab
        return b"".join(
            [vocab[i] for i in checked_ids(ids, self.vocab_size) if size is None or i < size]
        )

    def decode(
        self, ids: Iterable[int], *, errors: Errors = "replace", skip_special_tokens: bool = False
    ) -> str:
        """The text of ids: their bytes joined, then decoded.

        >>> from bytepair import Tokenizer
        >>> Tokenizer([]).decode([226, 130, 65])
        '\N{REPLACEMENT CHARACTER}A'

        Raises:
            TokenError: something is not an id of this tokenizer.
            UnicodeDecodeError: the bytes are not UTF-8, with errors="strict".
        """
        return self.decode_bytes(ids, skip_special_tokens=skip_special_tokens).decode(
            "utf-8", errors
        )

    def decode_with_offsets(self, ids: Iterable[int]) -> tuple[str, list[int]]:
        """The text of ids, and at which character each token begins.

        A token that begins inside of a character is said to begin with it, as tiktoken has it.

        >>> from bytepair import Tokenizer
        >>> Tokenizer([(195, 169)]).decode_with_offsets([99, 256, 226, 130, 172])
        ('cé€', [0, 1, 2, 2, 2])

        Raises:
            TokenError: something is not an id of this tokenizer.
            UnicodeDecodeError: the bytes are not UTF-8.
        """
        from bytepair.offsets import Encoding

        encoding = Encoding.of(list(checked_ids(ids, self.vocab_size)), self._vocab)
        text = self.decode(encoding.ids, errors="strict")
        return text, [start for start, _ in encoding.char_spans]

    def stream_decoder(
        self, *, errors: Errors = "replace", skip_special_tokens: bool = False
    ) -> StreamDecoder:
        """A decoder to feed ids as they come; it gives out only whole characters."""
        return StreamDecoder(self, errors=errors, skip_special_tokens=skip_special_tokens)

    def _id_of_role(self, role: str) -> int | None:
        text = by_role(self._specials.ids).get(role)
        return None if text is None else self._specials.ids[text]
