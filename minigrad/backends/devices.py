"""The devices that tensors may be on, by name. Whether one is there, a machine tells when it is asked for."""

__all__ = ["DEVICES", "GPUS", "NARROW"]

GPUS = ("cuda", "vulkan", "metal")
NARROW = ("vulkan", "metal")  # have no float64, or not all of its functions
DEVICES = ("numpy", "cpu", *GPUS)
