"""The test tree mirrors the packages, and collection imports none of the packages that take seconds to import."""

import subprocess
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
# Tests of several modules, of the project itself, or of pages in a browser.
APART = {"book", "gpu", "project", "viz/browser", "viz/frontend", "whole"}
PROGRAM = """
import sys
import pytest
from heavy import HeavyImports

imports = HeavyImports()
pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", "-p", "no:nbval", *sys.argv[1:]], plugins=[imports])
print()
print(imports.found)
"""


def test_each_file_of_tests_is_named_after_a_module_or_package_that_lies_likewise():
    strangers = []
    for path in sorted(TESTS.rglob("test_*.py")):
        room = path.parent.relative_to(TESTS)
        if room.as_posix() in APART or path.name == "test_language.py":  # reads the whole project
            continue
        place = ROOT / "viz" / "minigrad_viz" if room.parts[:1] == ("viz",) else ROOT / "minigrad"
        package = place.joinpath(*[part for part in room.parts if part != "viz"])
        modules = [one.stem for one in package.iterdir() if one.suffix == ".py" or one.is_dir()]
        names = [name.strip("_") for name in (*modules, package.name)]
        if not any(path.stem == f"test_{name}" or path.stem.startswith(f"test_{name}_") for name in names):
            strangers.append(path.relative_to(TESTS).as_posix())
    assert strangers == []


def test_nothing_that_was_collected_imports_a_heavy_package(pytestconfig):
    assert pytestconfig.pluginmanager.get_plugin("heavy imports").found == {}


def test_a_file_that_imports_a_heavy_package_is_named(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("")
    (tmp_path / "test_planted.py").write_text("import torch\n\n\ndef test_nothing():\n    pass\n")
    monkeypatch.setenv("PYTHONPATH", str(TESTS / "helpers"))
    options = ["--rootdir", str(tmp_path), "-o", f"pythonpath={tmp_path}", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *options], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1] == "{'torch': 'test_planted.py'}", done.stderr
