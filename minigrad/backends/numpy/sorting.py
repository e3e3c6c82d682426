"""Sorting: kernels."""

__all__: list[str] = []
