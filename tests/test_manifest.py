"""manifest.py and shards.py: what a manifest says, that it is the same everywhere, and damage."""

import gzip
import hashlib
import json
import lzma
import os
import random
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import pyarrow as pa
import pytest

from bytepair.corpora.hash_split import split_of
from bytepair.corpora.manifest import Manifest, Shard
from bytepair.corpora.shard_documents import Document
from bytepair.corpora.shards import Survey, make_manifest, read_shard, survey
from bytepair.corpora.sources import find_shards
from bytepair.errors import ArtifactError, BytepairError, CorpusError, FetchError
from bytepair.shard_params import ReadRules
from shards import COMPRESS, json_lines, read, write_parquet, zstd


@pytest.fixture(autouse=True)
def _in_tmp_path(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("web").mkdir()


def write_corpus(shards=20, documents=10):
    """Shards in every format and compression, two of their records malformed."""
    suffixes = [f"{kind}{packed}" for kind in (".jsonl", ".txt") for packed in COMPRESS]
    for number in range(shards):
        records = [
            {"text": f"text é {number} {n}", "url": f"u{number}-{n}", "site": f"s{number % 7}"}
            for n in range(documents)
        ]
        name = f"web/{number:03}"
        if number % 11 == 10:
            columns = {key: [r[key] for r in records] for key in ("text", "url", "site")}
            write_parquet(f"{name}.parquet", columns)
            continue
        kind, _, packed = suffixes[number % 11][1:].partition(".")
        data = (
            json_lines(records)
            if kind == "jsonl"
            else b"|".join(r["text"].encode() for r in records)
        )
        if number in {0, 11}:
            data = b"nope\n" + data
        compress = COMPRESS[f".{packed}" if packed else ""]
        Path(f"{name}{suffixes[number % 11]}").write_bytes(compress(data))


RULES = ReadRules(id="url", group="site", separator="|")


def test_what_a_manifest_says():
    Path("web/a.jsonl").write_bytes(b'{"text": "\xc3\xa9t\xc3\xa9"}\nnope\n{"text": "b"}\n')
    Path("web/b.txt").write_bytes(b"one\r\n")
    make_manifest(["web/*"], ReadRules(), skip=1).save("manifest.json")
    record = (
        '{\n "version": 1,\n'
        ' "rules": {\n  "text": "text",\n  "id": null,\n  "group": null,\n  "separator": null,\n  "largest": 64000000\n },\n'
        ' "documents": 3,\n "bytes": 10,\n "skipped": 1,\n "shards": [\n'
        '  {\n   "url": "web/a.jsonl",\n   "size": 37,\n'
        '   "version": "sha256:3772410d8bb684ae7c4a8166f5b30abf77e645d4d8052e550854574ac21522d8",\n'
        '   "documents": 2,\n   "bytes": 6,\n   "skipped": 1\n  },\n'
        '  {\n   "url": "web/b.txt",\n   "size": 5,\n'
        '   "version": "sha256:5259d46a49644bf76792231ef7315b5293677c49ddd7e69d95557013e10320d4",\n'
        '   "documents": 1,\n   "bytes": 4,\n   "skipped": 0\n  }\n ]'
    )
    seal = hashlib.sha256(f"{record}\n}}\n".encode()).hexdigest()
    expected = f'{record},\n "record_sha256": "{seal}"\n}}\n'
    assert Path("manifest.json").read_bytes() == expected.encode()
    loaded = Manifest.load("manifest.json")
    assert loaded == make_manifest(["web/*"], ReadRules(), skip=1)
    assert loaded.sha256 == seal


def backwards(function, tasks):
    """As an engine might: the last first."""
    order = list(range(len(tasks)))
    random.Random(1).shuffle(order)
    return ((number, function(tasks[number])) for number in order)


def test_the_same_bytes_in_any_order_of_patterns_listing_and_work():
    write_corpus()
    names = sorted(path.as_posix() for path in Path("web").iterdir())
    expected = make_manifest(["web/*"], RULES, skip=2)
    assert [shard.url for shard in expected.shards] == names
    assert (expected.documents, expected.skipped) == (200, 2)
    for patterns in (names[::-1], ["web/*.gz", "./web/*"], ["**/*.*"], ["web/0*", "web/0*"]):
        assert make_manifest(patterns, RULES, skip=2, map_tasks=backwards) == expected
    assert make_manifest(["web/*"], RULES, skip=2, previous=expected) == expected


def test_the_same_bytes_with_another_hash_seed_and_locale(tmp_path):
    write_corpus(5)
    program = (
        "from bytepair.corpora.shards import *\n"
        "make_manifest(['web/*'], ReadRules(id='url'), skip=1).save('manifest.json')"
    )
    found = set()
    for seed, locale in (("0", "C"), ("1", "C.UTF-8")):
        environment = {**os.environ, "PYTHONHASHSEED": seed, "LC_ALL": locale}
        subprocess.run([sys.executable, "-c", program], env=environment, check=True)
        found.add(Path("manifest.json").read_bytes())
    assert len(found) == 1


def test_more_shards_change_no_entry_and_move_no_document():
    write_corpus(40)
    for path in sorted(Path("web").iterdir())[36:]:
        path.rename(f"held-{path.name}")
    before = make_manifest(["web/*"], RULES, skip=2)
    for path in Path().glob("held-*"):
        path.rename(f"web/{path.name.removeprefix('held-')}")
    after = make_manifest(["web/*"], RULES, skip=2, previous=before)
    assert set(before.shards) < set(after.shards)
    assert len(after.shards) == 40

    def sides(manifest):
        shares = {"seed": 1, "val": Decimal("0.2"), "test": Decimal("0.2")}
        return {
            record.id: (record.group, split_of(record.group, **shares))
            for shard in manifest.shards
            for record in read_shard(shard, manifest.rules)
            if isinstance(record, Document)
        }

    old, new = sides(before), sides(after)
    assert old.items() < new.items()
    of_group = {}
    for group, side in new.values():
        assert of_group.setdefault(group, side) == side
    assert len(set(of_group.values())) == 3
    assert Counter(side for _, side in new.values()).total() == after.documents


def test_a_known_shard_is_not_read_again():
    write_corpus(3)
    known = make_manifest(["web/*"], RULES, skip=2)
    wrong = replace(known, shards=tuple(replace(shard, bytes=1) for shard in known.shards))
    found = make_manifest(["web/*"], RULES, skip=2, previous=wrong)
    assert found.shards == (known.shards[0], *wrong.shards[1:])  # the first has a malformed record
    other = replace(wrong, rules=replace(RULES, largest=99))
    assert make_manifest(["web/*"], RULES, skip=2, previous=other) == known
    path = Path(known.shards[2].url)
    path.write_bytes(path.read_bytes() * 2)
    changed = make_manifest(["web/*"], RULES, skip=2, previous=wrong)
    assert [shard.bytes == 1 for shard in changed.shards] == [False, True, False]
    with pytest.raises(
        CorpusError, match=r"more malformed records than fetch\.skip allows, 0:\n  web/000"
    ):
        make_manifest(["web/*"], RULES, previous=known)


def test_malformed_records_are_refused_beyond_the_limit_of_the_whole_corpus():
    for name, bad in (("a", 2), ("b", 0), ("c", 3)):
        Path(f"web/{name}.jsonl").write_bytes(b'{"text": "t"}\n' + b"nope\n" * bad)
    assert make_manifest(["web/*"], ReadRules(), skip=5).skipped == 5
    with pytest.raises(CorpusError) as refused:
        make_manifest(["web/*"], ReadRules(), skip=4)
    line = "not JSON: Expecting value, at character 0"
    assert str(refused.value) == (
        "more malformed records than fetch.skip allows, 4:\n"
        f"  web/a.jsonl: record 2: {line}\n  web/a.jsonl: record 3: {line}\n  web/c.jsonl: record 2: {line}\n"
        "  ...\nCorrect the fields that fetch names, mend the shards, or raise fetch.skip in params.yaml."
    )
    with pytest.raises(CorpusError, match=r"c\.jsonl: record 2: not JSON"):
        make_manifest(["web/c.*"], ReadRules())


def test_a_malformed_record_in_each_of_many_shards_takes_linear_time(monkeypatch):
    urls = [f"{n:06}.txt" for n in range(40_000)]
    monkeypatch.setattr("bytepair.corpora.shards.find_shards", lambda _: urls)
    shard = Shard(url="", size=1, version="etag:", documents=1, bytes=1, skipped=1)

    def all_malformed_once(_, tasks):
        for number, task in enumerate(tasks):
            yield number, Survey(replace(shard, url=task.url), (), is_known=False)

    before = os.times().user
    assert make_manifest([], RULES, skip=40_000, map_tasks=all_malformed_once).skipped == 40_000
    assert os.times().user - before < 10  # minutes, if all are added up after each


# Where shards are


def test_finding():
    for name in ("web/a.txt", "web/.hidden.txt", "web/b[1].txt", "web/deep/er/c.txt"):
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_bytes(b"x")
    assert find_shards(["web/*.txt"]) == ["web/a.txt", "web/b[1].txt"]
    assert find_shards(["web/b[1].txt", "./web//a.txt"]) == ["web/a.txt", "web/b[1].txt"]
    assert find_shards(["web/**/*.txt"])[-1] == "web/deep/er/c.txt"
    for pattern in ("web/*.jsonl", "nowhere/a.txt", "web/deep", "web"):
        with pytest.raises(CorpusError) as refused:
            find_shards([pattern])
        assert (
            str(refused.value) == f"fetch.shards: '{pattern}' matches no file. Correct params.yaml."
        )


def test_a_name_that_is_not_utf8():
    try:
        Path(os.fsdecode(b"web/\xff.txt")).write_bytes(b"x")
    except OSError:
        pytest.skip("this file system has UTF-8 names only")
    with pytest.raises(CorpusError, match=r"'web/\\udcff\.txt': the name is not UTF-8"):
        find_shards(["web/*"])


# Damage


def test_a_shard_that_was_changed_or_removed():
    write_corpus(11)
    manifest = make_manifest(["web/*"], RULES, skip=1)
    for shard in manifest.shards:
        path = Path(shard.url)
        data = path.read_bytes()
        for changed in (data + b"\n", data[:-1], data[:-1] + bytes([data[-1] ^ 1]), b""):
            path.write_bytes(changed)
            with pytest.raises(CorpusError) as refused:
                next(read_shard(shard, RULES))
            assert str(refused.value).startswith(
                f"{shard.url}: the shard was changed after the manifest was made: "
            )
        path.unlink()
        with pytest.raises(FetchError, match=rf"^{shard.url}: No such file or directory"):
            next(read_shard(shard, RULES))


def test_a_local_shard_that_is_overwritten_while_it_is_read():
    data = b"one|" * 900_000
    Path("a.txt").write_bytes(data)
    (shard,) = make_manifest(["a.txt"], RULES).shards
    reading = read_shard(shard, RULES)
    assert next(reading).text == "one"
    with Path("a.txt").open("r+b") as file:
        file.write(b"two|" * 900_000)
    with pytest.raises(CorpusError, match=r"^a\.txt: the shard was changed while it was read"):
        list(reading)


def test_other_rules_than_the_manifests():
    Path("a.txt").write_bytes(b"a|b")
    (shard,) = make_manifest(["a.txt"], ReadRules()).shards
    with pytest.raises(
        ArtifactError, match=r"^a\.txt: 2 documents and 0 malformed records, but 1 and 0"
    ):
        list(read_shard(shard, ReadRules(separator="|")))


@pytest.mark.parametrize(
    "suffix", [".jsonl.gz", ".jsonl.zst", ".jsonl.bz2", ".jsonl.xz", ".parquet"]
)
def test_damaged_shards(suffix):
    """Cut anywhere, or with any bit changed: refused by name, or another document; never a crash."""
    numbers = random.Random(1)
    records = [{"text": f"{numbers.random()} {n}", "id": str(n)} for n in range(60)]
    name = f"a{suffix}"
    if suffix == ".parquet":
        write_parquet(name, {"text": [r["text"] for r in records]}, row_group_size=20)
    else:
        Path(name).write_bytes(COMPRESS[suffix.removeprefix(".jsonl")](json_lines(records)))
    whole, good = Path(name).read_bytes(), read(name)
    places = sorted(
        {*range(1, 40), *range(len(whole) - 40, len(whole)), *numbers.sample(range(len(whole)), 60)}
    )
    for place in [0, *places]:
        Path(name).write_bytes(whole[:place])
        with pytest.raises(CorpusError, match=rf"^{name}: (the file is |damaged)"):
            read(name)
    refused = 0
    for place in places:
        Path(name).write_bytes(
            whole[:place] + bytes([whole[place] ^ 1 << place % 8]) + whole[place + 1 :]
        )
        try:
            assert read(name, skip=99) == good or suffix == ".parquet"  # without a checksum there
        except BytepairError as error:
            refused += name in str(error)
    assert refused > len(places) * (0.2 if suffix == ".parquet" else 0.9)


def test_a_parquet_footer_with_any_byte_changed():
    """Refused by name, or read; of pyarrow's exceptions and ours none gets through."""
    expected = [f"text {n}" for n in range(40)]
    write_parquet(
        "a.parquet",
        {"text": expected, "other": expected},
        row_group_size=20,
        write_statistics=False,
        store_schema=False,
    )
    whole = Path("a.parquet").read_bytes()
    start = len(whole) - 8 - int.from_bytes(whole[-8:-4], "little")
    # A column that is optional no more: pyarrow's `column` then lets a C++ exception end the process.
    optional = whole.index(b"\x25\x02", start)
    refused = 0
    for place in {*range(start, len(whole) - 8)} - {optional, optional + 1}:
        for byte in {0, 0xFF, whole[place] ^ 1, (whole[place] + 1) % 256}:
            Path("a.parquet").write_bytes(whole[:place] + bytes([byte]) + whole[place + 1 :])
            try:
                read("a.parquet", skip=99)
            except BytepairError as error:
                refused += "a.parquet: " in str(error)
    assert refused > 500


def test_the_checksum_of_a_parquet_page_is_verified():
    options = {"use_dictionary": False, "compression": "none", "write_statistics": False}
    write_parquet("a.parquet", {"text": ["good"]}, write_page_checksum=True, **options)
    Path("a.parquet").write_bytes(Path("a.parquet").read_bytes().replace(b"good", b"food"))
    with pytest.raises(CorpusError, match=r"^a\.parquet: damaged \(.*CRC"):
        read("a.parquet")


@pytest.mark.parametrize("packed", [".gz", ".zst", ".bz2", ".xz"])
def test_members_one_after_the_other(packed):
    compress, name = COMPRESS[packed], f"a.txt{packed}"
    Path(name).write_bytes(
        compress(b"one ") + compress(b"") + b"\0" * 12 + compress(b"two") + b"\0" * 8
    )
    assert read(name)[0].text == "one two"
    for tail in (b"garbage", b"\0garbage", compress(b"three")[:-3]):
        Path(name).write_bytes(compress(b"one") + tail)
        with pytest.raises(CorpusError, match=rf"^{name}: the file is (damaged|cut short)"):
            read(name)


@pytest.mark.parametrize("packed", [".zst", ".xz"])
def test_a_window_that_is_too_large(packed):
    window = {zstd.CompressionParameter.window_log: 28}
    dictionary = {"id": lzma.FILTER_LZMA2, "dict_size": 1 << 28}
    compressor = zstd.ZstdCompressor(options=window)
    data = {
        ".zst": compressor.compress(b"text") + compressor.flush(),
        ".xz": lzma.compress(b"text", filters=[dictionary]),
    }
    Path(f"a.txt{packed}").write_bytes(data[packed])
    with pytest.raises(CorpusError) as refused:
        read(f"a.txt{packed}")
    assert str(refused.value) == (
        f"a.txt{packed}: takes more than 128 MiB of memory to decompress. Compress it again; "
        "`xz -9` and `zstd --long` need no more."
    )


def test_every_size_of_output_arrives_when_input_ends_first():
    for size in (0, 1, 1 << 20, (1 << 20) + 1, 3 << 20):
        for packed in (".gz", ".zst", ".bz2", ".xz"):
            Path(f"a.txt{packed}").write_bytes(COMPRESS[packed](b"a" + b"b" * size))
            assert len(read(f"a.txt{packed}")[0].text) == size + 1


# Bombs


MEASURED = """
import resource, sys
from bytepair.corpora.shards import *
from bytepair.errors import BytepairError
def peak():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("VmHWM"))
resource.setrlimit(resource.RLIMIT_AS, (1 << 31, 1 << 31))
before = peak()
try:
    print(make_manifest([sys.argv[1]], ReadRules(largest=int(sys.argv[2])), skip=99).documents)
except BytepairError as error:
    print(error)
print(peak() - before)
"""


def measured(name, largest):
    """What make_manifest prints in a process of its own, and the kB by which its memory grew."""
    if not Path("/proc/self/status").exists():
        pytest.skip("measures memory by /proc, which Linux has")
    found = subprocess.run(
        [sys.executable, "-c", MEASURED, name, str(largest)],
        capture_output=True,
        check=True,
        encoding="utf-8",
    ).stdout.splitlines()
    return found[0], int(found[1])


def write_gigabyte_of_zeros(name, packed):
    block = bytes(1 << 24)
    if packed == ".gz":
        with gzip.open(name, "wb", compresslevel=9) as file:
            for _ in range(60):
                file.write(block)
    else:
        member = COMPRESS[packed](block)
        Path(name).write_bytes(member * 60)


@pytest.mark.parametrize("name", ["a.txt.gz", "a.jsonl.gz", "a.jsonl.zst", "a.txt.bz2", "a.txt.xz"])
def test_a_gigabyte_of_zeros_in_a_megabyte_is_refused_in_little_memory(name):
    write_gigabyte_of_zeros(name, Path(name).suffix)
    assert Path(name).stat().st_size < 1_100_000
    said, grown = measured(name, 10_000_000)
    assert said.startswith(f"{name}: decompresses to more than ")
    assert "200 times its size and 64 MiB" in said
    assert grown < 60_000  # kB


def test_a_record_of_a_gigabyte_takes_no_more_memory_than_the_largest():
    Path("a.jsonl").write_bytes(b'{"text": "good"}\n')
    with Path("a.jsonl").open("ab") as file:
        file.truncate(10**9)  # a hole of zeros
        file.seek(0, 2)
        file.write(b'\n{"text": "good"}\n')
    assert measured("a.jsonl", 10_000_000)[0] == "2"
    assert measured("a.jsonl", 10_000_000)[1] < 60_000


def test_a_parquet_file_that_says_it_is_a_bomb(tmp_path):
    write_parquet(
        "a.parquet",
        {"text": ["a" * 5_000_000 + str(n) for n in range(40)]},
        use_dictionary=False,
        compression="zstd",
    )
    assert Path("a.parquet").stat().st_size < 100_000
    with pytest.raises(
        CorpusError, match=r"a\.parquet: decompresses to 200,\d{3},\d{3} bytes, above 200 times"
    ):
        read("a.parquet")


@pytest.mark.parametrize("compression", ["none", "zstd"])
def test_a_text_that_a_parquet_dictionary_repeats_takes_bounded_memory(compression):
    column = pa.DictionaryArray.from_arrays(pa.array([0] * 400), pa.array(["a" * 9_000_000]))
    options = {"store_schema": False, "dictionary_pagesize_limit": 1 << 30}
    write_parquet("a.parquet", {"text": column}, compression=compression, **options)
    assert Path("a.parquet").stat().st_size < 9_100_000
    said, grown = measured("a.parquet", 10_000_000)
    assert said == "400"
    assert grown < 250_000  # kB, for 3.6 GB of text


def test_texts_that_parquet_stores_as_the_end_alone_take_bounded_memory():
    texts = ["a" * 2_000_000 + str(n) for n in range(300)]
    options = {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"}
    write_parquet("a.parquet", {"text": texts}, **options)
    assert Path("a.parquet").stat().st_size < 200_000
    said, grown = measured("a.parquet", 10_000_000)
    assert said == "300"
    assert grown < 450_000  # kB, for 0.6 GB of text


# The file


def test_a_manifest_that_was_changed():
    write_corpus(3)
    make_manifest(["web/*"], RULES, skip=1).save("manifest.json")
    good = Path("manifest.json").read_bytes()
    for place in range(0, len(good), 7):
        Path("manifest.json").write_bytes(
            good[:place] + bytes([good[place] ^ 1]) + good[place + 1 :]
        )
        with pytest.raises(ArtifactError, match=r"^manifest\.json"):
            Manifest.load("manifest.json")


@pytest.mark.parametrize(
    ("change", "refusal"),
    [
        (lambda m: m.update(version=2), "version must be 1, but is 2"),
        (lambda m: m.update(documents=4), "documents, bytes and skipped must be the sums"),
        (lambda m: m["rules"].update(text=None), "rules.text must be a string"),
        (lambda m: m["rules"].pop("largest"), "rules.largest is missing"),
        (lambda m: m["shards"].reverse(), "shards must be in the order of their URLs"),
        (lambda m: m["shards"].append(m["shards"][-1]), "shards must be in the order of their URLs"),
        (lambda m: m["shards"][0].update(size=-1), "shards[0].size must be a whole number"),
        (lambda m: m["shards"][0].update(more=1), "shards[0].more is unknown"),
    ],
)  # fmt: skip
def test_a_manifest_that_cannot_have_been_written(change, refusal):
    from bytepair.files import write_record

    write_corpus(2)
    manifest = make_manifest(["web/*"], RULES, skip=1).as_json()
    change(manifest)
    write_record("manifest.json", manifest)
    with pytest.raises(ArtifactError) as refused:
        Manifest.load("manifest.json")
    assert str(refused.value).startswith(f"manifest.json: {refusal}")


def test_what_an_engine_sends_can_be_pickled():
    import pickle

    from bytepair.corpora.shards import SurveyTask

    Path("a.txt").write_bytes(b"x")
    task = SurveyTask("a.txt", ReadRules(), 0, None)
    assert pickle.loads(pickle.dumps(survey(task))) == survey(pickle.loads(pickle.dumps(task)))
    assert json.dumps(survey(task).shard.url) == '"a.txt"'
    assert str(task) == "a.txt"  # by which an engine names it
