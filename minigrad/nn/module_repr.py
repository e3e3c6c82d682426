"""The `repr` of a module, a tree like PyTorch's with parameter counts."""

from __future__ import annotations

from typing import Any

__all__ = ["count_parameters", "format_tree"]


def count_parameters(module: Any) -> int:
    """Count the elements of the parameters of a module; shared parameters count once."""
    return sum(parameter.numel() for parameter in module.parameters())


def format_tree(module: Any, repeats: int = 1) -> str:
    """Return the `repr` of a module, or of `repeats` identical modules."""
    children = [f"({name}): {child}" for name, child in _format_children(module)]
    extra = module.extra_repr().split("\n") if module.extra_repr() else []
    parameter_count = count_parameters(module)
    comment = (
        f"  # {parameter_count:,} parameter{'s' if parameter_count > 1 else ''}{' each' if repeats > 1 else ''}"
        if parameter_count
        else ""
    )
    header = f"{f'{repeats} x ' if repeats > 1 else ''}{module._get_name()}("
    if not children and len(extra) <= 1:
        return f"{header}{''.join(extra)}){comment}"
    body = "\n".join([*extra, *children]).replace("\n", "\n  ")
    return f"{header}{comment}\n  {body}\n)"


def _format_child(child: Any) -> str:
    """Return the `repr` of a submodule, which may override `__repr__`."""
    defining_class = next(cls for cls in type(child).__mro__ if "__repr__" in vars(cls))
    return format_tree(child) if defining_class.__module__ == "minigrad.nn.module" else repr(child)


def _format_children(module: Any) -> list[tuple[str, str]]:
    """Return the names and `repr`s of the children. Consecutive identical items of a list share one entry."""
    children = [(name, child) for name, child in module._modules.items() if child is not None]
    placeholders = [(name, "None") for name, part in module._modules.items() if part is None]
    if not getattr(module, "_folds", False):
        return [(name, _format_child(part)) for name, part in children] + placeholders
    runs: list[tuple[str, str, Any, int]] = []  # first name, repr, last module, count
    for name, part in children:
        child_repr = _format_child(part)
        if runs and runs[-1][1] == child_repr:
            runs[-1] = (runs[-1][0], child_repr, part, runs[-1][3] + 1)
        else:
            runs.append((name, child_repr, part, 1))
    rows = []
    for first_name, child_repr, part, repeats in runs:
        name = first_name if repeats == 1 else f"{first_name}-{int(first_name) + repeats - 1}"
        rows.append((name, child_repr if repeats == 1 else format_tree(part, repeats)))
    return rows
