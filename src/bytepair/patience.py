r"""Say when a pattern takes long over a document, and end the stage when it takes too long.

A pattern such as `(a+)+b` may need longer than anyone will wait. Python cannot say so from inside:
while `re` matches, no other thread runs, and it looks for signals only now and then (`\s*x` went
through 200,000 spaces in 3 s without looking once). So a second process keeps the time. It can
print a line and it can end the stage; what the stage writes, it has no way to change.

Meant for patterns of one's own: those in `patterns.PRESETS` are known to take linear time.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import queue
import signal
import sys
import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any, Protocol, Self, TypeVar

if TYPE_CHECKING:
    import subprocess
    from types import TracebackType

NOTICE_SECONDS = 10

# A document is allowed so long, and a second more for each so many characters. With a harmless
# pattern, encoding takes 900,000 and more in a second, and counting 1,200,000.
LIMIT_SECONDS = 600
CHARACTERS_PER_SECOND = 100_000


class _Document(Protocol):
    @property
    def name(self) -> str: ...
    @property
    def text(self) -> str: ...


_DocumentT = TypeVar("_DocumentT", bound=_Document)


class Watch:
    """Watches the time that a pattern takes over each document; a pattern of None is not watched.

        with Watch(pattern) as watch:
            for document in watch.over(documents):
                ...

    The environment variable BYTEPAIR_PATIENCE replaces LIMIT_SECONDS.
    """

    def __init__(self, pattern: str | None, *, notice_seconds: int = NOTICE_SECONDS) -> None:
        self._pattern = pattern
        self._notice_seconds = notice_seconds
        self._limit_seconds = _limit_seconds()
        self._keeper: subprocess.Popen[bytes] | None = None

    def __enter__(self) -> Self:
        if self._pattern is not None:
            import subprocess

            self._keeper = subprocess.Popen(  # noqa: S603 - it is this very file
                [sys.executable, "-I", "-S", __file__, str(os.getpid())],
                bufsize=0,
                stdin=subprocess.PIPE,
                stdout=subprocess.DEVNULL,
            )
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        if self._keeper is not None:
            self._keeper.kill()
            self._keeper.communicate()  # closes the pipe and waits

    @property
    def is_on(self) -> bool:
        """Whether there is a pattern to watch."""
        return self._pattern is not None

    def over(self, documents: Iterable[_DocumentT]) -> Iterator[_DocumentT]:
        """The same documents; each is timed from when it is given out to when the next is."""
        for document in documents:
            size = len(document.text)
            subject = f"document {document.name!r:.80}, {size:,} characters"
            self.begin(subject, size // CHARACTERS_PER_SECOND)
            yield document
        self.end()

    def begin(self, subject: str, extra_seconds: int = 0) -> None:
        """Begin to time something, and leave off with what was before."""
        work = f"{subject}, cut by {self._pattern!r:.200}"
        self._tell([work, self._notice_seconds, self._limit_seconds + extra_seconds])

    def end(self) -> None:
        """Leave off until something else begins."""
        self._tell(None)

    def _tell(self, message: Any) -> None:
        if self._keeper is not None and self._keeper.stdin is not None:
            with contextlib.suppress(OSError):  # someone has ended it: go on without
                self._keeper.stdin.write(json.dumps(message).encode() + b"\n")


def _limit_seconds() -> int:
    value = os.environ.get("BYTEPAIR_PATIENCE", str(LIMIT_SECONDS))
    if not (value.isascii() and value.isdecimal() and int(value)):
        from bytepair.errors import ParamsError

        raise ParamsError(
            f"the environment variable BYTEPAIR_PATIENCE is {value!r}: write whole seconds, such "
            f"as {LIMIT_SECONDS}, or unset it."
        )
    return int(value)


# What follows runs in the second process, which can import nothing of ours.

_NOTICE = (
    "Warning: {}: not done after {} s. A pattern with nested repeats such as (a+)+ may never be. "
    "The stage is given up after {} s."
)
_END = (
    "Error: {}: given up after {} s. Rewrite nested repeats such as (a+)+ so that a text can match "
    "in one way only, or set the environment variable BYTEPAIR_PATIENCE to more seconds."
)


def keep_time(stage: int) -> None:
    """Learn from stdin what the process `stage` is at, and end it when that takes too long."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the stage's; stdin ends with it
    lines: queue.SimpleQueue[str] = queue.SimpleQueue()
    threading.Thread(target=_read, args=(lines,), daemon=True).start()
    line = lines.get()
    while line:
        work, notice, limit = json.loads(line) or (None, 0, 0)
        # Seconds are counted, not measured, so none go by while both processes are suspended.
        for seconds in itertools.count(1):
            try:
                line = lines.get(timeout=1 if work else None)
                break
            except queue.Empty:
                if seconds == limit:
                    _say(_END.format(work, seconds))
                    os.kill(stage, signal.SIGTERM)
                    work = None
                elif seconds == notice:
                    _say(_NOTICE.format(work, seconds, limit))


def _read(lines: queue.SimpleQueue[str]) -> None:
    for line in sys.stdin:
        lines.put(line)
    lines.put("")


def _say(line: str) -> None:
    print(line, file=sys.stderr, flush=True)  # noqa: T201 - a process of its own


if __name__ == "__main__":
    keep_time(int(sys.argv[1]))
