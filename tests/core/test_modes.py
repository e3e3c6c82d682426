"""Mode contexts, and interrupts during their entry and exit."""

import dis
import subprocess
import sys

import pytest

import minigrad as mg
from minigrad.core import modes
from minigrad.core.modes import detour
from needs import needs


@pytest.mark.parametrize(("method", "last"), [("__enter__", "RETURN"), ("__exit__", "DELETE_SUBSCR")])
def test_nothing_is_called_while_modes_change(method, last):
    """Raise at function entry and after calls, where Python checks for interrupts."""
    names = [x.opname for x in dis.get_instructions(getattr(modes.Block, method))]
    changes = names.index("BINARY_OP"), max(k for k, name in enumerate(names) if name.startswith(last))
    assert not [name for name in names[changes[0] : changes[1]] if "CALL" in name or "JUMP_BACKWARD" in name]


def test_after_a_cell_that_was_interrupted_all_blocks_are_left(monkeypatch):
    import IPython
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    modes.listen()
    open_, before = "mg.no_grad().__enter__(); mg.scope('s').__enter__()", len(detour.reasons)
    shell.run_cell("import minigrad as mg; " + open_)
    assert not mg.is_grad_enabled()  # a cell without an interrupt leaves its contexts open
    shell.run_cell("raise ValueError")
    assert not mg.is_grad_enabled()
    shell.run_cell(f"{open_}; raise KeyboardInterrupt")
    assert mg.is_grad_enabled()
    shell.run_cell("def waits():\n    with mg.no_grad():\n        yield\nw = waits(); next(w); raise KeyboardInterrupt")
    shell.run_cell("next(w, None)")  # its context was exited already
    assert mg.is_grad_enabled()
    assert (modes.modes.scope, modes.modes.before, len(detour.reasons)) == ("", [], before)


def test_a_notebook_that_imports_minigrad_has_its_interrupted_blocks_left():
    needs("IPython")
    code = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_cell("import minigrad as mg; mg.no_grad().__enter__(); raise KeyboardInterrupt")
shell.run_cell("print('recorded:', mg.is_grad_enabled())")
"""
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert child.returncode == 0, child.stderr
    assert child.stdout.splitlines()[-1] == "recorded: True"
