"""minigrad_viz: draw computation graphs with their values and gradients, and step through the chain rule.

>>> import minigrad as mg
>>> a, b = mg.Value(2.0, "a"), mg.Value(-3.0, "b")
>>> drawing = draw(a * b)             # displayed as a picture in a notebook
>>> drawing.svg()[:4]
'<svg'

`step`, `play` and `tour` play the forward and the backward pass; `explain` prints the arithmetic of one node. All of
them take PyTorch tensors and models too; `record` saves what PyTorch computes within a block of code. After
``%load_ext minigrad_viz`` a Value at the end of a cell is drawn, and ``%%trace`` plays the graph that a cell builds.
"""

import sys
import warnings
from importlib import import_module
from importlib.abc import Loader
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

from minigrad_viz.pictures.drawing import Drawing, draw, export, to_json
from minigrad_viz.pictures.explain import explain
from minigrad_viz.pictures.graphviz import to_graphviz
from minigrad_viz.pictures.html import to_html
from minigrad_viz.pictures.plot import Plot
from minigrad_viz.pictures.svg import to_svg
from minigrad_viz.pictures.text import to_text
from minigrad_viz.trace import Trace, to_trace
from minigrad_viz.trace.recording import record
from minigrad_viz.widget.comparison import Comparison, compare
from minigrad_viz.widget.player import play, step, tour

__all__ = [
    "Comparison",
    "Drawing",
    "Plot",
    "Trace",
    "compare",
    "draw",
    "explain",
    "export",
    "load_ipython_extension",
    "play",
    "record",
    "step",
    "sweep",
    "to_graphviz",
    "to_html",
    "to_json",
    "to_svg",
    "to_text",
    "to_trace",
    "tour",
    "unload_ipython_extension",
    "watch",
]


# Old module names, deprecated for one release.
RENAMED_MODULES = {
    "broken": "trace.failed_call",
    "captions": "trace.captions",
    "comparing": "widget.comparison",
    "differences": "trace.differences",
    "following": "widget.sweep_widget",
    "frontend": "pictures.frontend",
    "gaps": "trace.gaps",
    "gradient_flow": "trace.gradient_flow",
    "history": "trace.history",
    "models": "trace.models",
    "notation": "trace.notation",
    "notebook": "widget.notebook",
    "palette": "pictures.palette",
    "player": "widget.player",
    "sweeping": "widget.sweep_view",
    "watching": "widget.watcher",
}


def __getattr__(name: str) -> Any:
    if name == "watch":  # imports NumPy
        from minigrad_viz.widget.watcher import watch

        return watch
    if name == "sweep":
        from minigrad_viz.widget.sweep_view import sweep

        return sweep
    raise AttributeError(f"module 'minigrad_viz' has no attribute {name!r}")


class _RenamedModuleFinder(Loader):
    """Meta path finder that resolves deprecated module names to the renamed modules."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        package, _, stem = name.partition(".")
        if package != "minigrad_viz" or stem not in RENAMED_MODULES:
            return None
        message = (
            f"{name} is deprecated and will be removed in the next release; import "
            f"minigrad_viz.{RENAMED_MODULES[stem]}."
        )
        warnings.warn(message, DeprecationWarning, stacklevel=2)
        return ModuleSpec(name, cls())

    def exec_module(self, module: ModuleType) -> None:
        """Replace the new, empty module in `sys.modules` with the renamed module."""
        old_name = module.__name__
        sys.modules[old_name] = import_module(f"minigrad_viz.{RENAMED_MODULES[old_name.partition('.')[2]]}")


sys.meta_path.append(_RenamedModuleFinder)


def load_ipython_extension(shell: Any) -> None:
    """Register the display of Values and the ``%%trace`` magic with IPython (called by ``%load_ext minigrad_viz``).

    >>> from IPython.core.interactiveshell import InteractiveShell
    >>> shell = InteractiveShell()
    >>> load_ipython_extension(shell)
    >>> "trace" in shell.magics_manager.magics["cell"]
    True
    >>> unload_ipython_extension(shell)
    """
    from minigrad_viz.widget import notebook

    notebook.load(shell)


def unload_ipython_extension(shell: Any) -> None:
    """Undo `load_ipython_extension` (called by ``%unload_ext minigrad_viz``)."""
    from minigrad_viz.widget import notebook

    notebook.unload(shell)
