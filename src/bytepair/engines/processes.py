"""Worker processes on this machine.

The standard library's pools give up, or wait for ever, when a worker is killed; here it is replaced
and its task begun again. A worker has one task at a time, so it is known which one it died over.
Workers are spawned, as on every system, and end when this process does, however it ends.
"""

from __future__ import annotations

import multiprocessing
import os
import pickle
import shutil
import signal
import tempfile
import threading
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.process import BaseProcess
from typing import Any, Self, TypeVar

from bytepair.engine import (
    TRIES,
    EngineParams,
    WorkerLostError,
    attempt,
    no_interrupts,
    portable,
)
from bytepair.kernel.threads import as_threads

T = TypeVar("T")
R = TypeVar("R")

_START = -1  # the number of a worker's first answer, to no task
_GRACE = 2  # seconds that workers have to end after SIGTERM


class ProcessesEngine:
    """As many processes as there are cores, unless params say otherwise."""

    dashboard = None

    def __init__(self, params: EngineParams) -> None:
        self._number = as_threads(params.workers)
        self._workers: list[_Worker] = []

    def __enter__(self) -> Self:
        # What a killed worker leaves here goes with the folder.
        self._scratch = tempfile.TemporaryDirectory(prefix="bytepair-", ignore_cleanup_errors=True)
        return self

    def __exit__(self, *_: object) -> None:
        self._stop(self._workers)
        self._scratch.cleanup()

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
        """See Engine.map."""
        waiting = deque(range(len(tasks)))
        deaths = dict.fromkeys((_START, *waiting), 0)
        while len(self._workers) < min(self._number, len(tasks)):
            self._workers.append(_Worker(self._scratch.name))
        try:
            while waiting or any(worker.is_busy for worker in self._workers):
                for worker in wait_for_some(self._workers):
                    number, answer = worker.take()
                    if answer is None:  # it has died
                        deaths[number] += 1
                        worker.join()
                        self._workers.remove(worker)
                        if deaths[number] == TRIES:
                            what = "the start of a worker" if number == _START else tasks[number]
                            raise WorkerLostError(what, TRIES, worker.end())
                        if number != _START:
                            waiting.appendleft(number)
                        self._workers.append(_Worker(self._scratch.name))
                    elif number != _START:
                        succeeded, value = answer
                        if not succeeded:
                            raise value
                        yield number, value
                _give(self._workers, waiting, function, tasks)
        finally:
            self._stop([worker for worker in self._workers if worker.is_busy])

    def _stop(self, workers: Sequence[_Worker]) -> None:
        for worker in workers:
            worker.stop()
        for worker in workers:
            worker.join()
        self._workers = [worker for worker in self._workers if worker not in workers]


def _give(
    workers: Sequence[_Worker],
    waiting: deque[int],
    function: Callable[[T], R],
    tasks: Sequence[T],
) -> None:
    """A task for each worker that has none, as long as there are some."""
    for worker in workers:
        if worker.number is None and waiting:
            number = waiting.popleft()
            worker.give(number, function, tasks[number])


def wait_for_some(workers: Sequence[_Worker]) -> list[_Worker]:
    """Those that have answered or died, of those that owe an answer; at least one, if any do."""
    owing = {worker.pipe: worker for worker in workers if worker.number is not None}
    return [owing[pipe] for pipe in wait(list(owing))] if owing else []  # type: ignore[index]


class _Worker:
    """A process, the pipe to it, and the number of its task."""

    def __init__(self, scratch: str) -> None:
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.number: int | None = _START
        self._process: BaseProcess = context.Process(target=_work, args=(theirs, scratch))
        with no_interrupts():
            self._process.start()
        theirs.close()  # so that the end of the process is the end of the pipe

    @property
    def is_busy(self) -> bool:
        """Whether it has a task; at its start it has none."""
        return self.number not in {None, _START}

    def give(self, number: int, function: Callable[[T], R], task: T) -> None:
        self.number = number
        data = pickle.dumps((function, task))  # what cannot be pickled is an error here, not there
        with suppress(BrokenPipeError, ConnectionResetError):  # it has died: `take` will see
            self.pipe.send_bytes(data)

    def take(self) -> tuple[int, tuple[bool, Any] | None]:
        """The number of its task and what came of it; None if it has died."""
        number, self.number = self.number, None
        try:
            data = self.pipe.recv_bytes()
        except (EOFError, OSError):  # it may have died in the middle of its answer
            return number, None  # type: ignore[return-value]
        return number, pickle.loads(data)  # type: ignore[return-value]  # noqa: S301  ours

    def stop(self) -> None:
        self._process.terminate()

    def join(self) -> None:
        self._process.join(_GRACE)
        if self._process.is_alive():
            self._process.kill()
            self._process.join()
        self.pipe.close()

    def end(self) -> str:
        """How it ended, in words."""
        code = self._process.exitcode or 0
        return f"the last by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _work(pipe: Connection, scratch: str) -> None:
    """What a worker does."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the parent's, who ends the workers
    threading.Thread(target=_end_with_parent, args=(scratch,), daemon=True).start()
    tempfile.tempdir = scratch
    pipe.send((True, None))
    while True:
        try:
            function, task = pickle.loads(pipe.recv_bytes())  # noqa: S301  from the parent
        except EOFError:
            return
        except Exception as error:  # noqa: BLE001  a module that is not there, say
            pipe.send((False, portable(error)))
            continue
        pipe.send(attempt(function, task))


def _end_with_parent(scratch: str) -> None:
    parent = multiprocessing.parent_process()
    if parent is not None:
        parent.join()
    shutil.rmtree(scratch, ignore_errors=True)  # it was the parent's to remove
    os._exit(1)
