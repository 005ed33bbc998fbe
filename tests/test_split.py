"""corpora/split.py and corpora/documents.py: case C12, the published corpora, the reader."""

import json
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bytepair.corpora.documents import Document, has_split, read_split
from bytepair.corpora.split import Joined, Span, split, split_file
from bytepair.corpora.strip import strip
from bytepair.errors import ArtifactError, CorpusError, PatternError, TextError
from bytepair.files import read_record, sha256, write_record
from bytepair.params import CharacterRange, CharacterSplit, HeadingSplit, StripParams

FILES = Path(__file__).parent / "files"
EXPECTED = json.loads((FILES / "expected.json").read_bytes())
NUMERALS = ("I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII")
TWELVE = HeadingSplit(
    pattern=EXPECTED["st00_twelve.txt"]["heading_regex"],
    expect=NUMERALS,
    val=("XI",),
    test=("XII",),
    separator="<|endoftext|>",
)
SHERLOCK = replace(TWELVE, pattern=r"^(I|II|III|IV|V|VI|VII|VIII|IX|X|XI|XII)\. [A-Z][A-Z’' -]+$")
TALES = "Two tales\n\nI. OWL\nHoo — hoo.\n\nII. FOX\nYip.\n".encode()
TWO = HeadingSplit(pattern=r"^(I+)\. ", expect=("I", "II"), val=("II",), test=None, separator="|")


def write_clean(folder, text):
    """What strip leaves behind for split."""
    folder.mkdir(parents=True, exist_ok=True)
    folder.joinpath("clean.txt").write_bytes(text)
    record = {"clean": {"sha256": sha256(text), "bytes": len(text)}}
    write_record(folder / "strip.json", record)


def pieces(text, result):
    """Each piece's bytes by name, from its split or, where dropped, from the text itself."""
    found = {span.name: text[span.start : span.end] for span in result.dropped}
    for joined in result.splits.values():
        for span in joined.documents:
            found[span.name] = joined.text[span.start : span.end]
    return found


def characters(*ranges, separator="|"):
    return CharacterSplit(
        ranges=tuple(
            CharacterRange(name=name, start=start, end=end, split=split_name)
            for name, start, end, split_name in ranges
        ),
        separator=separator,
    )


def files_in(folder):
    return sorted(
        path.relative_to(folder).as_posix() for path in folder.rglob("*") if path.is_file()
    )


def test_c12_twelve_stories_begin_at_their_headings():
    text = (FILES / "st00_twelve.txt").read_bytes()
    result = split(text, TWELVE)
    found = pieces(text, result)
    assert list(found) == ["front matter", *NUMERALS]
    position = 0
    lines = []
    for piece in found.values():
        lines.append(text[:position].count(b"\n") + 1)
        position += len(piece)
    assert lines == [1, *EXPECTED["st00_twelve.txt"]["start_lines"]]
    assert b"".join(found.values()) == text
    assert b"".join(found[name] for name in NUMERALS) == b"".join(text.splitlines(True)[15:])
    for inner in (b"\nI.\n", b"\nII.\n", b"I. was the mark", b"MIX IT. SAID THE COOK"):
        assert inner in found["I"]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("st01_missing_seven.txt", r"11 headings, expected 12; number 7 is 'VIII' \(line 64\), expected 'VII'"),
        ("st05_toc_looks_like_heading.txt", r"14 headings, expected 12; number 2 is 'XII' \(line 14\), expected 'II'"),
        ("st02_swapped.txt", r"12 headings, expected 12; number 7 is 'VIII' \(line 64\), expected 'VII'"),
        ("st03_double_three.txt", r"12 headings, expected 12; number 4 is 'III' \(line 40\), expected 'IV'"),
        ("st04_iiii.txt", r"12 headings, expected 12; number 4 is 'IIII' \(line 40\), expected 'IV'"),
    ],
)  # fmt: skip
def test_c12_other_headings_are_refused_and_nothing_is_written(name, message, tmp_path):
    text = (FILES / name).read_bytes()
    assert sha256(text) == EXPECTED[name]["sha256_in"]
    write_clean(tmp_path / "clean", text)
    with pytest.raises(CorpusError, match=message):
        split_file(tmp_path / "clean", tmp_path / "splits", TWELVE)
    assert not (tmp_path / "splits").exists()


def test_c12_an_empty_body_has_no_headings():
    with pytest.raises(
        CorpusError, match=r"0 headings, expected 2; number 1 is missing, expected 'I'"
    ):
        split(b"", TWO)
    with pytest.raises(CorpusError, match="0 headings, expected 0"):
        split(b"text", replace(TWO, expect=(), val=None))


def test_c12_headings_beyond_the_expected_are_refused():
    with pytest.raises(CorpusError, match=r"number 3 is 'III' \(line 8\), expected none"):
        split(TALES + b"III. \n", TWO)
    with pytest.raises(CorpusError, match=r"2 headings, expected 0; number 1 is 'I'"):
        split(TALES, replace(TWO, expect=(), val=None))


def test_a_pattern_without_a_group_names_documents_by_the_whole_match():
    params = replace(TWO, pattern=r"^I+", expect=("I", "II"))
    assert list(pieces(TALES, split(TALES, params))) == ["front matter", "I", "II"]


def test_no_front_matter_drops_nothing():
    result = split(TALES[11:], TWO)
    assert result.dropped == ()
    assert result.splits["train"].documents == (Span("I", 0, 21),)


def test_offsets_are_in_bytes():
    result = split(TALES, replace(TWO, expect=("I", "II"), val=None))
    text = TALES[11:32] + b"|" + TALES[32:]
    assert result.splits == {"train": Joined(text, (Span("I", 0, 21), Span("II", 22, 35)))}
    assert result.dropped == (Span("front matter", 0, 11),)


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"val": ("IV",)}, r"split\.val: 'IV' is not in split\.expect"),
        ({"val": ("I",), "test": ("I",)}, r"split\.test: 'I' is in val already"),
        ({"val": ()}, r"split\.val is empty"),
        ({"test": ()}, r"split\.test is empty"),
        ({"val": ("I",), "test": ("II",)}, "no document is left for train"),
        ({"separator": "oo."}, r"document 'I' holds the separator 'oo\.' at byte offset 27"),
        ({"separator": "Yip"}, r"document 'II' holds the separator 'Yip' at byte offset 40"),
    ],
)
def test_params_that_do_not_fit_the_text_are_refused(changes, message):
    assert TALES.find(b"oo.") == 27
    assert TALES.find(b"Yip") == 40
    with pytest.raises(CorpusError, match=message):
        split(TALES, replace(TWO, **changes))


def test_a_separator_in_a_dropped_range_does_no_harm():
    assert split(TALES, replace(TWO, separator="tales")).splits["train"].text == TALES[11:32]


def test_a_pattern_that_does_not_compile_is_refused():
    with pytest.raises(PatternError, match=r"split\.pattern '\('"):
        split(TALES, replace(TWO, pattern="("))


def test_text_that_is_not_utf8_is_refused():
    with pytest.raises(TextError, match="byte offset 1 "):
        split(b"a\xff", characters(("a", 0, 2, "train")))


def test_the_same_text_in_two_splits_is_refused():
    ranges = (("a", 0, 3, "train"), ("b", 3, 6, "train"), ("c", 6, 9, "val"))
    with pytest.raises(CorpusError, match="'a' in train and 'c' in val are the same text"):
        split(b"onetwoone", characters(*ranges))
    assert set(split(b"oneonetwo", characters(*ranges)).splits) == {"train", "val"}


@pytest.mark.parametrize(
    ("ranges", "message"),
    [
        ((("a", 0, 4, "train"),), "they end at 4, but the text has 5 characters"),
        ((("a", 0, 6, "train"),), "they end at 6, but the text has 5 characters"),
        ((("a", 1, 5, "train"),), r"'a' \(1 to 5\) leaves a gap: it must start at 0.* 5 characters"),
        ((("a", 0, 2, "train"), ("b", 3, 5, "val")), r"'b' \(3 to 5\) leaves a gap: it must start at 2"),
        ((("a", 0, 3, "train"), ("b", 2, 5, "val")), r"'b' \(2 to 5\) overlaps: it must start at 3"),
        ((("a", 2, 5, "train"), ("b", 0, 2, "val")), r"'a' \(2 to 5\) leaves a gap"),
        ((("a", 0, 2, "train"), ("a", 2, 5, "val")), "'a' .* the name stands twice"),
        ((("a", 0, 0, "train"), ("b", 0, 5, "val")), r"'a' \(0 to 0\) is empty"),
        ((("a", 0, 5, "val"),), "no document is left for train"),
        ((("a", 0, 5, "dropped"),), "no document is left for train"),
        ((), "they end at 0, but the text has 5 characters"),
    ],
)  # fmt: skip
def test_ranges_that_do_not_fit_the_text_are_refused(ranges, message):
    with pytest.raises(CorpusError, match=message):
        split("añøđz".encode(), characters(*ranges))


def test_ranges_count_characters():
    result = split("añ€😀z".encode(), characters(("a", 0, 3, "train"), ("b", 3, 5, "test")))
    assert result.splits["train"] == Joined("añ€".encode(), (Span("a", 0, 6),))
    assert result.splits["test"] == Joined("😀z".encode(), (Span("b", 0, 5),))


@settings(deadline=None)
@given(st.text(min_size=1), st.data())
def test_pieces_partition_the_text(text, data):
    cuts = data.draw(st.sets(st.integers(1, len(text))).map(sorted))
    edges = [0, *(cut for cut in cuts if cut < len(text)), len(text)]
    kinds = st.sampled_from(["train", "dropped"])
    ranges = [
        (f"r{number}", start, end, data.draw(kinds) if start else "train")
        for number, (start, end) in enumerate(pairwise(edges))
    ]
    result = split(text.encode(), characters(*ranges, separator=""))
    found = pieces(text.encode(), result)
    assert b"".join(found[name] for name, *_ in ranges) == text.encode()
    assert found == {name: text[start:end].encode() for name, start, end, _ in ranges}


@settings(deadline=None, max_examples=50)  # each writes files
@given(st.text("a\né\u2028 "), st.lists(st.text("b\né\u2028 "), min_size=1, max_size=20))
def test_documents_read_back_as_they_stand_in_the_text(tmp_path_factory, front, bodies):
    names = tuple(str(number) for number in range(len(bodies)))
    front = front and f"{front}\n"
    documents = [f"§{name}\n{body}\n" for name, body in zip(names, bodies, strict=True)]
    params = HeadingSplit(
        pattern=r"^§(\d+)$", expect=names, val=names[1::2] or None, test=None, separator="<é>"
    )
    folder = tmp_path_factory.mktemp("split")
    write_clean(folder, (front + "".join(documents)).encode())
    split_file(folder, folder / "splits", params)
    train = read_split(folder / "splits" / "train")
    assert train.documents == tuple(map(Document, names[::2], documents[::2]))
    if names[1:]:
        val = read_split(folder / "splits" / "val")
        assert val.documents == tuple(map(Document, names[1::2], documents[1::2]))


def test_split_file_writes_each_split_and_a_record(tmp_path):
    write_clean(tmp_path, TALES)
    split_file(tmp_path, tmp_path / "splits", TWO)
    assert files_in(tmp_path / "splits") == [
        "split.json",
        "train/documents.json",
        "train/text.txt",
        "val/documents.json",
        "val/text.txt",
    ]
    assert (tmp_path / "splits" / "val" / "text.txt").read_bytes() == TALES[32:]
    train = {"sha256": sha256(TALES[11:32]), "bytes": 21}
    val = {"sha256": sha256(TALES[32:]), "bytes": 13}
    assert read_record(tmp_path / "splits" / "train" / "documents.json") == {
        "text": train,
        "separator": "|",
        "documents": [{"name": "I", "start": 0, "end": 21}],
    }
    assert read_record(tmp_path / "splits" / "split.json") == {
        "clean": {"sha256": sha256(TALES), "bytes": 45},
        "splits": {"train": {**train, "documents": 1}, "val": {**val, "documents": 1}},
        "dropped": [{"name": "front matter", "start": 0, "end": 11}],
    }
    assert has_split(tmp_path / "splits", "val")
    assert not has_split(tmp_path / "splits", "test")


def test_a_split_left_over_from_other_params_is_removed(tmp_path):
    write_clean(tmp_path, TALES)
    split_file(tmp_path, tmp_path / "splits", TWO)
    split_file(tmp_path, tmp_path / "splits", replace(TWO, val=None, test=("II",)))
    assert [path.name for path in sorted((tmp_path / "splits").iterdir())] == [
        "split.json",
        "test",
        "train",
    ]


def test_a_refused_run_leaves_the_older_splits(tmp_path):
    write_clean(tmp_path, TALES)
    split_file(tmp_path, tmp_path / "splits", TWO)
    before = {
        name: (tmp_path / "splits" / name).read_bytes() for name in files_in(tmp_path / "splits")
    }
    with pytest.raises(CorpusError):
        split_file(tmp_path, tmp_path / "splits", replace(TWO, test=("II",)))
    assert before == {
        name: (tmp_path / "splits" / name).read_bytes() for name in files_in(tmp_path / "splits")
    }


def test_split_file_holds_clean_to_its_record(tmp_path):
    write_clean(tmp_path, TALES)
    (tmp_path / "clean.txt").write_bytes(TALES + b"more\n")
    with pytest.raises(ArtifactError, match=r"clean\.txt: sha256 is"):
        split_file(tmp_path, tmp_path / "splits", TWO)


@pytest.fixture
def train(tmp_path):
    """A split of two documents: bytes 0 to 21 and 22 to 35 of text.txt."""
    write_clean(tmp_path, TALES)
    split_file(tmp_path, tmp_path / "splits", replace(TWO, val=None))
    return tmp_path / "splits" / "train"


def test_read_split(train):
    found = read_split(train)
    text = (train / "text.txt").read_bytes()
    assert (found.sha256, found.size, found.separator) == (sha256(text), 35, "|")
    assert found.documents == (
        Document("I", "I. OWL\nHoo — hoo.\n\n"),
        Document("II", "II. FOX\nYip.\n"),
    )


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        (("text", "sha256"), "0" * 64, r"text\.txt: sha256 is"),
        (("text", "sha256"), "00", r"documents\.json: text: expected"),
        (("text", "bytes"), 34, r"text\.bytes: text\.txt has 35, found 34"),
        (("text", "bytes"), True, r"documents\.json: text: expected"),
        (("text",), [], r"documents\.json: text: expected"),
        (("separator",), None, "separator: expected a string, found None"),
        (("separator",), "!", r"documents\[1\]: no separator before it"),
        (("separator",), "", r"documents\[1\]\.start: expected 21, found 22"),
        (("more",), 1, "expected an object of text, separator and documents"),
        (("documents",), {}, "documents: expected a list of at least one"),
        (("documents",), [], "documents: expected a list of at least one"),
        (("documents", 1), ["II", 22, 35], r"documents\[1\]: expected a name"),
        (("documents", 1, "name"), None, r"documents\[1\]: expected a name"),
        (("documents", 1, "name"), "I", r"documents\[1\]\.name: stands twice, found 'I'"),
        (("documents", 1, "start"), "22", r"documents\[1\]: expected a name"),
        (("documents", 0, "start"), False, r"documents\[0\]: expected a name"),
        (("documents", 0, "start"), 1, r"documents\[0\]\.start: expected 0, found 1"),
        (("documents", 1, "start"), 23, r"documents\[1\]\.start: expected 22, found 23"),
        (("documents", 1, "end"), 35.0, r"documents\[1\]: expected a name"),
        (("documents", 1, "end"), 36, r"documents\[1\]\.end: expected above 22, at most 35, found 36"),
        (("documents", 1, "end"), 22, r"documents\[1\]\.end: expected above 22"),
        (("documents", 1, "end"), 34, "documents: the last must end with text.txt, at 35, found 34"),
        (("documents", 0, "end"), 10, r"documents\[1\]: no separator before it"),
        (("documents", 1, "more"), 0, r"documents\[1\]: expected a name"),
    ],
)  # fmt: skip
def test_read_split_refuses_what_does_not_fit(path, value, message, train):
    content = read_record(train / "documents.json")
    target = content
    for key in path[:-1]:
        target = target[key]
    target[path[-1]] = value
    write_record(train / "documents.json", content)
    with pytest.raises(ArtifactError, match=message) as caught:
        read_split(train)
    assert "dvc repro" in str(caught.value)


def test_read_split_refuses_a_document_that_ends_inside_a_character(tmp_path):
    text = "aé".encode()
    documents = [{"name": "a", "start": 0, "end": 2}, {"name": "b", "start": 2, "end": 3}]
    record = {"sha256": sha256(text), "bytes": 3}
    content = {"text": record, "separator": "", "documents": documents}
    (tmp_path / "text.txt").write_bytes(text)
    write_record(tmp_path / "documents.json", content)
    with pytest.raises(ArtifactError, match=r"documents\[0\]: its bytes are not UTF-8 at offset 1"):
        read_split(tmp_path)


def test_read_split_refuses_changed_and_absent_files(train):
    (train / "text.txt").write_bytes(b"x" * 35)
    with pytest.raises(ArtifactError, match=r"text\.txt: sha256 is"):
        read_split(train)
    (train / "text.txt").unlink()
    with pytest.raises(ArtifactError, match=r"text\.txt: no such file"):
        read_split(train)
    (train / "documents.json").unlink()
    with pytest.raises(ArtifactError, match=r"documents\.json: no such file"):
        read_split(train)


def test_sherlock_splits_to_the_published_figures(corpus_cache, tmp_path):
    markers = StripParams(
        start="*** START OF THE PROJECT GUTENBERG EBOOK",
        end="*** END OF THE PROJECT GUTENBERG EBOOK",
    )
    raw = corpus_cache("pg1661.txt").read_bytes()
    write_clean(tmp_path, strip(raw, markers, path="pg1661.txt").text)
    result = split_file(tmp_path, tmp_path / "splits", SHERLOCK)
    assert result.dropped == (Span("front matter", 0, 555),)
    stories = [
        document
        for name in ("train", "val", "test")
        for document in read_split(tmp_path / "splits" / name).documents
    ]
    assert tuple(story.name for story in stories) == NUMERALS
    assert [len(story.text.encode()) for story in stories] == [
        47838, 50567, 38751, 52462, 40402, 50248, 43341, 54100, 45650, 45372, 52164, 54354,
    ]  # fmt: skip
    train = result.splits["train"].text
    assert len(train) == 468_848
    assert train.count(b"<|endoftext|>") == 9
    assert sha256(train) == "e6e9e3dda8fdf4ee3beed15f16d27e1b9b3a1d9661d63ed3b5b3d35876ac437e"
    assert (len(result.splits["val"].text), len(result.splits["test"].text)) == (52_164, 54_354)


def test_shakespeare_splits_by_characters(corpus_cache):
    text = corpus_cache("tinyshakespeare.txt").read_bytes()
    params = characters(
        ("opening", 0, 20_000, "train"),
        ("middle", 20_000, 1_003_854, "dropped"),
        ("closing", 1_003_854, 1_115_394, "val"),
        separator="<|endoftext|>",
    )
    result = split(text, params)
    assert result.splits == {
        "train": Joined(text[:20_000], (Span("opening", 0, 20_000),)),
        "val": Joined(text[-111_540:], (Span("closing", 0, 111_540),)),
    }
    assert result.dropped == (Span("middle", 20_000, 1_003_854),)


def test_a_split_whose_index_is_lost_is_damaged_not_absent(tmp_path):
    folder = tmp_path / "splits" / "val"
    folder.mkdir(parents=True)
    assert has_split(tmp_path / "splits", "val")
    assert not has_split(tmp_path / "splits", "test")
    with pytest.raises(ArtifactError, match=r"documents\.json: no such file"):
        read_split(folder)
