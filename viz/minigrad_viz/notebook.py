"""``%load_ext minigrad_viz``: a Value at the end of a cell is drawn. The class is left alone: IPython is told."""

from __future__ import annotations

from typing import Any

import minigrad as mg
from minigrad_viz.drawing import Drawing
from minigrad_viz.trace import to_trace

__all__ = ["load", "unload"]

_before: dict[int, Any] = {}  # by formatter: the printer that was there before ours


def load(shell: Any) -> None:
    """From now on `shell`, an IPython InteractiveShell, displays a Value as `draw` does, named after its variables."""

    def bundle(value: mg.Value) -> dict[str, str]:
        return Drawing(to_trace(value, namespaces=(shell.user_ns,)))._repr_mimebundle_()

    formatter = shell.display_formatter.mimebundle_formatter
    before = formatter.for_type(mg.Value, bundle)
    _before.setdefault(id(formatter), before)


def unload(shell: Any) -> None:
    """Display a Value as before `load`."""
    formatter = shell.display_formatter.mimebundle_formatter
    if id(formatter) in _before:
        before = _before.pop(id(formatter))
        formatter.pop(mg.Value, None)
        if before is not None:
            formatter.for_type(mg.Value, before)
