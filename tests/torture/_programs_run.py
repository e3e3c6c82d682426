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

__all__ = ["Leaf", "Line", "Program", "Ran", "minigrad", "noisy", "pytorch", "ran", "shrunk", "told"]

SAMPLES = all_samples()
MAY_COPY = ("contiguous", "reshape", "flatten", "ravel", "fold", "S(")
SNAPPED = 4  # this seed sets near-zero results to 0; smaller ones perturb
LOST = 1e-3  # relative to the largest element: a result that rounding moves by more has no precision


class Leaf(NamedTuple):
    """A leaf of a program: its name, its elements, and whether it requires grad."""

    name: str
    array: Any
    free: bool


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
    held: tuple[str, ...]
    orders: int
    parity: bool

    def without(self, lines: Collection[int]) -> Program:
        return replace(self, lines=tuple(line for k, line in enumerate(self.lines) if k not in lines))

    def of_order(self, orders: int) -> Program:
        return replace(self, orders=orders)

    def __str__(self) -> str:
        begun = [
            f"{x.name} = tensor({x.array.tolist()}, {x.array.dtype}{', requires_grad' if x.free else ''})"
            for x in self.leaves
        ]
        ends = [f"grad of {', '.join(self.held)}, order {self.orders}"] if self.orders else []
        return "\n        ".join(["", *begun, *map(str, self.lines), *ends])


@dataclass
class Ran:
    """The results of a program: its tensors by name, the errors by line, and the gradients by order and leaf."""

    made: dict[str, Any]
    refused: dict[int, Exception] = field(default_factory=dict)
    grads: dict[str, Any] = field(default_factory=dict)
    stopped: Exception | None = None  # the backward pass


class Library(NamedTuple):
    """A library that runs programs: its module, its functions, its tensor constructor, a function that is called with
    the tensors before each line, and a context manager for the run.
    """

    module: Any
    functions: Any
    tensor: Callable[[Any], Any]
    before: Callable[[dict[str, Any]], Any] = lambda made: None
    within: Callable[[], AbstractContextManager[Any]] = nullcontext

    def scope(self) -> dict[str, Any]:
        called = {
            "S": lambda key, *x: SAMPLES[key].call(self.functions, *x),
            "L": lambda key, x: parity.LAYOUTS[key](x),
        }
        return {"F": self.functions, "lib": self.module, "inf": math.inf, **called}


def minigrad(device: str) -> Library:
    @contextmanager
    def within() -> Iterator[None]:
        """Return a block with this default device."""
        outside = mg.get_default_device()
        mg.set_default_device(device)
        try:
            yield
        finally:
            mg.set_default_device(outside)

    return Library(mg, parity.ours(), lambda array: mg.tensor(array, device=device), within=within)


def pytorch() -> Library:
    import torch

    def looked_at(made: dict[str, Any]) -> None:
        """Read `grad_fn`; otherwise PyTorch rejects writes to a view after a write to another view of its memory."""
        for x in made.values():
            getattr(x, "grad_fn", None)

    return Library(torch, parity.theirs(), torch.tensor, looked_at)


def leaves_of(program: Program, library: Library) -> dict[str, Any]:
    made = {}
    for leaf in program.leaves:
        made[leaf.name] = library.tensor(leaf.array)
        if leaf.free:
            made[leaf.name].requires_grad_()
    return made


def do(line: Line, made: dict[str, Any], scope: dict[str, Any]) -> None:
    """Run a line with the results of the earlier ones."""
    names = {**scope, **made}
    if not line.name:
        exec(line.text, names)
        return
    found = eval(line.text, names)
    if type(getattr(found, "grad_fn", None)).__name__ == "NotImplemented":  # PyTorch's, which has no derivative
        found = found.detach()
    made[line.name] = list(found) if isinstance(found, tuple | list) else found


def ran(program: Program, library: Library, leaves: dict[str, Any] | None = None) -> Ran:
    """Run a program on `leaves`, or new ones. A line that raises has no result, and neither do lines that use it."""
    found = Ran(leaves_of(program, library) if leaves is None else dict(leaves))
    scope = library.scope()
    with library.within():
        for k, line in enumerate(program.lines):
            library.before(found.made)
            try:
                do(line, found.made, scope)
            except Exception as error:  # noqa: BLE001 -- errors are compared
                found.refused[k] = error
        if program.orders:
            try:
                found.grads = dict(_gradients(program, library, found.made))
            except Exception as error:  # noqa: BLE001
                found.stopped = error
    return found


def _gradients(program: Program, library: Library, made: dict[str, Any]) -> Iterator[tuple[str, Any]]:
    """Yield the gradients of a weighted sum of the outputs for each leaf; then of a weighted sum of those."""
    wanted = [leaf.name for leaf in program.leaves if leaf.free]
    inputs = [made[name] for name in wanted]
    outputs = [made[name] for name in program.held if name in made and made[name].requires_grad]
    for order in range(1, program.orders + 1):
        if not outputs:
            return
        weights = [library.tensor(parity.weight_of(x.detach(), _name(x.dtype))) for x in map(_Sized, outputs)]
        last = order == program.orders
        grads = library.module.autograd.grad(outputs, inputs, weights, create_graph=not last, allow_unused=True)
        for name, grad in zip(wanted, grads, strict=True):
            yield f"gradient {order} of {name}", grad
        outputs = [x for x in grads if x is not None and x.requires_grad]


class _Sized:
    """A tensor with the attributes that `parity.weight_of` reads."""

    def __init__(self, x: Any) -> None:
        self.dtype, self.size, self.shape = x.dtype, x.numel(), tuple(x.shape)

    def detach(self) -> _Sized:
        return self


def _name(dtype: Any) -> str:
    return str(dtype).rpartition(".")[2]


# --- comparison ---


def tensors(made: dict[str, Any]) -> dict[str, Any]:
    """Return the tensors among the results, those in lists by position."""
    found = {}
    for name, x in made.items():
        for k, one in enumerate(x if isinstance(x, list) else [x]):
            if hasattr(one, "requires_grad"):
                found[f"{name}[{k}]" if isinstance(x, list) else name] = one
    return found


def array_of(x: Any) -> Any:
    x = x.detach()
    return np.array(x.numpy() if isinstance(x, mg.Tensor) else x.numpy(force=True))


def told(found: Ran) -> dict[str, Any]:
    """Return the results by label: arrays to compare with a tolerance, and strings to compare exactly."""
    here = tensors(found.made)
    told: dict[str, Any] = {f"{name} is": _kind(x) for name, x in here.items()}
    told |= {f"{name} =": array_of(x) for name, x in here.items()}
    told |= dict(_shared(here))
    for label, grad in found.grads.items():
        if grad is not None:
            told[f"{label} is"] = f"{_name(grad.dtype)} {tuple(grad.shape)}"
            told[f"{label} ="] = array_of(grad)
    return told


def _kind(x: Any) -> str:
    return f"{_name(x.dtype)} {tuple(x.shape)}, gradient {x.requires_grad}, leaf {x.is_leaf}"


def _place(x: Any) -> Any:
    return id(x.storage) if isinstance(x, mg.Tensor) else x.untyped_storage().data_ptr()


def _shared(here: dict[str, Any]) -> Iterator[tuple[str, str]]:
    """Yield which tensors share memory, by the first one, and their strides."""
    first: dict[Any, str] = {}
    for name, x in here.items():
        if not x.numel():
            continue
        root = first.setdefault(_place(x), name.partition("[")[0])  # results of one call may have any layout
        yield f"memory of {name}", root
        if root in here and root != name and here[root].is_contiguous():
            places = [by for size, by in zip(x.shape, x.stride(), strict=True) if size > 1]
            yield f"strides of {name}", str(places)


def lying_otherwise(program: Program, mine: Ran, its: Ran) -> list[int]:
    """Return the lines whose result is a view or a copy depending on a layout that differs between the libraries."""
    ours, theirs = tensors(mine.made), tensors(its.made)
    odd = {name for name in ours.keys() & theirs.keys() if ours[name].is_contiguous() != theirs[name].is_contiguous()}
    names = {name.partition("[")[0] for name in odd}
    return [
        k
        for k, line in enumerate(program.lines)
        if any(word in line.text for word in MAY_COPY) and names & set(re.findall(r"[xv]\d+", line.text))
    ]


# --- sensitivity to rounding ---


@contextmanager
def _shaken(seed: int) -> Iterator[None]:
    """Return a block in which NumPy's kernels round the last digits differently, as another library would."""
    draws = np.random.default_rng(seed)

    def shake(call: Any) -> None:
        if mg.OPS[call.op].view:
            return
        for result in call.result if isinstance(call.result, tuple) else (call.result,):
            if isinstance(result, np.ndarray) and result.dtype.kind == "f" and result.flags.writeable:
                size = result if mg.OPS[call.op].domain else np.abs(result[np.isfinite(result)]).max(initial=0.0)
                if seed == SNAPPED:  # set to 0 what is 0 up to rounding
                    result[np.abs(result) <= 8 * np.finfo(result.dtype).eps * size] = 0
                    continue
                with np.errstate(all="ignore"):
                    result += 4 * np.finfo(result.dtype).eps * size * draws.uniform(-1, 1, result.shape)

    with mg.tap(shake):
        yield


def noisy(program: Program, clean: dict[str, Any]) -> dict[str, Any] | None:
    """Return how far the elements of each array move if kernels round differently.

    Return None if the outcome changes altogether: other shapes or errors, or elements without any precision.
    """
    spread: dict[str, Any] = {}
    for seed in range(SNAPPED + 1):
        with _shaken(seed):
            found = told(ran(program, minigrad("numpy")))
        if found.keys() != clean.keys():
            return None
        for label, was in clean.items():
            now = found[label]
            if not isinstance(was, np.ndarray):
                if was != now:
                    return None
                continue
            if was.shape != now.shape:
                return None
            with np.errstate(all="ignore"):
                off = np.asarray(np.abs(now.astype(float) - was.astype(float)))
            off[(now == was) | (np.isnan(now.astype(float)) & np.isnan(was.astype(float)))] = 0
            off[np.isnan(off)] = math.inf
            if was.dtype.kind == "f" and off.max(initial=0.0) > LOST * np.abs(was[np.isfinite(was)]).max(initial=0.0):
                return None
            spread[label] = np.maximum(spread.get(label, 0), off)
    return spread


# --- jitted steps ---


class Step:
    """A program as a function of its leaves that returns its results and gradients by label."""

    def __init__(self, program: Program, device: str) -> None:
        self.program, self.library = program, minigrad(device)
        self.refused: dict[int, Exception] = {}
        self.stopped: Exception | None = None

    def __call__(self, *leaves: Any) -> dict[str, Any]:
        named = dict(zip([leaf.name for leaf in self.program.leaves], leaves, strict=True))
        found = ran(self.program, self.library, named)
        self.refused, self.stopped = found.refused, found.stopped
        made = {name: x for name, x in tensors(found.made).items() if name not in named}
        grads = {label: grad for label, grad in found.grads.items() if grad is not None}
        return {label: x.detach() for label, x in {**made, **grads}.items()}

    def called(self, function: Callable[..., Any], turn: int) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return, as arrays, what the function returns for the leaves of a turn, and the leaves afterwards."""
        leaves = leaves_of(self.program, self.library)
        if turn % 3 == 2:  # other elements
            for x in leaves.values():
                if x.dtype.is_floating_point:
                    with mg.no_grad():
                        x.mul_(0.875).add_(0.0625)
        shapes = {name: x.shape for name, x in leaves.items()}
        found = {label: array_of(x) for label, x in function(*leaves.values()).items()}
        kept = {name: array_of(x) for name, x in leaves.items() if x.shape == shapes[name]}
        return found, kept


# --- shrinking ---


def shrunk(program: Program, fails: Callable[[Program], bool]) -> Program:
    """Return a program with fewer lines, outputs, orders and leaves that fails too."""
    smaller = True
    while smaller:
        smaller = False
        for one in _smaller(program):
            if fails(one):
                program, smaller = one, True
                break
    return program


def _smaller(program: Program) -> Iterator[Program]:
    for size in (8, 4, 2, 1):
        for k in range(len(program.lines) - size, -1, -size):
            yield replace(program, lines=program.lines[:k] + program.lines[k + size :])
    if program.orders:
        yield replace(program, orders=program.orders - 1)
    if len(program.held) > 1:
        for name in program.held:
            yield replace(program, held=tuple(x for x in program.held if x != name))
    for leaf in program.leaves:
        if leaf.free:
            frozen = tuple(x._replace(free=x.free and x is not leaf) for x in program.leaves)
            yield replace(program, leaves=frozen)
    for leaf in program.leaves:
        yield replace(program, leaves=tuple(x for x in program.leaves if x is not leaf))
