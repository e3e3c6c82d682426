"""Effects of a computation other than its result, such as kernel calls and writes, and their listeners.

The engine reports each effect to the listeners of this thread, as in
``for listener in modes.grad_read: listener.grad_read(tensor)``, and does not depend on the kind of listener.
`mg.record`, `mg.profile`, anomaly mode, `mg.tap` and `mg.jit` are implemented by subclasses of `Effects` that override
the methods they need.

>>> from minigrad.core.dispatch import dispatch
>>> class Names(Effects):
...     def kernel_called(self, call):
...         print(call.op, call.result)
>>> with listen(Names()):
...     dispatch("add", "python", (2.0, 3.0))
add 5.0
5.0
"""

from __future__ import annotations

from typing import Any

from minigrad.core.modes import ModeContext, modes

# The reported objects are defined in higher layers, which this module cannot import. The aliases document the types.
Call = Any
Event = Any
Generator = Any
Memory = Any
Module = Any
Node = Any
Optimizer = Any
Storage = Any
Tensor = Any

__all__ = ["EFFECTS", "Effects", "disable_effects", "listen"]


class Effects:
    """Base class of listeners. Each method is called when its effect happens, and does nothing unless overridden.

    If a method returns a value, the computation uses that value. A listener can thus substitute a symbolic value.
    """

    def kernel_called(self, call: Call) -> None:
        """Called after a kernel has run. The listener's own kernel calls are not reported."""

    def gradient_passed(self, event: Event) -> None:
        """Called after the backward pass has computed one contribution to a gradient."""

    def memory_requested(self, memory: Memory) -> Memory:
        """Called before the allocator `memory` creates arrays. Returns the allocator to use."""
        return memory

    def values_read(self) -> None:
        """Called before Python reads the elements of a tensor."""

    def storage_written(self, storage: Storage) -> None:
        """Called after the version counter of `storage` was incremented for a write."""

    def grad_read(self, tensor: Tensor) -> None:
        """Called before ``tensor.grad`` is read."""

    def grad_changed(self, tensor: Tensor, accumulated: bool) -> None:
        """Called before ``tensor.grad`` is assigned or, if `accumulated`, changed by a backward pass."""

    def graph_rebased(self, tensor: Tensor) -> None:
        """Called after an in-place write has replaced the `grad_fn` of `tensor`."""

    def metadata_changed(self, tensor: Tensor, name: str) -> None:
        """Called before the method `name`, such as ``unsqueeze_``, turns `tensor` into a view of itself."""

    def hooks_read(self, node: Node) -> None:
        """Called after the backward pass has computed the gradient of `node`, before its hooks are called."""

    def generator_seeded(self, generator: Generator) -> None:
        """Called after `generator` was seeded."""

    def generator_state_read(self, attribute: str) -> None:
        """Called before Python reads generator state that differs between runs, such as the seed."""

    def elements_drawn(self, generator: Generator, first: int, count: int) -> tuple[int, int]:
        """Called when `generator` samples `count` random numbers. Returns the key of its stream and the first index."""
        return generator._seed, first

    def module_called(self, module: Module) -> None:
        """Called before `module` is called."""

    def optimizer_stepping(self, optimizer: Optimizer) -> None:
        """Called before `optimizer` updates its parameters."""

    def option_read(self, optimizer: Optimizer, name: str, option: Any) -> Any:
        """Called when `optimizer` reads `option`, a tensor with one element. Returns the scalar, or `option`."""
        return option


EFFECTS = tuple([name for name in vars(Effects) if not name.startswith("_")])


def listen(effects: Effects) -> ModeContext:
    """Return a context manager that adds `effects` to the listeners of this thread."""
    listener_class = type(effects)
    overridden = [name for name in EFFECTS if getattr(listener_class, name) is not getattr(Effects, name)]
    return ModeContext(lambda: {name: (*getattr(modes, name), effects) for name in overridden})


def disable_effects(*names: str) -> ModeContext:
    """Return a context manager in which the effects `names`, by default all, are not reported."""
    return ModeContext(lambda: dict.fromkeys(names or EFFECTS, ()))
