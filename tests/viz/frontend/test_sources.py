"""The player's sources: the direction of imports, and files cited in comments."""

import re
from pathlib import Path

import pytest

from cases import merge_cases
from needs import FRONTEND

SOURCES = FRONTEND / "src"
ROOT = FRONTEND.parents[1]
# Each folder may import those before it in this list; "." stands for the files next to the folders.
FOLDERS = ["base", "model", "engine", "layout", "drawing", "panels", "."]
FILES = sorted([*SOURCES.rglob("*.js"), *FRONTEND.glob("*.mjs"), *FRONTEND.glob("tests/*.js")])

IMPORT = re.compile(r"""(?:\bfrom\s+|^import\s+|\bimport\()"(\.[^"]+)\"""", re.MULTILINE)
COMMENT = re.compile(r"/\*.*?\*/|(?<![:\"'`])//[^\n]*", re.DOTALL)
CITED = re.compile(r"(?<![\w./-])((?:\.{0,2}/)?(?:[\w-]+/)*[\w-]+\.(?:js|mjs|py|md|json|toml))\b")


def imports_of(path: Path) -> set[str]:
    """Return the sources that a source imports, including type imports."""
    imports = [(path.parent / name).resolve() for name in IMPORT.findall(path.read_text(encoding="utf-8"))]
    return {str(one.relative_to(SOURCES)) for one in imports if one != path}


def imports() -> dict[str, set[str]]:
    return {str(path.relative_to(SOURCES)): imports_of(path) for path in SOURCES.rglob("*.js")}


def test_folders_import_only_lower_ones():
    wrong = [
        f"{path} imports {name}"
        for path, names in imports().items()
        for name in names
        if FOLDERS.index(str(Path(name).parent)) > FOLDERS.index(str(Path(path).parent))
    ]
    assert wrong == []


def test_imports_have_no_cycle():
    remaining = imports()
    while leaves := [path for path, imported in remaining.items() if not imported & remaining.keys()]:
        for path in leaves:
            del remaining[path]
    while roots := [path for path in remaining if not any(path in targets for targets in remaining.values())]:
        for path in roots:
            del remaining[path]
    assert sorted(remaining) == []


def test_sources_that_the_book_and_the_tests_import_exist():
    outside = [*(ROOT / "book" / "playground").rglob("*.*js"), *(ROOT / "tests").rglob("*.*js")]
    names = [(path, name) for path in outside for name in IMPORT.findall(path.read_text(encoding="utf-8"))]
    assert [f"{path.name}: {name}" for path, name in names if not (path.parent / name).is_file()] == []
    assert any("frontend/src" in name for _, name in names)


@merge_cases
@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FRONTEND)))
def test_files_that_a_comment_cites_exist(path):
    """A bare name refers to a neighbouring file; a path is relative to the file, to the sources or to the root."""
    cited = [name for comment in COMMENT.findall(path.read_text(encoding="utf-8")) for name in CITED.findall(comment)]
    roots = [SOURCES, FRONTEND, FRONTEND.parent, ROOT]
    missing = [
        x for x in cited if not any((root / x).is_file() for root in [path.parent, *(roots if "/" in x else [])])
    ]
    assert missing == []


def test_scripts_that_the_viewers_python_cites_exist():
    cited = [
        (path.name, name)
        for path in (FRONTEND.parent / "minigrad_viz").rglob("*.py")
        for name in re.findall(r"[\w/]+\.js\b", path.read_text(encoding="utf-8"))
    ]
    roots = (FRONTEND.parent, FRONTEND.parent / "minigrad_viz", FRONTEND.parent / "minigrad_viz" / "static")
    assert [pair for pair in cited if not any((root / pair[1]).is_file() for root in roots)] == []
    assert len(cited) > 8


@merge_cases
@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(FRONTEND)))
def test_no_file_is_above_400_lines(path):
    assert len(path.read_text(encoding="utf-8").splitlines()) <= 400
