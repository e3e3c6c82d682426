"""Lowering of tensor operations to loop nests, so that an exported page can recompute them without Python.

A loop nest iterates over all indices of a shape, evaluates a scalar formula, and accumulates it into an element of the
result. Each operand has an offset and one stride per dimension: stride 0 broadcasts an operand, or reduces into the
result. A matrix product is therefore one loop nest, and so is a tanh.

The lowering applies ops to symbols instead of arrays. An op on scalars is lowered to its formula, a view op to the
strides that its kernel returns, a sum-like op to the transpose of its rule, and any other op to the `meaning` that it
declares in terms of other ops. Gradients are lowered by applying the rules of the op.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple, NoReturn

import numpy as np

from minigrad.backends.formula.javascript import Unwritable, float_literal, op_code
from minigrad.backends.numpy.arrays import DEVICE
from minigrad.backends.numpy.shape import strided_view
from minigrad.core.dispatch import get_kernels
from minigrad.core.op import OPS, Op, Operand
from minigrad.core.shapes import Shape, broadcast_shapes

__all__ = ["Unwritable", "forward", "vjp_loops"]

Y, G, FIRST = 0, 1, 2  # buffers of the output, its gradient and the first operand; results follow the operands
_LETTERS = "abcdefhijk"
_EXTREMA = {"amax": "max", "amin": "min"}  # reductions that do not accumulate a sum


class _View(NamedTuple):
    """A strided view of the buffer with index `buffer`."""

    buffer: int
    offset: int
    strides: tuple[int, ...]


class _LoopNest(NamedTuple):
    formula: str
    shape: Shape
    out: _View
    reads: Mapping[str, _View]
    combine: str | None


class _LoopProgram:
    """A sequence of loop nests, and the sizes of their buffers. The size of a range is serialized in a list."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes: dict[int, int] = dict(enumerate(sizes))
        self.ranges: dict[int, int] = {}
        self.loops: list[_LoopNest] = []
        self.names = count()
        self.active_ops: set[str] = set()  # reductions that are being lowered, to detect recursion

    def new_buffer(self, size: int) -> int:
        index = len(self.sizes)
        self.sizes[index] = size
        return index

    def symbol(self, buffer: int, shape: Shape, strides: tuple[int, ...] | None = None, offset: int = 0) -> Symbol:
        """Return a symbol for a view of `buffer`, contiguous if no strides are given."""
        name = f"_{next(self.names)}"
        view = _View(buffer, offset, _contiguous(shape) if strides is None else strides)
        return Symbol(self, name, tuple(shape), {name: (view, tuple(shape))})

    def arange(self, size: int) -> Symbol:
        """Return a symbol for 0, 1, …, size - 1, of shape (size,)."""
        buffer = self.new_buffer(size)
        self.ranges[buffer] = size
        return self.symbol(buffer, (size,))

    def add_loop(self, x: Symbol, shape: Shape, out: _View, combine: str | None = None) -> None:
        """Append a loop nest over `shape` that accumulates `x` into `out`."""
        reads = {
            name: _View(view.buffer, view.offset, _broadcast_strides(view.strides, view_shape, shape))
            for name, (view, view_shape) in x.views.items()
        }
        self.loops.append(_LoopNest(x.formula, shape, out, reads, combine))

    def serialize(self, result: int, first: int) -> dict[str, Any]:
        """Serialize the loops that `result` depends on; computed buffers are numbered from `first`."""
        live_buffers, loops = {result}, []
        for loop in reversed(self.loops):
            if loop.out.buffer in live_buffers:
                live_buffers |= {view.buffer for view in loop.reads.values()}
                loops.append(loop)
        buffers = sorted({*live_buffers, result} - set(range(first)))
        numbering = {memory: first + k for k, memory in enumerate(buffers)}
        sizes = [[self.ranges[m]] if m in self.ranges else self.sizes[m] for m in buffers]
        steps = [_serialize_loop(loop, numbering) for loop in reversed(loops)]
        return {"first": first, "sizes": sizes, "result": numbering[result], "loops": steps}


class Symbol(Operand):
    """A lazy array, defined by a formula whose variables are views of buffers."""

    __slots__ = ("formula", "program", "shape", "views")

    def __init__(
        self, program: _LoopProgram, formula: str, shape: Shape, views: Mapping[str, tuple[_View, Shape]]
    ) -> None:
        self.program, self.formula, self.shape, self.views = program, formula, shape, views

    @classmethod
    def _apply(cls, op: Op, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        program = next(x.program for x in inputs if isinstance(x, Symbol))
        if op.name == "where" and isinstance(inputs[0], bool):
            return inputs[1] if inputs[0] else inputs[2]
        return _apply_op(program, op, inputs, attrs)

    @property
    def ndim(self) -> int:
        return len(self.shape)

    @property
    def mT(self) -> Any:
        return OPS["permute"](self, dims=(*range(self.ndim - 2), self.ndim - 1, self.ndim - 2))

    def __matmul__(self, other: Any) -> Any:
        return OPS["matmul"](self, other)

    def __bool__(self) -> NoReturn:
        raise Unwritable("A rule branches on values with if, which cannot be expressed as loops.")

    def materialize(self) -> Symbol:
        """Append a loop that evaluates this symbol into a new contiguous buffer, and return a symbol for the buffer."""
        buffer = self.program.new_buffer(math.prod(self.shape))
        self.program.add_loop(self, self.shape, _View(buffer, 0, _contiguous(self.shape)))
        return self.program.symbol(buffer, self.shape)

    @property
    def as_view(self) -> _View | None:
        """The view that this symbol represents, or None if it is another formula."""
        view, shape = self.views.get(self.formula, (None, ()))
        return view if shape == self.shape else None


def forward(op: Op, shapes: Sequence[Shape | None], attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the loops that compute `op` for operands of these shapes; the shape of an omitted operand is None.

    Raises Unwritable, with a reason, if `op` cannot be lowered.

    >>> from minigrad import OPS
    >>> loop, = forward(OPS["matmul"], [(4, 3), (3, 5)], {})["loops"]
    >>> loop["f"], loop["n"], loop["o"], loop["x"]  # views are [buffer, offset, one stride per dimension]
    ('(a * b)', [4, 3, 5], [4, 0, 5, 0, 1], [[2, 0, 3, 1, 0], [3, 0, 0, 5, 1]])
    """
    program, operands = _start_program(op, (), shapes)
    result = _apply_op(program, op, operands, attrs)
    result = result if isinstance(result, Symbol) else Symbol(program, float_literal(float(result)), (), {})
    return _finish_program(result, len(shapes))


def vjp_loops(
    op: Op, slot: int, output: Shape, shapes: Sequence[Shape | None], attrs: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the loops of the vector-Jacobian product for operand `slot`, or None if the op has no rule for it.

    The loops sum over broadcast dimensions.
    """
    rule: Any = op.rules[slot]
    if rule is None or shapes[slot] is None:
        return None
    program, operands = _start_program(op, output, shapes)
    aux = dict.fromkeys(op.aux)
    if op.aux:
        _, *aux_values = _apply_meaning(op, operands, attrs)
        aux = dict(zip(op.aux, aux_values, strict=True))
    y, g = program.symbol(Y, output), program.symbol(G, output)
    gradient = rule(g, y, *operands, **aux, **attrs, **_shape_attrs(op, operands))
    gradient = gradient[slot] if op.joint else gradient
    gradient = gradient if isinstance(gradient, Symbol) else Symbol(program, float_literal(float(gradient)), (), {})
    shape = shapes[slot] or ()
    gradient = OPS["sum_to"](gradient, shape=shape) if math.prod(gradient.shape) > math.prod(shape) else gradient
    return _finish_program(OPS["expand"](gradient, shape=shape) if gradient.shape != shape else gradient, len(shapes))


def _start_program(op: Op, output: Shape, shapes: Sequence[Shape | None]) -> tuple[_LoopProgram, tuple[Any, ...]]:
    if op.variadic or op.outputs > 1:
        raise Unwritable(f"{op.name} has {'variadic operands' if op.variadic else 'several outputs'}.")
    sizes = [math.prod(output)] * 2 + [math.prod(shape or ()) for shape in shapes]
    program = _LoopProgram(sizes)
    operands = [None if shape is None else program.symbol(FIRST + k, shape) for k, shape in enumerate(shapes)]
    return program, tuple(operands)


def _finish_program(result: Symbol, operands: int) -> dict[str, Any]:
    view = result.as_view
    first = FIRST + operands
    if view is None or view.buffer < first or view != (view.buffer, 0, _contiguous(result.shape)):
        view = result.materialize().as_view
    assert view is not None
    return result.program.serialize(view.buffer, first)


# --- lowering of one op ----------------------------------------------------------------------------------------------


def _apply_op(program: _LoopProgram, op: Op, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
    if not all(x is None or isinstance(x, Symbol | int | float) for x in inputs):
        raise Unwritable(f"{op.name} reads an array that is not an operand.")
    inputs = tuple(
        [Symbol(program, float_literal(float(x)), (), {}) if isinstance(x, int | float) else x for x in inputs]
    )
    if not getattr(attrs.get("dtype"), "is_floating_point", True):
        raise Unwritable(f"{op.name} converts its operand to an integer dtype.")
    if op.meaning is not None:
        return _apply_meaning(op, inputs, attrs)[0]
    if "python" in get_kernels(op.name):
        return _apply_elementwise(program, op, inputs, attrs)
    if op.view:
        return _apply_view(op, inputs[0], attrs)
    if op.name in ("pick_along", "put_along"):
        return _gather_or_scatter(program, op.name, *inputs, **attrs)
    if op.name in _EXTREMA:
        return _apply_reduction(program, op, inputs[0], attrs, OPS["sum"], _EXTREMA[op.name])
    if len(op.vjp) == 1 and op.reads[0] <= {"g", *op.attrs, *op.shapes}:
        return _apply_reduction(program, op, inputs[0], attrs, op)
    raise Unwritable(f"{op.name} is not a scalar formula, and declares no meaning in terms of other ops.")


def _shape_attrs(op: Op, operands: Sequence[Any]) -> dict[str, Any]:
    operand_by_name = dict(zip(op.inputs, operands, strict=True))
    return {name: getattr(operand_by_name[name.removesuffix("_shape")], "shape", None) for name in op.shapes}


def _apply_meaning(op: Op, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> tuple[Any, ...]:
    """Apply the declared `meaning` of `op` to `inputs`; return the output and the auxiliary results."""
    meaning: Any = op.meaning
    if meaning is None:
        raise Unwritable(f"{op.name} declares no meaning in terms of other ops.")
    arguments = dict(zip(op.inputs, inputs, strict=True))
    arguments |= {f"{name}_shape": getattr(x, "shape", None) for name, x in arguments.items()} | dict(attrs)
    result = meaning(*[arguments[name] for name in inspect.signature(meaning).parameters])
    return result if isinstance(result, tuple) else (result,)


def _apply_elementwise(program: _LoopProgram, op: Op, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> Symbol:
    """Compose the formulas of an elementwise op. Operands with long formulas are materialized first."""
    inputs = tuple([x.materialize() if len(x.formula) > 200 else x for x in inputs])
    formula = op_code(op, dict(zip(op.inputs, [x.formula for x in inputs], strict=True)), attrs)
    shape = broadcast_shapes(*[x.shape for x in inputs])
    return Symbol(program, formula, shape, {name: view for x in inputs for name, view in x.views.items()})


def _apply_view(op: Op, x: Symbol, attrs: Mapping[str, Any]) -> Symbol:
    """Apply a view op by running its NumPy kernel on a dummy buffer and reading the strides of the result."""
    operand = x if x.as_view else x.materialize()
    view = operand.as_view
    assert view is not None
    memory = np.empty(x.program.sizes[view.buffer] + 1, np.int8)  # 1 byte per element, so that strides are in elements
    start = memory.__array_interface__["data"][0]
    result_view = get_kernels(op.name)[DEVICE](strided_view(memory, x.shape, view.strides, view.offset), **attrs)
    offset = result_view.__array_interface__["data"][0] - start
    if not 0 <= offset < memory.size:  # the kernel copied, since no strides express the view
        return _apply_view(op, operand.materialize(), attrs)
    return x.program.symbol(view.buffer, result_view.shape, result_view.strides, offset)


def _apply_reduction(
    program: _LoopProgram, op: Op, x: Symbol, attrs: Mapping[str, Any], shape_op: Op, combine: str | None = None
) -> Symbol:
    """Lower a reduction by transposing its rule, which maps each element to a view of the gradient."""
    message = f"{op.name} is not a scalar formula, and declares no meaning in terms of other ops."
    if op.name in program.active_ops:  # the rule applies its own op
        raise Unwritable(message)
    program.active_ops.add(op.name)
    shape = _result_shape(shape_op, x.shape, attrs)
    buffer = program.new_buffer(math.prod(shape))
    rule: Any = shape_op.rules[0]
    result = program.symbol(buffer, shape)
    operand_gradient = rule(result, None, x, **attrs, **_shape_attrs(shape_op, (x,)))
    program.active_ops.remove(op.name)
    target = operand_gradient.as_view
    if target is None or target.buffer != buffer or operand_gradient.shape != x.shape:
        raise Unwritable(message)
    program.add_loop(x, x.shape, target, combine)
    return result


def _result_shape(op: Op, shape: Shape, attrs: Mapping[str, Any]) -> Shape:
    return tuple(get_kernels(op.name)[DEVICE](strided_view(np.zeros(1), shape, (0,) * len(shape)), **attrs).shape)


def _gather_or_scatter(
    program: _LoopProgram, name: str, a: Symbol, b: Symbol, dim: int, keepdim: bool, shape: Shape | None = None
) -> Symbol:
    """Gather `a` at index `b` along `dim`, or scatter it into `shape`, by comparing the index with a range."""
    full_shape = a.shape if shape is None else shape
    keepdim_shape = tuple(1 if k == dim else size for k, size in enumerate(full_shape))
    if not keepdim:
        b = OPS["reshape"](b, shape=keepdim_shape)
        a = a if shape is None else OPS["reshape"](a, shape=keepdim_shape)
    positions = OPS["reshape"](
        program.arange(full_shape[dim]), shape=(full_shape[dim], *(1,) * (len(full_shape) - dim - 1))
    )
    selected: Symbol = OPS["where"](OPS["eq"](b, positions), a, 0.0)
    if shape is None:
        selected = OPS["sum"](selected, dim=(dim,), keepdim=keepdim)
    return selected


# --- serialization ---------------------------------------------------------------------------------------------------


def _contiguous(shape: Shape) -> tuple[int, ...]:
    return tuple([math.prod(shape[k + 1 :]) for k in range(len(shape))])


def _broadcast_strides(strides: tuple[int, ...], view_shape: Shape, shape: Shape) -> tuple[int, ...]:
    """Return the strides of a view of shape `view_shape` broadcast to `shape`."""
    view_strides = [0 if size == 1 else stride for stride, size in zip(strides, view_shape, strict=True)]
    return (0,) * (len(shape) - len(view_shape)) + tuple(view_strides)


def _serialize_loop(loop: _LoopNest, numbering: Mapping[int, int]) -> dict[str, Any]:
    """Serialize a loop nest for a trace, merging adjacent dimensions where the strides allow it."""
    names = list(dict.fromkeys(re.findall(r"\b_\d+\b", loop.formula)))
    if len(names) > len(_LETTERS):
        raise Unwritable("The formula reads too many operands.")
    views = [loop.out, *(loop.reads[name] for name in names)]
    columns = [(size, tuple([v.strides[k] for v in views])) for k, size in enumerate(loop.shape) if size != 1]
    dims: list[tuple[int, tuple[int, ...]]] = []
    for size, strides in columns:
        if dims and dims[-1][1] == tuple([size * stride for stride in strides]):
            dims[-1] = (dims[-1][0] * size, strides)
        else:
            dims.append((size, strides))
    letters = dict(zip(names, _LETTERS, strict=False))
    out, *reads = [
        [numbering.get(v.buffer, v.buffer), v.offset, *(strides[k] for _, strides in dims)] for k, v in enumerate(views)
    ]
    data = {"f": re.sub(r"\b_\d+\b", lambda m: letters[m[0]], loop.formula), "n": [size for size, _ in dims]}
    return {**data, "o": out, "x": reads, **({"by": loop.combine} if loop.combine else {})}
