"""Switches of `torch.backends.cudnn`. They have no effect: cuDNN is not used, and every kernel is deterministic."""

__all__ = ["allow_tf32", "benchmark", "deterministic", "enabled", "is_available"]
__path__: list[str] = []  # empty, since `pytorch.import_hooks` resolves imports of submodules

enabled = False
deterministic = True
benchmark = False
allow_tf32 = False


def is_available() -> bool:
    """Return False, since minigrad uses its own CUDA kernels."""
    return False
