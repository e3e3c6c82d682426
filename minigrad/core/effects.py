"""Effects: what a computation does beside returning a result, reported to whoever listens in this thread.

The engine names each effect where it happens, ``for listener in modes.grad_read: listener.grad_read(tensor)``, and does
not know who listens: `mg.record`, `mg.profile`, anomaly mode, `mg.tap` and `mg.jit` are subclasses of `Effects` that
override the methods they are interested in.

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

from minigrad.core.modes import Block, modes

# What is reported comes from floors above this one, which knows none of them: the names are for the reader.
Call = Any
Event = Any
Generator = Any
Memory = Any
Module = Any
Node = Any
Optimizer = Any
Storage = Any
Tensor = Any

__all__ = ["EFFECTS", "Effects", "listen", "unheard"]


class Effects:
    """A listener to effects; each method is called when its effect happens, and does nothing unless overridden.

    Where a method returns something, the computation continues with that: so a listener may pass on a symbolic value.
    """

    def kernel_called(self, call: Call) -> None:
        """A kernel has run. Calls of kernels made by the listener itself are not reported."""

    def gradient_passed(self, event: Event) -> None:
        """The backward pass has computed one contribution to a gradient."""

    def memory_requested(self, memory: Memory) -> Memory:
        """Arrays are about to be created by `memory`."""
        return memory

    def values_read(self) -> None:
        """Python is about to read the elements of a tensor."""

    def storage_written(self, storage: Storage) -> None:
        """A write to `storage` was counted."""

    def grad_read(self, tensor: Tensor) -> None:
        """``tensor.grad`` is read."""

    def grad_changed(self, tensor: Tensor, accumulated: bool) -> None:
        """``tensor.grad`` is about to be accumulated into by a backward pass, or else assigned to."""

    def graph_rebased(self, tensor: Tensor) -> None:
        """A write in place gave `tensor` another `grad_fn`."""

    def metadata_changed(self, tensor: Tensor, name: str) -> None:
        """``tensor.unsqueeze_()``, or whatever method `name` is, is about to make `tensor` a view of itself."""

    def hooks_read(self, node: Node) -> None:
        """The backward pass has the gradient of `node`, and calls its hooks next, if it has any."""

    def generator_seeded(self, generator: Generator) -> None:
        """`generator` was seeded."""

    def generator_state_read(self, what: str) -> None:
        """Python asks a generator for what differs from run to run, such as its seed or state."""

    def elements_drawn(self, generator: Generator, first: int, count: int) -> tuple[int, int]:
        """`generator` draws `count` random numbers. Returns the key of its stream and the index of the first."""
        return generator._seed, first

    def module_called(self, module: Module) -> None:
        """`module` is about to be called."""

    def optimizer_stepping(self, optimizer: Optimizer) -> None:
        """`optimizer` is about to update its parameters."""

    def option_read(self, optimizer: Optimizer, name: str, option: Any) -> Any:
        """`optimizer` reads its `option`, a tensor of one element. Returns the scalar, or the tensor as it is."""
        return option


EFFECTS = tuple([name for name in vars(Effects) if not name.startswith("_")])


def listen(effects: Effects) -> Block:
    """A block in which the effects of this thread are reported to `effects`, after those who listen already."""
    kind = type(effects)
    heard = [name for name in EFFECTS if getattr(kind, name) is not getattr(Effects, name)]
    return Block(lambda: {name: (*getattr(modes, name), effects) for name in heard})


def unheard(*names: str) -> Block:
    """A block in which the effects of these names, all without any, are not reported."""
    return Block(lambda: dict.fromkeys(names or EFFECTS, ()))
