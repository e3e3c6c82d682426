"""Softmax and attention: kernels."""

__all__: list[str] = []
