"""Names of dtypes in Taichi, such as f32 and i64. Taichi has no bool, so it is stored as a byte."""

import numpy as np

from minigrad.core.dtypes import DTYPES, DType

__all__ = ["DTYPE_NAMES", "FLOAT", "TAICHI_NAMES"]

FLOAT = np.dtype(np.float32)


def _taichi_name(dtype: DType) -> str:
    return "u8" if dtype.itemsize == 1 else f"{'f' if dtype.is_floating_point else 'i'}{8 * dtype.itemsize}"


TAICHI_NAMES = {dtype.name: _taichi_name(dtype) for dtype in DTYPES.values()}
DTYPE_NAMES = {short: name for name, short in TAICHI_NAMES.items() if name != "bool"}
