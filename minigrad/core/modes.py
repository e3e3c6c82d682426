"""Blocks: what a thread is doing beside computing, for as long as a `with` lasts; and what an interrupt may leave open.

Ctrl-C raises wherever Python calls something, also where a block is about to be left: that block would stay open, and
after one of `no_grad` nothing would be recorded any more. So a block is entered and left by a few instructions that
call nothing, and after a cell of a notebook that was interrupted all blocks are left.
"""

from __future__ import annotations

import functools
import inspect
import sys
import threading
from collections.abc import Callable
from contextlib import closing
from typing import Any, cast

__all__ = ["REASON", "Block", "detour", "leave_all", "listen", "modes"]

REASON = (None,)


class _Detour:
    """The reasons, of all threads, why a `Value` may not compute inline: a listener, a scope, `no_grad`, …

    While there are none nobody is looking, and a `Value` may do its float arithmetic without a dispatch. One list for
    all threads is quick to read; which thread has which reason is known where it matters, behind the detour. They are
    all alike: one is put on it, and one taken, by an instruction that no thread and no interrupt comes into.
    """

    __slots__ = ("reasons",)

    def __init__(self) -> None:
        self.reasons: list[None] = []


detour = _Detour()


class _Modes(threading.local):
    grad: bool = True
    off: bool = False  # whether `set_grad_enabled` said so last, outside any block
    scope: Any = ""  # a Scope, or "" outside of any
    lines: bool = False
    strict: bool = False
    keeps_operands: bool = False  # whether who listens to a write in place is shown what was there before
    passing: Any = None  # the node whose rules a backward pass is running, known while somebody listens
    # who listens to each effect of this thread; see `minigrad.core.effects`
    kernel_called = gradient_passed = memory_requested = values_read = storage_written = cast(tuple[Any, ...], ())
    grad_read = grad_changed = graph_rebased = metadata_changed = hooks_read = kernel_called
    generator_seeded = generator_state_read = elements_drawn = kernel_called
    module_called = optimizer_stepping = option_read = kernel_called

    def __init__(self) -> None:
        self.before: list[dict[str, Any]] = []  # what each block that is open in this thread will restore


modes = _Modes()


class Block:
    """A block in which this thread's modes are changed; as a decorator, the calls of a function, generators too."""

    def __init__(self, changes: Callable[[], dict[str, Any]]) -> None:
        self._changes = changes  # asked on entry, since a scope depends on the one around it

    def __enter__(self) -> None:
        changes = self._changes()
        saved = ({name: getattr(modes, name) for name in changes},)
        now, before, reasons = modes.__dict__, modes.before, detour.reasons
        before += saved  # from here on nothing is called: Python lets an interrupt in only where something is
        now |= changes
        reasons += REASON

    def __exit__(self, kind: object = None, error: BaseException | None = None, *_: object) -> None:
        scope, now, before, reasons = modes.scope, modes.__dict__, modes.before, detour.reasons
        if before:  # else it was left already, after an interrupt, as that of a generator that waits
            now |= before[-1]  # and nothing is called before all is as it was
            del before[-1], reasons[-1]
        if error:  # where it was raised, for whoever shows it
            error.__dict__.setdefault("minigrad_scope", scope)

    def __call__(self, function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def inside(*args: Any, **keywords: Any) -> Any:
            with self:
                return function(*args, **keywords)

        @functools.wraps(function)
        def between_yields(*args: Any, **keywords: Any) -> Any:  # what runs while it waits is not its own
            sent, generator = None, function(*args, **keywords)
            with closing(generator):
                while True:
                    try:
                        with self:
                            item = generator.send(sent)
                    except StopIteration as end:
                        return end.value
                    sent = yield item

        return between_yields if inspect.isgeneratorfunction(function) else inside


def leave_all() -> None:
    """Be as outside of all blocks of this thread.

    >>> import minigrad as mg
    >>> mg.no_grad().__enter__()
    >>> leave_all()
    >>> mg.is_grad_enabled()
    True
    """
    latest = Block(dict)  # any block leaves the latest one
    while modes.before:
        latest.__exit__()


def _ended(result: Any) -> None:
    """IPython tells of a cell that has ended."""
    if isinstance(result.error_in_exec, KeyboardInterrupt):
        leave_all()


def listen() -> None:
    """Hear of cells that end, where this is a notebook's process, or IPython's."""
    if "IPython" in sys.modules and (shell := sys.modules["IPython"].get_ipython()) is not None:
        shell.events.register("post_run_cell", _ended)
