"""Where tasks run: in this process, in worker processes, on a Dask cluster.

No result depends on it.

Another engine is one short file, such as engines/serial.py, and a line in ENGINES below:

    class MpiEngine:
        dashboard = None

        def __init__(self, params: EngineParams) -> None: ...
        def __enter__(self) -> Self: ...             # start workers
        def __exit__(self, *_: object) -> None: ...  # leave none behind, on Ctrl-C neither

        def map(self, function, tasks):              # see Engine.map
            for number, future in in_any_order(...):
                yield number, future.result()
"""

from __future__ import annotations

import pickle
import signal
import sys
import threading
import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext, suppress
from dataclasses import dataclass
from importlib import import_module
from typing import Any, Protocol, Self, TypeVar

from bytepair.errors import BytepairError

T = TypeVar("T")
R = TypeVar("R")
Map = Callable[[Callable[[T], R], Sequence[T]], Iterator[tuple[int, R]]]
"""As Engine.map is."""

MEMORY = 1_000_000_000  # bytes that a worker may have, where params do not say
TRIES = 3  # how often a task is begun whose workers die

ENGINES = {
    "serial": ("bytepair.engines.serial", "SerialEngine"),
    "processes": ("bytepair.engines.processes", "ProcessesEngine"),
    "dask": ("bytepair.engines.dask", "DaskEngine"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineParams:
    """The block `engine` of params.yaml.

    Attributes:
        name: one of ENGINES.
        workers: how many; None is one a core.
        memory: bytes that a worker may have.
        address: of a Dask scheduler; None starts a cluster on this machine.
        store: a path or URL for what is made of each shard, which all workers reach; None is a
            folder of the project.
    """

    name: str = "processes"
    workers: int | None = None
    memory: int = MEMORY
    address: str | None = None
    store: str | None = None


class WorkerLostError(BytepairError):
    """Workers died over a task, again and again."""

    def __init__(self, task: object, tries: int, how: str) -> None:
        super().__init__(
            f"{task}: {tries} workers died over it ({how}). If the system killed them for their "
            "memory, lower engine.memory or engine.workers in params.yaml; what is done is kept."
        )


class Engine(Protocol):
    """Workers, from the beginning of a `with` block to its end."""

    @property
    def dashboard(self) -> str | None:
        """The address of a page that shows what is going on, if there is one."""

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
        """The number and result of each task, as they come: in any order.

        Function, tasks and results can be pickled, and what a task writes may be written twice. A
        bounded number is under way at a time. A task whose worker dies is begun again, TRIES times
        in all.

        Raises:
            WorkerLostError: that was not enough; the message has `str(task)`.
            Exception: what the function raised, as soon as it does; no more tasks are begun.
        """

    def __enter__(self) -> Self: ...
    def __exit__(self, *_: object) -> None: ...


@contextmanager
def open_engine(params: EngineParams) -> Iterator[Engine]:
    """The engine that params name.

    SIGTERM, by which a cluster ends a job, now ends this process as Ctrl-C does: workers are
    stopped and their scratch files removed. The serial engine leaves it alone, since a pattern may
    have to be ended by it; see patience.py.
    """
    module, name = ENGINES[params.name]
    engine: Any = getattr(import_module(module), name)
    with engine(params) as opened, nullcontext() if name == "SerialEngine" else _exit_by_sigterm():
        yield opened


@contextmanager
def _exit_by_sigterm() -> Iterator[None]:
    if threading.current_thread() is not threading.main_thread():  # who alone may set handlers
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def attempt(function: Callable[[T], R], task: T) -> tuple[bool, Any]:
    """What a worker does: whether the task succeeds, and its result or the exception.

    An exception comes through a pipe, and has its traceback with it if it is a bug.
    """
    try:
        return True, function(task)
    except BaseException as error:  # noqa: BLE001  it is raised where the engine is
        return False, portable(error)


def portable(error: BaseException) -> Exception:
    """An exception that can be pickled, or one that shows it."""
    shown = "".join(traceback.format_exception(error))
    if isinstance(error, Exception):
        if not isinstance(error, BytepairError | OSError):
            error.add_note(f"in a worker:\n{shown}")
        with suppress(Exception):
            pickle.loads(pickle.dumps(error))  # noqa: S301
            return error
    return BytepairError(shown)


@contextmanager
def no_interrupts() -> Iterator[None]:
    """Processes that begin in the block never see Ctrl-C: their parent does, and ends them."""
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing import resource_tracker

    resource_tracker.ensure_running()  # which, started later, would let the signal through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
