"""The memory that a process has had, for programs that tests run with `tests` on their path."""

import os
import re
import resource
import sys
from pathlib import Path


def peak():
    """The most bytes, so far.

    On Linux by VmHWM: ru_maxrss begins with what the parent had when it started this process.
    """
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
    except OSError:
        found = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        return found if sys.platform == "darwin" else found * 1024
    return int(re.search(r"VmHWM:\s+(\d+)", status)[1]) * 1024


def environment():
    """What a program needs to import this."""

    return {**os.environ, "PYTHONPATH": str(Path(__file__).parent)}
