"""Mode contexts, and interrupts during their entry and exit."""

import dis
import subprocess
import sys

import pytest

import minigrad as mg
from minigrad.core import modes
from minigrad.core.modes import slow_path
from needs import needs


@pytest.mark.parametrize(("method", "last"), [("__enter__", "RETURN"), ("__exit__", "DELETE_SUBSCR")])
def test_changing_modes_makes_no_calls(method, last):
    """Raise at function entry and after calls, where Python checks for interrupts."""
    names = [x.opname for x in dis.get_instructions(getattr(modes.ModeContext, method))]
    changes = names.index("BINARY_OP"), max(k for k, name in enumerate(names) if name.startswith(last))
    assert not [name for name in names[changes[0] : changes[1]] if "CALL" in name or "JUMP_BACKWARD" in name]


def test_an_interrupted_cell_exits_all_contexts(monkeypatch):
    import IPython
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    monkeypatch.setattr(IPython, "get_ipython", lambda: shell)
    modes.register_cell_callback()
    open_, initial = "mg.no_grad().__enter__(); mg.scope('s').__enter__()", len(slow_path.reasons)
    shell.run_cell("import minigrad as mg; " + open_)
    assert not mg.is_grad_enabled()  # a cell without an interrupt leaves its contexts open
    shell.run_cell("raise ValueError")
    assert not mg.is_grad_enabled()
    shell.run_cell(f"{open_}; raise KeyboardInterrupt")
    assert mg.is_grad_enabled()
    shell.run_cell("def waits():\n    with mg.no_grad():\n        yield\nw = waits(); next(w); raise KeyboardInterrupt")
    shell.run_cell("next(w, None)")  # its context was exited already
    assert mg.is_grad_enabled()
    assert (modes.modes.scope, modes.modes.saved_states, len(slow_path.reasons)) == ("", [], initial)


def test_importing_minigrad_registers_the_cell_callback():
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
