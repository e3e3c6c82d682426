"""Parallel coordinates of a sweep: an axis for each hyperparameter and for the goal, a line for each trial."""

from __future__ import annotations

import base64
import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minigrad_viz.pictures.board import ticks
from minigrad_viz.pictures.palette import stylesheet
from minigrad_viz.trace.notation import clean, escape, fit, text_width

__all__ = ["WIDTH", "figure", "parallel", "told"]

WIDTH = 1000
_LEFT, _RIGHT, _TOP, _BOTTOM = 96, 884, 112, 372
_LOST = 26  # distance below the goal axis at which lines of trials without a goal end
_CLASSES = 5
_APART = 3.0  # distance between lines that share a choice
_RATIO = 10.0  # ratio of goals above which their axis is logarithmic
_LONGEST = 78  # maximum width of a label, in pixels

SHAPES = (
    ".mg .trial{{fill:none;stroke-linecap:round;stroke-linejoin:round}}.mg .q0{{stroke-width:2.4}}"
    ".mg .q1{{stroke-width:1.9}}.mg .q2{{stroke-width:1.5}}.mg .q3{{stroke-width:1.2}}.mg .q4{{stroke-width:1}}"
    ".mg .early{{stroke-dasharray:7 4}}.mg .lost{{stroke-width:1.1;stroke-dasharray:2 3}}.mg .first{{stroke-width:3.4}}"
    ".mg .axis{{fill:none;stroke-width:1.25}}.mg .head2{{font-size:15px;font-weight:700}}.mg .end{{text-anchor:end}}"
    ".mg .mid{{text-anchor:middle}}.mg .title{{font-size:13px;font-weight:700;text-anchor:middle}}"
    ".mg .at{{font-size:11.5px;font-weight:700}}"
    ".mg .over{{paint-order:stroke;stroke-width:4px;stroke-linejoin:round}}"
)
COLOURS = (
    ".mg .trial{{stroke:{forward}}}.mg .q1{{stroke-opacity:.72}}.mg .q2{{stroke-opacity:.5}}.mg .q3{{stroke:{line};"
    "stroke-opacity:.75}}.mg .q4{{stroke:{line};stroke-opacity:.5}}.mg .lost{{stroke:{alarm};stroke-opacity:.75}}"
    ".mg .first{{stroke:{backward}}}.mg .dot{{fill:{backward};stroke:{page};stroke-width:1.5}}.mg .axis{{stroke:{ink}}}"
    ".mg .at{{fill:{backward}}}.mg .over{{stroke:{page}}}.mg .warn{{fill:{alarm}}}.mg .band{{fill:{forward}}}"
)


class _Ruler(NamedTuple):
    """An axis: its title, the note below it, the map from values to y, and its tick labels as (y, text)."""

    title: str
    note: str
    y: Callable[[Any], float]
    marks: list[tuple[float, str]]
    half: float = 0.0
    """Half the height that a choice takes; 0 on a numeric axis."""


def told(sweep: Any) -> str:
    """Return a one-line summary."""
    ended = sweep.count("done", "stopped", "diverged", "failed")
    parts = [f"{sweep.plan.mode} {sweep.plan.goal}", f"{ended} of {len(sweep.trials)} trials"]
    ranked = _counted(sweep)
    if ranked:
        parts.append(f"trial {ranked[0].number} reached {_label(ranked[0].goal)} at epoch {ranked[0].epoch}")
    return clean(" · ".join(parts))


def figure(sweep: Any) -> str:
    """Return an HTML fragment with the drawing as an image, which needs no JavaScript."""
    encoded = base64.b64encode(parallel(sweep).encode()).decode()
    return (
        f'<figure class="minigrad-sweep" style="margin:0;overflow-x:auto"><img alt="{escape(told(sweep))}" '
        f'src="data:image/svg+xml;base64,{encoded}" width="{WIDTH}" '
        f'style="width:clamp({WIDTH * 6 // 10}px,100%,{WIDTH}px);max-width:none;height:auto"></figure>'
    )


def parallel(sweep: Any) -> str:
    """Return the drawing as SVG. Better trials are drawn above worse ones, the best on top."""
    rulers = [_ruler(axis) for axis in sweep.plan.axes]
    ranked = _counted(sweep)
    rulers.append(_goal(sweep.plan, [trial.goal for trial in ranked]))
    xs = [_LEFT + (_RIGHT - _LEFT) * k / (len(rulers) - 1) for k in range(len(rulers))]
    lost = [trial for trial in sweep.trials if trial.state in ("diverged", "failed")]
    places = _places(sweep, rulers, ranked, lost)
    lines = "".join(_line(trial, "trial lost", xs, places[trial.number]) for trial in lost)
    for rank, trial in reversed(list(enumerate(ranked))):
        look = f"trial q{rank * _CLASSES // len(ranked)}" if rank else "trial first"
        lines += _line(trial, look + (" early" if trial.state == "stopped" else ""), xs, places[trial.number])
    tops: list[tuple[float | None, str]] = [(None, "")] * len(xs)
    if ranked:
        values = [*(ranked[0].values[axis.name] for axis in sweep.plan.axes), ranked[0].goal]
        tops = list(zip(places[ranked[0].number], map(_label, values), strict=True))
    rulers = [
        ruler._replace(marks=_above(ruler, [places[trial.number][k] for trial in (*ranked, *lost)]))
        for k, ruler in enumerate(rulers)
    ]
    axes = "".join(_drawn(ruler, x, x == xs[-1], y, text) for ruler, x, (y, text) in zip(rulers, xs, tops, strict=True))
    key, height = _key(sweep, ranked, lost)
    said = escape(told(sweep))
    nothing = (
        ""
        if ranked or lost
        else f'<text class="dim mid" x="{WIDTH // 2}" y="{_TOP + 20}">no trial has finished yet</text>'
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="mg" role="img" width="{WIDTH}" height="{height}" '
        f'viewBox="0 0 {WIDTH} {height}"><title>{said}</title><desc>{escape(_described(sweep, ranked))}</desc>'
        f"<style>{_css()}</style>"
        f'<rect class="page" x=".5" y=".5" width="{WIDTH - 1}" height="{height - 1}" rx="8"/>'
        f'<text class="head2" x="16" y="28">{escape(fit(told(sweep), WIDTH - 32, 15, True))}</text>'
        f"{lines}{axes}{nothing}{key}</svg>"
    )


def _counted(sweep: Any) -> list[Any]:
    """Return the trials that have a goal value, best first."""
    return [trial for trial in sweep.ranked() if trial.state in ("done", "stopped") and trial.goal is not None]


def _css() -> str:
    return stylesheet(SHAPES, COLOURS).replace("&", "&amp;").replace("<", "&lt;")


def _described(sweep: Any, ranked: Sequence[Any]) -> str:
    """Return a text alternative of the drawing, for screen readers."""
    names = [f"{axis.name}{' (logarithmic)' if axis.log else ''}" for axis in sweep.plan.axes]
    text = f"Parallel coordinates: a line for each trial over the axes {', '.join(names)} and {sweep.plan.goal}."
    for place, trial in zip(("The best", "The second", "The third"), ranked, strict=False):
        values = ", ".join(f"{name} {_label(x)}" for name, x in trial.values.items())
        text += f" {place}, trial {trial.number}: {values}, {sweep.plan.goal} {_label(trial.goal)}."
    return clean(text)


# --- axes ------------------------------------------------------------------------------------------------------------


def _label(x: Any) -> str:
    """Format a value for a tick label.

    >>> [_label(x) for x in (0.0001, 1e-05, -2.5, 64, True, "relu", [32, 32])]
    ['0.0001', '1e−5', '−2.5', '64', 'True', 'relu', '[32, 32]']
    """
    if isinstance(x, bool) or not isinstance(x, int | float):
        return clean(x)
    text = f"{x:.4g}"
    mantissa, e, power = text.partition("e")
    return (f"{mantissa}e{int(power)}" if e else text).replace("-", "−")


def _ruler(axis: Any) -> _Ruler:
    name = clean(axis.name)
    if axis.choices:
        step = (_BOTTOM - _TOP) / len(axis.choices)
        at = [_BOTTOM - step * (k + 0.5) for k in range(len(axis.choices))]

        def of_choice(x: Any) -> float:
            return next(y for y, one in zip(at, axis.choices, strict=True) if one == x and type(one) is type(x))

        every = -(-len(axis.choices) // 20)
        marks = [(y, _label(x)) for y, x in list(zip(at, axis.choices, strict=True))[::every]]
        return _Ruler(name, "", of_choice, marks, step / 2)
    return _numbers(name, axis.low, axis.high, axis.log, "log" if axis.log else "")


def _goal(plan: Any, goals: Sequence[float]) -> _Ruler:
    low, high = (min(goals), max(goals)) if goals else (0.0, 1.0)
    logs = low > 0 and high / low > _RATIO
    note = f"{'lower' if plan.mode == 'min' else 'higher'} is better{', log' if logs else ''}"
    if low == high:
        low, high = low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2
    elif not logs:
        low, high = low - 0.03 * (high - low), high + 0.03 * (high - low)
    return _numbers(clean(plan.goal), low, high, logs, note)


def _numbers(name: str, low: float, high: float, logs: bool, note: str) -> _Ruler:
    of = math.log if logs else float

    def y(x: Any) -> float:
        return _BOTTOM - (_BOTTOM - _TOP) * (of(x) - of(low)) / (of(high) - of(low))

    marked = ticks(low, high, logs)
    if logs and high / low < 300:
        marked = [unit * k for unit in marked for k in (1, 2, 5)]
        marked = sorted({x for x in (*marked, marked[0] / 2, marked[0] / 5) if low <= x <= high}) if marked else []
    if len(marked) < 2:
        marked = [low, high]
    return _Ruler(name, note, y, [(y(x), _label(x)) for x in marked])


def _above(ruler: _Ruler, ys: Sequence[float]) -> list[tuple[float, str]]:
    """Return the tick labels of an axis, those of choices moved above the lines through them."""
    if not ruler.half:
        return ruler.marks
    return [(min([y, *(at for at in ys if abs(at - y) < ruler.half)]) - 11, text) for y, text in ruler.marks]


def _drawn(ruler: _Ruler, x: float, last: bool, best: float | None, text: str) -> str:
    """Return the SVG of an axis, its tick labels (to the left; to the right of the last axis) and the best value."""
    parts = [f'<path class="axis" d="M{x:.1f} {_TOP}V{_BOTTOM}"/>']
    parts.append(f'<text class="title" x="{x:.1f}" y="{_TOP - 36}">{escape(fit(ruler.title, 130, 13, True))}</text>')
    parts.append(f'<text class="cap dim mid" x="{x:.1f}" y="{_TOP - 20}">{escape(ruler.note)}</text>')
    side, away = (" mid", 0) if ruler.half else ("", 9) if last else (" end", -8)
    for y, mark in ruler.marks:
        if not ruler.half:
            parts.append(f'<path class="axis" d="M{x - 3:.1f} {y:.1f}h6"/>')
        if last and best is not None and abs(y - best) < 13:
            continue
        look = "at" if ruler.half and mark == text else "cap dim"
        shown = escape(fit(mark, _LONGEST, 11.5 if look == "at" else 11, look == "at"))
        parts.append(f'<text class="{look} over{side}" x="{x + away:.1f}" y="{y + 3.5:.1f}">{shown}</text>')
    if best is not None:
        parts.append(f'<circle class="dot" cx="{x:.1f}" cy="{best:.1f}" r="4.5"/>')
    if best is not None and not ruler.half:
        y = best + 4 if last else best - 7
        parts.append(f'<text class="at over" x="{x + 9:.1f}" y="{y:.1f}">{escape(text)}</text>')
    return "".join(parts)


# --- lines -----------------------------------------------------------------------------------------------------------


def _places(sweep: Any, rulers: Sequence[_Ruler], ranked: Sequence[Any], lost: Sequence[Any]) -> dict[int, list[float]]:
    """Return the y of each trial on each axis, by trial number; trials that share a choice are slightly offset."""
    trials = [*ranked, *lost]
    found: dict[int, list[float]] = {trial.number: [] for trial in trials}
    for ruler, axis in zip(rulers, sweep.plan.axes, strict=False):
        at = {trial.number: ruler.y(trial.values[axis.name]) for trial in trials}
        groups: dict[float, list[int]] = {}
        for number, y in at.items():
            groups.setdefault(y, []).append(number)
        room = 0.6 * (_BOTTOM - _TOP) / max(len(axis.choices), 1)
        for y, numbers in groups.items():
            apart = min(_APART, room / len(numbers)) if ruler.half else 0.0
            for k, number in enumerate(numbers):
                found[number].append(y + apart * (k - (len(numbers) - 1) / 2))
    for trial in ranked:
        found[trial.number].append(rulers[-1].y(trial.goal))
    for trial in lost:
        found[trial.number].append(_BOTTOM + _LOST)
    return found


def _line(trial: Any, look: str, xs: Sequence[float], ys: Sequence[float]) -> str:
    """Return a curve that crosses each axis at a right angle, so that intersecting lines can be followed."""
    path = f"M{xs[0]:.1f} {ys[0]:.1f}"
    for k in range(1, len(xs)):
        middle = (xs[k - 1] + xs[k]) / 2
        path += f"C{middle:.1f} {ys[k - 1]:.1f} {middle:.1f} {ys[k]:.1f} {xs[k]:.1f} {ys[k]:.1f}"
    return f'<path class="{look}" d="{path}"><title>trial {trial.number}</title></path>'


def _key(sweep: Any, ranked: Sequence[Any], lost: Sequence[Any]) -> tuple[str, int]:
    """Return the legend of line styles, and the height of the drawing including it."""
    looks = [("trial first", "the best")] if ranked else []
    if len(ranked) > _CLASSES:
        looks += [("trial q0", "the best fifth"), ("trial q2", "the middle"), ("trial q4", "the last fifth")]
    elif len(ranked) > 1:
        looks.append(("trial q2", "others"))
    looks += [("trial early", "stopped early")] if any(trial.state == "stopped" for trial in ranked) else []
    words = [f"{n} {state}" for state in ("diverged", "failed") if (n := sweep.count(state))]
    looks += [("trial lost", " and ".join(words))] if lost else []
    x, y = 16.0, _BOTTOM + 58
    parts = []
    for look, text in looks:
        parts.append(
            f'<path class="{look}" d="M{x:.1f} {y - 4}h34"/><text class="key" x="{x + 42:.1f}" y="{y}">{text}</text>'
        )
        x += 42 + text_width(text, 11.5) + 26
    if lost:
        note = _BOTTOM + _LOST + 4
        parts.append(f'<text class="cap warn over" x="{_RIGHT + 8}" y="{note}">no value</text>')
    return "".join(parts), int(y) + 18
