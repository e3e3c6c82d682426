"""The names of the supported devices. Whether a device is available is checked on its first use."""

__all__ = ["DEVICES", "GPUS", "NO_FLOAT64"]

GPUS = ("cuda", "vulkan", "metal")
NO_FLOAT64 = ("vulkan", "metal")  # lack float64, or some of its functions
DEVICES = ("numpy", "cpu", *GPUS)
