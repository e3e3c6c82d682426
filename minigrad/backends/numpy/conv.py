"""Convolution and its kin: kernels."""

__all__: list[str] = []
