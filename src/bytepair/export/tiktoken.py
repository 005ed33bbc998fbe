"""The format of tiktoken: ranks in a text file; pattern and special tokens in JSON beside it.

tiktoken keeps no merges. It joins two neighbours whenever their bytes are a token, the one of
lowest rank first, and a chunk that is a token is never merged at all. This comes to the same as our
merges if, and only if, every token encodes to itself: take the first token that tiktoken makes of
another pair than we do; up to there both went alike, so from that token's bytes alone we do not
make it either.
"""

from __future__ import annotations

from collections.abc import Iterable
from importlib.metadata import version
from itertools import permutations
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bytepair.errors import ArtifactError
from bytepair.export import ExportError
from bytepair.export.portable import portable_regex
from bytepair.export.publish import INSTALL, Proof, about, file_name, publish
from bytepair.export.ranks import dump_ranks, parse_ranks
from bytepair.files import StrPath, dump_json, parse_json, read_bytes, sha256
from bytepair.merging import merge_chunk
from bytepair.tokenizer import Tokenizer

if TYPE_CHECKING:
    import tiktoken

_WHOLE_TEXT = r"[\x{0}-\x{10FFFF}]+"


def export_tiktoken(
    tokenizer: Tokenizer, path: StrPath, *, proof: Proof | None = None
) -> dict[str, Any] | None:
    """Write ranks to `path`, and beside them PATH.json, and PATH.receipt.json if proved.

    Returns:
        The receipt, or None if nothing was proved.

    Raises:
        ExportError: tiktoken cannot give our ids; the message has the first difference.
    """
    path, proof = file_name(path), proof or Proof()
    contents = tiktoken_files(tokenizer, path.name)
    proved = proof.library_is_there("tiktoken")
    return publish(
        path.parent,
        contents,
        f"{path.name}.receipt.json",
        about=about(tokenizer, "tiktoken"),
        ours=tokenizer,
        readers=(lambda folder: [TiktokenReader(load(folder / path.name))]) if proved else None,
        proof=proof,
        ids=range(tokenizer.vocab_size),
    )


def tiktoken_files(tokenizer: Tokenizer, name: str) -> dict[str, bytes]:
    """The two files' bytes by name.

    Raises:
        ExportError: tiktoken's rules cannot express the tokenizer.
    """
    specials = tokenizer.special_tokens
    ordinary = tokenizer.vocab[: tokenizer.vocab_size - len(specials)]
    check_reachable(tokenizer, ordinary)
    check_no_prefixes(specials)
    ranks = dump_ranks(ordinary)
    settings = {
        "name": name.partition(".")[0],
        "pat_str": portable_regex(tokenizer.pattern) or _WHOLE_TEXT,
        "special_tokens": specials,
        "explicit_n_vocab": tokenizer.vocab_size,
        "ranks_sha256": sha256(ranks),
        "tokenizer_sha256": tokenizer.sha256,
    }
    return {name: ranks, f"{name}.json": dump_json(settings)}


def check_reachable(tokenizer: Tokenizer, tokens: Iterable[bytes]) -> None:
    """Refuse a token that does not encode to itself: tiktoken would make it all the same."""
    made = {pair: 256 + rank for rank, pair in enumerate(tokenizer.merges)}
    for token_id, token in enumerate(tokens):
        ids = merge_chunk(token, made)
        if ids != [token_id]:
            raise ExportError(
                f"tiktoken gives a chunk that is a token that token's id: {token!r} would be "
                f"[{token_id}] there, but our merges make it {ids}. No ranks say the same."
            )


def check_no_prefixes(specials: Iterable[str]) -> None:
    """Refuse special tokens of which one begins another: tiktoken takes either, by chance."""
    for first, second in permutations(specials, 2):
        if second.startswith(first):
            raise ExportError(
                f"the special token {first!r} begins the special token {second!r}: we take the "
                f"longest, tiktoken whichever its hash table has first, so {second!r} may begin "
                f"with the id of {first!r} there."
            )


def import_tiktoken() -> Any:
    """The library `tiktoken`.

    Raises:
        ExportError: it is not installed.
    """
    try:
        import tiktoken
    except ImportError:
        raise ExportError(f"the package tiktoken is needed for this: {INSTALL}.") from None
    return tiktoken


def load(path: StrPath) -> tiktoken.Encoding:
    """The encoding that `bytepair export tiktoken` has written to `path`.

    Raises:
        ExportError: tiktoken is not installed.
        ArtifactError: the files are not those of one export.
    """
    settings = load_settings(path)
    ranks = read_bytes(path)
    if sha256(ranks) != settings["ranks_sha256"]:
        raise ArtifactError(
            f"{path}: not the ranks that {path}.json was written with: export again."
        )
    return import_tiktoken().Encoding(  # type: ignore[no-any-return]
        settings["name"],
        pat_str=settings["pat_str"],
        mergeable_ranks=parse_ranks(ranks, path),
        special_tokens=settings["special_tokens"],
        explicit_n_vocab=settings["explicit_n_vocab"],
    )


def load_settings(path: StrPath) -> dict[str, Any]:
    """What stands beside the ranks at `path`: pattern, special tokens, and the hash of the ranks.

    Raises:
        ArtifactError: the file is absent or not ours.
    """
    beside = Path(f"{path}.json")
    content = parse_json(read_bytes(beside), beside)
    match content:
        case {
            "name": str(),
            "pat_str": str(),
            "special_tokens": dict(),
            "explicit_n_vocab": int(),
            "ranks_sha256": str(),
        }:
            return dict(content)
    raise ArtifactError(f"{beside}: not what `bytepair export tiktoken` writes: export again.")


class TiktokenReader:
    """tiktoken, as a reader of an export to be proved."""

    name = "tiktoken"
    thorough = True
    allows_some = True
    ordinary = True

    def __init__(self, encoding: tiktoken.Encoding) -> None:
        self.versions = {"tiktoken": version("tiktoken")}
        self._encoding = encoding

    def encode(self, texts: list[str], allowed: frozenset[str]) -> list[list[int]]:
        if not allowed:
            return self._encoding.encode_ordinary_batch(texts, num_threads=2)
        return [
            self._encoding.encode(text, allowed_special=set(allowed), disallowed_special=())
            for text in texts
        ]

    def decode(self, ids: list[int]) -> str:
        return self._encoding.decode(ids, errors="strict")

    def token_bytes(self, token_id: int) -> bytes | None:
        return self._encoding.decode_single_token_bytes(token_id)
