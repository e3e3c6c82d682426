"""The exception that ends a command early."""

from __future__ import annotations

__all__ = ["CommandError"]


class CommandError(Exception):
    """An error for the user to fix, printed in one line with exit code 2."""
