"""One-dimensional arrays on disk: .npy files whose bytes depend on the numbers alone."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from bytepair import files
from bytepair.errors import ArtifactError
from bytepair.fields import damaged

HEADER_BYTES = 128


def npy_bytes(array: NDArray[Any]) -> bytes:
    """The .npy file (format 1.0) of a 1-D array, little-endian whatever the machine.

    The header is numpy.save's, spelled out here lest a later NumPy pad it in another way.
    """
    little = array.astype(array.dtype.newbyteorder("<"), copy=False)
    return npy_header(little.dtype.str, len(little)) + little.tobytes()


def load_npy(path: Path, dtype: str, length: int, sha256: str | None) -> NDArray[Any]:
    """Map an array that npy_bytes wrote, read-only: (length,), `dtype`.

    A `sha256` of None leaves the contents unread.

    Raises:
        ArtifactError: the file is absent, or not what the record beside it says.
    """
    if not path.is_file():
        raise ArtifactError(f"{path}: no such file. Run `dvc repro`, or `dvc pull` with a remote.")
    header = npy_header(dtype, length)
    size = len(header) + length * np.dtype(dtype).itemsize
    if path.stat().st_size != size:
        raise damaged(path, f"it has {path.stat().st_size} bytes, but {size} are on record")
    with path.open("rb") as file:
        found = file.read(len(header))
    if found != header:
        raise damaged(path, f"its header is {found!r}, not that of {length} numbers '{dtype}'")
    if sha256 is not None:
        actual = files.sha256(np.memmap(path, np.uint8, "r").data)
        if actual != sha256:
            raise damaged(path, f"sha256 is {actual}, but {sha256} is on record")
    # An empty mapping is refused by some versions of NumPy (numpy/numpy#27723).
    array = np.load(path, mmap_mode="r" if length else None, allow_pickle=False)
    array.flags.writeable = False
    return np.asarray(array)


def npy_header(dtype: str, length: int) -> bytes:
    """The first HEADER_BYTES of the .npy file of `length` numbers of a type such as `<u2`."""
    shape = f"{{'descr': '{dtype}', 'fortran_order': False, 'shape': ({length},), }}"
    text = shape.encode("ascii").ljust(HEADER_BYTES - 11) + b"\n"
    return b"\x93NUMPY\x01\x00" + len(text).to_bytes(2, "little") + text
