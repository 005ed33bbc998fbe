"""A project whose corpus is many shards in all formats, for tests of the pipeline on it."""

import json

import yaml

import pipeline
from shards import COMPRESS, json_lines, write_parquet

TALES = (pipeline.ROOT / "data" / "sample" / "tales.txt").read_text(encoding="utf-8")
STAGES = (
    ("fetch", "strip", "split"),
    ("count_chunks", "train_tokenizer", "encode_splits", "baseline", "measure"),
)
RESULTS = ("counts/*", "bpe.json", "tokens/*/*", "baseline/*", "report/*")


def write_shards(folder, number=24):
    """The paragraphs of the tales in shards of mixed formats; gives their names."""
    folder.mkdir(parents=True)
    paragraphs = [text for text in TALES.split("\n\n") if text.strip()]
    records = [
        {"text": text, "meta": {"id": f"tale/{n}"}, "site": f"site{n // 3}"}
        for n, text in enumerate(paragraphs)
    ]
    names = []
    for shard in range(number):
        own = records[shard::number]
        kind = shard % 8
        if kind == 6:
            name = f"{shard:03}.parquet"
            write_parquet(
                folder / name,
                {
                    "text": [record["text"] for record in own],
                    "meta": [record["meta"] for record in own],
                    "site": [record["site"] for record in own],
                },
            )
        else:
            suffix = ("", ".gz", ".zst", "", ".bz2", ".xz", "", ".gz")[kind]
            name = f"{shard:03}.jsonl{suffix}"
            (folder / name).write_bytes(COMPRESS[suffix](json_lines(own)))
        names.append(name)
    return names


def write_texts(folder, number=4):
    """Files of text, of several documents each."""
    folder.mkdir(parents=True)
    paragraphs = TALES.split("\n\n")
    for shard in range(number):
        text = "\n\n\n".join(paragraphs[shard::number])
        (folder / f"{shard}.txt.gz").write_bytes(COMPRESS[".gz"](text.encode()))


def params(shards, *, engine=None, **fetch):
    """params.yaml of a corpus `web` and a tokenizer `web-400`."""
    content = {
        "corpora": {
            "web": {
                "fetch": {"shards": shards, "id": "meta.id", "group": "site", **fetch},
                "strip": {},
                "split": {"by": "hash", "seed": 1, "val": 0.15, "test": 0.1},
            }
        },
        "tokenizers": {
            "web-400": {
                "corpus": "web",
                "chunks": {"pattern": {"name": "gpt2"}, "special_tokens": ["<|endoftext|>"]},
                "train": {"vocab_size": 400},
                "encode": {"separator": "<|endoftext|>"},
                "baseline": {"order": 2},
                "report": {"test": True},
            }
        },
    }
    if engine is not None:
        content["engine"] = engine
    return yaml.safe_dump(content, sort_keys=False)


def run_stages(project, env=None):
    """Every stage without DVC; gives what each printed on stderr."""
    said = {}
    for stage in STAGES[0]:
        said[stage] = pipeline.run_stage(project, f"stages/{stage}.py", "web", env=env).stderr
    for stage in STAGES[1]:
        said[stage] = pipeline.run_stage(project, f"stages/{stage}.py", "web-400", env=env).stderr
    return {stage: text.decode() for stage, text in said.items()}


def results(project):
    """The bytes of all that a tokenizer's stages make, by path."""
    folder = project / "data" / "tokenizers" / "web-400"
    found = {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for pattern in RESULTS
        for path in folder.glob(pattern)
    }
    return found | {"metrics": (project / "metrics" / "web-400.json").read_bytes()}


def lines(stderr):
    """The lines of progress, one a shard, and the summary."""
    return [json.loads(line) for line in stderr.splitlines() if line.startswith("{")]
