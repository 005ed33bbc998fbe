"""docs/own-model.md, followed word for word in a copy of the project, with the real DVC."""

import doctest
import importlib.util
import json
import re
import subprocess
import sys

import numpy as np
import pytest

import pipeline
from bytepair import Tokenizer, files
from bytepair.errors import ArtifactError

DOC = (pipeline.ROOT / "docs" / "own-model.md").read_text(encoding="utf-8")
HAS_TORCH = importlib.util.find_spec("torch") is not None
BACKEND = "torch" if HAS_TORCH else "numpy"


def blocks(language):
    return re.findall(rf"(?ms)^```{language}\n(.*?)^```", DOC)


def shell(project, command, *, check=True):
    words = {"dvc": [sys.executable, "-m", "dvc"], "python": [sys.executable]}
    name, *arguments = command.split()
    return subprocess.run(
        [*words.get(name, [name]), *arguments],
        cwd=project,
        env=pipeline.environment(project, DVC_NO_ANALYTICS="1", OPENBLAS_NUM_THREADS="1"),
        check=check,
        capture_output=True,
        text=True,
        encoding="utf-8",
    )


def stages_run(output):
    return set(re.findall(r"Running stage '([^']+)'", output))


def example():
    path = pipeline.ROOT / "examples" / "torch_stage.py"
    spec = importlib.util.spec_from_file_location("torch_stage", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def project(tmp_path_factory):
    """A copy of the project in which all blocks were added and all commands run."""
    project = pipeline.copy_project(tmp_path_factory.mktemp("own") / "project")
    params, stage = blocks("yaml")
    for name, block in (("params.yaml", params), ("dvc.yaml", stage)):
        text = (project / name).read_text(encoding="utf-8")
        text += block.replace("backend: torch", f"backend: {BACKEND}")
        (project / name).write_text(text, encoding="utf-8", newline="\n")
    shell(project, "git init -q")
    for command in re.findall(r"(?m)^\$ (.*)$", "".join(blocks("console"))):
        output = shell(project, command).stdout
        (project / f"{command.split()[1]}.out").write_text(output, encoding="utf-8")
    return project


def test_the_stage_runs_after_its_tokenizer_and_shows_its_figure(project):
    ran = stages_run((project / "repro.out").read_text(encoding="utf-8"))
    assert {"encode-splits@sample-512", "baseline@sample-512", "model@bigram"} <= ran
    metrics = json.loads((project / "metrics/models/bigram.json").read_bytes())
    shown = (project / "metrics.out").read_text(encoding="utf-8")
    assert re.search(r"metrics.models.bigram\.json", shown)
    baseline = files.read_record(project / "data/tokenizers/sample-512/baseline/baseline.json")
    assert metrics["val"]["bits_per_byte"] < baseline["val"]["unigram"]["bits_per_byte"]


def test_the_manifest_names_what_it_was_made_from(project):
    folder = project / "data/models/bigram"
    manifest = files.read_record(folder / "manifest.json")
    tokenizer = project / "data/tokenizers/sample-512"
    assert manifest["tokenizer_sha256"] == Tokenizer.load(tokenizer / "bpe.json").sha256
    for split in ("train", "val"):
        data = (tokenizer / "tokens" / split / "tokens.npy").read_bytes()
        assert manifest[f"{split}_tokens_sha256"] == files.sha256(data)
    assert manifest["weights_sha256"] == files.sha256((folder / "weights.npz").read_bytes())


def test_the_comparison_that_is_shown(project, monkeypatch):
    monkeypatch.chdir(project)
    (shown,) = blocks("python")
    test = doctest.DocTestParser().get_doctest(shown, {}, "own-model.md", None, 0)
    assert doctest.DocTestRunner(optionflags=doctest.ELLIPSIS).run(test).failed == 0


def test_the_model_is_refused_to_another_tokenizer(project):
    module, folder = example(), project / "data/models/bigram"
    weights = module.load(folder, Tokenizer.load(project / "data/tokenizers/sample-512/bpe.json"))
    assert sorted(array.size for array in weights.values()) == [512 * 32] * 2
    other = Tokenizer.load(project / "data/tokenizers/sherlock-512/bpe.json")
    with pytest.raises(ArtifactError, match=f"manifest.json.*{other.sha256}.*its stage model must"):
        module.load(folder, other)


def test_again_nothing_runs_and_by_hand_the_same_bytes_come(project):
    assert stages_run(shell(project, "dvc repro model@bigram").stdout) == set()
    made = [*(project / "data/models/bigram").iterdir(), project / "metrics/models/bigram.json"]
    before = {path: path.read_bytes() for path in made}
    assert len(before) == 3
    shell(project, "python examples/torch_stage.py bigram")
    assert {path: path.read_bytes() for path in made} == before


def test_arrays_of_another_tokenizer_are_refused(project):
    bpe = project / "data/tokenizers/sample-512/bpe.json"
    own = bpe.read_bytes()
    bpe.write_bytes((project / "data/tokenizers/sherlock-512/bpe.json").read_bytes())
    run = shell(project, "python examples/torch_stage.py bigram", check=False)
    bpe.write_bytes(own)
    assert run.returncode == 1
    assert re.match(r"Error: .*index\.json: made with the tokenizer whose sha256 is", run.stderr)


def test_both_backends_are_the_same_model():
    pytest.importorskip("torch", reason=f"no PyTorch here: the page was run with {BACKEND}")
    module, random = example(), np.random.default_rng(0)
    ours, theirs = (
        backend(20, width=4, rate=2.0, seed=0) for backend in (module.NumpyModel, module.TorchModel)
    )
    embedding, linear = (array.astype(np.float64) for array in theirs.weights().values())
    ours.embedding, ours.linear = embedding, linear.T.copy()
    for _ in range(50):
        before, after = random.integers(0, 20, (2, 30)).astype(np.uint16)
        ours.learn(before, after)
        theirs.learn(before, after)
    assert ours.nats(before, after) == pytest.approx(theirs.nats(before, after), rel=1e-4)
