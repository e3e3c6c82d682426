"""Import paths of before the packages were moved, and public modules that are found under another name."""

import subprocess
import sys
from importlib import import_module

import pytest

import minigrad as mg

MOVED = mg._MOVED


@pytest.mark.parametrize("name", MOVED)
def test_an_old_path_gives_the_module_itself_with_a_warning(name, monkeypatch):
    monkeypatch.delitem(sys.modules, f"minigrad.{name}", raising=False)
    vars(mg).pop(name, None)
    with pytest.warns(DeprecationWarning, match=rf"minigrad\.{name} is minigrad\.{MOVED[name]} now") as warned:
        found = import_module(f"minigrad.{name}")
    assert len(warned) == 1
    assert found is import_module(f"minigrad.{MOVED[name]}")
    vars(mg).pop(name)
    with pytest.warns(DeprecationWarning, match=name) as warned:
        assert getattr(mg, name) is found
    assert warned[0].filename == __file__


def test_a_statement_is_named_as_the_place():
    code = "import warnings; warnings.simplefilter('error'); from minigrad.graph import Node"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert 'File "<string>", line 1, in <module>' in child.stderr
    assert child.stderr.endswith(
        f"minigrad.graph is minigrad.{MOVED['graph']} now; the old name goes with the next release.\n"
    )


@pytest.mark.parametrize("name", mg._ALIASES)
def test_public_modules_are_found_without_a_warning(name):
    code = f"import warnings; warnings.simplefilter('error'); import minigrad.{name}; print(minigrad.{name}.__name__)"
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (child.stdout, child.stderr) == (f"minigrad.{mg._ALIASES[name]}\n", "")
