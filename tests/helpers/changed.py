"""Select what `make check` runs: a fixed core of tests, and the tests of the files that changed.

    python tests/helpers/changed.py        prints the arguments for pytest

A file has changed if it differs from the upstream branch, or from HEAD if there is none. The tests of a module are
its docstrings, the test files named after it (`test_reduce.py` for `ops/reduce.py`) and those that import it, if they
are few. If there are none, the tests of its package are selected.
"""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

__all__ = ["FLOOR", "changed_files", "tests_of"]

ROOT = Path(__file__).parents[2]
FLOOR = [
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
FEW = 12  # importing tests; above that, the core tests represent them
# Files that are tested by test files with other names.
ELSEWHERE = {
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
    if found := [name for pattern, names in ELSEWHERE.items() if re.match(pattern, path) for name in names]:
        return found
    if not path.endswith(".py") or path.startswith("tests/torch_code/"):
        return []
    *rooms, stem = Path(path).with_suffix("").parts
    if rooms[0] == "notebooks":
        return [f"{Path(path).with_suffix('')}.ipynb"]
    if rooms[0] == "viz":
        rooms = rooms[1:]
    names = [name.strip("_") for name in (*rooms[1:], stem) if name != "__init__"]
    found = named(names[-1]) if names else []
    importing = [test for test, text in sources().items() if imports(rooms, stem).search(text)]
    if len(importing) <= FEW:
        found += importing
    while not found and len(names) > 1:
        names.pop()
        found = [test for test in sources() if names[-1] in Path(test).parts] or named(names[-1])
    has_docstrings = (ROOT / path).exists() and rooms[0] in ("minigrad", "minigrad_viz")
    return [*dict.fromkeys(found), *[path] * has_docstrings]


def named(name: str) -> list[str]:
    """Return the test files that are named after a module or package."""
    stem = re.compile(rf"test_({name}|{name.rstrip('s')})(_\w+)?|test_\w+_{name}")
    return [test for test in sources() if stem.fullmatch(Path(test).stem)]


def imports(rooms: list[str], stem: str) -> re.Pattern[str]:
    """Return the pattern of a line that imports a module."""
    room = re.escape(".".join(rooms))
    if stem == "__init__":
        return re.compile(rf"^ *(import|from) {room} ", re.MULTILINE)
    return re.compile(rf"(import|from) {room}\.{stem}\b|from {room} import ([^\n]*\W)?{stem}\b")


if __name__ == "__main__":
    wanted = dict.fromkeys([*FLOOR, *[test for path in changed_files() for test in tests_of(path)]])
    paths = [path for path in wanted if (ROOT / path).exists()]
    lessons = any(path.endswith(".ipynb") for path in paths)  # nbval takes 2 s to import
    print(*(NBVAL if lessons else ["-p", "no:nbval"]), *paths)
