"""Normalisation and dropout: kernels."""

__all__: list[str] = []
