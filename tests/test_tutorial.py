"""docs/tutorial.md prints what it says it prints; tools/run_tutorial.py writes it so."""

import re
import subprocess
import sys

import pytest

import pipeline

TOOL = pipeline.ROOT / "tools" / "run_tutorial.py"
TUTORIAL = (pipeline.ROOT / "docs" / "tutorial.md").read_text(encoding="utf-8")


def run(folder, *options):
    return subprocess.run(
        [sys.executable, TOOL, *options],
        cwd=folder,
        env=pipeline.environment(pipeline.ROOT, PYTHONUTF8="1", PYTHONHASHSEED="3"),
        check=False,
        capture_output=True,
        encoding="utf-8",
    )


def test_with_the_sample_alone(sample_project):
    result = run(sample_project, "--check")
    assert (result.returncode, result.stderr) == (0, "")
    gated = re.findall(r"(?m)^<!-- needs ([\w-]+) -->$", TUTORIAL)
    assert set(gated) == {"shakespeare", "sherlock"}
    assert result.stdout.splitlines() == [
        f"docs/tutorial.md: {gated.count(name)} blocks not run, without the corpus {name}"
        for name in ("shakespeare", "sherlock")
    ]


def test_with_all_corpora(project):
    result = run(project, "--check")
    assert (result.returncode, result.stdout, result.stderr) == (0, "", "")


def test_every_block_is_python_that_is_run_or_marked():
    fences = re.findall(r"(?m)^```(\w*)$", TUTORIAL)
    assert fences[::2] == ["python"] * len(fences[::2])
    assert len(fences) > 50
    for block in re.findall(r"(?ms)^```python\n(.*?)^```$", TUTORIAL):
        assert block.startswith(">>> ")
    (error,) = re.findall(r"(?m)^Traceback.*\n(.*)$", TUTORIAL)
    assert error.startswith("bytepair.errors.TokenError: ")


def test_links_lead_somewhere():
    links = re.findall(r"\]\(([^)#]+)", TUTORIAL)
    assert links
    for link in links:
        assert (pipeline.ROOT / "docs" / link).is_file(), link


BEFORE = """\
# A title

```python
>>> for n in range(2):
...     print(n, "é")
stale
>>> 1 / 0
```

<!-- needs atlantis -->
```python
>>> documents("atlantis", "train")
'lost'
```
"""
AFTER = BEFORE.replace("stale\n", "0 é\n1 é\n").replace(
    ">>> 1 / 0\n",
    ">>> 1 / 0\nTraceback (most recent call last):\nZeroDivisionError: division by zero\n",
)


@pytest.fixture
def stale(tmp_path):
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "tutorial.md").write_text(BEFORE, encoding="utf-8", newline="\n")
    return tmp_path


def test_what_is_stale_is_shown_and_left(stale):
    result = run(stale, "--check")
    assert result.returncode == 1
    assert result.stdout == "docs/tutorial.md: 1 blocks not run, without the corpus atlantis\n"
    changes = [line for line in result.stderr.splitlines() if re.match(r"[-+](?![-+])", line)]
    assert changes == [
        "-stale", "+0 é", "+1 é", "+Traceback (most recent call last):",
        "+ZeroDivisionError: division by zero",
    ]  # fmt: skip
    assert (stale / "docs" / "tutorial.md").read_text(encoding="utf-8") == BEFORE


def test_the_tool_writes_what_runs(stale):
    assert run(stale).returncode == 0
    assert (stale / "docs" / "tutorial.md").read_text(encoding="utf-8") == AFTER
    assert run(stale, "--check").returncode == 0
    assert run(stale).returncode == 0
    assert (stale / "docs" / "tutorial.md").read_text(encoding="utf-8") == AFTER
