"""Every operation, called as the samples say: against PyTorch in each type and layout, and to second order."""

import pytest

pytest.importorskip("numpy")

import parity
import table
from minigrad.kernels import kernels_of
from minigrad.op import OPS
from minigrad.storage import DEVICES
from samples import all_samples

SAMPLES = all_samples()
OF_TENSORS = [name for name in OPS if "numpy" in kernels_of(name)]
COMPARED = [key for key, sample in SAMPLES.items() if sample.parity]
DIFFERENTIABLE = [key for key, sample in SAMPLES.items() if not sample.kinked and parity.differentiable(sample)]


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")  # PyTorch warns of too few numbers for a variance, and the like
@pytest.mark.parametrize("key", COMPARED)
def test_values_types_and_refusals_are_pytorch_s(torch, key):
    sample = SAMPLES[key]
    cases = [(dtype, layout) for dtype in parity.FLOATS for layout in parity.LAYOUTS]
    cases += [(dtype, "contiguous") for dtype in parity.INTS]
    for dtype, layout in cases:
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
    for dtype in parity.FLOATS:
        for layout in parity.LAYOUTS:
            if dtype not in sample.differs and layout not in sample.differs:
                try:
                    parity.check_gradient(sample, dtype, layout)
                except Exception as error:
                    error.add_note(f"{key}: {dtype}, {layout}")
                    raise


@pytest.mark.parametrize("key", DIFFERENTIABLE)
def test_gradients_match_central_differences(key):
    parity.check_first(SAMPLES[key])


@pytest.mark.parametrize("key", DIFFERENTIABLE)
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
