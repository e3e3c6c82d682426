"""Every operation, called by samples: against PyTorch for each dtype and layout, and finite differences to order 2.

`make test` checks some dtypes and layouts of each sample, varying between samples; `make nightly` checks all.
"""

import pytest

import minigrad as mg
import parity
import table
from cases import run_cases
from minigrad.core.dispatch import get_kernels
from minigrad.core.op import OPS
from minigrad.core.storage import DEVICES
from needs import is_available
from samples import all_samples
from tiers import NIGHTLY, choose_cases

SAMPLES = all_samples()
DEFAULT_DEVICE = mg.get_default_device()
# Every sample runs on both CPU devices; on a GPU a subset that covers its kernels.
DEVICE_PARAMS = ["numpy", pytest.param("cpu", marks=pytest.mark.slow)] if DEFAULT_DEVICE == "cpu" else [DEFAULT_DEVICE]
SELECTED_KEYS = list(SAMPLES)[:: 1 if NIGHTLY or DEFAULT_DEVICE in ("cpu", "numpy") else 12]
TENSOR_OPS = [name for name in OPS if "numpy" in get_kernels(name)]


@pytest.fixture(params=DEVICE_PARAMS)
def device(request):
    with parity.default_device(request.param):
        yield request.param


def by_function(keys):
    """Parametrise by the function that samples call: "indexing: scatter_, a scalar" calls scatter_."""
    keys_by_function: dict[str, list[str]] = {}
    for key in keys:
        keys_by_function.setdefault(key.split(",")[0].split()[1], []).append(key)
    return pytest.mark.parametrize("keys", [pytest.param(keys, id=name) for name, keys in keys_by_function.items()])


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")  # PyTorch warns about degrees of freedom <= 0 and the like
@by_function([key for key in SELECTED_KEYS if SAMPLES[key].parity])
def test_values_dtypes_errors_and_gradients_match_pytorch(torch, device, keys):
    cases = [
        (f"{key}, {check.__name__} {' '.join(case)}", (check, key, case))
        for key in keys
        for check, *case in checks(key, device)
    ]
    run_cases(lambda one: one[0](SAMPLES[one[1]], *one[2]), cases)


def checks(key, device):
    """Return the checks for a sample, each with a dtype and a layout."""
    floats = parity.float_cases(f"{key} {device}")
    integers = [(dtype, "contiguous") for dtype in choose_cases(parity.INTS, key, 1)]
    cases = [(parity.check_forward, *case) for case in [*floats, *integers]]
    if SAMPLES[key].kinked or parity.is_differentiable(SAMPLES[key]):
        cases += [(parity.check_gradient, *case) for case in floats]
    return [sample for sample in cases if not SAMPLES[key].differs.keys() & set(sample[1:])]


# Skipped outside nightly runs where PyTorch's gradients are available for comparison.
@by_function([key for key in SELECTED_KEYS if not SAMPLES[key].kinked])
def test_gradients_match_central_differences(device, keys):
    keys = [key for key in keys if NIGHTLY or not (SAMPLES[key].parity and is_available("torch"))]
    run_cases(parity.check_first, [(key, SAMPLES[key]) for key in keys if parity.is_differentiable(SAMPLES[key])])


# A third of a function's samples, or else its first, each on one of the devices.
@by_function([key for key in SELECTED_KEYS if not SAMPLES[key].kinked])
def test_second_derivatives_match_central_differences(device, keys):
    keys = [key for key in keys if parity.is_differentiable(SAMPLES[key])]
    chosen = [key for key in keys if device in choose_cases(["numpy", "cpu", None, None, None, None], key, 1)]
    run_cases(parity.check_second, [(key, SAMPLES[key]) for key in (keys if NIGHTLY else chosen or keys[:1])])


@pytest.mark.parametrize("device", DEVICES)
def test_every_operation_has_a_kernel_on_each_device(device):
    assert [name for name in TENSOR_OPS if device not in get_kernels(name)] == []


def test_samples_reach_every_operation_and_each_rule_twice():
    with parity.default_device("numpy" if DEFAULT_DEVICE == "cpu" else DEFAULT_DEVICE):  # numpy does not compile
        computed, once, twice = map(set.union, *[table.reached_operations(sample) for sample in SAMPLES.values()])
    elsewhere = {"move"}  # tested in test_profiler.py
    if parity.LACKS_FLOAT64:
        elsewhere.add("to")  # only one floating-point dtype exists
    differentiable = {name for name, op in OPS.items() if op.differentiable} - elsewhere
    with_kernels = {name for name in OPS if get_kernels(name)} - elsewhere
    assert (with_kernels - computed, differentiable - once, differentiable - twice) == (set(), set(), set())
