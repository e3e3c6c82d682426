"""The import hook of web pages, with stand-ins for Pyodide's modules."""

import subprocess
import sys
from types import SimpleNamespace

import pytest

from minigrad.utils.pyodide import PyodideFinder, install


@pytest.fixture
def pyodide(monkeypatch, tmp_path):
    """Pyodide with one package, whose module `lazily_loaded` appears in a folder of `sys.path` once it is loaded."""
    calls = []

    def load(code):
        calls.append(code)
        if code == "import lazily_loaded":
            (tmp_path / "lazily_loaded.py").write_text("answer = 42\n")

    waits = SimpleNamespace(calls=calls, can_run_sync=lambda: True, run_sync=lambda result: result)
    monkeypatch.setitem(sys.modules, "pyodide.ffi", waits)
    monkeypatch.setitem(sys.modules, "pyodide_js", SimpleNamespace(loadPackagesFromImports=load))
    monkeypatch.setattr(sys, "meta_path", [*sys.meta_path])
    monkeypatch.syspath_prepend(tmp_path)
    install()
    install()
    yield waits
    sys.modules.pop("lazily_loaded", None)


def test_a_package_is_loaded_when_a_module_of_it_is_first_imported(pyodide):
    import lazily_loaded

    assert lazily_loaded.answer == 42
    assert pyodide.calls == ["import lazily_loaded"]
    assert sys.meta_path.count(PyodideFinder) == 1


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


def test_minigrad_installs_the_hook_only_in_a_page():
    code = "import sys; sys.platform = {!r}; import minigrad; print([str(finder) for finder in sys.meta_path])"
    for platform, expected in (("emscripten", True), ("linux", False)):
        command = [sys.executable, "-c", code.format(platform)]
        printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        assert ("PyodideFinder" in printed) is expected
