"""shard_params.py: the blocks of a sharded corpus, and every refusal's words."""

import copy
import json
from decimal import Decimal

import pytest

from bytepair.errors import ParamsError
from bytepair.shard_params import (
    HashSplit,
    ReadRules,
    ShardedCorpusParams,
    ShardsParams,
    is_sharded,
    load_sharded_corpus,
)

WEB = {
    "fetch": {"shards": ["s3://bucket/web/*.jsonl.zst", "data/more/*.parquet"]},
    "strip": {},
    "split": {"by": "hash", "seed": 1},
}
BOOK = {"fetch": {"sources": ["a"], "file": "a"}, "strip": {}, "split": {"by": "headings"}}


@pytest.fixture
def write(tmp_path):
    """Write a params.yaml with the corpus `web`, some of its keys replaced."""

    def write(**blocks):
        web = copy.deepcopy(WEB)
        for name, keys in blocks.items():
            web[name].update(keys)
        path = tmp_path / "params.yaml"
        path.write_text(json.dumps({"corpora": {"web": web, "book": BOOK}}))
        return path

    return write


def test_defaults(write):
    assert load_sharded_corpus(write(), "web") == ShardedCorpusParams(
        name="web",
        fetch=ShardsParams(
            shards=("s3://bucket/web/*.jsonl.zst", "data/more/*.parquet"),
            rules=ReadRules(text="text", id=None, group=None, separator=None, largest=64_000_000),
            skip=0,
        ),
        split=HashSplit(seed=1, val=None, test=None, separator="<|endoftext|>"),
    )


def test_every_key_as_yaml(tmp_path):
    path = tmp_path / "params.yaml"
    path.write_text(
        "corpora:\n"
        "  web:\n"
        "    fetch:\n"
        "      shards: ['s3://bucket/web/*.jsonl.zst']\n"
        "      text: content.body\n"
        "      id: url\n"
        "      group: meta.site\n"
        '      separator: "\\n\\n\\n"\n'
        "      skip: 100\n"
        "      largest: 16MB\n"
        "    strip: {}\n"
        '    split: {by: hash, seed: 7, val: 0.01, test: 0.005, separator: "<eos>"}\n'
    )
    web = load_sharded_corpus(path, "web")
    assert web.fetch.rules == ReadRules(
        text="content.body", id="url", group="meta.site", separator="\n\n\n", largest=16_000_000
    )
    assert web.fetch.skip == 100
    assert web.split == HashSplit(
        seed=7, val=Decimal("0.01"), test=Decimal("0.005"), separator="<eos>"
    )


def test_which_corpora_are_sharded(write):
    path = write()
    assert is_sharded(path, "web")
    assert not is_sharded(path, "book")
    with pytest.raises(ParamsError, match=r"corpora: there is no block 'wep'.*'web'"):
        is_sharded(path, "wep")


@pytest.mark.parametrize(
    ("value", "size"),
    [("1B", 1), ("3kB", 3_000), ("16MB", 16_000_000), ("16 MiB", 16 << 20), ("2GiB", 2 << 30),
     ("1TB", 10**12), (4096, 4096)],
)  # fmt: skip
def test_sizes(write, value, size):
    assert load_sharded_corpus(write(fetch={"largest": value}), "web").fetch.rules.largest == size


@pytest.mark.parametrize(
    "value", ["16mb", "16", "MB", "1.5MB", "-1MB", "0MB", 0, -5, True, 1.5, [], None, "1e3MB"]
)
def test_no_sizes(write, value):
    with pytest.raises(
        ParamsError, match=r"web\.fetch\.largest: expected a size such as 16MB, got .* Units: B, kB"
    ):
        load_sharded_corpus(write(fetch={"largest": value}), "web")


@pytest.mark.parametrize("value", [0, 1, 1.0, 0.0, -0.1, 1.5, True, "0.1", [0.1]])
def test_no_shares(write, value):
    with pytest.raises(
        ParamsError,
        match=r"web\.split\.val: expected a share above 0 and below 1, such as 0\.01, got",
    ):
        load_sharded_corpus(write(split={"val": value}), "web")


@pytest.mark.parametrize(
    ("block", "keys", "refusal"),
    [
        ("split", {"val": 0.5, "test": 0.5}, "web.split: val 0.5 and test 0.5 leave nothing for"),
        ("split", {"by": "headings"}, "web.split.by: 'headings' is not known. Known: hash."),
        ("split", {"seed": -1}, "web.split.seed: expected at least 0, got -1."),
        ("split", {"seed": None}, "web.split.seed: expected an integer, got nothing"),
        ("split", {"expect": ["I"]}, "web.split: the key 'expect' is not known."),
        ("fetch", {"shards": []}, "web.fetch.shards: asked for and empty"),
        ("fetch", {"shards": "a"}, "web.fetch.shards: expected a list of strings"),
        ("fetch", {"shards": ["a", "a"]}, "web.fetch.shards[1]: 'a' stands twice"),
        ("fetch", {"file": "a"}, "web.fetch: the key 'file' is not known."),
        ("fetch", {"largest": "2TB"}, "web.fetch.largest: a record is held in memory: at most 1,000,"),
        ("fetch", {"skip": -1}, "web.fetch.skip: expected at least 0, got -1."),
        ("fetch", {"shards": ["a.txt", "~/b.txt"]}, "web.fetch.shards[1]: ~ is not expanded."),
        ("fetch", {"text": ""}, "web.fetch.text: expected a string that is not empty"),
        ("fetch", {"id": "meta..url"}, "web.fetch.id: expected names with dots between, as meta.url"),
        ("fetch", {"group": ".site"}, "web.fetch.group: expected names with dots between"),
        ("fetch", {"separator": "\r\n"}, "web.fetch.separator: CRLF is LF before '\\r\\n' is looked"),
        ("strip", {"start": "***"}, "web.strip: markers are for a corpus of one file;"),
    ],
)  # fmt: skip
def test_refused(write, block, keys, refusal):
    with pytest.raises(ParamsError) as refused:
        load_sharded_corpus(write(**{block: keys}), "web")
    assert f"params.yaml: corpora.{refusal}" in str(refused.value)
