"""Collecting the tests imports none of the packages that take seconds to import; the tests that need them do."""

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import sys
import pytest
from heavy import HeavyImports

imports = HeavyImports()
pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", "-p", "no:nbval", *sys.argv[1:]], plugins=[imports])
print()
print(imports.found)
"""


def test_nothing_that_was_collected_imports_a_heavy_package(pytestconfig):
    assert pytestconfig.pluginmanager.get_plugin("heavy imports").found == {}


def test_a_file_that_imports_a_heavy_package_is_named(tmp_path, monkeypatch):
    (tmp_path / "torch.py").write_text("")
    (tmp_path / "test_planted.py").write_text("import torch\n\n\ndef test_nothing():\n    pass\n")
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parent))
    options = ["--rootdir", str(tmp_path), "-o", f"pythonpath={tmp_path}", str(tmp_path)]
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, *options], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout.splitlines()[-1] == "{'torch': 'test_planted.py'}", done.stderr
