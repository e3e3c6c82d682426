"""Sorting: operations."""

__all__: list[str] = []
