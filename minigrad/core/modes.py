"""Thread-local modes, changed by context managers that remain consistent when interrupted.

Ctrl-C can raise KeyboardInterrupt at any call, including just before a context manager exits. The mode would then stay
set: after an interrupted `no_grad`, no operation would be recorded any more. Therefore, a `ModeContext` is entered and
exited by instructions that make no calls, and after an interrupted notebook cell all blocks are exited.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any, cast

__all__ = ["REASON", "ModeContext", "exit_all", "modes", "register_cell_callback", "slow_path"]

REASON = (None,)


class _SlowPath:
    """A list with one entry per mode, in any thread, that prevents Values from using their fast path.

    Examples are a listener, a scope or `no_grad`. While the list is empty, a `Value` computes with floats without
    `dispatch`. A single list for all threads is fast to test; the slow path then checks the modes of its thread. All
    entries are equal, so that an entry is added or removed by a single instruction, which neither a thread switch nor
    an interrupt can split.
    """

    __slots__ = ("reasons",)

    def __init__(self) -> None:
        self.reasons: list[None] = []


slow_path = _SlowPath()


class _Modes(threading.local):
    grad: bool = True
    disabled_globally: bool = False  # whether grad mode was disabled by `set_grad_enabled`, outside any block
    scope: Any = ""  # a Scope, or "" outside any scope
    lines: bool = False
    strict: bool = False
    keeps_operands: bool = False  # whether listeners receive a copy of the elements that in-place writes overwrite
    passing: Any = None  # the node whose rules a backward pass is running, set while there is a listener
    # the listeners of this thread for each effect; see `minigrad.core.effects`
    kernel_called = gradient_passed = memory_requested = values_read = storage_written = cast(tuple[Any, ...], ())
    grad_read = grad_changed = graph_rebased = metadata_changed = hooks_read = kernel_called
    generator_seeded = generator_state_read = elements_drawn = kernel_called
    module_called = optimizer_stepping = option_read = kernel_called

    def __init__(self) -> None:
        self.saved_states: list[dict[str, Any]] = []  # the modes that each open block of this thread will restore


modes = _Modes()


class ModeContext:
    """Context manager that changes the modes of this thread; it can also decorate functions and generators."""

    def __init__(self, changes: Callable[[], dict[str, Any]]) -> None:
        self._changes = changes  # called on entry, since a scope depends on the enclosing scope

    def __enter__(self) -> None:
        changes = self._changes()
        saved = ({name: getattr(modes, name) for name in changes},)
        current, stack, reasons = modes.__dict__, modes.saved_states, slow_path.reasons
        stack += saved  # no calls from here on: Python checks for interrupts only at calls
        current |= changes
        reasons += REASON

    def __exit__(self, kind: object = None, error: BaseException | None = None, *_: object) -> None:
        scope, current, stack, reasons = modes.scope, modes.__dict__, modes.saved_states, slow_path.reasons
        if stack:  # empty if `exit_all` ran while this block was open in a suspended generator
            current |= stack[-1]  # no calls before everything is restored
            del stack[-1], reasons[-1]
        if error:  # store the scope in which it was raised, for display
            error.__dict__.setdefault("minigrad_scope", scope)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def call_in_block(*args: Any, **keywords: Any) -> Any:
            with self:
                return function(*args, **keywords)

        @functools.wraps(function)
        def resume_in_block(*args: Any, **keywords: Any) -> Any:  # modes are reset while it is suspended
            sent, generator = None, function(*args, **keywords)
            with closing(generator):
                while True:
                    try:
                        with self:
                            item = generator.send(sent)
                    except StopIteration as end:
                        return end.value
                    sent = yield item

        return resume_in_block if inspect.isgeneratorfunction(function) else call_in_block


def exit_all() -> None:
    """Exit all open blocks of this thread.

    >>> import minigrad as mg
    >>> mg.no_grad().__enter__()
    >>> exit_all()
    >>> mg.is_grad_enabled()
    True
    """
    context = ModeContext(dict)  # exiting any context exits the latest block
    while modes.saved_states:
        context.__exit__()


def _on_cell_end(result: Any) -> None:
    """IPython's ``post_run_cell`` callback."""
    if isinstance(result.error_in_exec, KeyboardInterrupt):
        exit_all()


def register_cell_callback() -> None:
    """Register the cell callback if this process runs IPython or a notebook."""
    if "IPython" in sys.modules and (shell := sys.modules["IPython"].get_ipython()) is not None:
        shell.events.register("post_run_cell", _on_cell_end)
