"""The calls of modules that nobody watched, as scopes: what a module gave says of which call it is the end.

A scope is entered where somebody records, and each operation notes in which it is. Else a call is noted at its results
alone, which costs training next to nothing, and what was computed in it is what lies between those and its inputs.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from minigrad.core.grad_mode import Scope
from minigrad.core.graph import Node
from minigrad.core.snapshot import NodeRecord

__all__ = ["instances_in", "scopes_in"]

ModuleCall = tuple[Any, Any]  # a module and what it was called with


def scopes_in(records: Sequence[NodeRecord]) -> dict[Any, Any]:
    """The scope of each node that has one, its own or that of the innermost call around it; operands come first.

    >>> import minigrad as mg
    >>> from minigrad.core.snapshot import snapshot
    >>> neuron = mg.nn.scalar.Neuron(1)
    >>> y = neuron([2.0]) * 3.0
    >>> [str(scopes_in(snapshot([y])).get(x, "")) for x in (y, y.inputs[0])]
    ['', 'Neuron']
    """
    own = {record.node: record.scope for record in records if record.scope}
    homes = _homes(records)
    grafted: dict[tuple[int, int], Scope] = {}
    return {**homes, **{node: _under(scope, homes.get(node), grafted) for node, scope in own.items()}}


def _homes(records: Sequence[NodeRecord]) -> dict[Any, Scope]:
    """The scopes of noted calls, by node, from the largest call to the smallest."""
    calls: dict[int, tuple[ModuleCall, int, list[Any]]] = {}  # by what it was called with: calls in it, results
    for record in records:
        for depth, call in enumerate(record.calls):
            calls.setdefault(id(call[1]), (call, depth, []))[2].append(record.node)
    known = {record.node: (at, record) for at, record in enumerate(records)} if calls else {}
    found = [(call, depth, _inside(call, ends, known)) for call, depth, ends in calls.values()]
    homes: dict[Any, Scope] = {}
    paths: dict[int, dict[int, str]] = {}  # of the parts of each module, by identity
    for (module, _), _, inside in sorted(found, key=lambda one: (-len(one[2]), -one[1])):
        if inside:
            outer = homes.get(inside[-1])
            if outer is not None and id(outer.module) not in paths:
                paths[id(outer.module)] = {id(part): path for path, part in outer.module.named_modules()}
            path = "" if outer is None else paths[id(outer.module)].get(id(module), "")
            scope = Scope(path or type(module).__name__.lstrip("_"), outer)
            scope.module = module
            homes.update(dict.fromkeys(inside, scope))
    return homes


def _inside(call: ModuleCall, ends: Sequence[Any], known: Mapping[Any, tuple[int, NodeRecord]]) -> list[Any]:
    """What a call computed, in order: what `ends` came from, back to its inputs and to results of other modules, as far
    as that came from these inputs or from parameters of the module."""
    module, args = call
    inputs, parts = set(instances_in(args, Node)), {id(part) for _, part in module.named_modules()} - {id(module)}
    reached, stack = dict[Any, tuple[int, NodeRecord]](), list(ends)
    while stack:
        node = stack.pop()
        if node in reached or node in inputs:
            continue
        record = known[node][1]
        noted = record.calls
        if all(given is not args for _, given in noted) and any(id(other) not in parts for other, _ in noted):
            continue  # of another module, or of this one before
        if record.op is not None:
            reached[node] = known[node]
            stack += [x for x in record.operands if isinstance(x, Node)]
    leading = inputs | set(module.parameters())
    inside = []
    for _, record in sorted(reached.values(), key=itemgetter(0)):
        if any(x in leading for x in record.operands):
            leading.add(record.node)
            inside.append(record.node)
    return inside


def instances_in(x: Any, kind: type) -> Iterator[Any]:
    """What is of a `kind` in what a module was given, or gives: in tuples, lists and dictionaries too."""
    if isinstance(x, kind):
        yield x
    elif isinstance(x, dict | list | tuple):
        for part in x.values() if isinstance(x, dict) else x:
            yield from instances_in(part, kind)


def _under(scope: Any, home: Scope | None, known: dict[tuple[int, int], Scope]) -> Any:
    """`scope`, which was entered in a call, in the scope of that call."""
    if home is None or not isinstance(scope, Scope):
        return scope
    key = (id(scope), id(home))
    if key not in known:
        known[key] = Scope(scope.name, home if scope.outer is None else _under(scope.outer, home, known))
        known[key].module = scope.module
    return known[key]
