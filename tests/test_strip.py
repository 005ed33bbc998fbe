"""corpora/strip.py: cases C02, C03 and C05 to C11, the published corpora, and the record."""

import json
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bytepair.corpora.strip import strip, strip_file
from bytepair.errors import ArtifactError, CorpusError, TextError
from bytepair.files import read_record, sha256, write_record
from bytepair.params import StripParams

FILES = Path(__file__).parent / "files"
EXPECTED = json.loads((FILES / "expected.json").read_bytes())
GUTENBERG = StripParams(
    start="*** START OF THE PROJECT GUTENBERG EBOOK",
    end="*** END OF THE PROJECT GUTENBERG EBOOK",
)
WHOLE = StripParams(start=None, end=None)
SHERLOCK = "3552d466d95a92fb58e96bbfabbfc02370d359ac95933b5feafe4ebaf3f243b3"


def write_raw(folder, data):
    """What fetch leaves behind for strip."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.joinpath("raw.txt").write_bytes(data)
    record = {"sources": [], "raw": {"sha256": sha256(data), "bytes": len(data)}}
    write_record(folder / "fetch.json", record)


def accept(name):
    """The stripped text of a case file, which must be the expected one."""
    raw = (FILES / name).read_bytes()
    stripped = strip(raw, GUTENBERG, path=name)
    expected = EXPECTED[name]
    assert sha256(raw) == expected["sha256_in"]
    assert stripped.text.decode() == expected["body"]
    assert len(stripped.text) == expected["body_bytes"]
    assert sha256(stripped.text) == expected["body_sha256"]
    return stripped


def refuse(name, tmp_path, error=CorpusError):
    """The message with which a case file is refused; an older clean.txt must stay as it was."""
    write_raw(tmp_path / "raw", (FILES / name).read_bytes())
    clean = tmp_path / "clean"
    with pytest.raises(error) as caught:
        strip_file(tmp_path / "raw", clean, GUTENBERG)
    assert not clean.exists()
    clean.mkdir()
    (clean / "clean.txt").write_bytes(b"older\n")
    with pytest.raises(error):
        strip_file(tmp_path / "raw", clean, GUTENBERG)
    assert [path.name for path in clean.iterdir()] == ["clean.txt"]
    assert (clean / "clean.txt").read_bytes() == b"older\n"
    return str(caught.value)


@pytest.mark.parametrize(
    "name",
    ["pg00_plain.txt", "pg02_this.txt", "pg01_nospace_markers.txt", "pg21_no_final_newline.txt"],
)
def test_c02_published_marker_spellings_give_the_same_body(name):
    stripped = accept(name)
    assert stripped.start_line == 5
    assert stripped.end_line == 11


@pytest.mark.parametrize("the", ["THE", "THIS"])
@pytest.mark.parametrize("space", ["", " "])
def test_c02_any_spelling_in_params_meets_any_spelling_in_the_file(the, space):
    params = StripParams(
        start=f"***{space}START OF {the} PROJECT GUTENBERG", end=f"***{space}END OF {the} PROJECT"
    )
    for name in ("pg00_plain.txt", "pg01_nospace_markers.txt", "pg02_this.txt"):
        stripped = strip((FILES / name).read_bytes(), params, path=name)
        assert sha256(stripped.text) == EXPECTED[name]["body_sha256"]


@pytest.mark.parametrize(
    "line",
    [
        b"*** START OF THAT TALE",
        b"*** START OF THESE TALES",
        b"** START OF THE TALE",
        b"***  START OF THE TALE",
        b"*** start of the TALE",
        b"*** START OF THE SAGA",
        b"*** END OF THE TALE",
    ],
)
def test_c02_other_text_is_not_guessed_at(line):
    params = StripParams(start="*** START OF THE TALE", end=None)
    with pytest.raises(CorpusError, match="no line starts with"):
        strip(line + b"\nbody\n", params, path="x")


def test_a_marker_of_another_kind_is_taken_to_the_letter():
    params = StripParams(start="[BEGIN (1.0)]", end="— fin")
    raw = "[BEGIN (1x0)]\n[BEGIN (1.0)] now\nbody\n— fin —\n".encode()
    assert strip(raw, params, path="x").text == b"body\n"


def test_c03_small_print_only_names_both_markers_and_quotes_the_line(tmp_path):
    message = refuse("pg03_smallprint_only.txt", tmp_path)
    assert f"no line starts with {GUTENBERG.start!r}" in message
    assert f"no line starts with {GUTENBERG.end!r}" in message
    assert "3: '*END*THE SMALL PRINT!" in message


def test_c03_end_before_start_names_the_order(tmp_path):
    message = refuse("pg15_end_before_start.txt", tmp_path)
    assert f"{GUTENBERG.end!r} on line 5 comes before {GUTENBERG.start!r} on line 11" in message


def test_c03_a_truncated_file_lacks_its_end(tmp_path):
    message = refuse("pg16_truncated_no_end.txt", tmp_path)
    assert f"no line starts with {GUTENBERG.end!r}" in message
    assert f"no line starts with {GUTENBERG.start!r}" not in message


def test_c03_an_empty_body_is_refused(tmp_path):
    assert "no text is left" in refuse("pg23_empty_body.txt", tmp_path)


def test_c03_an_empty_file_is_refused(tmp_path):
    assert "the file is empty" in refuse("pg24_empty_file.txt", tmp_path)


@pytest.mark.parametrize("raw", [b"", b"\xef\xbb\xbf", b"\n\r\n  \n"])
def test_c03_nothing_is_refused_without_markers_too(raw):
    with pytest.raises(CorpusError):
        strip(raw, WHOLE, path="x")


@pytest.mark.parametrize("name", ["pg05_bom_header.txt", "pg04_bom_on_marker.txt"])
def test_c05_a_byte_order_mark_is_dropped(name):
    assert "\ufeff" not in accept(name).text.decode()


def test_c05_only_one_mark_and_only_at_the_very_start():
    assert (
        strip("\ufeff\ufeffa\ufeff\n".encode(), WHOLE, path="x").text.decode() == "\ufeffa\ufeff\n"
    )


@pytest.mark.parametrize(
    ("name", "byte", "offset"),
    [
        ("pg06_latin1.txt", "0xe9", 194),
        ("pg19_utf16.txt", "0xff", 0),
        ("pg25_cesu_surrogate.txt", "0xed", 140),
    ],
)
def test_c06_a_byte_that_is_not_utf8_is_named_with_its_offset(name, byte, offset, tmp_path):
    message = refuse(name, tmp_path, TextError)
    assert f"byte {byte} at byte offset {offset} " in message
    assert EXPECTED[name]["first_bad_byte_offset"] == offset


def test_c06_offsets_count_the_byte_order_mark():
    with pytest.raises(TextError, match="byte 0xe9 at byte offset 3 "):
        strip(b"\xef\xbb\xbf\xe9\n", WHOLE, path="x")
    with pytest.raises(CorpusError, match="byte offset 4, line 1"):
        strip(b"\xef\xbb\xbfa\r", WHOLE, path="x")


@pytest.mark.parametrize("name", ["pg07_mixed_crlf_lf.txt", "pg08_all_crlf.txt"])
def test_c07_crlf_becomes_lf(name):
    assert b"\r" in (FILES / name).read_bytes()
    assert b"\r" not in accept(name).text


@pytest.mark.parametrize(
    ("name", "offset", "line"),
    [("pg09_bare_cr.txt", 174, 8), ("pg10_crcrlf.txt", 47, 1), ("pg11_cr_at_eof.txt", 356, 14)],
)
def test_c07_a_bare_cr_is_refused_with_its_place(name, offset, line, tmp_path):
    assert f"at byte offset {offset}, line {line}." in refuse(name, tmp_path)
    assert EXPECTED[name]["cr_byte_offset"] == offset


def test_c08_unicode_line_breaks_are_text():
    stripped = accept("pg12_unicode_line_breaks.txt")
    assert stripped.text.count(b"\n") == 2
    assert len(stripped.text.decode().splitlines()) == 10


def test_c09_marker_words_in_mid_line_are_text():
    accept("pg13_marker_text_inside.txt")


def test_c09_two_books_are_refused_with_all_lines(tmp_path):
    message = refuse("pg14_two_books.txt", tmp_path)
    assert f"lines 5, 19 start with {GUTENBERG.start!r}" in message
    assert f"lines 11, 21 start with {GUTENBERG.end!r}" in message


def test_c10_credits_between_the_markers_stay():
    text = accept("pg18_credits_inside.txt").text
    assert text.startswith(b"Produced by A. Volunteer\n")
    assert text.endswith(b"End of Project Gutenberg's The Pear Orchard, by Nobody\n")


def test_c11_nul_stays():
    assert accept("pg22_nul.txt").text == b"a\0b\nc\n"


@pytest.mark.parametrize(
    ("start", "end", "text"),
    [
        (None, None, b"head\nSTART\nbody\nEND\ntail\n"),
        ("START", None, b"body\nEND\ntail\n"),
        (None, "END", b"head\nSTART\nbody\n"),
        ("START", "END", b"body\n"),
    ],
)
@pytest.mark.parametrize("final", [b"", b"\n", b"\r\n"])
def test_a_marker_left_out_means_from_the_beginning_or_to_the_end(start, end, text, final):
    raw = b"head\nSTART\nbody\r\nEND\ntail" + final
    assert strip(raw, StripParams(start=start, end=end), path="x").text == text


def test_blank_lines_at_the_edges_stay():
    assert strip(b"\n\na\n\n\n", WHOLE, path="x").text == b"\n\na\n\n\n"


@pytest.mark.parametrize("raw", [b"a\nM\n", b"a\nM"])
def test_a_start_marker_on_the_last_line_leaves_nothing(raw):
    with pytest.raises(CorpusError, match="no text is left"):
        strip(raw, StripParams(start="M", end=None), path="x")


def test_one_line_cannot_be_both_markers():
    with pytest.raises(CorpusError, match="comes before"):
        strip(b"a\n*** M\nb\n", StripParams(start="*** M", end="***"), path="x")


@settings(deadline=None)
@given(
    st.lists(st.text("a\u2028\x00é \x85\x0b"), min_size=1).filter(
        lambda ls: any(map(str.strip, ls))
    )
)
def test_every_line_between_markers_comes_back(lines):
    body = "".join(f"{line}\n" for line in lines)
    raw = f"*** START OF THIS TALE\r\n{body}*** END OF THE TALE".encode()
    params = StripParams(start="*** START OF THE TALE", end="*** END OF THE TALE")
    stripped = strip(raw.replace(b"\n", b"\r\n").replace(b"\r\r", b"\r"), params, path="x")
    assert stripped.text.decode() == body
    assert stripped.end_line == len(lines) + 2


def test_strip_file_writes_the_text_and_its_record(tmp_path):
    raw = (FILES / "pg00_plain.txt").read_bytes()
    write_raw(tmp_path / "raw", raw)
    stripped = strip_file(tmp_path / "raw", tmp_path / "clean", GUTENBERG)
    assert (tmp_path / "clean" / "clean.txt").read_bytes() == stripped.text
    assert read_record(tmp_path / "clean" / "strip.json") == {
        "raw": {"sha256": EXPECTED["pg00_plain.txt"]["sha256_in"], "bytes": 357},
        "clean": {"sha256": EXPECTED["pg00_plain.txt"]["body_sha256"], "bytes": 86},
        "start": {"marker": GUTENBERG.start, "line": 5},
        "end": {"marker": GUTENBERG.end, "line": 11},
    }


def test_strip_file_holds_raw_to_its_record(tmp_path):
    write_raw(tmp_path / "raw", b"text\n")
    (tmp_path / "raw" / "raw.txt").write_bytes(b"other\n")
    with pytest.raises(ArtifactError, match=r"raw\.txt: sha256 is"):
        strip_file(tmp_path / "raw", tmp_path / "clean", WHOLE)
    assert not (tmp_path / "clean").exists()


@pytest.mark.parametrize(
    "record",
    [
        {},
        {"raw": None},
        {"raw": {"sha256": "ab", "bytes": 5}},
        {"raw": {"sha256": 1, "bytes": 5}},
        {"raw": {"sha256": "0" * 64}},
        {"raw": {"sha256": "0" * 64, "bytes": True}},
        {"raw": {"sha256": "0" * 64, "bytes": 5, "more": 1}},
    ],
)
def test_strip_file_refuses_a_wrong_record(record, tmp_path):
    write_raw(tmp_path / "raw", b"text\n")
    write_record(tmp_path / "raw" / "fetch.json", record)
    with pytest.raises(ArtifactError, match=r"fetch\.json: raw: expected"):
        strip_file(tmp_path / "raw", tmp_path / "clean", WHOLE)


def test_strip_file_refuses_a_record_with_any_byte_changed(tmp_path):
    write_raw(tmp_path / "raw", b"text\n")
    path = tmp_path / "raw" / "fetch.json"
    good = path.read_bytes()
    for position in range(len(good)):
        path.write_bytes(good[:position] + bytes([good[position] ^ 1]) + good[position + 1 :])
        with pytest.raises(ArtifactError, match=r"fetch\.json: "):
            strip_file(tmp_path / "raw", tmp_path / "clean", WHOLE)


def test_sherlock_strips_to_the_published_text(corpus_cache):
    raw = corpus_cache("pg1661.txt").read_bytes()
    stripped = strip(raw, GUTENBERG, path="pg1661.txt")
    assert len(stripped.text) == 575_804
    assert sha256(stripped.text) == SHERLOCK
    assert (stripped.start_line, stripped.end_line) == (27, 11_960)
    assert b"PROJECT GUTENBERG" not in stripped.text
    assert b'"' not in stripped.text
    assert b"'" not in stripped.text


def test_sherlock_by_sed_and_tr(corpus_cache):
    if not (shutil.which("sed") and shutil.which("tr")):
        pytest.skip("needs sed and tr")
    path = corpus_cache("pg1661.txt")
    lines = subprocess.run(["sed", "-n", "28,11959p", path], check=True, capture_output=True).stdout
    text = subprocess.run(["tr", "-d", "\\r"], input=lines, check=True, capture_output=True).stdout
    assert sha256(text) == SHERLOCK


def test_shakespeare_stays_as_it_is(corpus_cache):
    raw = corpus_cache("tinyshakespeare.txt").read_bytes()
    assert len(raw) == 1_115_394
    assert strip(raw, WHOLE, path="x").text == raw
