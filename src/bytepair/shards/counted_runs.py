"""Counting texts within a stated memory, however many distinct chunks they have.

Counts that have grown to a part of the memory are written as a sorted run; in the end the runs are
merged. How often that happens changes nothing in what comes out.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from bytepair.chunks import cut
from bytepair.counting import count_in_parts
from bytepair.packed import PackedCounts
from bytepair.patterns import Pattern
from bytepair.scanning import kernel_scanner
from bytepair.shards.merged_counts import RunFacts, SortedRun, merge_runs, write_run
from bytepair.special_tokens import compile_special_tokens

# Tables are doubled, and at the end they, their contents and these in order are there for a moment:
# together about three times as much. Measured by tools/measure_shards.py.
_TABLES = 8  # of the memory, one part in so many
_MERGING = 3
_PYTHON_ENTRY = 1000  # bytes of a chunk in a dict, of its copies and of what sorts them


def count_to_run(
    texts: Iterable[bytes],
    folder: Path,
    *,
    pattern: Pattern,
    special_tokens: Sequence[str],
    memory: int,
    scratch: Path,
) -> RunFacts:
    """Count the chunks of UTF-8 texts, each a document of its own, into a run in `folder`.

    Args:
        texts: read once.
        folder: where the files of the run are written.
        pattern: what cuts texts.
        special_tokens: cut out of them.
        memory: bytes that this process may have, a text included.
        scratch: where the runs in between are kept.
    """
    scanner = kernel_scanner(pattern)
    if scanner is None:
        parts = _count_in_python(texts, pattern, special_tokens, memory // _PYTHON_ENTRY)
    else:
        parts = count_in_parts(texts, scanner, special_tokens, memory=memory // _TABLES)
    runs: list[SortedRun] = []
    for counts in parts:
        target = scratch / f"part-{len(runs):06}"
        runs.append(SortedRun.in_folder(target, write_run(target, counts.in_order())))
        del counts  # before the next are made
    return merge_runs(runs, folder, memory=memory // _MERGING, scratch=scratch)


def _count_in_python(
    texts: Iterable[bytes], pattern: Pattern, special_tokens: Sequence[str], most: int
) -> Iterator[PackedCounts]:
    compiled, specials = pattern.compiled(), compile_special_tokens(special_tokens)
    counter: Counter[str] = Counter()
    for data in texts:
        text = data.decode("utf-8")
        for piece in specials.split(text) if specials else (text,):
            counter.update(cut(piece, compiled))
        if len(counter) >= most:
            yield _packed(counter)
            counter = Counter()
    yield _packed(counter)


def _packed(counter: Counter[str]) -> PackedCounts:
    return PackedCounts.of({chunk.encode("utf-8"): number for chunk, number in counter.items()})
