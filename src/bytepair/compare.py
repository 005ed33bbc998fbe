"""Tokenizers side by side on the same text: ours and those of other libraries.

Each row is what a text costs with one vocabulary. Fertility is tokens per word, as in Rust et al.,
"How Good is Your Tokenizer?" (ACL 2021), section 4; a word is a run of characters other than white
space. A separator between documents is one token, whoever counts.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import numpy as np

from bytepair.export import ExportError
from bytepair.files import StrPath, parse_json
from bytepair.freezing import WHITE_SPACE, ranges
from bytepair.tokenizer import Tokenizer
from bytepair.vocabulary import Vocabulary

if TYPE_CHECKING:
    from bytepair.export.prove import Reader

_WORD = re.compile("[^" + "".join(f"\\u{a:04x}-\\u{b:04x}" for a, b in ranges(WHITE_SPACE)) + "]+")
_HEAD = ("vocabulary", "ids", "tokens", "bytes/token", "tokens/word", "ids used")


@dataclass(frozen=True)
class Entry:
    """A vocabulary to be compared.

    Attributes:
        name: of its row.
        vocabulary: a Tokenizer, or one that was read.
        library: the package that it belongs to, if it is not ours.
        reader: loads the same with that package, to prove that we encode as it does.
    """

    name: str
    vocabulary: Tokenizer | Vocabulary
    library: str = "bytepair"
    reader: Callable[[], Reader] | None = None


@dataclass(frozen=True)
class Text:
    """Documents, and what stands between two of them."""

    name: str
    documents: Sequence[str]
    separator: str = ""


@dataclass(frozen=True)
class Row:
    """What a text costs with a vocabulary; ratios are rounded to 6 decimals, None without words."""

    text: str
    vocabulary: str
    ids: int
    bytes: int
    tokens: int
    bytes_per_token: float | None
    tokens_per_word: float | None
    ids_used: int
    share_used: float

    def as_json(self) -> dict[str, Any]:
        """The row as an object of JSON."""
        return asdict(self)


def compare(entries: Iterable[Entry], texts: Sequence[Text]) -> list[Row]:
    """A row for each text and vocabulary.

    >>> tokenizer = Tokenizer.train("low low lower", vocab_size=259, pattern="words")
    >>> compare([Entry("mine", tokenizer)], [Text("a text", ["low lower"])])
    [Row(text='a text', vocabulary='mine', ids=259, bytes=9, tokens=4, bytes_per_token=2.25, ...
    """
    entries = list(entries)
    return [measure(entry, text) for text in texts for entry in entries]


def measure(entry: Entry, text: Text) -> Row:
    """What a text costs with one vocabulary."""
    vocabulary = entry.vocabulary
    gaps = len(text.documents) - 1 if text.separator else 0
    size = gaps * len(text.separator.encode("utf-8"))
    tokens, words = gaps, 0
    used: set[int] = set()
    for document in text.documents:
        ids = vocabulary.encode_array(document)
        tokens += len(ids)
        used.update(np.unique(ids).tolist())
        words += len(_WORD.findall(document))
        size += len(document.encode("utf-8"))
    return Row(
        text=text.name,
        vocabulary=entry.name,
        ids=vocabulary.vocab_size,
        bytes=size,
        tokens=tokens,
        bytes_per_token=round(size / tokens, 6) if tokens else None,
        tokens_per_word=round(tokens / words, 6) if words else None,
        ids_used=len(used),
        share_used=round(len(used) / vocabulary.vocab_size, 6),
    )


def train_huggingface(
    documents: Iterable[str], *, vocab_size: int, special_tokens: Sequence[str]
) -> Entry:
    """What Hugging Face's own trainer makes of the same documents, with its own GPT-2 pattern.

    Raises:
        ExportError: tokenizers is not installed.
    """
    from bytepair.export.huggingface import TokenizersReader, import_tokenizers

    tokenizers = import_tokenizers()
    theirs = tokenizers.Tokenizer(tokenizers.models.BPE())
    theirs.pre_tokenizer = tokenizers.pre_tokenizers.ByteLevel(add_prefix_space=False)
    theirs.decoder = tokenizers.decoders.ByteLevel()
    trainer = tokenizers.trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=list(special_tokens),
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    theirs.train_from_iterator(documents, trainer)
    with TemporaryDirectory() as folder:
        path = Path(folder, "tokenizer.json")
        theirs.save(str(path))
        vocabulary = Vocabulary.from_huggingface(path)
        reader = TokenizersReader(path)
    return Entry(f"trained by tokenizers, {vocab_size:,}", vocabulary, "tokenizers", lambda: reader)


def open_vocabulary(path: StrPath) -> Entry:
    """What stands at a path: a bpe.json, a tokenizer.json or its folder, or ranks of tiktoken.

    The name of a published vocabulary, such as `o200k_base`, stands for it.
    """
    from bytepair.export.huggingface import TokenizersReader
    from bytepair.export.published import PUBLISHED, load_published
    from bytepair.export.tiktoken import TiktokenReader, load

    path, name = Path(path), str(path)
    if name in PUBLISHED and not path.exists():
        published = Vocabulary.published(name)
        return Entry(name, published, "tiktoken", lambda: TiktokenReader(load_published(name)))
    if path.is_dir():
        path /= "tokenizer.json"
    if not path.is_file():
        raise ExportError(f"{name}: neither a file nor one of {', '.join(PUBLISHED)}.")
    if path.suffix != ".json":
        ranks = Vocabulary.from_tiktoken(path)
        return Entry(name, ranks, "tiktoken", lambda: TiktokenReader(load(path)))
    content = parse_json(path.read_bytes(), path)
    if not isinstance(content, dict) or "model" not in content:
        return Entry(name, Tokenizer.load(path))
    return Entry(
        name,
        Vocabulary.from_huggingface(path),
        "tokenizers",
        lambda: TokenizersReader(path, add_special_tokens=False),
    )


def table(rows: Sequence[Row]) -> list[str]:
    """The rows as lines of text, a table for each text, best bytes/token first."""
    lines: list[str] = []
    for text in dict.fromkeys(row.text for row in rows):
        some = sorted((row for row in rows if row.text == text), key=lambda row: row.tokens)
        cells = [_HEAD, *map(_cells, some)]
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines += ["", f"{text}, {some[0].bytes:,} bytes"]
        for first, *rest in cells:
            numbers = (cell.rjust(width) for cell, width in zip(rest, widths[1:], strict=True))
            lines.append("  ".join((first.ljust(widths[0]), *numbers)).rstrip())
    return lines[1:]


def _cells(row: Row) -> tuple[str, ...]:
    ratios = ("" if x is None else f"{x:.4f}" for x in (row.bytes_per_token, row.tokens_per_word))
    used = f"{row.ids_used:,} ({row.share_used:.1%})"
    return (row.vocabulary, f"{row.ids:,}", f"{row.tokens:,}", *ratios, used)
