"""bpe.json: one canonical layout, and a reader that trusts nothing."""

import hashlib
import json
import os
import pathlib
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bytepair import Tokenizer
from bytepair.errors import ArtifactError, BytepairError, TokenizerFileError

FILES = Path(__file__).parent / "files"
CASES = json.loads((FILES / "loader_cases.json").read_text(encoding="utf-8"))
GOOD = {
    "version": 1,
    "engine": "re",
    "pattern": r" ?\w+",
    "vocab_size": 259,
    "special_tokens": {"<é>": 258},
    "train_sha256": "0" * 64,
    "merges": [[97, 98], [256, 99]],
}


def write(path, content):
    if not isinstance(content, bytes):
        content = json.dumps(content).encode()
    path.write_bytes(content)
    return path


def test_golden_bytes(tmp_path):
    tok = Tokenizer(
        [(97, 98), (256, 99)], pattern=r" ?\w+", special_tokens=["<é>"], train_sha256="0" * 64
    )
    tok.save(tmp_path / "bpe.json")
    data = (tmp_path / "bpe.json").read_bytes()
    assert data.decode() == (
        "{\n"
        '  "version": 1,\n'
        '  "engine": "re",\n'
        '  "pattern": " ?\\\\w+",\n'
        '  "vocab_size": 259,\n'
        '  "special_tokens": {"<é>": 258},\n'
        f'  "train_sha256": "{"0" * 64}",\n'
        '  "merges": [\n'
        "    [97, 98],\n"
        "    [256, 99]\n"
        "  ]\n"
        "}\n"
    )
    assert tok.sha256 == hashlib.sha256(data).hexdigest()
    assert Tokenizer.load(tmp_path / "bpe.json") == tok
    assert json.loads(data) == GOOD


def test_empty_tokenizer(tmp_path):
    Tokenizer([]).save(tmp_path / "bpe.json")
    assert Tokenizer.load(tmp_path / "bpe.json").vocab_size == 256
    assert b'"merges": []\n}\n' in (tmp_path / "bpe.json").read_bytes()


def test_another_layout_of_the_same_content_is_the_same_tokenizer(tmp_path):
    content = {key: value for key, value in reversed(GOOD.items()) if key != "engine"}
    tok = Tokenizer.load(write(tmp_path / "bpe.json", content))
    tok.save(tmp_path / "again.json")
    assert hashlib.sha256((tmp_path / "again.json").read_bytes()).hexdigest() == tok.sha256
    assert tok == Tokenizer.load(write(tmp_path / "bpe.json", GOOD))


special_texts = st.lists(
    st.text(min_size=1, max_size=5).filter(lambda text: "\0" not in text), max_size=4, unique=True
)
patterns = st.sampled_from([None, "gpt2", "words", "[^\r\n]+", "é|\u2028", r'"\\'])


@given(st.text(alphabet="ab<é\r\n", max_size=40), special_texts, patterns)
@pytest.mark.filterwarnings("ignore:training stopped")
def test_save_load_save_is_the_same_bytes(tmp_path_factory, text, specials, pattern):
    path = tmp_path_factory.mktemp("bpe") / "bpe.json"
    tok = Tokenizer.train(
        text + "\0\0", vocab_size=270, special_tokens=specials, pattern=pattern, min_count=1
    )
    tok.save(path)
    data = path.read_bytes()
    Tokenizer.load(path).save(path)
    assert path.read_bytes() == data
    assert data.endswith(b"}\n")
    assert b"\r" not in data


@pytest.mark.parametrize("case", CASES, ids=[case["name"] for case in CASES])
def test_c33_broken_merge_tables_and_special_ids(tmp_path, case):
    size = 256 + len(case["merges"]) + len(case["special_tokens"])
    content = GOOD | {
        "pattern": None,
        "vocab_size": size,
        "merges": case["merges"],
        "special_tokens": case["special_tokens"],
    }
    path = write(tmp_path / "bpe.json", content)
    if case["outcome"] == "load":
        assert Tokenizer.load(path).encode("abcabc") == [258]
        return
    with pytest.raises(TokenizerFileError) as error:
        Tokenizer.load(path)
    assert str(path) in str(error.value)
    field = "special_tokens" if case["name"].startswith("special") else "merges"
    assert f"{field}: " in str(error.value)


@pytest.mark.parametrize("name", sorted(path.name for path in FILES.glob("js_*.json")))
@pytest.mark.parametrize("adapt", [False, True], ids=["as_is", "our_keys"])
def test_c34_damaged_json(tmp_path, name, adapt):
    data = (FILES / name).read_bytes()
    if adapt:  # the same damage in a file that has our other keys
        ours = b'{"version": 1, "vocab_size": 257, "train_sha256": null, '
        data = data.replace(b"{", ours, 1)
    with pytest.raises(TokenizerFileError) as error:
        Tokenizer.load(write(tmp_path / name, data))
    assert str(tmp_path / name) in str(error.value)
    assert isinstance(error.value, ValueError)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"version": 2}, "version is 2: this release reads version 1"),
        ({"version": True}, "version is True"),
        ({"version": "1"}, "version is '1'"),
        ({"engine": "pcre"}, "engine 'pcre' is not known"),
        ({"engine": 3}, "engine is 3"),
        ({"engine": "regex", "pattern": None}, "engine must be 're'"),
        ({"pattern": 3}, "pattern is 3"),
        ({"pattern": ""}, "empty"),
        ({"pattern": "(a"}, "missing )"),
        ({"pattern": "a\ud800"}, "lone surrogate"),
        ({"vocab_size": 258}, "vocab_size is 258: bytes, merges and special tokens make 259"),
        ({"vocab_size": 259.0}, "vocab_size is 259.0"),
        ({"special_tokens": ["<é>"]}, "special_tokens is ['<é>']"),
        ({"special_tokens": {"<é>": 258.0}}, "'<é>' has id 258.0"),
        ({"special_tokens": {"<é>": True}}, "'<é>' has id True"),
        ({"special_tokens": {"\ud800": 258}}, "lone surrogate"),
        ({"train_sha256": "abc"}, "train_sha256: expected 64"),
        ({"train_sha256": "A" * 64}, "train_sha256: expected 64"),
        ({"merges": {}}, "merges: expected a list"),
        ({"merges": "ab"}, "merges: expected a list"),
        ({"merges": [[97, 98], "ab"]}, "merge 1 is 'ab'"),
        ({"extra": 1}, "'extra' is not a known key"),
    ],
)
def test_each_field_is_checked(tmp_path, change, says):
    path = write(tmp_path / "bpe.json", GOOD | change)
    with pytest.raises(TokenizerFileError) as error:
        Tokenizer.load(path)
    assert says in str(error.value)
    assert str(path) in str(error.value)


@pytest.mark.parametrize("key", [key for key in GOOD if key != "engine"])
def test_each_key_is_needed(tmp_path, key):
    content = {name: value for name, value in GOOD.items() if name != key}
    with pytest.raises(TokenizerFileError, match=f"'{key}' is missing"):
        Tokenizer.load(write(tmp_path / "bpe.json", content))


def test_merges_alone_are_refused_with_the_line_that_loads_them(tmp_path):
    path = write(tmp_path / "merges.json", {"merges": [[97, 98]]})
    with pytest.raises(TokenizerFileError) as error:
        Tokenizer.load(path)
    line = str(error.value).partition("by hand: ")[2]
    loaded = eval(line, {"json": json, "pathlib": pathlib, "Tokenizer": Tokenizer})
    assert loaded.encode("ab") == [256]


def test_a_missing_file_says_what_to_run(tmp_path):
    with pytest.raises(ArtifactError, match="no such file. Run `dvc repro`"):
        Tokenizer.load(tmp_path / "bpe.json")


def test_a_small_file_cannot_ask_for_much_memory(tmp_path):
    doubling = [[97, 97], *([n, n] for n in range(256, 300))]
    content = GOOD | {"merges": doubling, "special_tokens": {}, "vocab_size": 256 + len(doubling)}
    with pytest.raises(TokenizerFileError, match="merge 24 makes a token of 33554432 bytes"):
        Tokenizer.load(write(tmp_path / "bpe.json", content))


def test_a_number_with_too_many_digits(tmp_path):
    data = json.dumps(GOOD).encode().replace(b"259", b"9" * 5000)
    with pytest.raises(TokenizerFileError, match=r"bpe\.json"):
        Tokenizer.load(write(tmp_path / "bpe.json", data))


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 70000) | st.floats() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=2)
    ),
    max_leaves=6,
)


@given(st.dictionaries(st.sampled_from([*GOOD, "x"]), json_values))
def test_any_field_may_hold_anything_and_is_refused_or_valid(tmp_path_factory, changes):
    path = write(tmp_path_factory.mktemp("bpe") / "bpe.json", GOOD | changes)
    try:
        tok = Tokenizer.load(path)
    except BytepairError as error:
        assert str(path) in str(error)
    else:
        assert len(tok.vocab) == tok.vocab_size


@given(st.binary(max_size=40), st.integers(0, 200), st.integers(0, 5))
def test_flipped_and_cut_bytes_are_refused_or_valid(tmp_path_factory, junk, at, gone):
    data = json.dumps(GOOD).encode()
    path = tmp_path_factory.mktemp("bpe") / "bpe.json"
    path.write_bytes(data[:at] + junk + data[at + gone :])
    try:
        Tokenizer.load(path)
    except BytepairError as error:
        assert str(path) in str(error)


SAVE_FOREVER = """
import sys
from bytepair import Tokenizer
tok = Tokenizer([(a, b) for a in range(100) for b in range(100)])
print("ready", flush=True)
while True:
    tok.save(sys.argv[1])
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="this system has no SIGKILL")
def test_c34_killed_while_saving(tmp_path):
    path = tmp_path / "bpe.json"
    Tokenizer([(a, b) for a in range(100) for b in range(100)]).save(path)
    before = path.read_bytes()
    for delay in (0.0, 0.011, 0.023, 0.037):
        process = subprocess.Popen(
            [sys.executable, "-c", SAVE_FOREVER, path], stdout=subprocess.PIPE
        )
        with process:
            process.stdout.readline()
            time.sleep(delay)
            process.kill()
        assert path.read_bytes() == before
        assert Tokenizer.load(path).vocab_size == 10256


def test_c34_a_folder_that_cannot_be_written_leaves_the_old_file(tmp_path):
    path = tmp_path / "bpe.json"
    Tokenizer([]).save(path)
    before = path.read_bytes()
    if os.geteuid() == 0:  # root writes anywhere: fill a file system instead
        limit = "import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))\n"
        run = subprocess.run(
            [sys.executable, "-c", limit + SAVE_FOREVER, path], capture_output=True, check=False
        )
        assert run.returncode not in (0, None)
    else:
        tmp_path.chmod(0o500)
        try:
            with pytest.raises(PermissionError):
                Tokenizer([(97, 98)]).save(path)
        finally:
            tmp_path.chmod(0o700)
    assert path.read_bytes() == before
    assert [entry.name for entry in tmp_path.iterdir()] == ["bpe.json"] or os.geteuid() == 0
