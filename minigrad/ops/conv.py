"""Convolution and its kin: operations."""

__all__: list[str] = []
