"""An exact byte-level BPE tokenizer, and the pipeline that makes one reproducibly.

Names are imported when first used, so `import bytepair` costs next to nothing and a pipeline
stage depends on no more modules than it needs.
"""

from __future__ import annotations

from importlib import import_module

TYPE_CHECKING = False  # typing's own costs more than all of this package
if TYPE_CHECKING:
    from bytepair.counts import ChunkCounts
    from bytepair.errors import BytepairError
    from bytepair.patterns import Pattern
    from bytepair.streaming import StreamDecoder
    from bytepair.tokenizer import Tokenizer

__version__ = "0.1.0"
__all__ = ["BytepairError", "ChunkCounts", "Pattern", "StreamDecoder", "Tokenizer", "__version__"]

_HOME = {
    "BytepairError": "errors",
    "ChunkCounts": "counts",
    "Pattern": "patterns",
    "StreamDecoder": "streaming",
    "Tokenizer": "tokenizer",
}


def __getattr__(name: str) -> object:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOME[name]}"), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
