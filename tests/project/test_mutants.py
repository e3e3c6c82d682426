"""The catalogue of mutants: each applies to the current code, and every package has one."""

import ast
from pathlib import Path, PurePosixPath

from mutants import MUTANTS
from test_architecture import BACKENDS, CORE, PACKAGES

ROOT = Path(__file__).parents[2]
OTHER_FOLDERS = {"viz/minigrad_viz", "viz/frontend", "book/_ext", "notebooks"}


def package_of(path):
    """Return the module or package of minigrad that contains a file, a backend, or another top folder."""
    parts = PurePosixPath(path).with_suffix("").parts
    if parts[0] != "minigrad":
        return parts[0] if parts[0] == "notebooks" else "/".join(parts[:2])
    return "/".join(parts[1:3]) if parts[1] in ("core", "backends") else parts[1]


def test_each_mutant_applies_exactly_once():
    for mutant in MUTANTS:
        text = (ROOT / mutant.path).read_text(encoding="utf-8")
        assert text.count(mutant.old) == 1, f"{mutant.name}: its original code occurs {text.count(mutant.old)} times"
        assert mutant.mutate(text) != text, f"{mutant.name}: it has no effect"


def test_mutated_python_parses_and_differs():
    for mutant in MUTANTS:
        if mutant.path.endswith(".py"):
            before = (ROOT / mutant.path).read_text(encoding="utf-8")
            after = ast.parse(mutant.mutate(before), mutant.name)
            assert ast.dump(after) != ast.dump(ast.parse(before)), f"{mutant.name}: only the formatting changes"


def test_the_listed_test_files_exist():
    for mutant in MUTANTS:
        assert 1 <= len(mutant.tests) <= 3, f"{mutant.name}: it lists {len(mutant.tests)} test files"
        missing = [name for name in mutant.tests if not (ROOT / "tests" / name).is_file()]
        assert not missing, f"{mutant.name}: missing test files {missing}"


def test_names_are_unique_and_fit_the_table():
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names) >= 60
    assert not [name for name in names if "|" in name or "\n" in name]


def test_each_package_has_a_mutant():
    packages = {
        *PACKAGES,
        *[f"core/{name}" for name in CORE],
        *[f"backends/{name}" for name in BACKENDS],
        *OTHER_FOLDERS,
    }
    packages -= {"core", "backends"}
    assert {package_of(mutant.path) for mutant in MUTANTS} == packages
