"""`sweep`: a view of a sweep of `minigrad.distributed`, which is read from its folder during and after the run."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from minigrad.core.packages import explain_import_errors

if TYPE_CHECKING:
    from minigrad_viz.widget.sweep_widget import SweepWidget

__all__ = ["sweep"]


def sweep(folder: str | os.PathLike[str], *, wait: bool = False) -> SweepWidget:
    """Return a view of the sweep in `folder`: its trials, the best first, and a parallel coordinates picture.

    In a notebook, the view is a widget that follows a running sweep, whether it runs in a later cell or in another
    process. Where widgets cannot be shown, it is a snapshot from when the cell ran. ``.svg()`` is the picture alone,
    ``.results`` the `Sweep`. With `wait`, the sweep need not exist yet.

    Raises MissingFileError if the sweep does not exist, and MissingPackageError without anywidget.
    """
    with explain_import_errors("a sweep in a notebook", ", or open parallel.svg in its folder"):
        from minigrad_viz.widget.sweep_widget import SweepWidget
    return SweepWidget(folder, wait)
