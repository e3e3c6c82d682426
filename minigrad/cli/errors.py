"""The exception that ends a command early."""

from __future__ import annotations

__all__ = ["CommandError"]


class CommandError(Exception):
    """Error that the user can fix. It is printed on one line, with exit code 2."""
