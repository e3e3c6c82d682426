"""The test tree mirrors the packages, and collection imports none of the packages that take seconds to import."""

import subprocess
import sys
from pathlib import Path

from needs import is_available

TESTS = Path(__file__).parents[1]
ROOT = TESTS.parent
# Tests of several modules, of the project itself, or of pages in a browser.
WITHOUT_MODULE = {"book", "gpu", "project", "viz/browser", "viz/frontend", "whole"}
PROGRAM = """
import sys
import pytest
from heavy_imports import HeavyImports

imports = HeavyImports()
pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", "-p", "no:nbval", *sys.argv[1:]], plugins=[imports])
print()
print(imports.importers)
"""


def test_each_test_file_mirrors_a_module_or_package():
    unmatched = []
    for path in sorted(TESTS.rglob("test_*.py")):
        folder = path.parent.relative_to(TESTS)
        if folder.as_posix() in WITHOUT_MODULE or path.name == "test_language.py":  # reads the whole project
            continue
        root = ROOT / "viz" / "minigrad_viz" if folder.parts[:1] == ("viz",) else ROOT / "minigrad"
        package = root.joinpath(*[part for part in folder.parts if part != "viz"])
        modules = [one.stem for one in package.iterdir() if one.suffix == ".py" or one.is_dir()]
        names = [name.strip("_") for name in (*modules, package.name)]
        if not any(path.stem == f"test_{name}" or path.stem.startswith(f"test_{name}_") for name in names):
            unmatched.append(path.relative_to(TESTS).as_posix())
    assert unmatched == []


def test_collection_imports_no_heavy_package(pytestconfig):
    importers = dict(pytestconfig.pluginmanager.get_plugin("heavy imports").importers)
    if is_available("torch") and importers.get("torch", "").startswith("viz/minigrad_viz/trace/torch/"):
        del importers["torch"]  # modules about PyTorch, which are imported for their examples
    assert importers == {}


def test_the_plugin_names_a_file_that_imports_a_heavy_package(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("")
    (tmp_path / "test_planted.py").write_text("import torch\n\n\ndef test_nothing():\n    pass\n")
    monkeypatch.setenv("PYTHONPATH", str(TESTS / "helpers"))
    options = ["--rootdir", str(tmp_path), "-o", f"pythonpath={tmp_path}", str(tmp_path)]
    child = subprocess.run(
        [sys.executable, "-c", PROGRAM, *options], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert child.stdout.splitlines()[-1] == "{'torch': 'test_planted.py'}", child.stderr
