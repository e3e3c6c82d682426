"""What is recorded in a thread: PyTorch's `no_grad` and its kin, names of scopes, source lines, as blocks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from minigrad.core.errors import check_flag
from minigrad.core.modes import REASON, Block, detour, modes

__all__ = [
    "Scope",
    "enable_grad",
    "inference_mode",
    "is_grad_enabled",
    "keep_lines",
    "keep_operands",
    "no_grad",
    "scope",
    "set_grad_enabled",
    "strict_shapes",
]


def no_grad(function: Callable[..., Any] | None = None) -> Any:
    """Inside this block, or the function it decorates, nothing is recorded: results are leaves without a gradient."""
    block = Block(lambda: {"grad": False})
    return block if function is None else block(function)


def enable_grad(function: Callable[..., Any] | None = None) -> Any:
    """Record again, inside a `no_grad` block."""
    block = Block(lambda: {"grad": True})
    return block if function is None else block(function)


class set_grad_enabled:
    """Record from now on, or do not; as a block, inside it alone; as a decorator, in calls of the function."""

    def __init__(self, mode: bool) -> None:
        check_flag(mode, "set_grad_enabled")
        self._mode, self._before = mode, (modes.grad, modes.off)
        _switch(mode, not mode)

    def __enter__(self) -> None:
        pass  # it is so already

    def __exit__(self, *_: object) -> None:
        _switch(*self._before)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        _switch(*self._before)
        return Block(lambda: {"grad": self._mode})(function)


def _switch(grad: bool, off: bool) -> None:
    reasons = detour.reasons
    if off and not modes.off:
        reasons += REASON
    elif modes.off and not off:
        del reasons[-1]
    modes.grad, modes.off = grad, off


def inference_mode(mode: Any = True) -> Any:
    """`no_grad`; `enable_grad` with `mode` False. PyTorch also saves the counting of writes here, which goes on."""
    return no_grad(mode) if callable(mode) else Block(lambda: {"grad": not mode})


def is_grad_enabled() -> bool:
    """Whether operations are being recorded in this thread."""
    return modes.grad


class Scope(str):
    """The path of a scope, as "layer1/neuron0", with its own `name`, the scope `outer` to it, and the `module` whose
    call it is, or None. Each entry is another Scope: so what a loop builds in each turn can be told apart."""

    __slots__ = ("module", "name", "outer")
    name: str
    outer: Scope | None
    module: Any

    def __new__(cls, name: str, outer: Scope | None = None) -> Scope:
        entered = super().__new__(cls, f"{outer}/{name}" if outer else name)
        entered.name, entered.outer, entered.module = name, outer or None, None
        return entered

    def __reduce__(self) -> tuple[Any, ...]:
        return str, (str(self),)  # elsewhere it is a text: the entry was here


def scope(name: str) -> Any:
    """Name what is built inside the block, as in ``with mg.scope("layer1")``; scopes nest, joined by slashes."""
    return Block(lambda: {"scope": Scope(str(name), modes.scope or None)})


def keep_lines() -> Any:
    """Inside this block each node remembers the source line that made it."""
    return Block(lambda: {"lines": True})


def keep_operands() -> Any:
    """Inside this block a write in place shows those who listen a copy of what it overwrites, at that cost."""
    return Block(lambda: {"keeps_operands": True})


def strict_shapes(mode: bool = True) -> Any:
    """Inside this block, or a function it decorates, nothing is broadcast: operands of an operation have one shape.

    Numbers of Python's go with any shape, and what is meant to be repeated is, by ``expand``. With `mode` False
    broadcasting is allowed again, for a function that is known for it. Derivatives broadcast as they need to.

    >>> import minigrad as mg
    >>> with mg.strict_shapes():
    ...     mg.zeros(3, 1) - mg.zeros(3)
    Traceback (most recent call last):
    minigrad.core.errors.ShapeError: sub: in strict_shapes() nothing is broadcast, and shapes (3, 1) and (3,) differ.
      If you mean a result of shape (3, 3), write a.expand(3, 3) and b.expand(3, 3) for operands a and b.
    """
    return Block(lambda: {"strict": mode})
