"""Ranks of tiktoken as tokens and merges.

tiktoken has no merges: two neighbours join if their bytes are a token. Which pair makes a token is
found by merging its bytes with all tokens of lower rank: two parts are left, and those are the
pair. Where more are left, merging never makes the token, but a chunk equal to it gets its id.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from bytepair.errors import ArtifactError
from bytepair.export.probes import edges_in_contexts, strings
from bytepair.export.ranks import parse_ranks
from bytepair.export.recognize import covers_every_text, recognize
from bytepair.export.tiktoken import check_no_prefixes, load_settings
from bytepair.files import StrPath, read_bytes
from bytepair.merging import merge_chunk
from bytepair.patterns import PRESETS, Pattern

Merge = tuple[bytes, bytes]


def read_tiktoken(
    path: StrPath, pattern: Pattern | str | None, special_tokens: Mapping[str, int] | None
) -> dict[str, Any]:
    """What Vocabulary is made of; see Vocabulary.from_tiktoken."""
    if pattern is None and special_tokens is None and Path(f"{path}.json").is_file():
        settings = load_settings(path)
        pattern, special_tokens = settings["pat_str"], settings["special_tokens"]
    return read_ranks(read_bytes(path), path, pattern, special_tokens)


def read_ranks(
    data: bytes,
    path: StrPath,
    pattern: Pattern | str | None,
    special_tokens: Mapping[str, int] | None,
) -> dict[str, Any]:
    """The same from the file's bytes; `path` is for messages."""
    ranks = parse_ranks(data, path)
    check_no_prefixes(special_tokens or ())
    merges, whole = recover_merges(ranks)
    for token in whole:
        if _merge_by_rank(token, ranks) == [token]:
            raise ArtifactError(
                f"{path}: {token!r} (rank {ranks[token]}) is made of tokens of higher rank "
                "than its own: no order of merges does the same."
            )
    if isinstance(pattern, str) and pattern not in PRESETS:
        pattern = recognize(pattern)
    _check_covers(Pattern.of(pattern), path)
    return {
        "tokens": ranks,
        "merges": merges,
        "special_tokens": special_tokens,
        "pattern": pattern,
        "whole_chunks": bool(whole),
    }


def _check_covers(pattern: Pattern, path: StrPath) -> None:
    """Refuse a pattern that leaves text out: tiktoken drops it, and we would keep it."""
    compiled = pattern.compiled()
    if compiled is None or covers_every_text(pattern):
        return
    for text in (*strings(), *edges_in_contexts()):
        left = compiled.sub("", text)
        if left:
            raise ArtifactError(
                f"{path}: its pattern {pattern.regex!r:.80} does not match {left[:20]!r} in "
                f"{text[:40]!r}: tiktoken would drop it from the text."
            )


def recover_merges(ranks: Mapping[bytes, int]) -> tuple[list[Merge], list[bytes]]:
    """The pairs that make tokens, in rank order, and the tokens that no pair makes.

    >>> ranks = {**{bytes([b]): b for b in range(256)}, b"ab": 256, b"abc": 257, b"xyz": 258}
    >>> recover_merges(ranks)
    ([(b'a', b'b'), (b'ab', b'c')], [b'xyz'])
    """
    tokens = [bytes([byte]) for byte in range(256)]
    made: dict[tuple[int, int], int] = {}
    merges: list[Merge] = []
    whole: list[bytes] = []
    for token in sorted(ranks, key=ranks.__getitem__):
        if len(token) == 1:
            continue
        parts = merge_chunk(token, made)
        if len(parts) == 2:
            made[parts[0], parts[1]] = len(tokens)
            merges.append((tokens[parts[0]], tokens[parts[1]]))
            tokens.append(token)
        else:
            whole.append(token)
    return merges, whole


def _merge_by_rank(token: bytes, ranks: Mapping[bytes, int]) -> list[bytes]:
    """What tiktoken's rule makes of bytes that it does not look up as a whole."""
    parts = [token[place : place + 1] for place in range(len(token))]
    while len(parts) > 1:
        found = [
            (ranks[left + right], place)
            for place, (left, right) in enumerate(pairwise(parts))
            if left + right in ranks
        ]
        if not found:
            break
        _, place = min(found)
        parts[place : place + 2] = [parts[place] + parts[place + 1]]
    return parts
