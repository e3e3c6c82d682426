"""Programs as lines of source, and their results in a library on a device: values, views, errors and gradients."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

import minigrad as mg
import parity
from samples import all_samples

__all__ = [
    "Leaf",
    "Line",
    "Program",
    "ProgramResult",
    "describe",
    "minigrad_library",
    "pytorch_library",
    "rounding_spread",
    "run_program",
    "shrink",
]

SAMPLES = all_samples()
MAY_COPY = ("contiguous", "reshape", "flatten", "ravel", "fold", "S(")
ZEROING_SEED = 4  # this seed sets near-zero results to 0; smaller ones perturb
MAX_SENSITIVITY = 1e-3  # relative to the largest element: a result that rounding moves by more has no precision


class Leaf(NamedTuple):
    """A leaf of a program: its name, its elements, and whether it requires grad."""

    name: str
    array: Any
    requires_grad: bool


class Line(NamedTuple):
    """A statement; the name of its result, or ""."""

    name: str
    text: str

    def __str__(self) -> str:
        return f"{self.name} = {self.text}" if self.name else self.text


@dataclass(frozen=True)
class Program:
    """Leaves, lines, differentiated results, order of derivatives, and whether PyTorch supports all of it."""

    leaves: tuple[Leaf, ...]
    lines: tuple[Line, ...]
    outputs: tuple[str, ...]
    orders: int
    parity: bool

    def without(self, lines: Collection[int]) -> Program:
        return replace(self, lines=tuple(line for k, line in enumerate(self.lines) if k not in lines))

    def of_order(self, orders: int) -> Program:
        return replace(self, orders=orders)

    def __str__(self) -> str:
        leaf_lines = [
            f"{x.name} = tensor({x.array.tolist()}, {x.array.dtype}{', requires_grad' if x.requires_grad else ''})"
            for x in self.leaves
        ]
        gradient_lines = [f"grad of {', '.join(self.outputs)}, order {self.orders}"] if self.orders else []
        return "\n        ".join(["", *leaf_lines, *map(str, self.lines), *gradient_lines])


@dataclass
class ProgramResult:
    """The results of a program: its tensors by name, the errors by line, and the gradients by order and leaf."""

    tensors: dict[str, Any]
    errors: dict[int, Exception] = field(default_factory=dict)
    grads: dict[str, Any] = field(default_factory=dict)
    backward_error: Exception | None = None  # the backward pass


class Library(NamedTuple):
    """A library that runs programs: its module, its functions, its tensor constructor, a function that is called with
    the tensors before each line, and a context manager for the run.
    """

    module: Any
    functions: Any
    tensor: Callable[[Any], Any]
    before_line: Callable[[dict[str, Any]], Any] = lambda values: None
    context: Callable[[], AbstractContextManager[Any]] = nullcontext

    def scope(self) -> dict[str, Any]:
        called = {
            "S": lambda key, *x: SAMPLES[key].call(self.functions, *x),
            "L": lambda key, x: parity.LAYOUTS[key](x),
        }
        return {"F": self.functions, "lib": self.module, "inf": math.inf, **called}


def minigrad_library(device: str) -> Library:
    @contextmanager
    def within() -> Iterator[None]:
        """Return a block with this default device."""
        outside = mg.get_default_device()
        mg.set_default_device(device)
        try:
            yield
        finally:
            mg.set_default_device(outside)

    return Library(mg, parity.minigrad_functions(), lambda array: mg.tensor(array, device=device), context=within)


def pytorch_library() -> Library:
    import torch

    def read_grad_fns(values: dict[str, Any]) -> None:
        """Read `grad_fn`; otherwise PyTorch rejects writes to a view after a write to another view of its memory."""
        for x in values.values():
            getattr(x, "grad_fn", None)

    return Library(torch, parity.torch_functions(), torch.tensor, read_grad_fns)


def leaves_of(program: Program, library: Library) -> dict[str, Any]:
    leaves = {}
    for leaf in program.leaves:
        leaves[leaf.name] = library.tensor(leaf.array)
        if leaf.requires_grad:
            leaves[leaf.name].requires_grad_()
    return leaves


def run_line(line: Line, results: dict[str, Any], scope: dict[str, Any]) -> None:
    """Run a line with the results of the earlier ones."""
    names = {**scope, **results}
    if not line.name:
        exec(line.text, names)
        return
    result = eval(line.text, names)
    if type(getattr(result, "grad_fn", None)).__name__ == "NotImplemented":  # PyTorch's, which has no derivative
        result = result.detach()
    results[line.name] = list(result) if isinstance(result, tuple | list) else result


def run_program(program: Program, library: Library, leaves: dict[str, Any] | None = None) -> ProgramResult:
    """Run a program on `leaves`, or new ones. A line that raises has no result, and neither do lines that use it."""
    result = ProgramResult(leaves_of(program, library) if leaves is None else dict(leaves))
    scope = library.scope()
    with library.context():
        for k, line in enumerate(program.lines):
            library.before_line(result.tensors)
            try:
                run_line(line, result.tensors, scope)
            except Exception as error:  # noqa: BLE001 -- errors are compared
                result.errors[k] = error
        if program.orders:
            try:
                result.grads = dict(_gradients(program, library, result.tensors))
            except Exception as error:  # noqa: BLE001
                result.backward_error = error
    return result


def _gradients(program: Program, library: Library, values: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the gradients of a weighted sum of the outputs for each leaf; then of a weighted sum of those."""
    leaf_names = [leaf.name for leaf in program.leaves if leaf.requires_grad]
    inputs = [values[name] for name in leaf_names]
    outputs = [values[name] for name in program.outputs if name in values and values[name].requires_grad]
    for order in range(1, program.orders + 1):
        if not outputs:
            return
        weights = [library.tensor(parity.weight_of(x.detach(), _name(x.dtype))) for x in map(_SizedTensor, outputs)]
        last = order == program.orders
        grads = library.module.autograd.grad(outputs, inputs, weights, create_graph=not last, allow_unused=True)
        for name, grad in zip(leaf_names, grads, strict=True):
            yield f"gradient {order} of {name}", grad
        outputs = [x for x in grads if x is not None and x.requires_grad]


class _SizedTensor:
    """A tensor with the attributes that `parity.weight_of` reads."""

    def __init__(self, x: Any) -> None:
        self.dtype, self.size, self.shape = x.dtype, x.numel(), tuple(x.shape)

    def detach(self) -> _SizedTensor:
        return self


def _name(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


# --- comparison ---


def tensors(values: dict[str, Any]) -> dict[str, Any]:
    """Return the tensors among the results, those in lists by position."""
    tensors_by_name = {}
    for name, x in values.items():
        for k, one in enumerate(x if isinstance(x, list) else [x]):
            if hasattr(one, "requires_grad"):
                tensors_by_name[f"{name}[{k}]" if isinstance(x, list) else name] = one
    return tensors_by_name


def array_of(x: Any) -> Any:
    x = x.detach()
    return np.array(x.numpy() if isinstance(x, mg.Tensor) else x.numpy(force=True))


def describe(result: ProgramResult) -> dict[str, Any]:
    """Return the results by label: arrays to compare with a tolerance, and strings to compare exactly."""
    tensors_by_name = tensors(result.tensors)
    described: dict[str, Any] = {f"{name} is": _kind(x) for name, x in tensors_by_name.items()}
    described |= {f"{name} =": array_of(x) for name, x in tensors_by_name.items()}
    described |= dict(_aliases(tensors_by_name))
    for label, grad in result.grads.items():
        if grad is not None:
            described[f"{label} is"] = f"{_name(grad.dtype)} {tuple(grad.shape)}"
            described[f"{label} ="] = array_of(grad)
    return described


def _kind(x: Any) -> str:
    return f"{_name(x.dtype)} {tuple(x.shape)}, gradient {x.requires_grad}, leaf {x.is_leaf}"


def _memory_id(x: Any) -> Any:
    return id(x.storage) if isinstance(x, mg.Tensor) else x.untyped_storage().data_ptr()


def _aliases(tensors_by_name: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield which tensors share memory, by the first one, and their strides."""
    first: dict[Any, str] = {}
    for name, x in tensors_by_name.items():
        if not x.numel():
            continue
        root = first.setdefault(_memory_id(x), name.partition("[")[0])  # results of one call may have any layout
        yield f"memory of {name}", root
        if root in tensors_by_name and root != name and tensors_by_name[root].is_contiguous():
            strides = [by for size, by in zip(x.shape, x.stride(), strict=True) if size > 1]
            yield f"strides of {name}", str(strides)


def layout_dependent_lines(program: Program, result: ProgramResult, other_result: ProgramResult) -> list[int]:
    """Return the lines whose result is a view or a copy depending on a layout that differs between the libraries."""
    tensors_by_name, other_tensors = tensors(result.tensors), tensors(other_result.tensors)
    differing = {
        name
        for name in tensors_by_name.keys() & other_tensors.keys()
        if tensors_by_name[name].is_contiguous() != other_tensors[name].is_contiguous()
    }
    names = {name.partition("[")[0] for name in differing}
    return [
        k
        for k, line in enumerate(program.lines)
        if any(word in line.text for word in MAY_COPY) and names & set(re.findall(r"[xv]\d+", line.text))
    ]


# --- sensitivity to rounding ---


@contextmanager
def _perturb_rounding(seed: int) -> Iterator[None]:
    """Return a block in which NumPy's kernels round the last digits differently, as another library would."""
    draws = np.random.default_rng(seed)

    def perturb(call: Any) -> None:
        if mg.OPS[call.op].view:
            return
        for result in call.result if isinstance(call.result, tuple) else (call.result,):
            if isinstance(result, np.ndarray) and result.dtype.kind == "f" and result.flags.writeable:
                size = result if mg.OPS[call.op].domain else np.abs(result[np.isfinite(result)]).max(initial=0.0)
                if seed == ZEROING_SEED:  # set to 0 what is 0 up to rounding
                    result[np.abs(result) <= 8 * np.finfo(result.dtype).eps * size] = 0
                    continue
                with np.errstate(all="ignore"):
                    result += 4 * np.finfo(result.dtype).eps * size * draws.uniform(-1, 1, result.shape)

    with mg.tap(perturb):
        yield


def rounding_spread(program: Program, clean: dict[str, Any]) -> dict[str, Any] | None:
    """Return how far the elements of each array move if kernels round differently.

    Return None if the outcome changes altogether: other shapes or errors, or elements without any precision.
    """
    spread: dict[str, Any] = {}
    for seed in range(ZEROING_SEED + 1):
        with _perturb_rounding(seed):
            rounded = describe(run_program(program, minigrad_library("numpy")))
        if rounded.keys() != clean.keys():
            return None
        for label, expected in clean.items():
            actual = rounded[label]
            if not isinstance(expected, np.ndarray):
                if expected != actual:
                    return None
                continue
            if expected.shape != actual.shape:
                return None
            with np.errstate(all="ignore"):
                difference = np.asarray(np.abs(actual.astype(float) - expected.astype(float)))
            difference[(actual == expected) | (np.isnan(actual.astype(float)) & np.isnan(expected.astype(float)))] = 0
            difference[np.isnan(difference)] = math.inf
            if expected.dtype.kind == "f" and difference.max(initial=0.0) > MAX_SENSITIVITY * np.abs(
                expected[np.isfinite(expected)]
            ).max(initial=0.0):
                return None
            spread[label] = np.maximum(spread.get(label, 0), difference)
    return spread


# --- jitted steps ---


class ProgramStep:
    """A program as a function of its leaves that returns its results and gradients by label."""

    def __init__(self, program: Program, device: str) -> None:
        self.program, self.library = program, minigrad_library(device)
        self.errors: dict[int, Exception] = {}
        self.backward_error: Exception | None = None

    def __call__(self, *leaves: Any) -> dict[str, Any]:
        named = dict(zip([leaf.name for leaf in self.program.leaves], leaves, strict=True))
        run = run_program(self.program, self.library, named)
        self.errors, self.backward_error = run.errors, run.backward_error
        results = {name: x for name, x in tensors(run.tensors).items() if name not in named}
        grads = {label: grad for label, grad in run.grads.items() if grad is not None}
        return {label: x.detach() for label, x in {**results, **grads}.items()}

    def call(self, function: Callable[..., Any], turn: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return, as arrays, what the function returns for the leaves of a turn, and the leaves afterwards."""
        leaves = leaves_of(self.program, self.library)
        if turn % 3 == 2:  # other elements
            for x in leaves.values():
                if x.dtype.is_floating_point:
                    with mg.no_grad():
                        x.mul_(0.875).add_(0.0625)
        shapes = {name: x.shape for name, x in leaves.items()}
        outputs = {label: array_of(x) for label, x in function(*leaves.values()).items()}
        leaves_after = {name: array_of(x) for name, x in leaves.items() if x.shape == shapes[name]}
        return outputs, leaves_after


# --- shrinking ---


def shrink(program: Program, fails: Callable[[Program], bool]) -> Program:
    """Return a program with fewer lines, outputs, orders and leaves that fails too."""
    smaller = True
    while smaller:
        smaller = False
        for one in _smaller_programs(program):
            if fails(one):
                program, smaller = one, True
                break
    return program


def _smaller_programs(program: Program) -> Iterator[Program]:
    for size in (8, 4, 2, 1):
        for k in range(len(program.lines) - size, -1, -size):
            yield replace(program, lines=program.lines[:k] + program.lines[k + size :])
    if program.orders:
        yield replace(program, orders=program.orders - 1)
    if len(program.outputs) > 1:
        for name in program.outputs:
            yield replace(program, outputs=tuple(x for x in program.outputs if x != name))
    for leaf in program.leaves:
        if leaf.requires_grad:
            frozen = tuple(x._replace(requires_grad=x.requires_grad and x is not leaf) for x in program.leaves)
            yield replace(program, leaves=frozen)
    for leaf in program.leaves:
        yield replace(program, leaves=tuple(x for x in program.leaves if x is not leaf))
