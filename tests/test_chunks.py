"""Cutting text: nothing is lost, nothing is empty, nothing crosses a special token."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytepair.chunks import check_text, cut
from bytepair.errors import PatternError, TextError, TokenError
from bytepair.patterns import PRESETS, Pattern
from bytepair.special_tokens import check_special_tokens, compile_special_tokens


@pytest.mark.parametrize(
    ("pattern", "text", "chunks"),
    [
        (r"( ?\w+)|(\s+)", "ab  cd", ["ab", "  ", "cd"]),
        (r"\w*", "ab c", ["ab", " ", "c"]),
        (r"\w+", "Hi, you!", ["Hi", ", ", "you", "!"]),
        (r"(?=b)", "abab", ["a", "ba", "b"]),
        (r"x*", "", []),
        (r"x", "abc", ["abc"]),
    ],
)
def test_c20_groups_empty_matches_and_uncovered_text(pattern, text, chunks):
    assert cut(text, Pattern(pattern).compiled()) == chunks


@given(
    st.one_of(
        st.sampled_from(list(PRESETS)),
        st.sampled_from([r"\w*", r"(a)|b", r"(?=a)", r"\s+(?!\S)", r".", r"[^\W\d]+", r"(?s).{3}"]),
    ),
    st.text(),
)
def test_c20_chunks_always_join_to_the_text(pattern, text):
    chunks = cut(text, Pattern.of(pattern).compiled())
    assert "".join(chunks) == text
    assert "" not in chunks


# What the package regex offers beyond re.
own = [
    "(?r)a",
    r"\p{L}+",
    r"a\Kb",
    "(?:ab){e<=1}",
    "(?<=a)b|c",
    r"\X",
    "(?|(a)|(b))",
    "(?V1)[a--b]+",
]


@given(st.sampled_from(own), st.text(alphabet="abc é\u0301\n", max_size=20))
def test_c20_chunks_of_the_regex_engine_join_to_the_text(source, text):
    try:
        compiled = Pattern(source, "regex").compiled()
    except PatternError:
        assert source == "(?r)a"
        return
    chunks = cut(text, compiled)
    assert "".join(chunks) == text
    assert "" not in chunks


def test_no_pattern_is_one_chunk():
    assert cut("a b\nc", None) == ["a b\nc"]
    assert cut("", None) == []


def test_c25_specials_with_metacharacters_are_literal():
    specials = compile_special_tokens(["<|a.b|>", "[PAD]", "(((", "$", r"\d"])
    assert specials.findall(r"<|aXb|>P5") == []
    assert specials.findall(r"<|a.b|>[PAD]((($\d") == ["<|a.b|>", "[PAD]", "(((", "$", r"\d"]
    assert compile_special_tokens([]) is None


def test_c25_the_longest_special_wins_at_each_place():
    assert compile_special_tokens(["a", "ab", "abc"]).findall("abcabad") == ["abc", "ab", "a"]
    assert compile_special_tokens(["bcd", "ab"]).findall("abcd") == ["ab"]


@pytest.mark.parametrize(
    ("specials", "says"),
    [([""], "empty"), (["a", "b", "a"], "'a' is listed twice"), ([3], "3"), ("ab", "a list")],
)
def test_c25_degenerate_specials_are_refused(specials, says):
    with pytest.raises(TokenError, match=re.escape(says)):
        check_special_tokens(specials)


def test_c25_a_space_may_be_special():
    assert check_special_tokens([" ", "\n"]) == (" ", "\n")


@pytest.mark.parametrize(("text", "position"), [("a\ud83db", 1), ("\ud83d\udc4d", 0)])
def test_c29_lone_surrogates_are_named_with_their_position(text, position):
    with pytest.raises(TextError, match=rf"U\+D83D at position {position}:") as error:
        check_text(text)
    assert isinstance(error.value, ValueError)
    with pytest.raises(TextError):
        check_special_tokens([text])


def test_text_is_a_str():
    with pytest.raises(TypeError, match="not bytes"):
        check_text(b"abc")
