"""Choosing numbers by index: operations."""

__all__: list[str] = []
