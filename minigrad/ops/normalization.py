"""Normalisation and dropout: operations."""

__all__: list[str] = []
