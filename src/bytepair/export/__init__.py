"""Exports: our tokenizers in the formats of other libraries, and the proof that ids stay the same.

Nothing here is needed to run a pipeline; the libraries are imported only to prove an export.
"""

from __future__ import annotations

from bytepair.errors import BytepairError


class ExportError(BytepairError, ValueError):
    """A tokenizer cannot be given to another library unchanged, or that library is not there."""
