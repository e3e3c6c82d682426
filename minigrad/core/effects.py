"""Effects: what a computation does in addition to returning a result, reported to the listeners of this thread.

The engine reports each effect where it happens, ``for listener in modes.grad_read: listener.grad_read(tensor)``,
independently of who listens: `mg.record`, `mg.profile`, anomaly mode, `mg.tap` and `mg.jit` are subclasses of `Effects`
that override the methods they need.

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

# The reported objects belong to higher layers, which this module cannot import: the names document the types.
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

    If a method returns a value, the computation continues with it, so a listener can substitute a symbolic value.
    """

    def kernel_called(self, call: Call) -> None:
        """A kernel has run. The listener's own kernel calls are not reported."""

    def gradient_passed(self, event: Event) -> None:
        """The backward pass has computed one contribution to a gradient."""

    def memory_requested(self, memory: Memory) -> Memory:
        """`memory` is about to create arrays."""
        return memory

    def values_read(self) -> None:
        """Python is about to read the elements of a tensor."""

    def storage_written(self, storage: Storage) -> None:
        """The version counter of `storage` was incremented after a write."""

    def grad_read(self, tensor: Tensor) -> None:
        """``tensor.grad`` is read."""

    def grad_changed(self, tensor: Tensor, accumulated: bool) -> None:
        """``tensor.grad`` is about to be assigned or, if `accumulated`, changed by a backward pass."""

    def graph_rebased(self, tensor: Tensor) -> None:
        """An in-place write replaced the `grad_fn` of `tensor`."""

    def metadata_changed(self, tensor: Tensor, name: str) -> None:
        """The method `name`, such as ``unsqueeze_``, is about to turn `tensor` into a view of itself."""

    def hooks_read(self, node: Node) -> None:
        """The backward pass has computed the gradient of `node` and is about to call its hooks."""

    def generator_seeded(self, generator: Generator) -> None:
        """`generator` was seeded."""

    def generator_state_read(self, attribute: str) -> None:
        """Python reads generator state that differs between runs, such as the seed."""

    def elements_drawn(self, generator: Generator, first: int, count: int) -> tuple[int, int]:
        """`generator` samples `count` random numbers. Returns the key of its stream and the first index."""
        return generator._seed, first

    def module_called(self, module: Module) -> None:
        """`module` is about to be called."""

    def optimizer_stepping(self, optimizer: Optimizer) -> None:
        """`optimizer` is about to update its parameters."""

    def option_read(self, optimizer: Optimizer, name: str, option: Any) -> Any:
        """`optimizer` reads its `option`, a tensor with one element. Returns the scalar, or the tensor unchanged."""
        return option


EFFECTS = tuple([name for name in vars(Effects) if not name.startswith("_")])


def listen(effects: Effects) -> ModeContext:
    """Return a context manager that adds `effects` to the listeners of this thread."""
    listener_class = type(effects)
    overridden = [name for name in EFFECTS if getattr(listener_class, name) is not getattr(Effects, name)]
    return ModeContext(lambda: {name: (*getattr(modes, name), effects) for name in overridden})


def disable_effects(*names: str) -> ModeContext:
    """Return a context manager that disables the named effects, by default all."""
    return ModeContext(lambda: dict.fromkeys(names or EFFECTS, ()))
