"""Byte-level BPE vocabularies of other libraries, read to be measured and compared.

Their ids may stand in any order. Inside, each is one of our tokenizers, whose ids are mapped to
theirs. What an encoder of ours cannot do exactly as theirs does is refused when it is read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from itertools import pairwise
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal

from bytepair.chunks import cut
from bytepair.errors import ArtifactError, TokenError
from bytepair.export import ExportError
from bytepair.files import StrPath
from bytepair.merging import merge_chunk
from bytepair.patterns import Pattern
from bytepair.special_tokens import check_special_tokens, compile_special_tokens
from bytepair.tokenizer import Tokenizer

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from bytepair.export.prove import Reader

Merge = tuple[bytes, bytes]
SpecialChoice = Literal["all"] | Collection[str]


class Vocabulary:
    r"""A byte-level BPE vocabulary with any layout of ids; immutable.

    >>> vocabulary = Vocabulary({**{bytes([byte]): 255 - byte for byte in range(256)}, b"ab": 300},
    ...                         [(b"a", b"b")], special_tokens={"<end>": 299})
    >>> vocabulary.encode("abc<end>", allowed_special="all")
    [300, 156, 299]
    >>> vocabulary.decode([300, 156, 299])
    'abc<end>'
    >>> vocabulary.to_tokenizer()
    Traceback (most recent call last):
    bytepair.export.ExportError: id 255 is b'\x00', but a bpe.json gives it id 0. ...

    Args:
        tokens: from each token to its id; all 256 bytes are among them.
        merges: pairs of tokens in the order in which they are tried.
        special_tokens: from each special token's text to its id.
        pattern: what cuts text into chunks; see Tokenizer.
        whole_chunks: a chunk that is a token gets its id, whatever merges would make of it.

    Raises:
        ArtifactError: a byte has no token, an id two, or a merge is none.
    """

    def __init__(
        self,
        tokens: Mapping[bytes, int],
        merges: Sequence[Merge],
        *,
        special_tokens: Mapping[str, int] | None = None,
        pattern: Pattern | str | None = None,
        whole_chunks: bool = False,
    ) -> None:
        self._tokens = dict(tokens)
        self._special_tokens = dict(sorted((special_tokens or {}).items(), key=itemgetter(1)))
        check_special_tokens(tuple(self._special_tokens))
        self._vocab = _by_id(self._tokens, self._special_tokens)
        self._merges = tuple(merges)
        pairs, self._ids = _inside(self._tokens, self._merges)
        self._tokenizer = Tokenizer(pairs, pattern=pattern)
        self._whole_chunks = _not_made_by_merging(self._tokens, pairs) if whole_chunks else {}
        self._chunk_tokenizer = Tokenizer(pairs) if self._whole_chunks else self._tokenizer

    @classmethod
    def from_huggingface(cls, path: StrPath) -> Vocabulary:
        """Read a tokenizer.json, or the folder that holds one.

        Added tokens count as special tokens, also those that the library matches in any text.

        Raises:
            ArtifactError: it is no byte-level BPE, or does more than cut, look up and merge.
        """
        from bytepair.export.read_huggingface import read_huggingface

        return cls(**read_huggingface(path))

    @classmethod
    def from_tiktoken(
        cls,
        path: StrPath,
        pattern: Pattern | str | None = None,
        special_tokens: Mapping[str, int] | None = None,
    ) -> Vocabulary:
        """Read ranks in tiktoken's format; also compressed, as bpe-openai ships them.

        Args:
            path: the file of ranks.
            pattern: a Pattern, a preset's name, or a pattern as tiktoken publishes it. If it is
                not given, it and the special tokens are read from PATH.json, which
                `bytepair export tiktoken` writes.
            special_tokens: from each one's text to its id.

        Raises:
            ArtifactError: the file is not of this format, or its ranks cannot be had by merging.
        """
        from bytepair.export.read_tiktoken import read_tiktoken

        return cls(**read_tiktoken(path, pattern, special_tokens))

    @classmethod
    def published(cls, name: str) -> Vocabulary:
        """`cl100k_base` or `o200k_base`, as the package bpe-openai carries them.

        Raises:
            ExportError: there is no such name, or the package is not installed.
        """
        from bytepair.export.published import read_published

        return cls(**read_published(name))

    @property
    def vocab_size(self) -> int:
        """The number of ids."""
        return len(self._vocab)

    @property
    def vocab(self) -> dict[int, bytes]:
        """From each id to its bytes, ids ascending; a special token's are its text in UTF-8."""
        return dict(self._vocab)

    @property
    def merges(self) -> tuple[Merge, ...]:
        """The pairs of tokens in rank order."""
        return self._merges

    @property
    def special_tokens(self) -> dict[str, int]:
        """From each special token's text to its id."""
        return dict(self._special_tokens)

    @property
    def pattern(self) -> Pattern:
        """What cuts text into chunks."""
        return self._tokenizer.pattern

    def encode(self, text: str, *, allowed_special: SpecialChoice = ()) -> list[int]:
        """The ids of a text; the text of a special token is ordinary text unless it is allowed.

        Raises:
            TextError: the text holds a lone surrogate.
            TokenError: a special token named is not known.
        """
        if not allowed_special:
            return self._encode_ordinary(text)
        known = self._special_tokens
        allowed = set(known) if allowed_special == "all" else set(allowed_special)
        if unknown := allowed - known.keys():
            raise TokenError(f"{min(unknown)!r} is not a special token: there are {list(known)}.")
        found = compile_special_tokens(allowed)
        ids: list[int] = []
        end = 0
        for match in found.finditer(text) if found else ():
            ids += self._encode_ordinary(text[end : match.start()])
            ids.append(known[match.group()])
            end = match.end()
        return ids + self._encode_ordinary(text[end:])

    def encode_array(self, text: str) -> NDArray[Any]:
        """The ids of a text, no special token among them: shape (tokens,), uint32."""
        import numpy as np

        if self._whole_chunks:
            return np.array(self._encode_ordinary(text), np.uint32)
        ids: NDArray[Any] = np.array(self._ids, np.uint32)[self._tokenizer.encode_array(text)]
        return ids

    def decode_bytes(self, ids: Iterable[int]) -> bytes:
        """The bytes of ids, joined.

        Raises:
            TokenError: something is not an id of this vocabulary.
        """
        ids = list(ids)
        try:
            return b"".join(map(self._vocab.__getitem__, ids))
        except (KeyError, TypeError):
            wrong = next(value for value in ids if value not in self._vocab)
            raise TokenError(f"{wrong!r} is not an id of this vocabulary.") from None

    def decode(
        self, ids: Iterable[int], *, errors: Literal["strict", "replace"] = "replace"
    ) -> str:
        """The text of ids: their bytes joined, then decoded."""
        return self.decode_bytes(ids).decode("utf-8", errors)

    def to_tokenizer(self) -> Tokenizer:
        """The same as one of our tokenizers, with the same ids.

        Raises:
            ExportError: the first thing that a bpe.json cannot say.
        """
        if self._whole_chunks:
            token, token_id = next(iter(self._whole_chunks.items()))
            raise ExportError(
                f"id {token_id}, {token!r}, is never made by merging, but given to a chunk that "
                "equals it; a bpe.json has no such tokens."
            )
        for inside, token_id in enumerate(self._ids):
            if token_id != inside:
                token = self._vocab[token_id]
                raise ExportError(
                    f"id {token_id} is {token!r}, but a bpe.json gives it id {inside}. Its ids are "
                    "bytes, then merges in order; other ids need another format."
                )
        for expected, (text, token_id) in enumerate(self._special_tokens.items(), len(self._ids)):
            if token_id != expected:
                raise ExportError(
                    f"special token {text!r} has id {token_id}, but in a bpe.json ids follow the "
                    f"last merge in order, so it must be {expected}."
                )
        if extra := self._tokens.keys() - {self._vocab[token_id] for token_id in self._ids}:
            token = min(extra)
            raise ExportError(
                f"id {self._tokens[token]}, {token!r}, is made by no merge; a bpe.json has no such "
                "tokens."
            )
        return Tokenizer(
            self._tokenizer.merges,
            pattern=self.pattern,
            special_tokens=tuple(self._special_tokens),
        )

    def save(self, path: StrPath) -> None:
        """Write a bpe.json with the same ids.

        Raises:
            ExportError: see to_tokenizer.
        """
        self.to_tokenizer().save(path)

    def prove(
        self, theirs: Reader, texts: Mapping[str, Iterable[str]] | None = None
    ) -> dict[str, Any]:
        """Compare with the library from whose files this was read; see export.prove.

        Raises:
            ExportError: the first difference.
        """
        from bytepair.export.prove import prove

        return prove(self, theirs, texts or {}, ids=self._vocab)

    def _encode_ordinary(self, text: str) -> list[int]:
        inside, ids = self._tokenizer, self._ids
        if not self._whole_chunks:
            return [ids[token] for token in inside.encode(text)]
        whole = self._whole_chunks
        merge = self._chunk_tokenizer.encode
        found: list[int] = []
        for chunk in cut(text, self.pattern.compiled()):
            token_id = whole.get(chunk.encode("utf-8"))
            if token_id is None:
                found += (ids[token] for token in merge(chunk))
            else:
                found.append(token_id)
        return found

    def __repr__(self) -> str:
        return f"<Vocabulary of {self.vocab_size} ids, pattern {self.pattern.regex!r:.60}>"


def _inside(
    tokens: Mapping[bytes, int], merges: Sequence[Merge]
) -> tuple[list[tuple[int, int]], list[int]]:
    """The merges as pairs of our ids, and the foreign id of each of ours."""
    ours = {bytes([byte]): byte for byte in range(256)}
    for token in ours:
        if token not in tokens:
            raise ArtifactError(f"the byte {token!r} has no id, so some texts have none either.")
    pairs = []
    for number, (left, right) in enumerate(merges):
        for part in (left, right):
            if part not in ours:
                raise ArtifactError(
                    f"merge {number} takes {part!r}, which no merge before it makes: the order of "
                    "merges is not that of their tokens."
                )
        made = left + right
        if made not in tokens:
            raise ArtifactError(f"merge {number} makes {made!r}, which has no id.")
        if made in ours:
            raise ArtifactError(f"merge {number}, {left!r} and {right!r}, makes {made!r} again.")
        pairs.append((ours[left], ours[right]))
        ours[made] = len(ours)
    return pairs, [tokens[token] for token in ours]


def _by_id(tokens: Mapping[bytes, int], special_tokens: Mapping[str, int]) -> dict[int, bytes]:
    named = [(token_id, token) for token, token_id in tokens.items()]
    named += ((token_id, text.encode("utf-8")) for text, token_id in special_tokens.items())
    by_id = dict(sorted(named))
    if len(by_id) < len(named):
        first, second = next(pair for pair in pairwise(sorted(named)) if pair[0][0] == pair[1][0])
        raise ArtifactError(f"id {first[0]} is both {first[1]!r} and {second[1]!r}.")
    return by_id


def _not_made_by_merging(
    tokens: Mapping[bytes, int], pairs: Sequence[tuple[int, int]]
) -> dict[bytes, int]:
    """The tokens that merging their own bytes does not make."""
    ids = {pair: 256 + rank for rank, pair in enumerate(pairs)}
    return {token: number for token, number in tokens.items() if len(merge_chunk(token, ids)) > 1}
