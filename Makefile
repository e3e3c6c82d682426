# `make tour` and `make test` each work as the first command in a clean clone.
#
#   make test ARGS="-k tanh"      passes ARGS on
#   make test EXTRAS=dev,parity   compares with PyTorch too
#   make tour PYTHON=python3.12   builds .venv with that Python
#   make nightly SLICE=3/40       runs the third of forty slices of the night's tests
#   make examples SEEDS="0 1 2"   runs each three times

.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
.NOTPARALLEL:
.PHONY: help tour test nightly minutes mutants i386 py314 check lint tools frontend screenshots stubs bitcode table platforms torch opinfo corpus notebooks pictures examples lab bench bench-viewer bench-book book site lite clean

VENV   := .venv
PY     := $(VENV)/bin/python
PYTHON ?=
EXTRAS ?= dev
ARGS   ?=

# A stamp for each set of extras, redone when the dependencies change.
BASE := $(VENV)/.installed
DEV  := $(BASE)-$(EXTRAS)
# The tools that build and check the player's JavaScript: its built module is committed, so only its authors need them.
TOOLS := viz/frontend/node_modules/.installed
# Python compiles what is imported: a fifth of what is installed.
PIP  := $(PY) -m pip --disable-pip-version-check install --quiet --no-compile --constraint constraints.txt

# An upgrade of the system's Python can leave .venv without one: begin again.
$(shell [ -x $(PY) ] || rm -f $(BASE)*)

# A reader's own settings must not change what the lessons print; a first plot must not stop to list fonts.
export IPYTHONDIR   := $(CURDIR)/$(VENV)/ipython
export MPLCONFIGDIR := $(CURDIR)/$(VENV)/matplotlib

# What tests compile is kept for the processes that they start and for the next run: more than the 100 MB that Taichi keeps.
check test nightly minutes mutants: export TI_OFFLINE_CACHE_FILE_PATH := $(CURDIR)/$(VENV)/taichi
check test nightly minutes mutants: export TI_OFFLINE_CACHE_MAX_SIZE_OF_FILES := 1000000000

# Many tests start a Python of their own, which compiles every module again where none is kept.
unexport PYTHONDONTWRITEBYTECODE

UNIT   := tests minigrad viz/minigrad_viz
PYTEST := $(PY) -m pytest --numprocesses 2 --dist loadscope
NBVAL  := --nbval --nbval-sanitize-with notebooks/sanitize.cfg

help:  ## this list
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))

tour: $(BASE)  ## train a network on Iris and draw how it learned
	@$(VENV)/bin/minigrad tour $(ARGS)

test: $(DEV) $(TOOLS)  ## every test, docstring example and lesson
	@$(PYTEST) $(NBVAL) $(UNIT) notebooks $(ARGS)

nightly: $(DEV) $(TOOLS)  ## the same with every type, layout, device and processor, and 200,000 attempts to break it
	@MINIGRAD_NIGHTLY=$(or $(SLICE),all) $(PYTEST) $(if $(SLICE),,$(NBVAL)) $(UNIT) $(if $(SLICE),,notebooks) $(ARGS)

minutes: $(DEV) $(TOOLS)  ## every test, and where the minutes go, into tests/minutes.txt
	@$(PYTEST) $(NBVAL) $(UNIT) notebooks --minutes tests/minutes.txt $(ARGS)

mutants: $(DEV) $(TOOLS)  ## plant faults one by one, and see that a test notices each
	@PYTHONPATH=tests:tests/helpers $(PY) -m mutants $(ARGS)

i386:  ## the tests of NumPy's kernels with 32-bit NumPy, as in a page: in a chroot, which takes root and debootstrap
	@.ci/platforms i386 .platforms/i386 $(ARGS)

py314:  ## the same on CPython 3.14, for which there is no Taichi
	@.ci/platforms python3.14 .platforms/python3.14 $(ARGS)

check: lint $(TOOLS)  ## lint, the tests of the floor, and those of what changed: for every day
	@$(PYTEST) -m "not slow" $$($(PY) tests/helpers/affected_tests.py) $(ARGS)

lint: $(DEV)  ## formatting, ruff, mypy
	@$(PY) -m ruff format --check .
	@$(PY) -m ruff check .
	@$(PY) -m mypy

tools: $(TOOLS)

frontend: $(DEV) $(TOOLS)  ## build the player's module again from its sources, and test it
	@node viz/frontend/build.mjs
	@$(PYTEST) tests/viz/frontend/test_modules.py tests/viz/frontend/test_packaging.py tests/viz/browser $(ARGS)

screenshots: $(DEV)  ## pictures of the player to look at, into screenshots/
	@PYTHONPATH=tests:tests/helpers $(PY) tests/viz/browser/screenshots.py $(ARGS)

stubs: $(DEV)  ## write the type information (.pyi) again, from the declarations
	@$(PY) tests/helpers/stubs.py

bitcode:  ## compile the LLVM functions of the processor's kernels again, with LLVM 14 or 15
	@cd minigrad/backends/taichi/runtime && llvm-as muladd.ll -o muladd.bc && clang -std=c11 -O2 -emit-llvm -c thread_pool.c -o thread_pool.bc

table: $(DEV)  ## every operation, and what is checked of it
	@$(PY) tests/helpers/table.py

platforms: $(DEV)  ## what runs on which platform and Python, into book/platforms.md
	@PYTHONPATH=tests/helpers $(PY) tests/helpers/platform_page.py

torch: $(DEV)  ## what of PyTorch is here, into book/pytorch.md
	@$(PY) -m minigrad torch --markdown > book/pytorch.md

opinfo: $(BASE)-dev,parity  ## PyTorch's own samples, compared, into book/pytorch_samples.md
	@PYTHONPATH=tests:tests/helpers $(PY) tests/helpers/opinfo_page.py > book/pytorch_samples.md

corpus: $(DEV)  ## freeze minigrad's own text again, for models of characters: on purpose only
	@$(PY) -m minigrad.data.freeze

notebooks: $(DEV)  ## run the lessons again and store what they print
	@$(PY) notebooks/build.py $(ARGS)

pictures: $(DEV)  ## make the README's pictures again, with Chromium those of the player too
	@$(PY) book/pictures.py

# Each trains from the seeds; the progress is on stderr, and of what is printed the last line is kept.
EXAMPLES ?= $(filter-out %/common.py %/png.py,$(wildcard examples/*.py))
SEEDS    ?= 0
examples: $(BASE)  ## run the examples, a minute each, and print what they reached
	@failed=0; for file in $(EXAMPLES); do for seed in $(SEEDS); do \
	    if printed=$$($(PY) "$$file" --seed "$$seed" $(ARGS)); then \
	        set -- $$(printf '%s\n' "$$printed" | tail -n 1); \
	        printf '%-20s %-12s %-7s' "$$1" "$$2" "$$3"; shift 3; printf ' %s' "$$@"; echo; \
	    else failed=1; echo "$$file seed=$$seed failed"; fi; \
	done; done; exit $$failed

lab: $(BASE)-lab  ## open the lessons in JupyterLab
	@$(PY) -m jupyter lab notebooks/01_one_neuron.ipynb $(ARGS)

bench: $(BASE)-bench,ray  ## the speed claims, each a ratio against a named peer
	@failed=0; for file in $(filter-out %/bench_viewer.py %/bench_book.py,$(wildcard benchmarks/bench_*.py)); do \
	    [ -e "$$file" ] || { echo "No benchmark yet: benchmarks/bench_*.py"; exit 2; }; \
	    echo "$$file"; $(PY) "$$file" $(ARGS) || failed=1; \
	done; exit $$failed

bench-viewer: $(DEV)  ## the budgets of the player, in a browser
	@$(PY) benchmarks/bench_viewer.py $(ARGS)

bench-book: $(BASE)-dev,book $(TOOLS)  ## how long the book takes to make and to open, and its size
	@$(PY) benchmarks/bench_book.py $(ARGS)

BOOK := book/_build/html
book: $(BASE)-book $(TOOLS)  ## the book, into book/_build/html; it opens without a server
	@$(PY) -m sphinx -n -W --keep-going -q -d book/_build/doctrees -b html book $(BOOK) $(ARGS)
	@echo "$(BOOK)/index.html"

# The book is built again, with links to the live lessons. The empty file keeps GitHub Pages from running Jekyll.
site: BOOK := book/_build/site
site: export MINIGRAD_LITE := lite/
site: book lite  ## the book with the live lessons below it, into site/, to be published as it is
	@rm -rf site && cp -r $(BOOK) site && cp -r book/_build/lite site/lite && touch site/.nojekyll
	@echo "site/index.html; to look at it: $(PY) -m http.server --bind 127.0.0.1 --directory site"

# A folder or an address with Pyodide's full distribution, for NumPy and matplotlib in the page.
PYODIDE ?=
lite: $(BASE)-lite $(TOOLS)  ## the lessons in a web page, into book/_build/lite: static files for any server
	@$(PY) book/lite/build.py book/_build/lite $(if $(PYODIDE),--distribution "$(PYODIDE)") $(ARGS)
	@echo "To look at it: $(PY) -m http.server --bind 127.0.0.1 --directory book/_build/lite"

clean:  ## remove .venv and everything else made here
	rm -rf $(VENV) dist viz/frontend/node_modules book/_build site tour.html .pytest_cache .mypy_cache .ruff_cache .hypothesis
	rm -rf $(VENV) .platforms dist viz/frontend/node_modules book/_build tour.html .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find . -name .git -prune -o \( -name __pycache__ -o -name .ipynb_checkpoints \) -prune -exec rm -rf {} +

# Takes $(PYTHON), or the first interpreter that is 3.11 or newer. Each is asked: a name on PATH may be a shim for nothing.
$(PY):
	@for python in $(or $(PYTHON),python3 python3.14 python3.13 python3.12 python3.11); do \
	    "$$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || continue; \
	    if "$$python" -c 'import ensurepip, venv' 2>/dev/null; then \
	        echo "Making $(VENV) with $$("$$python" --version)"; \
	        exec "$$python" -m venv --clear $(VENV); \
	    fi; \
	    echo "$$python cannot make a virtual environment (on Debian: apt-get install python3-venv)." >&2; \
	done; \
	echo "minigrad needs Python 3.11 or newer; $(or $(PYTHON),python3) is $$($(or $(PYTHON),python3) --version 2>&1)." >&2; \
	echo "Install one, or name it: make $(firstword $(MAKECMDGOALS)) PYTHON=/path/to/python3.12" >&2; \
	exit 2

$(BASE): pyproject.toml constraints.txt | $(PY)
	@echo "Installing minigrad into $(VENV) (once, half a minute)"
	@$(PIP) --editable .
	@$(PY) -m minigrad doctor --warm || true  # it prints why it failed; kernels are then compiled when first used
	@touch $@

$(BASE)-%: $(BASE)
	@echo "Installing minigrad[$*] into $(VENV) (once, a minute or two)"
	@$(PIP) --editable '.[$*]'
	@$(PY) -c 'import importlib.util as u; u.find_spec("matplotlib") and __import__("matplotlib.font_manager")'
	@touch $@

# Without npm, or without a network, the tests say what they leave out.
$(TOOLS): viz/frontend/package.json
	@if command -v npm >/dev/null; then \
	    echo "Fetching the tools that build and check the player (once, seconds)"; \
	    (cd viz/frontend && npm install --no-package-lock --no-audit --no-fund --loglevel=error >/dev/null) && touch $@ \
	        || echo "npm could not fetch them: some tests will be skipped." >&2; \
	fi
