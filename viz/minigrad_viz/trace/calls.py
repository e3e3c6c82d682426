"""Reconstruction of the scopes of module calls without an active recording, from the calls stored in their results.

While recording, each operation stores the scope in which it is called. Otherwise, a call is stored only in its results,
which hardly slows down training. The operations of a call are those between its inputs and its results.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from operator import itemgetter
from typing import Any

from minigrad.core.grad_mode import Scope
from minigrad.core.graph import Node
from minigrad.core.snapshot import NodeRecord

__all__ = ["instances_in", "scopes_by_node"]

ModuleCall = tuple[Any, Any]  # a module and its arguments


def scopes_by_node(records: Sequence[NodeRecord]) -> dict[Any, Any]:
    """Return the scope of each node that has one: the recorded scope, or that of the innermost call around the node. In
    `records`, operands precede results.

    >>> import minigrad as mg
    >>> from minigrad.core.snapshot import snapshot
    >>> neuron = mg.nn.scalar.Neuron(1)
    >>> y = neuron([2.0]) * 3.0
    >>> [str(scopes_by_node(snapshot([y])).get(x, "")) for x in (y, y.inputs[0])]
    ['', 'Neuron']
    """
    scope_of_node = {record.node: record.scope for record in records if record.scope}
    call_scopes = _call_scopes(records)
    cache: dict[tuple[int, int], Scope] = {}
    return {
        **call_scopes,
        **{node: _nest_scope(scope, call_scopes.get(node), cache) for node, scope in scope_of_node.items()},
    }


def _call_scopes(records: Sequence[NodeRecord]) -> dict[Any, Scope]:
    """Return the scopes of stored calls by node. They are assigned from the largest call to the smallest."""
    # Maps the id of the arguments to the call, its depth and its results.
    calls: dict[int, tuple[ModuleCall, int, list[Any]]] = {}
    for record in records:
        for depth, call in enumerate(record.calls):
            calls.setdefault(id(call[1]), (call, depth, []))[2].append(record.node)
    record_of_node = {record.node: (at, record) for at, record in enumerate(records)} if calls else {}
    call_nodes = [(call, depth, _nodes_of_call(call, ends, record_of_node)) for call, depth, ends in calls.values()]
    scope_of_node: dict[Any, Scope] = {}
    paths: dict[int, dict[int, str]] = {}  # maps the id of a module to the paths of its submodules, by id
    for (module, _), _, nodes in sorted(
        call_nodes, key=lambda call_and_nodes: (-len(call_and_nodes[2]), -call_and_nodes[1])
    ):
        if nodes:
            outer = scope_of_node.get(nodes[-1])
            if outer is not None and id(outer.module) not in paths:
                paths[id(outer.module)] = {id(part): path for path, part in outer.module.named_modules()}
            path = "" if outer is None else paths[id(outer.module)].get(id(module), "")
            scope = Scope(path or type(module).__name__.lstrip("_"), outer)
            scope.module = module
            scope_of_node.update(dict.fromkeys(nodes, scope))
    return scope_of_node


def _nodes_of_call(
    call: ModuleCall, results: Sequence[Any], record_of_node: Mapping[Any, tuple[int, NodeRecord]]
) -> list[Any]:
    """Return the nodes that a call computed, in order. These are the nodes that lead from the call's inputs or the
    results of other modules to `results` and depend on these inputs or on the module's parameters.
    """
    module, args = call
    inputs, submodules = set(instances_in(args, Node)), {id(part) for _, part in module.named_modules()} - {id(module)}
    reached, stack = dict[Any, tuple[int, NodeRecord]](), list(results)
    while stack:
        node = stack.pop()
        if node in reached or node in inputs:
            continue
        record = record_of_node[node][1]
        calls = record.calls
        if all(call_args is not args for _, call_args in calls) and any(
            id(other_module) not in submodules for other_module, _ in calls
        ):
            continue  # the node is the result of another module, or of an earlier call
        if record.op is not None:
            reached[node] = record_of_node[node]
            stack += [x for x in record.operands if isinstance(x, Node)]
    dependent = inputs | set(module.parameters())
    nodes = []
    for _, record in sorted(reached.values(), key=itemgetter(0)):
        if any(x in dependent for x in record.operands):
            dependent.add(record.node)
            nodes.append(record.node)
    return nodes


def instances_in(x: Any, kind: type) -> Iterator[Any]:
    """Yield the instances of `kind` in a module's arguments or results, including nested tuples, lists and dicts."""
    if isinstance(x, kind):
        yield x
    elif isinstance(x, dict | list | tuple):
        for part in x.values() if isinstance(x, dict) else x:
            yield from instances_in(part, kind)


def _nest_scope(scope: Any, call_scope: Scope | None, cache: dict[tuple[int, int], Scope]) -> Any:
    """Return `scope`, entered during a call, nested in the scope of that call."""
    if call_scope is None or not isinstance(scope, Scope):
        return scope
    key = (id(scope), id(call_scope))
    if key not in cache:
        cache[key] = Scope(
            scope.name, call_scope if scope.outer is None else _nest_scope(scope.outer, call_scope, cache)
        )
        cache[key].module = scope.module
    return cache[key]
