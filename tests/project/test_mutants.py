"""The catalogue of mutants: each applies to the current code, and every package has one."""

import ast
from pathlib import Path, PurePosixPath

from mutants import MUTANTS
from test_architecture import BACKENDS, CORE, PACKAGES

ROOT = Path(__file__).parents[2]
BESIDE = {"viz/minigrad_viz", "viz/frontend", "book/_ext", "notebooks"}


def room_of(path):
    """Return the module or package of minigrad that contains a file, a backend, or another top folder."""
    parts = PurePosixPath(path).with_suffix("").parts
    if parts[0] != "minigrad":
        return parts[0] if parts[0] == "notebooks" else "/".join(parts[:2])
    return "/".join(parts[1:3]) if parts[1] in ("core", "backends") else parts[1]


def test_each_fault_can_be_planted_once_and_changes_its_file():
    for mutant in MUTANTS:
        text = (ROOT / mutant.path).read_text(encoding="utf-8")
        assert text.count(mutant.old) == 1, f"{mutant.name}: its original code occurs {text.count(mutant.old)} times"
        assert mutant.planted(text) != text, f"{mutant.name}: it has no effect"


def test_python_with_a_fault_in_it_is_python_still():
    for mutant in MUTANTS:
        if mutant.path.endswith(".py"):
            before = (ROOT / mutant.path).read_text(encoding="utf-8")
            after = ast.parse(mutant.planted(before), mutant.name)
            assert ast.dump(after) != ast.dump(ast.parse(before)), f"{mutant.name}: only the formatting changes"


def test_the_named_tests_are_there():
    for mutant in MUTANTS:
        assert 1 <= len(mutant.tests) <= 3, f"{mutant.name}: it lists {len(mutant.tests)} test files"
        lost = [name for name in mutant.tests if not (ROOT / "tests" / name).is_file()]
        assert not lost, f"{mutant.name}: missing test files {lost}"


def test_names_are_unique_and_go_into_the_table():
    names = [mutant.name for mutant in MUTANTS]
    assert len(set(names)) == len(names) >= 60
    assert not [name for name in names if "|" in name or "\n" in name]


def test_each_room_has_a_fault():
    rooms = {*PACKAGES, *[f"core/{name}" for name in CORE], *[f"backends/{name}" for name in BACKENDS], *BESIDE}
    rooms -= {"core", "backends"}
    assert {room_of(mutant.path) for mutant in MUTANTS} == rooms
