"""Pages for the operations, one per family, generated from the declarations."""

from __future__ import annotations

import inspect
import re
from functools import cache
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

from docstrings import EMPHASIS
from op_examples import make_example
from op_facts import (
    declaration_comment,
    declaration_lines,
    devices,
    dtype_rule,
    families,
    formula,
    rules,
    sample_intervals,
)
from sphinx.application import Sphinx

import minigrad as mg
from minigrad.core.op import Op
from minigrad.core.storage import DEVICES

__all__ = ["setup"]

PAGES = Path(__file__).resolve().parent.parent / "operations"
MAX_FORMULA_LENGTH = 30  # characters of a formula in the table
ORIGIN_NOTES = {
    "printed": "",
    "rewritten": "Shown in a readable form; the rule that computes is arranged differently or guards corner cases.",
    "stated": "Stated in the declaration, since the rule acts on entire tensors.",
    "adjoint": "Too long to show: the transposed Jacobian times $g$. The declaration has the rule.",
}
INTRO = """\
$y$ is the output of the operation and $g$ its gradient. The last column is the vector-Jacobian product that an
operand receives. Unless noted otherwise, each formula is the gradient rule evaluated on symbols.
"""
TITLES = {
    "activation": "Activations",
    "attention": "Softmax and attention",
    "bits": "Bits",
    "conv": "Convolution",
    "elementwise": "Elementwise",
    "indexing": "Indexing",
    "linalg": "Linear algebra",
    "loss": "Losses",
    "normalization": "Normalisation and dropout",
    "optim": "Optimizer steps",
    "pool": "Pooling and resizing",
    "random": "Random numbers",
    "recurrent": "Sequences of recurrent layers",
    "reduce": "Reductions",
    "sampling": "Grid sampling",
    "shape": "Shapes and dtypes",
    "sorting": "Sorting",
}
INDEX_INTRO = """\
# Operations

The {count} operations that all functions are composed of. Each is declared once, in `minigrad/ops/`, with a formula and
a gradient rule (vector-Jacobian product) for each operand. `minigrad ops` prints this table in a terminal. Lessons
[2](../lessons/02_the_chain_rule.ipynb) and [7](../lessons/07_gradient_rules.ipynb) teach gradient rules.

```{{py:module}} minigrad.ops
```

*Gradient of* lists the operands that receive a gradient. *Kernels* lists the devices that have a kernel: `python` for
floats and Values, {tensors} for tensors; "all" means all of these, "tensors" all but `python`.
[Add an operation](../how/add_an_operation.md) explains how to declare your own.

```{{toctree}}
:maxdepth: 1
:hidden:

{pages}
```

"""


def write_pages(app: Sphinx, config: Any) -> None:
    """Write all pages, except unchanged ones, which Sphinx would otherwise reread."""
    PAGES.mkdir(exist_ok=True)
    by_family = families()
    _write_if_changed("index.md", index_page(by_family))
    for name, (family, family_ops) in by_family.items():
        _write_if_changed(f"{name}.md", family_page(name, family, family_ops))


def _write_if_changed(name: str, text: str) -> None:
    path = PAGES / name
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


# --- the table -------------------------------------------------------------------------------------------------------


def index_page(by_family: dict[str, tuple[ModuleType, list[Op]]]) -> str:
    """Return the page with the table of all operations."""
    count = sum(len(family_ops) for _, family_ops in by_family.values())
    rows = [["operation", "computes", "gradient of", "kernels", "family"]]
    for name, (_, family_ops) in by_family.items():
        for op in family_ops:
            with_gradient = ", ".join(rule.operand for rule in rules(op) if rule.origin) or "–"
            latex = formula(op)
            short = f"${_escape_latex(latex)}$" if len(_COMMAND.sub("", latex)) <= MAX_FORMULA_LENGTH else "…"
            rows.append([f"[{op.name}]({name}.md#{_slug(op)})", short, with_gradient, _kernel_devices(op), name])
    intro = INDEX_INTRO.format(
        count=count, pages="\n".join(by_family), tensors=", ".join(f"`{name}`" for name in DEVICES)
    )
    return intro + _table(rows, "operations", "auto")


def _kernel_devices(op: Op) -> str:
    """Return the devices that have a kernel, abbreviated."""
    op_devices = devices(op)
    if set(op_devices) >= set(DEVICES):
        return "all" if "python" in op_devices else "tensors"
    return ", ".join(op_devices) or "none"


def _table(rows: list[list[str]], kind: str, widths: str = "") -> str:
    lines = ["```{list-table}", ":header-rows: 1", f":class: {kind}", *([f":widths: {widths}"] if widths else []), ""]
    for row in rows:
        lines += [f"{'  ' if k else '* '}- {cell}" for k, cell in enumerate(row)]
    return "\n".join([*lines, "```", ""])


_COMMAND = re.compile(r"\\[a-zA-Z]+|[{} ]")


def _slug(op: Op) -> str:
    return op.name.replace("_", "-")


def _escape_latex(latex: str) -> str:
    """Escape ``<`` and ``>`` in LaTeX, which HTML would interpret."""
    return latex.replace("<", r"\lt ").replace(">", r"\gt ")


# --- a family --------------------------------------------------------------------------------------------------------


def family_page(name: str, family: ModuleType, family_ops: list[Op]) -> str:
    """Return the page of a family."""
    summary, _, rest = inspect.getdoc(family).partition("\n\n")  # type: ignore[union-attr]
    parts = [
        f"# {TITLES[name]}",
        _to_markdown(summary),
        _to_markdown(rest),
        INTRO if any(op.differentiable for op in family_ops) else "",
    ]
    return "\n\n".join([*filter(None, parts), *(op_section(op, family) for op in family_ops)]) + "\n"


def op_section(op: Op, family: ModuleType) -> str:
    """Return the section of an operation."""
    parts = [
        f"## {op.name}",
        f"```{{py:function}} {op.name}{inspect.signature(op)}\n:module: minigrad.ops\n:no-contents-entry:\n```",
        _to_markdown(declaration_comment(family, op)),
        f"$$\ny = {_escape_latex(formula(op))}\n$$",
        _derivative_table(op),
        _fact_list(op),
        _example_section(op),
    ]
    return "\n\n".join(filter(None, parts))


def _derivative_table(op: Op) -> str:
    differentiable = [rule for rule in rules(op) if rule.origin]
    if not differentiable:
        return "It has no derivative." if op.inputs else "It has no operands."
    rows = [["operand", *(["derivative"] if op.domain else []), "receives"]]
    for rule in differentiable:
        derivative = rule.local and rf"$\frac{{\partial y}}{{\partial {rule.operand}}} = {_escape_latex(rule.local)}$"
        rows.append([f"${rule.operand}$", *([derivative] if derivative else []), f"${_escape_latex(rule.product)}$"])
    without_gradient = [f"${rule.operand}$" for rule in rules(op) if not rule.origin]
    notes = [text for text in dict.fromkeys(ORIGIN_NOTES[rule.origin] for rule in differentiable) if text]
    if without_gradient:
        notes.append(
            "No gradient for "
            f"{' and '.join(without_gradient) if len(without_gradient) < 3 else ', '.join(without_gradient)}."
        )
    return "\n\n".join(filter(None, [_table(rows, "derivatives"), " ".join(notes)]))


def _fact_list(op: Op) -> str:
    """List devices, dtypes, tested intervals and functions of an operation."""
    op_devices = devices(op)
    rows = [("Kernels for", ", ".join(op_devices) if op_devices else "none")]
    rows.append(("Dtypes", dtype_rule(op)))
    if op.domain and op.differentiable:
        rows.append(("Tested on", sample_intervals(op)))
    if public := _public_links(op):
        rows.append(("Functions", public))
    return "\n".join(f"- {name}: {text}" for name, text in rows)


def _public_links(op: Op) -> str:
    """Return links to the function and methods with the name of an operation."""
    links = [f"{{py:obj}}`mg.{op.name} <minigrad.{op.name}>`"] if op.name in dir(mg) else []
    links += [f"{{py:obj}}`Tensor.{op.name} <minigrad.Tensor.{op.name}>`"] if hasattr(mg.Tensor, op.name) else []
    links += [f"{{py:obj}}`Value.{op.name} <minigrad.Value.{op.name}>`"] if hasattr(mg.Value, op.name) else []
    return ", ".join(links)


def _example_section(op: Op) -> str:
    op_example = make_example(op)
    if isinstance(op_example, str):
        return f"No graph is drawn: {op_example}" if op.inputs and op.differentiable else ""
    order_note = f"Gradients of every order are supported; this graph was differentiated {op_example.orders}."
    return f"```python\n{op_example.code}\n```\n\n```{{raw}} html\n{op_example.html}\n```\n\n{order_note}"


_CODE = re.compile(r"(``.+?``|`[^`]+`)")
_SPECIAL = re.compile(EMPHASIS + r"|[!-/:-@\[-`{-~]")


def _to_markdown(text: str) -> str:
    """Convert a comment or docstring to Markdown, in which only backticks and *emphasis* are markup."""
    parts = _CODE.split(text)
    return "".join(part if k % 2 else _SPECIAL.sub(_escape, part) for k, part in enumerate(parts))


def _escape(match: re.Match[str]) -> str:
    return match[1] or f"\\{match[0]}"


# --- declarations among the source pages ------------------------------------------------------------------------------


@cache
def _declaring_modules() -> dict[str, str]:
    """Return the module that declares each operation."""
    return {op.name: family.__name__ for family, family_ops in families().values() for op in family_ops}


def module_of(app: Sphinx, module: str, name: str) -> str | None:
    """Return the module that declares the operation `minigrad.ops.name`."""
    return _declaring_modules().get(name) if module == "minigrad.ops" else None


def source_of(app: Sphinx, module: str) -> tuple[str, dict[str, tuple[str, int, int]]] | None:
    """Return the source of a family and the lines of its declarations, as link targets."""
    return _source(module) if module.startswith("minigrad.ops.") else None


@cache
def _source(module: str) -> tuple[str, dict[str, tuple[str, int, int]]]:
    family = import_module(module)
    return inspect.getsource(family), {name: ("def", *lines) for name, lines in declaration_lines(family).items()}


def remove_unread_modules(app: Sphinx) -> list[Any]:
    """Remove modules without source, such as `builtins`, from Sphinx's list of source pages."""
    modules = {name: entry for name, entry in app.env._viewcode_modules.items() if entry}  # type: ignore[attr-defined]
    app.env._viewcode_modules = modules  # type: ignore[attr-defined]
    return []


def add_scripts(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Load the table's filter, and on pages with many players the script that starts them when scrolled into view."""
    if page.startswith("operations/"):
        app.add_js_file("lazy.js", loading_method="defer", priority=400)  # before MathJax and the player's script
    if page == "operations/index":
        app.add_js_file("filter.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    app.setup_extension("sphinx.ext.viewcode")
    app.connect("config-inited", write_pages)
    app.connect("viewcode-follow-imported", module_of)
    app.connect("viewcode-find-source", source_of)
    app.connect("html-collect-pages", remove_unread_modules, priority=400)  # before Sphinx writes the list
    app.connect("html-page-context", add_scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
