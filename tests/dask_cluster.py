"""A Dask cluster of processes of its own, and waiting for what they do."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

import psutil

TESTS = Path(__file__).parent


def wait_until(condition, seconds=60):
    """Wait until a condition holds; fail if it does not within so many seconds."""
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "waited in vain"
        time.sleep(0.01)


class DaskCluster:
    """A scheduler and workers started as a person would: `dask scheduler`, `dask worker`.

    They end with the `with` block. Logs are in `folder`, which is made.
    """

    def __init__(self, folder):
        folder.mkdir()
        self.folder = folder
        self.processes = []
        self._start("scheduler", "--port", "0", "--dashboard-address", ":0", "--host", "127.0.0.1",
                    "--scheduler-file", str(folder / "scheduler.json"))  # fmt: skip
        wait_until((folder / "scheduler.json").exists)

    @property
    def address(self):
        return json.loads((self.folder / "scheduler.json").read_text())["address"]

    def start_worker(self, *options, **environment):
        return self._start("worker", self.address, "--nthreads", "1", "--local-directory",
                           str(self.folder), *options, **environment)  # fmt: skip

    def _start(self, *command, **environment):
        with (self.folder / f"log{len(self.processes)}").open("wb") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "dask", *command],
                env={**os.environ, "PYTHONPATH": str(TESTS), **environment},
                stdout=subprocess.DEVNULL,
                stderr=log,
            )
        self.processes.append(process)
        return process

    def __enter__(self):
        return self

    def __exit__(self, *_):
        for process in self.processes:
            if process.poll() is None:
                for one in (*psutil.Process(process.pid).children(recursive=True), process):
                    one.kill()
                process.wait()
