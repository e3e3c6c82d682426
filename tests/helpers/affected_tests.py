"""Select what `make check` runs: a fixed core of tests, and the tests of the files that changed.

    python tests/helpers/affected_tests.py        prints the arguments for pytest

A file has changed if it differs from the upstream branch, or from HEAD if there is none. The tests of a module are
its docstrings, the test files named after it (`test_reduce.py` for `ops/reduce.py`) and those that import it, if they
are few. If there are none, the tests of its package are selected.
"""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

__all__ = ["CORE_TESTS", "changed_files", "tests_of"]

ROOT = Path(__file__).parents[2]
CORE_TESTS = [
    "tests/project/test_architecture.py",
    "tests/profiling/test_profiler.py",
    "tests/core/test_errors.py",
    "tests/core/test_accumulation.py",
    "tests/core/test_graph.py",
    "tests/core/test_op.py",
    "tests/core/test_dispatch.py",
    "tests/project/test_needs.py",
    "tests/ops/test_ops.py",
    "tests/core/test_promotion.py",
    "tests/core/test_tensor.py",
    "tests/core/test_value.py",
    "tests/core/test_value_operands.py",
]
NBVAL = ["--nbval", "--nbval-sanitize-with", "notebooks/sanitize.cfg"]
MAX_IMPORTING = 12  # importing tests; above that, the core tests represent them
# Files that are tested by test files with other names.
TESTS_BY_PATTERN = {
    r"viz/frontend/": [f"tests/viz/frontend/test_{name}.py" for name in ("modules", "packaging", "sources")],
    r"book/(?!_ext|playground)|\w+\.md": ["tests/project/test_readme.py"],
    r"book/playground/": ["tests/book/test_playground.py"],
    r"examples/": ["tests/whole/test_examples_text.py"],
    r"pyproject\.toml|constraints\.txt|Makefile": ["tests/core/test_packages.py", "tests/project/test_readme.py"],
}


def git(*words: str) -> list[str]:
    """Return the lines that git prints, or an empty list if it fails."""
    child = subprocess.run(["git", *words], cwd=ROOT, capture_output=True, text=True, check=False)
    return child.stdout.splitlines() if child.returncode == 0 else []


def changed_files() -> list[str]:
    """Return the paths, relative to the root, of files that differ from the upstream branch or are untracked."""
    base = (git("merge-base", "HEAD", "@{upstream}") or ["HEAD"])[0]
    return sorted({*git("diff", "--name-only", base), *git("ls-files", "--others", "--exclude-standard")})


@cache
def sources() -> dict[str, str]:
    """Return the source of every test file, by path."""
    paths = sorted((ROOT / "tests").rglob("test_*.py"))
    return {path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8") for path in paths}


def tests_of(path: str) -> list[str]:
    """Return the paths of the tests of a file. A test file or a lesson is its own test."""
    if path in sources() or re.fullmatch(r"notebooks/\d+_\w+\.ipynb", path):
        return [path]
    if selected := [name for pattern, names in TESTS_BY_PATTERN.items() if re.match(pattern, path) for name in names]:
        return selected
    if not path.endswith(".py") or path.startswith("tests/torch_code/"):
        return []
    *packages, stem = Path(path).with_suffix("").parts
    if packages[0] == "notebooks":
        return [f"{Path(path).with_suffix('')}.ipynb"]
    if packages[0] == "viz":
        packages = packages[1:]
    names = [name.strip("_") for name in (*packages[1:], stem) if name != "__init__"]
    selected = tests_named(names[-1]) if names else []
    importing = [test for test, text in sources().items() if import_pattern(packages, stem).search(text)]
    if len(importing) <= MAX_IMPORTING:
        selected += importing
    while not selected and len(names) > 1:
        names.pop()
        selected = [test for test in sources() if names[-1] in Path(test).parts] or tests_named(names[-1])
    has_docstrings = (ROOT / path).exists() and packages[0] in ("minigrad", "minigrad_viz")
    return [*dict.fromkeys(selected), *[path] * has_docstrings]


def tests_named(name: str) -> list[str]:
    """Return the test files that are named after a module or package."""
    stem = re.compile(rf"test_({name}|{name.rstrip('s')})(_\w+)?|test_\w+_{name}")
    return [test for test in sources() if stem.fullmatch(Path(test).stem)]


def import_pattern(packages: list[str], stem: str) -> re.Pattern[str]:
    """Return the pattern of a line that imports a module."""
    package = re.escape(".".join(packages))
    if stem == "__init__":
        return re.compile(rf"^ *(import|from) {package} ", re.MULTILINE)
    return re.compile(rf"(import|from) {package}\.{stem}\b|from {package} import ([^\n]*\W)?{stem}\b")


if __name__ == "__main__":
    selected = dict.fromkeys([*CORE_TESTS, *[test for path in changed_files() for test in tests_of(path)]])
    paths = [path for path in selected if (ROOT / path).exists()]
    lessons = any(path.endswith(".ipynb") for path in paths)  # nbval takes 2 s to import
    print(*(NBVAL if lessons else ["-p", "no:nbval"]), *paths)
