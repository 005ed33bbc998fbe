"""bpe.json: the whole tokenizer in one file, whose sha256 is the tokenizer's identity.

Writing has one canonical layout, so equal tokenizers are equal bytes. Reading trusts nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bytepair.errors import ArtifactError, BytepairError, TokenizerFileError
from bytepair.files import parse_json
from bytepair.patterns import Pattern
from bytepair.special_tokens import check_special_tokens

VERSION = 1
KEYS = (
    "version",
    "engine",
    "pattern",
    "vocab_size",
    "special_tokens",
    "train_sha256",
    "merges",
)

# Merges can double a token's length each, so a short hostile file could ask for any memory.
MAX_TOKEN_BYTES = 1 << 24
MAX_VOCABULARY_BYTES = 1 << 28

Pair = tuple[int, int]


@dataclass(frozen=True)
class BpeFile:
    """The content of a bpe.json, checked."""

    pattern: Pattern
    special_tokens: tuple[str, ...]
    train_sha256: str | None
    merges: tuple[Pair, ...]

    def to_bytes(self) -> bytes:
        """The canonical bytes: one field a line, one merge a line, UTF-8, LF."""
        first_special = 256 + len(self.merges)
        values: dict[str, Any] = {
            "version": VERSION,
            "engine": self.pattern.engine,
            "pattern": self.pattern.regex,
            "vocab_size": first_special + len(self.special_tokens),
            "special_tokens": {
                text: first_special + number for number, text in enumerate(self.special_tokens)
            },
            "train_sha256": self.train_sha256,
        }
        lines = [
            f'  "{key}": {json.dumps(value, ensure_ascii=False)}' for key, value in values.items()
        ]
        merges = ",\n".join(f"    [{left}, {right}]" for left, right in self.merges)
        lines.append(f'  "merges": [\n{merges}\n  ]' if merges else '  "merges": []')
        return ("{\n" + ",\n".join(lines) + "\n}\n").encode("utf-8")


def parse(data: bytes, path: str) -> BpeFile:
    """Check the bytes of a bpe.json.

    Raises:
        TokenizerFileError: what is wrong, naming file, field and value.
    """
    try:
        return _parse(parse_json(data, path), path)
    except TokenizerFileError:
        raise
    except ArtifactError as error:
        raise TokenizerFileError(str(error)) from None


def _parse(content: Any, path: str) -> BpeFile:
    if not isinstance(content, dict):
        raise TokenizerFileError(
            f"{path}: expected an object with the keys {', '.join(KEYS)}, got {_shown(content)}."
        )
    if set(content) == {"merges"}:
        raise TokenizerFileError(
            f"{path}: holds merges only, without the pattern and special tokens that made them. "
            "If there were none, load it by hand: "
            f"Tokenizer(json.loads(pathlib.Path({path!r}).read_bytes())['merges'])"
        )
    content = {"engine": "re", **content}  # files older than the field
    for key in content:
        if key not in KEYS:
            raise TokenizerFileError(f"{path}: {key!r} is not a known key: remove it.")
    for key in KEYS:
        if key not in content:
            raise TokenizerFileError(f"{path}: {key!r} is missing. The file is not a bpe.json.")
    if type(content["version"]) is not int or content["version"] != VERSION:
        raise _wrong(path, "version", content["version"], f"this release reads version {VERSION}")
    merges = _checked(path, "merges", content["merges"], check_merges)
    specials = _special_tokens(path, content["special_tokens"], 256 + len(merges))
    _size(path, content["vocab_size"], 256 + len(merges) + len(specials))
    return BpeFile(
        pattern=_pattern(path, content["pattern"], content["engine"]),
        special_tokens=specials,
        train_sha256=_checked(path, "train_sha256", content["train_sha256"], check_train_sha256),
        merges=merges,
    )


def check_merges(merges: Any) -> tuple[Pair, ...]:
    """Merges in rank order: pairs of ids made before, never twice the same pair or token.

    Raises:
        TokenizerFileError: the number of the merge (from 0) and what is wrong with it.
    """
    if not isinstance(merges, Sequence) or isinstance(merges, str):
        raise TokenizerFileError(f"expected a list of pairs, got {_shown(merges)}")
    checked = []
    tokens = [bytes([byte]) for byte in range(256)]
    ids = {token: number for number, token in enumerate(tokens)}
    total = 0
    for new, merge in enumerate(merges, start=256):
        left, right = _pair(merge, new)
        size = len(tokens[left]) + len(tokens[right])
        total += size
        if size > MAX_TOKEN_BYTES or total > MAX_VOCABULARY_BYTES:
            raise TokenizerFileError(
                f"merge {new - 256} makes a token of {size} bytes; the limits are "
                f"{MAX_TOKEN_BYTES} bytes a token and {MAX_VOCABULARY_BYTES} bytes in all"
            )
        token = tokens[left] + tokens[right]
        if ids.setdefault(token, new) != new:
            raise TokenizerFileError(
                f"merge {new - 256} {[left, right]} makes the bytes of id {ids[token]} again"
            )
        tokens.append(token)
        checked.append((left, right))
    return tuple(checked)


def check_sizes(merges: Iterable[Pair]) -> tuple[Pair, ...]:
    """The same, of merges that training found, whose ids need no check.

    Raises:
        TokenizerFileError: a token, or all of them, are larger than a bpe.json may ask for.
    """
    checked = tuple(merges)
    sizes = [1] * 256
    for left, right in checked:
        sizes.append(sizes[left] + sizes[right])
    if max(sizes) > MAX_TOKEN_BYTES or sum(sizes) > MAX_VOCABULARY_BYTES:
        raise TokenizerFileError(
            f"training made a token of {max(sizes)} bytes, and {sum(sizes)} bytes of tokens; the "
            f"limits are {MAX_TOKEN_BYTES} and {MAX_VOCABULARY_BYTES}: ask for fewer ids, or cut "
            "the text by a pattern"
        )
    return checked


def _pair(merge: Any, new: int) -> Pair:
    """Two ids made before id `new`."""
    is_sequence = type(merge) in (tuple, list) or isinstance(merge, Sequence)
    if not is_sequence or isinstance(merge, str) or len(merge) != 2:
        raise TokenizerFileError(f"merge {new - 256} is {_shown(merge)}: a merge is a pair of ids")
    left, right = merge
    if type(left) is type(right) is int and 0 <= left < new and 0 <= right < new:
        return left, right
    for part in merge:
        if type(part) is not int:
            raise TokenizerFileError(f"merge {new - 256} holds {_shown(part)}, which is not an id")
    part = left if not 0 <= left < new else right
    raise TokenizerFileError(
        f"merge {new - 256} holds id {part}, but only ids 0 to {new - 1} exist before it"
    )


def check_train_sha256(value: Any) -> str | None:
    """A hash in lower-case hex, or None if what was trained on is not known."""
    if value is None:
        return None
    if not isinstance(value, str) or len(value) != 64 or set(value) - set("0123456789abcdef"):
        raise TokenizerFileError("expected 64 lower-case hex digits or null")
    return value


def _special_tokens(path: str, value: Any, first: int) -> tuple[str, ...]:
    if not isinstance(value, Mapping):
        raise _wrong(path, "special_tokens", value, "expected an object from text to id")
    specials: tuple[str, ...] = _checked(path, "special_tokens", list(value), check_special_tokens)
    for number, (text, token_id) in enumerate(value.items()):
        if type(token_id) is not int or token_id != first + number:
            raise TokenizerFileError(
                f"{path}: special_tokens: {text!r} has id {_shown(token_id)}, but ids follow the "
                f"last merge in order, so it must be {first + number}."
            )
    return specials


def _size(path: str, value: Any, real: int) -> None:
    if type(value) is not int or value != real:
        raise _wrong(path, "vocab_size", value, f"bytes, merges and special tokens make {real}")


def _pattern(path: str, regex: Any, engine: Any) -> Pattern:
    if not isinstance(engine, str):
        raise _wrong(path, "engine", engine, "expected a string")
    if regex is not None and not isinstance(regex, str):
        raise _wrong(path, "pattern", regex, "expected a string or null")
    try:
        return Pattern(regex, engine)
    except BytepairError as error:
        raise TokenizerFileError(f"{path}: pattern: {error}") from None


def _checked(path: str, field: str, value: Any, check: Any) -> Any:
    try:
        return check(value)
    except BytepairError as error:
        raise TokenizerFileError(f"{path}: {field}: {error}.".replace("..", ".")) from None


def _wrong(path: str, field: str, value: Any, why: str) -> TokenizerFileError:
    return TokenizerFileError(f"{path}: {field} is {_shown(value)}: {why}.")


def _shown(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."
