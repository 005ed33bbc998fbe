"""README says what is: its examples run, its figures are those of metrics/, its files exist."""

import doctest
import json
import re
import subprocess
import sys

import yaml

import pipeline
from bytepair.comparison import compare, load_costs
from bytepair.engine_params import load_engine
from bytepair.layout import TokenizerPaths
from bytepair.params import load_tokenizer
from bytepair.shard_params import load_sharded_corpus

README = (pipeline.ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language):
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```$", README)


def test_python_examples(monkeypatch):
    monkeypatch.chdir(pipeline.ROOT)
    examples = doctest.DocTestParser().get_doctest(
        "\n".join(block for block in blocks("python") if ">>>" in block), {}, "README.md", None, 0
    )
    assert len(examples.examples) > 10
    runner = doctest.DocTestRunner(optionflags=doctest.ELLIPSIS)
    said = []
    runner.run(examples, out=said.append)
    assert not said, "".join(said)


def test_the_table_of_figures():
    table = README.partition("<!-- figures")[2].partition("\n\n")[0]
    rows = [[cell.strip(" `") for cell in row.split("|")[1:-1]] for row in table.splitlines()[3:]]
    params = yaml.safe_load((pipeline.ROOT / "params.yaml").read_text(encoding="utf-8"))
    assert len(rows) == 4
    for name, corpus, pattern, size, train, val, test, bits in rows:
        figures = json.loads((pipeline.ROOT / "metrics" / f"{name}.json").read_bytes())
        block = params["tokenizers"][name]
        assert corpus == block["corpus"]
        assert pattern == (block["chunks"]["pattern"] or {"name": "none"})["name"]
        assert int(size) == figures["vocab"]["size"]
        for split, shown in (("train", train), ("val", val), ("test", test)):
            expected = f"{figures[split]['bytes_per_token']:.4f}" if split in figures else ""
            assert shown == expected, (name, split)
        assert bits == f"{figures['val']['bits_per_byte']:.4f}"


def test_the_paired_difference():
    first, second = (
        load_costs(TokenizerPaths(pipeline.ROOT, name).measures)
        for name in ("sherlock-512", "chat-1024")
    )
    found = compare(first, second)
    said = " ".join(README.split())
    assert f"`sherlock-512` pays {found.value:.4f} more than `chat-1024`" in said
    assert f"a 95 % interval of {found.low:.4f} to {found.high:.4f}" in said


def test_output_shown_is_what_the_stages_print(sample_project):
    (shown,) = [block for block in blocks("text") if block.startswith("Running stage")]
    for script, line in re.findall(r"> python (stages/\S+) sample-512\n(.*)\n", shown):
        printed = pipeline.run_stage(sample_project, script, "sample-512").stdout.decode()
        assert printed == f"{line}\n"


def test_the_example_of_ones_own_book(tmp_path):
    project = pipeline.copy_project(tmp_path / "project")
    book = "\n".join(
        f"CHAPTER {numeral}\n\n" + f"It was chapter {numeral}, and the tide was out again. " * 20
        for numeral in ("I", "II", "III", "IV")
    )
    path = project / "data" / "books" / "mybook.txt"
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(f"A book\n\n{book}\n".encode())
    (example,) = (block for block in blocks("yaml") if "mybook" in block)
    corpora, tokenizers = example.split("tokenizers:\n")
    params = project / "params.yaml"
    text = params.read_text(encoding="utf-8")
    text = text.replace("corpora:\n", corpora, 1).replace(
        "tokenizers:\n", "tokenizers:\n" + tokenizers, 1
    )
    params.write_text(text, encoding="utf-8", newline="\n")

    refused = pipeline.run_stage(project, "stages/fetch.py", "mybook", check=False)
    assert refused.returncode == 1
    said = refused.stderr.decode()
    (refusal,) = re.findall(r"(?m)^Error: mybook\.txt: .*\n.*\n.*$", README)
    wanted = re.escape(refusal).replace("1,234", r"[0-9,]+").replace(r"\.\.\.", "[0-9a-f]{64}")
    assert re.search(wanted, said), said
    pins = "".join(f"{line}\n" for line in said.splitlines()[-2:])
    text = text.replace("      file: mybook.txt\n", "      file: mybook.txt\n" + pins)
    params.write_text(text, encoding="utf-8", newline="\n")
    made = pipeline.run_pipeline(project, only=("mybook", "mybook-400"))
    figures = json.loads(made["metrics/mybook-400.json"])
    assert figures["val"]["tokens"] > 10
    assert list(figures) == ["train", "val", "vocab"]


def test_targets_files_and_options_that_are_named_exist():
    makefile = (pipeline.ROOT / "Makefile").read_text(encoding="utf-8")
    for target in re.findall(r"make ([a-z]+)", README):
        assert re.search(rf"(?m)^{target}:", makefile), target
    for link in re.findall(r"\]\((?!http)([^)]+)\)", README):
        assert (pipeline.ROOT / link).is_file(), link
    for path in re.findall(r"`((?:tests|tools|stages|src|data/sample|docs)/[\w./-]+)`", README):
        assert (pipeline.ROOT / path).exists(), path
    stages = re.findall(r"(?m)^\| `([a-z-]+)` \| .*\| .*`", README)
    declared = yaml.safe_load((pipeline.ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]
    assert set(declared) <= set(stages)


def test_stage_help_names_the_argument():
    script = str(pipeline.ROOT / "stages" / "fetch.py")
    run = subprocess.run([sys.executable, script, "--help"], check=True, capture_output=True)
    assert b"NAME" in run.stdout
    run = subprocess.run([sys.executable, script], check=False, capture_output=True)
    assert run.returncode == 2


def test_commands_print_what_is_shown(tmp_path):
    """The blocks marked `output`, in a copy of the checkout without arrays or corpora."""
    project = pipeline.copy_project(tmp_path / "project")
    blocks = re.findall(r"<!-- output.*?-->\n```console\n(.*?)```", README, re.DOTALL)
    assert blocks
    for block in blocks:
        for example in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
            command, shown = example.split("\n", 1)
            run = subprocess.run(
                command, shell=True, cwd=project, env=pipeline.environment(project),
                check=True, capture_output=True,
            )  # fmt: skip
            assert run.stdout.decode() == shown, command


def test_the_example_of_shards_is_read(tmp_path):
    block = re.search(r"<!-- shards.*?-->\n```yaml\n(.*?)```", README, re.DOTALL)[1]
    params = tmp_path / "params.yaml"
    params.write_text(block, encoding="utf-8")
    corpus = load_sharded_corpus(params, "web")
    assert (corpus.fetch.rules.id, corpus.fetch.skip) == ("url", 100)
    assert load_tokenizer(params, "web-32k").train.vocab_size == 32768
    assert load_engine(params).store == "s3://bucket/work"
