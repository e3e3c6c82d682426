"""Compare minigrad with PyTorch on PyTorch's own samples: every `OpInfo` of `op_db` that minigrad implements.

PyTorch tests its operations with samples that its authors wrote, a list for each operation and dtype, and with calls
that must raise. Here both libraries run each sample. Results must have the same dtypes, shapes and elements, and in
float64 the same first and second gradients. Calls that PyTorch rejects must be rejected.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple
from zlib import crc32

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import minigrad as mg
from minigrad.core.errors import MinigradError
from strategies import PARITY

# PyTorch's test utilities forbid setting cuDNN's flags afterwards, which programs for PyTorch do.
torch.backends.disable_global_flags.__globals__["__allow_nonbracketed_mutation_flag"] = True

__all__ = ["DTYPES", "Exemption", "Outcome", "check_samples", "exemptions", "find_exemption", "operations", "units"]

DTYPES = ("float64", "float32", "int64", "int32", "uint8", "bool")

# Their elements are random or uninitialised: only dtype and shape are compared.
RANDOM = {
    *("bernoulli", "multinomial", "normal", "rand_like", "randn", "randn_like", "randint", "randint_like", "randperm"),
    *(
        "normal/in_place",
        "normal/number_mean",
        "empty",
        "empty_like",
        "new_empty",
        "nn.functional.dropout",
        "nn.functional.dropout2d",
        "nn.functional.dropout3d",
    ),
    *("nn.functional.alpha_dropout", "nn.functional.feature_alpha_dropout"),
    *("nn.functional.feature_alpha_dropout/with_train", "nn.functional.gumbel_softmax"),
}


# PyTorch's samples pass arguments in another order than its function takes them, or call a method.
CALLS: dict[str, Callable[..., Any]] = {
    "T": lambda x: x.T,
    "mT": lambda x: x.mT,
    "einsum": lambda tensors, equation: mg.einsum(equation, tensors),
    "nn.functional.embedding": lambda weight, index, **options: mg.nn.functional.embedding(index, weight, **options),
    "nn.functional.embedding_bag": lambda weight, index, **options: mg.nn.functional.embedding_bag(
        index, weight, **options
    ),
    "normal": lambda std, mean, **options: mg.normal(mean, std, **options),
    "normal/in_place": lambda x, *args, **options: x.clone().detach().normal_(*args, **options),
    "unfold": lambda x, *args: x.unfold(*args),  # `F.unfold` is a different function
    "where": lambda x, condition, other: mg.where(condition, x, other),
    "zero_": lambda x: x.clone().zero_(),
}


# These return indices. PyTorch may choose any of several equal elements, so the elements at the indices are compared.
# The value is the position of `dim` among the arguments after the input.
DIM_POSITIONS = {"argsort": 0, "sort": 0, "kthvalue": 1, "topk": 1}


class Outside(Exception):
    """A sample uses something that minigrad lacks entirely: a dtype, a layout, a generator or a function of PyTorch."""


class Outcome(NamedTuple):
    """The outcome of a sample: ``passed``, ``outside``, or the stage that differs, with a message."""

    operation: str
    dtype: str
    index: int
    stage: str
    message: str = ""


@cache
def operations() -> dict[str, Any]:
    """Return the OpInfos whose function exists in minigrad, by name; test variants as ``name/variant``."""
    infos = {full_name(op): op for op in op_db if function_of(op) is not None}
    return dict(sorted(infos.items()))


def units(part: int = 0, parts: int = 1) -> list[tuple[str, str]]:
    """Return a part, chosen by hash, of all pairs of operation and dtype; "error" stands for calls that must raise."""
    pairs = []
    for name, op in operations().items():
        dtypes = [dtype for dtype in DTYPES if getattr(torch, dtype) in op.supported_dtypes("cpu")]
        pairs += [(name, dtype) for dtype in [*dtypes, *["error"] * (op.error_inputs_func is not None)]]
    return [unit for unit in pairs if crc32(" ".join(unit).encode()) % parts == part]


def full_name(op: Any) -> str:
    """Return the name of an OpInfo, with its variant if the function has several."""
    return f"{op.name}/{op.variant_test_name}" if op.variant_test_name else op.name


def function_of(op: Any) -> Callable[..., Any] | None:
    """Return minigrad's function of that name, else the method, else None."""
    if full_name(op) in CALLS:
        return CALLS[full_name(op)]
    candidate: Any = mg if "." in op.name or hasattr(torch, op.name) else None
    for part in op.name.split("."):
        candidate = getattr(candidate, part, None)
    if callable(candidate) and not isinstance(candidate, type | mg.dtype):
        return candidate
    method = getattr(mg.Tensor, op.name, None)
    return method if callable(method) else None


def to_minigrad(x: Any, memo: dict[int, Any]) -> Any:
    """Convert an argument of a sample to minigrad; a tensor that occurs twice is converted once."""
    if isinstance(x, torch.Tensor):
        if id(x) not in memo:
            name = str(x.dtype)[6:]
            if name not in DTYPES or x.layout is not torch.strided:
                raise Outside(f"{name} {x.layout}")
            memory = torch.empty(0, dtype=x.dtype).set_(x.untyped_storage()).numpy(force=True)
            tensor = mg.tensor(memory.copy(), dtype=getattr(mg, name))
            tensor = tensor.as_strided(tuple(x.shape), x.stride(), x.storage_offset())
            memo[id(x)] = (x, tensor.requires_grad_() if x.requires_grad else tensor)
        return memo[id(x)][1]
    if isinstance(x, torch.dtype):
        if str(x)[6:] not in DTYPES:
            raise Outside(str(x))
        return getattr(mg, str(x)[6:])
    if isinstance(x, torch.Size):
        return tuple(x)
    if isinstance(x, tuple) and hasattr(x, "_fields"):
        return type(x)(*(to_minigrad(one, memo) for one in x))
    if isinstance(x, list | tuple):
        return type(x)(to_minigrad(one, memo) for one in x)
    if isinstance(x, dict):
        return {
            key: mg.get_default_device() if key == "device" else to_minigrad(one, memo)
            for key, one in x.items()
            if key not in ("layout", "pin_memory")
        }
    if isinstance(x, complex | torch.Generator | torch.layout | torch.memory_format):
        raise Outside(type(x).__name__)
    if isinstance(x, torch.nn.Module):
        return getattr(mg.nn, type(x).__name__)()
    if callable(x) and not isinstance(x, type):
        return getattr(mg.nn.functional, x.__name__)
    return x


def leaves(*trees: Any) -> list[Any]:
    """Return the distinct tensors among the arguments, of either library, in order."""
    tensors: dict[int, Any] = {}

    def visit(x: Any) -> None:
        if isinstance(x, torch.Tensor | mg.Tensor):
            tensors.setdefault(id(x), x)
        elif isinstance(x, list | tuple):
            for one in x:
                visit(one)
        elif isinstance(x, dict):
            for one in x.values():
                visit(one)

    visit(list(trees))
    return list(tensors.values())


def seed_generators(op: Any, dtype: str) -> None:
    """Seed the generators that PyTorch's samples use."""
    seed = crc32(f"{full_name(op)} {dtype}".encode())
    torch.manual_seed(seed)
    random.seed(seed)
    np.random.seed(seed)  # noqa: NPY002 -- PyTorch's samples draw from it


def flatten_outputs(result: Any) -> list[Any]:
    """Return the outputs of a call as a list."""
    if isinstance(result, dict):
        result = list(result.values())
    if isinstance(result, list | tuple):
        return [one for part in result for one in flatten_outputs(part)]
    return [result]


class Exemption(NamedTuple):
    """A row of the table of exceptions: a deliberate difference from PyTorch, and its reason."""

    operation: str
    dtypes: str  # separated by spaces; "error" for calls that must raise
    stage: str
    device: str  # empty: all
    reason: str


class Differs(Exception):
    """Both libraries return a result, and the results differ."""

    def __init__(self, stage: str, message: str) -> None:
        super().__init__(message)
        self.stage = stage


def compare(stage: str, actual: Any, expected: Any, tolerance: float, values: bool = True, floor: float = 0.0) -> None:
    """Raise Differs unless an output equals PyTorch's in dtype, shape and elements."""
    if not isinstance(expected, torch.Tensor):
        if isinstance(expected, torch.dtype):
            actual, expected = str(actual).split(".")[-1], str(expected)[6:]
        if isinstance(actual, mg.Tensor) or (
            isinstance(expected, bool | int | float) and type(actual) is not type(expected)
        ):
            raise Differs(f"{stage}: type", f"{type(actual).__name__}, but {type(expected).__name__} in PyTorch")
        if actual != expected and not (actual != actual and expected != expected):
            raise Differs(f"{stage}: value", f"{actual}, but {expected} in PyTorch")
        return
    if not isinstance(actual, mg.Tensor):
        raise Differs(f"{stage}: type", f"{type(actual).__name__}, but a tensor in PyTorch")
    if actual.dtype.name != str(expected.dtype)[6:]:
        raise Differs(f"{stage}: dtype", f"{actual.dtype.name}, but {str(expected.dtype)[6:]} in PyTorch")
    if tuple(actual.shape) != tuple(expected.shape):
        raise Differs(f"{stage}: shape", f"{tuple(actual.shape)}, but {tuple(expected.shape)} in PyTorch")
    if values:
        a, b = actual.detach().numpy(), expected.numpy(force=True)
        try:
            largest = max(np.abs(b[np.isfinite(b)].astype(float)).max(initial=0.0), floor)
            np.testing.assert_allclose(a.astype(float), b.astype(float), rtol=tolerance, atol=tolerance * largest)
        except AssertionError as error:
            lines = [line for line in str(error).splitlines() if line.strip()]
            raise Differs(f"{stage}: value", " | ".join(lines[1:7])[:400]) from None


def compare_gradients(
    stage: str,
    outputs: list[Any],
    torch_outputs: list[Any],
    inputs: list[Any],
    torch_inputs: list[Any],
    create_graph: bool,
) -> Any:
    """Compare the gradients of weighted sums; return those of both libraries that require grad themselves."""
    for a, b in zip(outputs, torch_outputs, strict=True):
        if isinstance(b, torch.Tensor) and a.requires_grad != b.requires_grad:
            raise Differs(f"{stage}: requires_grad", f"{a.requires_grad}, but {b.requires_grad} in PyTorch")
    pairs = [
        (a, b) for a, b in zip(outputs, torch_outputs, strict=True) if isinstance(b, torch.Tensor) and b.requires_grad
    ]
    leaf_pairs = [(a, b) for a, b in zip(inputs, torch_inputs, strict=True) if b.requires_grad]
    if not pairs or not leaf_pairs:
        return [], []
    weights = [np.linspace(-1.0, 2.0, b.numel()).reshape(b.shape) for _, b in pairs]
    try:
        expected = torch.autograd.grad(
            [b for _, b in pairs],
            [b for _, b in leaf_pairs],
            [torch.tensor(w) for w in weights],
            allow_unused=True,
            create_graph=create_graph,
        )
    except RuntimeError as refusal:
        raise Outside(f"PyTorch has no {stage}: {refusal}") from None
    actual = mg.grad(
        [a for a, _ in pairs],
        [a for a, _ in leaf_pairs],
        [mg.tensor(w) for w in weights],
        allow_unused=True,
        create_graph=create_graph,
    )
    next_outputs, next_torch_outputs = [], []
    for a, b in zip(actual, expected, strict=True):
        if a is None or b is None:
            for zero in (a, b):
                if zero is not None and zero.detach().numpy().any():
                    raise Differs(f"{stage}: value", f"None in {'minigrad' if a is None else 'PyTorch'}")
        else:
            compare(stage, a, b, PARITY["float64"] * (1 if create_graph else 100), floor=1.0)
            if a.requires_grad and b.requires_grad:
                next_outputs.append(a)
                next_torch_outputs.append(b)
    return next_outputs, next_torch_outputs


def gather_elements(name: str, indices: Any, sample: Any) -> Any:
    """Return the elements of the input at these indices, as a tensor of the same library."""
    x, index = sample.input.detach(), torch.tensor(indices.tolist(), dtype=torch.int64)
    position = DIM_POSITIONS[name]
    dim = sample.args[position] if len(sample.args) > position else sample.kwargs.get("dim", -1)
    if name == "kthvalue" and index.ndim < x.ndim:
        index = index.unsqueeze(dim)
    elements = x.gather(dim, index.reshape(index.shape if x.ndim else ()))
    return elements if isinstance(indices, torch.Tensor) else mg.tensor(elements.numpy())


def check_sample(op: Any, dtype: str, sample: Any) -> None:
    """Compare a sample with PyTorch. Raises Differs, Outside, or whatever minigrad's call raises."""
    arguments = (sample.input, tuple(sample.args), dict(sample.kwargs))
    memo: dict[int, Any] = {}
    converted_arguments = to_minigrad(arguments, memo)
    try:
        torch.manual_seed(0)
        result = op.op(arguments[0], *arguments[1], **arguments[2])
    except Exception as refusal:  # noqa: BLE001 -- whatever PyTorch raises
        raise Outside(f"PyTorch rejects its own sample: {refusal}") from None
    expected = flatten_outputs(result)
    if any(isinstance(b, torch.Tensor) and str(b.dtype)[6:] not in DTYPES for b in expected):
        raise Outside("result of another dtype")
    function = function_of(op)
    assert function is not None
    is_random = full_name(op) in RANDOM or arguments[2].get("dropout_p", 0.0) > 0.0
    actual = flatten_outputs(function(converted_arguments[0], *converted_arguments[1], **converted_arguments[2]))
    if len(actual) != len(expected):
        raise Differs("forward: outputs", f"{len(actual)}, but {len(expected)} in PyTorch")
    if op.name in DIM_POSITIONS:
        actual, expected = [[*y[:-1], gather_elements(op.name, y[-1], sample)] for y in (actual, expected)]
    for a, b in zip(actual, expected, strict=True):
        compare("forward", a, b, PARITY.get(dtype, PARITY["float32"]), not is_random)
    if dtype == "float64" and op.supports_autograd and not is_random:
        inputs, torch_inputs = leaves(converted_arguments), leaves(arguments)
        has_second = op.supports_gradgrad
        first_gradients = compare_gradients("gradient", actual, expected, inputs, torch_inputs, has_second)
        if has_second:
            compare_gradients("second gradient", *first_gradients, inputs, torch_inputs, False)


def check_samples(name: str, dtype: str) -> Iterator[Outcome]:
    """Compare each sample of an operation with PyTorch on the default device; for "error", each call that must fail."""
    op = operations()[name]
    seed_generators(op, dtype)
    samples: Any
    if dtype == "error":
        samples, check = (wrong.sample_input for wrong in op.error_inputs("cpu")), check_refused
    else:
        requires_grad = dtype == "float64" and op.supports_autograd
        samples, check = (
            op.sample_inputs("cpu", getattr(torch, dtype), requires_grad=requires_grad),
            check_sample,
        )
    for index, sample in enumerate(samples):
        state = torch.get_rng_state()
        yield Outcome(name, dtype, index, *outcome(lambda sample=sample: check(op, dtype, sample)))
        torch.set_rng_state(state)


def check_refused(op: Any, _: str, sample: Any) -> None:
    """Raise Differs if minigrad accepts what PyTorch rejects, or raises an error that is not minigrad's own."""
    arguments = (sample.input, tuple(sample.args), dict(sample.kwargs))
    try:
        op.op(arguments[0], *arguments[1], **arguments[2])
    except Exception as refusal:  # noqa: BLE001 -- whatever PyTorch raises
        torch_error = f"{type(refusal).__name__}: {refusal}"
    else:
        raise Outside("PyTorch accepts it")
    function = function_of(op)
    assert function is not None
    try:
        converted_arguments = to_minigrad(arguments, {})  # which may raise already: a tensor of 65 dimensions
        function(converted_arguments[0], *converted_arguments[1], **converted_arguments[2])
    except MinigradError:
        return
    except (TypeError, ValueError, IndexError, NotImplementedError, AttributeError) as raw:
        if isinstance(raw, TypeError) and "unexpected keyword argument" in str(raw):
            return  # Python's own message
        raise Differs("raw error", f"{type(raw).__name__}: {raw}") from None
    raise Differs("accepted", torch_error[:200])


@cache
def exemptions(device: str) -> list[Exemption]:
    """Return the rows of `tests/pytorch/exceptions.txt` that apply to a device."""
    lines = (Path(__file__).parents[1] / "pytorch" / "exceptions.txt").read_text(encoding="utf-8").splitlines()
    table = [Exemption(*(cell.strip() for cell in line.split("|"))) for line in lines if line and line[0] != "#"]
    return [line for line in table if line.device in ("", device)]


def find_exemption(outcome: Outcome, device: str) -> Exemption | None:
    """Return the row that allows this outcome, or None."""
    for line in exemptions(device):
        if (line.operation, line.stage) == (outcome.operation, outcome.stage) and outcome.dtype in line.dtypes.split():
            return line
    return None


def outcome(call: Callable[[], None]) -> tuple[str, str]:
    """Return the stage and the message of a call's outcome."""
    try:
        call()
    except Outside as reason:
        return "outside", str(reason)
    except Differs as difference:
        return difference.stage, str(difference)
    except MinigradError as refusal:
        return "refused", f"{type(refusal).__name__}: {refusal}"
    except Exception as fault:  # noqa: BLE001 -- a raw error is a finding
        return "raw error", f"{type(fault).__name__}: {fault}"
    return "passed", ""
