"""yaml_strict.py and params.py: cases C40 and C41, DVC's reading, and every refusal's words."""

import copy
import json
import os
import string
import subprocess
import sys
import textwrap
from pathlib import Path

import pytest
from dvc.utils.serialize import parse_yaml
from hypothesis import example, given, settings
from hypothesis import strategies as st

from bytepair.errors import ParamsError
from bytepair.params import (
    BaselineParams,
    CharacterRange,
    CharacterSplit,
    ChunksParams,
    CorpusParams,
    EncodeParams,
    FetchParams,
    HeadingSplit,
    PatternParams,
    ReportParams,
    StripParams,
    TokenizerParams,
    TrainParams,
    load_corpus,
    load_tokenizer,
    names,
)
from bytepair.yaml_strict import _Reader, load_yaml

ROOT = Path(__file__).parents[1]
FILES = Path(__file__).parent / "files"
EXPECTED = json.loads((FILES / "expected.json").read_bytes())
HASH = "3552d466d95a92fb58e96bbfabbfc02370d359ac95933b5feafe4ebaf3f243b3"

BASE = {
    "corpora": {
        "book": {
            "fetch": {"sources": ["https://example.org/book"], "file": "book.txt"},
            "strip": {},
            "split": {"by": "headings", "pattern": "^[IVX]+$", "expect": ["I", "II"]},
        },
        "plays": {
            "fetch": {"sources": ["plays"], "file": "plays.txt"},
            "strip": {},
            "split": {
                "by": "characters",
                "ranges": [{"name": "all", "start": 0, "end": 9, "split": "train"}],
            },
        },
    },
    "tokenizers": {
        "small": {
            "corpus": "book",
            "chunks": {"pattern": None, "special_tokens": ["<a>", "<b>"]},
            "train": {"vocab_size": 512},
            "encode": {},
            "baseline": {},
            "report": {},
        }
    },
}
ABSENT = object()


@pytest.fixture
def write(tmp_path):
    """Write a params.yaml: text, or BASE with some dotted keys set (JSON is YAML)."""

    def write(text="", **changes):
        if not text:
            text = json.dumps(changed(changes["keys"]) if changes else BASE)
        path = tmp_path / "params.yaml"
        path.write_bytes(text.encode("utf-8", "surrogatepass"))
        return path

    return write


def changed(keys):
    params = copy.deepcopy(BASE)
    for key, value in keys.items():
        *blocks, last = key.split(".")
        block = params
        for name in blocks:
            block = block[int(name) if name.isdigit() else name]
        if value is ABSENT:
            del block[last]
        else:
            block[last] = value
    return params


def load(path, key):
    """Load the block of BASE that a dotted key lies in."""
    kind, name = key.split(".")[:2]
    return (load_corpus if kind == "corpora" else load_tokenizer)(path, name)


def message(path, key="tokenizers.small"):
    """How the block is refused, with the file's folder cut off."""
    with pytest.raises(ParamsError) as refused:
        load(path, key)
    return str(refused.value).removeprefix(f"{path.parent}/")


def yaml_message(path):
    with pytest.raises(ParamsError) as refused:
        load_yaml(path)
    return str(refused.value).removeprefix(f"{path.parent}/")


# The cases


def wrapped(name):
    """A case file's line inside a whole params.yaml, where it belongs there."""
    chunks, train = ["special_tokens: []"], ["vocab_size: 512"]
    pattern = ["pattern: null"]
    text = (FILES / name).read_bytes().decode()
    if "vocab_size" in text:
        train = [line for line in text.splitlines() if "vocab_size" in line]
    if "special_tokens" in text:
        chunks = text.splitlines()
    if "pattern: ~" in text:
        pattern = ["pattern: ~"]
    elif "pattern" in text:
        regex = text[text.index("pattern:") :].replace("pattern:", "regex:")
        pattern = ["pattern:", *textwrap.indent(regex, "  ").splitlines()]
    lines = [
        "corpora: {book: {}}",
        "tokenizers:",
        "  small:",
        "    corpus: book",
        "    chunks:",
        *("      " + line for line in [*pattern, *chunks]),
        "    train:",
        *("      " + line for line in train),
        "    encode: {}",
        "    baseline: {}",
        "    report: {}",
    ]
    return "\n".join(lines) + "\n"


@pytest.mark.parametrize(
    ("name", "essentials"),
    [
        (
            "pa01_string.yaml",
            ["train.vocab_size: expected an integer, got '512' (a string)", "without quotes"],
        ),
        (
            "pa04_float.yaml",
            ["train.vocab_size: expected an integer, got 512.0 (a float). Write 512."],
        ),
        ("pa05_bool.yaml", ["train.vocab_size: expected an integer, got true (a boolean)"]),
        ("pa07_dup.yaml", ["line 10: tokenizers.small.train.vocab_size: the key stands twice"]),
        ("pa12_norway.yaml", ["line 7: tokenizers.small.chunks.special_tokens[0]: yes", "quotes"]),
        ("pa15_zero.yaml", ["train.vocab_size: expected at least 256 ", "got 0"]),
        ("pa16_255.yaml", ["train.vocab_size: expected at least 256 ", "got 255"]),
    ],
)
def test_c40_refused(write, name, essentials):
    assert EXPECTED[name]["outcome"].startswith("refuse")
    found = message(write(wrapped(name)))
    assert found.startswith("params.yaml: ")
    for essential in essentials:
        assert essential in found


def test_c40_accepted(write):
    assert load_tokenizer(write(wrapped("pa17_256.yaml")), "small").train.vocab_size == 256
    assert load_tokenizer(write(wrapped("pa14_null_pattern.yaml")), "small").chunks.pattern is None
    ok = load_tokenizer(write(wrapped("pa00_ok.yaml")), "small")
    assert (ok.train.vocab_size, ok.chunks.pattern.regex) == (512, r"\w+")


@pytest.mark.parametrize(
    ("key", "least"),
    [
        ("tokenizers.small.train.vocab_size", 258),
        ("tokenizers.small.train.min_count", 1),
        ("tokenizers.small.baseline.order", 1),
        ("tokenizers.small.baseline.max_tokens", 1),
        ("corpora.plays.split.ranges.0.start", 0),
        ("corpora.plays.split.ranges.0.end", 0),
    ],
)
def test_c40_every_integer(write, key, least):
    place = key.replace(".0.", "[0].")
    for value, shown in [
        ("3", "'3' (a string). Write it without quotes."),
        ("many", "'many' (a string). Write a whole number."),
        (3.0, "3.0 (a float). Write 3."),
        (3.5, "3.5 (a float). Write a whole number."),
        (True, "true (a boolean). Write a whole number."),
        (False, "false (a boolean). Write a whole number."),
        ([3], "a list. Write a whole number."),
        ({}, "a mapping. Write a whole number."),
    ]:
        path = write(keys={key: value})
        assert message(path, key) == f"params.yaml: {place}: expected an integer, got {shown}"
    load(write(keys={key: least}), key)
    assert f"got {least - 1}." in message(write(keys={key: least - 1}), key)


BOOLEANS_OF_YAML_1_1 = [
    spelling
    for word in ("yes", "no", "on", "off", "y", "n")
    for spelling in sorted({word, word.title(), word.upper()})
]


@pytest.mark.parametrize("spelling", BOOLEANS_OF_YAML_1_1)
def test_c40_every_norway(write, spelling):
    found = yaml_message(write(f"special_tokens: [no_problem, {spelling}]\n"))
    assert found.startswith(f"params.yaml: line 1: special_tokens[1]: {spelling} is one thing to")
    assert "quotes" in found
    assert load_yaml(write(f"a: '{spelling}'")) == {"a": spelling}


def test_c41_unknown_escape(write):
    found = message(write(wrapped("pa08_dq_pattern.yaml")))
    assert found.startswith("params.yaml: line 7: not YAML: ")
    assert "found unknown escape character 'w'" in found
    assert r'`regex: "\w+"`' in found
    assert "use single quotes" in found


@pytest.mark.parametrize("letter", sorted({*string.ascii_letters} - {*"abefnrtvxuUNLP"}))
def test_c41_every_unknown_escape(write, letter):
    found = yaml_message(write(f'a: "\\{letter}"'))
    assert f"found unknown escape character '{letter}'" in found
    assert "use single quotes" in found


@pytest.mark.parametrize(
    ("name", "regex"),
    [
        ("pa09_dq_newline_class.yaml", "[^\r\n]+"),
        ("pa10_hash.yaml", r"\w+"),
        ("pa13_leading_space.yaml", r"?\w+"),  # which no pattern can be: patterns.py refuses it
    ],
)
def test_c41_what_quoting_leaves(write, name, regex):
    pattern = load_tokenizer(write(wrapped(name)), "small").chunks.pattern
    assert pattern == PatternParams(name=None, regex=regex, engine="re", regex_version=None)


def test_c41_block_of_text(write):
    found = message(write(wrapped("pa11_block.yaml")))
    assert found.startswith(
        "params.yaml: tokenizers.small.chunks.pattern.regex: '\\\\w+\\n' ends in a newline"
    )
    assert "single quotes" in found
    text = wrapped("pa11_block.yaml").replace("|", "|-")
    assert load_tokenizer(write(text), "small").chunks.pattern.regex == r"\w+"


def test_c41_every_regex_that_ends_in_a_newline(write):
    for key, value in {
        "corpora.book.split.pattern": "^I$\n",
        "tokenizers.small.chunks.pattern": {"regex": " \n"},
    }.items():
        assert "ends in a newline" in message(write(keys={key: value}), key)


@pytest.mark.parametrize("name", sorted(path.name for path in FILES.glob("pa*.yaml")))
def test_what_is_accepted_is_what_dvc_reads(name):
    try:
        value = load_yaml(FILES / name)
    except ParamsError:
        assert EXPECTED[name]["outcome"].startswith("refuse")
    else:
        assert value == parse_yaml((FILES / name).read_text("utf-8"), name)


# The loader against DVC's


def same(ours, dvcs):
    """Equal, and of the same types all the way down."""
    if type(ours) is not type(dvcs):
        return False
    if isinstance(ours, dict):
        return list(ours) == list(dvcs) and all(same(ours[key], dvcs[key]) for key in ours)
    if isinstance(ours, list):
        return len(ours) == len(dvcs) and all(map(same, ours, dvcs))
    if isinstance(ours, float):
        return repr(ours) == repr(dvcs)  # -0.0 is not 0.0, nan is nan
    return ours == dvcs


def agree(text):
    """Whether the loader takes the text; if it does, DVC must read the same."""
    text = text.replace("\r\n", "\n").replace("\r", "\n")
    try:
        ours = _Reader(text, "params.yaml").document()
    except ParamsError:
        return False
    dvcs = parse_yaml(text, "params.yaml")
    assert same(ours, dvcs), (text, ours, dvcs)
    return True


FINITE = st.floats(allow_nan=False, allow_infinity=False)
SCALAR_CHARACTERS = "0123456789+-_.:eExXoObBaAfFyYnN~ =<"
PIECES = [
    *"abx01 \n:-?,[]{}#&*!|>'\"%@`\\=<~./",
    *["- ", "? ", ": ", "\n  ", "\n- ", "a: ", "\\n", "\\x41", "|\n  ", ">\n  ", "|-\n "],
    *["---\n", "...\n", "true", "null", "é", "😀", "\ufeff", "\x85", "\u2028", "\xa0", "<<"],
    *["#c\n", " #", "%YAML 1.1\n---\n", "!!str ", "!", "{a: ", "[1, ", "\t", "\\\n", "\r", "\x7f"],
]


@settings(max_examples=700, deadline=None)
@given(st.text(SCALAR_CHARACTERS, min_size=1, max_size=8), st.sampled_from(["{}", "[{}]", "{}: 1"]))
@example("-_", "{}")
@example("01:30", "{}")
@example("._", "{}")
@example("1.e5", "{}")
def test_a_scalar_is_the_same_to_dvc(scalar, around):
    agree("a: " + around.replace("{}", scalar))
    agree(around.replace("{}", scalar) + ": b")


@settings(max_examples=700, deadline=None)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=12).map("".join), st.booleans())
@example("a: |\n \n  b", False)
@example("a: >\n\tb", False)
@example('{"a":1}', False)
@example("{a:1}", False)
@example("a: 1\n...\n...\n", False)
@example("|\nb", False)
def test_a_document_is_the_same_to_dvc(text, below_a_key):
    agree(f"a: {text}" if below_a_key else text)


@settings(max_examples=200, deadline=None)
@given(
    st.recursive(
        st.none() | st.booleans() | st.integers() | st.text() | FINITE,
        lambda values: st.lists(values) | st.dictionaries(st.text(), values),
        max_leaves=8,
    )
)
def test_json_is_the_same_to_dvc(value):
    text = json.dumps({"a": value}, ensure_ascii=False)
    if agree(text):
        assert same(_Reader(text, "params.yaml").document(), {"a": value})


@pytest.mark.parametrize(
    ("scalar", "value"),
    [
        *((spelling, None) for spelling in ("", "~", "null", "Null", "NULL")),
        *((spelling, True) for spelling in ("true", "True", "TRUE")),
        *((spelling, False) for spelling in ("false", "False", "FALSE")),
        *(("0", 0), ("-0", 0), ("+5", 5), ("512", 512), ("-17", -17), ("9" * 30, 10**30 - 1)),
        *(("1.5", 1.5), ("1.", 1.0), ("-0.0", -0.0), ("1.5e+3", 1500.0), ("2.0E-1", 0.2)),
        *((text, text) for text in ("yesterday", "nUlL", "tRue", "1a", "e3", "0o", "1.2.3")),
        *((text, text) for text in ("<|end|>", "1,000", "café", "12 monkeys", "_", "+")),
        ("'0512'", "0512"),
        ('"1e3"', "1e3"),
        ("'<<'", "<<"),
    ],
)
def test_values(write, scalar, value):
    path = write(f"a: {scalar}\n")
    assert same(load_yaml(path), {"a": value})
    assert same(parse_yaml(path.read_text("utf-8"), path), {"a": value})


@pytest.mark.parametrize(
    "scalar",
    [
        *("0512", "-017", "00", "08", "0o17", "0x1F", "0b11", "1_000", "1_", "-_1"),
        *("1e3", "1E3", "1.5e3", "1_0.5", ".5", "-.5", "._5", "007.5", "1e+3"),
        *("1:30", "190:20:30", "1:30.5", "2001-01-01", "2001-01-01 10:00:00", "2001-1-1T10:00:00Z"),
        *(".inf", "-.Inf", ".INF", ".nan", ".NaN", "="),
    ],
)
def test_ambiguous_scalars(write, scalar):
    found = yaml_message(write(f"first: 1\nblock:\n  key: {scalar}\n"))
    assert found.startswith(f"params.yaml: line 3: block.key: {scalar} is one thing to YAML 1.1 ")
    assert "Put it in quotes" in found
    assert "plain decimal number" in found
    assert load_yaml(write(f"a: '{scalar}'\n")) == {"a": scalar}
    assert f"line 2: {scalar} is" in yaml_message(write(f"a: 1\n{scalar}: 2\n"))


@pytest.mark.parametrize(
    ("text", "essentials"),
    [
        ("a: 1\nb: {c: 1, d: 2, c: 3}", ["line 2: b.c: the key stands twice", "Delete one"]),
        ("a: 1\n'a': 2", ["line 2: a: the key stands twice"]),
        ("1: a", ["line 1: a key is a string, got 1 (an integer). Quote it."]),
        ("a: {true: b}", ["line 1: a: a key is a string, got true (a boolean)"]),
        ("~: b", ["a key is a string, got nothing (null)"]),
        ("? [a, b]\n: c", ["a key is a string, got a list"]),
        ("a: !!python/object:os.system b", ["line 1: a: tag:yaml.org,2002:python/object", "a tag"]),
        ("a: !!str 512", ["is a tag", "quotes"]),
        ("a: ! b", ["! is a tag"]),
        ("a: &b 1", ["line 1: a: &b is an anchor", "quotes"]),
        ("a: [*txt]", ["line 1: a[0]: *txt is an alias", "quotes"]),
        ("a: [*.txt]", ["line 1: not YAML: while scanning an alias: ", "`a: [*.txt]`", "quotes"]),
        ("a: *b", ["line 1: a: *b is an alias"]),
        ("<<: {a: b}", ["line 1: << merges keys. Write the keys out"]),
        ("a: <<", ["line 1: a: << merges keys"]),
        ("%YAML 1.1\n---\na: yes", ["line 1: a % directive", "Delete"]),
        ("%TAG ! !x\n---\na: 1", ["a % directive"]),
        ("a: 1\n---\nb: 2", ["line 2: the document ends before the file does", "`---`"]),
        ("a: 1\n...\n", ["line 2: the document ends", "`...`"]),
        ("- a\n- b", ["line 1: expected `key: value` at the top, got a list"]),
        ("512", ["line 1: expected `key: value` at the top, got 512 (an integer)"]),
        ("a: 1\nb: c\x07", ["line 2: the character U+0007", "Delete"]),
        ("a: 1\nb: c\x85d", ["line 2: the character U+0085", '"\\u0085"']),
        ("a: b\u2028", ["line 1: the character U+2028", '"\\u2028"']),
        ("a: b\ufeff", ["line 1: the character U+FEFF"]),
        ('a: "\\ud83d\\ude00"', ["line 1: a: \\ud83d is half of a character", "\\U and 8 digits"]),
        ('a: "\\udfff"', ["\\udfff is half"]),
        ('a: "\\UFFFFFFFF"', ["line 1: not YAML: found an escape beyond \\U0010FFFF"]),
        ('a: "\\U00110000"', ["found an escape beyond"]),
        ("a: " + "9" * 5000, ["line 1: a: an integer of 5000 digits is too long"]),
        ("a: " + "[" * 100_000, ["nested deeper than 32 levels"]),
        ("? " * 5000, ["a key is a string"]),
        ("a: {b:1}", ["found a colon inside 'b:1'", "`a: {b:1}`", "Put a space after the colon"]),
        ("a: [https://x.org]", ["found a colon inside 'https://x.org'", "quotes"]),
        ('a: {"b":1}', ["found a colon without a space after it"]),
        ("a: |\n \n  b", ["line 1: a: blanks alone, or a tab, after |. Delete them."]),
        ("a: >-\n\tb", ["line 1: a: blanks alone, or a tab, after >"]),
        ("a: b: c", ["line 1: not YAML: mapping values are not allowed here, in `a: b: c`."]),
        ("a: [1\n", ["line 2: not YAML: while parsing a flow sequence: ", "'<stream end>'. Check"]),
        ("a: [1\nb: 2", ["line 2: not YAML: while parsing a flow sequence: ", "Check brackets"]),
        ("a: @b", ["found character '@' that cannot start any token", "quotes"]),
        ("a: 'b", ["line 1: not YAML: while scanning a quoted scalar: found unexpected end"]),
        ("a:\n\t- b", ["line 2: not YAML", "`- b`"]),
    ],
)
def test_refused_yaml(write, text, essentials):
    found = yaml_message(write(text))
    assert found.startswith("params.yaml: line ")
    assert "\n" not in found
    for essential in essentials:
        assert essential in found


def test_billion_laughs_end_at_the_first(write):
    laughs = ["a0: &a0 [lol]"]
    laughs += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 20)]
    assert "line 1: a0: &a0 is an anchor" in yaml_message(write("\n".join(laughs)))


def test_files(tmp_path, write):
    with pytest.raises(ParamsError, match=r"none\.yaml: no such file. Run this in the folder"):
        load_yaml(tmp_path / "none.yaml")
    path = tmp_path / "latin1.yaml"
    path.write_bytes(b"a: 1\nb: caf\xe9\n")
    with pytest.raises(
        ParamsError,
        match=r"latin1\.yaml: line 2: not UTF-8: byte 0xe9 at byte offset 11. Save the file as",
    ):
        load_yaml(path)
    for empty in ("# nothing\n", "\n", "---\n", "~"):
        assert load_yaml(write(empty)) == {} == parse_yaml(empty, "f")


def test_bytes_that_dvc_reads_too(write):
    """A byte order mark, CRLF and CR: DVC opens the file in text mode, with universal newlines."""
    for text in (
        "\ufeffa: é\nb: [c]\n",
        "a: é\r\nb: [c]\r\n",
        "a: é\rb: [c]\r",
        'a: é\nb: ["\r c"]',
    ):
        path = write(text)
        assert same(load_yaml(path), parse_yaml(path.read_text("utf-8"), path))
        assert load_yaml(path)["a"] == "é"


def test_files_are_closed_and_any_locale_will_do(write):
    """C43: the default encoding is never used."""
    path = write("a: é\n")
    code = f"from bytepair.yaml_strict import load_yaml; print(ascii(load_yaml({str(path)!r})))"
    command = [sys.executable, "-X", "warn_default_encoding", "-W", "error", "-c", code]
    ascii_only = {**os.environ, "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}
    found = subprocess.run(command, env=ascii_only, capture_output=True, check=True)
    assert found.stdout.strip() == rb"{'a': '\xe9'}"


# The blocks


def test_the_projects_own_params():
    corpora, tokenizers = names(ROOT / "params.yaml")
    assert {"sample", "sherlock"} <= {*corpora}
    for name in corpora:
        assert load_corpus(ROOT / "params.yaml", name).name == name
    for name in tokenizers:
        assert load_tokenizer(ROOT / "params.yaml", name).corpus in corpora


def test_the_least_corpus(write):
    assert load_corpus(write(), "book") == CorpusParams(
        name="book",
        fetch=FetchParams(
            sources=("https://example.org/book",),
            file="book.txt",
            raw_sha256=(),
            clean_sha256=None,
        ),
        strip=StripParams(start=None, end=None),
        split=HeadingSplit(
            pattern="^[IVX]+$",
            expect=("I", "II"),
            val=None,
            test=None,
            separator="<|endoftext|>",
        ),
    )
    assert load_corpus(write(), "plays").split == CharacterSplit(
        ranges=(CharacterRange(name="all", start=0, end=9, split="train"),),
        separator="<|endoftext|>",
    )


def test_the_fullest_corpus(write):
    path = write(
        keys={
            "corpora.book.fetch.raw_sha256": [HASH, HASH[::-1].upper()],
            "corpora.book.fetch.clean_sha256": HASH.upper(),
            "corpora.book.strip": {"start": "*** START", "end": None},
            "corpora.book.split.val": ["I"],
            "corpora.book.split.test": ["II"],
            "corpora.book.split.separator": "\n",
            "corpora.plays.split.ranges.0.split": "dropped",
            "corpora.plays.split.separator": "",
        }
    )
    book = load_corpus(path, "book")
    assert book.fetch.raw_sha256 == (HASH, HASH[::-1])
    assert book.fetch.clean_sha256 == HASH
    assert book.strip == StripParams(start="*** START", end=None)
    assert (book.split.val, book.split.test, book.split.separator) == (("I",), ("II",), "\n")
    plays = load_corpus(path, "plays").split
    assert (plays.ranges[0].split, plays.separator) == ("dropped", "")


def test_the_least_tokenizer(write):
    assert load_tokenizer(write(), "small") == TokenizerParams(
        name="small",
        corpus="book",
        chunks=ChunksParams(pattern=None, special_tokens=("<a>", "<b>")),
        train=TrainParams(vocab_size=512),
        encode=EncodeParams(separator=None),
        baseline=BaselineParams(),
        report=ReportParams(),
    )


def test_the_fullest_tokenizer(write):
    pattern = {"regex": r"\p{L}+", "engine": "regex", "regex_version": "2.5.161"}
    path = write(
        keys={
            "tokenizers.small.chunks.pattern": pattern,
            "tokenizers.small.train": {"vocab_size": 258, "min_count": 1},
            "tokenizers.small.encode.separator": "<b>",
            "tokenizers.small.baseline": {"order": 3, "max_tokens": 1000},
            "tokenizers.small.report.test": True,
        }
    )
    assert load_tokenizer(path, "small") == TokenizerParams(
        name="small",
        corpus="book",
        chunks=ChunksParams(
            pattern=PatternParams(name=None, **pattern), special_tokens=("<a>", "<b>")
        ),
        train=TrainParams(vocab_size=258, min_count=1),
        encode=EncodeParams(separator="<b>"),
        baseline=BaselineParams(order=3, max_tokens=1000),
        report=ReportParams(test=True),
    )


@pytest.mark.parametrize(
    ("pattern", "expected"),
    [
        (None, None),
        ({"name": "gpt2"}, PatternParams(name="gpt2", regex=None, engine="re", regex_version=None)),
        ({"regex": "("}, PatternParams(name=None, regex="(", engine="re", regex_version=None)),
        (
            {"regex": "a", "engine": "re", "regex_version": None},
            PatternParams(name=None, regex="a", engine="re", regex_version=None),
        ),
    ],
)
def test_patterns(write, pattern, expected):
    path = write(keys={"tokenizers.small.chunks.pattern": pattern})
    assert load_tokenizer(path, "small").chunks.pattern == expected


FETCH = "corpora.book.fetch"
SPLIT = "corpora.book.split"
RANGE = "corpora.plays.split.ranges"
SMALL = "tokenizers.small"


@pytest.mark.parametrize(
    ("key", "value", "refusal"),
    [
        # a key that is not known, is missing, or holds another type
        (
            f"{SMALL}.train.vocab_sise",
            1,
            (
                f"{SMALL}.train: the key 'vocab_sise' is not known. Known: vocab_size, min_count. "
                "Did you mean 'vocab_size'?"
            ),
        ),
        (
            f"{SMALL}.xyz",
            {},
            (
                f"{SMALL}: the key 'xyz' is not known. "
                "Known: corpus, chunks, train, encode, baseline, report."
            ),
        ),
        (f"{SMALL}.train.vocab_size", ABSENT, f"{SMALL}.train: the key 'vocab_size' is missing."),
        (f"{SMALL}.chunks.pattern", ABSENT, f"{SMALL}.chunks: the key 'pattern' is missing. It"),
        (f"{SMALL}.chunks.special_tokens", ABSENT, "the key 'special_tokens' is missing."),
        (f"{SMALL}.corpus", ABSENT, f"{SMALL}: the key 'corpus' is missing. Write one of: book,"),
        (f"{FETCH}.sources", ABSENT, f"{FETCH}: the key 'sources' is missing. It takes: sources,"),
        (f"{FETCH}.file", ABSENT, "the key 'file' is missing."),
        (f"{SPLIT}.by", ABSENT, "the key 'by' is missing. Write one of: headings, characters."),
        (f"{SPLIT}.pattern", ABSENT, "the key 'pattern' is missing."),
        (f"{SPLIT}.expect", ABSENT, "the key 'expect' is missing."),
        ("corpora.plays.split.ranges", ABSENT, "the key 'ranges' is missing."),
        (f"{RANGE}.0.name", ABSENT, "corpora.plays.split.ranges[0]: the key 'name' is missing."),
        (f"{RANGE}.0.start", ABSENT, "the key 'start' is missing."),
        (f"{RANGE}.0.end", ABSENT, "the key 'end' is missing."),
        (f"{RANGE}.0.split", ABSENT, "the key 'split' is missing. Write one of: train, val,"),
        (f"{SMALL}.train", None, f"{SMALL}.train: expected a mapping, got nothing (null). Write"),
        ("tokenizers.small", [], f"{SMALL}: expected a mapping, got a list."),
        (f"{RANGE}", ["I"], "split.ranges[0]: expected a mapping, got 'I' (a string)."),
        (f"{RANGE}", [], "split.ranges: asked for and empty: expected mappings."),
        (f"{RANGE}", {}, "split.ranges: expected a list of mappings, got a mapping."),
        (f"{SMALL}.report.test", "true", "expected a boolean, got 'true' (a string). Write true"),
        (f"{SMALL}.report.test", None, "report.test: expected a boolean, got nothing (null)."),
        (f"{SMALL}.train.min_count", None, "min_count: expected an integer, got nothing (null)."),
        # fetch
        (f"{FETCH}.sources", "https://x", "expected a list of strings, got 'https://x' (a"),
        (f"{FETCH}.sources", [], "fetch.sources: asked for and empty: expected strings."),
        (f"{FETCH}.sources", [""], "fetch.sources[0]: expected a string that is not empty, got"),
        (f"{FETCH}.sources", ["a", "a"], "fetch.sources[1]: 'a' stands twice. Delete one"),
        (f"{FETCH}.file", 1661, "fetch.file: expected a string, got 1661 (an integer). Put it in"),
        (f"{FETCH}.file", "", "fetch.file: expected a string that is not empty, got ''."),
        *(
            (f"{FETCH}.file", file, f"fetch.file: expected a bare file name, got {file!r}. Leave")
            for file in ("a/b", "/b", "..", ".", "a\\b", "C:b", "a\0b")
        ),
        (f"{FETCH}.clean_sha256", HASH[:-1], "(63 characters). Paste all of it."),
        (f"{FETCH}.raw_sha256", [HASH, f"{HASH}0"], "fetch.raw_sha256[1]: expected a sha256, 64"),
        (f"{FETCH}.raw_sha256", ["g" * 64], "fetch.raw_sha256[0]: expected a sha256, 64 hex"),
        (f"{FETCH}.raw_sha256", [f"{HASH[:-1]}\n"], "fetch.raw_sha256[0]: expected a sha256"),
        (f"{FETCH}.raw_sha256", [int("1" * 64)], "(an integer). Put it in quotes."),
        (f"{FETCH}.raw_sha256", HASH, "fetch.raw_sha256: expected a list of strings, got"),
        # strip and split
        ("corpora.book.strip.start", "", "strip.start: expected a string that is not empty"),
        ("corpora.book.strip.begin", "*", "the key 'begin' is not known. Known: start, end."),
        (f"{SPLIT}.by", "heading", "'heading' is not known. Known: headings, characters. Did you"),
        (f"{SPLIT}.ranges", [], f"{SPLIT}: the key 'ranges' is not known. Known: by, pattern, "),
        ("corpora.plays.split.val", ["I"], "the key 'val' is not known. Known: by, ranges,"),
        (f"{SPLIT}.expect", [], "split.expect: asked for and empty"),
        (f"{SPLIT}.expect", ["I", 2], "split.expect[1]: expected a string, got 2 (an integer)."),
        (f"{SPLIT}.val", [], "split.val: asked for and empty: expected strings. Add one, or"),
        (f"{SPLIT}.test", [], "split.test: asked for and empty"),
        (f"{SPLIT}.val", "I", "split.val: expected a list of strings, got 'I' (a string). Write"),
        (f"{SPLIT}.pattern", "", "split.pattern: expected a string that is not empty"),
        (f"{SPLIT}.separator", None, "split.separator: expected a string, got nothing (null)."),
        (f"{RANGE}.0.split", "training", "ranges[0].split: 'training' is not known. Known:"),
        # chunks
        (f"{SMALL}.chunks.pattern", "gpt2", "pattern: expected a mapping, got 'gpt2' (a string)."),
        (f"{SMALL}.chunks.pattern", {}, "pattern: expected name or regex, one of them; or null"),
        (f"{SMALL}.chunks.pattern", {"name": "a", "regex": "b"}, "expected name or regex, one of"),
        (f"{SMALL}.chunks.pattern", {"engine": "re"}, "expected name or regex, one of them"),
        (f"{SMALL}.chunks.pattern", {"name": ""}, "pattern.name: expected a string that is not"),
        (f"{SMALL}.chunks.pattern", {"regex": ""}, "pattern.regex: expected a string that is not"),
        (f"{SMALL}.chunks.pattern", {"regex": None}, "pattern.regex: expected a string, got"),
        (f"{SMALL}.chunks.pattern", {"name": "gpt2", "engine": "re"}, "pattern.engine: goes with"),
        (f"{SMALL}.chunks.pattern", {"regex": "a", "engine": "pcre"}, "pattern.engine: 'pcre' is"),
        (
            f"{SMALL}.chunks.pattern",
            {"regex": "a", "engine": "regex", "regex_version": 2025.9},
            "pattern.regex_version: expected a string, got 2025.9 (a float). Put it in quotes.",
        ),
        (
            f"{SMALL}.chunks.pattern",
            {"regex": "a", "regex_version": "1"},
            "pattern.regex_version: goes with `engine: regex` only. Delete it.",
        ),
        (f"{SMALL}.chunks.special_tokens", None, "special_tokens: expected a list of strings,"),
        (f"{SMALL}.chunks.special_tokens", ["<a>", ""], "special_tokens[1]: expected a string"),
        (f"{SMALL}.chunks.special_tokens", ["<a>", "<a>"], "special_tokens[1]: '<a>' stands"),
        (f"{SMALL}.chunks.special_tokens", [True], "special_tokens[0]: expected a string, got"),
        (f"{SMALL}.chunks.special_tokens", ["\ud800"], "special_tokens[0]: \\ud800 is half of a"),
        # train, encode, baseline, and the corpus's name
        (
            f"{SMALL}.train.vocab_size",
            257,
            (
                f"{SMALL}.train.vocab_size: expected at least 258 (256 bytes and 2 special tokens), "
                "got 257."
            ),
        ),
        (f"{SMALL}.train.min_count", 0, "train.min_count: expected at least 1, got 0."),
        (f"{SMALL}.baseline.order", 4, "baseline.order: expected 1 to 3, got 4."),
        (
            f"{SMALL}.encode.separator",
            "<a",
            (
                f"{SMALL}.encode.separator: '<a' is none of the tokenizer's special tokens. Add it to "
                "them. Known: <a>, <b>. Did you mean '<a>'?"
            ),
        ),
        (f"{SMALL}.corpus", "boook", f"{SMALL}.corpus: 'boook' is not known. Known: book, plays."),
    ],
)
def test_refused_blocks(write, key, value, refusal):
    found = message(write(keys={key: value}), key)
    assert found.startswith(f"params.yaml: {'.'.join(key.split('.')[:2])}") or "line 1" in found
    assert refusal in found
    assert found[-1] in ".?"


@pytest.mark.parametrize(
    "key",
    [
        *(f"corpora.book.{block}" for block in ("fetch", "strip", "split")),
        *(f"{SMALL}.{block}" for block in ("chunks", "train", "encode", "baseline", "report")),
    ],
)
def test_stages_depend_on_every_block(write, key):
    parent, block = key.rsplit(".", 1)
    found = message(write(keys={key: ABSENT}), key)
    assert found.startswith(
        f"params.yaml: {parent}: the block '{block}' is missing, and a stage depends on it. "
        f"Add `{block}:` and its keys"
    )
    assert f"`{block}: {{}}`" in found


def test_blocks_that_are_not_there(write):
    path = write()
    with pytest.raises(ParamsError, match=r"corpora: there is no block 'bok'. Known: book, plays"):
        load_corpus(path, "bok")
    with pytest.raises(ParamsError, match=r"Did you mean 'small'\?"):
        load_tokenizer(path, "smal")
    with pytest.raises(ParamsError, match=r"params\.yaml: the block 'corpora' is missing"):
        load_corpus(write("tokenizers: {}"), "book")
    with pytest.raises(ParamsError, match=r"tokenizers: there is no block 'a'. Known: none\."):
        load_tokenizer(write("tokenizers: {}"), "a")
    with pytest.raises(ParamsError, match=r"corpora: expected a mapping, got nothing"):
        names(write("corpora:\ntokenizers: {}"))


@pytest.mark.parametrize("name", ["Book", "a b", "a.b", "../x", "é", "a\n"])
def test_names_are_plain(write, name):
    path = write(json.dumps({"corpora": {name: BASE["corpora"]["book"]}}))
    with pytest.raises(ParamsError, match=r"a name is made of a-z, 0-9, - and _\. Rename"):
        load_corpus(path, name)


def test_another_blocks_mistake_stops_nothing(write):
    params = changed({"corpora.book": 7, "corpora.B b": None, "tokenizers.wrong": {"train": "x"}})
    path = write(json.dumps({**params, "engine": {"workers": 2}}))
    assert load_corpus(path, "plays").name == "plays"
    assert load_tokenizer(path, "small").corpus == "book"
    assert names(path) == (("book", "plays", "B b"), ("small", "wrong"))


def test_values_are_immutable(write):
    params = load_tokenizer(write(), "small")
    with pytest.raises(AttributeError):
        params.train.vocab_size = 1
    with pytest.raises((AttributeError, TypeError)):
        params.train.vocab = 1
    hash(params)


def test_import_needs_nothing_heavy():
    code = "import sys, bytepair.params; print(*sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, check=True, encoding="utf-8"
    )
    loaded = {name.split(".")[0] for name in found.stdout.split()}
    assert not loaded & {"click", "dvc", "numpy", "pooch", "regex", "ruamel", "tqdm"}
