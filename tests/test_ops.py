"""Every operation, called as the samples say: against PyTorch in each type and layout, and to second order.

`make test` takes some types and layouts of each sample, others of the next; `make exhaustive` takes all.
"""

import pytest

import minigrad as mg
import parity
import table
from minigrad.kernels import kernels_of
from minigrad.op import OPS
from minigrad.storage import DEVICES
from needs import is_here
from samples import all_samples
from thorough import EXHAUSTIVE, chosen

SAMPLES = all_samples()
# What a device other than the cpu has to be told apart by is not in each of them.
TAKEN = list(SAMPLES)[:: 1 if EXHAUSTIVE else {"cpu": 1, "numpy": 6}.get(mg.get_default_device(), 12)]
OF_TENSORS = [name for name in OPS if "numpy" in kernels_of(name)]
COMPARED = [key for key in TAKEN if SAMPLES[key].parity]
DIFFERENTIABLE = [key for key in TAKEN if not SAMPLES[key].kinked and parity.differentiable(SAMPLES[key])]
# Where PyTorch's gradients are there to compare with, central differences are left to `make exhaustive`.
MEASURED = [key for key in DIFFERENTIABLE if EXHAUSTIVE or not is_here("torch") or key not in COMPARED]


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")  # PyTorch warns of too few numbers for a variance, and the like
@pytest.mark.parametrize("key", COMPARED)
def test_values_types_and_refusals_are_pytorch_s(torch, key):
    sample = SAMPLES[key]
    for dtype, layout in [*parity.float_cases(key), *[(dtype, "contiguous") for dtype in chosen(parity.INTS, key, 1)]]:
        if dtype not in sample.differs and layout not in sample.differs:
            try:
                parity.check_forward(sample, dtype, layout)
            except Exception as error:
                error.add_note(f"{key}: {dtype}, {layout}")
                raise


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("key", [key for key in COMPARED if key in DIFFERENTIABLE or SAMPLES[key].kinked])
def test_gradients_are_pytorch_s(torch, key):
    sample = SAMPLES[key]
    for dtype, layout in parity.float_cases(key):
        if dtype not in sample.differs and layout not in sample.differs:
            try:
                parity.check_gradient(sample, dtype, layout)
            except Exception as error:
                error.add_note(f"{key}: {dtype}, {layout}")
                raise


@pytest.mark.parametrize("key", MEASURED)
def test_gradients_match_central_differences(key):
    parity.check_first(SAMPLES[key])


@pytest.mark.parametrize("key", DIFFERENTIABLE[:: 1 if EXHAUSTIVE else 3])
def test_second_gradients_match_central_differences(key):
    parity.check_second(SAMPLES[key])


@pytest.mark.parametrize("device", DEVICES)
def test_every_operation_has_a_kernel_on_each_device(device):
    assert [name for name in OF_TENSORS if device not in kernels_of(name)] == []


def test_every_operation_of_the_table_is_reached_and_each_rule_twice():
    computed, once, twice = map(set.union, *[table.reached(sample) for sample in SAMPLES.values()])
    elsewhere = {"move"}  # to another device: test_engine.py
    if parity.NARROW:
        elsewhere.add("to")  # there is one type of floats to convert to
    differentiable = {name for name, op in OPS.items() if op.differentiable} - elsewhere
    with_kernels = {name for name in OPS if kernels_of(name)} - elsewhere
    assert (with_kernels - computed, differentiable - once, differentiable - twice) == (set(), set(), set())
