"""Guards of one trace, for the objects that Python read, tensors, gradients, optimizers and arguments."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from minigrad.compiler.jit.capture import Capture
from minigrad.compiler.jit.guards import (
    Guard,
    compile_guards,
    guard_attribute,
    guard_entries,
    guard_entry,
    guard_length,
)
from minigrad.compiler.jit.nodes import address_of, memory_owner
from minigrad.compiler.jit.reach import ReadSet
from minigrad.compiler.jit.scalars import is_scalar
from minigrad.core.graph import grad_lock
from minigrad.core.tensor import Tensor
from minigrad.optim.hooks import global_hooks

__all__ = ["TraceGuards"]

_TABLES = ("param_groups", "state", "_hooks")


class TraceGuards:
    """All guards of a trace.

    A trace reads and writes memory, so a parameter must be the same tensor in the same memory. Its kernel calls are
    those that Python made during tracing, so everything that Python read must be the same or equal.
    """

    def __init__(self, capture: Capture, tensors: list[Tensor], chosen: ReadSet) -> None:
        optimizers = [scalars.optimizer for scalars in capture.optimizers.values() if scalars.steps]
        named = dict(chosen.tensors)
        for optimizer in optimizers:
            parameters = [x for group in optimizer.param_groups for x in group["params"]]
            options = [
                (x, f"{key} of {optimizer.name}")
                for state in tuple(optimizer.state.values())
                for key, x in tuple(state.items())
            ]
            options += [
                (x, f"{key} of {optimizer.name}") for group in optimizer.param_groups for key, x in group.items()
            ]
            named = {id(x): (x, f"a parameter of {optimizer.name}") for x in parameters} | named
            named |= {id(x): (x, name_of_tensor) for x, name_of_tensor in options if isinstance(x, Tensor)}
        self.guarded_tensors = list(named.values())
        """The tensors that must be identical, and their names."""
        self._guards = [*chosen.guards]
        for x, description in self.guarded_tensors:
            self._guards += _guard_tensor(x, description)
        position = {id(x): k for k, x in enumerate(tensors)}
        self._hooks: list[tuple[int, tuple[Any, ...]]] = []
        for node, hooks, description in capture.hooks_before.values():
            if id(node) in position:
                self._hooks.append((position[id(node)], hooks))
            else:
                self._guards.append(_guard_hooks(node, hooks, named.get(id(node), (node, description))[1]))
        for optimizer in optimizers:
            self._guards += _guard_optimizer(optimizer)
        self._arguments = [(k, x, named[id(x)][1]) for k, x in enumerate(tensors) if id(x) in named]
        self._overlaps = [
            (k, address_of(x._array), name)
            for k, x in enumerate(tensors)
            for y, name in named.values()
            if y is not x and memory_owner(y._array) is memory_owner(x._array)
        ]
        self._grads = _guarded_gradients(capture, tensors)
        self._check = compile_guards(self._guards, [*self._argument_tests()])

    def find_changed(self) -> str:
        """Return why a guard fails, or "". If it fails right after tracing, the step itself has changed the value."""
        return next((guard.describe_failure() for guard in self._guards if not guard.holds()), "")

    def find_failed(self, tensors: Sequence[Tensor]) -> str:
        """Return why a guard fails for a call with these arguments, or ""."""
        return "" if self._check(tensors) else self.find_changed() or self._find_failed_argument(tensors)

    def _argument_tests(self) -> Iterator[tuple[str, tuple[Any, ...]]]:
        """Yield tests of arguments and gradients as pairs of an expression and its objects."""
        for k, x, _ in self._arguments:
            yield f"tensors[{k}] is {{0}}", (x,)
        for k, hooks in self._hooks:
            yield f"{{0}}(tensors[{k}]) == {{1}}", (_leaf_hooks, hooks)
        for k, start, _ in self._overlaps:
            yield f"{{0}}(tensors[{k}]._array) == {start}", (address_of,)
        for owner, before, array in self._grads:
            argument = owner.__class__ is int
            grad = f"tensors[{owner}]._grad" if argument else "{0}._grad"
            if before is None or array is None:
                yield f"{grad} is{'' if before is None else ' not'} None", (owner,)
            else:
                yield f"{grad} is {{1}} and {grad}._array is {{2}}", (owner, before, array)

    def _find_failed_argument(self, tensors: Sequence[Tensor]) -> str:
        for k, x, description in self._arguments:
            if tensors[k] is not x:
                return f"an argument that was {description} is now another tensor"
        for k, hooks in self._hooks:
            if _leaf_hooks(tensors[k]) != hooks:
                return "the hooks of an argument changed"
        for k, start, description in self._overlaps:
            if address_of(tensors[k]._array) != start:
                return f"an argument lies at another offset in the memory that it shares with {description}"
        for owner, before, array in self._grads:
            grad = (tensors[owner] if owner.__class__ is int else owner)._grad
            if (grad is None) is not (before is None):
                return "a gradient exists that was None" if before is None else "a gradient that existed is None"
            if array is not None and (grad is not before or grad._array is not array):
                return "a gradient from before the step was replaced"
        return ""


def _guard_tensor(x: Any, name: str) -> list[Guard]:
    flag = "requires_grad" if x._base is not None else "_requires_grad"  # the property refreshes views
    return [
        guard_attribute(x, "_array", f"the memory of {name}"),
        Guard(
            f"{{0}}.{flag} is {x.requires_grad}",
            (x,),
            lambda: x.requires_grad,
            x.requires_grad,
            f"requires_grad of {name}",
        ),
    ]


def _leaf_hooks(node: Any) -> tuple[Any, ...]:
    return tuple(node._get_extra("hooks", {}).values())


def _guard_hooks(node: Any, before: tuple[Any, ...], name: str) -> Guard:
    def read() -> tuple[Any, ...]:
        return _leaf_hooks(node)

    if before:
        return Guard("{0}() == {1}", (read, before), read, before, f"the hooks of {name}", "changed")
    with grad_lock:  # another thread may register a hook
        if getattr(node, "_extras", None) is None:
            node._extras = {}  # so that the test needs no call
    test = "not {0}._extras['hooks']" if "hooks" in node._extras else "'hooks' not in {0}._extras"
    return Guard(test, (node,), read, before, f"the hooks of {name}", "changed")


def _guard_optimizer(optimizer: Any) -> Iterator[Guard]:
    """Yield guards for groups, options that are not scalars, state and hooks. Scalars are symbolic."""
    optimizer_name, attributes = optimizer.name, vars(optimizer)
    for name in _TABLES:
        yield guard_entry(attributes, name, f"{name.strip('_')} of {optimizer_name}")
    for name in ("step", "update"):
        yield guard_attribute(type(optimizer), name, f"{optimizer_name}.{name}")
        yield guard_entry(attributes, name, f"{optimizer_name}.{name}")
    yield guard_entries(optimizer.param_groups, f"the groups of {optimizer_name}")
    for hooks in (*attributes.get("_hooks", {}).values(), *global_hooks.values()):
        yield guard_entries(hooks, f"the hooks of {optimizer_name}")
    for group in optimizer.param_groups:
        yield guard_entries(group["params"], f"the parameters in a group of {optimizer_name}")
        for name, x in group.items():
            if not is_scalar(x):  # scalars are symbolic
                yield guard_entry(group, name, f"{name} of {optimizer_name}")
                if isinstance(x, list) and name != "params":
                    yield guard_entries(x, f"{name} of {optimizer_name}")
    yield guard_length(optimizer.state, f"parameters with state in {optimizer_name}")
    for p, state in tuple(optimizer.state.items()):
        yield guard_entry(optimizer.state, p, f"the state of a parameter in {optimizer_name}")
        for name, x in tuple(state.items()):
            if isinstance(x, Tensor):
                yield guard_entry(state, name, f"{name} of {optimizer_name}")


def _guarded_gradients(capture: Capture, tensors: list[Tensor]) -> list[tuple[Any, Any, Any]]:
    """Return the gradients that a trace reads or adds to as (tensor or argument index, gradient, array).

    Without an array, only the existence of a gradient is guarded."""
    argument_indices = {id(x): k for k, x in enumerate(tensors)}
    used = {id(view.buffer) for node in capture.nodes for view in (*node.reads, *node.outs)}
    gradients = []
    changed: Iterable[Any] = [(x, before, is_accumulated) for x, before, is_accumulated in capture.grads.values()]
    for x, before, added in [*changed, *[(x, before, None) for x, before in capture.grads_read.values()]]:
        is_identical = before is not None and (added or id(capture.find_buffer(before._array)) in used)
        if is_identical or added is not False:
            gradients.append((argument_indices.get(id(x), x), before, before._array if is_identical else None))
    return gradients
