"""Losses: kernels."""

__all__: list[str] = []
