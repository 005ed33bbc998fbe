"""Fixtures that more than one test file uses."""

import os
from pathlib import Path

import pytest


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
