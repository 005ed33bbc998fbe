"""Text to ids, by the compiled kernel where there is one and in Python elsewhere; both the same.

Special tokens are not known here: tokenizer.py cuts them out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from bytepair.chunks import cut
from bytepair.kernel import library
from bytepair.kernel.encode import Encoder
from bytepair.merging import merge_chunk
from bytepair.patterns import Pattern
from bytepair.scanning import kernel_scanner

if TYPE_CHECKING:
    from numpy.typing import NDArray

# Words repeat, so their ids are remembered: this many chunks of at most that many characters, then
# the memory starts afresh. English prose finds 97 % of its chunks there.
MAX_CACHED_CHUNKS = 1 << 16
MAX_CACHED_LENGTH = 128


class PythonEncoder:
    """Encodes in Python; safe to share between threads."""

    def __init__(self, merges: Sequence[tuple[int, int]], pattern: Pattern) -> None:
        self._ids = {pair: 256 + rank for rank, pair in enumerate(merges)}
        self._pattern = pattern.compiled()
        self._cache: dict[str, list[int]] = {}

    def encode(self, text: str) -> list[int]:
        """The ids of a text without lone surrogates."""
        cache = self._cache
        ids: list[int] = []
        for chunk in cut(text, self._pattern):
            known = cache.get(chunk)
            if known is None:
                known = merge_chunk(chunk.encode("utf-8"), self._ids)
                if len(chunk) <= MAX_CACHED_LENGTH:
                    if len(cache) >= MAX_CACHED_CHUNKS:
                        cache.clear()
                    cache[chunk] = known
            ids += known
        return ids

    def encode_array(self, text: str, dtype: Any) -> NDArray[Any]:
        """The ids of a text as a numpy array of `dtype`."""
        import numpy as np

        return np.array(self.encode(text), dtype)


class KernelEncoder:
    """Encodes with the kernel; a pattern that the kernel does not know is cut in Python."""

    def __init__(self, merges: Sequence[tuple[int, int]], pattern: Pattern) -> None:
        scanner = kernel_scanner(pattern)
        self._pattern = pattern.compiled()
        self._cuts = scanner is not None or self._pattern is None
        self._encoder = Encoder(merges, scanner)

    def encode(self, text: str) -> list[int]:
        """The ids of a text without lone surrogates."""
        if self._cuts:
            return self._encoder.encode(text.encode("utf-8"))
        chunks = cut(text, self._pattern)
        return self._encoder.encode_chunks([chunk.encode("utf-8") for chunk in chunks])

    def encode_array(self, text: str, dtype: Any) -> NDArray[Any]:
        """The ids of a text as a numpy array of `dtype`, uint16 or uint32."""
        import numpy as np

        if not self._cuts:
            return np.array(self.encode(text), dtype)
        data = text.encode("utf-8")
        array = np.empty(len(data) + self._encoder.slack, dtype)
        return array[: self._encoder.encode_into(data, array, array.itemsize)]


def make_encoder(
    merges: Sequence[tuple[int, int]], pattern: Pattern
) -> PythonEncoder | KernelEncoder:
    """The quicker of the two that can be had."""
    return (PythonEncoder if library() is None else KernelEncoder)(merges, pattern)
