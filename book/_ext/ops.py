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
from op_examples import example
from op_facts import declared, devices, families, formula, note, rules, sampled, types
from sphinx.application import Sphinx

import minigrad as mg
from minigrad.core.op import Op
from minigrad.core.storage import DEVICES

__all__ = ["setup"]

PAGES = Path(__file__).resolve().parent.parent / "operations"
LONGEST = 30  # characters of a formula in the table
HOW = {
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
    "reduce": "Reductions",
    "sampling": "Grid sampling",
    "shape": "Shapes and dtypes",
    "sorting": "Sorting",
}
FIRST = """\
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


def write(app: Sphinx, config: Any) -> None:
    """Write all pages, except unchanged ones, which Sphinx would otherwise reread."""
    PAGES.mkdir(exist_ok=True)
    found = families()
    _put("index.md", index(found))
    for name, (family, own) in found.items():
        _put(f"{name}.md", page(name, family, own))


def _put(name: str, text: str) -> None:
    path = PAGES / name
    if not path.exists() or path.read_text(encoding="utf-8") != text:
        path.write_text(text, encoding="utf-8")


# --- the table -------------------------------------------------------------------------------------------------------


def index(found: dict[str, tuple[ModuleType, list[Op]]]) -> str:
    """Return the page with the table of all operations."""
    count = sum(len(own) for _, own in found.values())
    rows = [["operation", "computes", "gradient of", "kernels", "family"]]
    for name, (_, own) in found.items():
        for op in own:
            free = ", ".join(rule.operand for rule in rules(op) if rule.how) or "–"
            latex = formula(op)
            short = f"${_set(latex)}$" if len(_COMMAND.sub("", latex)) <= LONGEST else "…"
            rows.append([f"[{op.name}]({name}.md#{_slug(op)})", short, free, _places(op), name])
    said = FIRST.format(count=count, pages="\n".join(found), tensors=", ".join(f"`{name}`" for name in DEVICES))
    return said + _table(rows, "operations", "auto")


def _places(op: Op) -> str:
    """Return the devices that have a kernel, abbreviated."""
    found = devices(op)
    if set(found) >= set(DEVICES):
        return "all" if "python" in found else "tensors"
    return ", ".join(found) or "none"


def _table(rows: list[list[str]], kind: str, widths: str = "") -> str:
    lines = ["```{list-table}", ":header-rows: 1", f":class: {kind}", *([f":widths: {widths}"] if widths else []), ""]
    for row in rows:
        lines += [f"{'  ' if k else '* '}- {cell}" for k, cell in enumerate(row)]
    return "\n".join([*lines, "```", ""])


_COMMAND = re.compile(r"\\[a-zA-Z]+|[{} ]")


def _slug(op: Op) -> str:
    return op.name.replace("_", "-")


def _set(latex: str) -> str:
    """Escape ``<`` and ``>`` in LaTeX, which HTML would interpret."""
    return latex.replace("<", r"\lt ").replace(">", r"\gt ")


# --- a family --------------------------------------------------------------------------------------------------------


def page(name: str, family: ModuleType, own: list[Op]) -> str:
    """Return the page of a family."""
    first, _, rest = inspect.getdoc(family).partition("\n\n")  # type: ignore[union-attr]
    parts = [
        f"# {TITLES[name]}",
        _prose(first),
        _prose(rest),
        INTRO if any(op.differentiable for op in own) else "",
    ]
    return "\n\n".join([*filter(None, parts), *(section(op, family) for op in own)]) + "\n"


def section(op: Op, family: ModuleType) -> str:
    """Return the section of an operation."""
    parts = [
        f"## {op.name}",
        f"```{{py:function}} {op.name}{inspect.signature(op)}\n:module: minigrad.ops\n:no-contents-entry:\n```",
        _prose(note(family, op)),
        f"$$\ny = {_set(formula(op))}\n$$",
        _derivatives(op),
        _facts(op),
        _graph(op),
    ]
    return "\n\n".join(filter(None, parts))


def _derivatives(op: Op) -> str:
    found = [rule for rule in rules(op) if rule.how]
    if not found:
        return "It has no derivative." if op.inputs else "It has no operands."
    rows = [["operand", *(["derivative"] if op.domain else []), "receives"]]
    for rule in found:
        alone = rule.local and rf"$\frac{{\partial y}}{{\partial {rule.operand}}} = {_set(rule.local)}$"
        rows.append([f"${rule.operand}$", *([alone] if alone else []), f"${_set(rule.product)}$"])
    none = [f"${rule.operand}$" for rule in rules(op) if not rule.how]
    said = [text for text in dict.fromkeys(HOW[rule.how] for rule in found) if text]
    if none:
        said.append(f"No gradient for {' and '.join(none) if len(none) < 3 else ', '.join(none)}.")
    return "\n\n".join(filter(None, [_table(rows, "derivatives"), " ".join(said)]))


def _facts(op: Op) -> str:
    """List devices, dtypes, tested intervals and functions of an operation."""
    places = devices(op)
    rows = [("Kernels for", ", ".join(places) if places else "none")]
    rows.append(("Dtypes", types(op)))
    if op.domain and op.differentiable:
        rows.append(("Tested on", sampled(op)))
    if public := _public(op):
        rows.append(("Functions", public))
    return "\n".join(f"- {name}: {text}" for name, text in rows)


def _public(op: Op) -> str:
    """Return links to the function and methods with the name of an operation."""
    found = [f"{{py:obj}}`mg.{op.name} <minigrad.{op.name}>`"] if op.name in dir(mg) else []
    found += [f"{{py:obj}}`Tensor.{op.name} <minigrad.Tensor.{op.name}>`"] if hasattr(mg.Tensor, op.name) else []
    found += [f"{{py:obj}}`Value.{op.name} <minigrad.Value.{op.name}>`"] if hasattr(mg.Value, op.name) else []
    return ", ".join(found)


def _graph(op: Op) -> str:
    found = example(op)
    if isinstance(found, str):
        return f"No graph is drawn: {found}" if op.inputs and op.differentiable else ""
    tried = f"Gradients of every order are supported; this graph was differentiated {found.orders}."
    return f"```python\n{found.code}\n```\n\n```{{raw}} html\n{found.html}\n```\n\n{tried}"


_CODE = re.compile(r"(``.+?``|`[^`]+`)")
_SPECIAL = re.compile(EMPHASIS + r"|[!-/:-@\[-`{-~]")


def _prose(text: str) -> str:
    """Convert a comment or docstring to Markdown, in which only backticks and *emphasis* are markup."""
    parts = _CODE.split(text)
    return "".join(part if k % 2 else _SPECIAL.sub(_escaped, part) for k, part in enumerate(parts))


def _escaped(found: re.Match[str]) -> str:
    return found[1] or f"\\{found[0]}"


# --- declarations among the source pages ------------------------------------------------------------------------------


@cache
def _homes() -> dict[str, str]:
    """Return the module that declares each operation."""
    return {op.name: family.__name__ for family, own in families().values() for op in own}


def module_of(app: Sphinx, module: str, name: str) -> str | None:
    """Return the module that declares the operation `minigrad.ops.name`."""
    return _homes().get(name) if module == "minigrad.ops" else None


def source_of(app: Sphinx, module: str) -> tuple[str, dict[str, tuple[str, int, int]]] | None:
    """Return the source of a family and the lines of its declarations, as link targets."""
    return _source(module) if module.startswith("minigrad.ops.") else None


@cache
def _source(module: str) -> tuple[str, dict[str, tuple[str, int, int]]]:
    family = import_module(module)
    return inspect.getsource(family), {name: ("def", *lines) for name, lines in declared(family).items()}


def without_unread(app: Sphinx) -> list[Any]:
    """Remove modules without source, such as `builtins`, from Sphinx's list of source pages."""
    read = {name: entry for name, entry in app.env._viewcode_modules.items() if entry}  # type: ignore[attr-defined]
    app.env._viewcode_modules = read  # type: ignore[attr-defined]
    return []


def scripts(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Load the table's filter, and on pages with many players the script that starts them when scrolled into view."""
    if page.startswith("operations/"):
        app.add_js_file("lazy.js", loading_method="defer", priority=400)  # before MathJax and the player's script
    if page == "operations/index":
        app.add_js_file("filter.js", loading_method="defer")


def setup(app: Sphinx) -> dict[str, bool]:
    app.setup_extension("sphinx.ext.viewcode")
    app.connect("config-inited", write)
    app.connect("viewcode-follow-imported", module_of)
    app.connect("viewcode-find-source", source_of)
    app.connect("html-collect-pages", without_unread, priority=400)  # before Sphinx writes the list
    app.connect("html-page-context", scripts)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
