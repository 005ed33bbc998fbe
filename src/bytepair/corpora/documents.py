"""Read the documents of a split, as split wrote them; the one reader for every later stage.

Documents are found by the byte offsets in documents.json, never by the separator's text, and the
text is held to its recorded hash. What a separator becomes in a token array is not decided here.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from bytepair.corpora.records import DOCUMENTS, TEXT, FileRecord
from bytepair.errors import ArtifactError
from bytepair.files import read_record, read_verified

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class Document:
    """A document: its name in params.yaml or its numeral, and its whole text."""

    name: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Split:
    """The documents of a split in order; `sha256` and `size` are those of text.txt."""

    sha256: str
    size: int
    separator: str
    documents: tuple[Document, ...]


def has_split(splits_folder: Path, name: str) -> bool:
    """Whether the split `name` was asked for and made."""
    return (splits_folder / name).is_dir()


def read_split(folder: Path) -> Split:
    """Read the split in `folder`, and check all that documents.json says of text.txt.

    Raises:
        ArtifactError: a file is absent, damaged or changed; the message names file and field.
    """
    path = folder / DOCUMENTS
    content = read_record(path)
    if content.keys() != {"text", "separator", "documents"}:
        _refuse(path, "expected an object of text, separator and documents", content)
    record = FileRecord.from_json(content["text"], f"{path}: text")
    separator = content["separator"]
    if not isinstance(separator, str):
        _refuse(path, "separator: expected a string", separator)
    if not isinstance(content["documents"], list) or not content["documents"]:
        _refuse(path, "documents: expected a list of at least one", content["documents"])
    text = read_verified(folder / TEXT, record.sha256)
    if len(text) != record.size:
        _refuse(path, f"text.bytes: {TEXT} has {len(text)}", record.size)
    gap = separator.encode(errors="surrogatepass")  # a lone surrogate then meets no text
    documents = _read_documents(path, content["documents"], text, gap)
    return Split(sha256=record.sha256, size=record.size, separator=separator, documents=documents)


def _read_documents(
    path: Path, entries: list[Any], text: bytes, separator: bytes
) -> tuple[Document, ...]:
    documents: dict[str, Document] = {}
    position = 0
    for number, entry in enumerate(entries):
        where = f"documents[{number}]"
        match entry:
            case {"name": str(name), "start": int(start), "end": int(end)} if (
                len(entry) == 3 and type(start) is int and type(end) is int
            ):
                pass
            case _:
                _refuse(path, f"{where}: expected a name, and a start and an end in bytes", entry)
        if name in documents:
            _refuse(path, f"{where}.name: stands twice", name)
        if number:
            if text[position : position + len(separator)] != separator:
                _refuse(path, f"{where}: no separator before it in {TEXT}", entry)
            position += len(separator)
        if start != position:
            _refuse(path, f"{where}.start: expected {position}", start)
        if not start < end <= len(text):
            _refuse(path, f"{where}.end: expected above {start}, at most {len(text)}", end)
        documents[name] = Document(name, _decode(text[start:end], path, where))
        position = end
    if position != len(text):
        _refuse(path, f"documents: the last must end with {TEXT}, at {len(text)}", position)
    return tuple(documents.values())


def _decode(data: bytes, path: Path, where: str) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        _refuse(
            path, f"{where}: its bytes are not UTF-8 at offset {error.start}", data[error.start]
        )


def _refuse(path: Path, problem: str, value: Any) -> NoReturn:
    raise ArtifactError(
        f"{path}: {problem}, found {value!r:.80}. Delete the folder and run `dvc repro`."
    )
