"""The import graph of minigrad's subpackages, read from the code at build time: a figure and a table.

The viewer's layered layout places the boxes: it needs no dependency and is deterministic. Its columns become rows here,
so that arrows point down.
"""

from __future__ import annotations

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from html import escape
from itertools import pairwise
from pathlib import Path
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

from minigrad_viz.layout import Layout, layout
from minigrad_viz.pictures.palette import DARK, LIGHT

__all__ = ["ROOT_LABEL", "direct_imports", "import_graph", "render_svg", "setup", "subpackage_of"]

Imports = Mapping[str, frozenset[str]]

PACKAGE = Path(__file__).resolve().parents[2] / "minigrad"
VIEWER = PACKAGE.parent / "viz" / "minigrad_viz"
ROOT_LABEL = "minigrad"  # the label of __init__.py
BOX_HEIGHT, CHAR_WIDTH, PADDING = 28.0, 7.3, 20.0  # height of a box, width of a letter, padding
BLOCKS = ("body", "handlers", "cases", "orelse", "finalbody")  # of a statement
GAP_Y, GAP_X = 34.0, 9.0  # between boxes
ALT = (
    "The subpackages of minigrad in layers, with an arrow from each down to those that it imports. At the bottom are "
    "the engine and the kernels; then operations, functions, autograd and optimizers; at the top training, lessons, "
    "the command line and the viewer."
)


def subpackage_of(path: Path) -> str:
    """Return the subpackage of a file: the first folder below minigrad, or the first two for a backend."""
    if VIEWER in path.parents:
        return "minigrad_viz"
    parts = path.relative_to(PACKAGE).with_suffix("").parts
    if parts[0] == "backends" and len(parts) > 1:
        return ".".join(parts[:2])
    return ROOT_LABEL if parts == ("__init__",) else parts[0]


def _imported_names(path: Path) -> set[str]:
    """Return the qualified names that a file imports from minigrad at run time."""
    names = set()
    for node in _iter_statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in names if name.split(".")[0] in ("minigrad", "minigrad_viz")}


def _iter_statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield each statement, including nested ones, outside `if TYPE_CHECKING`."""
    yield node
    is_type_checking = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    for block in ("handlers", "cases", "orelse", "finalbody") if is_type_checking else BLOCKS:
        for child in getattr(node, block, ()):
            yield from _iter_statements(child)


@cache
def import_graph() -> Imports:
    """Return a mapping from each subpackage to those that it imports."""
    files = sorted([*PACKAGE.rglob("*.py"), *VIEWER.rglob("*.py")])
    subpackages = {subpackage_of(path) for path in files} - {"backends.__init__"}
    imports: dict[str, set[str]] = {subpackage: set() for subpackage in sorted(subpackages)}
    for path in files:
        if (importer := subpackage_of(path)) in subpackages:
            imported = {_subpackage_of_name(name, subpackages) for name in _imported_names(path)}
            imports[importer] |= imported - {importer, ""}
    return {importer: frozenset(imported) for importer, imported in imports.items()}


def _subpackage_of_name(name: str, subpackages: set[str]) -> str:
    """Return the subpackage of a qualified name, `minigrad` for ``minigrad.Value``, "" for a name in a stub."""
    first, *rest = name.split(".")
    if first == "minigrad_viz":
        return first
    candidate = ".".join(rest[:2]) if rest[:1] == ["backends"] else "".join(rest[:1])
    return candidate if candidate in subpackages else ROOT_LABEL if len(rest) < 2 else ""


def direct_imports(imports: Imports) -> list[tuple[str, str]]:
    """Return (importer, imported) pairs without transitive ones."""
    reachable: dict[str, set[str]] = {}
    for importer in _topological_order(imports):
        reachable[importer] = set().union(imports[importer], *(reachable[imported] for imported in imports[importer]))
    return [
        (name, other)
        for name in sorted(imports)
        for other in sorted(imports[name])
        if not any(other in reachable[middle] for middle in imports[name])
    ]


def _topological_order(imports: Imports) -> list[str]:
    """Return the subpackages in topological order, imported ones first. Raises ValueError for a cycle."""
    remaining, order = dict(imports), list[str]()
    while remaining:
        ready = sorted(name for name, imported in remaining.items() if not imported & remaining.keys())
        if not ready:
            raise ValueError(f"import cycle among {sorted(remaining)}")
        order += ready
        for name in ready:
            del remaining[name]
    return order


# --- the picture -----------------------------------------------------------------------------------------------------


def _color_class(subpackage: str) -> str:
    """Return the colour class of a subpackage."""
    if subpackage.startswith("backends"):
        return "kernels"
    return "top" if subpackage in ("cli", "__main__", "minigrad_viz", ROOT_LABEL) else "plain"


def _label(subpackage: str) -> str:
    return subpackage.removeprefix("backends.")


def _box_width(subpackage: str) -> float:
    return CHAR_WIDTH * len(_label(subpackage)) + PADDING


def layout_graph(imports: Imports) -> tuple[list[str], list[tuple[str, str]], Layout]:
    """Return subpackages, arrows and their layout, in which x is the vertical axis."""
    order, edges_drawn = _topological_order(imports), direct_imports(imports)
    index = {name: k for k, name in enumerate(order)}
    edges_drawn.sort(key=lambda pair: (index[pair[0]], index[pair[1]]))
    sizes = [(BOX_HEIGHT, _box_width(name)) for name in order]
    edges = [(index[imported], index[name]) for name, imported in edges_drawn]
    return order, edges_drawn, layout(sizes, edges, gap_x=GAP_Y, gap_y=GAP_X)


def render_svg(imports: Imports) -> str:
    """Return the figure as SVG that follows the theme of the page."""
    order, edges, positions = layout_graph(imports)
    width_total, height_total = positions.height + 2, positions.width + 2
    parts = []
    for (subpackage, other), route in zip(edges, positions.routes, strict=True):
        points = [(y + 1, positions.width - x + 1) for x, y in reversed(route)]
        parts.append(f'<path data-from="{subpackage}" data-to="{other}" d="{_path_data(points)}"/>')
    for subpackage, (x, y) in zip(order, positions.centers, strict=True):
        center_x, top, width = y + 1, positions.width - x - BOX_HEIGHT / 2 + 1, _box_width(subpackage)
        tooltip = f"{subpackage} imports {', '.join(sorted(imports[subpackage])) or 'nothing from minigrad'}"
        parts.append(
            f'<g class="{_color_class(subpackage)}" data-subpackage="{subpackage}"><title>{escape(tooltip)}</title>'
            f'<rect x="{center_x - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}" height="{BOX_HEIGHT:.0f}" rx="6"/>'
            f'<text x="{center_x:.1f}" y="{top + BOX_HEIGHT / 2 + 4.5:.1f}">{_label(subpackage)}</text></g>'
        )
    box = f'viewBox="0 0 {width_total:.0f} {height_total:.0f}" width="{width_total:.0f}" height="{height_total:.0f}"'
    return f'<svg role="img" aria-label="{escape(ALT)}" {box}>{"".join(parts)}</svg>'


def _path_data(points: list[tuple[float, float]]) -> str:
    """Return the path of a curve through points, vertical at each of them."""
    (x, y), text = points[0], ""
    text = f"M{x:.1f},{y:.1f}"
    for (x, y), (to_x, to_y) in pairwise(points):
        middle = (y + to_y) / 2
        is_straight = abs(x - to_x) < 0.05 or abs(y - to_y) < 0.05
        text += (
            f"L{to_x:.1f},{to_y:.1f}"
            if is_straight
            else f"C{x:.1f},{middle:.1f} {to_x:.1f},{middle:.1f} {to_x:.1f},{to_y:.1f}"
        )
    return text


def _color_rules(names: Mapping[str, str]) -> str:
    pairs = {"plain": ("op", "on-op"), "kernels": ("wash", "ink"), "top": ("leaf", "on-leaf")}
    rules = [f"--{kind}:{names[fill]};--on-{kind}:{names[ink]}" for kind, (fill, ink) in pairs.items()]
    return ";".join([*rules, f"--line:{names['line']};--rim:{names['backward']}"])


def stylesheet() -> str:
    """Return the CSS of the figure: colours in both themes, and scrolling on narrow screens."""
    kinds = ("plain", "kernels", "top")
    boxes = "".join(
        f".import-graph .{kind} rect{{fill:var(--{kind})}}.import-graph .{kind} text{{fill:var(--on-{kind})}}"
        for kind in kinds
    )
    return (
        f".import-graph{{margin:1.5rem 0;overflow-x:auto;{_color_rules(LIGHT)}}}html[data-theme=dark] "
        f".import-graph{{{_color_rules(DARK)}}}"
        ".import-graph svg{display:block;margin:auto;min-width:40rem;max-width:100%;height:auto}"
        ".import-graph text{font-size:13px;text-anchor:middle;font-family:var(--pst-font-family-base)}"
        f".import-graph path{{fill:none;stroke:var(--line);stroke-width:1.2}}{boxes}.import-graph .kernels "
        f"rect{{stroke:var(--rim)}}"
    )


class ImportGraphDirective(SphinxDirective):
    """``{import-graph}``: the figure."""

    def run(self) -> list[nodes.Node]:
        _note_dependencies(self)
        box = '<div class="import-graph" tabindex="0" role="group" aria-label="Import graph">'
        return [nodes.raw("", f"<style>{stylesheet()}</style>{box}{render_svg(import_graph())}</div>", format="html")]


class ImportTableDirective(SphinxDirective):
    """``{import-table}``: every subpackage with its imports and importers, including transitive ones."""

    def run(self) -> list[nodes.Node]:
        _note_dependencies(self)
        imports = import_graph()
        importers = {name: sorted(other for other in imports if name in imports[other]) for name in imports}
        rows = [(name, sorted(imports[name]), importers[name]) for name in reversed(_topological_order(imports))]
        return [_table(("subpackage", "imports", "imported by"), rows)]


def _note_dependencies(directive: SphinxDirective) -> None:
    """Rebuild the page when a module changes."""
    for path in [*PACKAGE.rglob("*.py"), *VIEWER.rglob("*.py"), Path(__file__)]:
        directive.env.note_dependency(str(path))


def _table(head: Iterable[str], rows: Iterable[tuple[str, list[str], list[str]]]) -> nodes.table:
    group = nodes.tgroup("", *(nodes.colspec(colwidth=width) for width in (20, 45, 35)), cols=3)
    group += nodes.thead("", nodes.row("", *(nodes.entry("", nodes.paragraph(text=text)) for text in head)))
    body = nodes.tbody()
    for name, *lists in rows:
        entries = [nodes.entry("", nodes.paragraph("", "", nodes.literal(text=name)))]
        entries += [nodes.entry("", nodes.paragraph(text=", ".join(names) or "–")) for names in lists]
        body += nodes.row("", *entries)
    group += body
    return nodes.table("", group, classes=["import-table"])


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("import-graph", ImportGraphDirective)
    app.add_directive("import-table", ImportTableDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
