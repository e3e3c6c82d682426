"""What a trace says of modules: their kinds, how many parameters they have, and which of them others have too."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from minigrad_viz.notation import clean
from minigrad_viz.trace.blocks import start_expanded
from minigrad_viz.trace.columns import About, Block, Trace

__all__ = ["begin_open", "modules_of"]


def modules_of(blocks: Sequence[Block]) -> dict[int, About]:
    """What is to be said of each block that is a call of a module, or a fold of such calls."""
    inside: list[list[Any]] = [[] if block.module is None else [block.module] for block in blocks]
    for k in range(len(blocks) - 1, 0, -1):
        if blocks[k].kind != "scope" or blocks[blocks[k].outer].kind == "fold":
            inside[blocks[k].outer] += inside[k]
    calls = Counter(id(block.module) for block in blocks if block.module is not None)
    names: dict[int, dict[int, list[str]]] = {}
    found = {}
    for k, block in enumerate(blocks):
        if not k or not inside[k] or (block.kind == "scope" and block.module is None):
            continue
        modules = {id(module): module for module in inside[k]}.values()
        root = _outermost(blocks, k) or next(iter(modules))
        known = names.setdefault(id(root), _names(root))
        own = {id(x): x for module in modules for x in module.parameters()}
        kinds = {module._get_name() for module in modules}
        kind = clean(kinds.pop()) if len(kinds) == 1 else ""
        shared = _shared(root, block.module, known) if block.module is not None else []
        often = calls[id(block.module)]
        more = [f"called {often} times"] if block.module is not None and often > 1 else []
        count = sum(x.numel() for x in own.values())
        found[k] = About("" if kind == block.name else kind, count, (*more, *shared))
    return found


def begin_open(trace: Trace, budget: int) -> set[int]:
    """The blocks to show opened at first, as `start_expanded` says; of a model down to layers, which stay closed."""
    blocks, where = trace.blocks, trace.block
    layers = {k for k, block in enumerate(blocks) if block.module is not None and not block.module._modules}
    if len(layers) == 1 and len(trace.modules) == 1:
        layers = set()  # the model is one layer
    return start_expanded(blocks, [*(k for k in where if k not in layers), *layers], budget) - layers


def _outermost(blocks: Sequence[Block], k: int) -> Any:
    """The outermost module around block k, or in it."""
    found = None
    while k > 0:
        found = found if blocks[k].module is None else blocks[k].module
        k = blocks[k].outer
    return found


def _names(root: Any) -> dict[int, list[str]]:
    """All names of each parameter of a model, by identity."""
    names: dict[int, list[str]] = {}
    for name, x in root.named_parameters(remove_duplicate=False):
        names.setdefault(id(x), []).append(name)
    return names


def _shared(root: Any, module: Any, names: dict[int, list[str]]) -> list[str]:
    """The parameters of `module` that another part of the model has too, as equations of names."""
    paths = [path for path, part in root.named_modules(remove_duplicate=False) if part is module]
    inside = tuple(f"{path}." if path else "" for path in paths)
    found = []
    for name, x in module.named_parameters() if paths else ():
        others = [other for other in names.get(id(x), []) if not other.startswith(inside)]
        found += [clean(f"{inside[0]}{name} = {others[0]}")] if others else []
    return found
