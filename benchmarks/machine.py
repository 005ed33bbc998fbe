"""What a benchmark ran on: the machine, and the texts by size and hash."""

from __future__ import annotations

import hashlib
import os
import platform
import subprocess
import sysconfig
from pathlib import Path


def describe() -> dict[str, object]:
    """CPU, memory, kernel, Python and compiler."""
    return {
        "cpu": _field("/proc/cpuinfo", "model name") or platform.processor(),
        "cpus": len(os.sched_getaffinity(0))
        if hasattr(os, "sched_getaffinity")
        else os.cpu_count(),
        "memory": _memory(),
        "system": f"{platform.system()} {platform.release()} {platform.machine()}",
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "compiler": _compiler(),
    }


def fingerprint(path: Path) -> dict[str, object]:
    """A file's size in bytes and its hash."""
    with path.open("rb") as file:
        digest = hashlib.file_digest(file, "sha256").hexdigest()
    return {"bytes": path.stat().st_size, "sha256": digest}


def _field(path: str, name: str) -> str | None:
    """The first `name : value` of a file below /proc."""
    try:
        lines = Path(path).read_text(encoding="ascii", errors="replace").splitlines()
    except OSError:
        return None
    for line in lines:
        key, _, value = line.partition(":")
        if key.strip() == name:
            return value.strip()
    return None


def _memory() -> str:
    """The machine's memory, in GB."""
    kib = _field("/proc/meminfo", "MemTotal")
    return f"{int(kib.split()[0]) * 1024 / 1e9:.1f} GB" if kib else "unknown"


def _compiler() -> str:
    """The first line that the compiler of extension modules says of itself."""
    command = (sysconfig.get_config_var("CC") or "cc").split()[0]
    try:
        said = subprocess.run([command, "--version"], check=True, capture_output=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return "none"
    return said.decode(errors="replace").partition("\n")[0]
