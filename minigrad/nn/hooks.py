"""Forward and backward hooks of modules.

The backward pass runs over operations, not modules. Hence the inputs and outputs of a module with backward hooks pass
through an identity operation whose backward calls the hooks.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad.autograd import Function
from minigrad.core.errors import check_callable
from minigrad.core.tensor import RemovableHandle, Tensor

__all__ = ["ModuleHooks", "ModuleHooksMixin", "add_hook", "call_with_hooks", "is_backward_hook"]

Hook = tuple[Callable[..., Any], bool]


class ModuleHooks:
    """The hooks of one module by kind. Each hook has a flag for whether it receives keyword arguments."""

    def __init__(self) -> None:
        self.before: dict[Any, Hook] = {}
        self.after: dict[Any, Hook] = {}
        self.backward_before: dict[Any, Hook] = {}
        self.backward_after: dict[Any, Hook] = {}


def add_hook(hooks: dict[Any, Hook], hook: Callable[..., Any], with_kwargs: bool, prepend: bool) -> RemovableHandle:
    """Add `hook` after the existing ones, or before them if `prepend`. Raises DTypeError unless it is callable."""
    check_callable(hook, "hook")
    existing = dict(hooks)
    if prepend:
        hooks.clear()
    handle = RemovableHandle(hooks, (hook, with_kwargs))  # type: ignore[arg-type]
    hooks.update(existing)
    return handle


def call_with_hooks(module: Any, hooks: ModuleHooks, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Run the forward pre-hooks, `forward` and the forward hooks of `module`, and return the output."""
    for hook, with_kwargs in tuple(hooks.before.values()):
        result = hook(module, args, kwargs) if with_kwargs else hook(module, args)
        if result is not None and with_kwargs:
            args, kwargs = result
        elif result is not None:
            args = result if isinstance(result, tuple) else (result,)
    backward_call = None
    if hooks.backward_before or hooks.backward_after:
        backward_call = _BackwardHookCall(module, hooks)
        args = backward_call.wrap_inputs(args)
    output = module.forward(*args, **kwargs)
    for hook, with_kwargs in tuple(hooks.after.values()):
        result = hook(module, args, kwargs, output) if with_kwargs else hook(module, args, output)
        output = output if result is None else result
    return output if backward_call is None else backward_call.wrap_outputs(output)


class _BackwardHookCall:
    """One call of a module with backward hooks. It collects the gradients of the outputs, then of the inputs."""

    def __init__(self, module: Any, hooks: ModuleHooks) -> None:
        self._module, self._hooks = module, hooks
        self._num_inputs = 0
        self._inputs_require_grad = False  # whether any input requires a gradient
        self._outputs: tuple[Any, ...] = ()

    def wrap_inputs(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        self._num_inputs = len(args)
        self._inputs_require_grad = any(isinstance(x, Tensor) and x.requires_grad for x in args)
        return self._apply_identity(args, self._on_input_gradients) if self._inputs_require_grad else args

    def wrap_outputs(self, output: Any) -> Any:
        is_tuple = isinstance(output, tuple)
        wrapped = self._apply_identity(output if is_tuple else (output,), self._on_output_gradients)
        return wrapped if is_tuple else wrapped[0]

    @staticmethod
    def _apply_identity(items: tuple[Any, ...], backward_fn: Callable[..., Any]) -> tuple[Any, ...]:
        """Pass the tensors among `items` through one identity operation whose backward calls `backward_fn`."""
        indices = [k for k, x in enumerate(items) if isinstance(x, Tensor) and x.dtype.is_floating_point]
        if not any(items[k].requires_grad for k in indices):
            return items
        results = _BackwardHook.apply(
            lambda gradients: backward_fn(gradients, indices, len(items)), *[items[k] for k in indices]
        )
        out = list(items)
        for k, x in zip(indices, results, strict=True):
            out[k] = x
        return tuple(out)

    def _on_output_gradients(self, gradients: Any, indices: list[int], count: int) -> Any:
        outputs = _scatter(gradients, indices, count)
        for hook, _ in tuple(self._hooks.backward_before.values()):
            result = hook(self._module, outputs)
            outputs = outputs if result is None else _as_tuple(result)
        self._outputs = outputs
        if not self._inputs_require_grad:  # otherwise `_on_input_gradients` runs the hooks
            self._run_backward_hooks((None,) * self._num_inputs)
        return [outputs[k] for k in indices]

    def _on_input_gradients(self, gradients: Any, indices: list[int], count: int) -> Any:
        inputs = self._run_backward_hooks(_scatter(gradients, indices, count))
        return [inputs[k] for k in indices]

    def _run_backward_hooks(self, inputs: tuple[Any, ...]) -> tuple[Any, ...]:
        for hook, _ in tuple(self._hooks.backward_after.values()):
            result = hook(self._module, inputs, self._outputs)
            inputs = inputs if result is None else _as_tuple(result)
        return inputs


def _scatter(gradients: Any, indices: list[int], count: int) -> tuple[Any, ...]:
    """Return a tuple of length `count` with the gradients at `indices` and None elsewhere."""
    scattered: list[Any] = [None] * count
    for k, gradient in zip(indices, gradients, strict=True):
        scattered[k] = gradient
    return tuple(scattered)


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, tuple | list) else (x,)


def is_backward_hook(function: Any) -> bool:
    """Return whether a `Function` in the graph is the identity that calls a module's backward hooks."""
    return function is _BackwardHook


class _BackwardHook(Function):
    """Identity function whose backward pass calls `backward_fn`, which may replace the gradients."""

    @staticmethod
    def forward(ctx: Any, backward_fn: Callable[..., Any], *tensors: Tensor) -> tuple[Tensor, ...]:
        ctx.backward_fn = backward_fn
        ctx.set_materialize_grads(False)
        return tensors

    @staticmethod
    def backward(ctx: Any, *gradients: Any) -> tuple[Any, ...]:
        needs_grad = ctx.needs_input_grad[1:]
        input_gradients = ctx.backward_fn(gradients)
        return (None, *[g if needs else None for g, needs in zip(input_gradients, needs_grad, strict=True)])


class ModuleHooksMixin:
    """Mixin of `Module` that registers forward and backward hooks."""

    _hooks: ModuleHooks | None

    def _get_hooks(self) -> ModuleHooks:
        if self._hooks is None:
            self._hooks = ModuleHooks()
        return self._hooks

    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args)`` before each forward pass. The hook may return new arguments.

        The new arguments are a tuple or a single value. With `with_kwargs` the call is ``hook(module, args, kwargs)``,
        and the hook returns ``(args, kwargs)`` or None.
        """
        return add_hook(self._get_hooks().before, hook, with_kwargs, prepend)

    def register_forward_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call ``hook(module, args, output)`` after each forward pass. A result other than None replaces the output.

        With `with_kwargs` the call is ``hook(module, args, kwargs, output)``. Call ``remove()`` of the returned handle
        to remove the hook.
        """
        return add_hook(self._get_hooks().after, hook, with_kwargs, prepend)

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_output)`` in each backward pass. It may return a new gradient or a tuple of them."""
        return add_hook(self._get_hooks().backward_before, hook, False, prepend)

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call ``hook(module, grad_input, grad_output)`` in each backward pass, to inspect or replace gradients.

        The gradients are tuples, with None for an argument or output without a gradient. A result other than None
        replaces grad_input.
        """
        return add_hook(self._get_hooks().backward_after, hook, False, prepend)
