"""`Builder`: a trace under construction, to which each kind of graph appends its nodes, edges and blocks."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import minigrad as mg
from minigrad.core.grad_mode import Scope
from minigrad_viz.trace.blocks import divide
from minigrad_viz.trace.modules import modules_of, name_module_blocks, parameter_names, short_names
from minigrad_viz.trace.names import Namespaces, disambiguate
from minigrad_viz.trace.notation import handle, sanitize
from minigrad_viz.trace.rows import TraceBlock
from minigrad_viz.trace.trace import Trace

__all__ = ["Builder"]

# Matches the folder in a source line, which differs between machines.
SOURCE_FOLDER = re.compile(r"^.*?[/\\](?=[^/\\]*:\d+: )")
HANDLE_PATTERN = re.compile("v[₀-₉]*")


class Builder:
    """A trace under construction, with the indices of nodes, ops and scopes."""

    def __init__(self) -> None:
        self.trace = Trace()
        self.indices: dict[Any, int] = {}
        self.ops: dict[mg.Op, int] = {}
        self._scopes: dict[Any, int] = {}
        self._clean_lines: dict[str, str] = {}

    def add(self, kind: str, op: mg.Op | None, value: float | None, state: str, block: int) -> int:
        """Append a node whose incoming edges were already appended, and return its index."""
        trace = self.trace
        trace.kinds.append(kind)
        trace.op.append(-1 if op is None else self.ops[op] if op in self.ops else self.add_op(op))
        trace.values.append(value)
        trace.states.append(state)
        trace.block.append(block)
        trace.start.append(len(trace.operand))
        return len(trace.kinds) - 1

    def add_edges(self, operands: dict[int, int], flows: Sequence[bool]) -> None:
        """Append the edges from `operands` (by slot) to the node that is added next."""
        trace, count = self.trace, len(operands)
        trace.operand.extend(operands.values())
        trace.result.extend([len(trace.kinds)] * count)
        trace.slot.extend(operands)
        trace.flows.extend(flows)
        trace.local.extend([None] * count)

    def set_line(self, index: int, line: str) -> None:
        """Record the source line of the node at index `index`, without its folder."""
        if line not in self._clean_lines:
            self._clean_lines[line] = sanitize(SOURCE_FOLDER.sub("", line))
        self.trace.lines[index] = self._clean_lines[line]

    def add_op(self, op: mg.Op) -> int:
        """Append an operation that no node has used yet, and return its index."""
        self.trace.ops.append(op)
        self.ops[op] = len(self.ops)
        return self.ops[op]

    def block_of(self, scope: Any) -> int:
        """Return the index of the block of `scope`; create the block if it does not exist yet."""
        new_scopes = []
        while scope and _scope_key(scope) not in self._scopes:
            new_scopes.append(scope)
            scope = scope.outer if isinstance(scope, Scope) else None
        index = self._scopes[_scope_key(scope)] if scope else 0
        for inner in reversed(new_scopes):
            name = inner.name if isinstance(inner, Scope) else inner
            module = inner.module if isinstance(inner, Scope) else None
            name = name if module is None else name.lstrip("_")  # a private class has a leading underscore
            index = self._scopes[_scope_key(inner)] = self.add_block(name, "", index, module)
        return index

    def add_block(self, name: str, note: str, outer: int, module: Any = None) -> int:
        """Append a block inside block `outer`, and return its index."""
        self.trace.blocks.append(TraceBlock(sanitize(name), outer, "scope", module=module, note=note))
        return len(self.trace.blocks) - 1

    def resolve_names(self, names_by_node: Mapping[Any, str], namespaces: Namespaces) -> list[str | None]:
        """Return the name of each node: from `names_by_node`, or the path of a parameter in its module. Outermost
        modules are named after the variables that hold them.
        """
        self.trace.blocks = name_module_blocks(self.trace.blocks, namespaces)
        names: list[str | None] = [None] * len(self.trace.kinds)
        for node, name in {**names_by_node, **parameter_names(self.trace.blocks, names_by_node)}.items():
            if node in self.indices:
                names[self.indices[node]] = name
        return names

    def finish(
        self, names: Sequence[str | None], outputs: Sequence[int], inputs: Collection[int] | None = None
    ) -> None:
        """Set names and outputs, and divide the graph into blocks; `inputs` are the input leaves."""
        trace = self.trace
        handles = set()
        if any(name and HANDLE_PATTERN.fullmatch(name) for name in names):
            handles = {handle(index) for index, name in enumerate(names) if name is None and trace.kinds[index] != "c"}
        trace.names = disambiguate(names, handles)
        trace.outputs = list(dict.fromkeys(outputs))
        ops = [None if at < 0 else trace.ops[at].name for at in trace.op]
        edges = list(zip(trace.operand, trace.result, strict=True))
        input_leaves = self._input_leaves(names) if inputs is None else inputs
        trace.blocks, trace.block = divide(trace.blocks, trace.block, ops, edges, input_leaves)
        trace.modules = modules_of(trace.blocks)
        trace.short = short_names(trace)
        trace.scopes = [""]
        for block in trace.blocks[1:]:
            parts = (trace.scopes[block.outer], block.name if block.kind == "scope" else "")
            trace.scopes.append("/".join(filter(None, parts)))

    def _input_leaves(self, names: Sequence[str | None]) -> set[int]:
        """Return the input leaves: named leaves that require no gradient and, if there are modules, named leaves that
        are not their parameters.
        """
        modules = {id(block.module): block.module for block in self.trace.blocks if block.module is not None}.values()
        parameters = {self.indices.get(x) for module in modules for x in module.parameters()}
        kinds, states = self.trace.kinds, self.trace.states
        named = [at for at, name in enumerate(names) if name and kinds[at] == "l"]
        return {at for at in named if states[at] == "b" or (modules and at not in parameters)}


def _scope_key(scope: Any) -> Any:
    """Return a key that identifies a block: the id of its scope, or the string of a leaf from another process."""
    return id(scope) if isinstance(scope, Scope) else scope
