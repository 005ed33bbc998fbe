"""The compiled core, where there is one; `library()` is None where the Python core serves."""

from __future__ import annotations

import os
from functools import cache
from importlib import import_module
from typing import Any

from bytepair.errors import BytepairError


@cache
def library() -> tuple[Any, Any] | None:
    """The kernel's (ffi, lib), or None: not built, or turned off by BYTEPAIR_KERNEL=0.

    Raises:
        BytepairError: BYTEPAIR_KERNEL=1 asks for a kernel that is not there.
    """
    wanted = os.environ.get("BYTEPAIR_KERNEL", "")
    if wanted not in ("", "0", "1"):
        raise BytepairError(f"BYTEPAIR_KERNEL is {wanted!r}: write 0, 1 or leave it unset.")
    if wanted == "0":
        return None
    try:
        built: Any = import_module("bytepair.kernel._kernel")
    except ImportError as error:
        if wanted == "1":
            raise BytepairError(
                f"BYTEPAIR_KERNEL is 1, but the kernel is not built ({error}): install a C "
                "compiler and run `pip install --no-deps --no-build-isolation -e .` again."
            ) from None
        return None
    return built.ffi, built.lib


def check(lib: Any, status: int) -> None:
    """Turn a status of the kernel into an exception."""
    if status == lib.BP_OK:
        return
    if status == lib.BP_NO_MEMORY:
        raise MemoryError("the kernel could not have the memory it needs")
    if status == lib.BP_TOO_LARGE:
        raise BytepairError("too large for the kernel: one chunk of gigabytes, or too many ids.")
    raise BytepairError(f"the kernel refused its input (status {status}).")
