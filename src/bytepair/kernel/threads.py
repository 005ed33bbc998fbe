"""How many threads to use."""

from __future__ import annotations

import os


def as_threads(threads: int | None) -> int:
    """The number of threads; None is one for each core that this process may run on."""
    if threads is None:
        if hasattr(os, "sched_getaffinity"):
            return len(os.sched_getaffinity(0))
        return os.cpu_count() or 1
    if type(threads) is not int or threads < 1:
        raise ValueError(f"threads is {threads!r}: it must be a whole number from 1 on, or None.")
    return threads
