"""Module calls without an active recording, reconstructed as scopes from the calls noted on their results.

While recording, each operation notes the scope it is in. Otherwise a call is noted only on its results, which costs
training almost nothing; its operations are those between its results and its inputs.
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
    """Return the scope of each node that has one: its own, or that of the innermost call around it. Operands come
    first.

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
    """Return the scopes of noted calls by node, assigned from the largest call to the smallest."""
    calls: dict[int, tuple[ModuleCall, int, list[Any]]] = {}  # by id of the arguments: the call, its depth, its results
    for record in records:
        for depth, call in enumerate(record.calls):
            calls.setdefault(id(call[1]), (call, depth, []))[2].append(record.node)
    known = {record.node: (at, record) for at, record in enumerate(records)} if calls else {}
    found = [(call, depth, _inside(call, ends, known)) for call, depth, ends in calls.values()]
    homes: dict[Any, Scope] = {}
    paths: dict[int, dict[int, str]] = {}  # paths of the submodules of each module, by id
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
    """Return the nodes that a call computed, in order: those between `ends` and its inputs or results of other modules,
    as far as they depend on these inputs or on the module's parameters.
    """
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
            continue  # from another module, or an earlier call
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
    """Yield the instances of `kind` in a module's arguments or results, including nested tuples, lists and dicts."""
    if isinstance(x, kind):
        yield x
    elif isinstance(x, dict | list | tuple):
        for part in x.values() if isinstance(x, dict) else x:
            yield from instances_in(part, kind)


def _under(scope: Any, home: Scope | None, known: dict[tuple[int, int], Scope]) -> Any:
    """Return `scope`, entered during a call, nested in the scope of that call."""
    if home is None or not isinstance(scope, Scope):
        return scope
    key = (id(scope), id(home))
    if key not in known:
        known[key] = Scope(scope.name, home if scope.outer is None else _under(scope.outer, home, known))
        known[key].module = scope.module
    return known[key]
