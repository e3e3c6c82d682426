"""Results: what a step returns, as containers that are rebuilt around new tensors at each replay."""

from __future__ import annotations

import gc
from collections.abc import Mapping, Sequence
from types import CodeType, FunctionType, ModuleType
from typing import Any

from minigrad.compiler.jit.arguments import build, is_leaf, is_module
from minigrad.compiler.jit.capture import Capture
from minigrad.compiler.jit.nodes import TEMPORARY
from minigrad.core.errors import ArgumentError, CaptureError, a_kind
from minigrad.core.symbolic import Traced, plain
from minigrad.core.tensor import Tensor, wrap
from minigrad.optim.optimizer import Optimizer
from minigrad.utils.pytree import TreeSpec, tree_flatten

__all__ = ["Results", "eager"]

_ENDS = (type, ModuleType, CodeType, int, float, complex, str, bytes)  # types that contain no tensors of a step


class _Index:
    """Placeholder for a returned tensor, by index."""

    __slots__ = ("k",)

    def __init__(self, k: int) -> None:
        self.k = k


class Results:
    """The return value of a traced step: its structure, its tensors, and all other leaves as constants.

    Raises CaptureError for an object that contains tensors or symbolic floats but is no container: a replay would
    return it with those from tracing.
    """

    def __init__(self, result: Any, capture: Capture) -> None:
        try:
            found, spec = tree_flatten(result, is_leaf)
        except ArgumentError as error:
            raise CaptureError(str(error).replace("tree_flatten: ", "jit: of what the step returns, ")) from None
        for x in found:
            _check(x, capture)
        self._spec = _checked(spec, capture)
        again, _ = tree_flatten(build(self._spec, iter(found)), is_leaf)
        if sorted(map(id, again)) != sorted(map(id, found)):  # a set may iterate in another order
            raise CaptureError(
                f"jit: the step returns {a_kind(result)}, which has other leaves after it is rebuilt.\n"
                "  Return tuples, lists or dicts, or register the class: mg.register_pytree_node(cls, flatten, …)."
            )
        returned = list({id(x): x for x in found if isinstance(x, Tensor)}.values())
        places = {id(x): _Index(k) for k, x in enumerate(returned)}
        self._leaves: list[Any] = [places.get(id(x), x) for x in found]
        self.symbols: list[Traced] = [x for x in found if type(x) is Traced]
        """The symbolic scalars among the leaves."""
        self.tensors = [x.detach() for x in returned]
        """The returned tensors without duplicates, detached, since their graphs would keep leaves of the step alive."""
        brought = [(k, x._grad) for k, x in enumerate(returned) if id(x) in capture.grads]
        self.grads = [(k, grad.detach()) for k, grad in brought if grad is not None]
        """The gradients that the step computed for tensors that it returns, as (index of the tensor, gradient)."""
        self._count, self._with_grads = len(self.tensors), [k for k, _ in self.grads]
        self._alone = spec.type is None and self._count == 1

    def first(self) -> Any:
        """Return the results of the traced call, and release its tensors."""
        tensors = self.tensors
        for k, grad in self.grads:
            tensors[k]._grad = grad
        self.tensors, self.grads = [], []
        return self._built(tensors, {x.name: x.value for x in self.symbols})

    def replayed(self, arrays: Sequence[Any], values: Mapping[str, Any]) -> Any:
        """Return the results of a replay from the arrays of `tensors` and `grads`, and the scalars by name."""
        tensors = [wrap(array) for array in arrays[: self._count]]
        for j, k in enumerate(self._with_grads, self._count):
            tensors[k]._grad = wrap(arrays[j])
        return tensors[0] if self._alone else self._built(tensors, values)

    def _built(self, tensors: list[Tensor], values: Mapping[str, Any]) -> Any:
        leaves = [
            tensors[x.k] if type(x) is _Index else values[x.name] if type(x) is Traced else x for x in self._leaves
        ]
        return build(self._spec, iter(leaves))


def _checked(spec: TreeSpec, capture: Capture) -> TreeSpec:
    """Return the structure with symbolic scalars in keys replaced: they were hashed, so their values are guarded."""
    if spec.type is None:
        return spec
    context = spec.context
    context = type(context)(*map(plain, context)) if hasattr(context, "_fields") else plain(context)
    if _holds_tensors(context, capture):
        raise CaptureError(
            f"jit: the step returns a {spec.type.__name__} with a tensor in its keys, which a replay cannot replace.\n"
            "  Return tensors as values."
        )
    return TreeSpec(spec.type, spec.build, context, tuple([_checked(child, capture) for child in spec.children]))


def _check(x: Any, capture: Capture) -> None:
    """Raise CaptureError for an object that a replay cannot return."""
    if isinstance(x, Tensor) or type(x) is Traced:
        return
    kind = type(x).__name__
    if hasattr(type(x), "__next__"):
        raise CaptureError(f"jit: the step returns {a_kind(x)}, which can be consumed only once.\n  Return list(x).")
    if _holds_tensors(x, capture):
        raise CaptureError(
            f"jit: the step returns {a_kind(x)} with tensors or float arguments, which a replay cannot replace.\n"
            "  Return them in tuples, lists, dicts or dataclasses, or register how to flatten and rebuild the class:\n"
            f"  mg.register_pytree_node({kind}, lambda x: ([…], None), lambda children, _: {kind}(…))."
        )


def _holds_tensors(x: Any, capture: Capture) -> bool:
    """Return whether a tensor or a symbolic scalar is reachable from `x`.

    Optimizers are skipped, and so are modules that the step did not create: guards cover those.
    """
    seen: dict[int, Any] = {}
    found = [x]
    while found:
        x = found.pop()
        if id(x) in seen or isinstance(x, Optimizer):
            continue
        seen[id(x)] = x
        if type(x) is Traced or isinstance(x, Tensor):
            return True
        if is_module(x):
            views = [capture.find(y._array) for y in (*x.parameters(), *x.buffers())]
            if any(buffer is not None and buffer.kind == TEMPORARY for buffer in views):
                return True
        elif type(x) is FunctionType:  # without its globals
            found += [x.__closure__, x.__defaults__, x.__kwdefaults__, x.__dict__]
        elif not isinstance(x, _ENDS):
            found += gc.get_referents(x)
    return False


def eager(result: Any) -> Any:
    """Return the results of a step that has no trace, with symbolic scalars replaced by their values."""
    try:
        leaves, spec = tree_flatten(result, is_leaf)
    except ArgumentError:  # a container that contains itself
        return result
    return build(spec, map(plain, leaves)) if Traced in map(type, leaves) else result
