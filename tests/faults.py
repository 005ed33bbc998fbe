"""One fault at a time, and what became of the pipeline; used by tests and by tools/evidence.py.

Each kind of fault is a generator of outcomes. A fault is survived if every file is whole (the old
bytes, the new ones, or none at all; raw.txt and bpe.json never get lost), no stage takes a mixture
of old and new files, and the next run makes the right bytes. It is detected if a stage ends with
exit code 1 and names the file, or `bytepair verify` names it. The machine losing power is not
tried: what a killed process has written, the system still has.
"""

import contextlib
import copy
import os
import random
import re
import runpy
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from unittest import mock

import yaml
from click.testing import CliRunner

import pipeline
from bytepair.audit.rebuild import Rebuild, Step
from bytepair.audit.verify import steps_of, verify, verify_steps

CORPUS, TOKENIZER, OTHER = "sample", "sample-512", "sample-300"
STAGES = (
    *(f"{stage}@{CORPUS}" for stage in ("fetch", "strip", "split")),
    *(
        f"{stage}@{TOKENIZER}"
        for stage in ("count-chunks", "train-tokenizer", "encode-splits", "baseline", "measure")
    ),
)
PRECIOUS = ("raw/raw.txt", "bpe.json")
TEMPORARY = re.compile(r"/\.[^/]+\.tmp$")

# Which stages read what, by the path below data/corpora/C or data/tokenizers/T.
READERS = {
    "raw/": ("strip",),
    "clean/": ("split",),
    "splits/train/": ("count-chunks", "encode-splits"),
    "splits/val/": ("encode-splits",),
    "splits/test/": ("encode-splits",),
    "counts/": ("train-tokenizer",),
    "bpe.json": ("measure",),
    "tokens/train/": ("baseline", "measure"),
    "tokens/val/": ("baseline", "measure"),
    "tokens/test/": ("measure",),
    "baseline/": ("measure",),
}

# Runs a script, but no file of it may grow beyond a limit, and SIGKILL comes just before the n-th
# change of the file system: a file made, renamed, removed; or half written, which is at its fsync.
FAULTY = """
import os, resource, runpy, signal, sys
left, limit = int(sys.argv[1]), int(sys.argv[2])
sys.argv = sys.argv[3:]
sys.path[0] = os.path.dirname(sys.argv[0])
writing = os.O_WRONLY | os.O_RDWR | os.O_CREAT
changes = {"os.rename", "os.remove", "os.chmod", "os.mkdir", "os.rmdir"}
def change(descriptor=None):
    global left
    left -= 1
    if left == 0:
        if descriptor is not None:
            os.ftruncate(descriptor, os.fstat(descriptor).st_size // 2)
        os.kill(os.getpid(), signal.SIGKILL)
def watch(event, args):
    opened = event == "open" and not isinstance(args[0], int) and args[2] & writing
    if opened or event in changes:
        change()
def fsync(descriptor, real=os.fsync):
    change(descriptor)
    real(descriptor)
if left:
    os.fsync = fsync
    sys.addaudithook(watch)
if limit >= 0:
    resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
runpy.run_path(sys.argv[0], run_name="__main__")
"""


class Unavailable(Exception):  # noqa: N818  it is no error
    """This machine does not let us make that fault; the message says why."""


@dataclass(frozen=True)
class Outcome:
    fault: str
    survived: bool
    detected: bool | None  # None: there is nothing to detect
    said: str

    @property
    def good(self):
        return self.survived and self.detected is not False


class Lab:
    """A copy of the project with the sample built for two tokenizers, and an older generation.

    `good` has the bytes of each file by path; `old` those of stages run on another text of the same
    size, so that no size gives a mixture away.
    """

    def __init__(self, folder: Path):
        self.project = pipeline.copy_project(folder / "project")
        params = self.project / "params.yaml"
        text = params.read_text(encoding="utf-8")
        block = text[text.index(f"  {TOKENIZER}:") : text.index("  sherlock-512:")]
        for one, other in ((TOKENIZER, OTHER), ("512}", "300}"), ("gpt2-ascii", "words")):
            block = block.replace(one, other)
        params.write_text(text + block, encoding="utf-8", newline="\n")
        self.params = yaml.safe_load(text + block)
        chosen = steps_of(params, (CORPUS, TOKENIZER, OTHER))
        self.steps: dict[str, Step] = {step.name: step for step in chosen}
        tales = self.project / "data" / "sample" / "tales.txt"
        book = tales.read_bytes()
        tales.write_bytes(book.replace(b" the ", b" eth "))
        self.old = self.build("--force")
        tales.write_bytes(book)
        self.good = self.build()
        (folder / "again").mkdir()
        self.rebuild = Rebuild(self.project, folder / "again")
        assert verify_steps(self.steps.values(), self.rebuild).good

    def build(self, *options):
        for step in self.steps.values():
            code, said = self.run(step, *(options if step.stage == "fetch" else ()))
            assert code == 0, said
        return self.state()

    def state(self):
        return pipeline.results(self.project)

    def put(self, name, data):
        """Make a file what it should not be, or was; never in place, for it may be mapped."""
        path = self.project / name
        path.unlink(missing_ok=True)
        if data is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)

    def restore(self, **changed):
        """All files are the good ones again, besides those in `changed`."""
        wanted, found = {**self.good, **changed}, self.state()
        for name in {*wanted, *found}:
            if found.get(name) != wanted.get(name):
                self.put(name, wanted.get(name))

    def before(self, step, name):
        """Put `old` outputs of a stage there, or `no` ones; their bytes by path."""
        generation = self.old if name == "old" else {}
        before = {output: generation.get(output) for output in self.outputs(step)}
        self.restore(**before)
        return before

    def outputs(self, step):
        parts = tuple(path.as_posix() for path in step.outputs)
        return [name for name in self.good if name.startswith(parts)]

    def maker(self, name):
        return next(step for step in self.steps.values() if name in self.outputs(step))

    def readers(self, *names):
        """The stages that read any of these files."""
        found = {}
        for name in names:
            owner, path = [*name.split("/", 3)[2:], "", ""][:2]
            for stage in (
                s for part, stages in READERS.items() if path.startswith(part) for s in stages
            ):
                for_text = owner == CORPUS and stage not in ("strip", "split")
                step = self.steps[f"{stage}@{TOKENIZER if for_text else owner}"]
                found[step.name] = step
        return list(found.values())

    def run(self, step, *options):
        """Exit code and output of a stage, run in this process; a traceback counts as 70."""
        # Without sleep, since whoever waits before asking again would find the same here.
        with contextlib.chdir(self.project), mock.patch.object(time, "sleep"):
            runner = CliRunner(env={"CORPUS_CACHE": None})
            main = runpy.run_path(script(step))["main"]
            result = runner.invoke(main, [step.params.name, *options])
        if isinstance(result.exception, SystemExit | None):
            return result.exit_code, result.output.strip()
        return 70, repr(result.exception)

    def run_faulty(self, step, *, kill=0, limit=-1):
        env = pipeline.environment(self.project, CORPUS_CACHE=None, PYTHONDONTWRITEBYTECODE="1")
        python = (sys.executable, "-c", FAULTY, str(kill), str(limit))
        name = step.params.name
        done = pipeline.run_stage(
            self.project, script(step), name, python=python, env=env, check=False
        )
        return done.returncode, done.stderr.decode().strip()

    def whole(self, before):
        """Is every file whole, nothing else touched, and any mixture refused by who reads it?"""
        found = self.state()
        for name in {*found, *self.good}:
            data, was = found.get(name), before.get(name, self.good.get(name))
            new = name in before and data == self.good[name]
            removed = name in before and data is None and not name.endswith(PRECIOUS)
            if not (data == was or new or removed or TEMPORARY.search(name)):
                return False
        for folder in {name.rpartition("/")[0] for name in before}:
            names = [name for name in before if name.rpartition("/")[0] == folder]
            generations = ([side.get(n) for n in names] for side in (before, self.good))
            mixed = [found.get(n) for n in names] not in generations
            if mixed and any(self.run(step)[0] != 1 for step in self.readers(*names)):
                return False
        return True

    def recovers(self, step):
        """Does the next run make the right bytes? Hidden files that a kill has left may stay."""
        code, _ = self.run(step)
        found = {n: data for n, data in self.state().items() if not TEMPORARY.search(n)}
        return code == 0 and found == self.good

    def verified(self, name):
        """Does `bytepair verify` find that file?"""
        if "/raw/" in name:  # all else follows from it, so nothing made before will do
            found = verify(self.project, (CORPUS,))
        else:
            found = verify_steps([self.maker(name)], self.rebuild)
        return name in {difference.path for difference in found.differences}

    def failed(self, fault, before, run):
        """The outcome of a stage that was not able to write, but for recovery."""
        code, said = run
        names = {name for path in map(Path, before) for name in _names(path)}
        detected = code == 1 and any(name in said for name in names)
        left = any(TEMPORARY.search(name) for name in self.state())
        return Outcome(fault, not left and self.whole(before), detected, said)


def _names(path):
    """How a message may name a file: itself, its temporary file, or the folder of both."""
    return (
        path.as_posix(),
        (path.parent / f".{path.name}.").as_posix(),
        f"{path.parent.as_posix()}:",
    )


def script(step):
    return f"stages/{step.stage.replace('-', '_')}.py"


def kills(lab: Lab, stages=STAGES) -> Iterator[Outcome]:
    """SIGKILL before every change of the file system, over old outputs and over none."""
    for step in map(lab.steps.get, stages):
        for name in ("old", "no"):
            for number in range(1, 1000):
                before = lab.before(step, name)
                code, said = lab.run_faulty(step, kill=number)
                if code != -signal.SIGKILL:
                    break
                survived = lab.whole(before) and lab.recovers(step)
                yield Outcome(f"{step.name}, {name} outputs, kill {number}", survived, None, said)
            assert (code, lab.state()) == (0, lab.good), said


def file_limit(lab: Lab, stages=STAGES) -> Iterator[Outcome]:
    """No file may grow beyond a limit: none, half, and all but one byte of each output."""
    for step in map(lab.steps.get, stages):
        sizes = {len(lab.good[name]) for name in lab.outputs(step)}
        for limit in sorted({0, *(size // 2 for size in sizes), *(size - 1 for size in sizes)}):
            before = lab.before(step, "old")
            run = lab.run_faulty(step, limit=limit)
            outcome = lab.failed(f"{step.name}, files up to {limit} bytes", before, run)
            yield replace(outcome, survived=outcome.survived and lab.recovers(step))


def full_disk(lab: Lab, stages=STAGES) -> Iterator[Outcome]:
    """The outputs lie on a file system that has no room, or one page, besides the old ones."""
    for step, folder, spare in (
        (*found, spare) for found in _folders(lab, stages) for spare in (0, 1)
    ):
        before, path = lab.before(step, "old"), lab.project / folder
        inside = {n: data for n, data in lab.state().items() if n.startswith(f"{folder}/")}
        size = 4096 * (spare + sum(-(-len(data) // 4096) for data in inside.values()))
        with _mounted("-t", "tmpfs", "-o", f"size={size}", "tmpfs", path):
            for name, data in inside.items():
                lab.put(name, data)
            run = lab.run(step)
            if run[0] == 0:  # each of its files fits into one page
                continue
            outcome = lab.failed(f"{step.name}, {folder}, {spare} pages free", before, run)
            _mount("-o", "remount,size=16m", path)
            outcome = replace(outcome, survived=outcome.survived and lab.recovers(step))
        yield outcome


def read_only(lab: Lab, stages=STAGES) -> Iterator[Outcome]:
    """The folder of the outputs cannot be written to."""
    root = os.geteuid() == 0  # whom permissions do not stop
    for step, folder, name in (
        (*found, n) for found in _folders(lab, stages) for n in ("old", "no")
    ):
        before, path = lab.before(step, name), lab.project / folder
        with _mounted("--bind", path, path) if root else _locked(path):
            if root:
                _mount("-o", "remount,ro,bind", path)
            outcome = lab.failed(f"{step.name}, {folder}, {name} outputs", before, lab.run(step))
        yield replace(outcome, survived=outcome.survived and lab.recovers(step))


def no_network(lab: Lab) -> Iterator[Outcome]:
    """Nobody answers, or the name is unknown; without a copy fetch fails, with one it goes on."""
    step, raw = lab.steps[f"fetch@{CORPUS}"], f"data/corpora/{CORPUS}/raw/raw.txt"
    for url in ("https://127.0.0.1:9/tales.txt", "https://unreachable.invalid/tales.txt"):
        changed = copy.deepcopy(lab.params)
        changed["corpora"][CORPUS]["fetch"]["sources"] = [url]
        for name in ("old", "no", "good"):
            lab.restore()
            before = {} if name == "good" else lab.before(step, name)
            with rewritten(lab, changed):
                code, said = lab.run(step)
            kept = lab.state().get(raw) == before.get(raw, lab.good[raw])
            refused = code == 1 and url in said and "CORPUS_CACHE" in said
            survived = kept and lab.recovers(step) and (name != "good" or code == 0)
            yield Outcome(
                f"{url}, {name} raw.txt", survived, None if name == "good" else refused, said
            )


def damaged(lab: Lab, names=None) -> Iterator[Outcome]:
    """A bit flipped in the first, middle, last and five drawn bytes; cut to 0, half, all but one."""
    for name in names or [name for stage in STAGES for name in lab.outputs(lab.steps[stage])]:
        data, drawn = lab.good[name], random.Random(name)
        middle, last = len(data) // 2, len(data) - 1
        changes = {f"cut to {size}": data[:size] for size in (0, middle, last)}
        for place in (0, middle, last, *(drawn.randrange(len(data)) for _ in range(5))):
            flipped = bytearray(data)
            flipped[place] ^= 1 << drawn.randrange(8)
            changes[f"byte {place} is {flipped[place]}"] = bytes(flipped)
        for change, bad in changes.items():
            lab.restore(**{name: bad})
            detected, said = lab.verified(name), ""
            for reader in lab.readers(name):
                code, output = lab.run(reader)
                said += f"{reader.name}: {code} {output}\n"
                refused = code == 1 and name in output
                if name.endswith("bpe.json"):  # another layout of the same tokenizer does no harm
                    refused |= code == 1 and "made with the tokenizer" in output
                    refused |= code == 0 and {**lab.state(), name: data} == lab.good
                detected &= refused
            lab.restore(**{name: bad})
            yield Outcome(f"{name}, {change}", lab.recovers(lab.maker(name)), detected, said)


def swapped(lab: Lab, parts=None) -> Iterator[Outcome]:
    """Files and folders of one tokenizer exchanged with those of another of the same corpus."""
    both = [f"data/tokenizers/{tokenizer}/" for tokenizer in (TOKENIZER, OTHER)]
    files = [name.removeprefix(both[0]) for name in lab.good if name.startswith(both[0])]
    folders = {f"{parent}/" for name in files for parent in list(Path(name).parents)[:-1]}
    for part in parts or [*files, *sorted(folders), ""]:
        inside = [name for name in files if name.startswith(part)]
        pairs = (
            (one + n, lab.good[other + n]) for one, other in (both, both[::-1]) for n in inside
        )
        changes = {name: data for name, data in pairs if data != lab.good[name]}
        if not changes:
            continue
        lab.restore(**changes)
        detected, said = all(map(lab.verified, changes)), ""
        codes: dict[str, set[int]] = {}
        for reader in lab.readers(*changes) if part else ():  # a whole tokenizer agrees with itself
            code, output = lab.run(reader)
            lab.restore(**changes)
            codes.setdefault(reader.params.name, set()).add(code)
            said += f"{reader.name}: {code} {output}\n"
        # baseline takes the tokens of any tokenizer; measure then refuses what it has made.
        detected &= all(1 in found and found <= {0, 1} for found in codes.values())
        makers = {lab.maker(name).name for name in changes}
        for name in (name for name in lab.steps if name in makers):
            lab.run(lab.steps[name])
        yield Outcome(f"{part or 'all'} exchanged", lab.state() == lab.good, detected, said)


# What may be left out, be null, be empty, or be any text; see docs/design.md.
MAY_BE_ABSENT = re.compile(
    r"fetch\.(raw|clean)_sha256|strip\.(start|end)|split\.(separator|val|test)"
    r"|train\.min_count|encode\.separator|baseline\.order|baseline\.max_tokens|report\.test"
)
MAY_BE_NULL = re.compile(
    r"fetch\.clean_sha256|strip\.(start|end)|split\.(val|test)|chunks\.pattern|encode\.separator"
)
MAY_BE_EMPTY = re.compile(
    r"split\.separator|fetch\.raw_sha256|chunks\.special_tokens|strip|encode|baseline|report"
)
FREE_TEXT = re.compile(
    r"fetch\.file|strip\.\w+|split\.(pattern|separator)|split\.ranges\.\[0\]\.name"
    r"|(fetch|split|chunks)\.(sources|expect|val|test|special_tokens)\.\[0\]"
)
# Between them they have every key of the real params.yaml.
BLOCKS = (
    ("corpora", CORPUS),
    ("corpora", "shakespeare"),
    ("tokenizers", TOKENIZER),
    ("tokenizers", "chat-1024"),
)
WRONG = ("wrong", 1.5, True, None, [1], [], "", {}, {"wrong": 1})


def wrong_params(lab: Lab, blocks=BLOCKS) -> Iterator[Outcome]:
    """params.yaml without each key, with each value of another type, with a key unknown."""
    lab.restore()
    steps = {step.name: step for step in steps_of(lab.project / "params.yaml")}
    for block in blocks:
        step = steps[f"{'split' if block[0] == 'corpora' else 'count-chunks'}@{block[1]}"]
        for path, change, changed in _wrong(lab.params, block):
            with rewritten(lab, changed):
                code, said = lab.run(step)
            key, parent = (".".join(p).replace(".[", "[") for p in (path, path[:-1]))
            named = key in said or path[-1] in said.partition(f"{parent}:")[2]
            detected = code == 1 and "params.yaml" in said and named
            yield Outcome(f"{key} {change}", lab.state() == lab.good, detected, said)


def _wrong(params, path):
    """(path of a key, what is wrong with it, params with that) for a key and all below it."""
    value, inner = params, ".".join(path[2:])
    for key in path:
        value = value[_key(key)]
    if inner and not path[-1].startswith("[") and not MAY_BE_ABSENT.fullmatch(inner):
        yield path, "absent", _with(params, path, remove=True)
    for wrong in WRONG:
        if wrong is None:
            fine = MAY_BE_NULL.fullmatch(inner)
        elif wrong in ("", [], {}):
            fine = MAY_BE_EMPTY.fullmatch(inner) and type(wrong) is type(value)
        elif wrong == "wrong":  # an unknown pattern is found out with the text, if that is there
            fine = FREE_TEXT.fullmatch(inner)
            fine = fine or (inner == "chunks.pattern.name" and path[1] != TOKENIZER)
        else:
            fine = False
        if not fine and (type(wrong), wrong) != (type(value), value):
            yield path, f"is {wrong!r}", _with(params, path, wrong)
    if isinstance(value, dict):
        yield (*path, "wrong"), "is unknown", _with(params, (*path, "wrong"), 1)
        for key in value:
            yield from _wrong(params, (*path, key))
    elif isinstance(value, list) and value:
        yield from _wrong(params, (*path, "[0]"))


def _key(key):
    return 0 if key == "[0]" else key


def _with(params, path, value=None, *, remove=False):
    changed = copy.deepcopy(params)
    at = changed
    for key in path[:-1]:
        at = at[_key(key)]
    if remove:
        del at[_key(path[-1])]
    else:
        at[_key(path[-1])] = copy.deepcopy(value)
    return changed


@contextlib.contextmanager
def rewritten(lab, changed):
    path = lab.project / "params.yaml"
    text = path.read_bytes()
    path.write_text(yaml.safe_dump(changed, allow_unicode=True, width=10_000), encoding="utf-8")
    yield
    path.write_bytes(text)


def _folders(lab, stages):
    """Each stage with the folders that its outputs are in."""
    for step in map(lab.steps.get, stages):
        for output in step.outputs:
            folder = output if (lab.project / output).is_dir() else output.parent
            yield step, folder.as_posix()


@contextlib.contextmanager
def _locked(path):
    path.chmod(0o555)
    try:
        yield
    finally:
        path.chmod(0o755)


def _mount(*arguments):
    try:
        done = subprocess.run(["mount", *map(str, arguments)], check=False, capture_output=True)
    except FileNotFoundError:
        raise Unavailable("there is no command `mount`") from None
    if done.returncode:
        raise Unavailable(f"only who may mount can try it: {done.stderr.decode().strip()}")


@contextlib.contextmanager
def _mounted(*arguments):
    _mount(*arguments)
    try:
        yield
    finally:
        subprocess.run(["umount", "--lazy", arguments[-1]], check=True)


KINDS = {
    "killed with SIGKILL": kills,
    "no file beyond a size": file_limit,
    "file system full": full_disk,
    "folder read-only": read_only,
    "no network": no_network,
    "bit flipped or file cut short": damaged,
    "two tokenizers' files exchanged": swapped,
    "`params.yaml` wrong": wrong_params,
}
