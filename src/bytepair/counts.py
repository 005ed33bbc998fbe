"""How often each distinct chunk of a text occurs: all that training needs of a text."""

from __future__ import annotations

import io
import os
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO

from bytepair.chunks import check_text, cut
from bytepair.counting import NotUtf8Error, count_streams
from bytepair.errors import ArtifactError, BytepairError
from bytepair.files import (
    StrPath,
    decode_utf8,
    dump_json,
    read_record,
    read_verified,
    sha256,
    write_bytes,
    write_record,
)
from bytepair.kernel.threads import as_threads
from bytepair.packed import PackedCounts, from_little_endian, little_endian
from bytepair.patterns import Pattern
from bytepair.scanning import kernel_scanner
from bytepair.special_tokens import check_special_tokens, compile_special_tokens

COUNTS_VERSION = 1


@dataclass(frozen=True)
class ChunkCounts:
    """How often each distinct chunk of a text occurs, and what cut it.

    Attributes:
        counts: from a chunk's bytes to how often it occurs, at least once.
        pattern: what cut the text.
        special_tokens: cut out before the pattern, so never part of a chunk.
        train_sha256: hash of the text counted; None if unknown.
    """

    counts: Mapping[bytes, int]
    pattern: Pattern
    special_tokens: tuple[str, ...] = ()
    train_sha256: str | None = None

    @classmethod
    def count(
        cls,
        documents: Iterable[str],
        *,
        pattern: Pattern | str | None = None,
        special_tokens: Sequence[str] = (),
        train_sha256: str | None = None,
        threads: int | None = None,
    ) -> ChunkCounts:
        """Count the chunks of documents; a chunk never reaches from one document into the next.

        Args:
            documents: read once, so any iterable will do.
            pattern: see Tokenizer.
            special_tokens: cut out of the documents.
            train_sha256: the hash of the text, to be kept with the counts.
            threads: how many the kernel uses; None is one a core. The counts are the same.

        Raises:
            TextError: a document holds a lone surrogate.
        """
        pattern, special_tokens = Pattern.of(pattern), check_special_tokens(special_tokens)
        scanner = kernel_scanner(pattern)
        counts: Mapping[bytes, int]
        if scanner is None:
            counts = _count(documents, pattern, special_tokens)
        else:
            streams = (io.BytesIO(_encoded(document)) for document in documents)
            counts = count_streams(streams, scanner, special_tokens, threads=as_threads(threads))
        return cls(counts, pattern, special_tokens, train_sha256)

    @classmethod
    def count_files(
        cls,
        paths: StrPath | Iterable[StrPath],
        *,
        pattern: Pattern | str | None = None,
        special_tokens: Sequence[str] = (),
        threads: int | None = None,
    ) -> ChunkCounts:
        """Count the chunks of files of UTF-8, each a document of its own.

        With a named pattern and the kernel, a file is read in blocks, so it may be larger than
        memory; else it is read whole.

        Args:
            paths: one or several.
            pattern: see Tokenizer.
            special_tokens: cut out of the files.
            threads: see `count`.

        Raises:
            TextError: a file is not UTF-8; the message has the offset of the first wrong byte.
        """
        paths = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
        pattern, special_tokens = Pattern.of(pattern), check_special_tokens(special_tokens)
        scanner = kernel_scanner(pattern)
        if scanner is None:
            return cls.count(map(_read, paths), pattern=pattern, special_tokens=special_tokens)
        try:
            counts = count_streams(
                _opened(paths), scanner, special_tokens, threads=as_threads(threads)
            )
        except NotUtf8Error:
            for path in paths:
                _read(path)  # finds the place
            raise
        return cls(counts, pattern, special_tokens)

    @property
    def total(self) -> int:
        """The number of chunks in the text."""
        counts = self.counts
        return sum(counts.numbers if isinstance(counts, PackedCounts) else counts.values())

    def save(self, folder: StrPath) -> None:
        """Write the counts, sorted by chunk bytes, with a hash of each file in index.json.

        Files: `chunks.bin` (the chunks' bytes joined), `ends.bin` (where each ends) and
        `counts.bin`, both unsigned 64-bit little-endian.
        """
        folder = Path(folder)
        packed = PackedCounts.of(self.counts).in_order()
        files = {
            "chunks.bin": packed.chunks,
            "ends.bin": little_endian(packed.ends),
            "counts.bin": little_endian(packed.numbers),
        }
        for name, data in files.items():
            write_bytes(folder / name, data)
        write_record(folder / "index.json", {**self.header(), **_sizes(packed, files)})

    @classmethod
    def load(cls, folder: StrPath) -> ChunkCounts:
        """Read counts that `save` wrote, and check every byte of them.

        Raises:
            ArtifactError: a file is absent, damaged, or does not fit the others.
        """
        folder = Path(folder)
        index = read_record(folder / "index.json")
        try:
            pattern = Pattern(index["pattern"], index["engine"])
            special_tokens = check_special_tokens(index["special_tokens"])
            hashes = index["files"]
            data, ends, numbers = (
                read_verified(folder / name, hashes[name])
                for name in ("chunks.bin", "ends.bin", "counts.bin")
            )
            counts = PackedCounts(data, from_little_endian(ends), from_little_endian(numbers))
            found = cls(counts, pattern, special_tokens, index["train_sha256"])
            files = {"chunks.bin": data, "ends.bin": ends, "counts.bin": numbers}
            expected = {**found.header(), **_sizes(counts, files)}
        except ArtifactError:
            raise
        except (KeyError, TypeError, ValueError, BytepairError) as error:
            raise ArtifactError(f"{folder / 'index.json'}: damaged: {error!r}. {_REMEDY}") from None
        if index != expected or not counts.is_in_order():
            wrong = [key for key in expected if index.get(key) != expected[key]] or ["chunks"]
            raise ArtifactError(f"{folder / 'index.json'}: {wrong[0]} does not fit. {_REMEDY}")
        return found

    def check_made_with(self, pattern: Pattern, special_tokens: Sequence[str]) -> None:
        """Refuse counts that were made with another pattern or other special tokens."""
        other = ChunkCounts({}, pattern, tuple(special_tokens))
        if self.chunker_sha256 != other.chunker_sha256:
            raise ArtifactError(
                f"the counts were made with pattern {self.pattern.regex!r} ({self.pattern.engine}) "
                f"and special tokens {list(self.special_tokens)}, not with {pattern.regex!r} "
                f"({pattern.engine}) and {list(special_tokens)}. Count again: `dvc repro`."
            )

    @property
    def chunker_sha256(self) -> str:
        """The hash of what cuts text: engine, pattern and special tokens."""
        chunker = [self.pattern.engine, self.pattern.regex, list(self.special_tokens)]
        return sha256(dump_json(chunker, indent=None))

    def header(self) -> dict[str, Any]:
        """What index.json says before sizes and hashes."""
        return {
            "version": COUNTS_VERSION,
            "engine": self.pattern.engine,
            "pattern": self.pattern.regex,
            "special_tokens": list(self.special_tokens),
            "chunker_sha256": self.chunker_sha256,
            "train_sha256": self.train_sha256,
        }


def _encoded(document: str) -> bytes:
    check_text(document)
    return document.encode("utf-8")


def _read(path: StrPath) -> str:
    return decode_utf8(Path(path).read_bytes(), path)


def _opened(paths: Iterable[StrPath]) -> Iterator[BinaryIO]:
    for path in paths:
        with Path(path).open("rb", buffering=0) as file:
            yield file


def _count(
    documents: Iterable[str], pattern: Pattern, special_tokens: Sequence[str] = ()
) -> dict[bytes, int]:
    compiled, specials = pattern.compiled(), compile_special_tokens(special_tokens)
    counter: Counter[str] = Counter()
    for document in documents:
        check_text(document)
        for text in specials.split(document) if specials else (document,):
            counter.update(cut(text, compiled))
    return {chunk.encode("utf-8"): number for chunk, number in counter.items()}


_REMEDY = "Delete the folder and run `dvc repro`."


def _sizes(counts: PackedCounts, files: Mapping[str, bytes | bytearray]) -> dict[str, Any]:
    return {
        "distinct": len(counts),
        "total": sum(counts.numbers),
        "files": {name: sha256(data) for name, data in files.items()},
    }
