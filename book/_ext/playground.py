"""The playground: the catalogue of scalar operations for a page without Python, and its directives.

The catalogue describes each operation in the format of traces: JavaScript for its value and gradient rules
(`serialize_op`), formula templates (`templates`), and the interval for sampling (`domain`). The script is built from
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
from minigrad.backends.formula.printer import HOLES
from minigrad.backends.formula.printer import template as written
from minigrad_viz import to_trace
from minigrad_viz.pictures.svg import render_svg
from minigrad_viz.trace.templates import serialize_op

__all__ = ["catalogue", "setup"]

BOOK = Path(__file__).resolve().parent.parent
SOURCES, BUNDLE = BOOK / "playground", BOOK / "_static" / "vendor" / "playground.js"
ESBUILD = BOOK.parent / "viz" / "frontend" / "node_modules" / "esbuild"

OPERATORS: dict[str, Callable[..., Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "**": operator.pow,
    "neg": operator.neg,
}
_GENERIC_EXPONENT = 7.125  # an exponent that no rule treats specially, and whose shifts equal no other constant
_SPECIAL_CONSTANTS = (0.0, 1.0, -1.0, 2.0, -2.0, 3.0, 0.5, -0.5, 4.0)


# --- the catalogue ---------------------------------------------------------------------------------------------------


def catalogue() -> dict[str, Any]:
    """Return the operations by name, and the functions and operators that call them.

    >>> found = catalogue()
    >>> found["operators"]["**"], found["functions"]["max"], found["ops"]["tanh"]["record"]["js"]
    ('pow', 'maximum', 'Math.tanh(a)')
    """
    ops = {op.name: _describe(op) for op in mg.OPS.values() if _is_supported(op)}
    a, b = mg.Value(0.5), mg.Value(0.25)
    operators = {sign: function(*(a, b)[: 1 if sign == "neg" else 2]).op.name for sign, function in OPERATORS.items()}
    return {"operators": operators, "functions": {**{name: name for name in ops}, **_value_methods(ops)}, "ops": ops}


def _is_supported(op: mg.Op) -> bool:
    """Return whether the playground supports `op`: differentiable, with JavaScript, and not a backward one."""
    return op.differentiable and javascript(op)["js"] is not None and not op.name.endswith("_backward")


def _value_methods(ops: Mapping[str, Any]) -> dict[str, str]:
    """Return the methods of `Value` with another name than the operation that they apply."""
    by_method = {}
    for name in dir(mg.Value):
        if name.startswith("_") or name in ops:
            continue
        a, b = mg.Value(0.5), mg.Value(0.25)
        method = getattr(a, name)
        for arguments in ((), (b,)) if callable(method) else ():
            try:
                result = method(*arguments)
            except (TypeError, mg.errors.MinigradError):
                continue
            if isinstance(result, mg.Value) and result.op is not None and result.op.name in ops:
                by_method[name] = result.op.name
    return by_method


def _describe(op: mg.Op) -> dict[str, Any]:
    """Describe an operation; `forms` has its templates by the attributes that are None."""
    optional = [name for name, default in op.defaults.items() if default is None]
    none_sets = chain.from_iterable(combinations(optional, k) for k in range(len(optional) + 1))
    return {
        "record": serialize_op(op),
        "inputs": len(op.inputs),
        "attrs": list(op.attrs),
        "defaults": {name: None if x is None else float(x) for name, x in op.defaults.items()},
        "domain": [[one.low, one.high] for one in op.domain],
        "flows": [rule is not None for rule in op.vjp],
        "forms": {",".join(names): _templates(op, frozenset(names)) for names in none_sets},
        "constants": _constant_templates(op),
    }


def _placeholder(index: int) -> str:
    return chr(HOLES + 8 * index)


def _placeholders(op: mg.Op) -> list[str]:
    """Return the placeholders of the operands; placeholder 0 stands for the node itself."""
    return [_placeholder(k + 1) for k in range(len(op.inputs))]


def _templates(op: mg.Op, none_attrs: frozenset[str]) -> dict[str, Any]:
    """Return the templates if the attributes in `none_attrs` are None. The placeholders of others follow the
    operands'."""
    first_slot = len(op.inputs) + 1
    attrs = {name: None if name in none_attrs else _placeholder(first_slot + k) for k, name in enumerate(op.attrs)}
    local = [local_derivative(op, slot, _placeholder(0), _placeholders(op), attrs) for slot in range(len(op.inputs))]
    formula = written(expression(op, _placeholders(op), attrs))
    return {"whole": formula, "local": [None if one is None else written(one) for one in local]}


def _constant_templates(op: mg.Op) -> list[dict[str, Any]]:
    """Return the derivatives that simplify if an operand is a constant, since b − 1 is folded and branches on its sign
    are resolved.

    `sides` are the templates for negative and other constants, with one more placeholder, for the constant plus
    `shift`; `exceptions` are the constants with templates of their own.
    """
    cases = []
    slots = range(0 if op.attrs else len(op.inputs))
    for slot, k in ((slot, k) for slot in slots for k in slots if op.vjp[slot] is not None):
        general = written(_derivative_with_constant(op, slot, k, None))
        sides = [_parametrised(op, slot, k, x) for x in (-_GENERIC_EXPONENT, _GENERIC_EXPONENT)]
        exceptions = []
        for x in _SPECIAL_CONSTANTS:
            generic, actual = (
                _GENERIC_EXPONENT if x >= 0.0 else -_GENERIC_EXPONENT,
                written(_derivative_with_constant(op, slot, k, x)),
            )
            shift = sides[x >= 0.0]["shift"]
            substituted = _replace_constants(
                _derivative_with_constant(op, slot, k, generic), {generic + shift: x + shift, generic: x}
            )
            if written(substituted) != actual:
                exceptions.append([x, actual])
        if exceptions or any(side["form"] != general for side in sides):
            cases.append({"slot": slot, "constant": k, "sides": sides, "special": exceptions})
    return cases


def _parametrised(op: mg.Op, slot: int, k: int, x: float) -> dict[str, Any]:
    """Return the derivative with placeholders for the constant `x` and for `x` plus `shift`."""
    derivative = _derivative_with_constant(op, slot, k, x)
    constants = {*_constants(derivative)} - {*_constants(_derivative_with_constant(op, slot, k, None)), x}
    # The remaining constants belong to the formula; a shift is a small integer.
    shifts = [one - x for one in constants if abs(one - x) <= 2.0 and (one - x).is_integer()]
    shift = shifts[0] if shifts else 0.0
    placeholders = {x + shift: _placeholder(len(op.inputs) + 1), x: _placeholder(k + 1)}
    return {"form": written(_replace_constants(derivative, placeholders)), "shift": shift}


def _derivative_with_constant(op: mg.Op, slot: int, k: int, x: float | None) -> Formula:
    operands: Sequence[str | float] = [
        x if at == k and x is not None else hole for at, hole in enumerate(_placeholders(op))
    ]
    derivative = local_derivative(op, slot, _placeholder(0), operands)
    assert derivative is not None
    return derivative


def _constants(formula: Formula) -> Iterator[float]:
    """Yield the constants in a formula."""
    if isinstance(formula.value, float) and formula.op is None:
        yield formula.value
    for one in formula.args:
        yield from _constants(one)


def _replace_constants(formula: Formula, mapping: Mapping[float, str | float]) -> Formula:
    """Replace constants of a formula by names or other constants."""
    if formula.op is None:
        return Formula(mapping.get(formula.value, formula.value)) if isinstance(formula.value, float) else formula
    return Formula(
        op=formula.op, args=tuple(_replace_constants(one, mapping) for one in formula.args), attrs=formula.attrs
    )


# --- the page --------------------------------------------------------------------------------------------------------


class PlaygroundDirective(Directive):
    """The container of the playground with its catalogue, and a drawing for browsers without scripts."""

    def run(self) -> list[nodes.Node]:
        a, b, c, d = (mg.Value(x, name) for name, x in {"a": 2.0, "b": -3.0, "c": 0.5, "d": 1.0}.items())
        y = (a + b) * c + d.tanh()
        y.label = "y"
        trace = to_trace(y, namespaces=())
        svg, width, _ = render_svg(trace)
        data = json.dumps(catalogue(), ensure_ascii=False, allow_nan=False, separators=(",", ":"))
        safe = data.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
        fallback = (
            "<noscript><p>The playground needs JavaScript. This is the graph of "
            f"<code>y = (a + b)*c + tanh(d)</code>:</p><div style='max-width:{width}px'>{svg}</div></noscript>"
        )
        script = f'<script type="application/json" class="minigrad-catalogue">{safe}</script>'
        return [nodes.raw("", f'<div class="minigrad-playground">{fallback}{script}</div>', format="html")]


class FunctionListDirective(Directive):
    """The list of functions with their parameters."""

    def run(self) -> list[nodes.Node]:
        entries, usages = catalogue(), []
        operators = {*entries["operators"].values()}
        for name, op in sorted(entries["functions"].items()):
            if op not in operators:
                parameters = ["a", "b", "c"][: entries["ops"][op]["inputs"]] + entries["ops"][op]["attrs"]
                usages.append(nodes.literal("", f"{name}({', '.join(parameters)})"))
        parts = [part for usage in usages for part in (usage, nodes.Text(", "))]
        return [nodes.paragraph("", "", *parts[:-1], nodes.Text("."))]


def build_script(app: Sphinx, config: Any) -> None:
    """Bundle the script into one file, since Chromium loads no modules from file: URLs."""
    if not ESBUILD.is_dir():
        raise ExtensionError("esbuild is not installed, which bundles the playground.\n  Run `make tools`.")
    command = ["node", SOURCES / "build.mjs", BUNDLE]
    process = subprocess.run(command, capture_output=True, encoding="utf-8", check=False)
    if process.returncode:
        raise ExtensionError(f"esbuild failed to bundle the playground:\n{process.stderr}")


def add_scripts(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Load the playground on its page only, after the player that it uses."""
    if '<div class="minigrad-playground"' in context.get("body", ""):
        app.add_js_file("vendor/player.js", loading_method="defer")
        app.add_js_file("vendor/playground.js", loading_method="defer")
        app.add_css_file("playground.css")


def setup(app: Sphinx) -> dict[str, bool]:
    app.add_directive("playground", PlaygroundDirective)
    app.add_directive("playground-functions", FunctionListDirective)
    app.connect("config-inited", build_script)
    app.connect("html-page-context", add_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
