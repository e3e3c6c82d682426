"""Pooling and resizing: operations."""

__all__: list[str] = []
