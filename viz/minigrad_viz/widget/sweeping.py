"""`sweep`: see a sweep of `minigrad.distributed`, while it runs and afterwards, from the folder that it writes."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from minigrad.core.packages import explained

if TYPE_CHECKING:
    from minigrad_viz.widget.following import Followed

__all__ = ["sweep"]


def sweep(folder: str | os.PathLike[str], *, wait: bool = False) -> Followed:
    """The trials of the sweep in `folder`, the best first, and their picture in parallel coordinates.

    In a notebook it is a widget, and follows a sweep that runs: in a cell after it, or started elsewhere. Where widgets
    cannot be shown it is what was known when the cell ran. ``.svg()`` is the picture alone, ``.results`` the `Sweep`.
    With `wait` there need be no sweep yet.

    Raises MissingFileError where there is none, MissingPackageError without anywidget.
    """
    with explained("a sweep in a notebook", ", or look at parallel.svg in its folder"):
        from minigrad_viz.widget.following import Followed
    return Followed(folder, wait)
