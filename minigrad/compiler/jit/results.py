"""Results: what a step returns, as containers that are built around fresh tensors each time it is replayed."""

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

_ENDS = (type, ModuleType, CodeType, int, float, complex, str, bytes)  # they hold no tensors, or none of a step's


class _Index:
    """Which of the tensors that are returned a leaf is."""

    __slots__ = ("k",)

    def __init__(self, k: int) -> None:
        self.k = k


class Results:
    """What a step returned when it was captured: its structure, its tensors, and everything else as it is.

    Raises CaptureError for an object that holds tensors, or symbolic floats, and is no container: a replay would return
    it with those of the capture.
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
                f"jit: the step returns {a_kind(result)}, in which are other things when it is built again.\n"
                "  Return tuples, lists or dicts, or register the class: mg.register_pytree_node(cls, flatten, …)."
            )
        returned = list({id(x): x for x in found if isinstance(x, Tensor)}.values())
        places = {id(x): _Index(k) for k, x in enumerate(returned)}
        self._leaves: list[Any] = [places.get(id(x), x) for x in found]
        self.symbols: list[Traced] = [x for x in found if type(x) is Traced]
        """The symbolic scalars among what is returned."""
        self.tensors = [x.detach() for x in returned]
        """The tensors that are returned, each once, without their graphs, which would keep leaves of the step alive."""
        brought = [(k, x._grad) for k, x in enumerate(returned) if id(x) in capture.grads]
        self.grads = [(k, grad.detach()) for k, grad in brought if grad is not None]
        """The gradients that the step gave to tensors that it returns: of which, and the gradient."""
        self._count, self._with_grads = len(self.tensors), [k for k, _ in self.grads]
        self._alone = spec.type is None and self._count == 1

    def first(self) -> Any:
        """What the capture itself returns. From now on its tensors are not kept."""
        tensors = self.tensors
        for k, grad in self.grads:
            tensors[k]._grad = grad
        self.tensors, self.grads = [], []
        return self._built(tensors, {x.name: x.value for x in self.symbols})

    def replayed(self, arrays: Sequence[Any], values: Mapping[str, Any]) -> Any:
        """What a replay returns: `arrays` has those of `tensors`, then those of `grads`; `values` scalars by name."""
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
    """The structure with values in place of symbolic scalars among its keys: these were hashed, so guards hold them."""
    if spec.type is None:
        return spec
    context = spec.context
    context = type(context)(*map(plain, context)) if hasattr(context, "_fields") else plain(context)
    if _holds_tensors(context, capture):
        raise CaptureError(
            f"jit: the step returns a {spec.type.__name__} whose keys hold a tensor: it would stay the same.\n"
            "  Return tensors as values."
        )
    return TreeSpec(spec.type, spec.build, context, tuple([_checked(child, capture) for child in spec.children]))


def _check(x: Any, capture: Capture) -> None:
    """Raise CaptureError for an object that a replay cannot return."""
    if isinstance(x, Tensor) or type(x) is Traced:
        return
    kind = type(x).__name__
    if hasattr(type(x), "__next__"):
        raise CaptureError(f"jit: the step returns {a_kind(x)}, which can be used once.\n  Return list(x).")
    if _holds_tensors(x, capture):
        raise CaptureError(
            f"jit: the step returns {a_kind(x)} that holds tensors, or floats of arguments, as a replay would not.\n"
            "  Return them in tuples, lists, dicts or dataclasses, or register how this is taken apart and built:\n"
            f"  mg.register_pytree_node({kind}, lambda x: ([…], None), lambda children, _: {kind}(…))."
        )


def _holds_tensors(x: Any, capture: Capture) -> bool:
    """Whether a tensor or a symbolic scalar is anywhere in `x`.

    Optimizers do not count, nor modules unless the step itself makes them: traces watch those.
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
        elif type(x) is FunctionType:  # whose globals are no part of it
            found += [x.__closure__, x.__defaults__, x.__kwdefaults__, x.__dict__]
        elif not isinstance(x, _ENDS):
            found += gc.get_referents(x)
    return False


def eager(result: Any) -> Any:
    """What a step returned, with values in place of symbolic scalars, for a step of which there is no trace."""
    try:
        leaves, spec = tree_flatten(result, is_leaf)
    except ArgumentError:  # it is inside of itself
        return result
    return build(spec, map(plain, leaves)) if Traced in map(type, leaves) else result
