"""Checks of a sample: PyTorch's values, dtypes, errors and gradients, and finite differences to second order."""

from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any

import numpy as np

import minigrad as mg
from minigrad.backends import devices
from minigrad.core.errors import DTypeError, MinigradError
from samples import Sample
from strategies import PARITY, SECOND
from tiers import NIGHTLY, choose_cases

# A GPU without float64 rejects it; there gradients are compared with those of float64 on the host.
LACKS_FLOAT64 = mg.get_default_device() in devices.NO_FLOAT64
NO_FLOAT64 = "float64: the device"
EXPECTED_ERRORS = (DTypeError,) if LACKS_FLOAT64 else ()
FLOATS = ("float32",) if LACKS_FLOAT64 else ("float64", "float32")
INTS = ("int64", "int32", "uint8", "bool")

# PyTorch has no kernel for this dtype; minigrad may have one.
NO_KERNEL = ("not implemented for", "not support", "Could not run", "Unsupported")

# Views of a base tensor of either library, created from an array by `base_array`, with the same strides in both.
LAYOUTS = {
    "contiguous": lambda x: x,
    "transposed": lambda x: x.permute(*range(x.ndim)[::-1]) if x.ndim else x,
    "sliced": lambda x: x[(slice(None, None, 2),) * x.ndim],
    "broadcast": lambda x: x.expand(3, *x.shape[1:]) if x.ndim else x,
    "empty": lambda x: x[:0] if x.ndim else x,
    "0-d": lambda x: x[(0,) * x.ndim],
}


def float_cases(key: str) -> list[tuple[str, str]]:
    """Return the dtypes and layouts to compare: in `make test` one pair, contiguous for every second sample."""
    first, *others = LAYOUTS
    contiguous = [(dtype, first) for dtype in FLOATS]
    strided = [(dtype, layout) for layout in others for dtype in FLOATS]
    return (
        contiguous + strided
        if NIGHTLY
        else choose_cases(choose_cases([contiguous, strided], f"{key} lies", 1)[0], key, 1)
    )


class Functions:
    """The functions of a library, looked up by name in several modules."""

    def __init__(self, *modules: Any) -> None:
        self._modules = modules

    def __getattr__(self, name: str) -> Any:
        for module in self._modules:
            if hasattr(module, name):
                return getattr(module, name)
        raise AttributeError(f"{self._modules[0].__name__} has no {name}")


def minigrad_functions() -> Functions:
    preferred = SimpleNamespace(__name__="minigrad", linalg=mg.linalg)  # since functional has a module of the same name
    return Functions(preferred, mg.functional, mg)


def torch_functions() -> Functions:
    import torch

    return Functions(torch.nn.functional, torch)


def base_array(array: Any, layout: str) -> Any:
    """Return the base array from which `layout` takes `array`, or a similar one."""
    if layout == "transposed":
        return array.T.copy()
    if layout == "sliced":
        spread = np.zeros([2 * size for size in array.shape], array.dtype)
        spread[(slice(None, None, 2),) * array.ndim] = array
        return spread
    return array[:1] if layout == "broadcast" and array.ndim else array


def cast(array: Any, dtype: str) -> Any:
    if array.dtype.kind != "f":
        return array
    return array > 0 if dtype == "bool" else (abs(array) if dtype == "uint8" else array).astype(dtype)


def call_sample(sample: Sample, tensor: Any, functions: Any, dtype: str, layout: str) -> tuple[list[Any], list[Any]]:
    """Return the outputs of the call and the bases of the inputs, which are leaves."""
    bases = []
    for array in sample.inputs:
        leaf = tensor(base_array(cast(array, dtype), layout))
        if dtype.startswith("float") and array.dtype.kind == "f":
            leaf.requires_grad_()
        bases.append(leaf)
    result = sample.call(functions, *[LAYOUTS[layout](leaf) for leaf in bases])
    return list(result) if isinstance(result, tuple | list) else [result], bases


def call_both(sample: Sample, dtype: str, layout: str) -> tuple[Any, Any] | None:
    """Return the call's results in both libraries; None if both raise, or PyTorch has no kernel."""
    import torch

    try:
        expected = call_sample(sample, torch.tensor, torch_functions(), dtype, layout)
    except (RuntimeError, IndexError, ValueError, TypeError, NotImplementedError) as refusal:
        if any(
            fragment in str(refusal)
            for fragment in ("not implemented for", "not support", "Could not run", "Unsupported")
        ):
            return None
        try:
            call_sample(sample, mg.tensor, minigrad_functions(), dtype, layout)
        except MinigradError:
            return None
        raise AssertionError(f"PyTorch rejects this call: {refusal}") from None
    try:
        return call_sample(sample, mg.tensor, minigrad_functions(), dtype, layout), expected
    except DTypeError as refusal:
        if LACKS_FLOAT64 and str(refusal).startswith(NO_FLOAT64):
            return None
        raise


def assert_same(actual: Any, expected: Any, dtype: str) -> None:
    """Assert that a tensor equals PyTorch's in dtype, shape and elements."""
    assert (actual.dtype.name, actual.shape) == (str(expected.dtype)[6:], tuple(expected.shape))
    assert_close(actual.detach().numpy(), expected.numpy(force=True), PARITY.get(dtype, PARITY["float32"]))


def assert_close(a: Any, b: Any, tolerance: float) -> None:
    """Assert equality to `tolerance`, relative to the largest element of `b`: summation orders differ."""
    largest = np.abs(b[np.isfinite(b)].astype(float)).max(initial=0.0)
    np.testing.assert_allclose(a.astype(float), b.astype(float), rtol=tolerance, atol=tolerance * largest)


def assert_agree(call: Any, *arrays: Any) -> None:
    """Assert that `call` returns the same outputs, and gradients of its float inputs, with PyTorch's functions.

    The gradients are those of the outputs' sum, weighted by 1, 2, 3, …
    """
    import torch

    (outputs, leaves), (torch_outputs, torch_leaves) = (
        _weighted(call, *library, arrays) for library in ((minigrad_functions(), mg), (torch_functions(), torch))
    )
    for a, b in zip(outputs, torch_outputs, strict=True):
        assert_same(a, b, a.dtype.name)
    for a, b in zip(leaves, torch_leaves, strict=True):
        assert (a.grad is None) == (b.grad is None)
        if a.grad is not None:
            assert_same(a.grad, b.grad, a.dtype.name)


def _weighted(call: Any, functions: Any, library: Any, arrays: Any) -> tuple[list[Any], list[Any]]:
    """Return the outputs of the call and its float inputs, after a backward pass."""
    inputs = [library.tensor(np.asarray(x)) for x in arrays]
    leaves = [x.requires_grad_() for x in inputs if x.dtype.is_floating_point]
    result = call(functions, *inputs)
    outputs = list(result) if isinstance(result, tuple | list) else [result]
    totals = [(x * library.arange(1.0, x.numel() + 1).reshape(x.shape)).sum() for x in outputs if x.requires_grad]
    if totals:
        sum(totals).backward()
    return outputs, leaves


def check_forward(sample: Sample, dtype: str, layout: str) -> None:
    results = call_both(sample, dtype, layout)
    if results is not None:
        (outputs, _), (torch_outputs, _) = results
        for a, b in zip(outputs, torch_outputs, strict=True):
            assert_same(a, b, dtype)


def weight_of(array: Any, dtype: str) -> Any:
    return np.linspace(-1.0, 2.0, array.size).reshape(array.shape).astype(dtype)


def check_gradient(sample: Sample, dtype: str, layout: str) -> None:
    """Compare the gradients of the weighted outputs with PyTorch's, where None counts as zero."""
    import torch

    results = call_both(sample, dtype, layout)
    if results is None:
        return
    (outputs, leaves), (torch_outputs, torch_leaves) = results
    assert [output.requires_grad for output in outputs] == [x.requires_grad for x in torch_outputs]
    pairs = [
        (x, torch_output) for x, torch_output in zip(outputs, torch_outputs, strict=True) if torch_output.requires_grad
    ]
    if not pairs:
        return
    weights = [weight_of(x.detach().numpy(), dtype) for x, _ in pairs]
    differentiable_slots = [k for k, t in enumerate(torch_leaves) if t.requires_grad]
    grads = mg.grad(
        [x for x, _ in pairs],
        [leaves[k] for k in differentiable_slots],
        [mg.tensor(w) for w in weights],
        allow_unused=True,
    )
    expected = torch.autograd.grad(
        [t for _, t in pairs],
        [torch_leaves[k] for k in differentiable_slots],
        [torch.tensor(w) for w in weights],
        allow_unused=True,
    )
    for a, b in zip(grads, expected, strict=True):
        if a is None or b is None:
            for zero in (a, b):
                assert zero is None or not zero.detach().numpy().any()
        else:
            assert_same(a, b, dtype)


def gradcheck_arguments(sample: Sample) -> tuple[Any, list[Any], bool]:
    """Return the call as a function with differentiable outputs only, its inputs, and whether the inputs are large."""

    def function(*inputs: Any) -> Any:
        result = sample.call(minigrad_functions(), *inputs)
        outputs = list(result) if isinstance(result, tuple | list) else [result]
        return [x for x in outputs if x.dtype.is_floating_point]

    function.__name__ = sample.name
    inputs = [mg.tensor(array) for array in sample.inputs]
    return function, inputs, sum(array.size for array in sample.inputs if array.dtype.kind == "f") > 24


def compare_with_host(sample: Sample, second: bool) -> None:
    """Compare the gradients that the device computes in float32, first or second, with NumPy's in float64."""
    actual = compute_gradients(sample, "float32", mg.get_default_device(), second)
    for a, b in zip(actual, compute_gradients(sample, "float64", "numpy", second), strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            assert_close(a.numpy(), b.numpy().astype("float32"), 100 * PARITY["float32"])


def compute_gradients(sample: Sample, dtype: str, device: str, second: bool) -> Any:
    """Return the gradients of a weighted sum of the outputs; if `second`, of a weighted sum of those."""
    with default_device(device):
        outputs, leaves = call_sample(sample, mg.tensor, minigrad_functions(), dtype, "contiguous")
        leaves = [x for x in leaves if x.requires_grad]
        for _ in range(1 + second):
            pairs = [(x, mg.tensor(weight_of(x.detach().numpy(), dtype))) for x in outputs if x.requires_grad]
            if not pairs:
                return [None for _ in leaves]
            outputs = mg.grad(
                [x for x, _ in pairs], leaves, [w for _, w in pairs], allow_unused=True, create_graph=second
            )
            gradients, outputs = outputs, [x for x in outputs if x is not None]
        return [None if x is None else x.detach() for x in gradients]


@contextmanager
def default_device(device: str) -> Iterator[None]:
    previous = mg.get_default_device()
    mg.set_default_device(device)
    try:
        yield
    finally:
        mg.set_default_device(previous)


def check_first(sample: Sample) -> None:
    if LACKS_FLOAT64:
        compare_with_host(sample, False)
        return
    function, inputs, is_large = gradcheck_arguments(sample)
    assert mg.gradcheck(function, inputs, fast_mode=is_large, eps=sample.eps)


def check_second(sample: Sample) -> None:
    if LACKS_FLOAT64:
        compare_with_host(sample, True)
        return
    function, inputs, is_large = gradcheck_arguments(sample)
    assert mg.gradgradcheck(function, inputs, fast_mode=is_large, eps=sample.eps, **SECOND)


def is_differentiable(sample: Sample) -> bool:
    """Whether any output of the call requires grad."""
    with default_device("numpy"):
        outputs, _ = call_sample(sample, mg.tensor, minigrad_functions(), "float64", "contiguous")
    return any(x.requires_grad for x in outputs)
