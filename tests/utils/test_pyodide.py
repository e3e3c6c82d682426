"""The import hook of web pages, with stand-ins for Pyodide's modules."""

import os
import subprocess
import sys
from types import SimpleNamespace

import pytest

from minigrad.utils.pyodide import PyodideFinder


@pytest.fixture
def pyodide(monkeypatch, tmp_path):
    """Pyodide with one package, whose module `lazily_loaded` appears in a folder of `sys.path` once it is loaded."""
    calls = []

    def load(code):
        calls.append(code)
        if code == "import lazily_loaded":
            (tmp_path / "lazily_loaded.py").write_text("answer = 42\n")

    pyodide = SimpleNamespace(calls=calls, can_run_sync=lambda: True, run_sync=lambda result: result)
    monkeypatch.setitem(sys.modules, "pyodide.ffi", pyodide)
    monkeypatch.setitem(sys.modules, "pyodide_js", SimpleNamespace(loadPackagesFromImports=load))
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path, PyodideFinder()])
    monkeypatch.syspath_prepend(tmp_path)
    yield pyodide
    sys.modules.pop("lazily_loaded", None)


def test_a_package_is_loaded_when_a_module_of_it_is_first_imported(pyodide):
    import lazily_loaded

    assert lazily_loaded.answer == 42
    assert pyodide.calls == ["import lazily_loaded"]


def test_a_module_that_no_package_has_stays_missing(pyodide):
    with pytest.raises(ModuleNotFoundError, match="No module named 'nowhere_to_be_found'"):
        import nowhere_to_be_found  # noqa: F401
    assert pyodide.calls == ["import nowhere_to_be_found"]


def test_submodules_are_left_to_other_finders(pyodide):
    with pytest.raises(ModuleNotFoundError, match=r"No module named 'json\.missing'"):
        import json.missing  # noqa: F401
    assert pyodide.calls == []


def test_nothing_is_loaded_where_python_cannot_wait(pyodide):
    pyodide.can_run_sync = lambda: False
    with pytest.raises(ModuleNotFoundError, match="No module named 'lazily_loaded'"):
        import lazily_loaded  # noqa: F401
    assert pyodide.calls == []


def test_minigrad_installs_the_hook_only_in_a_page(tmp_path):
    (tmp_path / "pyodide").mkdir()
    (tmp_path / "pyodide_js.py").touch()
    (tmp_path / "pyodide" / "ffi.py").write_text("def can_run_sync(): return False\n")
    code = """if True:
        import sys
        sys.platform = sys.argv[1]
        import minigrad
        import tqdm
        print(any("Pyodide" in str(finder) for finder in sys.meta_path), tqdm.tqdm.monitor_interval)
    """
    for platform, path, expected in (
        ("emscripten", tmp_path, "True 0"),
        ("emscripten", "", "False 0"),
        ("linux", tmp_path, "False 10"),
    ):
        environment = os.environ | {"PYTHONPATH": os.pathsep.join((str(path), os.environ.get("PYTHONPATH", "")))}
        command = [sys.executable, "-c", code, platform]
        printed = subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout
        assert printed.strip() == expected
