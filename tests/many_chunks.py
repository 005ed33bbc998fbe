"""A shard of words that hardly repeat, made as it is read; workers import it, so it is no test."""

from dataclasses import dataclass

import numpy as np

WORDS = 1000  # a document


@dataclass(frozen=True)
class ManyChunks:
    """So many words of eight letters, in documents of a thousand."""

    words: int

    name = "made.txt"

    @property
    def size(self):
        return 9 * self.words

    @property
    def identity(self):
        return {"words": self.words}

    def documents(self, skip):
        generator = np.random.default_rng(1)
        for number in range(self.words // WORDS):
            text = np.full((WORDS, 9), ord(" "), np.uint8)
            text[:, 1:] = generator.integers(ord("a"), ord("z") + 1, (WORDS, 8))
            yield "train", str(number), text.tobytes().decode()
