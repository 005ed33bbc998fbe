"""Published vocabularies, as the package bpe-openai carries them: no network is needed.

Pattern, special tokens and hash of each are those of tiktoken's `openai_public`.
"""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from bytepair.errors import ArtifactError
from bytepair.export import ExportError
from bytepair.export.ranks import decompress, parse_ranks
from bytepair.export.read_tiktoken import read_ranks
from bytepair.export.tiktoken import import_tiktoken
from bytepair.files import read_bytes, sha256
from bytepair.patterns import Pattern

if TYPE_CHECKING:
    import tiktoken


class Published(NamedTuple):
    """What belongs to a file of ranks."""

    preset: str
    ranks_sha256: str
    special_tokens: dict[str, int]


PUBLISHED = {
    "cl100k_base": Published(
        "cl100k",
        "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
        {
            "<|endoftext|>": 100257,
            "<|fim_prefix|>": 100258,
            "<|fim_middle|>": 100259,
            "<|fim_suffix|>": 100260,
            "<|endofprompt|>": 100276,
        },
    ),
    "o200k_base": Published(
        "o200k",
        "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
        {"<|endoftext|>": 199999, "<|endofprompt|>": 200018},
    ),
}


def published_ranks(name: str) -> bytes:
    """The file of ranks of that name, held to its hash.

    Raises:
        ExportError: bpe-openai is not installed.
        ArtifactError: its file is not the published one.
    """
    package = find_spec("bpe_openai")  # not imported, since it would read all that it has
    if package is None or package.origin is None:
        raise ExportError(f"{name} is in the package bpe-openai: pip install bpe-openai.")
    path = Path(package.origin).with_name("data") / f"{name}.tiktoken.gz"
    data = decompress(read_bytes(path), path)
    found, expected = sha256(data), PUBLISHED[name].ranks_sha256
    if found != expected:
        raise ArtifactError(f"{path}: sha256 is {found}, but {expected} was published.")
    return data


def load_published(name: str) -> tiktoken.Encoding:
    """The same as an encoding of tiktoken's."""
    preset, _, special_tokens = PUBLISHED[name]
    return import_tiktoken().Encoding(  # type: ignore[no-any-return]
        name,
        pat_str=Pattern.named(preset).regex,
        mergeable_ranks=parse_ranks(published_ranks(name), name),
        special_tokens=special_tokens,
    )


def read_published(name: str) -> dict[str, Any]:
    """What Vocabulary is made of; see Vocabulary.published."""
    if name not in PUBLISHED:
        raise ExportError(f"no vocabulary is named {name!r}: choose one of {', '.join(PUBLISHED)}.")
    preset, _, special_tokens = PUBLISHED[name]
    return read_ranks(published_ranks(name), name, Pattern.named(preset), special_tokens)
