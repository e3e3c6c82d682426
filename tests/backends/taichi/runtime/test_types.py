"""Taichi's names of dtypes, derived from those of minigrad."""

import numpy as np

from minigrad.backends.taichi.runtime.types import DTYPE_NAMES, TAICHI_NAMES
from minigrad.core.dtypes import DTYPES
from minigrad.io.tensors import CODE_OF_DTYPE


def test_every_type_has_a_name_of_its_size():
    assert TAICHI_NAMES == {
        "float64": "f64",
        "float32": "f32",
        "int64": "i64",
        "int32": "i32",
        "uint8": "u8",
        "bool": "u8",
    }
    assert all(np.dtype(name).itemsize * 8 == int(short[1:]) for name, short in TAICHI_NAMES.items())


def test_a_name_leads_back_to_the_type_that_is_not_bool():
    assert {DTYPE_NAMES[short] for short in TAICHI_NAMES.values()} == TAICHI_NAMES.keys() - {"bool"}


def test_safetensors_name_the_same_types():
    assert sorted(CODE_OF_DTYPE.values()) == ["BOOL", "F32", "F64", "I32", "I64", "U8"]
    assert CODE_OF_DTYPE.keys() == set(DTYPES.values())
