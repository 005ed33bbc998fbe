"""The format of Hugging Face: a folder that `tokenizers` and `transformers` load.

Their byte-level BPE merges by a list, as we do, and takes the longest special token at each place.
What would change ids is left out or off: prefix space, ByteLevel's own pattern, normalizers,
post-processors, and the special tokens' freedom to swallow the spaces beside them.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from bytepair.export import ExportError, model_card
from bytepair.export.byte_level import alphabet, to_bytes, to_text
from bytepair.export.portable import portable_regex
from bytepair.export.prove import Reader
from bytepair.export.publish import INSTALL, Proof, about, publish
from bytepair.files import StrPath, dump_json
from bytepair.tokenizer import Tokenizer

RECEIPT = "receipt.json"
NO_LIMIT = int(1e30)  # what transformers itself writes for a text of any length

# The texts by which a special token is known to have a role.
ROLES = {
    "bos_token": ("<bos>", "<s>", "<|bos|>", "[BOS]", "<|begin_of_text|>", "<|startoftext|>"),
    "eos_token": ("<eos>", "</s>", "<|eos|>", "[EOS]", "<|end_of_text|>", "<|endoftext|>"),
    "unk_token": ("<unk>", "<|unk|>", "[UNK]"),
    "pad_token": ("<pad>", "<|pad|>", "[PAD]"),
}


def export_huggingface(
    tokenizer: Tokenizer,
    folder: StrPath,
    *,
    name: str = "tokenizer",
    chat_template: str | None = None,
    proof: Proof | None = None,
) -> dict[str, Any] | None:
    """Write tokenizer.json, its configuration and a model card into a folder.

    Args:
        tokenizer: to be exported.
        folder: made if need be; what else is in it stays.
        name: how the model card calls it.
        chat_template: Jinja source for `apply_chat_template`; none if not given.
        proof: whether and on which texts to prove that ids are the same.

    Returns:
        The receipt, or None if nothing was proved.

    Raises:
        ExportError: the library cannot give our ids; the message has the first difference.
    """
    folder, proof = Path(folder), proof or Proof()
    if folder.exists() and not folder.is_dir():
        raise ExportError(f"{folder}: a file; name a folder.")
    readers = None
    if proof.library_is_there("tokenizers"):
        with_transformers = proof.library_is_there("transformers")
        readers = _readers(with_transformers=with_transformers)
    return publish(
        folder,
        huggingface_files(tokenizer, name=name, chat_template=chat_template),
        RECEIPT,
        about=about(tokenizer, "huggingface"),
        ours=tokenizer,
        readers=readers,
        proof=proof,
        ids=range(tokenizer.vocab_size),
    )


def huggingface_files(
    tokenizer: Tokenizer, *, name: str, chat_template: str | None = None
) -> dict[str, bytes]:
    """The files' bytes by name.

    Raises:
        ExportError: Hugging Face's rules cannot express the tokenizer.
    """
    _check_special_tokens(tokenizer)
    roles = special_roles(tokenizer)
    others = [text for text in tokenizer.special_tokens if text not in roles.values()]
    names: dict[str, Any] = {**roles}
    if others:
        names["additional_special_tokens"] = others
    config = {
        "tokenizer_class": "PreTrainedTokenizerFast",
        "model_max_length": NO_LIMIT,
        "clean_up_tokenization_spaces": False,
        "add_prefix_space": False,
        "added_tokens_decoder": {
            str(token["id"]): {key: value for key, value in token.items() if key != "id"}
            for token in _added_tokens(tokenizer)
        },
        **names,
    }
    if chat_template is not None:
        config["chat_template"] = chat_template
    return {
        "tokenizer.json": dump_json(tokenizer_json(tokenizer)),
        "tokenizer_config.json": dump_json(config),
        "special_tokens_map.json": dump_json(names),
        "README.md": model_card.write(tokenizer, name).encode("utf-8"),
    }


def _check_special_tokens(tokenizer: Tokenizer) -> None:
    """Refuse special tokens that Hugging Face takes for others, since it knows tokens by text."""
    specials = tokenizer.special_tokens
    ordinary = tokenizer.vocab[: tokenizer.vocab_size - len(specials)]
    written = {to_text(token): token_id for token_id, token in enumerate(ordinary)}
    for text, token_id in specials.items():
        if text in written:
            raise ExportError(
                f"the special token {text!r} has id {token_id}, but Hugging Face writes id "
                f"{written[text]}, {ordinary[written[text]]!r}, with the same text, and would "
                "take the one for the other."
            )
        if not text.isascii() and set(text) <= set(alphabet()):
            raise ExportError(
                f"the special token {text!r} is written in characters that stand for bytes in "
                f"Hugging Face's alphabet: it would decode id {token_id} to {to_bytes(text)!r}."
            )


def special_roles(tokenizer: Tokenizer) -> dict[str, str]:
    """From each role that a special token has to that token; others have none."""
    specials = tokenizer.special_tokens
    found = {
        role: next(filter(specials.__contains__, texts), None) for role, texts in ROLES.items()
    }
    return {role: text for role, text in found.items() if text is not None}


def tokenizer_json(tokenizer: Tokenizer) -> dict[str, Any]:
    """The content of tokenizer.json: ids are ours, bytes are written in GPT-2's alphabet."""
    tokens = list(map(to_text, tokenizer.vocab))
    ordinary = tokens[: len(tokens) - len(tokenizer.special_tokens)]
    byte_level = {
        "type": "ByteLevel",
        "add_prefix_space": False,
        "trim_offsets": False,
        "use_regex": False,
    }
    regex = portable_regex(tokenizer.pattern)
    split = {
        "type": "Split",
        "pattern": {"Regex": regex},
        "behavior": "Isolated",
        "invert": False,
    }
    return {
        "version": "1.0",
        "truncation": None,
        "padding": None,
        "added_tokens": _added_tokens(tokenizer),
        "normalizer": None,
        "pre_tokenizer": byte_level
        if regex is None
        else {"type": "Sequence", "pretokenizers": [split, byte_level]},
        "post_processor": None,
        "decoder": byte_level,
        "model": {
            "type": "BPE",
            "dropout": None,
            "unk_token": None,
            "continuing_subword_prefix": None,
            "end_of_word_suffix": None,
            "fuse_unk": False,
            "byte_fallback": False,
            "ignore_merges": False,
            "vocab": {token: number for number, token in enumerate(ordinary)},
            "merges": [[tokens[left], tokens[right]] for left, right in tokenizer.merges],
        },
    }


def _added_tokens(tokenizer: Tokenizer) -> list[dict[str, Any]]:
    return [
        {
            "id": token_id,
            "content": text,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": True,
        }
        for text, token_id in tokenizer.special_tokens.items()
    ]


def _readers(*, with_transformers: bool) -> Callable[[Path], list[Reader]]:
    def load(folder: Path) -> list[Reader]:
        readers: list[Reader] = [TokenizersReader(folder / "tokenizer.json")]
        if with_transformers:
            readers.append(TransformersReader(folder))
        return readers

    return load


def import_tokenizers() -> Any:
    """The library `tokenizers`.

    Raises:
        ExportError: it is not installed.
    """
    try:
        import tokenizers
    except ImportError:
        raise ExportError(f"the package tokenizers is needed for this: {INSTALL}.") from None
    return tokenizers


class TokenizersReader:
    """The library `tokenizers`, as a reader of an export to be proved."""

    name = "tokenizers"
    thorough = True
    allows_some = False

    def __init__(self, path: StrPath, *, add_special_tokens: bool = True) -> None:
        Theirs = import_tokenizers().Tokenizer  # noqa: N806
        self.versions: Mapping[str, str] = {"tokenizers": version("tokenizers")}
        try:
            self._tokenizer = Theirs.from_file(str(path))
        except Exception as error:  # the library raises no other
            raise ExportError(f"tokenizers does not load {path}: {error}.") from error
        self._adds = add_special_tokens
        self._added = self._tokenizer.get_added_tokens_decoder()
        self.ordinary = all(token.special for token in self._added.values())

    def encode(self, texts: list[str], allowed: frozenset[str]) -> list[list[int]]:
        self._tokenizer.encode_special_tokens = not allowed
        encodings = self._tokenizer.encode_batch_fast(texts, add_special_tokens=self._adds)
        return [encoding.ids for encoding in encodings]

    def decode(self, ids: list[int]) -> str:
        text: str = self._tokenizer.decode(ids, skip_special_tokens=False)
        return text

    def token_bytes(self, token_id: int) -> bytes | None:
        text = self._tokenizer.id_to_token(token_id)
        if text is None:
            return None
        return text.encode("utf-8") if token_id in self._added else to_bytes(text)


@contextmanager
def _quiet() -> Iterator[None]:
    """Without transformers' advice to install PyTorch, which no tokenizer needs."""
    before = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        yield
    finally:
        logging.disable(before)


class TransformersReader:
    """The library `transformers`: the folder loaded, saved, and loaded again from there."""

    name = "transformers"
    thorough = False  # it runs `tokenizers`, which has been tried on every code point
    allows_some = False
    ordinary = True

    def __init__(self, folder: StrPath) -> None:
        with _quiet():
            from transformers import AutoTokenizer

        self.versions: Mapping[str, str] = {
            package: version(package) for package in ("tokenizers", "transformers")
        }
        self._tokenizer: Any
        with TemporaryDirectory() as saved:
            AutoTokenizer.from_pretrained(str(folder), local_files_only=True).save_pretrained(saved)
            self._tokenizer = AutoTokenizer.from_pretrained(saved, local_files_only=True)

    def encode(self, texts: list[str], allowed: frozenset[str]) -> list[list[int]]:
        encoded = self._tokenizer(texts, split_special_tokens=not allowed)
        ids: list[list[int]] = encoded["input_ids"]
        return ids

    def decode(self, ids: list[int]) -> str:
        text: str = self._tokenizer.decode(ids, skip_special_tokens=False)
        return text

    def token_bytes(self, token_id: int) -> bytes | None:
        text = self._tokenizer.convert_ids_to_tokens(token_id)
        if text is None:
            return None
        return (
            text.encode("utf-8")
            if token_id in self._tokenizer.added_tokens_decoder
            else (to_bytes(text))
        )
