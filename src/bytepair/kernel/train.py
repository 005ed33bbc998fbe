"""Training with the kernel."""

from __future__ import annotations

from collections.abc import Mapping

from bytepair.kernel import library
from bytepair.packed import PackedCounts


def train(
    counts: Mapping[bytes, int], *, merges: int, min_count: int
) -> tuple[list[tuple[int, int]], list[int], list[int]] | None:
    """Find merges, their counts, and the lengths of the text, as training.Training has them.

    None where the Python core has to serve: there is no kernel, or there are numbers that it does
    not take (a count of 0, a sum of 64 bits and more, an empty chunk, 4 GiB of distinct chunks).

    Raises:
        MemoryError: the machine does not have the memory.
    """
    loaded = library()
    if loaded is None:
        return None
    ffi, lib = loaded
    try:
        packed = PackedCounts.of(counts)
        chunks, ends, numbers = packed.chunks, packed.ends, packed.numbers
        room = max(0, min(merges, len(chunks) - len(ends)))  # a merge takes away a token
        pairs = ffi.new("uint32_t[]", 2 * room)
        pair_counts = ffi.new("uint64_t[]", room)
        lengths = ffi.new("uint64_t[]", room + 1)
        found = ffi.new("size_t *")
        status = lib.bp_train(
            ffi.from_buffer("uint8_t[]", chunks),
            ffi.from_buffer("uint64_t[]", ends),
            ffi.from_buffer("uint64_t[]", numbers),
            len(ends),
            room,
            min_count,
            pairs,
            pair_counts,
            lengths,
            found,
        )
    except (OverflowError, TypeError):  # a number that is no integer of 64 bits
        return None
    if status == lib.BP_NO_MEMORY:
        raise MemoryError(f"training on {len(chunks)} bytes of distinct chunks")
    if status != lib.BP_OK:
        return None
    number = found[0]
    flat = ffi.unpack(pairs, 2 * number)
    return (
        list(zip(flat[::2], flat[1::2], strict=True)),
        ffi.unpack(pair_counts, number),
        ffi.unpack(lengths, number + 1),
    )
