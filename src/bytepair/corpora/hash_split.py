r"""Deal documents to train, val and test by a seeded hash of their group.

The side of a document depends on its group, the seed and the shares alone: not on its shard, the
order of shards, or what else the corpus holds. So more shards move no document, and documents of
one group, or with one id where there is no group, are never on two sides. To the bit:

    h      BLAKE2b with a digest of 8 bytes, no key, no salt, of the UTF-8 of "SEED:GROUP",
           read as a big-endian number; SEED in decimal digits
    val    if h < floor(val * 2^64)
    test   if h >= 2^64 - floor(test * 2^64)
    train  else

val * 2^64 is exact: shares are decimals, not binary fractions. Val is dealt from the low end and
test from the high end, so another share of val leaves test as it was. Nothing is trimmed: a group
that ends in a space is another group. A shell says the same:

    $ printf '1:example.org' | b2sum -l 64
    ff5a0802428cf253  -
"""

from __future__ import annotations

import hashlib
from decimal import Decimal
from fractions import Fraction
from functools import lru_cache

_HASHES = 1 << 64


def group_hash(group: str, *, seed: int) -> int:
    """The place of a group among 2^64.

    >>> hex(group_hash("example.org", seed=1))
    '0xff5a0802428cf253'
    """
    data = f"{seed}:{group}".encode()
    return int.from_bytes(hashlib.blake2b(data, digest_size=8).digest(), "big")


def split_of(
    group: str, *, seed: int, val: Decimal | None = None, test: Decimal | None = None
) -> str:
    """The split of every document of a group: "train", "val" or "test".

    `val` and `test` are shares from 0 to 1 whose sum is below 1; None is a split not asked for.

    >>> shares = {"val": Decimal("0.1"), "test": Decimal("0.1")}
    >>> [split_of(f"{number}.example.org", seed=1, **shares) for number in range(4)]
    ['train', 'train', 'train', 'test']
    """
    below, above = _bounds(val, test)
    place = group_hash(group, seed=seed)
    return "val" if place < below else "test" if place >= above else "train"


@lru_cache(maxsize=16)
def _bounds(val: Decimal | None, test: Decimal | None) -> tuple[int, int]:
    """Hashes below the first are val's, from the second on test's."""
    val_hashes, test_hashes = (int(Fraction(share or 0) * _HASHES) for share in (val, test))
    if not 0 <= val_hashes <= _HASHES - test_hashes <= _HASHES:
        raise ValueError(f"val {val} and test {test} are no shares of one corpus.")
    return val_hashes, _HASHES - test_hashes
