"""What programs for PyTorch ask on a Mac, whose GPU has the name "metal" here."""

__all__ = ["is_available", "is_built"]


def is_available() -> bool:
    """False: there is no device "mps". `mg.device("metal")` is the Mac's GPU, and raises where there is none."""
    return False


def is_built() -> bool:
    """False, as `is_available`."""
    return False
