"""How the kernel is compiled: cffi in API mode, with nothing but a C compiler.

The declarations are those of bytepair.h itself, so header and binding cannot differ.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

from cffi import FFI

HERE = Path(__file__).parent


def declarations() -> str:
    """bytepair.h without what cffi does not read: comments and preprocessor lines."""
    text = (HERE / "bytepair.h").read_text(encoding="utf-8")
    text = re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL)
    constants = re.findall(r"(?m)^#define (BP_[A-Z]+) ([0-9]+)$", text)
    text = re.sub(r"(?m)^#.*$", "", text)
    return text + "".join(f"#define {name} {value}\n" for name, value in constants)


def files(suffix: str) -> list[str]:
    """The files of C, relative to the project, as setuptools wants them."""
    root = HERE.parent.parent.parent
    return [
        path.relative_to(root).as_posix()
        for path in sorted(HERE.glob(f"*{suffix}"))
        if path.stem != "_kernel"
    ]


ffibuilder = FFI()
ffibuilder.cdef(declarations())
ffibuilder.set_source(
    "bytepair.kernel._kernel",
    '#include "bytepair.h"',
    sources=files(".c"),
    depends=files(".h"),
    include_dirs=[HERE.relative_to(HERE.parent.parent.parent).as_posix()],
    extra_compile_args=[] if sys.platform == "win32" else ["-std=c11", "-O3", "-pthread"],
    optional=True,
)
