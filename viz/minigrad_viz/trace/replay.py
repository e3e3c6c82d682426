"""Replay: recompute the values of a graph of tensors from its leaves.

A result is freed as soon as nothing refers to it, and ``backward()`` frees saved tensors. The structure survives:
operations with their attributes (for dropout, the key of its mask), leaves, and constants (scalars and small tensors).
Each step is therefore recomputed by its own operation into a second graph of the same structure, on which the backward
pass runs. No user tensor is modified, and the random state is restored.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import minigrad as mg
from minigrad.core.dispatch import disable_taps
from minigrad.core.dtypes import as_dtype
from minigrad.core.errors import MinigradError
from minigrad.core.graph import raw_value
from minigrad.core.modes import ModeContext
from minigrad.core.snapshot import FREED, NodeRecord, get_node
from minigrad.core.step import MAX_KEPT_SIZE
from minigrad.core.storage import DEVICE_BY_ARRAY_TYPE
from minigrad.core.tensor import Tensor, wrap
from minigrad.core.views import write_into
from minigrad.nn.hooks import is_backward_hook
from minigrad.profiling.tidying import Freed

__all__ = ["Replay"]

_PICK = mg.OPS["pick"]
DEFAULT_MODES: dict[str, Any] = {
    "grad": True,
    "scope": "",
    "lines": False,
    "strict": False,
    "keeps_operands": False,
    "gradient_passed": (),
    "passing": None,
}  # modes outside of all context managers


RECORD_ADVICE = "build the graph inside `with mg.record():`"


class _ReplayError(Exception):
    """Raised if a step cannot be recomputed although its operands are known; contains the reason and advice."""

    def __init__(
        self, reason: str, advice: str = f"{RECORD_ADVICE[0].upper()}{RECORD_ADVICE[1:]} to retain it."
    ) -> None:
        super().__init__(reason)
        self.advice = advice


class Replay:
    """A second graph, recomputed from `records`, which are the nodes of the first graph in topological order.

    A step that cannot be recomputed becomes a leaf with the values of its tensor in `fallbacks`. Without a fallback,
    the step and all steps that depend on it are missing from `tensors`. Unless the graph was `freed`, steps that the
    engine would refuse due to a modified operand are not recomputed either.
    """

    def __init__(self, records: Sequence[NodeRecord], fallbacks: Mapping[Any, Any], freed: bool) -> None:
        self.freed = freed
        self._wrapped: dict[int, Any] = {}  # maps the id of an array whose tensor was freed to a new tensor
        self.tensors: dict[Any, Any] = {}
        """Maps a node to its recomputed tensor, or to a tuple of tensors for a step with several outputs."""
        self.nodes: dict[Any, Any] = {}
        """Maps nodes of the second graph to nodes of the first."""
        self.failures: dict[Any, tuple[str, str]] = {}
        """Nodes that cannot be recomputed although their operands are known, with reason and advice."""
        self.modified: dict[Any, None] = {}
        """Leaves and constants that were modified after a step had used them."""
        with ModeContext(lambda: DEFAULT_MODES), disable_taps(), mg.random.fork_rng():
            for record in records:
                node = record.node
                try:
                    replayed = _share_leaf(node) if record.op is None else self._recompute(record)
                except (_ReplayError, MinigradError) as error:
                    failure = error if isinstance(error, _ReplayError) else _ReplayError(str(error).partition("\n")[0])
                    self.failures[node], replayed = (str(failure), failure.advice), None
                if replayed is None and not _is_freed(fallbacks.get(node)):
                    replayed = _share_leaf(fallbacks[node])
                if replayed is not None:
                    self.tensors[node] = replayed
                    self.nodes[_multi_output_step(replayed) if isinstance(replayed, tuple) else get_node(replayed)] = (
                        node
                    )
        for record in records:
            if (
                record.op is None and record.node in self.tensors and not record.requires_grad
            ):  # the user may have frozen the tensor after it was used
                self.tensors[record.node].requires_grad = False

    def constants(self, step: NodeRecord) -> list[Any]:
        """Return a constant for each operand of `step`: a tensor, another argument, or FREED; None if it is a node."""
        constants = [FREED if x is not None and _is_freed(x) else x for x in step.constants]
        return [
            self._wrapped.setdefault(id(x), wrap(x)) if x.__class__ in DEVICE_BY_ARRAY_TYPE else x for x in constants
        ]

    def _recompute(self, step: NodeRecord) -> Any:
        """Recompute the result of `step`. Return None if an operand is unknown."""
        constants = self.constants(step)
        if is_backward_hook(step.function):
            constants[0] = list  # replaces the hooks
        operands = list(zip(step.operands, constants, strict=True))
        for slot, constant in enumerate(constants):
            if constant is ... or constant is FREED:
                raise _missing_operand_error(step, slot)
        modified = [known if source is None else source for source, known in (operands[slot] for slot in step.stale)]
        if any(x is not None and x not in self.tensors for x in step.operands) or (modified and not self.freed):
            return None
        self.modified |= dict.fromkeys([x if x._base is None else x._base for x in modified])
        operand_tensors = [_share_constant(known) if x is None else self.tensors[x] for x, known in operands]
        op: Any = step.op
        if op is _PICK:
            return _multi_output_step(operand_tensors[0]).with_grad_fn(operand_tensors[0])[step.attrs["index"]]
        if "ctx" in op.aux:
            return _rerun_function(step, operand_tensors)
        attrs = {name: step.attrs[name] for name in op.attrs}
        result = op(*operand_tensors, **attrs)
        if op.outputs == 1 and (result.shape, result.dtype.name) != (step.shape, step.dtype):  # an in-place operation
            result = write_into(
                result.new_empty(step.shape, dtype=as_dtype(step.dtype)), op, tuple(operand_tensors), attrs
            )
        return result


def _is_freed(x: Any) -> bool:
    """Whether `x` is None or a tensor that `mg.tidy` freed."""
    return x is None or (isinstance(x, Tensor) and isinstance(raw_value(x), Freed))


def _share_constant(x: Any) -> Any:
    """Return a constant that shares the memory of the tensor `x`. Return any other object unchanged."""
    return wrap(raw_value(x)) if isinstance(x, Tensor) else x


def _share_leaf(tensor: Any) -> Any:
    """Return a leaf that shares the memory of `tensor`."""
    leaf = wrap(raw_value(tensor))
    return leaf.requires_grad_(leaf.dtype.is_floating_point)


def _multi_output_step(outputs: tuple[Any, ...]) -> Any:
    """Return the step that computed `outputs`, some of which may have no gradient."""
    return next(x.grad_fn for x in outputs if x.grad_fn is not None).next_functions[0]


def _rerun_function(step: NodeRecord, operands: Sequence[Any]) -> Any:
    """Rerun the forward pass of a Function."""
    function = step.function
    if function is None:
        raise _ReplayError("it was called with keyword arguments, which are not saved")
    saved_operands = [(x, x._version, x.detach().clone()) for x in operands if isinstance(x, Tensor)]
    state = mg.get_rng_state().tolist()
    try:
        outputs = function.apply(*operands)
    except Exception as error:  # noqa: BLE001 -- user code; the drawing reports it
        raise _ReplayError(f"its forward raised {type(error).__name__}") from None
    finally:
        with mg.no_grad():
            for x, version, copy in saved_operands:
                if x._version != version:  # undo the write to the user's memory
                    x.copy_(copy)
    if mg.get_rng_state().tolist() != state:
        raise _ReplayError("its forward draws random numbers")
    return outputs[0] if isinstance(outputs, tuple) and len(outputs) == 1 else outputs


def _missing_operand_error(step: NodeRecord, slot: int) -> _ReplayError:
    """Return the error for an operand that was freed, or for a Function argument that was not saved."""
    op: Any = step.op
    if step.constants[slot] is ...:
        return _ReplayError(
            f"argument {slot} of its forward is not saved, since it is neither a tensor nor a plain value"
        )
    name = f"{slot}" if op.variadic else op.inputs[slot]
    reason = f"operand {name} of {op.name} was freed; it has no gradient and more than {MAX_KEPT_SIZE:,} elements"
    return _ReplayError(reason, f"Keep that tensor in a variable, or {RECORD_ADVICE}.")
