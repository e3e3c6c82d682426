"""Notebook widgets: the player, comparisons, and the training monitor."""

from typing import Any

__all__ = ["Player"]


def __getattr__(name: str) -> Any:
    if name == "Player":  # ipywidgets is slow to import
        from minigrad_viz.widget.widget import Player

        return Player
    raise AttributeError(f"module 'minigrad_viz.widget' has no attribute {name!r}")
