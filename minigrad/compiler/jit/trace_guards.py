"""The guards of one trace: for what Python read, tensors and gradients, optimizers, and arguments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from minigrad.compiler.jit.capture import Capture
from minigrad.compiler.jit.guards import Guard, attribute, compiled, entries, entry, size
from minigrad.compiler.jit.nodes import root_of, start_of
from minigrad.compiler.jit.reach import Chosen
from minigrad.compiler.jit.scalars import is_number
from minigrad.core.graph import grad_lock
from minigrad.core.tensor import Tensor
from minigrad.optim.hooks import everywhere

__all__ = ["TraceGuards"]

_TABLES = ("param_groups", "state", "_hooks")


class TraceGuards:
    """All guards of a trace.

    A trace reads and writes memory, so a parameter must be the same tensor in the same memory. Its kernel calls are
    those that Python made during tracing, so everything that Python read must be the same or equal.
    """

    def __init__(self, capture: Capture, tensors: list[Tensor], chosen: Chosen) -> None:
        optimizers = [numbers.optimizer for numbers in capture.optimizers.values() if numbers.steps]
        named = dict(chosen.tensors)
        for optimizer in optimizers:
            parameters = [x for group in optimizer.param_groups for x in group["params"]]
            kept = [
                (x, f"{key} of {optimizer.name}")
                for state in tuple(optimizer.state.values())
                for key, x in tuple(state.items())
            ]
            kept += [(x, f"{key} of {optimizer.name}") for group in optimizer.param_groups for key, x in group.items()]
            named = {id(x): (x, f"a parameter of {optimizer.name}") for x in parameters} | named
            named |= {id(x): (x, what) for x, what in kept if isinstance(x, Tensor)}
        self.held = list(named.values())
        """The tensors that must be identical, and their names."""
        self._guards = [*chosen.guards]
        for x, what in self.held:
            self._guards += _of_tensor(x, what)
        position = {id(x): k for k, x in enumerate(tensors)}
        self._hooks: list[tuple[int, tuple[Any, ...]]] = []
        for node, hooks, what in capture.hooked.values():
            if id(node) in position:
                self._hooks.append((position[id(node)], hooks))
            else:
                self._guards.append(_of_hooks(node, hooks, named.get(id(node), (node, what))[1]))
        for optimizer in optimizers:
            self._guards += _of_optimizer(optimizer)
        self._arguments = [(k, x, named[id(x)][1]) for k, x in enumerate(tensors) if id(x) in named]
        self._shared = [
            (k, start_of(x._array), about)
            for k, x in enumerate(tensors)
            for y, about in named.values()
            if y is not x and root_of(y._array) is root_of(x._array)
        ]
        self._grads = _gradients_before(capture, tensors)
        self._hold = compiled(self._guards, [*self._tests()])

    def changed(self) -> str:
        """Return why a guard fails, or "". Right after tracing, the step itself changed the value."""
        return next((guard.reason() for guard in self._guards if not guard.holds()), "")

    def broken(self, tensors: Sequence[Tensor]) -> str:
        """Return why a guard fails for a call with these arguments, or ""."""
        return "" if self._hold(tensors) else self.changed() or self._broken(tensors)

    def _tests(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Yield the guards of arguments and gradients as expressions."""
        for k, x, _ in self._arguments:
            yield f"tensors[{k}] is {{0}}", (x,)
        for k, hooks in self._hooks:
            yield f"{{0}}(tensors[{k}]) == {{1}}", (_hooks_of, hooks)
        for k, start, _ in self._shared:
            yield f"{{0}}(tensors[{k}]._array) == {start}", (start_of,)
        for whose, before, array in self._grads:
            argument = whose.__class__ is int
            grad = f"tensors[{whose}]._grad" if argument else "{0}._grad"
            if before is None or array is None:
                yield f"{grad} is{'' if before is None else ' not'} None", (whose,)
            else:
                yield f"{grad} is {{1}} and {grad}._array is {{2}}", (whose, before, array)

    def _broken(self, tensors: Sequence[Tensor]) -> str:
        for k, x, what in self._arguments:
            if tensors[k] is not x:
                return f"an argument that was {what} is now another tensor"
        for k, hooks in self._hooks:
            if _hooks_of(tensors[k]) != hooks:
                return "the hooks of an argument changed"
        for k, start, what in self._shared:
            if start_of(tensors[k]._array) != start:
                return f"an argument lies at another offset in the memory that it shares with {what}"
        for of, before, array in self._grads:
            grad = (tensors[of] if of.__class__ is int else of)._grad
            if (grad is None) is not (before is None):
                return "a gradient exists that was None" if before is None else "a gradient that existed is None"
            if array is not None and (grad is not before or grad._array is not array):
                return "a gradient from before the step was replaced"
        return ""


def _of_tensor(x: Any, what: str) -> list[Guard]:
    flag = "requires_grad" if x._base is not None else "_requires_grad"  # the property refreshes views
    return [
        attribute(x, "_array", f"the memory of {what}"),
        Guard(
            f"{{0}}.{flag} is {x.requires_grad}",
            (x,),
            lambda: x.requires_grad,
            x.requires_grad,
            f"requires_grad of {what}",
        ),
    ]


def _hooks_of(node: Any) -> tuple[Any, ...]:
    return tuple(node._note("hooks", {}).values())


def _of_hooks(node: Any, before: tuple[Any, ...], what: str) -> Guard:
    def read() -> tuple[Any, ...]:
        return _hooks_of(node)

    if before:
        return Guard("{0}() == {1}", (read, before), read, before, f"the hooks of {what}", "changed")
    with grad_lock:  # another thread may register a hook
        if not hasattr(node, "_more"):
            node._more = {}  # so that the test needs no call
    test = "not {0}._more['hooks']" if "hooks" in node._more else "'hooks' not in {0}._more"
    return Guard(test, (node,), read, before, f"the hooks of {what}", "changed")


def _of_optimizer(optimizer: Any) -> Iterator[Guard]:
    """Yield guards for groups, options that are not scalars, state and hooks. Scalars are symbolic."""
    of, has = optimizer.name, vars(optimizer)
    for name in _TABLES:
        yield entry(has, name, f"{name.strip('_')} of {of}")
    for name in ("step", "update"):
        yield attribute(type(optimizer), name, f"{of}.{name}")
        yield entry(has, name, f"{of}.{name}")
    yield entries(optimizer.param_groups, f"the groups of {of}")
    for hooks in (*has.get("_hooks", {}).values(), *everywhere.values()):
        yield entries(hooks, f"the hooks of {of}")
    for group in optimizer.param_groups:
        yield entries(group["params"], f"the parameters in a group of {of}")
        for name, x in group.items():
            if not is_number(x):  # those are symbolic
                yield entry(group, name, f"{name} of {of}")
                if isinstance(x, list) and name != "params":
                    yield entries(x, f"{name} of {of}")
    yield size(optimizer.state, f"parameters with state in {of}")
    for p, kept in tuple(optimizer.state.items()):
        yield entry(optimizer.state, p, f"the state of a parameter in {of}")
        for name, x in tuple(kept.items()):
            if isinstance(x, Tensor):
                yield entry(kept, name, f"{name} of {of}")


def _gradients_before(capture: Capture, tensors: list[Tensor]) -> list[tuple[Any, Any, Any]]:
    """Return the gradients that a trace reads or adds to as (tensor or argument index, gradient, array).

    Without an array, only the existence of a gradient is guarded."""
    numbers = {id(x): k for k, x in enumerate(tensors)}
    used = {id(view.buffer) for node in capture.nodes for view in (*node.reads, *node.outs)}
    found = []
    changed: Iterable[Any] = [(x, before, added) for x, before, added in capture.grads.values()]
    for x, before, added in [*changed, *[(x, before, None) for x, before in capture.grads_read.values()]]:
        same = before is not None and (added or id(capture.find(before._array)) in used)
        if same or added is not False:
            found.append((numbers.get(id(x), x), before, before._array if same else None))
    return found
