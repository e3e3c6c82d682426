"""Storage: where the bytes of a tensor live. Tensors that are views of one another share one."""

from __future__ import annotations

__all__ = ["Storage"]


class Storage:
    """The identity of some bytes: on which device, how often they were written, and by what.

    `version` counts the writes: a value kept for the backward pass knows the version it was kept at. `rebased` counts
    how often a write changed where the gradient of these bytes comes from, so that views know theirs is out of date.
    """

    __slots__ = ("device", "rebased", "version", "writer")

    def __init__(self, device: str) -> None:
        self.device = device
        self.version = 0
        self.rebased = 0
        self.writer = ""

    def written(self, writer: str) -> None:
        """Count a write by `writer`, an operation's name, with the source line where that is known."""
        self.version += 1
        self.writer = writer
