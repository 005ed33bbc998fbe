"""What the tests of engines have workers do; workers import it, so it is no test file."""

import gc
import os
import signal
import struct
import sys
import time
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path


@dataclass(frozen=True)
class Shard:
    """A task that says its name in messages."""

    name: str
    folder: str

    def __str__(self):
        return self.name

    def note(self):
        """Tell the test which process is at work."""
        path = Path(self.folder) / f"{self.name}-{os.getpid()}"
        path.touch()


def square(number):
    return number * number


def process(number):
    time.sleep(0.05)
    return os.getpid()


def wait_for_the_end(shard):
    """At work until the test says so, by a file."""
    shard.note()
    end = time.monotonic() + 60
    while not (Path(shard.folder) / "end").exists() and time.monotonic() < end:
        time.sleep(0.01)
    return shard.name


def die(shard):
    shard.note()
    if shard.name == "poison":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.05)
    return shard.name


def leave(shard):
    os._exit(7)


class HardError(Exception):
    """An exception that does not come through a pipe."""

    def __init__(self, one, two):
        super().__init__(f"{one} and {two}")


def fail(number):
    if number == 3:
        raise ValueError(f"shard {number} is no good")
    time.sleep(0.05)
    return number


def fail_hard(number):
    raise HardError(number, "more")


def system_error(number):
    raise FileNotFoundError(2, "No such file or directory", "web/0.jsonl")


def recurse(number):
    return recurse(number)


class Panic(BaseException):
    """No Exception, as those of some compiled libraries."""


def panic(number):
    raise Panic(f"at {number}")


def leave_python(number):
    sys.exit(number)


def half_an_answer(shard):
    """Killed in the middle of sending."""
    for pipe in gc.get_objects():
        if isinstance(pipe, Connection) and pipe.writable:
            os.write(pipe.fileno(), struct.pack("!i", 1000) + b"begin")
    die(shard)
