"""Engines: the same results from each; workers that die, errors, Ctrl-C; real processes, real Dask."""

import os
import signal
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

import engine_tasks
from bytepair.engine import TRIES, EngineParams, WorkerLostError, open_engine
from bytepair.engine_params import load_engine
from bytepair.errors import BytepairError, ParamsError
from bytepair.kernel import library
from dask_cluster import TESTS, DaskCluster, wait_until
from engine_tasks import Shard

ALL = [
    EngineParams(name="serial"),
    EngineParams(workers=1),
    EngineParams(workers=3),
    EngineParams(name="dask", workers=2),
]
SEVERAL = ALL[2:]
names = "{0.name}-{0.workers}".format


def is_running(pid):
    try:
        state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def pids(folder, name=""):
    return [int(path.name.rpartition("-")[2]) for path in folder.glob(f"{name}*-*")]


@pytest.mark.parametrize("params", ALL, ids=names)
def test_every_engine_gives_every_result(params):
    with open_engine(params) as engine:
        assert sorted(engine.map(engine_tasks.square, range(50))) == [(n, n * n) for n in range(50)]
        assert list(engine.map(engine_tasks.square, [])) == []
        assert sorted(engine.map(engine_tasks.square, [7])) == [(0, 49)]


@pytest.mark.parametrize("params", SEVERAL, ids=names)
def test_workers_are_other_processes_and_end(params):
    with open_engine(params) as engine:
        workers = {pid for _, pid in engine.map(engine_tasks.process, range(40))}
        assert len(workers) == params.workers
        assert os.getpid() not in workers
    wait_until(lambda: not any(map(is_running, workers)))


@pytest.mark.parametrize("params", ALL, ids=names)
def test_an_error_of_a_task_ends_the_run_and_is_the_same(params):
    with open_engine(params) as engine:
        with pytest.raises(ValueError, match="shard 3 is no good"):
            list(engine.map(engine_tasks.fail, range(1000)))
        with pytest.raises(FileNotFoundError) as caught:
            list(engine.map(engine_tasks.system_error, [1]))
        assert caught.value.filename == "web/0.jsonl"
        assert sorted(engine.map(engine_tasks.square, [1, 2])) == [(0, 1), (1, 4)]


def test_an_error_that_cannot_be_sent_is_shown():
    with open_engine(EngineParams(workers=1)) as engine:
        with pytest.raises(BytepairError, match="HardError: 1 and more"):
            list(engine.map(engine_tasks.fail_hard, [1]))
        with pytest.raises(Exception, match="pickle"):
            list(engine.map(lambda number: number, [1]))


@pytest.mark.parametrize("params", SEVERAL, ids=names)
@pytest.mark.parametrize(
    ("function", "shown"),
    [
        (engine_tasks.recurse, "recursion"),
        (engine_tasks.panic, "Panic: at 1"),
        (engine_tasks.leave_python, "SystemExit: 1"),
    ],
    ids=lambda value: getattr(value, "__name__", ""),
)
def test_no_exception_is_too_odd_to_be_sent(params, function, shown):
    with open_engine(params) as engine, pytest.raises(Exception, match=shown):
        list(engine.map(function, [1]))


@pytest.mark.parametrize("params", SEVERAL, ids=names)
def test_a_killed_worker_does_not_end_the_run(params, tmp_path):
    tasks = [Shard(f"shard{n}", str(tmp_path)) for n in range(8)]

    def kill():
        wait_until(lambda: pids(tmp_path))
        os.kill(pids(tmp_path)[0], signal.SIGKILL)
        wait_until(lambda: len({*pids(tmp_path)}) > params.workers)  # another has taken over
        (tmp_path / "end").touch()

    killer = threading.Thread(target=kill)
    killer.start()
    with open_engine(params) as engine:
        found = sorted(engine.map(engine_tasks.wait_for_the_end, tasks))
    killer.join()
    assert found == list(enumerate(task.name for task in tasks))


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
@pytest.mark.parametrize("params", SEVERAL, ids=names)
def test_a_task_that_kills_its_workers_is_named(params, tmp_path):
    tasks = [Shard("poison" if n == 2 else f"shard{n}", str(tmp_path)) for n in range(6)]
    with open_engine(params) as engine, pytest.raises(WorkerLostError, match="poison: 3 workers"):
        list(engine.map(engine_tasks.die, tasks))
    deaths = len(pids(tmp_path, "poison"))
    assert deaths == TRIES if params.name == "processes" else TRIES <= deaths <= 2 * TRIES


def test_how_a_worker_ended_is_told(tmp_path):
    with (
        open_engine(EngineParams(workers=1)) as engine,
        pytest.raises(WorkerLostError, match=r"web/0.txt: 3 workers died over it \(exit code 7\)"),
    ):
        list(engine.map(engine_tasks.leave, [Shard("web/0.txt", str(tmp_path))]))


def test_a_worker_that_dies_in_the_middle_of_its_answer_has_died(tmp_path):
    poison = Shard("poison", str(tmp_path))
    with open_engine(EngineParams(workers=1)) as engine:
        with pytest.raises(WorkerLostError, match=r"poison: 3 workers .*SIGKILL"):
            list(engine.map(engine_tasks.half_an_answer, [poison]))
        assert list(engine.map(engine_tasks.square, [7])) == [(0, 49)]


@pytest.mark.parametrize("params", SEVERAL, ids=names)
def test_workers_do_not_hear_ctrl_c(params):
    with open_engine(params) as engine:
        workers = {pid for _, pid in engine.map(engine_tasks.process, range(20))}
        for pid in workers:
            os.kill(pid, signal.SIGINT)
        assert {pid for _, pid in engine.map(engine_tasks.process, range(20))} == workers


class Counted(Sequence):
    """Tasks that know how many have been asked for."""

    def __init__(self, number):
        self.number, self.asked = number, 0

    def __len__(self):
        return self.number

    def __getitem__(self, index):
        if index >= self.number:
            raise IndexError
        self.asked = max(self.asked, index + 1)
        return index


@pytest.mark.parametrize("params", SEVERAL, ids=names)
def test_few_tasks_are_under_way(params):
    tasks = Counted(200)
    with open_engine(params) as engine:
        for done, _ in enumerate(engine.map(engine_tasks.square, tasks)):
            assert tasks.asked - done <= 2 * params.workers + 1
    assert tasks.asked == 200


SCRIPT = """
    import sys
    from bytepair.engine import EngineParams, open_engine
    from engine_tasks import Shard, wait_for_the_end
    if __name__ == "__main__":
        with open_engine(EngineParams(name=sys.argv[1], workers=2)) as engine:
            tasks = [Shard(f"shard{n}", sys.argv[2]) for n in range(4)]
            print(list(engine.map(wait_for_the_end, tasks)))
"""


@pytest.mark.parametrize("name", ["processes", "dask"])
@pytest.mark.parametrize(
    "how", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT], ids=lambda s: s.name
)
def test_however_it_ends_no_worker_is_left(name, how, tmp_path):
    script = tmp_path / "script.py"
    script.write_text(textwrap.dedent(SCRIPT))
    folder = tmp_path / "notes"
    folder.mkdir()
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    process = subprocess.Popen(
        [sys.executable, str(script), name, str(folder)],
        env={**os.environ, "PYTHONPATH": str(TESTS), "TMPDIR": str(scratch)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    wait_until(lambda: len(pids(folder)) >= 2)
    workers = pids(folder)
    start = time.monotonic()
    if how == signal.SIGINT:
        os.killpg(process.pid, how)  # as a terminal does it
    else:
        process.send_signal(how)
    _, errors = process.communicate(timeout=30)
    assert process.returncode == {"SIGTERM": 143, "SIGKILL": -9}.get(how.name, process.returncode)
    assert process.returncode != 0
    assert time.monotonic() - start < 25
    wait_until(lambda: not any(map(is_running, workers)))
    if how == signal.SIGINT:
        assert errors.count(b"Traceback") == 1
    assert [path.name for path in scratch.iterdir() if path.name.startswith("bytepair")] == []


def test_a_folder_for_temporary_files_with_a_long_path(tmp_path):
    long = tmp_path / ("long" * 30)
    long.mkdir()
    program = (
        "import engine_tasks\n"
        "from bytepair.engine import EngineParams, open_engine\n"
        "if __name__ == '__main__':\n"
        "    with open_engine(EngineParams(name='dask', workers=1)) as engine:\n"
        "        print(list(engine.map(engine_tasks.square, [7])))\n"
    )
    (tmp_path / "program.py").write_text(program)
    run = subprocess.run(
        [sys.executable, tmp_path / "program.py"],
        env={**os.environ, "PYTHONPATH": str(TESTS), "TMPDIR": str(long)},
        check=False,
        capture_output=True,
        timeout=120,
    )
    assert (run.returncode, run.stdout) == (0, b"[(0, 49)]\n"), run.stderr.decode()


@pytest.fixture
def cluster(tmp_path):
    with DaskCluster(tmp_path / "cluster") as cluster:
        yield cluster


def test_a_cluster_by_address_survives_the_loss_of_a_worker(cluster, tmp_path):
    notes = tmp_path / "notes"
    notes.mkdir()
    workers = [cluster.start_worker("--no-nanny") for _ in range(2)]
    tasks = [Shard(f"shard{n}", str(notes)) for n in range(8)]

    def kill():
        wait_until(lambda: workers[0].pid in pids(notes))
        workers[0].kill()  # and nobody starts it again
        wait_until(lambda: workers[1].pid in pids(notes))
        (notes / "end").touch()

    killer = threading.Thread(target=kill)
    killer.start()
    with open_engine(EngineParams(name="dask", address=cluster.address)) as engine:
        assert engine.dashboard.startswith("http://127.0.0.1:")
        found = sorted(engine.map(engine_tasks.wait_for_the_end, tasks))
    killer.join()
    assert found == list(enumerate(task.name for task in tasks))
    assert workers[0].wait(10) == -signal.SIGKILL
    assert workers[1].poll() is None  # the cluster is another's


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM], ids=lambda s: s.name)
def test_the_end_of_the_scheduler_is_said_so(how, cluster):
    cluster.start_worker("--no-nanny")
    with (
        open_engine(EngineParams(name="dask", address=cluster.address)) as engine,
        pytest.raises(BytepairError, match=r"the Dask scheduler has ended.* run again"),
    ):
        for _ in engine.map(engine_tasks.process, range(1000)):
            cluster.processes[0].send_signal(how)


def test_workers_with_another_bytepair_are_refused(cluster, tmp_path):
    params = EngineParams(name="dask", address=cluster.address)
    if library() is not None:
        worker = cluster.start_worker(BYTEPAIR_KERNEL="0")
        with pytest.raises(
            BytepairError, match="without the kernel and .*, but here is .* with the kernel"
        ):
            open_engine(params).__enter__()
        worker.terminate()
        worker.wait(20)
    metadata = tmp_path / "old" / "regex-1.0.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text("Metadata-Version: 2.1\nName: regex\nVersion: 1.0\n")
    worker = cluster.start_worker(PYTHONPATH=str(metadata.parent.parent))
    with pytest.raises(BytepairError, match=r"and regex 1\.0, but here is"):
        open_engine(params).__enter__()
    worker.terminate()
    worker.wait(20)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "bytepair.py").write_text("raise ImportError('there is none')")
    cluster.start_worker(PYTHONPATH=str(tmp_path / "other"))
    with pytest.raises(BytepairError, match="cannot import bytepair .*Install bytepair 0.1.0"):
        open_engine(params).__enter__()


def test_no_scheduler_is_said_so(monkeypatch):
    from bytepair.engines import dask as module

    monkeypatch.setattr(module, "CONNECT", 1)
    with pytest.raises(
        BytepairError, match=r"engine.address: no Dask scheduler .* tcp://127.0.0.1:9"
    ):
        open_engine(EngineParams(name="dask", address="tcp://127.0.0.1:9")).__enter__()


@pytest.mark.parametrize(
    ("block", "params"),
    [
        ("corpora: {}", EngineParams()),
        ("engine: {}", EngineParams()),
        ("engine: {workers: 4, memory: 512MB}", EngineParams(workers=4, memory=512_000_000)),
        ("engine: {name: serial, memory: 1GiB}", EngineParams(name="serial", memory=1 << 30)),
        (
            "engine: {name: dask, address: 'tcp://h:1'}",
            EngineParams(name="dask", address="tcp://h:1"),
        ),
        (
            "engine: {name: dask, address: '[::1]:8786'}",
            EngineParams(name="dask", address="[::1]:8786"),
        ),
    ],
)
def test_params(tmp_path, block, params):
    (tmp_path / "params.yaml").write_text(block)
    assert load_engine(tmp_path / "params.yaml") == params


@pytest.mark.parametrize(
    ("block", "message"),
    [
        ("engine: {name: mpi}", "engine.name: 'mpi' is not known. Known: serial, processes, dask"),
        ("engine: {workers: 0}", "engine.workers"),
        ("engine: {memory: 512}", "engine.memory: a worker needs 128MB"),
        ("engine: {memory: much}", "engine.memory: expected a size"),
        ("engine: {address: 'tcp://h:1'}", "engine.address: goes with `name: dask`"),
        *(
            (
                f"engine: {{name: dask, address: '{address}'}}",
                f"engine.address: expected tcp://HOST:PORT of a Dask scheduler, got '{address}'",
            )
            for address in ("h", "tcp://h", "http://h:80", "h:1x", "tcp://h:", "tcp:///h:1")
        ),
        ("engine: {store: '~/work'}", "engine.store: ~ is not expanded. Write the whole path"),
        ("engine: {name: dask, address: 'tcp://h:1', workers: 2}", "engine.workers"),
        ("engine: {store: 's3://'}", "engine.store: expected a path or a URL .* got 's3://'"),
        ("engine: {store: 's3:/b/web'}", "engine.store: expected a path or a URL"),
        ("engine: {store: 'memory://work'}", "engine.store: no other process"),
        ("engine: {threads: 1}", "engine: the key 'threads' is not known"),
    ],
)
def test_wrong_params(tmp_path, block, message):
    (tmp_path / "params.yaml").write_text(block)
    with pytest.raises(ParamsError, match=message):
        load_engine(tmp_path / "params.yaml")


@pytest.mark.parametrize("store", ["s3://bucket/a b", "/mnt/web", "web/made/", "file://web/work"])
def test_a_store_of_the_project_is_the_same_for_workers_elsewhere(store, tmp_path):
    (tmp_path / "params.yaml").write_text(f"engine: {{store: '{store}'}}")
    local = {"web/made/": str(tmp_path / "web/made"), "file://web/work": str(tmp_path / "web/work")}
    assert load_engine(tmp_path / "params.yaml").store == local.get(store, store)
