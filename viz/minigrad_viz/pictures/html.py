"""Self-contained HTML: `page` for the player with tables of all nodes and backward steps, `figure` for notebooks.

Without JavaScript, and in print, a page shows the static drawing in place of the player. `figure` embeds the drawing as
an image, which is displayed even where scripts and inline SVG are stripped.
"""

from __future__ import annotations

import base64
import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from typing import Any

from minigrad_viz.pictures import heat
from minigrad_viz.pictures.frontend import script
from minigrad_viz.pictures.moments import drawn
from minigrad_viz.pictures.palette import DARK, FONT, LIGHT, THEMES, Theme
from minigrad_viz.pictures.quantities import gradient, pictured, shape_text, value
from minigrad_viz.pictures.scene import WIDE
from minigrad_viz.pictures.svg import Picture
from minigrad_viz.trace import Pass, PassStep, Trace, to_trace
from minigrad_viz.trace.arrays import line, summary
from minigrad_viz.trace.history import Moment
from minigrad_viz.trace.models import beginning
from minigrad_viz.trace.notation import escape, formula_of, local_formula, mathml, number, pretty

__all__ = ["figure", "page", "state_of", "to_html"]

_ROWS = 400  # maximum rows of a table: half from its start, half from its end
_EMBEDDED = 5000  # nodes; larger traces are not embedded in a notebook output: they take megabytes
_TENSOR = 4  # nodes that a tensor counts as, because of its arrays
_LONGEST = 1 << 20  # maximum length, in characters, of an embedded trace
_ZOOMS = (("fit", "Fit"), ("half", "50%"), ("full", "100%"), ("twice", "200%"))


def to_html(x: Any, *more: Any, path: str | os.PathLike[str] | None = None) -> str:
    """Return the graph of `x`, one or several Values, as a self-contained HTML page; also write it to `path`, if given.

    >>> import minigrad as mg
    >>> text = to_html(mg.Value(3.0, "a") * 2)
    >>> text[:15], "http://" in text.replace("http://www.w3.org", "")
    ('<!doctype html>', False)
    """
    text = page(to_trace(x, *more), state_of(x))
    if path is not None:
        with open(path, "w", encoding="utf-8", newline="\n") as file:
            file.write(text)
    return text


# --- for a notebook --------------------------------------------------------------------------------------------------


def figure(
    trace: Trace,
    state: Mapping[str, Any] | None = None,
    blocks: Collection[int] | None = None,
    now: Moment | None = None,
) -> str:
    """Return an HTML fragment with the drawing as an image and the trace as data. `state` is the initial state of a
    player, `blocks` are the open blocks, and `now` is the moment to draw, None for the final state.

    A drawing wider than the page shrinks to at least 60%, where its labels are still legible, and then scrolls. A still
    larger one is shown as an overview whose caption explains how to zoom in.
    """
    svg, width, _ = drawn(trace, blocks, now)
    least = round(width * 0.6) if width <= WIDE else 900
    encoded = base64.b64encode(svg.encode()).decode()
    style = f"width:clamp({least}px,100%,{width}px);max-width:none;height:auto"
    alt = " ".join([trace.sentence(), *(note.text for note in trace.notes)])
    image = f'<img src="data:image/svg+xml;base64,{encoded}" alt="{escape(alt)}" width="{width}" style="{style}">'
    advice = "An overview: to zoom in, open the page that <code>draw(…).save(&quot;graph.html&quot;)</code> writes."
    caption = f"<figcaption>{advice}</figcaption>" if width > WIDE else ""
    small = len(trace.kinds) + (_TENSOR - 1) * len(trace.tensors) <= _EMBEDDED
    data = _data(trace) if small else ""
    data = data if len(data) <= _LONGEST else ""
    begins = _begins(trace, state)
    return f'<figure class="minigrad"{begins} style="margin:0;overflow-x:auto">{image}{caption}{data}</figure>'


def _begins(trace: Trace, state: Mapping[str, Any] | None) -> str:
    """Return the attribute with the initial state of the player: that of a model, updated with `state`."""
    state = {**(beginning(trace) or {}), **(state or {})}
    return f' data-minigrad="{escape(json.dumps(state))}"' if state else ""


def state_of(x: Any) -> dict[str, Any]:
    """Return the initial state for the player of a page: the current state of `x`, a player or a drawing, or {}."""
    state = getattr(x, "state", None) if hasattr(x, "trace") else None
    return dict((state() if callable(state) else state) or {})


def _data(trace: Trace, full: bool = False) -> str:
    """Return a script element with the trace, escaped so that user strings cannot close the element."""
    safe = trace.json(full).replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
    return f'<script type="application/json" class="minigrad-trace">{safe}</script>'


# --- a page ----------------------------------------------------------------------------------------------------------


def page(
    trace: Trace,
    state: Mapping[str, Any] | None = None,
    blocks: Collection[int] | None = None,
    now: Moment | None = None,
    theme: Theme | None = None,
) -> str:
    """Return the page of a trace; `state` is the initial state of its player; the other arguments are as in `drawn`."""
    title = escape(", ".join(trace.title(index) for index in trace.outputs[:3]))
    title = f"A tour of {title} and its gradients" if trace.tours else title
    notes = "".join(f'<p class="note"><b aria-hidden="true">!</b> {escape(note.text)}</p>' for note in trace.notes)
    passes = "".join(_backward(trace, run) for run in trace.passes[:5] if run.steps)
    notes += f'<p class="dim">{escape(trace.how)}</p>' if trace.how else ""
    data, code = _data(trace, full=True), f"<script>\n{script()}</script>"
    tables = _calls(trace) if trace.how else f"{_nodes(trace)}\n{passes}"
    picture = _viewport(drawn(trace, blocks, now, theme))
    return (
        f'<!doctype html>\n<html lang="en"{f" data-theme={theme}" if theme else ""}><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width,initial-scale=1">'
        f'<meta name="color-scheme" content="{theme or "light dark"}"><title>{title} · minigrad</title>'
        f"<style>{_css(theme)}</style></head>\n"
        f"<body><header><h1>{title}</h1><p>{escape(trace.sentence())}</p>{notes}</header>\n<main>"
        f'<figure class="minigrad"{_begins(trace, state)}>{picture}{data}</figure>\n'
        f"{tables}</main>\n{code}</body></html>\n"
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


def _some(count: int) -> Iterator[int | None]:
    """Yield the indices of the rows to show, with None in place of the rows left out."""
    if count <= _ROWS:
        yield from range(count)
    else:
        yield from range(_ROWS // 2)
        yield None
        yield from range(count - _ROWS // 2, count)


def _table(title: str, heads: Sequence[str], rows: list[str]) -> str:
    """Return a table that scrolls horizontally; a header that ends in < marks a right-aligned column."""
    cells = [f"<th scope='col'{' class=r' if head[-1] == '<' else ''}>{head.rstrip('<')}</th>" for head in heads]
    return (
        f"<div class='wide' tabindex='0' role='region' aria-label='{title}'><table><thead><tr>{''.join(cells)}</tr>"
        f"</thead><tbody>{''.join(rows)}</tbody></table></div>"
    )


def _rows(trace: Trace, row: Callable[[Trace, int], str], what: str) -> list[str]:
    """Return a row for each node; for a large graph, only for the first and last nodes."""
    left = f'<tr><td colspan="6" class="dim">… {len(trace.nodes) - _ROWS:,} {what} left out …</td></tr>'
    return [left if index is None else row(trace, index) for index in _some(len(trace.nodes))]


def _calls(trace: Trace) -> str:
    """Return the table of the calls of a captured step, in execution order."""
    rows = _rows(trace, _call, "rows")
    heads = ("#<", "name", "made by", "computes", "kernel", "output", "value<")
    return (
        "<section><h2>Every call</h2><p class='dim'>In execution order. Values are shown if they are still in memory "
        f"after the step.</p>{_table('Table of calls', heads, rows)}</section>"
    )


def _call(trace: Trace, index: int) -> str:
    node, formula = trace.nodes[index], trace.formula(index)
    made_by = f'<span class="dim">{node.kind}</span>' if formula is None else mathml(formula)
    shape = "" if node.shape is None else shape_text(node.shape, node.dtype or "")
    held = _held(node.array) if node.array is not None else "" if node.value is None else pretty(node.value)
    about = "".join(f"<td>{escape(node.attrs.get(name, ''))}</td>" for name in ("computes", "kernel"))
    name = escape(trace.title(index, 60))
    return (
        f"<tr class='{node.kind}'><td class='r dim'>{index}</td><th scope='row'>{name}</th>"
        f"<td>{made_by}</td>{about}<td>{escape(shape)}</td><td class='r fw'>{held}</td></tr>"
    )


def _nodes(trace: Trace) -> str:
    rows = _rows(trace, _node, "nodes")
    heads = ("#<", "name", "made by", *([] if trace.tensors else ["with values"]), "data<", "grad<")
    by = (
        f": the derivative of {escape(trace.title(trace.outputs[0]))} with respect to the node" if trace.fresh() else ""
    )
    dash = "; a dash means not computed yet" if "n" in trace.states else ""
    return (
        "<section><h2>Forward: every value</h2><p class='dim'>In the order in which they were computed. "
        f"The gradient is what <code>.grad</code> holds{by}{dash}.</p>"
        f"{_table('Table of nodes', heads, rows)}</section>"
    )


def _node(trace: Trace, index: int) -> str:
    node = trace.nodes[index]
    made_by = with_numbers = ""
    if node.op is not None:
        operands = [trace.values[trace.operand[edge]] for edge in trace.into[index]]
        formula = trace.formula(index)
        made_by = "" if formula is None else mathml(formula)
        numbers = [x for x in operands if x is not None]
        with_numbers = mathml(formula_of(node.op, numbers)) if len(numbers) == len(operands) else ""
    else:
        made_by = f'<span class="dim">{node.kind}</span>'
    name = escape(trace.title(index, 60))
    where = escape(" · ".join(text for text in (node.scope, node.line) if text))
    place = f'<br><small class="dim">{where}</small>' if where else ""
    held, grad = (_cell(trace, index, which) for which in (0, 1))
    held = f"<b>!</b> {held}" if node.stale else held
    plugged = "" if trace.tensors else f"<td>{with_numbers}</td>"
    return (
        f"<tr class='{node.kind}'><td class='r dim'>{index}</td><th scope='row'>{name}{place}</th><td>{made_by}</td>"
        f"{plugged}<td class='r fw'>{held}</td><td class='r bw'>{grad}</td></tr>"
    )


def _cell(trace: Trace, index: int, which: int) -> str:
    """Return the table cell for the value of a node (`which` = 0) or its gradient (1)."""
    array = trace.grads.get(index) if which else trace.tensors[index].array if index in trace.tensors else None
    if array is not None and pictured(trace, index):
        return _held(array)
    return escape((value, gradient)[which](trace, index))


def _held(array: Any) -> str:
    """Return the table cell of a tensor: its heatmap and a summary, or its value if it has a single element."""
    if array.size == 1:
        return pretty(float(array.reshape(-1)[0]))
    short = summary(array)
    said = line(short)
    return f"<div class='held'>{heat.alone(short, said)}<small>{escape(said)}</small></div>"


def _backward(trace: Trace, run: Pass) -> str:
    """Return the table of a backward pass, from one output to its leaves."""
    counts = [0] * len(trace.nodes)
    for step in run.steps:
        counts[trace.edges[step.edge].operand] += 1
    met = [0] * len(trace.nodes)
    rows = []
    shown = set(_some(len(run.steps)))
    for place, step in enumerate(run.steps):
        operand = trace.edges[step.edge].operand
        met[operand] += 1
        if place in shown:
            rows.append(_step(trace, run, place, (met[operand], counts[operand])))
        elif len(rows) == _ROWS // 2:
            rows.append(f'<tr><td colspan="5" class="dim">… {len(run.steps) - _ROWS:,} steps left out …</td></tr>')
    root = escape(trace.title(run.root))
    heads = ("step<", "from → to", "local derivative", "upstream × local = contribution", "gradient so far<")
    how = "multiplies the gradient accumulated at a node (upstream) by a local derivative; the product"
    if run.root in trace.tensors:
        heads = ("step<", "from → to", "upstream", "contribution", "gradient so far<")
        how = "propagates the gradient accumulated at a node (upstream) back through its operation; this contribution"
    return (
        f"<section><h2>Backward from {root}: the chain rule, step by step</h2><p class='dim'>It starts with "
        f"∂{root}/∂{root} = 1. Each step {how} is added to the gradient of the operand.</p>"
        f"{_table('Table of backward steps', heads, rows)}</section>"
    )


def _step(trace: Trace, run: Pass, place: int, arrived: tuple[int, int]) -> str:
    step = run.steps[place]
    ends = escape(trace.title(trace.result[step.edge])), escape(trace.title(trace.operand[step.edge]))
    several = f"<span class='sum'>Σ {arrived[0]} of {arrived[1]}</span> " if arrived[1] > 1 else ""
    head = f"<tr><td class='r dim'>{place + 1}</td><th scope='row'>{ends[0]} → {ends[1]}</th>"
    if run.root in trace.tensors:
        shown = [_held(x) for x in (step.upstream, step.contribution, step.total)]
        way = f"<td class='bw'>{shown[0]}</td><td class='bw'>{shown[1]}</td><td class='r bw'>{several}{shown[2]}</td>"
        return f"{head}{way}</tr>"
    product = f"{pretty(step.upstream)} × {_bracketed(step.local)} = <b>{pretty(step.contribution)}</b>"
    local = _local(trace, step, ends)
    return (
        f"{head}<td>{local}</td><td class='bw'>{product}</td><td class='r bw'>{several}{pretty(step.total)}</td></tr>"
    )


def _local(trace: Trace, step: PassStep, ends: tuple[str, str]) -> str:
    """Return the formula of a local derivative, symbolically and with values."""
    result, slot = trace.result[step.edge], trace.slot[step.edge]
    formula = trace.local_formula(step.edge)
    op = trace.nodes[result].op
    local = f"<span class='d'>∂{ends[0]}/∂{ends[1]}</span>"
    if formula is None or op is None:
        return local
    values: list[Any] = [trace.values[trace.operand[edge]] for edge in trace.into[result]]
    y: Any = trace.values[result]
    plugged = local_formula(op, slot, y, values)
    texts = [formula.text()] + ([] if plugged is None else [plugged.text()])
    parts = [mathml(formula)] + ([mathml(plugged)] if plugged is not None and texts[0] != texts[1] else [])
    parts += [] if formula.op is None else [pretty(step.local)]
    return " = ".join([local, *parts])


def _bracketed(x: float | None) -> str:
    return f"({pretty(x)})" if number(x).startswith("-") else pretty(x)


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
