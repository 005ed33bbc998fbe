"""Patterns mean the same everywhere: frozen tables, published presets, one's own."""

import json
import re
import sys
import unicodedata
from importlib.metadata import version
from pathlib import Path

import pytest
import regex
import unicodedata2
from hypothesis import given, settings
from hypothesis import strategies as st

from bytepair import freezing
from bytepair.chunks import cut
from bytepair.errors import PatternError
from bytepair.patterns import PRESETS, Pattern

FILES = Path(__file__).parent / "files"
REGEX_VERSION = version("regex")
EVERY_CHARACTER = [chr(code_point) for code_point in range(sys.maxunicode + 1)]
EVERYTHING = "".join(EVERY_CHARACTER)
PIECES = json.loads((FILES / "pieces.json").read_text(encoding="utf-8"))


def members(class_: str) -> set[str]:
    """The characters that a frozen class takes."""
    return set(re.findall(freezing.freeze_re(class_), EVERYTHING))


def test_tables_are_unicode_16():
    assert unicodedata2.unidata_version == "16.0.0"
    for category, table in freezing.TABLES.items():
        expected = [ord(c) for c in EVERY_CHARACTER if unicodedata2.category(c) == category]
        found = [n for first, last in freezing.ranges(table) for n in range(first, last + 1)]
        assert found == expected, category


def test_python_classes_mean_what_python_says_with_unicode_16():
    def is_numeric(character):
        return unicodedata2.numeric(character, None) is not None

    word = {c for c in EVERY_CHARACTER if unicodedata2.category(c)[0] == "L" or is_numeric(c)}
    space = {c for c in EVERY_CHARACTER if c.isspace()}
    digits = {c for c in EVERY_CHARACTER if unicodedata2.category(c) == "Nd"}
    assert members(r"\w") == word | {"_"}
    assert members(r"\s") == space
    assert members(r"\d") == digits
    everything = set(EVERY_CHARACTER)
    for name, inside in ((r"\W", word | {"_"}), (r"\S", space), (r"\D", digits)):
        assert members(name) == everything - inside
        assert members(f"[{name}]") == everything - inside
        assert members(f"[^{name}]") == inside


def test_python_and_frozen_classes_agree_on_what_this_python_knows():
    known = {c for c in EVERY_CHARACTER if unicodedata.category(c) != "Cn"}
    for class_ in (r"\w", r"\d", r"\s", r"[^\W\d_]", r"[\s.]"):
        assert members(class_) & known == set(re.findall(class_, EVERYTHING)) & known, class_


# Where a table begins and ends, and one on either side: all that a pattern can tell apart.
EDGES = sorted(
    {
        chr(code_point)
        for table in [*freezing.TABLES.values(), freezing.PYTHON_SPACE, "0-7F"]
        for first, last in freezing.ranges(table)
        for code_point in (first - 1, first, last, last + 1)
        if 0 <= code_point <= sys.maxunicode and not 0xD800 <= code_point < 0xE000
    }
)


@pytest.mark.parametrize("name", [name for name, p in PRESETS.items() if p.engine == "regex"])
def test_published_patterns_agree_with_the_regex_library(name):
    native = regex.compile(PRESETS[name].regex)
    newer = {c for c in EDGES if unicodedata2.category(c) == "Cn" and regex.match(r"\P{Cn}", c)}
    characters = [c for c in EDGES if c not in newer]
    for before, after in (("", ""), ("a", "b"), (" ", "1"), ("'", "S\n"), ("A", "\r\n ")):
        text = "".join(f"{before}{c}{after} !" for c in characters)
        found = cut(text, Pattern.named(name).compiled())
        assert found == [match.group() for match in native.finditer(text)]


def test_c21_exact_pieces():
    """Contractions, curly quotes, spaces, digits and marks are cut as published."""
    gpt2, gpt4 = PIECES["gpt2_pattern"], PIECES["gpt4_pattern"]
    assert PRESETS["gpt2"].regex == gpt2
    compiled = {
        "gpt2": [Pattern(gpt2, "regex").compiled(), Pattern.named("gpt2").compiled()],
        "gpt4": [Pattern(gpt4, "regex").compiled(), Pattern.named("cl100k").compiled()],
    }
    for case in PIECES["cases"]:
        for name, patterns in compiled.items():
            for pattern in patterns:
                assert cut(case["text"], pattern) == case[name], (name, case)


@pytest.mark.parametrize(
    ("name", "text", "pieces"),
    [
        ("gpt2-ascii", "Holmes's 1892 pipe—\n  smoke", "Holmes|'s| 189|2| pipe|—|\n | smoke"),
        ("gpt2-ascii", " café", " caf|é"),
        ("gpt2-ascii", "Holmes’s", "Holmes|’|s"),
        ("words", "the cat's ½ mile", "the| cat|'|s| ½| mile"),
        (
            "notebook",
            "Hello, world! It's 2026 already.",
            "Hello|,| world|!| It|'s| 2026| already|.",
        ),
        ("o200k", "don't HTTPServer 12345", "don't| HTTPServer| |123|45"),
    ],
)
def test_presets_cut_as_documented(name, text, pieces):
    assert "|".join(cut(text, Pattern.named(name).compiled())) == pieces


@pytest.mark.parametrize(
    ("source", "engine", "says"),
    [
        (r"?\w+", "re", "nothing to repeat at position 0"),
        (r"(\p{L}+", "regex", "missing"),
        (r"\p{L}", "re", "bad escape"),
        ("", "re", "null"),
        ("a", "pcre", "'re', 'regex'"),
        (r"(?x) \w # words", "re", "one line"),
        (r"(?a)\w+", "re", "change what classes mean"),
        (r"(?i)é", "re", "write both cases"),
        (r"(?i:\u00e9)", "re", "write both cases"),
        (r"(?i)(?-i:é)\xe9", "re", "write both cases"),
        (r"(?i)[\w']", "re", "put (?-i:...) around"),
        (r"((?i:[^\s]))", "re", "put (?-i:...) around"),
        (r"(?r)\w+", "regex", "backwards"),
        (r"(?V0)(?V1)a", "regex", "pattern '(?V0)(?V1)a'"),
        (r"\N{BULLET}", "re", "names vary by Python"),
        (r"[\w-z]", "re", "bad character range"),
        ("a\ud800", "re", "lone surrogate"),
        ("(" * 5000 + ")" * 5000, "re", "pattern '((((("),
    ],
)
def test_bad_patterns_are_refused_with_what_to_do(source, engine, says):
    with pytest.raises(PatternError) as error:
        Pattern(source, engine)
    assert says in str(error.value)


@pytest.mark.parametrize(
    ("source", "matches", "leaves"),
    [
        (r"(?i)\w", "kKſ", "\u0345"),
        (r"(?i)\W", "\u0345", "\u0399\u03b9\u1fbe"),
        (r"(?i:\W)\b", "", "\u0399"),
        (r"(?i:k)", "kK\u212a", "l"),
        (r"(?-i:[\w'])(?i:S)?", "é'", " "),
        (r"\\N{2}", "", "N"),
    ],
)
def test_ignoring_case_does_not_change_what_a_class_takes(source, matches, leaves):
    compiled = Pattern(source).compiled()
    assert all(compiled.fullmatch(character) for character in matches)
    assert not any(compiled.fullmatch(character) for character in leaves)


def test_no_pattern_has_no_engine_but_re():
    with pytest.raises(PatternError, match="engine must be 're'"):
        Pattern(None, "regex")
    assert Pattern.of(None) == Pattern(None)


def test_of_takes_names_patterns_and_regular_expressions():
    assert Pattern.of("words") == Pattern.named("words")
    assert Pattern.of(r"\w+") == Pattern(r"\w+", "re")
    assert Pattern.of(Pattern.named("gpt2")).engine == "regex"
    with pytest.raises(PatternError, match="choose one of gpt2-ascii, words"):
        Pattern.named("gpt5")
    with pytest.raises(PatternError, match="not 7"):
        Pattern.of(7)


def test_the_regex_library_is_needed_for_ones_own_regex_pattern_only():
    assert not Pattern.named("o200k").needs_regex_library
    assert not Pattern(r"\w+").needs_regex_library
    assert Pattern(r"\p{Han}", "regex").needs_regex_library


def test_a_regex_pattern_declares_the_version_it_was_made_with():
    class Choice:
        name, regex, engine, regex_version = None, r"\p{Han}+", "regex", REGEX_VERSION

    assert Pattern.chosen(Choice()) == Pattern(r"\p{Han}+", "regex")
    Choice.regex_version = "2020.1.1"
    with pytest.raises(
        PatternError, match=r"regex_version is '2020\.1\.1', but regex 20.* installed"
    ):
        Pattern.chosen(Choice())
    Choice.regex_version = None
    with pytest.raises(PatternError, match=f"write regex_version: '{REGEX_VERSION}'"):
        Pattern.chosen(Choice())


# Regular expressions of all shapes in which a class can stand, over a few characters.
atoms = st.sampled_from(
    [
        r"\w",
        r"\W",
        r"\d",
        r"\D",
        r"\s",
        r"\S",
        r"\b",
        r"\B",
        "a",
        "é",
        " ",
        r"\]",
        r"\[",
        r"\\",
        ".",
    ]
    + [
        r"(?#]\w)",
        r"(?:\w)",
        r"(?<=\w)",
        r"(?!\S)",
        r"(?i:k)",
        r"(?i:\w)",
        r"(?i:k|(?-i:[^\s\W]))",
        r"(?P<n>\d)?",
        "^",
        "$",
        r"\x20",
    ]
)
class_items = st.sampled_from(
    [r"\w", r"\W", r"\d", r"\S", "a", "é", " ", r"\]", "[", "^", "(?:", r"\\", r"\b", "0-9", "."]
)
classes = st.builds(
    lambda caret, first, items: f"[{caret}{first}{''.join(items)}]",
    st.sampled_from(["", "^"]),
    st.sampled_from(["", "]"]),
    st.lists(class_items, min_size=1, max_size=4),
)
quantified = st.builds(
    lambda atom, times: atom + times,
    st.one_of(atoms, classes),
    st.sampled_from(["", "", "+", "*", "?", "{1,2}", "+?"]),
)
expressions = st.lists(quantified, min_size=1, max_size=6).map("".join)
texts = st.text(
    alphabet="ab_kK éÉ09.\n\t\x1c\x85[]^\\(?:½٣\u0301\U0001d7d8\U00020000", min_size=1, max_size=30
)


@settings(deadline=None, max_examples=400)
@given(expressions, texts)
@pytest.mark.filterwarnings("ignore:Possible nested set:FutureWarning")
def test_any_pattern_cuts_as_pythons_own_re_does(source, text):
    try:
        native = re.compile(source)
        pattern = Pattern(source)
    except (re.error, PatternError):
        return
    found = [match.span() for match in pattern.compiled().finditer(text)]
    assert found == [match.span() for match in native.finditer(text)]
