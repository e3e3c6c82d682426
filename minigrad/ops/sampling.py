"""Sampling images at points: operations."""

__all__: list[str] = []
