"""formats.py and its readers: every format, to the letter; and what is malformed, by its number."""

import builtins
import json
import os
import pickle
import tempfile
from pathlib import Path

import pyarrow as pa
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st
from pyarrow import parquet

from bytepair.corpora import text_files
from bytepair.corpora.formats import format_of
from bytepair.corpora.json_lines import LineReader
from bytepair.corpora.shard_documents import Document, Malformed, MalformedError
from bytepair.errors import BytepairError, CorpusError, FetchError
from bytepair.shard_params import ReadRules
from shards import COMPRESS, json_lines, read, texts, write_parquet, zstd

DOCUMENTS = ["Once.", "née\nSmith ", "\x00\u2028\ufeff“quoted” \\ 😀", " ", "x" * 3000, "a\r\nb"]


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


# The formats


@pytest.mark.parametrize("compression", COMPRESS)
def test_every_format_gives_the_same_documents(compression):
    compress = COMPRESS[compression]
    records = [{"text": text, "url": f"u{n}", "n": n} for n, text in enumerate(DOCUMENTS)]
    for name in (f"a.jsonl{compression}", f"b.NDJSON{compression.upper()}"):
        Path(name).write_bytes(compress(json_lines(records)))
        assert read(name, id="url") == [
            Document(f"u{n}", f"u{n}", t) for n, t in enumerate(DOCUMENTS)
        ]
    name = f"a.txt{compression}"
    Path(name).write_bytes(compress("<cut>".join(DOCUMENTS[:-1]).encode()))
    assert texts(read(name, separator="<cut>")) == DOCUMENTS[:-1]
    Path(name).write_bytes(compress(DOCUMENTS[1].encode()))
    assert read(name) == [Document(f"{name}:1", f"{name}:1", DOCUMENTS[1])]


@pytest.mark.parametrize("compression", ["none", "snappy", "zstd", "gzip"])
def test_parquet_gives_the_same_documents(compression):
    columns = {"text": DOCUMENTS, "url": [f"u{n}" for n in range(6)], "n": [5, 4, 3, 2, 1, 0]}
    write_parquet("a.parquet", columns, compression=compression, row_group_size=2)
    assert read("a.parquet", id="url", group="n") == [
        Document(f"u{n}", str(5 - n), text) for n, text in enumerate(DOCUMENTS)
    ]
    assert read("a.parquet")[2].id == "a.parquet:3"


@pytest.mark.parametrize(
    "kind",
    [
        pa.string(),
        pa.large_string(),
        pa.binary(),
        pa.large_binary(),
        pa.string_view(),
        pa.binary_view(),
        pa.dictionary(pa.int32(), pa.string()),
    ],
)
def test_parquet_columns_that_hold_strings(kind):
    data = (
        DOCUMENTS
        if kind not in {pa.binary(), pa.large_binary(), pa.binary_view()}
        else [t.encode() for t in DOCUMENTS]
    )
    write_parquet("a.parquet", {"text": pa.array(data).cast(kind)})
    assert texts(read("a.parquet")) == DOCUMENTS


def test_nested_fields():
    record = {"a": {"b.c": "no", "b": {"text": "Once.", "id": 7}}, "a.b": {"text": "no"}}
    Path("a.jsonl").write_bytes(json_lines([record]))
    write_parquet("b.parquet", {"a": [{"b": {"text": "Once.", "id": 7}}, None]})
    expected = Document("7", "Once.", "Once.")
    fields = {"text": "a.b.text", "id": "a.b.id", "group": "a.b.text"}
    assert read("a.jsonl", **fields) == [expected]
    assert read("b.parquet", skip=1, **fields) == [expected, Malformed(2, "'a.b.text' is null")]


def test_ids_and_groups_are_kept_to_the_letter():
    values = [" a", "a ", "", "\ta\n", "Zoë", 7, -1, 2**64 - 1, -(2**63)]
    records = [{"text": "t", "id": value, "site": value} for value in values]
    Path("a.jsonl").write_bytes(json_lines(records))
    found = read("a.jsonl", id="id", group="site")
    assert [document.id for document in found] == [str(value) for value in values]
    assert [document.group for document in found] == [str(value) for value in values]


def test_the_documents_of_a_text_file_are_one_group_where_groups_are_asked_for():
    Path("d").mkdir()
    Path("d/a.txt").write_bytes(b"one|two")
    assert [d.group for d in read("d/a.txt", separator="|")] == ["d/a.txt:1", "d/a.txt:2"]
    assert [d.group for d in read("d/a.txt", separator="|", group="site")] == ["d/a.txt"] * 2


@pytest.mark.parametrize(
    "name", ["a.json", "a", "a.txt.lz4", "a.parquet.gz", "txt", "a.gz", "a.txt.gz.gz"]
)
def test_a_name_that_tells_no_format(name):
    Path(name).write_bytes(b"x")
    with pytest.raises(CorpusError) as refused:
        read(name)
    assert str(refused.value) == (
        f"{name}: its name does not tell what it holds. Known: .parquet, .txt, .jsonl, .ndjson; the last 3 "
        "also with .gz, .zst, .bz2, .xz after it. Narrow fetch.shards."
    )


def test_formats_of_urls():
    assert format_of("https://example.org/a.jsonl.gz?key=b.txt#c") == (".jsonl", ".gz")
    assert format_of("s3://bucket/what?.txt") == (".txt", "")


# .txt


def cut(data, separator, largest=1 << 30):
    """The definition: all of it at once."""
    text = data.removeprefix(b"\xef\xbb\xbf").replace(b"\r\n", b"\n")
    pieces = text.split(separator) if separator else [text]
    return [None if len(piece) > largest else piece for piece in pieces if piece or not separator]


@settings(max_examples=400)
@given(
    st.lists(
        st.sampled_from([b"a", b"\n", b"\r\n", b"\r", b"--", b"-", b"\xef\xbb\xbf", b"bc"]),
        max_size=60,
    ),
    st.sampled_from([None, b"\n", b"--", b"\n\n\n", b"-\n-", b"a-a", b"aab"]),
    st.integers(1, 9),
    st.integers(1, 12),
)
@example([b"\r\n"] * 3, b"\n\n", 1, 1)
def test_cutting_while_reading_is_cutting_at_once(parts, separator, block, largest):
    data = b"".join(parts)
    with tempfile.TemporaryFile() as file, pytest.MonkeyPatch.context() as patch:
        patch.setattr(text_files, "BLOCK", max(3, block))  # a byte order mark is never in two
        file.write(data)
        file.seek(0)
        found = list(text_files._pieces(file, separator, largest))
    assert found == cut(data, separator, largest)


def test_text_files_are_stripped_as_a_corpus_of_one_file_is():
    Path("a.txt").write_bytes(b"\xef\xbb\xbfone\r\n\r\ntwo\xef\xbb\xbf\r\n")
    assert texts(read("a.txt", separator="\n\n")) == ["one", "two\ufeff\n"]
    assert texts(read("a.txt")) == ["one\n\ntwo\ufeff\n"]
    Path("a.txt").write_bytes(b"one\rtwo|three|\r\r\n|\xff|four||")
    assert read("a.txt", separator="|", skip=9) == [
        Malformed(1, "a CR without LF at byte offset 3 of it"),
        Document("a.txt:2", "a.txt:2", "three"),
        Malformed(3, "a CR without LF at byte offset 0 of it"),
        Malformed(4, "not UTF-8: byte 0xff at byte offset 0 of it"),
        Document("a.txt:5", "a.txt:5", "four"),
    ]


def test_an_empty_text_file_is_malformed_and_an_empty_file_of_lines_has_none():
    Path("a.txt").write_bytes(b"")
    Path("b.txt").write_bytes(b"ok")
    Path("c.jsonl").write_bytes(b"\n \n")
    with pytest.raises(CorpusError, match=r"a\.txt: record 1: it is empty"):
        read("*.txt")
    with pytest.raises(CorpusError) as refused:
        read("c.jsonl")
    assert str(refused.value) == "fetch.shards: there is no document in 1 shards."
    Path("c.jsonl").write_bytes(b"\n7\n" + b"nope\n" * 3)
    with pytest.raises(CorpusError) as refused:
        read("c.jsonl", skip=9)
    line = "not JSON: Expecting value, at character 0"
    assert str(refused.value) == (
        "fetch.shards: there is no document in 1 shards.\n"
        "  c.jsonl: record 2: the line is a number, expected an object\n"
        f"  c.jsonl: record 3: {line}\n  c.jsonl: record 4: {line}\n  ..."
    )


def test_a_long_document_is_read_in_linear_time():
    Path("a.txt").write_bytes(b"word " * 8_000_000)
    before = os.times().user
    assert len(read("a.txt", separator="\n")[0].text) == 40_000_000
    assert os.times().user - before < 10


# Malformed records


MALFORMED_LINES = [
    (b"", None),
    (b" \t\r", None),
    (b"nope", "not JSON: Expecting value, at character 0"),
    (b'{"text": "a"', "not JSON: "),
    (b'{"text": "a"} {}', "not JSON: Extra data, at character 14"),
    (b'{"text": NaN}', "not JSON: NaN is none of its numbers"),
    (b'{"text": "a", "other": -Infinity}', "not JSON: -Infinity is none of its numbers"),
    (b'{"text": "a\tb"}', "not JSON: Invalid control character at, at character 11"),
    (b'["text"]', "the line is a list, expected an object"),
    (b'"text"', "the line is a string, expected an object"),
    (b"null", "the line is null, expected an object"),
    (b"7", "the line is a number, expected an object"),
    (b'{"test": "a"}', "there is no field 'text'"),
    (b'{"text": null}', "'text' is null, expected a string"),
    (b'{"text": 7}', "'text' is a number, expected a string"),
    (b'{"text": ["a"]}', "'text' is a list, expected a string"),
    (b'{"text": ""}', "'text' is empty"),
    (b'{"text": "a", "text": "a"}', "the key 'text' stands twice"),
    (b'{"text": "a", "te\\u0078t": "b"}', "the key 'text' stands twice"),
    (b'{"text": "a\\ud800"}', "'text' holds a lone surrogate, \\ud800, at position 1"),
    (b'{"text": "a\xff"}', "not UTF-8: byte 0xff at byte offset 11 of it"),
    (b'{"text": "\xed\xa0\x80"}', "not UTF-8: byte 0xed at byte offset 10 of it"),
    (b'\xef\xbb\xbf{"text": "a"}', "starts with a byte order mark"),
    (b'{"text": "' + b"a" * 90 + b'"}', "larger than 99 bytes"),
]
GOOD_LINES = [
    b'{"text": "good"}',
    b'{"text": "good"}\r',
    b'{"x": 1, "x": {"text": "a", "text": "b"}, "text": "good"}',
    b'{"text": "good", "\\ud800": "\\udfff"}',
    b'{"text": "goo\\u0064", "n": 1e999}',
    b'{"text": "good", "n": ' + b"9" * 50 + b"}",
    b'{"type": "text", "text": "good", "a": "\\"text\\": 1"}',
]


@pytest.mark.parametrize("with_orjson", [True, False])
def test_malformed_lines(with_orjson, monkeypatch):
    if not with_orjson:
        _hide(monkeypatch, "orjson")
    lines = [line for line, _ in MALFORMED_LINES] + GOOD_LINES
    Path("a.jsonl").write_bytes(b"\n".join(lines))
    found = read("a.jsonl", skip=99, largest=99)
    reasons = {record.record: record.reason for record in found if isinstance(record, Malformed)}
    assert len(reasons) == len(MALFORMED_LINES) - 2
    for number, (line, reason) in enumerate(MALFORMED_LINES, start=1):
        if reason is None:
            assert number not in reasons
        else:
            assert reasons[number].startswith(reason), line
    good = [record for record in found if isinstance(record, Document)]
    assert [document.text for document in good] == ["good"] * len(GOOD_LINES)
    assert good[0].id == f"a.jsonl:{len(MALFORMED_LINES) + 1}"


def _hide(monkeypatch, *hidden):
    real = builtins.__import__

    def importing(name, *args, **kwargs):
        if name.split(".")[0] in hidden:
            raise ImportError(f"No module named {name!r}")
        return real(name, *args, **kwargs)

    monkeypatch.setattr(builtins, "__import__", importing)


@pytest.mark.parametrize("depth", [255, 256, 257, 900, 2000, 200_000])
def test_nesting_has_a_limit_that_no_library_sets(depth):
    line = b'{"text": "a", "deep": ' + b"[" * (depth - 1) + b"]" * (depth - 1) + b"}"
    read = LineReader("text").read
    if depth <= 256:
        assert read(line) == ["a"]
    else:
        with pytest.raises(MalformedError, match="nested deeper than 256 levels"):
            read(line)


def test_a_hundred_thousand_keys_that_stand_twice_take_linear_time():
    pairs = b",".join(b'"k%d":0' % n for n in range(100_000))
    line = b'{"text":"a","text":"b",' + pairs + b"," + pairs + b"}"
    before = os.times().user
    assert outcome(LineReader("text").read, line) == "the key 'text' stands twice"
    assert os.times().user - before < 10  # 100 seconds, if each is looked for in all


def outcome(read, line):
    try:
        return read(line)
    except MalformedError as error:
        return str(error)


KEYS = st.sampled_from(
    ["text", "id", "meta", "x", "te\\u0078t", "\\u0069d", "te", "\\ud800", "\\u0022id"]
)
PIECES = st.sampled_from([
    *["a", "é", "\\n", "\\u2019", "\\u0041", "\\ud83d\\ude00", "\\ud83d", '\\"text\\":', '\\"', "\\\\", "😀", "\t", "{", "id"],
])  # fmt: skip
STRINGS = st.lists(PIECES, max_size=5).map(lambda pieces: f'"{"".join(pieces)}"')
NUMBERS = st.sampled_from(
    ["0", "-0", "-1", "1.0", "1e3", "01", "1e999", "9" * 19, "9" * 20, "18446744073709551615",
     "18446744073709551616", "-9223372036854775808", "-9223372036854775809", "9" * 5000, "-", "NaN", "true", "null"]
)  # fmt: skip


def objects(values):
    pairs = st.tuples(KEYS, values).map(lambda pair: f'"{pair[0]}" : {pair[1]}')
    return st.lists(pairs, max_size=5).map(lambda pairs: "{" + ", ".join(pairs) + "}")


VALUES = st.recursive(
    STRINGS | NUMBERS,
    lambda values: st.lists(values, max_size=3).map(lambda v: f"[{','.join(v)}]") | objects(values),
    max_leaves=6,
)


@settings(max_examples=2_000)
@given(objects(VALUES) | VALUES, st.sampled_from(["", " ", "\r\n", "}", "\ufeff"]))
@example('{"text":"a","id":1,"text":"b"}', "")
@example('{"text":"a","meta":{"id":1,"\\u0069d":2}}', "")
def test_orjson_changes_nothing(line, end):
    data = (line + end).encode()
    for reader in (
        LineReader("text"),
        LineReader("text", "id"),
        LineReader("meta.text", "meta.id", "x"),
    ):
        assert outcome(reader.read, data) == outcome(reader.read_strictly, data)


@given(
    st.dictionaries(
        st.sampled_from(["text", "id", "x"]), st.text(st.characters(exclude_categories=["Cs"]))
    ),
    st.booleans(),
)
def test_what_json_writes_is_read(record, ascii_only):
    line = json.dumps(record, ensure_ascii=ascii_only).encode()
    found = outcome(LineReader("text", "id").read, line)
    if {"text", "id"} <= record.keys():
        assert found == [record["text"], record["id"]]
    else:
        assert found.startswith("there is no field")


def test_malformed_rows():
    columns = {
        "text": pa.array([b"one", None, b"", b"\xff", b"x" * 100, b"six", b"seven"]).view(
            pa.string()
        ),
        "id": ["1", "2", "3", "4", "5", None, "7"],
    }
    write_parquet("a.parquet", columns, row_group_size=3)
    assert read("a.parquet", id="id", largest=99, skip=9) == [
        Document("1", "1", "one"),
        Malformed(2, "'text' is null"),
        Malformed(3, "'text' is empty"),
        Malformed(4, "not UTF-8: byte 0xff at byte offset 0 of it"),
        Malformed(5, "larger than 99 bytes"),
        Malformed(6, "'id' is null"),
        Document("7", "7", "seven"),
    ]


def test_ids_and_groups_of_rows_have_the_limit_of_records():
    long = "x" * 100
    columns = {"text": ["a", "b", "c"], "id": [long, "b", "c"], "g": ["y", long, "y"]}
    write_parquet("a.parquet", columns)
    assert read("a.parquet", id="id", group="g", largest=99, skip=9) == [
        Malformed(1, "'id' is larger than 99 bytes"),
        Malformed(2, "'g' is larger than 99 bytes"),
        Document("c", "y", "c"),
    ]


@pytest.mark.parametrize(
    ("fields", "refusal"),
    [
        ({"text": "txet"}, "there is no column 'txet'. Known: text, n, list. Did you mean 'text'?"),
        ({"text": "n"}, "column 'n' holds int64, expected strings."),
        ({"id": "f.g"}, "there is no column 'f.g'"),
        ({"id": "text.id"}, "there is no column 'text.id'"),
        ({"group": "list"}, "column 'list' holds list"),
        ({"id": "n.m"}, "column 'n.m' has a dot in its name, which stands for nesting. Rename it."),
        ({"id": "two"}, "column 'two' stands twice. Rename it."),
    ],
)  # fmt: skip
def test_parquet_without_the_column(fields, refusal):
    names = ["text", "n", "list", "n.m", "two", "two"]
    if fields.get("text") == "txet":
        names = names[:3]
    columns = [pa.array([value]) for value in ("a", 1, ["a"], "b", "c", "d")]
    table = pa.Table.from_arrays(columns[: len(names)], names=names)
    parquet.write_table(table, "a.parquet")
    with pytest.raises(CorpusError) as refused:
        read("a.parquet", **fields)
    assert str(refused.value).startswith(f"a.parquet: {refusal}")


def test_the_largest_record():
    Path("a.jsonl").write_bytes(b'{"text":"123456789"}\n{"text":"1234567890"}\n{"text":"1"}')
    found = read("a.jsonl", largest=20, skip=1)
    assert found[1] == Malformed(2, "larger than 20 bytes")
    assert texts([found[0], found[2]]) == ["123456789", "1"]
    assert len(texts(read("a.jsonl", largest=21))) == 3


def test_libraries_that_are_missing(monkeypatch):
    Path("a.txt.zst").write_bytes(zstd.compress(b"a"))
    write_parquet("a.parquet", {"text": ["a"]})
    _hide(monkeypatch, "backports", "compression", "pyarrow", "fsspec")
    for name, extra in (
        ("a.txt.zst", "shards"),
        ("a.parquet", "parquet"),
        ("s3://b/a.txt", "shards"),
    ):
        with pytest.raises(FetchError, match=rf"pip install 'bytepair\[{extra}\]'"):
            read(name)


def test_every_refusal_is_one_of_ours_and_can_be_sent_by_a_worker():
    Path("a.jsonl").write_bytes(b"nope\n")
    with pytest.raises(BytepairError) as refused:
        read("a.jsonl", ReadRules())
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)
