"""Lowering of tensor operations to loop nests, so that an exported page can recompute them without Python.

A loop nest iterates over all indices of a shape, evaluates a scalar formula, and accumulates it into an element of the
result. Each operand has an offset and one stride per dimension: stride 0 broadcasts an operand, or reduces into the
result. A matrix product is therefore one loop nest, and so is a tanh.

The lowering applies ops to symbols instead of arrays: an op on scalars is its formula, a view takes the strides that
its kernel returns, a sum-like op is the transpose of its rule, and any other op is the `meaning` that it declares in
terms of other ops. Gradients come from the rules of the op.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Mapping, Sequence
from itertools import count
from typing import Any, NamedTuple, NoReturn

import numpy as np

from minigrad.backends.formula.javascript import Unwritable, applied, literal
from minigrad.backends.numpy.arrays import DEVICE
from minigrad.backends.numpy.shape import arranged
from minigrad.core.dispatch import kernels_of
from minigrad.core.op import OPS, Op, Operand
from minigrad.core.shapes import Shape, broadcast_shapes

__all__ = ["Unwritable", "forward", "product"]

Y, G, FIRST = 0, 1, 2  # buffers of the output, its gradient and the first operand; results follow the operands
_LETTERS = "abcdefhijk"
_LARGEST = {"amax": "max", "amin": "min"}  # accumulators other than the sum


class _View(NamedTuple):
    """A strided view of the buffer with index `memory`."""

    memory: int
    offset: int
    strides: tuple[int, ...]


class _Loop(NamedTuple):
    text: str
    shape: Shape
    out: _View
    reads: Mapping[str, _View]
    by: str | None


class _Program:
    """A sequence of loop nests, and the sizes of their buffers; a serialized size in a list is a range from 0."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes: dict[int, int] = dict(enumerate(sizes))
        self.counting: dict[int, int] = {}
        self.loops: list[_Loop] = []
        self.names = count()
        self.adding: set[str] = set()  # ops under transposition, to detect recursion

    def memory(self, size: int) -> int:
        place = len(self.sizes)
        self.sizes[place] = size
        return place

    def symbol(self, memory: int, shape: Shape, strides: tuple[int, ...] | None = None, offset: int = 0) -> Symbol:
        """Return a symbol for a view of `memory`, contiguous if no strides are given."""
        name = f"_{next(self.names)}"
        view = _View(memory, offset, _contiguous(shape) if strides is None else strides)
        return Symbol(self, name, tuple(shape), {name: (view, tuple(shape))})

    def count_to(self, size: int) -> Symbol:
        """Return a symbol for 0, 1, …, size - 1, of shape (size,)."""
        place = self.memory(size)
        self.counting[place] = size
        return self.symbol(place, (size,))

    def run(self, x: Symbol, shape: Shape, out: _View, by: str | None = None) -> None:
        """Append a loop nest over `shape` that accumulates `x` into `out`."""
        reads = {
            name: _View(view.memory, view.offset, _stretched(view.strides, own, shape))
            for name, (view, own) in x.views.items()
        }
        self.loops.append(_Loop(x.text, shape, out, reads, by))

    def data(self, result: int, first: int) -> dict[str, Any]:
        """Serialize the loops that `result` depends on; computed buffers are numbered from `first`."""
        needed, loops = {result}, []
        for loop in reversed(self.loops):
            if loop.out.memory in needed:
                needed |= {view.memory for view in loop.reads.values()}
                loops.append(loop)
        own = sorted({*needed, result} - set(range(first)))
        places = {memory: first + k for k, memory in enumerate(own)}
        sizes = [[self.counting[m]] if m in self.counting else self.sizes[m] for m in own]
        steps = [_data(loop, places) for loop in reversed(loops)]
        return {"first": first, "sizes": sizes, "result": places[result], "loops": steps}


class Symbol(Operand):
    """A lazy array of `shape`: a formula of views of buffers."""

    __slots__ = ("program", "shape", "text", "views")

    def __init__(self, program: _Program, text: str, shape: Shape, views: Mapping[str, tuple[_View, Shape]]) -> None:
        self.program, self.text, self.shape, self.views = program, text, shape, views

    @classmethod
    def _apply(cls, op: Op, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
        program = next(x.program for x in inputs if isinstance(x, Symbol))
        if op.name == "where" and isinstance(inputs[0], bool):
            return inputs[1] if inputs[0] else inputs[2]
        return _computed(program, op, inputs, attrs)

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

    def stored(self) -> Symbol:
        """Return this symbol evaluated into a new contiguous buffer."""
        place = self.program.memory(math.prod(self.shape))
        self.program.run(self, self.shape, _View(place, 0, _contiguous(self.shape)))
        return self.program.symbol(place, self.shape)

    @property
    def bare(self) -> _View | None:
        """The view that this symbol is, or None if it is a formula."""
        view, shape = self.views.get(self.text, (None, ()))
        return view if shape == self.shape else None


def forward(op: Op, shapes: Sequence[Shape | None], attrs: Mapping[str, Any]) -> dict[str, Any]:
    """Return the loops that compute `op` for operands of these shapes; the shape of an omitted operand is None.

    Raises Unwritable, with a reason, if `op` cannot be lowered.

    >>> from minigrad import OPS
    >>> loop, = forward(OPS["matmul"], [(4, 3), (3, 5)], {})["loops"]
    >>> loop["f"], loop["n"], loop["o"], loop["x"]  # views are [buffer, offset, one stride per dimension]
    ('(a * b)', [4, 3, 5], [4, 0, 5, 0, 1], [[2, 0, 3, 1, 0], [3, 0, 0, 5, 1]])
    """
    program, operands = _begun(op, (), shapes)
    made = _computed(program, op, operands, attrs)
    made = made if isinstance(made, Symbol) else Symbol(program, literal(float(made)), (), {})
    return _ended(made, len(shapes))


def product(
    op: Op, slot: int, output: Shape, shapes: Sequence[Shape | None], attrs: Mapping[str, Any]
) -> dict[str, Any] | None:
    """Return the loops of the vector-Jacobian product for operand `slot`, by the op's rule; None if it has none.

    The loops sum over broadcast dimensions.
    """
    rule: Any = op.rules[slot]
    if rule is None or shapes[slot] is None:
        return None
    program, operands = _begun(op, output, shapes)
    kept = dict.fromkeys(op.aux)
    if op.aux:
        _, *found = _meaning(op, operands, attrs)
        kept = dict(zip(op.aux, found, strict=True))
    y, g = program.symbol(Y, output), program.symbol(G, output)
    made = rule(g, y, *operands, **kept, **attrs, **_shapes(op, operands))
    made = made[slot] if op.joint else made
    made = made if isinstance(made, Symbol) else Symbol(program, literal(float(made)), (), {})
    shape = shapes[slot] or ()
    made = OPS["sum_to"](made, shape=shape) if math.prod(made.shape) > math.prod(shape) else made
    return _ended(OPS["expand"](made, shape=shape) if made.shape != shape else made, len(shapes))


def _begun(op: Op, output: Shape, shapes: Sequence[Shape | None]) -> tuple[_Program, tuple[Any, ...]]:
    if op.variadic or op.outputs > 1:
        raise Unwritable(f"{op.name} has {'variadic operands' if op.variadic else 'several outputs'}.")
    sizes = [math.prod(output)] * 2 + [math.prod(shape or ()) for shape in shapes]
    program = _Program(sizes)
    operands = [None if shape is None else program.symbol(FIRST + k, shape) for k, shape in enumerate(shapes)]
    return program, tuple(operands)


def _ended(made: Symbol, operands: int) -> dict[str, Any]:
    bare = made.bare
    first = FIRST + operands
    if bare is None or bare.memory < first or bare != (bare.memory, 0, _contiguous(made.shape)):
        bare = made.stored().bare
    assert bare is not None
    return made.program.data(bare.memory, first)


# --- one op of symbols -----------------------------------------------------------------------------------------------


def _computed(program: _Program, op: Op, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> Any:
    if not all(x is None or isinstance(x, Symbol | int | float) for x in inputs):
        raise Unwritable(f"{op.name} reads an array that is not an operand.")
    inputs = tuple([Symbol(program, literal(float(x)), (), {}) if isinstance(x, int | float) else x for x in inputs])
    if not getattr(attrs.get("dtype"), "is_floating_point", True):
        raise Unwritable(f"{op.name} converts its operand to an integer dtype.")
    if op.meaning is not None:
        return _meaning(op, inputs, attrs)[0]
    if "python" in kernels_of(op.name):
        return _number_by_number(program, op, inputs, attrs)
    if op.view:
        return _viewed(op, inputs[0], attrs)
    if op.name in ("pick_along", "put_along"):
        return _along(program, op.name, *inputs, **attrs)
    if op.name in _LARGEST:
        return _added(program, op, inputs[0], attrs, OPS["sum"], _LARGEST[op.name])
    if len(op.vjp) == 1 and op.reads[0] <= {"g", *op.attrs, *op.shapes}:
        return _added(program, op, inputs[0], attrs, op)
    raise Unwritable(f"{op.name} is not a scalar formula, and declares no meaning in terms of other ops.")


def _shapes(op: Op, operands: Sequence[Any]) -> dict[str, Any]:
    given = dict(zip(op.inputs, operands, strict=True))
    return {name: getattr(given[name.removesuffix("_shape")], "shape", None) for name in op.shapes}


def _meaning(op: Op, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> tuple[Any, ...]:
    """Apply the declared `meaning` of `op` to `inputs`; return the output and the auxiliary results."""
    meaning: Any = op.meaning
    if meaning is None:
        raise Unwritable(f"{op.name} declares no meaning in terms of other ops.")
    given = dict(zip(op.inputs, inputs, strict=True))
    given |= {f"{name}_shape": getattr(x, "shape", None) for name, x in given.items()} | dict(attrs)
    made = meaning(*[given[name] for name in inspect.signature(meaning).parameters])
    return made if isinstance(made, tuple) else (made,)


def _number_by_number(program: _Program, op: Op, inputs: tuple[Any, ...], attrs: Mapping[str, Any]) -> Symbol:
    """Compose the formulas of an elementwise op. Operands with long formulas are materialized first."""
    inputs = tuple([x.stored() if len(x.text) > 200 else x for x in inputs])
    text = applied(op, dict(zip(op.inputs, [x.text for x in inputs], strict=True)), attrs)
    shape = broadcast_shapes(*[x.shape for x in inputs])
    return Symbol(program, text, shape, {name: view for x in inputs for name, view in x.views.items()})


def _viewed(op: Op, x: Symbol, attrs: Mapping[str, Any]) -> Symbol:
    """Apply a view op by running its NumPy kernel on a dummy buffer and reading the strides of the result."""
    stored = x if x.bare else x.stored()
    view = stored.bare
    assert view is not None
    memory = np.empty(x.program.sizes[view.memory] + 1, np.int8)  # 1 byte per element: byte strides are indices
    start = memory.__array_interface__["data"][0]
    found = kernels_of(op.name)[DEVICE](arranged(memory, x.shape, view.strides, view.offset), **attrs)
    place = found.__array_interface__["data"][0] - start
    if not 0 <= place < memory.size:  # the kernel copied, since no strides express the view
        return _viewed(op, stored.stored(), attrs)
    return x.program.symbol(view.memory, found.shape, found.strides, place)


def _added(program: _Program, op: Op, x: Symbol, attrs: Mapping[str, Any], over: Op, by: str | None = None) -> Symbol:
    """Lower a reduction by transposing its rule, which maps each element to a view of the gradient."""
    refusal = f"{op.name} is not a scalar formula, and declares no meaning in terms of other ops."
    if op.name in program.adding:  # a rule that applies its own op
        raise Unwritable(refusal)
    program.adding.add(op.name)
    shape = _result_shape(over, x.shape, attrs)
    place = program.memory(math.prod(shape))
    rule: Any = over.rules[0]
    result = program.symbol(place, shape)
    given = rule(result, None, x, **attrs, **_shapes(over, (x,)))
    program.adding.remove(op.name)
    to = given.bare
    if to is None or to.memory != place or given.shape != x.shape:
        raise Unwritable(refusal)
    program.run(x, x.shape, to, by)
    return result


def _result_shape(op: Op, shape: Shape, attrs: Mapping[str, Any]) -> Shape:
    return tuple(kernels_of(op.name)[DEVICE](arranged(np.zeros(1), shape, (0,) * len(shape)), **attrs).shape)


def _along(
    program: _Program, name: str, a: Symbol, b: Symbol, dim: int, keepdim: bool, shape: Shape | None = None
) -> Symbol:
    """Gather `a` at index `b` along `dim`, or with `shape` scatter it there: compare the index with a range."""
    full = a.shape if shape is None else shape
    wide = tuple(1 if k == dim else size for k, size in enumerate(full))
    if not keepdim:
        b = OPS["reshape"](b, shape=wide)
        a = a if shape is None else OPS["reshape"](a, shape=wide)
    own = OPS["reshape"](program.count_to(full[dim]), shape=(full[dim], *(1,) * (len(full) - dim - 1)))
    chosen: Symbol = OPS["where"](OPS["eq"](b, own), a, 0.0)
    if shape is None:
        chosen = OPS["sum"](chosen, dim=(dim,), keepdim=keepdim)
    return chosen


# --- as data ---------------------------------------------------------------------------------------------------------


def _contiguous(shape: Shape) -> tuple[int, ...]:
    return tuple([math.prod(shape[k + 1 :]) for k in range(len(shape))])


def _stretched(strides: tuple[int, ...], own: Shape, shape: Shape) -> tuple[int, ...]:
    """Return the strides of a view of shape `own` broadcast to `shape`."""
    kept = [0 if size == 1 else stride for stride, size in zip(strides, own, strict=True)]
    return (0,) * (len(shape) - len(own)) + tuple(kept)


def _data(loop: _Loop, places: Mapping[int, int]) -> dict[str, Any]:
    """Serialize a loop nest for a trace, merging adjacent dimensions where the strides allow it."""
    names = list(dict.fromkeys(re.findall(r"\b_\d+\b", loop.text)))
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
        [places.get(v.memory, v.memory), v.offset, *(strides[k] for _, strides in dims)] for k, v in enumerate(views)
    ]
    data = {"f": re.sub(r"\b_\d+\b", lambda m: letters[m[0]], loop.text), "n": [size for size, _ in dims]}
    return {**data, "o": out, "x": reads, **({"by": loop.by} if loop.by else {})}
