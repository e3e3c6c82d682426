"""Switches that programs for PyTorch set: of a library that is not used here. Every computation is deterministic."""

__all__ = ["allow_tf32", "benchmark", "deterministic", "enabled", "is_available"]
__path__: list[str] = []  # no folder: what is imported from here and is not here, `pytorch.modules` answers for

enabled = False
deterministic = True
benchmark = False
allow_tf32 = False


def is_available() -> bool:
    """False: kernels of our own compute on CUDA."""
    return False
