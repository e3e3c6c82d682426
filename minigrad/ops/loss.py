"""Losses: operations."""

__all__: list[str] = []
