"""Replay: recompute the values of a graph of tensors from its leaves.

A result is freed as soon as nothing refers to it, and ``backward()`` frees saved tensors. The structure survives:
operations with their attributes (for dropout, the key of its mask), leaves, and constants (scalars and small tensors).
So each step is recomputed by its own operation into a second graph of the same structure, on which the backward pass is
played. No user tensor is modified, and the random state is restored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import minigrad as mg
from minigrad.core.dispatch import untapped
from minigrad.core.dtypes import as_dtype
from minigrad.core.errors import MinigradError
from minigrad.core.graph import number
from minigrad.core.modes import Block
from minigrad.core.snapshot import FREED, NodeRecord, node_of
from minigrad.core.step import SMALL
from minigrad.core.storage import PLACES
from minigrad.core.tensor import Tensor, wrap
from minigrad.core.views import write_into
from minigrad.nn.hooks import passes_gradients
from minigrad.profiling.tidying import Freed

__all__ = ["Replay"]

_PICK = mg.OPS["pick"]
_AS_OUTSIDE: dict[str, Any] = {
    "grad": True,
    "scope": "",
    "lines": False,
    "strict": False,
    "keeps_operands": False,
    "gradient_passed": (),
    "passing": None,
}  # modes outside of all blocks


_RECORD = "build the graph inside `with mg.record():`"


class _Lost(Exception):
    """A step that cannot be recomputed although its operands are known, with the reason and advice."""

    def __init__(self, why: str, advice: str = f"{_RECORD[0].upper()}{_RECORD[1:]} to retain it.") -> None:
        super().__init__(why)
        self.advice = advice


class Replay:
    """A second graph, recomputed from `records`, the nodes of the first in topological order.

    A step that cannot be recomputed becomes a leaf with the values of its tensor in `held`. Without one, it and all
    steps that depend on it are missing from `tensors`. Unless the graph was `freed`, steps that the engine would refuse
    because an operand was modified are not recomputed either.
    """

    def __init__(self, records: Sequence[NodeRecord], held: Mapping[Any, Any], freed: bool) -> None:
        self.freed = freed
        self._wrapped: dict[int, Any] = {}  # by the id of an array whose tensor was freed
        self.tensors: dict[Any, Any] = {}
        """The recomputed tensor by node; a tuple for a step with several outputs."""
        self.nodes: dict[Any, Any] = {}
        """Maps nodes of the second graph to nodes of the first."""
        self.lost: dict[Any, tuple[str, str]] = {}
        """Nodes that cannot be recomputed although their operands are known, with reason and advice."""
        self.written: dict[Any, None] = {}
        """Leaves and constants that were modified after a step had used them."""
        with Block(lambda: _AS_OUTSIDE), untapped(), mg.random.fork_rng():
            for record in records:
                node = record.node
                try:
                    made = _leaf(node) if record.op is None else self._computed(record)
                except (_Lost, MinigradError) as error:
                    lost = error if isinstance(error, _Lost) else _Lost(str(error).partition("\n")[0])
                    self.lost[node], made = (str(lost), lost.advice), None
                if made is None and not _is_gone(held.get(node)):
                    made = _leaf(held[node])
                if made is not None:
                    self.tensors[node] = made
                    self.nodes[_whole(made) if isinstance(made, tuple) else node_of(made)] = node
        for record in records:
            if (
                record.op is None and record.node in self.tensors and not record.requires_grad
            ):  # the user may have frozen it since
                self.tensors[record.node].requires_grad = False

    def constants(self, step: NodeRecord) -> list[Any]:
        """Return the constant of each operand of `step`, a tensor or another argument, or FREED; None for a node."""
        found = [FREED if x is not None and _is_gone(x) else x for x in step.constants]
        return [self._wrapped.setdefault(id(x), wrap(x)) if x.__class__ in PLACES else x for x in found]

    def _computed(self, step: NodeRecord) -> Any:
        """Recompute the result of `step`; None if an operand is unknown."""
        constants = self.constants(step)
        if passes_gradients(step.function):
            constants[0] = list  # in place of the hooks
        operands = list(zip(step.operands, constants, strict=True))
        for slot, known in enumerate(constants):
            if known is ... or known is FREED:
                raise _missing(step, slot)
        late = [known if source is None else source for source, known in (operands[slot] for slot in step.stale)]
        if any(x is not None and x not in self.tensors for x in step.operands) or (late and not self.freed):
            return None
        self.written |= dict.fromkeys([x if x._base is None else x._base for x in late])
        given = [_constant(known) if x is None else self.tensors[x] for x, known in operands]
        op: Any = step.op
        if op is _PICK:
            return _whole(given[0]).relinked(given[0])[step.attrs["index"]]
        if "ctx" in op.aux:
            return _called(step, given)
        attrs = {name: step.attrs[name] for name in op.attrs}
        made = op(*given, **attrs)
        if op.outputs == 1 and (made.shape, made.dtype.name) != (step.shape, step.dtype):  # an in-place operation
            made = write_into(made.new_empty(step.shape, dtype=as_dtype(step.dtype)), op, tuple(given), attrs)
        return made


def _is_gone(x: Any) -> bool:
    """Whether `x` is None or a tensor that `mg.tidy` freed."""
    return x is None or (isinstance(x, Tensor) and isinstance(number(x), Freed))


def _constant(x: Any) -> Any:
    """Return a constant that shares the memory of the tensor `x`; return anything else unchanged."""
    return wrap(number(x)) if isinstance(x, Tensor) else x


def _leaf(tensor: Any) -> Any:
    """Return a leaf that shares the memory of `tensor`."""
    made = wrap(number(tensor))
    return made.requires_grad_(made.dtype.is_floating_point)


def _whole(outputs: tuple[Any, ...]) -> Any:
    """Return the step that computed several outputs, some of which have no gradient."""
    return next(x.grad_fn for x in outputs if x.grad_fn is not None).next_functions[0]


def _called(step: NodeRecord, given: Sequence[Any]) -> Any:
    """Rerun the forward pass of a Function."""
    function = step.function
    if function is None:
        raise _Lost("it was called with keyword arguments, which are not saved")
    before = [(x, x._version, x.detach().clone()) for x in given if isinstance(x, Tensor)]
    state = mg.get_rng_state().tolist()
    try:
        made = function.apply(*given)
    except Exception as error:  # noqa: BLE001 -- user code; the drawing reports it
        raise _Lost(f"its forward raised {type(error).__name__}") from None
    finally:
        with mg.no_grad():
            for x, version, kept in before:
                if x._version != version:  # undo the write to the user's memory
                    x.copy_(kept)
    if mg.get_rng_state().tolist() != state:
        raise _Lost("its forward draws random numbers")
    return made[0] if isinstance(made, tuple) and len(made) == 1 else made


def _missing(step: NodeRecord, slot: int) -> _Lost:
    """Return the error for an operand that was freed or a Function argument that was not saved."""
    op: Any = step.op
    if step.constants[slot] is ...:
        return _Lost(f"argument {slot} of its forward is not saved, since it is neither a tensor nor a plain value")
    name = f"{slot}" if op.variadic else op.inputs[slot]
    what = f"operand {name} of {op.name} was freed; it has no gradient and more than {SMALL:,} elements"
    return _Lost(what, f"Keep that tensor in a variable, or {_RECORD}.")
