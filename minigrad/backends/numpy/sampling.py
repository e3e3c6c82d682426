"""Sampling images at points: kernels."""

__all__: list[str] = []
