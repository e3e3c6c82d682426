"""The `repr` of a module: PyTorch's tree, with parameter counts."""

from __future__ import annotations

from typing import Any

__all__ = ["count", "tree"]


def count(module: Any) -> int:
    """Count the elements of the parameters of a module; shared parameters count once."""
    return sum(parameter.numel() for parameter in module.parameters())


def tree(module: Any, times: int = 1) -> str:
    """Return the `repr` of a module, or of `times` identical ones."""
    rows = [f"({name}): {text}" for name, text in _rows(module)]
    extra = module.extra_repr().split("\n") if module.extra_repr() else []
    found = count(module)
    numbers = f"  # {found:,} parameter{'s' if found > 1 else ''}{' each' if times > 1 else ''}" if found else ""
    head = f"{f'{times} x ' if times > 1 else ''}{module._get_name()}("
    if not rows and len(extra) <= 1:
        return f"{head}{''.join(extra)}){numbers}"
    inside = "\n".join([*extra, *rows]).replace("\n", "\n  ")
    return f"{head}{numbers}\n  {inside}\n)"


def _text(part: Any) -> str:
    """Return the `repr` of a submodule, which may override `__repr__`."""
    owner = next(kind for kind in type(part).__mro__ if "__repr__" in vars(kind))
    return tree(part) if owner.__module__ == "minigrad.nn.module" else repr(part)


def _rows(module: Any) -> list[tuple[str, str]]:
    """Return the names and `repr`s of the children; a list groups consecutive identical ones."""
    listed = [(name, part) for name, part in module._modules.items() if part is not None]
    empty = [(name, "None") for name, part in module._modules.items() if part is None]
    if not getattr(module, "_folds", False):
        return [(name, _text(part)) for name, part in listed] + empty
    runs: list[tuple[str, str, Any, int]] = []  # first name, repr, last module, count
    for name, part in listed:
        text = _text(part)
        if runs and runs[-1][1] == text:
            runs[-1] = (runs[-1][0], text, part, runs[-1][3] + 1)
        else:
            runs.append((name, text, part, 1))
    rows = []
    for first, text, part, times in runs:
        name = first if times == 1 else f"{first}-{int(first) + times - 1}"
        rows.append((name, text if times == 1 else tree(part, times)))
    return rows
