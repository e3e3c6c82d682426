"""Module information in a trace: names, parameter counts, and shared parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from minigrad_viz.trace.names import Namespaces
from minigrad_viz.trace.notation import clean
from minigrad_viz.trace.rows import About, TraceBlock
from minigrad_viz.trace.titles import MIXED, WAYS
from minigrad_viz.trace.trace import Trace
from minigrad_viz.trace.visible import start_expanded

__all__ = ["begin_open", "called", "modules_of", "paths_of", "short_names"]


def called(blocks: Sequence[TraceBlock], namespaces: Namespaces) -> list[TraceBlock]:
    """Return the blocks, with calls of outermost modules named after their variables, or else their class."""
    variables: dict[int, str] = {}
    for space in reversed(namespaces):
        for name, held in reversed(list(space.items())):
            if not (isinstance(held, type | ModuleType) or name.startswith("_")) and hasattr(held, "named_modules"):
                variables[id(held)] = clean(name)
    roots, found = _roots(blocks), list(blocks)
    for k, block in enumerate(blocks):
        if block.module is not None and (k in roots or block.name == type(block.module).__name__.lstrip("_")):
            own = clean(block.module._get_name().lstrip("_"))
            found[k] = block._replace(name=variables.get(id(block.module), own) if k in roots else own)
    return found


def paths_of(blocks: Sequence[TraceBlock], known: Mapping[Any, str]) -> dict[Any, str]:
    """Return the names of parameters: their paths in the outermost called module, as in ``layers[0].neurons[1].b``.

    With several outermost modules, the path starts with the module's name. A name in `known` takes precedence unless it
    is the end of a path.
    """
    roots = {id(blocks[k].module): blocks[k] for k in _roots(blocks)}.values()
    found: dict[Any, str] = {}
    for block in roots:
        for path, x in block.module.named_parameters(clean(block.name) if len(roots) > 1 else ""):
            name = known.get(x)
            if x not in found and (name is None or path.endswith(name) or name.endswith(f".{path}")):
                found[x] = clean(path)
    return found


def short_names(trace: Trace) -> dict[int, str]:
    """Return the names of parameters within their block, whose title contains the rest of the path."""
    if not trace.modules:
        return {}
    paths: list[list[str]] = [[]]  # of each block, from the outermost module on
    for block in trace.blocks[1:]:
        own = [] if block.module is None else [block.name.rstrip("₀₁₂₃₄₅₆₇₈₉")]
        paths.append([*paths[block.outer], *own])
    found = {}
    for at, (kind, name, k) in enumerate(zip(trace.kinds, trace.names, trace.block, strict=True)):
        ways = (f"{'.'.join(path)}." for path in (paths[k], paths[k][1:]) if path)
        if kind == "l" and name is not None and (way := next(filter(name.startswith, ways), None)):
            found[at] = name.removeprefix(way)
    return found


def modules_of(blocks: Sequence[TraceBlock]) -> dict[int, About]:
    """Return the information about each block that is a module call, or a fold of such calls."""
    inside: list[list[Any]] = [[] if block.module is None else [block.module] for block in blocks]
    for k in range(len(blocks) - 1, 0, -1):
        if blocks[k].kind != "scope" or blocks[blocks[k].outer].kind == "fold":
            inside[blocks[k].outer] += inside[k]
    calls = Counter(id(block.module) for block in blocks if block.module is not None)
    names: dict[int, dict[int, list[str]]] = {}
    shared: dict[tuple[int, int], list[str]] = {}
    found = {}
    for k, block in enumerate(blocks):
        if not k or not inside[k] or (block.kind == "scope" and block.module is None):
            continue
        modules = {id(module): module for module in inside[k]}.values()
        root = _outermost(blocks, k) or next(iter(modules))
        known = names[id(root)] if id(root) in names else names.setdefault(id(root), _names(root))
        own = {id(x): x for module in modules for x in module.parameters()}
        kinds = {module._get_name().lstrip("_") for module in ([block.module] if block.module is not None else modules)}
        kind = clean(kinds.pop()) if len(kinds) == 1 else ""
        often = calls[id(block.module)]
        more = [f"called {often} times"] if block.module is not None and often > 1 else []
        if block.module is not None:
            key = (id(root), id(block.module))
            more += shared[key] if key in shared else shared.setdefault(key, _shared(root, block.module, known))
        count = sum(x.numel() if hasattr(x, "numel") else 1 for x in own.values())
        found[k] = About("" if kind == block.name else kind, count, tuple(more))
    return found


def begin_open(trace: Trace, budget: int) -> set[int]:
    """Return the blocks that start open, as `start_expanded` does; layers of tensors stay closed. A single closed block
    is never all that is visible.
    """
    blocks, where = trace.blocks, trace.block
    layers = {k for k, block in enumerate(blocks) if trace.tensors and block.module is not None and _is_layer(block)}
    if trace.how:
        ways = {k for k, block in enumerate(blocks) if block.outer == 0 and block.name in (*WAYS, MIXED)}
        return _beyond_one(trace, {0} | ways, set())
    if len(layers) == 1 and len(trace.modules) == 1:
        layers = set()  # the model is a single layer
    opened = start_expanded(blocks, [*(k for k in where if k not in layers), *layers], budget) - layers
    return _beyond_one(trace, opened, layers)


def _is_layer(block: TraceBlock) -> bool:
    """Whether the module of a block has no submodules."""
    return all(part is block.module for _, part in block.module.named_modules())


def _beyond_one(trace: Trace, opened: set[int], layers: set[int]) -> set[int]:
    """Return `opened` and the blocks that must be open as well so that not all operations are in one closed block."""
    blocks = trace.blocks
    computed = {k for k, op in zip(trace.block, trace.op, strict=True) if op >= 0}
    parts: list[set[int]] = [set() for _ in blocks]  # by block, its child blocks that contain operations
    for k in range(len(blocks) - 1, 0, -1):
        if k in computed or parts[k]:
            parts[blocks[k].outer].add(k)
    at = 0
    while at not in computed and len(parts[at]) == 1:
        (at,) = parts[at]
        if at in layers:
            break
        opened.add(at)
    return opened


def _roots(blocks: Sequence[TraceBlock]) -> set[int]:
    """Return the blocks that are calls of modules outside of all other module calls."""
    inside = [False] * len(blocks)
    found = set()
    for k, block in enumerate(blocks[1:], 1):
        inside[k] = inside[block.outer] or block.module is not None
        if block.module is not None and not inside[block.outer]:
            found.add(k)
    return found


def _outermost(blocks: Sequence[TraceBlock], k: int) -> Any:
    """Return the outermost module around block k, or its own."""
    found = None
    while k > 0:
        found = found if blocks[k].module is None else blocks[k].module
        k = blocks[k].outer
    return found


def _names(root: Any) -> dict[int, list[str]]:
    """Return all names of each parameter of a model, by id."""
    names: dict[int, list[str]] = {}
    for name, x in root.named_parameters(remove_duplicate=False):
        names.setdefault(id(x), []).append(name)
    return names


def _shared(root: Any, module: Any, names: dict[int, list[str]]) -> list[str]:
    """Return equations of names for the parameters of `module` that another part of the model shares."""
    paths = [path for path, part in root.named_modules(remove_duplicate=False) if part is module]
    inside = tuple(f"{path}." if path else "" for path in paths)
    found = []
    for name, x in module.named_parameters() if paths else ():
        others = [other for other in names.get(id(x), []) if not other.startswith(inside)]
        found += [clean(f"{inside[0]}{name} = {others[0]}")] if others else []
    return found
