"""Self-contained HTML: a `page` with the player and tables of all nodes and backward steps, or a notebook `figure`.

Without JavaScript, and in print, a page shows the static drawing in place of the player. `figure` embeds the drawing as
an image, which is displayed even where scripts and inline SVG are stripped.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from minigrad_viz.pictures import heat
from minigrad_viz.pictures.frontend import script
from minigrad_viz.pictures.moments import render_moment
from minigrad_viz.pictures.node_text import format_gradient, format_shape, format_value, has_heatmap
from minigrad_viz.pictures.palette import DARK, FONT, LIGHT, THEMES, Theme
from minigrad_viz.pictures.scene import OVERVIEW_WIDTH
from minigrad_viz.pictures.static_page import image_tag
from minigrad_viz.pictures.svg import Picture
from minigrad_viz.trace import Pass, PassStep, Trace, to_trace
from minigrad_viz.trace.arrays import format_summary, summary
from minigrad_viz.trace.history import Moment
from minigrad_viz.trace.models import initial_state
from minigrad_viz.trace.notation import escape, format_float, format_pretty, local_formula, make_formula, mathml

__all__ = ["figure", "page", "player_state", "to_html"]

_MAX_ROWS = 400  # maximum number of rows of a table; of a longer table the first and last rows are shown
_MAX_EMBEDDED_NODES = 5000  # maximum number of nodes of a trace in a notebook output; larger traces take megabytes
_NODES_PER_TENSOR = 4  # number of nodes to which a tensor is equivalent in size
_MAX_EMBEDDED_LENGTH = 1 << 20  # maximum length, in characters, of an embedded trace
_ZOOMS = (("fit", "Fit"), ("half", "50%"), ("full", "100%"), ("twice", "200%"))


def to_html(x: Any, *more: Any, path: str | os.PathLike[str] | None = None) -> str:
    """Return the graph of `x`, one or several Values, as a self-contained HTML page; also write it to `path`, if given.

    >>> import minigrad as mg
    >>> text = to_html(mg.Value(3.0, "a") * 2)
    >>> text[:15], "http://" in text.replace("http://www.w3.org", "")
    ('<!doctype html>', False)
    """
    text = page(to_trace(x, *more), player_state(x))
    if path is not None:
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    return text


# --- notebooks -------------------------------------------------------------------------------------------------------


def figure(
    trace: Trace,
    state: Mapping[str, Any] | None = None,
    blocks: Collection[int] | None = None,
    moment: Moment | None = None,
) -> str:
    """Return an HTML fragment with the drawing as an image and the trace as data.

    `state` is the initial state of a player, `blocks` are the open blocks, and `moment` is the moment to draw, or None
    for the final state.

    A drawing wider than the page shrinks to at least 60%, at which its labels are still legible, and then scrolls. A
    very wide drawing is shown as an overview whose caption explains how to zoom in.
    """
    svg, width, _ = render_moment(trace, blocks, moment)
    min_width = round(width * 0.6) if width <= OVERVIEW_WIDTH else 900
    alt = " ".join([trace.sentence(), *(note.text for note in trace.notes)])
    image = image_tag(svg, alt, width, f"clamp({min_width}px,100%,{width}px)")
    advice = "An overview: to zoom in, open the page that <code>draw(…).save(&quot;graph.html&quot;)</code> writes."
    caption = f"<figcaption>{advice}</figcaption>" if width > OVERVIEW_WIDTH else ""
    is_embeddable = len(trace.kinds) + (_NODES_PER_TENSOR - 1) * len(trace.tensors) <= _MAX_EMBEDDED_NODES
    data = _trace_script(trace) if is_embeddable else ""
    data = data if len(data) <= _MAX_EMBEDDED_LENGTH else ""
    state_attribute = _state_attribute(trace, state)
    return f'<figure class="minigrad"{state_attribute} style="margin:0;overflow-x:auto">{image}{caption}{data}</figure>'


def _state_attribute(trace: Trace, state: Mapping[str, Any] | None) -> str:
    """Return the HTML attribute with the initial state of the player: that of a model, updated with `state`."""
    state = {**(initial_state(trace) or {}), **(state or {})}
    return f' data-minigrad="{escape(json.dumps(state))}"' if state else ""


def player_state(x: Any) -> dict[str, Any]:
    """Return the initial state of a page's player, which is the state of `x` if it is a player or a drawing, or {}."""
    state = getattr(x, "state", None) if hasattr(x, "trace") else None
    return dict((state() if callable(state) else state) or {})


def _trace_script(trace: Trace, full: bool = False) -> str:
    """Return a script element with the trace, escaped so that user strings cannot close the element."""
    escaped = trace.json(full).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f'<script type="application/json" class="minigrad-trace">{escaped}</script>'


# --- pages -----------------------------------------------------------------------------------------------------------


def page(
    trace: Trace,
    state: Mapping[str, Any] | None = None,
    blocks: Collection[int] | None = None,
    moment: Moment | None = None,
    theme: Theme | None = None,
) -> str:
    """Return the HTML page of a trace.

    `state` is the initial state of its player. The other arguments are those of `render_moment`.
    """
    title = escape(", ".join(trace.title(index) for index in trace.outputs[:3]))
    title = f"A tour of {title} and its gradients" if trace.tours else title
    notes = "".join(f'<p class="note"><b aria-hidden="true">!</b> {escape(note.text)}</p>' for note in trace.notes)
    passes = "".join(_backward_table(trace, run) for run in trace.passes[:5] if run.steps)
    notes += f'<p class="dim">{escape(trace.execution)}</p>' if trace.execution else ""
    data, player_script = _trace_script(trace, full=True), f"<script>\n{script()}</script>"
    tables = _calls_table(trace) if trace.execution else f"{_nodes_table(trace)}\n{passes}"
    picture = _viewport(render_moment(trace, blocks, moment, theme))
    return (
        f'<!doctype html>\n<html lang="en"{f" data-theme={theme}" if theme else ""}><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta name="color-scheme" content="{theme or "light dark"}"><title>{title} · minigrad</title>'
        f"<style>{_css(theme)}</style></head>\n"
        f"<body><header><h1>{title}</h1><p>{escape(trace.sentence())}</p>{notes}</header>\n<main>"
        f'<figure class="minigrad"{_state_attribute(trace, state)}>{picture}{data}</figure>\n'
        f"{tables}</main>\n{player_script}</body></html>\n"
    )


def _viewport(picture: Picture) -> str:
    """Return the drawing in a keyboard-scrollable region with zoom radio buttons, which work without JavaScript."""
    svg, width, _ = picture
    first = "full" if width <= 1150 else "fit"
    zooms = "".join(
        f'<input type="radio" name="zoom" id="{key}"{" checked" if key == first else ""}>'
        f'<label for="{key}">{label}</label>'
        for key, label in _ZOOMS
    )
    sizes = "".join(
        f"#{key}:checked~.view svg{{width:{round(width * scale)}px}}"
        for key, scale in (("half", 0.5), ("full", 1), ("twice", 2))
    )
    return (
        f'<section class="zoom" aria-label="Picture"><style>{sizes}</style><span class="dim">Zoom</span>{zooms}'
        f'<div class="view" tabindex="0" role="region" aria-label="The graph; arrow keys scroll">{svg}</div></section>'
    )


def _shown_indices(count: int) -> Iterator[int | None]:
    """Yield the indices of the rows to show of a table with `count` rows, with None in place of the rows left out."""
    if count <= _MAX_ROWS:
        yield from range(count)
    else:
        yield from range(_MAX_ROWS // 2)
        yield None
        yield from range(count - _MAX_ROWS // 2, count)


def _table(title: str, headers: Sequence[str], rows: list[str]) -> str:
    """Return an HTML table that scrolls horizontally. A header that ends in < denotes a right-aligned column."""
    cells = [f"<th scope='col'{' class=r' if head[-1] == '<' else ''}>{head.rstrip('<')}</th>" for head in headers]
    return (
        f"<div class='wide' tabindex='0' role='region' aria-label='{title}'><table><thead><tr>{''.join(cells)}</tr>"
        f"</thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _table_rows(trace: Trace, make_row: Callable[[Trace, int], str], noun: str) -> list[str]:
    """Return the row of each node, or in a large graph only of the first and last nodes."""
    ellipsis_row = f'<tr><td colspan="6" class="dim">… {len(trace.nodes) - _MAX_ROWS:,} {noun} left out …</td></tr>'
    return [ellipsis_row if index is None else make_row(trace, index) for index in _shown_indices(len(trace.nodes))]


def _calls_table(trace: Trace) -> str:
    """Return the table of the calls of a captured step, in execution order."""
    rows = _table_rows(trace, _call_row, "rows")
    headers = ("#<", "name", "made by", "computes", "kernel", "output", "value<")
    return (
        "<section><h2>Every call</h2><p class='dim'>In execution order. Values are shown if they are still in memory "
        f"after the step.</p>{_table('Table of calls', headers, rows)}</section>"
    )


def _call_row(trace: Trace, index: int) -> str:
    node, formula = trace.nodes[index], trace.formula(index)
    made_by = f'<span class="dim">{node.kind}</span>' if formula is None else mathml(formula)
    shape = "" if node.shape is None else format_shape(node.shape, node.dtype or "")
    value_cell = (
        _tensor_cell(node.array) if node.array is not None else "" if node.value is None else format_pretty(node.value)
    )
    details = "".join(f"<td>{escape(node.attrs.get(name, ''))}</td>" for name in ("computes", "kernel"))
    name = escape(trace.title(index, 60))
    return (
        f"<tr class='{node.kind}'><td class='r dim'>{index}</td><th scope='row'>{name}</th>"
        f"<td>{made_by}</td>{details}<td>{escape(shape)}</td><td class='r fw'>{value_cell}</td></tr>"
    )


def _nodes_table(trace: Trace) -> str:
    rows = _table_rows(trace, _node_row, "nodes")
    headers = ("#<", "name", "made by", *([] if trace.tensors else ["with values"]), "data<", "grad<")
    derivative_note = (
        f": the derivative of {escape(trace.title(trace.outputs[0]))} with respect to the node"
        if trace.is_fresh()
        else ""
    )
    dash_note = "; a dash means not computed yet" if "n" in trace.states else ""
    return (
        "<section><h2>Forward: every value</h2><p class='dim'>In the order in which they were computed. "
        f"The gradient is what <code>.grad</code> holds{derivative_note}{dash_note}.</p>"
        f"{_table('Table of nodes', headers, rows)}</section>"
    )


def _node_row(trace: Trace, index: int) -> str:
    node = trace.nodes[index]
    made_by = with_numbers = ""
    if node.op is not None:
        operands = [trace.values[trace.operand[edge]] for edge in trace.into[index]]
        formula = trace.formula(index)
        made_by = "" if formula is None else mathml(formula)
        values = [x for x in operands if x is not None]
        with_numbers = mathml(make_formula(node.op, values)) if len(values) == len(operands) else ""
    else:
        made_by = f'<span class="dim">{node.kind}</span>'
    name = escape(trace.title(index, 60))
    location = escape(" · ".join(text for text in (node.scope, node.line) if text))
    location_html = f'<br><small class="dim">{location}</small>' if location else ""
    value_cell, grad = (_cell(trace, index, column) for column in (0, 1))
    value_cell = f"<b>!</b> {value_cell}" if node.stale else value_cell
    values_cell = "" if trace.tensors else f"<td>{with_numbers}</td>"
    return (
        f"<tr class='{node.kind}'><td class='r dim'>{index}</td><th "
        f"scope='row'>{name}{location_html}</th><td>{made_by}</td>"
        f"{values_cell}<td class='r fw'>{value_cell}</td><td class='r bw'>{grad}</td></tr>"
    )


def _cell(trace: Trace, index: int, column: int) -> str:
    """Return the table cell with the value of a node if `column` is 0, or its gradient if it is 1."""
    array = trace.grads.get(index) if column else trace.tensors[index].array if index in trace.tensors else None
    if array is not None and has_heatmap(trace, index):
        return _tensor_cell(array)
    return escape((format_value, format_gradient)[column](trace, index))


def _tensor_cell(array: Any) -> str:
    """Return the table cell of a tensor, with its heatmap and a summary, or its value if it has a single element."""
    if array.size == 1:
        return format_pretty(float(array.reshape(-1)[0]))
    stats = summary(array)
    label = format_summary(stats)
    return f"<div class='held'>{heat.standalone_svg(stats, label)}<small>{escape(label)}</small></div>"


def _backward_table(trace: Trace, backward_pass: Pass) -> str:
    """Return the table of the steps of a backward pass, from one output to its leaves."""
    counts = [0] * len(trace.nodes)
    for step in backward_pass.steps:
        counts[trace.edges[step.edge].operand] += 1
    arrived = [0] * len(trace.nodes)
    rows = []
    shown_steps = set(_shown_indices(len(backward_pass.steps)))
    for index, step in enumerate(backward_pass.steps):
        operand = trace.edges[step.edge].operand
        arrived[operand] += 1
        if index in shown_steps:
            rows.append(_step_row(trace, backward_pass, index, (arrived[operand], counts[operand])))
        elif len(rows) == _MAX_ROWS // 2:
            rows.append(
                f'<tr><td colspan="5" class="dim">… {len(backward_pass.steps) - _MAX_ROWS:,} steps left out …</td></tr>'
            )
    root = escape(trace.title(backward_pass.root))
    headers = ("step<", "from → to", "local derivative", "upstream × local = contribution", "gradient so far<")
    explanation = "multiplies the gradient accumulated at a node (upstream) by a local derivative; the product"
    if backward_pass.root in trace.tensors:
        headers = ("step<", "from → to", "upstream", "contribution", "gradient so far<")
        explanation = (
            "propagates the gradient accumulated at a node (upstream) back through its operation; this contribution"
        )
    return (
        f"<section><h2>Backward from {root}: the chain rule, step by step</h2><p class='dim'>It starts with "
        f"∂{root}/∂{root} = 1. Each step {explanation} is added to the gradient of the operand.</p>"
        f"{_table('Table of backward steps', headers, rows)}</section>"
    )


def _step_row(trace: Trace, backward_pass: Pass, index: int, arrived: tuple[int, int]) -> str:
    step = backward_pass.steps[index]
    titles = escape(trace.title(trace.result[step.edge])), escape(trace.title(trace.operand[step.edge]))
    sum_label = f"<span class='sum'>Σ {arrived[0]} of {arrived[1]}</span> " if arrived[1] > 1 else ""
    head = f"<tr><td class='r dim'>{index + 1}</td><th scope='row'>{titles[0]} → {titles[1]}</th>"
    if backward_pass.root in trace.tensors:
        shown = [_tensor_cell(x) for x in (step.upstream, step.contribution, step.total)]
        cells = (
            f"<td class='bw'>{shown[0]}</td><td class='bw'>{shown[1]}</td><td class='r bw'>{sum_label}{shown[2]}</td>"
        )
        return f"{head}{cells}</tr>"
    product = (
        f"{format_pretty(step.upstream)} × {_parenthesize(step.local)} = <b>{format_pretty(step.contribution)}</b>"
    )
    local = _local_derivative(trace, step, titles)
    return (
        f"{head}<td>{local}</td><td class='bw'>{product}</td><td class='r "
        f"bw'>{sum_label}{format_pretty(step.total)}</td></tr>"
    )


def _local_derivative(trace: Trace, step: PassStep, titles: tuple[str, str]) -> str:
    """Return the formula of a local derivative, symbolically and with values."""
    result, slot = trace.result[step.edge], trace.slot[step.edge]
    formula = trace.local_formula(step.edge)
    op = trace.nodes[result].op
    local = f"<span class='d'>∂{titles[0]}/∂{titles[1]}</span>"
    if formula is None or op is None:
        return local
    values: list[Any] = [trace.values[trace.operand[edge]] for edge in trace.into[result]]
    y: Any = trace.values[result]
    numeric_formula = local_formula(op, slot, y, values)
    formula_texts = [formula.formula()] + ([] if numeric_formula is None else [numeric_formula.formula()])
    parts = [mathml(formula)] + (
        [mathml(numeric_formula)] if numeric_formula is not None and formula_texts[0] != formula_texts[1] else []
    )
    parts += [] if formula.op is None else [format_pretty(step.local)]
    return " = ".join([local, *parts])


def _parenthesize(x: float | None) -> str:
    return f"({format_pretty(x)})" if format_float(x).startswith("-") else format_pretty(x)


def _css(theme: Theme | None) -> str:
    def variables(colours: dict[str, str]) -> str:
        return ";".join(f"--{key}:{colour}" for key, colour in colours.items())

    page = _PAGE.replace("FONT", FONT)
    if theme is not None:
        return f":root{{color-scheme:{theme};{variables(THEMES[theme])}}}{page}".replace("\n", "")
    return (
        f":root{{color-scheme:light dark;{variables(LIGHT)}}}"
        f"@media (prefers-color-scheme:dark){{:root{{{variables(DARK)}}}}}{page}"
    ).replace("\n", "")


_PAGE = """
*{box-sizing:border-box}
body{margin:0 auto;padding:2rem clamp(1rem,4vw,3rem) 4rem;max-width:90rem;background:var(--page);color:var(--ink);
font:1rem/1.5 FONT;font-variant-numeric:tabular-nums}
h1{font-size:1.7rem;line-height:1.2;margin:0;overflow-wrap:anywhere}
h2{font-size:1.15rem;margin:2.5rem 0 .25rem}
figure{margin:0}
p{margin:.25rem 0 .75rem;max-width:46rem}
.dim{color:var(--muted)}.fw{color:var(--forward)}.bw,.d{color:var(--backward)}
.note b,.fw b{display:inline-block;width:1.3rem;line-height:1.3rem;border-radius:50%;text-align:center;
background:var(--alarm);color:var(--on-alarm);margin-right:.25rem}
.view{overflow:auto;max-height:82vh;margin-top:.5rem;border-radius:8px}
.view svg{display:block;height:auto;max-width:none}
#fit:checked~.view svg{width:100%}
.zoom{margin-top:1.25rem}
.zoom input{position:absolute;opacity:0}
.zoom label{display:inline-block;margin-left:.4rem;padding:.1rem .7rem;border:1px solid var(--rim);border-radius:1rem;
font-size:.85rem;cursor:pointer}
.zoom input:checked+label{background:var(--output);color:var(--on-output);border-color:var(--output)}
:focus-visible,.zoom input:focus-visible+label{outline:3px solid var(--forward);outline-offset:2px}
.wide{overflow-x:auto;width:fit-content;max-width:100%;
border:1px solid var(--rim);border-radius:8px;background:var(--card)}
table{border-collapse:collapse;font-size:.92rem}
th,td{padding:.32rem 1rem;text-align:left;border-top:1px solid var(--rim);white-space:nowrap;vertical-align:baseline}
tbody th{font-weight:600;max-width:24rem;overflow:hidden;text-overflow:ellipsis}
thead th{border-top:0;color:var(--muted);font-weight:500;font-size:.82rem}
.r{text-align:right}
tr.leaf th{box-shadow:inset 4px 0 var(--leaf)}
.sum{font-size:.8rem;margin-right:.5rem}
.held{display:flex;gap:.75rem;align-items:center;white-space:normal;text-align:left;width:20rem}
.held svg{flex:none}
tr:has(.held)>*{vertical-align:middle}
math{font-size:1.12em}
@media print{.zoom label,.zoom>span{display:none}.view{max-height:none}}
"""
