"""Softmax and attention: operations."""

__all__: list[str] = []
