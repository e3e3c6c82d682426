"""Context managers for thread-local modes: `no_grad` and its variants, scopes, source lines, strict shapes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad.core.errors import check_flag
from minigrad.core.modes import REASON, ModeContext, modes, slow_path

__all__ = [
    "Scope",
    "copy_overwritten",
    "enable_grad",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "record_lines",
    "scope",
    "set_grad_enabled",
    "strict_shapes",
]


def no_grad(function: Callable[..., Any] | None = None) -> Any:
    """Context manager or decorator that disables gradient computation. Results do not require grad."""
    block = ModeContext(lambda: {"grad": False})
    return block if function is None else block(function)


def enable_grad(function: Callable[..., Any] | None = None) -> Any:
    """Context manager or decorator that enables gradient computation inside `no_grad`."""
    block = ModeContext(lambda: {"grad": True})
    return block if function is None else block(function)


class set_grad_enabled:
    """Enable or disable gradient computation, as a function, a context manager or a decorator."""

    def __init__(self, mode: bool) -> None:
        check_flag(mode, "set_grad_enabled")
        self._mode, self._old_state = mode, (modes.grad, modes.disabled_globally)
        _set_grad_mode(mode, not mode)

    def __enter__(self) -> None:
        pass  # the constructor has already set the mode

    def __exit__(self, *_: object) -> None:
        _set_grad_mode(*self._old_state)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        _set_grad_mode(*self._old_state)
        return ModeContext(lambda: {"grad": self._mode})(function)


def _set_grad_mode(grad: bool, is_off: bool) -> None:
    reasons = slow_path.reasons
    if is_off and not modes.disabled_globally:
        reasons += REASON
    elif modes.disabled_globally and not is_off:
        del reasons[-1]
    modes.grad, modes.disabled_globally = grad, is_off


def inference_mode(mode: Any = True) -> Any:
    """Context manager like `no_grad`, or like `enable_grad` if `mode` is False.

    Unlike in PyTorch, in-place operations increment the version counters.
    """
    return no_grad(mode) if callable(mode) else ModeContext(lambda: {"grad": not mode})


def is_grad_enabled() -> bool:
    """Return whether grad mode is enabled in this thread."""
    return modes.grad


class Scope(str):
    """The path of a scope, such as "layer1/neuron0". Its last component is `name` and the enclosing scope is `outer`.

    `module` is the module that is being called, or None. Each entry of the context manager creates a new Scope, so that
    the iterations of a loop can be distinguished.
    """

    __slots__ = ("module", "name", "outer")
    name: str
    outer: Scope | None
    module: Any

    def __new__(cls, name: str, outer: Scope | None = None) -> Scope:
        new_scope = super().__new__(cls, f"{outer}/{name}" if outer else name)
        new_scope.name, new_scope.outer, new_scope.module = name, outer or None, None
        return new_scope

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)  # unpickled as a str, since a Scope is specific to this process


def scope(name: str) -> Any:
    """Context manager that sets the scope of nodes created inside it. Names of nested scopes are joined by slashes."""
    return ModeContext(lambda: {"scope": Scope(str(name), modes.scope or None)})


def record_lines() -> Any:
    """Context manager in which each node stores the source line that created it."""
    return ModeContext(lambda: {"lines": True})


def copy_overwritten() -> Any:
    """Context manager in which listeners receive a copy of the elements that an in-place write overwrites."""
    return ModeContext(lambda: {"keeps_operands": True})


def strict_shapes(mode: bool = True) -> Any:
    """Context manager or decorator that disables broadcasting: operands must have equal shapes.

    Python scalars may be combined with any shape, and ``expand`` broadcasts explicitly. If `mode` is False,
    broadcasting is enabled again, for a function that relies on it. Derivative rules may always broadcast.

    >>> import minigrad as mg
    >>> with mg.strict_shapes():
    ...     mg.zeros(3, 1) - mg.zeros(3)
    Traceback (most recent call last):
    minigrad.core.errors.ShapeError: sub: strict_shapes() disables broadcasting, but shapes (3, 1) and (3,) differ.
      For a result of shape (3, 3), write a.expand(3, 3) and b.expand(3, 3) for operands a and b.
    """
    return ModeContext(lambda: {"strict": mode})
