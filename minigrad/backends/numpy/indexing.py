"""Choosing numbers by index: kernels."""

__all__: list[str] = []
