"""Pooling and resizing: kernels."""

__all__: list[str] = []
