"""What one works with in a notebook: the player, comparisons, and what is shown while a model is trained."""

from typing import Any

__all__ = ["Player"]


def __getattr__(name: str) -> Any:
    if name == "Player":  # whose ipywidgets take a while to import
        from minigrad_viz.widget.widget import Player

        return Player
    raise AttributeError(f"module 'minigrad_viz.widget' has no attribute {name!r}")
