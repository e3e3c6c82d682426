"""Taichi's names of dtypes, derived from those of minigrad."""

import numpy as np

from minigrad.backends.taichi.runtime.types import NAMES, TI
from minigrad.core.dtypes import DTYPES
from minigrad.io.tensors import CODES


def test_every_type_has_a_name_of_its_size():
    assert TI == {"float64": "f64", "float32": "f32", "int64": "i64", "int32": "i32", "uint8": "u8", "bool": "u8"}
    assert all(np.dtype(name).itemsize * 8 == int(short[1:]) for name, short in TI.items())


def test_a_name_leads_back_to_the_type_that_is_not_bool():
    assert {NAMES[short] for short in TI.values()} == TI.keys() - {"bool"}


def test_safetensors_name_the_same_types():
    assert sorted(CODES.values()) == ["BOOL", "F32", "F64", "I32", "I64", "U8"]
    assert CODES.keys() == set(DTYPES.values())
