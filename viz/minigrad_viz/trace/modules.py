"""Module information in a trace: names, parameter counts, and shared parameters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from types import ModuleType
from typing import Any

from minigrad_viz.trace.names import Namespaces
from minigrad_viz.trace.notation import sanitize
from minigrad_viz.trace.rows import ModuleInfo, TraceBlock
from minigrad_viz.trace.titles import BACKWARD_AND_UPDATE, PHASES
from minigrad_viz.trace.trace import Trace
from minigrad_viz.trace.visibility import initially_open

__all__ = ["initially_open_blocks", "modules_of", "name_module_blocks", "parameter_names", "short_names"]


def name_module_blocks(blocks: Sequence[TraceBlock], namespaces: Namespaces) -> list[TraceBlock]:
    """Return the blocks. Calls of outermost modules are named after the module's variable, or else its class."""
    variables: dict[int, str] = {}
    for namespace in reversed(namespaces):
        for name, value in reversed(list(namespace.items())):
            if not (isinstance(value, type | ModuleType) or name.startswith("_")) and hasattr(value, "named_modules"):
                variables[id(value)] = sanitize(name)
    roots, named = _outermost_calls(blocks), list(blocks)
    for k, block in enumerate(blocks):
        if block.module is not None and (k in roots or block.name == type(block.module).__name__.lstrip("_")):
            class_name = sanitize(block.module._get_name().lstrip("_"))
            named[k] = block._replace(name=variables.get(id(block.module), class_name) if k in roots else class_name)
    return named


def parameter_names(blocks: Sequence[TraceBlock], existing_names: Mapping[Any, str]) -> dict[Any, str]:
    """Return the names of parameters: paths in the outermost called module, as in ``layers[0].neurons[1].b``.

    With several outermost modules, the path starts with the module's name. A name in `existing_names` takes precedence
    unless it is the end of a path.
    """
    roots = {id(blocks[k].module): blocks[k] for k in _outermost_calls(blocks)}.values()
    names: dict[Any, str] = {}
    for block in roots:
        for path, x in block.module.named_parameters(sanitize(block.name) if len(roots) > 1 else ""):
            name = existing_names.get(x)
            if x not in names and (name is None or path.endswith(name) or name.endswith(f".{path}")):
                names[x] = sanitize(path)
    return names


def short_names(trace: Trace) -> dict[int, str]:
    """Return the names of parameters within their block, without the part of the path that is in the block's title."""
    if not trace.modules:
        return {}
    paths: list[list[str]] = [[]]  # path of each block from the outermost module
    for block in trace.blocks[1:]:
        parts = [] if block.module is None else [block.name.rstrip("₀₁₂₃₄₅₆₇₈₉")]
        paths.append([*paths[block.outer], *parts])
    names = {}
    for at, (kind, name, k) in enumerate(zip(trace.kinds, trace.names, trace.block, strict=True)):
        prefixes = (f"{'.'.join(path)}." for path in (paths[k], paths[k][1:]) if path)
        if kind == "l" and name is not None and (prefix := next(filter(name.startswith, prefixes), None)):
            names[at] = name.removeprefix(prefix)
    return names


def modules_of(blocks: Sequence[TraceBlock]) -> dict[int, ModuleInfo]:
    """Return information about the modules of each block that is a module call, or a group of equal calls."""
    modules_in: list[list[Any]] = [[] if block.module is None else [block.module] for block in blocks]
    for k in range(len(blocks) - 1, 0, -1):
        if blocks[k].kind != "scope" or blocks[blocks[k].outer].kind == "fold":
            modules_in[blocks[k].outer] += modules_in[k]
    calls = Counter(id(block.module) for block in blocks if block.module is not None)
    names: dict[int, dict[int, list[str]]] = {}
    shared: dict[tuple[int, int], list[str]] = {}
    infos = {}
    for k, block in enumerate(blocks):
        if not k or not modules_in[k] or (block.kind == "scope" and block.module is None):
            continue
        modules = {id(module): module for module in modules_in[k]}.values()
        root = _outermost(blocks, k) or next(iter(modules))
        names_by_id = names[id(root)] if id(root) in names else names.setdefault(id(root), _names_by_parameter(root))
        parameters = {id(x): x for module in modules for x in module.parameters()}
        kinds = {module._get_name().lstrip("_") for module in ([block.module] if block.module is not None else modules)}
        kind = sanitize(kinds.pop()) if len(kinds) == 1 else ""
        call_count = calls[id(block.module)]
        shared_notes = [f"called {call_count} times"] if block.module is not None and call_count > 1 else []
        if block.module is not None:
            key = (id(root), id(block.module))
            shared_notes += (
                shared[key]
                if key in shared
                else shared.setdefault(key, _shared_parameters(root, block.module, names_by_id))
            )
        count = sum(x.numel() if hasattr(x, "numel") else 1 for x in parameters.values())
        infos[k] = ModuleInfo("" if kind == block.name else kind, count, tuple(shared_notes))
    return infos


def initially_open_blocks(trace: Trace, budget: int) -> set[int]:
    """Return the blocks that start open, as `initially_open` does, but with layers of tensors closed. The visible part
    never consists of a single closed block.
    """
    blocks, block_of_node = trace.blocks, trace.block
    layers = {k for k, block in enumerate(blocks) if trace.tensors and block.module is not None and _is_layer(block)}
    if trace.execution:
        phase_blocks = {
            k for k, block in enumerate(blocks) if block.outer == 0 and block.name in (*PHASES, BACKWARD_AND_UPDATE)
        }
        return _ensure_visible_operations(trace, {0} | phase_blocks, set())
    if len(layers) == 1 and len(trace.modules) == 1:
        layers = set()  # the model is a single layer
    opened = initially_open(blocks, [*(k for k in block_of_node if k not in layers), *layers], budget) - layers
    return _ensure_visible_operations(trace, opened, layers)


def _is_layer(block: TraceBlock) -> bool:
    """Whether the module of a block has no submodules."""
    return all(part is block.module for _, part in block.module.named_modules())


def _ensure_visible_operations(trace: Trace, opened: set[int], layers: set[int]) -> set[int]:
    """Return `opened`, and the blocks that must also be open for the operations not to be in a single closed block."""
    blocks = trace.blocks
    computed = {k for k, op in zip(trace.block, trace.op, strict=True) if op >= 0}
    children: list[set[int]] = [set() for _ in blocks]  # child blocks that contain operations, by block
    for k in range(len(blocks) - 1, 0, -1):
        if k in computed or children[k]:
            children[blocks[k].outer].add(k)
    current = 0
    while current not in computed and len(children[current]) == 1:
        (current,) = children[current]
        if current in layers:
            break
        opened.add(current)
    return opened


def _outermost_calls(blocks: Sequence[TraceBlock]) -> set[int]:
    """Return the blocks that are module calls outside of all other module calls."""
    is_in_call = [False] * len(blocks)
    outermost = set()
    for k, block in enumerate(blocks[1:], 1):
        is_in_call[k] = is_in_call[block.outer] or block.module is not None
        if block.module is not None and not is_in_call[block.outer]:
            outermost.add(k)
    return outermost


def _outermost(blocks: Sequence[TraceBlock], k: int) -> Any:
    """Return the outermost module around block k, or the module of block k itself."""
    module = None
    while k > 0:
        module = module if blocks[k].module is None else blocks[k].module
        k = blocks[k].outer
    return module


def _names_by_parameter(root: Any) -> dict[int, list[str]]:
    """Return all names of each parameter of a model, by id."""
    names: dict[int, list[str]] = {}
    for name, x in root.named_parameters(remove_duplicate=False):
        names.setdefault(id(x), []).append(name)
    return names


def _shared_parameters(root: Any, module: Any, names: dict[int, list[str]]) -> list[str]:
    """Return equations such as "a.weight = b.weight" for parameters that `module` shares with other modules."""
    paths = [path for path, part in root.named_modules(remove_duplicate=False) if part is module]
    prefixes = tuple(f"{path}." if path else "" for path in paths)
    equations = []
    for name, x in module.named_parameters() if paths else ():
        other_names = [other_name for other_name in names.get(id(x), []) if not other_name.startswith(prefixes)]
        equations += [sanitize(f"{prefixes[0]}{name} = {other_names[0]}")] if other_names else []
    return equations
