"""Putting an export in its place: written beside it, proved there, and only then moved.

Where the proof fails, nothing is left behind and an older export stays as it was. A receipt is
removed before the files it speaks of are replaced, and written after them.
"""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from bytepair import files
from bytepair.export import ExportError
from bytepair.export.prove import Ours, Reader, prove

INSTALL = "pip install 'bytepair[export]'"


@dataclass(frozen=True)
class Proof:
    """Whether an export is proved, and on which texts besides our own probes.

    Attributes:
        wanted: None for yes where the library is installed.
        texts: by name, such as the splits of the corpus.
    """

    wanted: bool | None = None
    texts: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def library_is_there(self, package: str) -> bool:
        """Whether to prove with `package`.

        Raises:
            ExportError: a proof was asked for, and the package is not installed.
        """
        if self.wanted is False:
            return False
        if find_spec(package) is not None:
            return True
        if self.wanted:
            raise ExportError(
                f"the package {package} is needed to prove this export: {INSTALL}, or leave the "
                "proof out with --no-prove."
            )
        return False


def publish(
    folder: Path,
    contents: Mapping[str, bytes],
    receipt_name: str,
    *,
    about: Mapping[str, Any],
    ours: Ours,
    readers: Callable[[Path], list[Reader]] | None,
    proof: Proof,
    ids: Collection[int],
) -> dict[str, Any] | None:
    """Write files into a folder, if every reader that loads them agrees with us.

    Args:
        folder: made if need be; what else is in it stays.
        contents: from file names to bytes.
        receipt_name: the file that says what was compared.
        about: what the receipt says of the tokenizer.
        ours: the tokenizer itself.
        readers: load the files from the folder given; None for no proof.
        proof: the texts to prove it on.
        ids: all that there are.

    Returns:
        The receipt, or None if nothing was proved.
    """
    beside = next(path for path in (folder, *folder.parents) if path.is_dir())
    staged = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", suffix=".tmp", dir=beside))
    try:
        for name, data in contents.items():
            files.write_bytes(staged / name, data)
        receipt = None
        if readers is not None:
            receipt = {
                **about,
                "files": {name: files.sha256(data) for name, data in contents.items()},
                "proved": [_proved(reader, ours, proof, ids) for reader in readers(staged)],
            }
            files.write_record(staged / receipt_name, receipt)
        folder.mkdir(parents=True, exist_ok=True)
        (folder / receipt_name).unlink(missing_ok=True)
        for name in (*contents, *([receipt_name] if receipt else [])):
            (staged / name).replace(folder / name)
    finally:
        shutil.rmtree(staged, ignore_errors=True)
    return receipt


def _proved(reader: Reader, ours: Ours, proof: Proof, ids: Collection[int]) -> dict[str, Any]:
    compared = prove(ours, reader, proof.texts, ids=ids)
    return {"library": reader.name, "versions": dict(reader.versions), "compared": compared}


def about(tokenizer: Any, written: str) -> dict[str, Any]:
    """What a receipt says first."""
    return {
        "export": written,
        "tokenizer_sha256": tokenizer.sha256,
        "train_sha256": tokenizer.train_sha256,
        "pattern": tokenizer.pattern.regex,
        "vocab_size": tokenizer.vocab_size,
    }


def file_name(path: files.StrPath) -> Path:
    """The path of a file to be written.

    Raises:
        ExportError: a folder stands there.
    """
    path = Path(os.fspath(path))
    if path.is_dir() or not path.name:
        raise ExportError(f"{path}: a folder; name a file in it.")
    return path
