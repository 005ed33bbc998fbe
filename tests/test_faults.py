"""What survives a fault, and what is refused; the faults themselves are made in faults.py.

The first tests try a few of each kind. All of them are slow, and counted in the README.
"""

import subprocess
import sys

import pytest

import faults
import pipeline
from faults import KINDS, Lab, Unavailable


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    return Lab(tmp_path_factory.mktemp("faults"))


def all_good(outcomes):
    tried = 0
    try:
        for outcome in outcomes:
            assert outcome.good, outcome
            tried += 1
    except Unavailable as reason:
        pytest.skip(str(reason))
    assert tried


FEW = {
    "kills": {"stages": ("fetch@sample",)},
    "file_limit": {"stages": ("strip@sample",)},
    "full_disk": {"stages": ("train-tokenizer@sample-512",)},
    "read_only": {"stages": ("fetch@sample", "measure@sample-512")},
    "no_network": {},
    "damaged": {
        "names": [
            "data/corpora/sample/raw/raw.txt",
            "data/tokenizers/sample-512/tokens/val/tokens.npy",
        ]
    },
    "swapped": {"parts": ("bpe.json", "tokens/")},
    "wrong_params": {"blocks": (("tokenizers", "sample-512"),)},
}


@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.__name__)
def test_a_few(lab, kind):
    all_good(kind(lab, **FEW[kind.__name__]))


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS.values(), ids=lambda kind: kind.__name__)
def test_all(lab, kind):
    all_good(kind(lab))


def test_params_as_they_are_pass(lab):
    """Else all that is refused after rewriting would prove nothing."""
    lab.restore()
    with faults.rewritten(lab, lab.params):
        for name in faults.STAGES:
            assert lab.run(lab.steps[name])[0] == 0
    assert lab.state() == lab.good


@pytest.mark.slow
def test_after_a_kill_dvc_makes_the_same_lock(tmp_path):
    """Also where the killed process left a temporary file in a folder that DVC keeps."""
    project = pipeline.copy_project(tmp_path / "project")
    env = pipeline.environment(project, CORPUS_CACHE=None)

    def run(*command):
        return subprocess.run(command, cwd=project, env=env, check=True, capture_output=True)

    run("git", "init", "--quiet")
    dvc = (sys.executable, "-m", "dvc", "repro", "--quiet", "split@sample")
    run(*dvc)
    lock = (project / "dvc.lock").read_bytes()
    folder = project / "data" / "corpora" / "sample" / "raw"
    (folder / "raw.txt").unlink()
    command = (sys.executable, "-c", faults.FAULTY, "3", "-1", "stages/fetch.py", "sample")
    with pytest.raises(subprocess.CalledProcessError) as killed:
        run(*command)
    assert killed.value.returncode == -9
    assert list(folder.glob(".raw.txt.*.tmp"))
    run(*dvc)
    assert (project / "dvc.lock").read_bytes() == lock
