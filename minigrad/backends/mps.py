"""Stubs of `torch.backends.mps`. In minigrad, the GPU of a Mac is the device "metal"."""

__all__ = ["is_available", "is_built"]


def is_available() -> bool:
    """Return False: the device of a Mac's GPU is `mg.device("metal")`, which raises if it is unavailable."""
    return False


def is_built() -> bool:
    """Return False, as `is_available` does."""
    return False
