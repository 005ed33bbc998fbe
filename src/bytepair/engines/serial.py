"""Tasks one after the other in this process: what every other engine must equal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Self, TypeVar

from bytepair.engine import EngineParams

T = TypeVar("T")
R = TypeVar("R")


class SerialEngine:
    """No workers."""

    dashboard = None

    def __init__(self, params: EngineParams) -> None:
        del params

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None: ...

    def map(self, function: Callable[[T], R], tasks: Sequence[T]) -> Iterator[tuple[int, R]]:
        """See Engine.map."""
        for number, task in enumerate(tasks):
            yield number, function(task)
