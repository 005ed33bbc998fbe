"""The kernel's C: no warning, no state, no byte out of bounds, no crash when memory ends.

The fuzz targets in kernel/fuzz run here on their seeds alone; `make fuzz` runs them for longer.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import pipeline
from bytepair import kernel
from bytepair.kernel.count import Counter
from bytepair.kernel.encode import Encoder
from bytepair.patterns import Pattern
from bytepair.scanning import kernel_scanner

KERNEL = Path(kernel.__file__).parent
FUZZ = KERNEL / "fuzz"
SOURCES = [path for path in sorted(KERNEL.glob("*.c")) if path.stem != "_kernel"]
TARGETS = sorted(path.stem.removeprefix("fuzz_") for path in FUZZ.glob("fuzz_*.c"))
SANITIZE = ("-g", "-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all")
COUNT_BLOCK, ENCODE_TAIL = 1 << 18, 64  # bytes: where count.c and encode.c end a block
needs_kernel = pytest.mark.skipif(kernel.library() is None, reason="the kernel is not built")


def compiler(name, *options):
    """A C compiler that takes these options, or skip."""
    command = shutil.which(name)
    if command is None:
        pytest.skip(f"there is no {name}")
    probe = [command, *options, "-x", "c", "-", "-o", os.devnull]
    program = b"int main(void) { return 0; }"
    if subprocess.run(probe, check=False, input=program, capture_output=True).returncode:
        pytest.skip(f"{name} does not take {' '.join(options)}")
    return [command, *options]


# Compiling


@pytest.mark.parametrize("name", ["gcc", "clang"])
@pytest.mark.parametrize("source", SOURCES, ids=lambda path: path.name)
def test_the_source_gives_no_warning_and_has_no_state(name, source, tmp_path):
    flags = ("-std=c11", "-O3", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic")
    target = tmp_path / "source.o"
    command = [*compiler(name, *flags), "-Werror", "-c", str(source), "-o", str(target)]
    subprocess.run(command, check=True)
    if shutil.which("nm") is None:
        pytest.skip("there is no nm, which lists what an object holds")
    symbols = subprocess.run(["nm", str(target)], check=True, capture_output=True).stdout
    kinds = {line.split()[-2] for line in symbols.decode().splitlines()}
    assert kinds <= set("TtUrR"), symbols.decode()  # no data, initialized or not, that could change


@pytest.mark.parametrize("name", ["gcc", "clang"])
@pytest.mark.parametrize("target", TARGETS)
def test_the_fuzz_targets_give_no_warning(name, target):
    flags = ("-std=c11", "-O1", "-Wall", "-Wextra", "-Wconversion", "-Wshadow", "-pedantic")
    command = [*compiler(name, *flags), "-Werror", "-fsyntax-only", f"{FUZZ}/fuzz_{target}.c"]
    subprocess.run(command, check=True)


# Fuzzing


def run_on_seeds(target, tmp_path, *options):
    """Build a fuzz target with the sanitizers and a main of its own, and run it on its seeds."""
    program = tmp_path / "fuzz"
    command = [*compiler("cc", *SANITIZE), "-DSTANDALONE", *options, f"{FUZZ}/fuzz_{target}.c"]
    subprocess.run([*command, "-o", str(program)], check=True)
    seeds = sorted((FUZZ / "seeds" / target).iterdir())
    result = subprocess.run([program, "0", *seeds], check=False, capture_output=True)
    assert result.returncode == 0, result.stderr.decode()
    assert result.stdout == b"%d inputs, all as expected\n" % (len(seeds) + 1)
    return len(seeds)


@pytest.mark.parametrize("target", TARGETS)
def test_seeds(target, tmp_path):
    """Equal to a slow version; and nothing leaks when allocations fail, each in turn."""
    assert run_on_seeds(target, tmp_path) >= 7


def test_seeds_without_vectors(tmp_path):
    run_on_seeds("scan", tmp_path, "-DBP_NO_VECTORS")


def test_every_function_has_a_fuzz_target():
    declared = set(re.findall(r"\bbp_[a-z_0-9]+(?=\()", (KERNEL / "bytepair.h").read_text()))
    called = "".join(path.read_text(encoding="utf-8") for path in FUZZ.glob("fuzz_*.c"))
    assert {name for name in declared if f"{name}(" not in called} == set()


# Found by fuzzing


@needs_kernel
@pytest.mark.parametrize(
    ("pattern", "begins", "goes_on"),
    [
        ("o200k", "\n", 40 * " " + "\n"),
        ("o200k", "中", 40 * "A" + "a"),
        ("cl100k", "\n", 40 * " " + "\u3000\n"),
        ("o200k", "ʰ", 40 * "É" + "é"),
    ],
)
def test_chunks_whose_end_is_far_from_what_decides_it(pattern, begins, goes_on):
    """Where the kernel's block ends, within the run, it has to wait for the rest of the run."""
    scanner = kernel_scanner(Pattern.named(pattern))
    chunk = (begins + goes_on).encode()
    seam = len(begins.encode())
    encoder = Encoder([(chunk[seam - 1], chunk[seam])], scanner)
    for known in range(1, len(chunk)):
        counter = Counter(scanner)
        counter.feed(b"a" * (COUNT_BLOCK - known - 1) + b"1" + chunk + b"1")
        assert chunk in counter.take(), known
        text = b"a" * 200 + b"1" + chunk + b"1" * (ENCODE_TAIL - len(chunk) + known)
        assert 256 in encoder.encode(text), known


# Sanitizers


@pytest.fixture(scope="session")
def sanitized(tmp_path_factory):
    """A copy of the project whose kernel was built with sanitizers, and how Python is run in it."""
    command = compiler("gcc", *SANITIZE)[0]
    library = subprocess.run(
        [command, "-print-file-name=libasan.so"], check=True, capture_output=True
    ).stdout.decode()
    project = pipeline.copy_project(tmp_path_factory.mktemp("sanitized"))
    env = pipeline.environment(
        project,
        CC=command,
        CFLAGS=" ".join(SANITIZE),
        LDFLAGS="-fsanitize=address,undefined",
        BYTEPAIR_KERNEL="1",
    )
    build = [sys.executable, "setup.py", "--quiet", "build_ext", "--inplace"]
    subprocess.run(build, cwd=project, env=env, check=True)
    env |= {
        "LD_PRELOAD": library.strip(),
        "ASAN_OPTIONS": "detect_leaks=0",  # the interpreter keeps what it has
        "PYTHONMALLOC": "malloc",  # each object is a block of its own, with guards around it
    }

    def run(*arguments):
        return subprocess.run(
            [sys.executable, *arguments], cwd=project, env=env, check=False, capture_output=True
        )

    return run


def test_the_sanitized_kernel_notices(sanitized):
    program = """
from bytepair.kernel import library
ffi, lib = library()
print(lib.bp_valid_utf8(ffi.from_buffer(bytes(100)), {}))
"""
    assert sanitized("-c", program.format(100)).stdout == b"100\n"
    result = sanitized("-c", program.format(1000))
    assert result.returncode != 0
    assert b"heap-buffer-overflow" in result.stderr


def passes(result):
    assert result.returncode == 0, (result.stdout + result.stderr).decode()
    return int(re.search(rb"(\d+) passed", result.stdout)[1])


PYTEST = ("-m", "pytest", "-n0", "-q", "-p", "no:cacheprovider")


def test_some_of_the_kernels_tests_with_sanitizers(sanitized):
    chosen = (
        "beyond_16_bits or threads_have_encoders or given_to_the_kernel or contradict or too_high"
    )
    files = ("tests/test_kernel.py", "tests/test_kernel_train.py")
    assert passes(sanitized(*PYTEST, "-k", chosen, *files)) > 10


@pytest.mark.slow
def test_the_kernels_tests_with_sanitizers(sanitized):
    """But those that measure time or memory, and those that start a Python of their own."""
    left_out = "not c19 and not in_memory and not sample and not without and not forced"
    names = sorted(path.name for path in (pipeline.ROOT / "tests").glob("test_kernel*.py"))
    files = [
        f"tests/{name}"
        for name in [*names, "test_counting.py", "test_hostile_files.py"]
        if "safety" not in name
    ]
    assert len(files) >= 3
    assert passes(sanitized(*PYTEST, "-m", "", "-k", left_out, *files)) > 50
