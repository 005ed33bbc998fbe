"""`bytepair verify`: any changed byte of any file of the pipeline is found and named."""

import os
import random
import re
import shutil
import socket
import subprocess
import sys
from pathlib import PurePosixPath

import pytest
from click.testing import CliRunner
from dvc.repo import Repo

import pipeline
from bytepair.audit.rebuild import Rebuild, tokenizer_steps
from bytepair.audit.verify import AGAIN, PINNED, RECORDED, steps_of, verify, verify_steps
from bytepair.cli import main
from bytepair.params import load_tokenizer
from bytepair.tokenizer import Tokenizer

CORPUS, TOKENIZER = "data/corpora/sample", "data/tokenizers/sample-512"
RAW = f"{CORPUS}/raw"
BOTH = ("sample-512", "sample-300")
STAGES = {
    *(f"{stage}@sample" for stage in ("fetch", "strip", "split")),
    *(
        f"{stage}@sample-512"
        for stage in ("count-chunks", "train-tokenizer", "encode-splits", "baseline", "measure")
    ),
}


@pytest.fixture
def project(sample_project, tmp_path):
    """A copy of the sample's project, to be changed."""
    return shutil.copytree(sample_project, tmp_path / "project")


@pytest.fixture
def verify_again(project, tmp_path):
    """Verify the sample, or the stage that makes a file, all made again once and for all."""
    steps = list(steps_of(project / "params.yaml", pipeline.SAMPLE))
    folder = tmp_path / "again"
    folder.mkdir()
    rebuild = Rebuild(project, folder)

    def verify_again(file=None):
        chosen = [step for step in steps if file is None or makes(step, file)]
        return verify_steps(chosen, rebuild, pipeline.SAMPLE)

    assert verify_again().good
    return verify_again


def makes(step, file):
    return any(PurePosixPath(file).is_relative_to(output.as_posix()) for output in step.outputs)


def files(project):
    """Every file that the sample's stages have made."""
    parts = (f"{CORPUS}/", f"{TOKENIZER}/", "metrics/sample-512.json")
    made = pipeline.results(project)
    return {name: data for name, data in made.items() if name.startswith(parts)}


def differing(found):
    return {difference.path for difference in found.differences}


def flipped(data, name):
    """The data with one bit flipped: in the first byte, in the last, and in ten drawn ones."""
    drawn = random.Random(name)
    for place in sorted({0, len(data) - 1, *(drawn.randrange(len(data)) for _ in range(10))}):
        changed = bytearray(data)
        changed[place] ^= 1 << drawn.randrange(8)
        yield bytes(changed)


def truncated(data, name):
    yield from (b"", data[: len(data) // 2], data[:-1], data + b"\n")


def test_all_is_as_it_was_made(project):
    found = verify(project, pipeline.SAMPLE)
    assert found.good
    assert (found.differences, found.absent, found.not_verified) == ([], [], [])
    assert {part.stage for part in found.verified} == STAGES
    assert {part.how for part in found.verified} == {PINNED, AGAIN}
    made = files(project)
    assert sum(part.files for part in found.verified) == len(made)
    assert sum(part.size for part in found.verified) == sum(map(len, made.values()))


def test_steps_read_and_write_what_dvc_yaml_says():
    with Repo(pipeline.ROOT, config={"core": {"no_scm": True}}) as repo:
        stages = {stage.name: stage for stage in repo.stage.load_all("dvc.yaml")}
    steps = {step.name: step for step in steps_of(pipeline.ROOT / "params.yaml")}
    assert steps.keys() == stages.keys()
    for name, step in steps.items():
        made = [
            dep.def_path
            for dep in stages[name].deps
            if not dep.def_path.startswith(("src/", "stages/"))
        ]
        assert {path.as_posix() for path in step.inputs} == {*made} - {"params.yaml"}, name
        outputs = {output.def_path for output in stages[name].outs}
        assert {path.as_posix() for path in step.outputs} == outputs, name


@pytest.mark.parametrize("damage", [flipped, truncated])
def test_every_change_of_every_file_is_found_and_named(project, verify_again, damage):
    for name, data in files(project).items():
        for changed in damage(data, name):
            (project / name).write_bytes(changed)
            # What is made again follows from raw.txt, which therefore must not be what it was.
            found = verify(project, ["sample"]) if name.startswith(RAW) else verify_again(name)
            assert differing(found) == {name}
            assert not found.good
        (project / name).write_bytes(data)
    assert verify_again().good


def test_all_files_but_raw_changed_at_once(project):
    changed = {name for name in files(project) if name != f"{RAW}/raw.txt"}
    for name in changed:
        data = (project / name).read_bytes()
        (project / name).write_bytes(data[:-1] + bytes([data[-1] ^ 1]))
    found = verify(project)
    assert differing(found) == changed
    assert {difference.stage for difference in found.differences} == STAGES


@pytest.mark.parametrize(
    ("without", "damaged", "file"),
    [
        (["raw"], "clean", "clean.txt"),
        (["raw"], "clean", "strip.json"),
        (["raw", "clean"], "splits", "train/text.txt"),
        (["raw", "clean"], "splits", "val/documents.json"),
        (["raw", "clean"], "splits", "split.json"),
        (["raw", "clean", "splits"], "counts", "chunks.bin"),
        (["raw", "clean", "splits"], "counts", "index.json"),
        (["raw", "clean", "splits", "counts"], "bpe.json", ""),
        (["raw", "clean", "splits", "counts"], "tokens", "train/tokens.npy"),
        (["raw", "clean", "splits", "counts"], "tokens", "val/index.json"),
        (["raw", "clean", "splits", "counts", "tokens"], "baseline", "ngrams.npy"),
        (["raw", "clean", "splits", "counts", "tokens"], "baseline", "baseline.json"),
    ],
)
def test_without_what_a_file_is_made_from_it_is_held_to_the_hashes_on_record(
    project, without, damaged, file
):
    def path(name):
        inside = name in ("raw", "clean", "splits")
        return project / (CORPUS if inside else TOKENIZER) / name

    for name in without:
        shutil.rmtree(path(name))
    found = verify(project)
    assert found.good
    assert RECORDED in {part.how for part in found.verified}
    assert {name.split("/")[-1] for name in found.absent} >= set(without)
    target = path(damaged) / file
    data = target.read_bytes()
    target.write_bytes(data[:40] + bytes([data[40] ^ 4]) + data[41:])
    (difference, *_) = verify(project).differences
    assert target.is_relative_to(project / difference.path)


def test_text_that_is_neither_pinned_nor_recorded(project):
    """As Project Gutenberg's licence text is: no later stage ever sees it."""
    raw = project / RAW / "raw.txt"
    raw.write_bytes(b"!" + raw.read_bytes())
    (difference,) = verify(project, ["sample"]).differences
    assert difference.path == f"{RAW}/raw.txt"
    assert "is neither pinned nor the one fetch recorded" in difference.problem
    assert difference.stage == "fetch@sample"


def test_values_and_places_are_named(project, verify_again):
    def said(name, change):
        path = project / name
        data = path.read_bytes()
        path.write_bytes(change(data))
        (difference,) = verify_again().differences
        path.write_bytes(data)
        return difference.problem

    bpe = f"{TOKENIZER}/bpe.json"
    assert said(bpe, lambda data: data.replace(b"    [32, 116]", b"    [32, 117]")) == (
        "merges[0] is [32, 117], expected [32, 116]"
    )
    assert said("metrics/sample-512.json", lambda data: data.replace(b"34689", b"34690")) == (
        "train.tokens is 34690, expected 34689"
    )
    assert said(f"{CORPUS}/clean/clean.txt", lambda data: data[:-1]) == (
        "has 88,333 bytes, expected 88,334; byte offset 88333 is nothing, expected 0x0a"
    )
    tokens = f"{TOKENIZER}/tokens/val/tokens.npy"
    assert said(tokens, lambda data: data[:-2] + b"\x00\x01") == "[3549] is 256, expected 10"
    size = (project / bpe).stat().st_size
    assert said(bpe, lambda data: data.replace(b'": 1', b'":  1')) == (
        f"has {size + 1:,} bytes, expected {size:,}; byte offset 15 is 0x20, expected 0x31"
    )


def test_tokens_that_do_not_decode_to_the_text(project, monkeypatch):
    """An encoder that loses something makes them, and makes them again."""
    encode = Tokenizer.encode_array
    monkeypatch.setattr(Tokenizer, "encode_array", lambda self, text: encode(self, text)[:-1])
    shutil.rmtree(project / TOKENIZER / "tokens")
    steps = {step.stage: step for step in steps_of(project / "params.yaml", ["sample-512"])}
    Rebuild(project, project).run(steps["encode-splits"])
    found = {entry.path: entry.problem for entry in verify(project).differences}
    problem = found[f"{TOKENIZER}/tokens/val/tokens.npy"]
    assert problem.startswith("document 'XI', when decoded: has 7,39")


def test_absent_and_foreign_files(project, verify_again):
    (project / TOKENIZER / "tokens" / "val" / "index.json").unlink()
    (project / CORPUS / "splits" / "test" / "old.txt").write_bytes(b"")
    assert {(entry.path, entry.problem) for entry in verify_again().differences} == {
        (f"{TOKENIZER}/tokens/val/index.json", "absent"),
        (f"{CORPUS}/splits/test/old.txt", "is not among the files that the stage writes"),
    }


def test_a_folder_without_its_text_and_a_text_without_a_pin(project):
    (project / RAW / "raw.txt").unlink()
    (difference,) = verify(project, ["sample"]).differences
    assert (difference.path, difference.problem) == (f"{RAW}/raw.txt", "absent")
    shutil.copyfile(project / "data/sample/tales.txt", project / RAW / "raw.txt")
    params = project / "params.yaml"
    text = params.read_text(encoding="utf-8")
    params.write_text(re.sub("(?m)^ +(raw|clean)_sha256:.*$", "", text), encoding="utf-8")
    (difference,) = verify(project, ["sample"]).differences
    assert difference.path == f"{RAW}/raw.txt"
    assert difference.problem == "params.yaml pins no hash to hold it to"


def test_what_is_absent_is_no_fault_unless_it_was_asked_for(project):
    shutil.rmtree(project / TOKENIZER / "baseline")
    found = verify(project)
    assert found.good
    assert f"{TOKENIZER}/baseline" in found.absent
    assert f"{CORPUS}/raw" not in found.absent
    found = verify(project, ["sample-512"])
    assert differing(found) == {f"{TOKENIZER}/baseline"}
    assert verify(project, ["sample"]).good
    found = verify(project, ["sherlock"])
    assert differing(found) == {f"data/corpora/sherlock/{n}" for n in ("raw", "clean", "splits")}


@pytest.fixture
def second(project):
    """The project with a second tokenizer of the sample, all its stages run."""
    params = project / "params.yaml"
    text = params.read_text(encoding="utf-8")
    block = text[text.index("  sample-512:") : text.index("  sherlock-512:")]
    for old, new in (("sample-512", "sample-300"), ("512}", "300}"), ("gpt2-ascii", "words")):
        block = block.replace(old, new)
    text += block
    params.write_text(text, encoding="utf-8", newline="\n")
    for step in tokenizer_steps(load_tokenizer(params, "sample-300")):
        Rebuild(project, project).run(step)
    return project


def swap(one, other):
    aside = one.with_name("aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def test_artefacts_of_two_tokenizers_swapped(second, tmp_path):
    rebuild = Rebuild(second, tmp_path / "again")
    steps = list(steps_of(second / "params.yaml", BOTH))
    for name in ("counts", "bpe.json", "report", "tokens", "baseline", "metrics"):
        where = "metrics/{}.json" if name == "metrics" else "data/tokenizers/{}/" + name
        both = [second / where.format(tokenizer) for tokenizer in BOTH]
        assert verify_steps(steps, rebuild).good
        swap(*both)
        found = [second / path for path in differing(verify_steps(steps, rebuild))]
        swap(*both)
        for path in both:
            assert any(file.is_relative_to(path) for file in found)
        assert all(any(file.is_relative_to(path) for path in both) for file in found)


def test_all_artefacts_of_two_tokenizers_swapped(second):
    """Whatever is on record then agrees with everything else, but not with params.yaml."""
    swap(*(second / "data/tokenizers" / tokenizer for tokenizer in BOTH))
    found = differing(verify(second, BOTH))
    for tokenizer in BOTH:
        assert f"data/tokenizers/{tokenizer}/bpe.json" in found


def test_the_network_is_not_used(project, monkeypatch):
    def refuse(*_):
        raise AssertionError("the network was used")

    monkeypatch.setattr(socket.socket, "connect", refuse)
    raw = project / "data/corpora/sherlock/raw/raw.txt"
    raw.parent.mkdir(parents=True)
    raw.write_bytes(b"not the book")
    assert differing(verify(project)) == {"data/corpora/sherlock/raw/raw.txt"}
    shutil.rmtree(project / RAW)
    assert not verify(project, ["sample"]).good


def test_the_command(project, monkeypatch):
    monkeypatch.chdir(project)
    invoke = CliRunner().invoke
    good = invoke(main, ["verify", "sample-512"])
    assert good.exit_code == 0, good.output
    lines = good.output.splitlines()
    assert " ".join(lines[0].split()) == "fetch@sample 2 files 89,082 bytes as pinned or recorded"
    assert lines[-1] == f"verified: {len(files(project))} files of 8 stages"
    metrics = project / "metrics/sample-512.json"
    metrics.write_bytes(metrics.read_bytes().replace(b"34689", b"34690"))
    bad = invoke(main, ["verify"])
    assert bad.exit_code == 1
    said = "metrics/sample-512.json: train.tokens is 34690, expected 34689. Run `dvc repro --force "
    assert bad.output.splitlines()[-2:] == [f"{said}measure@sample-512`.", "differences: 1"]
    wrong = invoke(main, ["verify", "sampl"])
    assert wrong.exit_code == 2
    assert "'sampl' is no corpus or tokenizer. Known: sample," in wrong.output


def test_nothing_there_is_a_failure(project, monkeypatch):
    monkeypatch.chdir(project)
    for folder in ("data/corpora", "data/tokenizers", "metrics"):
        shutil.rmtree(project / folder)
    result = CliRunner().invoke(main, ["verify"])
    assert result.exit_code == 1
    assert result.output.splitlines()[-1] == "nothing is there. Run `dvc repro`."
    (project / "params.yaml").unlink()
    result = CliRunner().invoke(main, ["verify"])
    assert result.exit_code == 1
    assert "Error: params.yaml: no such file." in result.output


def test_c43_any_locale_shows_any_difference(project):
    path = project / CORPUS / "splits" / "val" / "documents.json"
    path.write_bytes(path.read_bytes().replace(b'"XI"', '"ΧΙ"'.encode()))
    run = subprocess.run(
        [sys.executable, "-c", "from bytepair.cli import main; main()", "verify", "sample"],
        cwd=project,
        env={**os.environ, "LC_ALL": "C", "PYTHONIOENCODING": "cp1252"},
        check=False,
        capture_output=True,
    )
    assert (run.returncode, run.stderr) == (1, b"")
    assert b'documents[0].name is "\\u03a7\\u0399", expected "XI"' in run.stdout
