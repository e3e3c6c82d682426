"""minigrad_viz: see the graph of a computation, its numbers, and how the chain rule goes through it.

>>> import minigrad as mg
>>> a, b = mg.Value(2.0, "a"), mg.Value(-3.0, "b")
>>> drawing = draw(a * b)             # in a notebook, a picture
>>> drawing.svg()[:4]
'<svg'

`step`, `play` and `tour` go through it forward and backward; `explain` writes out the arithmetic of one node. After
``%load_ext minigrad_viz`` a Value at the end of a cell is drawn by itself, and ``%%trace`` plays what a cell computes.
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
from minigrad_viz.pictures.svg import to_svg
from minigrad_viz.pictures.text import to_text
from minigrad_viz.trace import Trace, to_trace
from minigrad_viz.widget.comparing import Comparison, compare
from minigrad_viz.widget.player import play, step, tour

__all__ = [
    "Comparison",
    "Drawing",
    "Trace",
    "compare",
    "draw",
    "explain",
    "export",
    "load_ipython_extension",
    "play",
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


# Modules that moved, whose old names work for one release.
_MOVED = {
    "broken": "trace.broken",
    "captions": "trace.captions",
    "comparing": "widget.comparing",
    "differences": "trace.differences",
    "following": "widget.following",
    "frontend": "pictures.frontend",
    "gaps": "trace.gaps",
    "gradient_flow": "trace.gradient_flow",
    "history": "trace.history",
    "models": "trace.models",
    "notation": "trace.notation",
    "notebook": "widget.notebook",
    "palette": "pictures.palette",
    "player": "widget.player",
    "sweeping": "widget.sweeping",
    "watching": "widget.watching",
}


def __getattr__(name: str) -> Any:
    if name == "watch":  # which needs NumPy, as all tensors do
        from minigrad_viz.widget.watching import watch

        return watch
    if name == "sweep":
        from minigrad_viz.widget.sweeping import sweep

        return sweep
    raise AttributeError(f"module 'minigrad_viz' has no attribute {name!r}")


class _MovedFinder(Loader):
    """Finds modules under their old names: each is the one that moved, not a copy. It is asked last."""

    @classmethod
    def find_spec(cls, name: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        package, _, last = name.partition(".")
        if package != "minigrad_viz" or last not in _MOVED:
            return None
        said = f"{name} is minigrad_viz.{_MOVED[last]} now; the old name goes with the next release."
        warnings.warn(said, DeprecationWarning, stacklevel=2)
        return ModuleSpec(name, cls())

    def exec_module(self, module: ModuleType) -> None:
        """Put the module where `import` looks for the result."""
        old = module.__name__
        sys.modules[old] = import_module(f"minigrad_viz.{_MOVED[old.partition('.')[2]]}")


sys.meta_path.append(_MovedFinder)


def load_ipython_extension(shell: Any) -> None:
    """What ``%load_ext minigrad_viz`` calls: from then on Values are drawn where a cell ends in them.

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
    """What ``%unload_ext minigrad_viz`` calls."""
    from minigrad_viz.widget import notebook

    notebook.unload(shell)
