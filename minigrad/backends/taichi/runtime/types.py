"""Dtypes by their names in Taichi, such as f32 and i64. Taichi has no bool, which is stored as a byte."""

import numpy as np

from minigrad.core.dtypes import DTYPES, DType

__all__ = ["FLOAT", "NAMES", "TI"]

FLOAT = np.dtype(np.float32)


def _named(dtype: DType) -> str:
    return "u8" if dtype.itemsize == 1 else f"{'f' if dtype.is_floating_point else 'i'}{8 * dtype.itemsize}"


TI = {dtype.name: _named(dtype) for dtype in DTYPES.values()}
NAMES = {short: name for name, short in TI.items() if name != "bool"}
