"""Results of a step, whose containers are rebuilt with new tensors at each replay."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

from minigrad.compiler.jit.arguments import is_leaf, is_module, rebuild_tree
from minigrad.compiler.jit.capture import Capture
from minigrad.compiler.jit.nodes import TEMPORARY
from minigrad.core.errors import ArgumentError, CaptureError, describe_type
from minigrad.core.symbolic import SymbolicScalar, concrete
from minigrad.core.tensor import Tensor, wrap
from minigrad.optim.optimizer import Optimizer
from minigrad.utils.pytree import TreeSpec, tree_flatten

__all__ = ["Results", "concrete_results"]

_TENSOR_FREE_TYPES = (
    type,
    ModuleType,
    CodeType,
    int,
    float,
    complex,
    str,
    bytes,
)  # types that contain no tensors of a step


class _TensorIndex:
    """Placeholder for a returned tensor, which stores its index."""

    __slots__ = ("index",)

    def __init__(self, k: int) -> None:
        self.index = k


class Results:
    """Return value of a traced step, as its structure, its tensors, and all other leaves as constants.

    Raises CaptureError for an object that contains tensors or symbolic floats but is not a container, since a replay
    would return it with the tensors or floats of the traced call.
    """

    def __init__(self, result: Any, capture: Capture) -> None:
        try:
            leaves, spec = tree_flatten(result, is_leaf)
        except ArgumentError as error:
            raise CaptureError(str(error).replace("tree_flatten: ", "jit: of what the step returns, ")) from None
        for x in leaves:
            _check_leaf(x, capture)
        self._spec = _check_spec(spec, capture)
        leaves_again, _ = tree_flatten(rebuild_tree(self._spec, iter(leaves)), is_leaf)
        if sorted(map(id, leaves_again)) != sorted(map(id, leaves)):  # the iteration order of a set may differ
            raise CaptureError(
                f"jit: the step returns {describe_type(result)}, which has other leaves after it is rebuilt.\n"
                "  Return tuples, lists or dicts, or register the class: mg.register_pytree_node(cls, flatten, …)."
            )
        returned = list({id(x): x for x in leaves if isinstance(x, Tensor)}.values())
        indices = {id(x): _TensorIndex(k) for k, x in enumerate(returned)}
        self._leaves: list[Any] = [indices.get(id(x), x) for x in leaves]
        self.symbols: list[SymbolicScalar] = [x for x in leaves if type(x) is SymbolicScalar]
        """The symbolic scalars among the leaves."""
        self.tensors = [x.detach() for x in returned]
        """The distinct returned tensors, detached so that their graphs do not keep leaves of the step alive."""
        gradients = [(k, x._grad) for k, x in enumerate(returned) if id(x) in capture.grads]
        self.grads = [(k, grad.detach()) for k, grad in gradients if grad is not None]
        """The gradients that the step computed for tensors that it returns, as (index of the tensor, gradient)."""
        self._count, self._grad_indices = len(self.tensors), [k for k, _ in self.grads]
        self._is_single_tensor = spec.type is None and self._count == 1

    def take_results(self) -> Any:
        """Return the results of the traced call, and release its tensors."""
        tensors = self.tensors
        for k, grad in self.grads:
            tensors[k]._grad = grad
        self.tensors, self.grads = [], []
        return self._build(tensors, {x.name: x.value for x in self.symbols})

    def build_results(self, arrays: Sequence[Any], values: Mapping[str, Any]) -> Any:
        """Return the results of a replay. `arrays` are those of `tensors` and `grads`, and `values` the scalars by
        name."""
        tensors = [wrap(array) for array in arrays[: self._count]]
        for j, k in enumerate(self._grad_indices, self._count):
            tensors[k]._grad = wrap(arrays[j])
        return tensors[0] if self._is_single_tensor else self._build(tensors, values)

    def _build(self, tensors: list[Tensor], values: Mapping[str, Any]) -> Any:
        leaves = [
            tensors[x.index] if type(x) is _TensorIndex else values[x.name] if type(x) is SymbolicScalar else x
            for x in self._leaves
        ]
        return rebuild_tree(self._spec, iter(leaves))


def _check_spec(spec: TreeSpec, capture: Capture) -> TreeSpec:
    """Return the structure with symbolic scalars in keys replaced by their values, which are guarded."""
    if spec.type is None:
        return spec
    context = spec.context
    context = type(context)(*map(concrete, context)) if hasattr(context, "_fields") else concrete(context)
    if _contains_tensors(context, capture):
        raise CaptureError(
            f"jit: the step returns a {spec.type.__name__} with a tensor in its keys, which a replay cannot replace.\n"
            "  Return tensors as values."
        )
    return TreeSpec(spec.type, spec.build, context, tuple([_check_spec(child, capture) for child in spec.children]))


def _check_leaf(x: Any, capture: Capture) -> None:
    """Raise CaptureError for an object that a replay cannot return."""
    if isinstance(x, Tensor) or type(x) is SymbolicScalar:
        return
    kind = type(x).__name__
    if hasattr(type(x), "__next__"):
        raise CaptureError(
            f"jit: the step returns {describe_type(x)}, which can be consumed only once.\n  Return list(x)."
        )
    if _contains_tensors(x, capture):
        raise CaptureError(
            f"jit: the step returns {describe_type(x)} with tensors or float arguments, which a replay cannot "
            "replace.\n"
            "  Return them in tuples, lists, dicts or dataclasses, or register how to flatten and rebuild the class:\n"
            f"  mg.register_pytree_node({kind}, lambda x: ([…], None), lambda children, _: {kind}(…))."
        )


def _contains_tensors(x: Any, capture: Capture) -> bool:
    """Return whether a tensor or a symbolic scalar is reachable from `x`.

    Optimizers and modules that the step did not create are skipped, since guards cover them.
    """
    visited: dict[int, Any] = {}
    queue = [x]
    while queue:
        x = queue.pop()
        if id(x) in visited or isinstance(x, Optimizer):
            continue
        visited[id(x)] = x
        if type(x) is SymbolicScalar or isinstance(x, Tensor):
            return True
        if is_module(x):
            views = [capture.find_buffer(y._array) for y in (*x.parameters(), *x.buffers())]
            if any(buffer is not None and buffer.kind == TEMPORARY for buffer in views):
                return True
        elif type(x) is FunctionType:  # without its globals
            queue += [x.__closure__, x.__defaults__, x.__kwdefaults__, x.__dict__]
        elif not isinstance(x, _TENSOR_FREE_TYPES):
            queue += gc.get_referents(x)
    return False


def concrete_results(result: Any) -> Any:
    """Return the results of a step that has no trace, with symbolic scalars replaced by their values."""
    try:
        leaves, spec = tree_flatten(result, is_leaf)
    except ArgumentError:  # a container that contains itself
        return result
    return rebuild_tree(spec, map(concrete, leaves)) if SymbolicScalar in map(type, leaves) else result
