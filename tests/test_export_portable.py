"""Patterns for other libraries: the real ones must cut as we do, on every character and in context."""

import re
import sys

import pytest
import tiktoken
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Regex
from tokenizers.pre_tokenizers import Split

from bytepair import Tokenizer
from bytepair.chunks import cut
from bytepair.export import ExportError, probes
from bytepair.export.portable import portable_regex
from bytepair.export.prove import prove_on
from bytepair.export.recognize import recognize
from bytepair.export.tiktoken import TiktokenReader
from bytepair.patterns import PRESETS, Pattern
from test_environment import OTHER_PYTHONS, find_python, run_program

CUSTOM = [
    r"[0-9]{1,3}",  # leaves text between its matches
    r"\w+",
    r"\s\S",
    r"\b\w+\b|\B.",
    r"(?i)[a-k]+|ss|.",
    r"(?i:the|is)\b",
    r"(?s:.+?\n)|(?s:.)",
    r"^\s+|\S+$|.",
    r"(?m)^.+$",
    r"(?m:$)\n|[^\n]",
    r"\A\s|\s\Z|x{2}?|x{3}|\d{2,}",
    r"(?<=a)b+|(?<!\s)\w|(?=\d)..",
    r"(?>a+)b|a++|[^a]{1,3}+",
    r"[^\W\d_]+|[\W\d_]",
    r"[^\S\n]+",
    r"[\s\S]{1,7}",
    r"[\ud800-\uffff]+|.",
    r"((a)|(b))+|[-\]^'\\]+",
]
LIBRARY = [
    r"\p{Lu}\p{Ll}+|\P{Lu}+|\p{Lu}",
    r"(?i:'s|'t)|[^\r\n\p{L}\p{N}]?+\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]++[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+",
    r"[\p{Han}\p{Hiragana}\p{Katakana}]+|[^\p{Han}\p{Hiragana}\p{Katakana}]+",
    r"\w+\b|\W",
]


def texts():
    yield from probes.strings()
    yield from probes.edges_in_contexts()


def assert_hugging_face_cuts_alike(pattern, some):
    split = Split(Regex(portable_regex(pattern)), "isolated")
    for text in some:
        theirs = [piece for piece, _ in split.pre_tokenize_str(text)]
        assert theirs == cut(text, pattern.compiled()), text


@pytest.mark.parametrize("name", PRESETS)
def test_presets_are_cut_alike_by_oniguruma(name):
    assert_hugging_face_cuts_alike(Pattern.named(name), texts())


@pytest.mark.parametrize(
    ("regex", "engine"),
    [*((regex, "re") for regex in CUSTOM), *((regex, "regex") for regex in LIBRARY)],
)
def test_patterns_of_ones_own_are_cut_alike(regex, engine):
    pattern = Pattern(regex, engine)
    assert_hugging_face_cuts_alike(pattern, probes.strings())
    tokenizer = every_pair(pattern)
    prove_on(tokenizer, TiktokenReader(encoding(tokenizer)), "strings", probes.strings())


def every_pair(pattern):
    """A tokenizer that merges any two neighbours of our ASCII probes, so each cut shows in its ids."""
    characters = sorted({ord(character) for character in " \n\ra1'!"})
    pairs = [(a, b) for a in characters for b in characters]
    return Tokenizer(pairs, pattern=pattern)


def encoding(tokenizer):
    return tiktoken.Encoding(
        "test",
        pat_str=portable_regex(tokenizer.pattern),
        mergeable_ranks={token: rank for rank, token in enumerate(tokenizer.vocab)},
        special_tokens={},
    )


ATOMS = st.sampled_from(
    ["a", "b", " ", r"\w", r"\s", r"\d", "[ab]", r"[^\s]", ".", r"\n", "(?:ab|b)", "(?i:A)", r"\W"]
)
QUANTIFIED = st.tuples(
    ATOMS, st.sampled_from(["", "", "+", "*", "?", "{2}", "{1,2}", "+?", "++", "?+"])
)
ASSERTED = st.sampled_from(
    ["", "", "", r"(?!\S)", r"(?=a)", r"(?<=\s)", r"(?<!b)", "$", "^", r"\b"]
)
BRANCH = st.tuples(st.lists(QUANTIFIED, min_size=1, max_size=3), ASSERTED).map(
    lambda parts: "".join(map("".join, parts[0])) + parts[1]
)
PATTERNS = st.lists(BRANCH, min_size=1, max_size=3).map("|".join)


@given(PATTERNS, st.text("ab AB1\n\r\x1cé½", max_size=12))
def test_any_pattern_is_cut_alike_or_refused(regex, text):
    pattern = Pattern(regex)
    try:
        portable = portable_regex(pattern)
    except ExportError as error:
        assert "match nothing at all" in str(error)
        return
    pieces = [piece for piece, _ in Split(Regex(portable), "isolated").pre_tokenize_str(text)]
    assert pieces == cut(text, pattern.compiled())
    again = recognize(portable)
    assert (again.engine, cut(text, again.compiled())) == ("re", pieces)


@pytest.mark.parametrize(
    ("pattern", "message"),
    [
        (Pattern(r"(.)\1|."), "group references"),
        (Pattern(r"(a)?(?(1)b|c)|."), "group references"),
        (Pattern(r"\w*"), "can match nothing at all"),
        (Pattern(r"\X", "regex"), "only the package regex reads it"),
        (Pattern(r"(?<=a+)b|.", "regex"), "only the package regex reads it"),
        (Pattern(r"(?V1)[[a-z]--[aeiou]]+|.", "regex"), "only the package regex reads it"),
        (Pattern(r"(?i)\p{Lu}+|.", "regex"), "the first difference is at"),
    ],
)
def test_what_has_no_common_form_is_refused(pattern, message):
    with pytest.raises(ExportError, match=re.escape(message)):
        portable_regex(pattern)


def test_a_portable_pattern_has_no_class_of_any_library():
    for name in PRESETS:
        assert not re.search(r"\\[^xAz]|\(\?i", portable_regex(Pattern.named(name)))
    assert portable_regex(Pattern(None)) is None


@pytest.mark.parametrize("version", OTHER_PYTHONS)
def test_every_python_writes_the_same_patterns(version):
    python = find_python(version)
    if python is None:
        pytest.skip(f"no Python {version} on this machine")
    program = (
        "from bytepair.export.portable import portable_regex\n"
        "from bytepair.patterns import PRESETS, Pattern\n"
        f"for pattern in [*map(Pattern.named, PRESETS), *map(Pattern, {CUSTOM})]:\n"
        "    print(portable_regex(pattern))"
    )
    assert run_program(python, program) == run_program(sys.executable, program)


def test_probes_have_every_code_point():
    found = set().union(*map(set, probes.every_code_point()))
    assert len(found) == 0x110000 - 0x800
    assert len(set().union(*map(set, probes.edges_in_contexts()))) > 5_000
