"""Fixtures that more than one test file uses."""

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

import headless
import pipeline
import report_page
import sharded
from bytepair import Tokenizer
from bytepair.layout import TokenizerPaths

# No time limits, since a busy machine is no defect; 100 examples where a test says no number.
settings.register_profile("default", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("default")
# `make test-slow` selects this.
settings.register_profile(
    "slow", max_examples=5_000, deadline=None, derandomize=False, print_blob=True
)


@pytest.fixture(scope="session")
def corpus_cache():
    """Find a published corpus in the folder CORPUS_CACHE; without one, skip or fail."""

    def find(file_name: str) -> Path:
        folder = os.environ.get("CORPUS_CACHE")
        path = Path(folder or ".") / file_name
        if folder and path.is_file():
            return path
        reason = f"needs {file_name}: put it into a folder and set CORPUS_CACHE to that folder"
        if os.environ.get("BYTEPAIR_REQUIRE_CORPORA") == "1":
            pytest.fail(reason)
        pytest.skip(reason)

    return find


@pytest.fixture(scope="session")
def browser():
    """A headless Chromium; without one, skip or fail."""
    with headless.chromium() as found:
        if isinstance(found, str):
            if os.environ.get("BYTEPAIR_REQUIRE_BROWSER") == "1":
                pytest.fail(found)
            pytest.skip(found)
        yield found


@pytest.fixture(scope="session")
def sample_project(tmp_path_factory):
    """A copy of the project in which the stages of the bundled sample have run; not to be changed."""
    project = pipeline.copy_project(tmp_path_factory.mktemp("sample"))
    pipeline.run_pipeline(project, only=pipeline.SAMPLE)
    return project


@pytest.fixture(scope="session")
def sharded_project(tmp_path_factory):
    """A copy of the project in which the stages of the shards `web` have run, in one process."""
    project = pipeline.copy_project(tmp_path_factory.mktemp("sharded"))
    sharded.write_shards(project / "web")
    (project / "params.yaml").write_text(
        sharded.params(["web/*"], engine={"name": "serial"}), encoding="utf-8"
    )
    sharded.run_stages(project)
    return project


@pytest.fixture(scope="session")
def project(corpus_cache, tmp_path_factory):
    """A copy of the project in which every stage has run; not to be changed."""
    for name in ("pg1661.txt", "tinyshakespeare.txt"):
        corpus_cache(name)
    project = pipeline.copy_project(tmp_path_factory.mktemp("project"))
    pipeline.run_pipeline(project)
    return project


@pytest.fixture(scope="session")
def sample_page(sample_project, tmp_path_factory):
    """The report of the bundled sample, as the command writes it."""
    path = tmp_path_factory.mktemp("report") / "sample-512.html"
    report_page.bytepair(sample_project, "report", "sample-512", "--output", str(path))
    return path


@pytest.fixture(scope="session")
def sample(sample_project):
    return Tokenizer.load(TokenizerPaths(sample_project, "sample-512").bpe)
