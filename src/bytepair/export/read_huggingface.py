"""A tokenizer.json of Hugging Face as tokens and merges, if that is all there is in it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, NoReturn

from bytepair.errors import ArtifactError
from bytepair.export.byte_level import to_bytes
from bytepair.export.recognize import covers_every_text, recognize
from bytepair.files import StrPath, parse_json, read_bytes
from bytepair.patterns import Pattern

# Settings of the model under which it merges as we do: absent, or one of these.
_PLAIN = {
    "dropout": (None, 0),
    "continuing_subword_prefix": (None, ""),
    "end_of_word_suffix": (None, ""),
    "byte_fallback": (False,),
}
_FREEDOMS = ("single_word", "lstrip", "rstrip")


def read_huggingface(path: StrPath) -> dict[str, Any]:
    """What Vocabulary is made of; see Vocabulary.from_huggingface."""
    path = Path(path)
    if path.is_dir():
        path /= "tokenizer.json"
    content = parse_json(read_bytes(path), path)
    try:
        return _File(path, content).parts()
    except (KeyError, TypeError, AttributeError, ValueError) as error:
        if isinstance(error, ArtifactError):
            raise
        raise ArtifactError(
            f"{path}: not a tokenizer.json of tokenizers 0.20 or newer ({error!r})."
        ) from None


class _File:
    def __init__(self, path: Path, content: dict[str, Any]) -> None:
        self._path = path
        self._content = content

    def parts(self) -> dict[str, Any]:
        content = self._content
        model = content["model"]
        if model.get("type", "BPE") != "BPE":
            self._refuse("model.type", model["type"], "only BPE is read")
        for key, plain in _PLAIN.items():
            if model.get(key, plain[0]) not in plain:
                self._refuse(f"model.{key}", model[key], "it changes what is merged")
        if content.get("normalizer") is not None:
            kind = content["normalizer"]["type"]
            self._refuse("normalizer", kind, "it changes the text, so ids do not lead back to it")
        if (content.get("decoder") or {}).get("type") != "ByteLevel":
            self._refuse("decoder", content.get("decoder"), "only ByteLevel is read")
        specials = {token["content"]: token["id"] for token in self._added_tokens()}
        merges = [self._merge(number, merge) for number, merge in enumerate(model["merges"])]
        made = {left + right for left, right in merges}
        tokens = {}
        for text, token_id in model["vocab"].items():
            if specials.get(text) != token_id:
                tokens[self._bytes("model.vocab", text)] = token_id
            elif _is_made(text, made):
                self._refuse("added_tokens", text, "a merge makes the same token")
        return {
            "tokens": tokens,
            "merges": merges,
            "special_tokens": specials,
            "pattern": self._pattern(),
            "whole_chunks": bool(model.get("ignore_merges")),
        }

    def _added_tokens(self) -> list[dict[str, Any]]:
        added: list[dict[str, Any]] = self._content.get("added_tokens") or []
        for token in added:
            for freedom in _FREEDOMS:
                if token.get(freedom):
                    where = f"added_tokens: {token['content']!r}: {freedom}"
                    self._refuse(where, True, "it takes in or looks at the text beside it")
        return added

    def _merge(self, number: int, merge: Any) -> tuple[bytes, bytes]:
        parts = merge.split(" ") if isinstance(merge, str) else merge
        if len(parts) != 2:
            self._refuse(f"model.merges[{number}]", merge, "expected two tokens")
        left, right = (self._bytes(f"model.merges[{number}]", part) for part in parts)
        return left, right

    def _bytes(self, field: str, text: str) -> bytes:
        try:
            return to_bytes(text)
        except ArtifactError as error:
            raise ArtifactError(f"{self._path}: {field}: {error}") from None

    def _pattern(self) -> Pattern:
        steps = self._content.get("pre_tokenizer") or {"type": None}
        steps = steps["pretokenizers"] if steps["type"] == "Sequence" else [steps]
        match [step["type"] for step in steps]:
            case ["ByteLevel"]:
                split = None
            case ["Split", "ByteLevel"]:
                split = steps[0]
            case kinds:
                self._refuse(
                    "pre_tokenizer", kinds, "only ByteLevel, alone or after one Split, is read"
                )
        byte_level = steps[-1]
        if byte_level.get("add_prefix_space", True):
            self._refuse("pre_tokenizer.add_prefix_space", True, "it puts a space before a text")
        own = byte_level.get("use_regex", True)
        if split is None:
            return Pattern.named("gpt2") if own else Pattern(None)
        if own:
            self._refuse("pre_tokenizer.use_regex", own, "the text is cut twice")
        return self._split(split)

    def _split(self, split: dict[str, Any]) -> Pattern:
        regex = split["pattern"].get("Regex")
        if regex is None:
            self._refuse("pre_tokenizer.pattern", split["pattern"], "only a Regex is read")
        try:
            pattern = recognize(regex)
        except ArtifactError as error:
            raise ArtifactError(f"{self._path}: pre_tokenizer: {error}") from None
        how = (split["behavior"], bool(split.get("invert")))
        keeps_matches_only = how == ("Removed", True) and covers_every_text(pattern)
        if how != ("Isolated", False) and not keeps_matches_only:
            self._refuse("pre_tokenizer.behavior, invert", how, "matches must be kept, each alone")
        return pattern

    def _refuse(self, field: str, value: Any, why: str) -> NoReturn:
        raise ArtifactError(f"{os.fspath(self._path)}: {field} is {value!r:.80}: {why}.")


def _is_made(text: str, made: set[bytes]) -> bool:
    try:
        return to_bytes(text) in made
    except ArtifactError:
        return False
