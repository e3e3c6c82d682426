"""The playground: the catalogue of scalar operations for a page without Python, and its directives.

The catalogue describes each operation in the format of traces: JavaScript for its value and gradient rules
(`op_data`), formula templates (`templates`), and the interval for sampling (`domain`). The script is built from
`book/playground/`.
"""

from __future__ import annotations

import json
import operator
import subprocess
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, combinations
from pathlib import Path
from typing import Any

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError

import minigrad as mg
from minigrad.backends.formula import Formula, expression, local_derivative
from minigrad.backends.formula.javascript import javascript
from minigrad.backends.formula.writing import HOLES
from minigrad.backends.formula.writing import template as written
from minigrad_viz import to_trace
from minigrad_viz.pictures.svg import picture
from minigrad_viz.trace.templates import op_data

__all__ = ["catalogue", "setup"]

BOOK = Path(__file__).resolve().parent.parent
SOURCES, BUILT = BOOK / "playground", BOOK / "_static" / "vendor" / "playground.js"
ESBUILD = BOOK.parent / "viz" / "frontend" / "node_modules" / "esbuild"

OPERATORS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
    "neg": operator.neg,
}
_GENERIC = 7.125  # an exponent that no rule treats specially, and whose shifts equal no other constant
_SPECIAL = (0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 0.5, -0.5, 4.0)


# --- the catalogue ---------------------------------------------------------------------------------------------------


def catalogue() -> dict[str, Any]:
    """Return the operations by name, and the functions and operators that call them.

    >>> found = catalogue()
    >>> found["operators"]["**"], found["functions"]["max"], found["ops"]["tanh"]["record"]["js"]
    ('pow', 'maximum', 'Math.tanh(a)')
    """
    ops = {op.name: _described(op) for op in mg.OPS.values() if _is_of_numbers(op)}
    a, b = mg.Value(0.5), mg.Value(0.25)
    operators = {sign: made(*(a, b)[: 1 if sign == "neg" else 2]).op.name for sign, made in OPERATORS.items()}
    return {"operators": operators, "functions": {**{name: name for name in ops}, **_methods(ops)}, "ops": ops}


def _is_of_numbers(op: mg.Op) -> bool:
    """Return whether the playground supports `op`: differentiable, with JavaScript, and no backward operation."""
    return op.differentiable and javascript(op)["js"] is not None and not op.name.endswith("_backward")


def _methods(ops: Mapping[str, Any]) -> dict[str, str]:
    """Return the methods of `Value` that apply an operation with another name."""
    found = {}
    for name in dir(mg.Value):
        if name.startswith("_") or name in ops:
            continue
        a, b = mg.Value(0.5), mg.Value(0.25)
        method = getattr(a, name)
        for given in ((), (b,)) if callable(method) else ():
            try:
                made = method(*given)
            except (TypeError, mg.errors.MinigradError):
                continue
            if isinstance(made, mg.Value) and made.op is not None and made.op.name in ops:
                found[name] = made.op.name
    return found


def _described(op: mg.Op) -> dict[str, Any]:
    """Describe an operation; `forms` has its templates by the attributes that are None."""
    optional = [name for name, default in op.defaults.items() if default is None]
    absent = chain.from_iterable(combinations(optional, k) for k in range(len(optional) + 1))
    return {
        "record": op_data(op),
        "inputs": len(op.inputs),
        "attrs": list(op.attrs),
        "defaults": {name: None if x is None else float(x) for name, x in op.defaults.items()},
        "domain": [[one.low, one.high] for one in op.domain],
        "flows": [rule is not None for rule in op.vjp],
        "forms": {",".join(names): _forms(op, frozenset(names)) for names in absent},
        "constants": _by_constants(op),
    }


def _hole(place: int) -> str:
    return chr(HOLES + 8 * place)


def _holes(op: mg.Op) -> list[str]:
    """Return the placeholders of the operands; placeholder 0 stands for the node itself."""
    return [_hole(k + 1) for k in range(len(op.inputs))]


def _forms(op: mg.Op, absent: frozenset[str]) -> dict[str, Any]:
    """Return the templates with attributes in `absent` None; placeholders of others follow the operands'."""
    after = len(op.inputs) + 1
    attrs = {name: None if name in absent else _hole(after + k) for k, name in enumerate(op.attrs)}
    local = [local_derivative(op, slot, _hole(0), _holes(op), attrs) for slot in range(len(op.inputs))]
    whole = written(expression(op, _holes(op), attrs))
    return {"whole": whole, "local": [None if one is None else written(one) for one in local]}


def _by_constants(op: mg.Op) -> list[dict[str, Any]]:
    """Return the derivatives that simplify if an operand is a constant: b − 1 is folded, and branches on its sign are
    taken.

    `sides` are the templates for negative and other constants, with one more placeholder, for the constant plus
    `shift`; `special` are the constants with templates of their own.
    """
    found = []
    slots = range(0 if op.attrs else len(op.inputs))
    for slot, k in ((slot, k) for slot in slots for k in slots if op.vjp[slot] is not None):
        own = written(_with_constant(op, slot, k, None))
        sides = [_general(op, slot, k, x) for x in (-_GENERIC, _GENERIC)]
        special = []
        for x in _SPECIAL:
            generic, made = _GENERIC if x >= 0.0 else -_GENERIC, written(_with_constant(op, slot, k, x))
            shift = sides[x >= 0.0]["shift"]
            like = _replaced(_with_constant(op, slot, k, generic), {generic + shift: x + shift, generic: x})
            if written(like) != made:
                special.append([x, made])
        if special or any(side["form"] != own for side in sides):
            found.append({"slot": slot, "constant": k, "sides": sides, "special": special})
    return found


def _general(op: mg.Op, slot: int, k: int, x: float) -> dict[str, Any]:
    """Return the derivative with placeholders for the constant `x` and for `x` plus `shift`."""
    made = _with_constant(op, slot, k, x)
    others = {*_numbers(made)} - {*_numbers(_with_constant(op, slot, k, None)), x}
    # The remaining constants belong to the formula; a shift is a small integer.
    shifts = [one - x for one in others if abs(one - x) <= 2.0 and (one - x).is_integer()]
    shift = shifts[0] if shifts else 0.0
    holes = {x + shift: _hole(len(op.inputs) + 1), x: _hole(k + 1)}
    return {"form": written(_replaced(made, holes)), "shift": shift}


def _with_constant(op: mg.Op, slot: int, k: int, x: float | None) -> Formula:
    given: Sequence[str | float] = [x if at == k and x is not None else hole for at, hole in enumerate(_holes(op))]
    found = local_derivative(op, slot, _hole(0), given)
    assert found is not None
    return found


def _numbers(formula: Formula) -> Iterator[float]:
    """Yield the constants in a formula."""
    if isinstance(formula.value, float) and formula.op is None:
        yield formula.value
    for one in formula.args:
        yield from _numbers(one)


def _replaced(formula: Formula, by: Mapping[float, str | float]) -> Formula:
    """Replace constants of a formula by names or other constants."""
    if formula.op is None:
        return Formula(by.get(formula.value, formula.value)) if isinstance(formula.value, float) else formula
    return Formula(op=formula.op, args=tuple(_replaced(one, by) for one in formula.args), attrs=formula.attrs)


# --- the page --------------------------------------------------------------------------------------------------------


class Playground(Directive):
    """The container of the playground with its catalogue, and a drawing for browsers without scripts."""

    def run(self) -> list[nodes.Node]:
        a, b, c, d = (mg.Value(x, name) for name, x in {"a": 2.0, "b": -3.0, "c": 0.5, "d": 1.0}.items())
        y = (a + b) * c + d.tanh()
        y.label = "y"
        trace = to_trace(y, namespaces=())
        svg, width, _ = picture(trace)
        data = json.dumps(catalogue(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        safe = data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
        fallback = (
            "<noscript><p>The playground needs JavaScript. This is the graph of "
            f"<code>y = (a + b)*c + tanh(d)</code>:</p><div style='max-width:{width}px'>{svg}</div></noscript>"
        )
        script = f'<script type="application/json" class="minigrad-catalogue">{safe}</script>'
        return [nodes.raw("", f'<div class="minigrad-playground">{fallback}{script}</div>', format="html")]


class Functions(Directive):
    """The list of functions with their parameters."""

    def run(self) -> list[nodes.Node]:
        found, usages = catalogue(), []
        signs = {*found["operators"].values()}
        for name, op in sorted(found["functions"].items()):
            if op not in signs:
                given = ["a", "b", "c"][: found["ops"][op]["inputs"]] + found["ops"][op]["attrs"]
                usages.append(nodes.literal("", f"{name}({', '.join(given)})"))
        parts = [part for usage in usages for part in (usage, nodes.Text(", "))]
        return [nodes.paragraph("", "", *parts[:-1], nodes.Text("."))]


def build(app: Sphinx, config: Any) -> None:
    """Bundle the script into one file, since Chromium loads no modules from file: URLs."""
    if not ESBUILD.is_dir():
        raise ExtensionError("esbuild is not installed, which bundles the playground.\n  Run `make tools`.")
    command = ["node", SOURCES / "build.mjs", BUILT]
    done = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if done.returncode:
        raise ExtensionError(f"esbuild failed to bundle the playground:\n{done.stderr}")


def start(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Load the playground on its page only, after the player that it uses."""
    if '<div class="minigrad-playground"' in context.get("body", ""):
        app.add_js_file("vendor/player.js", loading_method="defer")
        app.add_js_file("vendor/playground.js", loading_method="defer")
        app.add_css_file("playground.css")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("playground", Playground)
    app.add_directive("playground-functions", Functions)
    app.connect("config-inited", build)
    app.connect("html-page-context", start)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
