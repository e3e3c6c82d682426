"""Forward and backward hooks of modules.

The backward pass runs over operations, not modules. Hence the inputs and outputs of a module with backward hooks pass
through an identity operation whose backward calls them.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad.autograd import Function
from minigrad.core.errors import check_function
from minigrad.core.tensor import RemovableHandle, Tensor

__all__ = ["Hookable", "Hooks", "added", "called", "passes_gradients"]

Hook = tuple[Callable[..., Any], bool]


class Hooks:
    """The hooks of one module by kind, each with a flag for keyword arguments."""

    def __init__(self) -> None:
        self.before: dict[Any, Hook] = {}
        self.after: dict[Any, Hook] = {}
        self.backward_before: dict[Any, Hook] = {}
        self.backward_after: dict[Any, Hook] = {}


def added(hooks: dict[Any, Hook], hook: Callable[..., Any], with_kwargs: bool, prepend: bool) -> RemovableHandle:
    """Add `hook` after the existing ones, or before them if `prepend`. Raises DTypeError unless it is callable."""
    check_function(hook, "hook")
    others = dict(hooks)
    if prepend:
        hooks.clear()
    handle = RemovableHandle(hooks, (hook, with_kwargs))  # type: ignore[arg-type]
    hooks.update(others)
    return handle


def called(module: Any, hooks: Hooks, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Call the `forward` of `module` between its hooks, and return the output."""
    for hook, with_kwargs in tuple(hooks.before.values()):
        found = hook(module, args, kwargs) if with_kwargs else hook(module, args)
        if found is not None and with_kwargs:
            args, kwargs = found
        elif found is not None:
            args = found if isinstance(found, tuple) else (found,)
    passage = None
    if hooks.backward_before or hooks.backward_after:
        passage = _Passage(module, hooks)
        args = passage.entered(args)
    output = module.forward(*args, **kwargs)
    for hook, with_kwargs in tuple(hooks.after.values()):
        found = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
        output = output if found is None else found
    return output if passage is None else passage.left(output)


class _Passage:
    """One call of a module with backward hooks, which collects the gradients of outputs and then of inputs."""

    def __init__(self, module: Any, hooks: Hooks) -> None:
        self._module, self._hooks = module, hooks
        self._inputs = 0
        self._reached = False  # whether any input requires a gradient
        self._outputs: tuple[Any, ...] = ()

    def entered(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        self._inputs = len(args)
        self._reached = any(isinstance(x, Tensor) and x.requires_grad for x in args)
        return self._through(args, self._at_inputs) if self._reached else args

    def left(self, output: Any) -> Any:
        several = isinstance(output, tuple)
        found = self._through(output if several else (output,), self._at_outputs)
        return found if several else found[0]

    @staticmethod
    def _through(items: tuple[Any, ...], seen: Callable[..., Any]) -> tuple[Any, ...]:
        """Pass the tensors among `items` through one identity operation whose backward calls `seen`."""
        places = [k for k, x in enumerate(items) if isinstance(x, Tensor) and x.dtype.is_floating_point]
        if not any(items[k].requires_grad for k in places):
            return items
        passed = _BackwardHook.apply(lambda gradients: seen(gradients, places, len(items)), *[items[k] for k in places])
        out = list(items)
        for k, x in zip(places, passed, strict=True):
            out[k] = x
        return tuple(out)

    def _at_outputs(self, gradients: Any, places: list[int], count: int) -> Any:
        outputs = _spread(gradients, places, count)
        for hook, _ in tuple(self._hooks.backward_before.values()):
            found = hook(self._module, outputs)
            outputs = outputs if found is None else _tuple(found)
        self._outputs = outputs
        if not self._reached:  # no input requires a gradient
            self._tell((None,) * self._inputs)
        return [outputs[k] for k in places]

    def _at_inputs(self, gradients: Any, places: list[int], count: int) -> Any:
        inputs = self._tell(_spread(gradients, places, count))
        return [inputs[k] for k in places]

    def _tell(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook, _ in tuple(self._hooks.backward_after.values()):
            found = hook(self._module, inputs, self._outputs)
            inputs = inputs if found is None else _tuple(found)
        return inputs


def _spread(gradients: Any, places: list[int], count: int) -> tuple[Any, ...]:
    """Return `count` items: the gradients at the indices `places`, None elsewhere."""
    found: list[Any] = [None] * count
    for k, gradient in zip(places, gradients, strict=True):
        found[k] = gradient
    return tuple(found)


def _tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, tuple | list) else (x,)


def passes_gradients(function: Any) -> bool:
    """Whether a `Function` of the graph only calls a module's backward hooks."""
    return function is _BackwardHook


class _BackwardHook(Function):
    """Identity function that passes its gradients through `seen`, which may replace them."""

    @staticmethod
    def forward(ctx: Any, seen: Callable[..., Any], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.seen = seen
        ctx.set_materialize_grads(False)
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        needed = ctx.needs_input_grad[1:]
        found = ctx.seen(gradients)
        return (None, *[g if needs else None for g, needs in zip(found, needed, strict=True)])


class Hookable:
    """Mixin of `Module` with its forward and backward hooks."""

    _hooks: Hooks | None

    def _hooks_of(self) -> Hooks:
        if self._hooks is None:
            self._hooks = Hooks()
        return self._hooks

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before each forward; it may return modified arguments, a tuple or a single value.

        With `with_kwargs` the call is ``hook(module, args, kwargs)``, and the hook returns both or None.
        """
        return added(self._hooks_of().before, hook, with_kwargs, prepend)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after each forward; its result, unless None, replaces the output.

        With `with_kwargs` the call is ``hook(module, args, kwargs, output)``. Call ``remove()`` of the handle to
        unregister it.
        """
        return added(self._hooks_of().after, hook, with_kwargs, prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` in each backward pass; it may return new gradients, a tuple or one."""
        return added(self._hooks_of().backward_before, hook, False, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` in each backward pass, to see or replace gradients.

        The gradients are tuples, with None for an argument or output without one. A result other than None replaces
        grad_input.
        """
        return added(self._hooks_of().backward_after, hook, False, prepend)
