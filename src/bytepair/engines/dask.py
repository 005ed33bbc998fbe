"""A Dask cluster: one that runs already, by the address of its scheduler, or one on this machine.

Tasks go out a few at a time, so that neither scheduler nor client ever holds many. A worker that
is lost is the scheduler's business; a task is given up on when workers died over it TRIES times.
Workers must have the bytepair that this process has, with the kernel if this one has it. On a
worker with several threads, each runs a task and may have engine.memory.
"""

from __future__ import annotations

import multiprocessing
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import CancelledError
from importlib import import_module
from importlib.metadata import version
from typing import Any, Self, TypeVar

from bytepair import __version__
from bytepair.engine import TRIES, EngineParams, WorkerLostError, attempt, no_interrupts
from bytepair.errors import BytepairError
from bytepair.kernel import library
from bytepair.kernel.threads import as_threads

T = TypeVar("T")
R = TypeVar("R")

State = tuple[str, bool, str]  # version of bytepair, whether the kernel is there, and of regex

_ONE_THREAD = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")
CONNECT = 30  # seconds to find the scheduler, and a worker
_AHEAD = 2  # tasks a thread: one that runs, and one that waits for it


class DaskEngine:
    """A client of a cluster."""

    dashboard: str | None = None

    def __init__(self, params: EngineParams) -> None:
        self._params = params
        self._client: Any = None
        self._cluster: Any = None

    def __enter__(self) -> Self:
        address = self._params.address
        method = _begin_to_import() if address is None else ""
        try:
            dask, distributed = (import_module(name) for name in ("dask", "distributed"))
        except ImportError as error:
            raise BytepairError(
                f"engine.name is dask, but: {error}. Install it: pip install 'bytepair[dask]'."
            ) from None
        if address is None:
            # A task that only waited at a worker that died is given again by `map`.
            # What workers are forked from may be older than this environment.
            # And freed memory is kept for the next block, not given back to the system each time:
            # by default Dask sets MALLOC_TRIM_THRESHOLD_ before it starts a worker.
            settings = {
                "distributed.scheduler.allowed-failures": 1,
                "distributed.nanny.environ": {**dict.fromkeys(_ONE_THREAD, "1"), **os.environ},
                "distributed.nanny.pre-spawn-environ": {},
                "distributed.worker.multiprocessing-method": method,
                "distributed.worker.profile.enabled": False,
            }
            with dask.config.set(settings):
                self._cluster = distributed.LocalCluster(
                    n_workers=as_threads(self._params.workers),
                    threads_per_worker=1,
                    processes=True,
                    memory_limit=0,  # tasks keep to engine.memory themselves
                    dashboard_address="127.0.0.1:0",
                )
        try:
            self._client = distributed.Client(address or self._cluster, timeout=CONNECT)
            self._client.wait_for_workers(1, timeout=CONNECT)
            self._check_workers()
        except BaseException as error:
            self.__exit__()
            if isinstance(error, OSError | TimeoutError):
                raise BytepairError(
                    f"engine.address: no Dask scheduler with a worker answers at {address} within "
                    f"{CONNECT} s ({error}). Start `dask scheduler` and `dask worker`."
                ) from None
            raise
        self.dashboard = self._client.dashboard_link
        return self

    def __exit__(self, *_: object) -> None:
        for part in (self._client, self._cluster):
            if part is not None:
                part.close()
        self._client = self._cluster = None

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
        """See Engine.map."""
        distributed: Any = import_module("distributed")
        mine = _state()
        tries = [0] * len(tasks)
        running: dict[Any, int] = {}
        done = distributed.as_completed()

        def give(number: int) -> None:
            tries[number] += 1
            # Not pure: a key of its own, so that nothing is taken from an earlier run.
            future = self._client.submit(_run, mine, function, tasks[number], pure=False)
            running[future] = number
            done.add(future)

        def give_more() -> None:
            most = self._most()
            while len(running) < most and (number := next(following, None)) is not None:
                give(number)

        following = iter(range(len(tasks)))
        try:
            give_more()
            while running:
                future = next(done)
                number = running.pop(future)
                try:
                    succeeded, value = future.result()
                except distributed.KilledWorker as error:
                    if tries[number] == TRIES:
                        raise WorkerLostError(tasks[number], TRIES, str(error)) from None
                    give(number)
                    continue
                finally:
                    future.release()
                if not succeeded:
                    raise value
                give_more()
                yield number, value
        except (CancelledError, distributed.comm.CommClosedError):
            running.clear()
            raise BytepairError(
                "the Dask scheduler has ended, or has lost tasks. Start it if need be, and run "
                "again: what is done is kept."
            ) from None
        finally:
            self._client.cancel(list(running))

    def _most(self) -> int:
        """How many tasks may be under way, now that there are so many workers."""
        threads: int = sum(self._client.nthreads().values())
        return max(1, _AHEAD * threads)

    def _check_workers(self) -> None:
        mine = _state()
        states = self._client.run(_state, on_error="return")
        for worker, state in states.items():
            if isinstance(state, Exception):
                raise BytepairError(
                    f"the Dask worker {worker} cannot import bytepair ({state}). Install bytepair "
                    f"{__version__} there."
                )
            _check_state(worker, state, mine)


def _begin_to_import() -> str:
    """Start the process that workers are forked from, which imports Dask while this one does.

    Gives Dask's name of that way to start workers. It saves half a second of each run.
    """
    if "forkserver" not in multiprocessing.get_all_start_methods():
        return "spawn"
    from multiprocessing import forkserver

    multiprocessing.get_context("forkserver").set_forkserver_preload(["distributed"])
    try:
        with no_interrupts():
            forkserver.ensure_running()
    except OSError:  # its socket lies in TMPDIR, whose path may be too long for one
        return "spawn"
    return "forkserver"


def _state() -> State:
    return __version__, library() is not None, version("regex")


def _check_state(worker: str, state: State, mine: State) -> None:
    def words(state: State) -> str:
        kernel = "with" if state[1] else "without"
        return f"bytepair {state[0]} {kernel} the kernel and regex {state[2]}"

    if state != mine:
        raise BytepairError(
            f"the Dask worker {worker} has {words(state)}, but here is {words(mine)}. Install the "
            "same on both; BYTEPAIR_KERNEL=0 turns a kernel off."
        )


def _run(state: State, function: Callable[[T], R], task: T) -> tuple[bool, Any]:
    """What a worker does; a worker may have joined after the others were checked."""
    from distributed import get_worker

    worker = get_worker()
    _check_state(worker.address, _state(), state)
    tempfile.tempdir = worker.local_directory  # the nanny clears it when the worker dies
    return attempt(function, task)
