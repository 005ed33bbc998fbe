"""patience.py: a pattern that never ends is said to, then ends the stage, and changes nothing else."""

import json
import os
import signal
import subprocess
import sys
import time

import pytest

import pipeline
from bytepair.corpora.documents import Document
from bytepair.errors import ParamsError
from bytepair.files import sha256
from bytepair.patience import LIMIT_SECONDS, Watch

ENDED = 15 if os.name == "nt" else -signal.SIGTERM

# Argument 1: what works on a text, pattern, the second text as a character and how often it stands
# there, seconds of notice, seconds of rest at the end. It prints before each document and when done.
PROGRAM = r"""
import importlib, json, os, signal, sys, time
from bytepair import patience
from bytepair.corpora.documents import Document

# A shell that runs this in the background has it ignore interrupts.
signal.signal(signal.SIGINT, signal.default_int_handler)
patience.CHARACTERS_PER_SECOND = 1 << 40
engine, pattern, character, times, notice_seconds, rest = json.loads(sys.argv[1])
documents = [Document("“I”", "aab"), Document("“II”", character * times + "c")]
with patience.Watch(pattern, notice_seconds=notice_seconds) as watch:
    for document in watch.over(documents):
        print(document.name.encode(), flush=True)
        if engine == "wait":
            sys.stdin.readline()
        elif engine == "vanish":
            os._exit(7)
        else:
            importlib.import_module(engine).findall(pattern, document.text)
    time.sleep(rest)
print("done")
"""


def start(*work, notice=9, patience=1, rest=0, **options):
    env = pipeline.environment(pipeline.ROOT, BYTEPAIR_PATIENCE=str(patience))
    work = json.dumps([*work, notice, rest])
    command = [sys.executable, "-W", "error", "-c", PROGRAM, work]
    pipes = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    return subprocess.Popen(command, env=env, **pipes, **options)


def finish(process):
    """Its exit code, stdout and stderr; both end only when the process that kept time has ended."""
    out, err = process.communicate(timeout=60)
    return process.returncode, out.decode(), err.decode(errors="replace")


# The last one backtracks nowhere, so `re` never sees a signal; it takes some 80 s.
ENDLESS = [
    ("re", "(a+)+b", "a", 60),
    ("regex", "(a|aa)+$", "a", 60),
    ("re", r"\s*x", " ", 1_000_000),
]


@pytest.mark.parametrize("work", ENDLESS)
def test_an_endless_pattern_is_given_up(work):
    code, out, err = finish(start(*work))
    assert code == ENDED
    assert out.splitlines() == [repr(name.encode()) for name in ("“I”", "“II”")]
    (line,) = err.splitlines()
    assert line.startswith("Error: document ")
    assert f"II”', {work[3] + 1:,} characters, cut by {work[1]!r}: given up after 1 s. " in line
    assert line.endswith("set the environment variable BYTEPAIR_PATIENCE to more seconds.")


def test_slow_work_is_said_to_be_slow_and_goes_on():
    process = start("wait", "a|b", "a", 2, notice=1, patience=5)
    for expected in ("I”', 3 characters, ", "II”', 3 characters, "):
        line = process.stderr.readline().decode(errors="replace")
        assert line.startswith("Warning: document ")
        assert f"{expected}cut by 'a|b': not done after 1 s. " in line
        assert line.endswith("The stage is given up after 5 s.\n")
        process.stdin.write(b"\n")
        process.stdin.flush()
    code, out, err = finish(process)
    assert (code, out.splitlines()[-1], err) == (0, "done", "")


def test_after_the_last_document_no_time_counts():
    assert finish(start("re", "a|b", "a", 2, patience=1, rest=1.8))[::2] == (0, "")


def test_no_one_is_left_when_the_stage_has_vanished():
    code, out, err = finish(start("vanish", "a", "a", 1, patience=60))
    assert (code, len(out.splitlines()), err) == (7, 1, "")


@pytest.mark.skipif(os.name == "nt", reason="Windows sends Ctrl-C to a console, not a process")
def test_an_interrupt_is_the_stages_own():
    process = start("re", "(a+)+b", "a", 60, patience=60, start_new_session=True)
    for _ in range(2):
        process.stdout.readline()
    time.sleep(0.3)
    os.killpg(process.pid, signal.SIGINT)  # what a terminal does
    code, _, err = finish(process)
    assert (code, err.splitlines()[-1]) == (-signal.SIGINT, "KeyboardInterrupt")
    assert err.count("Traceback") == 1


def test_documents_pass_unchanged_and_without_a_pattern_nothing_is_started(monkeypatch):
    documents = [Document("I", "aab"), Document("II", "")]
    with Watch("a+") as watch:
        assert list(watch.over(documents)) == documents
    monkeypatch.setattr(subprocess, "Popen", None)
    with Watch(None) as watch:
        assert list(watch.over(documents)) == documents


@pytest.mark.parametrize("value", ["", "0", "-1", "1.5", "ten", "٣"])
def test_a_limit_is_whole_seconds(value, monkeypatch):
    monkeypatch.setenv("BYTEPAIR_PATIENCE", value)
    with pytest.raises(ParamsError, match=f"BYTEPAIR_PATIENCE is '{value}'.*as {LIMIT_SECONDS}"):
        Watch(None)


TEXT = "aab ab\n" * 3 + "a" * 60 + "c\n"
PARAMS = f"""
corpora:
  letters:
    fetch:
      sources: [letters.txt]
      file: letters.txt
      raw_sha256: ["{sha256(TEXT.encode())}"]
    strip: {{}}
    split:
      by: characters
      ranges:
        - {{name: harmless, start: 0, end: 21, split: train}}
        - {{name: endless, start: 21, end: 83, split: %s}}
tokenizers:
  letters-258:
    corpus: letters
    chunks: {{pattern: {{regex: "(a+)+b"}}, special_tokens: []}}
    train: {{vocab_size: 258}}
    encode: {{}}
    baseline: {{}}
    report: {{}}
"""


def run(project, script, name):
    env = pipeline.environment(pipeline.ROOT, BYTEPAIR_PATIENCE="1")
    path = str(pipeline.ROOT / "stages" / script)
    result = pipeline.run_stage(project, path, name, env=env, check=False)
    return result.returncode, result.stderr.decode()


@pytest.fixture(params=["train", "val"])
def project(request, tmp_path):
    """A project whose document `endless` stands in the split named, up to its splits."""
    (tmp_path / "letters.txt").write_bytes(TEXT.encode())
    (tmp_path / "params.yaml").write_text(PARAMS.replace("%s", request.param))
    for script in ("fetch.py", "strip.py", "split.py"):
        assert run(tmp_path, script, "letters") == (0, "")
    return request.param, tmp_path


def test_a_stage_gives_up_and_leaves_nothing_half_done(project):
    split, folder = project
    name = "letters-258"
    output = folder / "data" / "tokenizers" / name
    if split == "val":
        assert run(folder, "count_chunks.py", name)[0] == 0
        assert run(folder, "train_tokenizer.py", name)[0] == 0
    script = "count_chunks.py" if split == "train" else "encode_splits.py"
    code, err = run(folder, script, name)
    assert code == ENDED
    assert err.startswith("Error: document 'endless', 62 characters, cut by '(a+)+b': given up")
    assert len(err.splitlines()) == 1
    assert not (output / ("counts" if split == "train" else "tokens/val")).exists()
    assert not list(folder.rglob("*.tmp"))
