"""hash_split.py: the hash to the bit, shares, and that nothing but the group moves a document."""

import hashlib
import shutil
import subprocess
import sys
from collections import Counter
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytepair.corpora.hash_split import group_hash, split_of

SHARES = {"seed": 1, "val": Decimal("0.01"), "test": Decimal("0.02")}


def reference(group, seed, val, test):
    """The definition again, with integers alone: shares in 10^-12."""
    digest = hashlib.blake2b(f"{seed}:{group}".encode(), digest_size=8).digest()
    place = sum(byte << 8 * (7 - n) for n, byte in enumerate(digest))
    if place < val * 2**64 // 10**12:
        return "val"
    return "test" if place >= 2**64 - test * 2**64 // 10**12 else "train"


@given(
    st.text(st.characters(exclude_categories=["Cs"])),
    st.integers(0, 2**70),
    st.integers(0, 10**12 // 2),
    st.integers(0, 10**12 // 2 - 1),
)
def test_it_is_what_the_docstring_says(group, seed, val, test):
    shares = {"val": Decimal(val).scaleb(-12), "test": Decimal(test).scaleb(-12)}
    assert split_of(group, seed=seed, **shares) == reference(group, seed, val, test)


def test_it_is_what_a_shell_says():
    if shutil.which("b2sum") is None:
        pytest.skip("needs b2sum, of GNU coreutils")
    for group in ("example.org", "Zoë ", ""):
        data = f"7:{group}".encode()
        found = subprocess.run(["b2sum", "-l", "64"], input=data, capture_output=True, check=True)
        assert int(found.stdout.split()[0], 16) == group_hash(group, seed=7)


def test_shares_are_met_within_one_percent_on_100_000_documents():
    for seed in range(3):
        dealt = Counter(
            split_of(f"https://example.org/{n}", seed=seed, val=Decimal("0.3"), test=Decimal("0.2"))
            for n in range(100_000)
        )
        assert dealt["val"] == pytest.approx(30_000, rel=0.01)
        assert dealt["test"] == pytest.approx(20_000, rel=0.01)
        assert dealt["train"] == pytest.approx(50_000, rel=0.01)


def test_shares_in_groups_are_within_one_percent_of_the_whole():
    dealt = Counter(split_of(f"site{n // 10}", **SHARES) for n in range(100_000))
    for name, share in (("train", 0.97), ("val", 0.01), ("test", 0.02)):
        assert abs(dealt[name] / 100_000 - share) < 0.01


def test_the_edges_are_exact():
    place = group_hash("edge", seed=0)
    at = Decimal(place) / Decimal(2**64)  # 28 digits, so not quite
    for share in (at, at + Decimal("1e-25"), at - Decimal("1e-25")):
        is_below = place < share.as_integer_ratio()[0] * 2**64 // share.as_integer_ratio()[1]
        assert (split_of("edge", seed=0, val=share) == "val") == is_below


def test_another_share_of_val_leaves_test_as_it_was():
    groups = [f"g{n}" for n in range(5_000)]

    def tested(val):
        return [g for g in groups if split_of(g, seed=3, val=val, test=Decimal("0.1")) == "test"]

    assert tested(None) == tested(Decimal("0.2")) == tested(Decimal("0.899"))
    assert len(tested(None)) > 400


def test_a_split_not_asked_for_gets_nothing_and_seeds_differ():
    groups = [f"g{n}" for n in range(2_000)]
    assert {split_of(g, seed=1) for g in groups} == {"train"}
    assert {split_of(g, seed=1, test=Decimal("0.5")) for g in groups} == {"train", "test"}
    sides = [tuple(split_of(g, seed=seed, val=Decimal("0.5")) for g in groups) for seed in range(4)]
    assert len(set(sides)) == 4


def test_white_space_is_kept_and_lone_surrogates_are_no_groups():
    assert len({group_hash(g, seed=1) for g in ("a", "a ", " a", "a\n", "A")}) == 5
    with pytest.raises(UnicodeEncodeError):
        group_hash("\ud800", seed=1)


@pytest.mark.parametrize("shares", [("0.5", "0.6"), ("-0.1", "0.1"), ("1.1", "0")])
def test_what_are_no_shares(shares):
    with pytest.raises(ValueError, match="no shares of one corpus"):
        split_of("a", seed=1, val=Decimal(shares[0]), test=Decimal(shares[1]))


def test_the_hash_seed_of_python_is_no_matter():
    program = (
        "from bytepair.corpora.hash_split import *\n"
        "print([split_of(str(n), seed=1, val=Decimal('0.3')) for n in range(99)])"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={"PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
        ).stdout
        for seed in ("0", "1", "77")
    }
    assert len(found) == 1
