# make demo    environment, dependencies, the pipeline on the bundled sample, the metrics table
# make test    environment, lint, strict types, pytest
# make repro   environment and the whole pipeline; needs the corpora or the network
# make lock    the requirements files again from pyproject.toml
# make bench   ours and the peers, measured; README's table, RESULTS.md and the chart from it
# make test-slow   every test, those that take long too, and many more generated examples
# make shards  the tests of 200 shards, and of 40 million distinct chunks
# make fuzz    the fuzz targets of the kernel, each for FUZZ_SECONDS

PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python; do \
	$$python -c 'import sys, ensurepip; sys.exit(sys.version_info < (3, 11))' 2>/dev/null \
	&& echo $$python && break; done)
VENV := $(CURDIR)/.venv
BIN := $(VENV)/bin
BENCH := $(CURDIR)/benchmarks/.venv
export PATH := $(BIN):$(PATH)
export PIP_DISABLE_PIP_VERSION_CHECK := 1

FUZZ := src/bytepair/kernel/fuzz
FUZZ_SECONDS ?= 20

.PHONY: demo test test-slow shards fuzz check repro bench lock clean

# The first time every stage runs, also those whose results came with the clone.
demo: FIRST = $(if $(wildcard data/corpora/sample/splits),,--force)
demo: $(VENV)/.run
	dvc repro $(FIRST) measure@sample-512
	dvc metrics show

test: check
	python -m pytest -n auto

test-slow: check
	python -m pytest -n auto -m "" --hypothesis-profile slow
	$(MAKE) fuzz FUZZ_SECONDS=300

shards: $(VENV)/.dev
	python -m pytest -m slow tests/test_sharded_pipeline.py tests/test_shard_work.py

fuzz:
	for target in $(patsubst $(FUZZ)/fuzz_%.c,%,$(wildcard $(FUZZ)/fuzz_*.c)); do \
	$(FUZZ)/run $$target $(FUZZ_SECONDS) || exit 1; done

check: $(VENV)/.dev
	ruff format --check .
	ruff check .
	mypy

repro: $(VENV)/.run
	dvc repro
	dvc metrics show

# Another number of rounds, or of seconds for a tool at a task: make bench OPTIONS="--seconds 600"
bench: $(BENCH)/.peers
	$(BENCH)/bin/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	dvc repro --quiet fetch@shakespeare count-chunks@sherlock-512
	$(BENCH)/bin/python benchmarks/texts.py
	$(BENCH)/bin/python benchmarks/run.py $(OPTIONS)

COMPILE := uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --custom-compile-command 'make lock'

lock: $(VENV)/.dev
	for set in run dev; do $(COMPILE) $$UPGRADE pyproject.toml requirements/build.in \
	$$(test $$set = run || echo --extra dev --constraint requirements/run.txt) \
	--output-file requirements/$$set.txt || exit 1; done
	$(EXTRA) bench | $(COMPILE) $$UPGRADE - requirements/build.in \
	--constraint requirements/run.txt --output-file requirements/bench.txt

# What an extra adds, without what the package itself needs: the benchmarks do without DVC.
EXTRA := python -c 'import sys, tomllib; print(*tomllib.load(open("pyproject.toml", \
	"rb"))["project"]["optional-dependencies"][sys.argv[1]], sep="\n")'

clean:
	rm -rf $(VENV) $(BENCH) .mypy_cache .pytest_cache .ruff_cache .hypothesis build

$(VENV)/bin/python:
	@test -n "$(PYTHON)" || { echo "Python 3.11 or newer with venv is needed" \
	"(Debian: apt-get install python3-venv; or make PYTHON=/path/to/python3.12)." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# The package itself is installed editable, by the pinned setuptools and without a download.
$(VENV)/.run: requirements/run.txt pyproject.toml | $(VENV)/bin/python
	python -m pip install --quiet --require-hashes -r requirements/run.txt
	python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/.dev: requirements/dev.txt $(VENV)/.run
	python -m pip install --quiet --require-hashes -r requirements/dev.txt
	@touch $@

$(BENCH)/.peers: requirements/bench.txt $(VENV)/.run
	python -m venv $(BENCH)
	$(BENCH)/bin/python -m pip install --quiet --require-hashes -r requirements/bench.txt
	@touch $@
