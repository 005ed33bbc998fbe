"""The public face: a byte-level BPE tokenizer that trains, encodes, decodes, loads and saves.

Needs the standard library alone; numpy only for arrays, regex only for a pattern of one's own
that asks for it.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

from bytepair import bpe_file
from bytepair.chunks import check_text
from bytepair.decoding import Decoder
from bytepair.encoding import make_encoder
from bytepair.files import StrPath, read_bytes, sha256, write_bytes
from bytepair.kernel.threads import as_threads
from bytepair.patterns import Pattern
from bytepair.special_tokens import Choice, Cutter, check_special_tokens

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from bytepair.counts import ChunkCounts
    from bytepair.offsets import Encoding
    from bytepair.training import Training

Pair = tuple[int, int]


class Tokenizer(Decoder):
    """A byte-level BPE tokenizer; immutable, picklable, safe to share between threads.

    Ids 0 to 255 are the bytes, then follow the merges in rank order, then the special tokens.

    >>> tok = Tokenizer.train("low low low lower lowest newer newest", vocab_size=259,
    ...                       pattern="words")
    >>> tok.merges
    ((108, 111), (256, 119), (32, 257))
    >>> tok.encode("low lowest")
    [257, 258, 101, 115, 116]
    >>> tok.decode([257, 258, 101, 115, 116])
    'low lowest'

    Args:
        merges: pairs of ids in rank order.
        pattern: a Pattern, a preset's name (`gpt2-ascii`, `words`, `notebook`, `gpt2`, `cl100k`,
            `o200k`), a regular expression for `re`, or None for no cut.
        special_tokens: non-empty, distinct texts, in the order of their ids.
        train_sha256: hash of the text trained on, if known.

    Raises:
        TokenizerFileError: a merge uses an id that is not made yet, or makes a token twice.
        PatternError: the pattern does not compile.
        TokenError: a special token is empty or listed twice.
    """

    def __init__(
        self,
        merges: Sequence[Sequence[int]],
        *,
        pattern: Pattern | str | None = None,
        special_tokens: Sequence[str] = (),
        train_sha256: str | None = None,
    ) -> None:
        self._set(
            bpe_file.BpeFile(
                pattern=Pattern.of(pattern),
                special_tokens=check_special_tokens(special_tokens),
                train_sha256=bpe_file.check_train_sha256(train_sha256),
                merges=bpe_file.check_merges(merges),
            )
        )

    def _set(self, content: bpe_file.BpeFile) -> None:
        self._content = content
        self._sha256: str | None = None  # made when asked for
        tokens = [bytes([byte]) for byte in range(256)]
        for left, right in content.merges:
            tokens.append(tokens[left] + tokens[right])
        super().__init__(tokens, content.special_tokens)
        self._encoder = make_encoder(content.merges, content.pattern)

    @classmethod
    def train(
        cls,
        texts: str | Iterable[str],
        *,
        vocab_size: int,
        pattern: Pattern | str | None = None,
        special_tokens: Sequence[str] = (),
        min_count: int = 2,
    ) -> Tokenizer:
        """Train on texts, each a document of its own; a bare str is one document.

        Args:
            texts: read once, so any iterable will do.
            vocab_size: bytes, merges and special tokens together.
            pattern: see Tokenizer.
            special_tokens: cut out of the texts, never trained on.
            min_count: a pair must occur this often to be merged.

        Raises:
            TrainingError: vocab_size is below 256 and the special tokens, or there is no text.
            TextError: a text holds a lone surrogate.
        """
        from bytepair.counts import ChunkCounts
        from bytepair.training import count_merges

        count_merges(vocab_size, check_special_tokens(special_tokens))  # before reading any text
        counts = ChunkCounts.count(
            [texts] if isinstance(texts, str) else texts,
            pattern=pattern,
            special_tokens=special_tokens,
        )
        return cls.from_counts(counts, vocab_size=vocab_size, min_count=min_count)

    @classmethod
    def train_files(
        cls,
        paths: StrPath | Iterable[StrPath],
        *,
        vocab_size: int,
        pattern: Pattern | str | None = None,
        special_tokens: Sequence[str] = (),
        min_count: int = 2,
        threads: int | None = None,
    ) -> Tokenizer:
        """Train on files of UTF-8, each a document of its own; see `train`.

        With a named pattern they may be larger than memory (ChunkCounts.count_files).

        Raises:
            TrainingError: vocab_size is below 256 and the special tokens, or there is no text.
            TextError: a file is not UTF-8.
        """
        from bytepair.counts import ChunkCounts
        from bytepair.training import count_merges

        count_merges(vocab_size, check_special_tokens(special_tokens))  # before reading any text
        counts = ChunkCounts.count_files(
            paths, pattern=pattern, special_tokens=special_tokens, threads=threads
        )
        return cls.from_counts(counts, vocab_size=vocab_size, min_count=min_count)

    @classmethod
    def from_counts(cls, counts: ChunkCounts, *, vocab_size: int, min_count: int = 2) -> Tokenizer:
        """Train on chunk counts; the same counts give the same tokenizer.

        Warns when no pair is left that occurs `min_count` times before `vocab_size` is reached.
        """
        tokenizer, _ = cls.trace_from_counts(counts, vocab_size=vocab_size, min_count=min_count)
        return tokenizer

    @classmethod
    def trace_from_counts(
        cls, counts: ChunkCounts, *, vocab_size: int, min_count: int = 2
    ) -> tuple[Tokenizer, Training]:
        """The same, with what training saw at each step."""
        from bytepair.training import count_merges, train

        wanted = count_merges(vocab_size, counts.special_tokens)
        trace = train(counts.counts, merges=wanted, min_count=min_count)
        if len(trace.merges) < wanted:
            warnings.warn(
                f"training stopped at {vocab_size - wanted + len(trace.merges)} ids of "
                f"{vocab_size}: no pair is left that occurs {min_count} times.",
                stacklevel=3,
            )
        content = bpe_file.BpeFile(
            pattern=counts.pattern,
            special_tokens=check_special_tokens(counts.special_tokens),
            train_sha256=bpe_file.check_train_sha256(counts.train_sha256),
            merges=bpe_file.check_sizes(trace.merges),
        )
        return cls._of(content), trace

    @classmethod
    def load(cls, path: StrPath) -> Tokenizer:
        """Read a bpe.json and check all of it.

        Raises:
            ArtifactError: there is no such file.
            TokenizerFileError: what is wrong, naming file, field and value.
        """
        return cls._of(bpe_file.parse(read_bytes(path), os.fspath(path)))

    def save(self, path: StrPath) -> None:
        """Write bpe.json; the file is replaced in one step, and its sha256 is `self.sha256`."""
        write_bytes(path, self._content.to_bytes())

    @property
    def sha256(self) -> str:
        """The tokenizer's identity: the hash of the bytes that `save` writes."""
        if self._sha256 is None:
            self._sha256 = sha256(self._content.to_bytes())
        return self._sha256

    @property
    def merges(self) -> tuple[Pair, ...]:
        """The pairs of ids in rank order; merge number n makes id 256 + n."""
        return self._content.merges

    @property
    def pattern(self) -> Pattern:
        """What cuts text into chunks."""
        return self._content.pattern

    @property
    def train_sha256(self) -> str | None:
        """The hash of the text trained on, or None if it is not known."""
        return self._content.train_sha256

    def encode(
        self,
        text: str,
        *,
        allowed_special: Choice = (),
        disallowed_special: Choice = (),
    ) -> list[int]:
        """The ids of a text.

        The text of a special token is ordinary text, unless it is allowed to be more.

        >>> tok = Tokenizer([], special_tokens=["<|end|>"])
        >>> tok.encode("a<|end|>")
        [97, 60, 124, 101, 110, 100, 124, 62]
        >>> tok.encode("a<|end|>", allowed_special="all")
        [97, 256]
        >>> tok.encode("a<|end|>", disallowed_special="all")
        Traceback (most recent call last):
        bytepair.errors.TokenError: the text holds the special token '<|end|>' at position 1: ...

        Args:
            text: any str without lone surrogates.
            allowed_special: special tokens whose text becomes their id, or "all".
            disallowed_special: special tokens whose text is an error, or "all" for all that are
                not allowed.

        Raises:
            TextError: the text holds a lone surrogate.
            TokenError: the text holds a disallowed special token, or one named is not known.
        """
        return self._encode(text, self._specials.cutter(allowed_special, disallowed_special))

    def encode_ordinary(self, text: str) -> list[int]:
        """The ids of a text in which the text of a special token is ordinary text.

        Raises:
            TextError: the text holds a lone surrogate.
        """
        return self._encode(text, None)

    def encode_with_offsets(
        self,
        text: str,
        *,
        allowed_special: Choice = (),
        disallowed_special: Choice = (),
    ) -> Encoding:
        """The ids of a text, and where in it each token stands; see `encode`.

        A token that holds part of a character spans all of it, so spans of characters may overlap.

        >>> encoding = Tokenizer([(32, 195)]).encode_with_offsets("a é")
        >>> encoding.ids, encoding.byte_spans
        ([97, 256, 169], [(0, 1), (1, 3), (3, 4)])
        >>> encoding.char_spans
        [(0, 1), (1, 3), (2, 3)]
        """
        from bytepair.offsets import Encoding

        cutter = self._specials.cutter(allowed_special, disallowed_special)
        return Encoding.of(self._encode(text, cutter), self._vocab)

    def encode_batch(
        self,
        texts: Iterable[str],
        *,
        allowed_special: Choice = (),
        disallowed_special: Choice = (),
    ) -> list[list[int]]:
        """The ids of each text; see `encode`."""
        if isinstance(texts, str):
            raise TypeError("encode_batch takes several texts; for one there is encode.")
        cutter = self._specials.cutter(allowed_special, disallowed_special)
        return [self._encode(text, cutter) for text in texts]

    def encode_array(
        self,
        text: str | bytes,
        *,
        allowed_special: Choice = (),
        disallowed_special: Choice = (),
        threads: int | None = None,
        out: NDArray[Any] | None = None,
    ) -> NDArray[Any]:
        """The ids of a text as a numpy array of shape (tokens,).

        Its dtype is uint16 if every id of the vocabulary is below 65,536, else uint32.

        Args:
            text: a str, or its UTF-8, which saves making it.
            allowed_special: see encode.
            disallowed_special: see encode.
            threads: the most to use, None for one a core; the ids are the same.
            out: an array of that dtype for the ids, which need not be allocated then: of shape
                (n,), n at least 16 more than the text has bytes. What is returned is its front.
        """
        from bytepair.id_arrays import encode_to_array

        cutter = self._specials.cutter(allowed_special, disallowed_special)
        size, cores = self.vocab_size, as_threads(threads)
        return encode_to_array(
            self._encoder, cutter, [text], vocab_size=size, threads=cores, out=out
        )[0]

    def encode_batch_array(
        self,
        texts: Iterable[str | bytes],
        *,
        allowed_special: Choice = (),
        disallowed_special: Choice = (),
        threads: int | None = None,
    ) -> tuple[NDArray[Any], NDArray[np.uint64]]:
        """The ids of texts, one after the other, and where each text's begin.

        >>> tok = Tokenizer([(104, 105)])
        >>> ids, offsets = tok.encode_batch_array(["hi you", "", "hi"])
        >>> ids.tolist(), offsets.tolist()
        ([256, 32, 121, 111, 117, 256], [0, 5, 5, 6])

        Returns:
            ids: (tokens,), see encode_array.
            offsets: (texts + 1,); text i has ids[offsets[i]:offsets[i + 1]].
        """
        if isinstance(texts, str | bytes):
            raise TypeError(
                "encode_batch_array takes several texts; for one there is encode_array."
            )
        from bytepair.id_arrays import encode_to_array

        cutter = self._specials.cutter(allowed_special, disallowed_special)
        size, cores = self.vocab_size, as_threads(threads)
        return encode_to_array(self._encoder, cutter, texts, vocab_size=size, threads=cores)

    def unused_ids(self, counts: ChunkCounts) -> list[int]:
        """The ids that occur nowhere in a text: rows of an embedding that learn nothing from it.

        Special tokens are not among them, for whether they occur is not in the counts. Needs numpy.

        >>> from bytepair import ChunkCounts
        >>> counts = ChunkCounts.count(["abcabc"])
        >>> 97 in Tokenizer([(97, 98)]).unused_ids(counts)  # every a is in an ab
        True

        Raises:
            ArtifactError: the counts were made with another pattern or other special tokens.
        """
        from bytepair.usage import count_ids

        counts.check_made_with(self.pattern, tuple(self.special_tokens))
        found = count_ids(self.merges, counts.counts).tolist()
        return [token_id for token_id, number in enumerate(found) if not number]

    def _encode(self, text: str, cutter: Cutter | None) -> list[int]:
        check_text(text)
        if cutter is None:
            return self._encoder.encode(text)
        ids: list[int] = []
        for piece, special in cutter(text):
            ids += self._encoder.encode(piece)
            if special is not None:
                ids.append(special)
        return ids

    @classmethod
    def _of(cls, content: bpe_file.BpeFile) -> Tokenizer:
        """From content that is checked."""
        tokenizer = cls.__new__(cls)
        tokenizer._set(content)  # noqa: SLF001
        return tokenizer

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self)._of, (self._content,)  # noqa: SLF001

    def __eq__(self, other: object) -> bool:
        return self.sha256 == other.sha256 if isinstance(other, Tokenizer) else NotImplemented

    def __hash__(self) -> int:
        return hash(self.sha256)

    def __repr__(self) -> str:
        return (
            f"<Tokenizer of {self.vocab_size} ids, pattern {self.pattern.regex!r}, "
            f"{len(self._specials.ids)} special tokens, sha256 {self.sha256[:12]}>"
        )
