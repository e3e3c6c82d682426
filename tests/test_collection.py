"""Collecting the tests imports none of the packages that take seconds to import; the tests that need them do."""

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
HEAVY = ("matplotlib", "ray", "taichi", "torch")

# A plugin of pytest's that notes which collected file first imports a package: `find_spec` alone imports nothing.
PROGRAM = """
import sys
import pytest

class Imports:
    found = {}

    def note(self, who):
        for name in sys.argv[1].split(","):
            if name in sys.modules:
                self.found.setdefault(name, who)

    @pytest.hookimpl(trylast=True)
    def pytest_configure(self):
        self.note("tests/conftest.py or a plugin")

    @pytest.hookimpl(wrapper=True)
    def pytest_make_collect_report(self, collector):
        report = yield
        self.note(collector.nodeid)
        return report

imports = Imports()
code = pytest.main(["--collect-only", "-qq", "-p", "no:cacheprovider", *sys.argv[2:]], plugins=[imports])
print()
print(int(code), imports.found)
"""


def collected(*arguments: str) -> str:
    """Return the exit status of a collection in a child process, and which file imported each heavy package."""
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, ",".join(HEAVY), *arguments],
        cwd=ROOT, capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    return done.stdout.splitlines()[-1] if done.stdout.strip() else done.stderr


def test_collecting_all_tests_imports_no_heavy_package():
    assert collected("tests", "minigrad", "viz/minigrad_viz") == "0 {}"


def test_a_file_that_imports_a_heavy_package_is_named(tmp_path):
    (tmp_path / "torch.py").write_text("")
    (tmp_path / "test_planted.py").write_text("import torch\n\n\ndef test_nothing():\n    pass\n")
    found = collected("--rootdir", str(tmp_path), "-p", "no:nbval", "-o", f"pythonpath={tmp_path}", str(tmp_path))
    assert found == "0 {'torch': 'test_planted.py'}"
