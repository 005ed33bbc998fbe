"""Which module may import which, what a stage depends on, and what importing costs."""

import ast
import subprocess
import sys

import pytest
import yaml

import pipeline

SOURCE = pipeline.ROOT / "src" / "bytepair"
MODULES = {
    path.relative_to(SOURCE).with_suffix("").as_posix().replace("/", "."): path
    for path in SOURCE.rglob("*.py")
}
STANDARD_LIBRARY_ONLY = (
    "errors", "files", "unicode16", "freezing", "patterns", "chunks", "counts", "training",
    "merging", "bpe_file", "special_tokens", "packed", "scanning", "counting", "kernel.scan", "kernel.threads",
    "kernel.count", "kernel.train", "kernel.encode", "encoding", "streaming", "decoding", "offsets",
    "tokenizer", "reference", "fields", "layout",
)  # fmt: skip
TOKENIZER_SIDE = {
    *STANDARD_LIBRARY_ONLY, "id_arrays", "usage", "tokens", "token_exports", "windows", "arrays",
    "ngram", "baseline", "comparison", "intrinsic", "metrics",
    "kernel.merge_counts",
} - {
    "errors", "fields", "files", "layout",
}  # fmt: skip


def imports(path):
    """The bytepair modules that a file imports, anywhere in it."""
    found = set()
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.ImportFrom) and node.module == "bytepair":
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").startswith("bytepair."):
            module = node.module.removeprefix("bytepair.")
            found |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
    return found & MODULES.keys()


IMPORTS = {name: imports(path) for name, path in MODULES.items() if name != "__init__"}


def test_imports_form_no_circle():
    left = dict(IMPORTS)
    while left:
        free = [name for name, needed in left.items() if not needed & left.keys()]
        assert free, f"a circle among {sorted(left)}"
        for name in free:
            del left[name]


def test_corpora_and_the_tokenizer_side_do_not_know_each_other():
    for name, needed in IMPORTS.items():
        if name.startswith("corpora"):
            assert not needed & TOKENIZER_SIDE, name
        if name in TOKENIZER_SIDE:
            assert not {other for other in needed if other.startswith("corpora")}, name
            assert "params" not in needed, name


def test_nothing_imports_what_only_looks_at_results():
    for name, needed in IMPORTS.items():
        assert not needed & {"metrics", "stage", "reference"}, name


def test_only_commands_import_what_speaks_to_other_libraries():
    foreign = {
        name
        for name in MODULES
        if name in ("explore.comparing", "vocabulary") or name.startswith("export.")
    }
    for name, needed in IMPORTS.items():
        if name not in foreign and not name.startswith("commands."):
            assert not needed & foreign, name
        if name in foreign:
            assert not {other for other in needed if other.startswith("corpora.")}, name
            assert "params" not in needed, name


def test_nothing_imports_what_stands_above_everything():
    above = {
        name
        for name in MODULES
        if name == "cli" or name.startswith(("audit.", "commands.", "explore.", "report."))
    }
    below = {name: needed for name, needed in IMPORTS.items() if name not in above}
    for path in (pipeline.ROOT / "stages").glob("*.py"):
        below[path.name] = imports(path)
    for name, needed in below.items():
        assert not needed & above, name
    for name in above - {"cli"}:
        assert "cli" not in IMPORTS.get(name, set()), name
        if name.startswith(("audit.", "explore.", "report.")):
            assert not {other for other in IMPORTS[name] if other.startswith("commands.")}, name


def python(program, *options):
    return subprocess.run(
        [sys.executable, *options, "-c", program], check=True, capture_output=True
    ).stdout.decode()


def test_the_core_needs_the_standard_library_alone():
    program = (
        "import sys\n"
        f"for name in {STANDARD_LIBRARY_ONLY!r}: __import__(f'bytepair.{{name}}')\n"
        "from bytepair import Tokenizer\n"
        "tok = Tokenizer.train('ab ab', vocab_size=257, pattern='cl100k')\n"
        "assert tok.decode(tok.encode('ab ab')) == 'ab ab'\n"
        "print({name.partition('.')[0] for name in sys.modules} - sys.stdlib_module_names)"
    )
    names = ast.literal_eval(python(program))
    assert {name for name in names if not name.startswith(("_", "sphinxcontrib"))} == {"bytepair"}


def test_importing_the_package_imports_no_module_of_it():
    program = "import sys, bytepair; print([n for n in sys.modules if n.startswith('bytepair')])"
    assert python(program).strip() == "['bytepair']"


KERNEL = "src/bytepair/kernel/"
KERNEL_SOURCES = {
    f"src/bytepair/{module}.py": {f"{KERNEL}{name}" for name in ("build.py", "bytepair.h", *names)}
    for module, names in {
        "packed": ("order.h", "sort.c"),
        "kernel/scan": ("keys.h", "rules.c", "scan.c", "scan.h", "utf8.c", "vector.h"),
        "kernel/count": ("count.c", "keys.h", "pages.c", "pages.h", "scan.h"),
        "kernel/encode": (
            "encode.c",
            "keys.h",
            "merge.c",
            "merge.h",
            "pages.c",
            "pages.h",
            "scan.h",
        ),
        "kernel/merge_counts": ("memory.h", "merge_counts.c", "order.h"),
        "kernel/train": ("memory.h", "train.c", "train_pairs.h", "train_text.h"),
    }.items()
}


def test_every_source_of_the_kernel_is_a_dependency():
    sources = {
        path.relative_to(pipeline.ROOT).as_posix() for path in (SOURCE / "kernel").glob("*.[ch]")
    }
    sources.discard(f"{KERNEL}_kernel.c")
    assert sources == {
        path for names in KERNEL_SOURCES.values() for path in names if path.endswith((".c", ".h"))
    }


STAGES = yaml.safe_load((pipeline.ROOT / "dvc.yaml").read_text(encoding="utf-8"))["stages"]


@pytest.mark.parametrize("stage", STAGES)
def test_c44_a_stage_depends_on_exactly_the_modules_it_imports(
    stage, sample_project, sharded_project
):
    do = STAGES[stage]["do"]
    script = do["cmd"].split()[1]
    of_corpus = STAGES[stage]["foreach"] == "${corpora}"
    listed = {path for path in do["deps"] if path.startswith("src/")}
    imported = pipeline.imported_modules(
        sample_project, script, "sample" if of_corpus else "sample-512"
    ) | pipeline.imported_modules(sharded_project, script, "web" if of_corpus else "web-400")
    imported = {path for path in imported if "/engines/" not in path}  # where a shard is done
    compiled = {
        c for module, sources in KERNEL_SOURCES.items() if module in imported for c in sources
    }
    assert listed == imported | compiled
    assert script in do["deps"]
    assert do["desc"]


def test_scripts_fit_on_a_screen_and_files_have_one_subject():
    for path in (pipeline.ROOT / "stages").glob("*.py"):
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 55, path
    for name, path in MODULES.items():
        assert len(path.read_text(encoding="utf-8").splitlines()) <= 400, name


def test_the_table_of_modules_names_each_of_them():
    design = (pipeline.ROOT / "docs" / "design.md").read_text(encoding="utf-8")
    table = design[design.index("## 5. Modules") : design.index("## 6. ")]
    for name in MODULES:
        room = name.partition(".")[0]
        assert room == "__init__" or f"`{room}`" in table, name
