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

__all__ = ["FIRST", "arrows", "graph", "picture", "room_of", "setup"]

Imports = Mapping[str, frozenset[str]]

HOUSE = Path(__file__).resolve().parents[2] / "minigrad"
VIEWER = HOUSE.parent / "viz" / "minigrad_viz"
FIRST = "minigrad"  # the label of __init__.py
HIGH, LETTER, AROUND = 28.0, 7.3, 20.0  # height of a box, width of a letter, padding
BLOCKS = ("body", "handlers", "cases", "orelse", "finalbody")  # of a statement
GAP_Y, GAP_X = 34.0, 9.0  # between boxes
ALT = (
    "The subpackages of minigrad in layers, with an arrow from each down to those that it imports. At the bottom are "
    "the engine and the kernels; then operations, functions, autograd and optimizers; at the top training, lessons, "
    "the command line and the viewer."
)


def room_of(path: Path) -> str:
    """Return the subpackage of a file: its first folder below minigrad, for a backend the second one, too."""
    if VIEWER in path.parents:
        return "minigrad_viz"
    parts = path.relative_to(HOUSE).with_suffix("").parts
    if parts[0] == "backends" and len(parts) > 1:
        return ".".join(parts[:2])
    return FIRST if parts == ("__init__",) else parts[0]


def _imported(path: Path) -> set[str]:
    """Return the qualified names that a file imports from minigrad at run time."""
    found = set()
    for node in _statements(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            found |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return {name for name in found if name.split(".")[0] in ("minigrad", "minigrad_viz")}


def _statements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield each statement, including nested ones, outside `if TYPE_CHECKING`."""
    yield node
    checked = isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING"
    for block in ("handlers", "cases", "orelse", "finalbody") if checked else BLOCKS:
        for one in getattr(node, block, ()):
            yield from _statements(one)


@cache
def graph() -> Imports:
    """Return the subpackages with those that each imports."""
    files = sorted([*HOUSE.rglob("*.py"), *VIEWER.rglob("*.py")])
    rooms = {room_of(path) for path in files} - {"backends.__init__"}
    found: dict[str, set[str]] = {room: set() for room in sorted(rooms)}
    for path in files:
        if (room := room_of(path)) in rooms:
            found[room] |= {_room_named(name, rooms) for name in _imported(path)} - {room, ""}
    return {room: frozenset(imported) for room, imported in found.items()}


def _room_named(name: str, rooms: set[str]) -> str:
    """Return the subpackage of a qualified name, `minigrad` for ``minigrad.Value``, "" for a name in a stub."""
    first, *rest = name.split(".")
    if first == "minigrad_viz":
        return first
    named = ".".join(rest[:2]) if rest[:1] == ["backends"] else "".join(rest[:1])
    return named if named in rooms else FIRST if len(rest) < 2 else ""


def arrows(imports: Imports) -> list[tuple[str, str]]:
    """Return (importer, imported) pairs without transitive ones."""
    below: dict[str, set[str]] = {}
    for room in _upwards(imports):
        below[room] = set().union(imports[room], *(below[other] for other in imports[room]))
    return [
        (room, other)
        for room in sorted(imports)
        for other in sorted(imports[room])
        if not any(other in below[between] for between in imports[room])
    ]


def _upwards(imports: Imports) -> list[str]:
    """Return the subpackages in topological order, imported ones first. Raises ValueError for a cycle."""
    left, order = dict(imports), list[str]()
    while left:
        ready = sorted(room for room, imported in left.items() if not imported & left.keys())
        if not ready:
            raise ValueError(f"import cycle among {sorted(left)}")
        order += ready
        for room in ready:
            del left[room]
    return order


# --- the picture -----------------------------------------------------------------------------------------------------


def _kind(room: str) -> str:
    """Return the colour class of a subpackage."""
    if room.startswith("backends"):
        return "kernels"
    return "top" if room in ("cli", "__main__", "minigrad_viz", FIRST) else "plain"


def _label(room: str) -> str:
    return room.removeprefix("backends.")


def _wide(room: str) -> float:
    return LETTER * len(_label(room)) + AROUND


def placed(imports: Imports) -> tuple[list[str], list[tuple[str, str]], Layout]:
    """Return subpackages, arrows and their layout, in which x is the vertical axis."""
    order, drawn = _upwards(imports), arrows(imports)
    number = {room: k for k, room in enumerate(order)}
    drawn.sort(key=lambda pair: (number[pair[0]], number[pair[1]]))
    sizes = [(HIGH, _wide(room)) for room in order]
    edges = [(number[imported], number[room]) for room, imported in drawn]
    return order, drawn, layout(sizes, edges, gap_x=GAP_Y, gap_y=GAP_X)


def picture(imports: Imports) -> str:
    """Return the figure as SVG that follows the theme of the page."""
    order, drawn, places = placed(imports)
    wide, high = places.height + 2, places.width + 2
    parts = []
    for (room, other), route in zip(drawn, places.routes, strict=True):
        points = [(y + 1, places.width - x + 1) for x, y in reversed(route)]
        parts.append(f'<path data-from="{room}" data-to="{other}" d="{_curve(points)}"/>')
    for room, (x, y) in zip(order, places.centers, strict=True):
        middle, top, width = y + 1, places.width - x - HIGH / 2 + 1, _wide(room)
        said = f"{room} imports {', '.join(sorted(imports[room])) or 'nothing from minigrad'}"
        parts.append(
            f'<g class="{_kind(room)}" data-room="{room}"><title>{escape(said)}</title>'
            f'<rect x="{middle - width / 2:.1f}" y="{top:.1f}" width="{width:.1f}" height="{HIGH:.0f}" rx="6"/>'
            f'<text x="{middle:.1f}" y="{top + HIGH / 2 + 4.5:.1f}">{_label(room)}</text></g>'
        )
    box = f'viewBox="0 0 {wide:.0f} {high:.0f}" width="{wide:.0f}" height="{high:.0f}"'
    return f'<svg role="img" aria-label="{escape(ALT)}" {box}>{"".join(parts)}</svg>'


def _curve(points: list[tuple[float, float]]) -> str:
    """Return the path of a curve through points, vertical at each of them."""
    (x, y), text = points[0], ""
    text = f"M{x:.1f},{y:.1f}"
    for (x, y), (to_x, to_y) in pairwise(points):
        middle = (y + to_y) / 2
        straight = abs(x - to_x) < 0.05 or abs(y - to_y) < 0.05
        text += (
            f"L{to_x:.1f},{to_y:.1f}"
            if straight
            else f"C{x:.1f},{middle:.1f} {to_x:.1f},{middle:.1f} {to_x:.1f},{to_y:.1f}"
        )
    return text


def _colours(names: Mapping[str, str]) -> str:
    pairs = {"plain": ("op", "on-op"), "kernels": ("wash", "ink"), "top": ("leaf", "on-leaf")}
    rules = [f"--{kind}:{names[fill]};--on-{kind}:{names[ink]}" for kind, (fill, ink) in pairs.items()]
    return ";".join([*rules, f"--line:{names['line']};--rim:{names['backward']}"])


def stylesheet() -> str:
    """Return the CSS of the figure: colours in both themes, and scrolling on narrow screens."""
    kinds = ("plain", "kernels", "top")
    boxes = "".join(
        f".rooms .{kind} rect{{fill:var(--{kind})}}.rooms .{kind} text{{fill:var(--on-{kind})}}" for kind in kinds
    )
    return (
        f".rooms{{margin:1.5rem 0;overflow-x:auto;{_colours(LIGHT)}}}html[data-theme=dark] .rooms{{{_colours(DARK)}}}"
        ".rooms svg{display:block;margin:auto;min-width:40rem;max-width:100%;height:auto}"
        ".rooms text{font-size:13px;text-anchor:middle;font-family:var(--pst-font-family-base)}"
        f".rooms path{{fill:none;stroke:var(--line);stroke-width:1.2}}{boxes}.rooms .kernels rect{{stroke:var(--rim)}}"
    )


class RoomsDirective(SphinxDirective):
    """``{rooms}``: the figure."""

    def run(self) -> list[nodes.Node]:
        _depend(self)
        box = '<div class="rooms" tabindex="0" role="group" aria-label="Import graph">'
        return [nodes.raw("", f"<style>{stylesheet()}</style>{box}{picture(graph())}</div>", format="html")]


class RoomsTableDirective(SphinxDirective):
    """``{rooms-table}``: every subpackage with its imports and importers, including transitive ones."""

    def run(self) -> list[nodes.Node]:
        _depend(self)
        imports = graph()
        users = {room: sorted(other for other in imports if room in imports[other]) for room in imports}
        rows = [(room, sorted(imports[room]), users[room]) for room in reversed(_upwards(imports))]
        return [_table(("subpackage", "imports", "imported by"), rows)]


def _depend(directive: SphinxDirective) -> None:
    """Rebuild the page when a module changes."""
    for path in [*HOUSE.rglob("*.py"), *VIEWER.rglob("*.py"), Path(__file__)]:
        directive.env.note_dependency(str(path))


def _table(head: Iterable[str], rows: Iterable[tuple[str, list[str], list[str]]]) -> nodes.table:
    group = nodes.tgroup("", *(nodes.colspec(colwidth=width) for width in (20, 45, 35)), cols=3)
    group += nodes.thead("", nodes.row("", *(nodes.entry("", nodes.paragraph(text=text)) for text in head)))
    body = nodes.tbody()
    for room, *lists in rows:
        entries = [nodes.entry("", nodes.paragraph("", "", nodes.literal(text=room)))]
        entries += [nodes.entry("", nodes.paragraph(text=", ".join(names) or "–")) for names in lists]
        body += nodes.row("", *entries)
    group += body
    return nodes.table("", group, classes=["rooms-table"])


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("rooms", RoomsDirective)
    app.add_directive("rooms-table", RoomsTableDirective)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
