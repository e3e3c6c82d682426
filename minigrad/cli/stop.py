"""What ends a command early."""

from __future__ import annotations

__all__ = ["Stop"]


class Stop(Exception):
    """What a user must put right; told in one line, with exit code 2."""
