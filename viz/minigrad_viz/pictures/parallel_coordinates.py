"""Parallel coordinates of a sweep: an axis for each hyperparameter and for the goal, and a line for each trial."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from minigrad_viz.pictures.axes import Axis, format_number, ticks
from minigrad_viz.pictures.palette import stylesheet
from minigrad_viz.pictures.static_page import image_tag, svg_document
from minigrad_viz.trace.notation import escape, fit, sanitize, text_width

__all__ = ["WIDTH", "figure", "render_sweep", "summary_line"]

WIDTH = 1000
_LEFT, _RIGHT, _TOP, _BOTTOM = 96, 884, 112, 372
_FAILED_OFFSET = 26  # distance below the goal axis at which the lines of trials without a goal value end
_QUANTILES = 5
_LINE_GAP = 3.0  # distance between the lines of trials with the same choice
_LOG_RATIO = 10.0  # ratio of the largest to the smallest goal above which the goal axis is logarithmic
_MAX_LABEL_WIDTH = 78  # maximum width of a label, in pixels

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


class _PlotAxis(NamedTuple):
    """An axis with its title, a note, a function from values to y coordinates, and tick labels as (y, text)."""

    title: str
    note: str
    y: Callable[[Any], float]
    marks: list[tuple[float, str]]
    half_height: float = 0.0
    """Half the height reserved for a choice; 0 on a numeric axis."""


def summary_line(sweep: Any) -> str:
    """Return a one-line summary."""
    ended_count = sweep.count("done", "stopped", "diverged", "failed")
    parts = [f"{sweep.plan.mode} {sweep.plan.goal}", f"{ended_count} of {len(sweep.trials)} trials"]
    ranked = _ranked_trials(sweep)
    if ranked:
        parts.append(f"trial {ranked[0].number} reached {_format_value(ranked[0].goal)} at epoch {ranked[0].epoch}")
    return sanitize(" · ".join(parts))


def figure(sweep: Any) -> str:
    """Return an HTML fragment with the drawing as an image, which needs no JavaScript."""
    image = image_tag(render_sweep(sweep), summary_line(sweep), WIDTH, f"clamp({WIDTH * 6 // 10}px,100%,{WIDTH}px)")
    return f'<figure class="minigrad-sweep" style="margin:0;overflow-x:auto">{image}</figure>'


def render_sweep(sweep: Any) -> str:
    """Return the drawing as SVG. Better trials are drawn above worse ones, the best on top."""
    plot_axes = [_make_axis(axis) for axis in sweep.plan.axes]
    ranked = _ranked_trials(sweep)
    plot_axes.append(_goal_axis(sweep.plan, [trial.goal for trial in ranked]))
    xs = [_LEFT + (_RIGHT - _LEFT) * k / (len(plot_axes) - 1) for k in range(len(plot_axes))]
    failed = [trial for trial in sweep.trials if trial.state in ("diverged", "failed")]
    heights = _trial_heights(sweep, plot_axes, ranked, failed)
    lines = "".join(_trial_line(trial, "trial lost", xs, heights[trial.number]) for trial in failed)
    for rank, trial in reversed(list(enumerate(ranked))):
        css_class = f"trial q{rank * _QUANTILES // len(ranked)}" if rank else "trial first"
        lines += _trial_line(
            trial, css_class + (" early" if trial.state == "stopped" else ""), xs, heights[trial.number]
        )
    best_marks: list[tuple[float | None, str]] = [(None, "")] * len(xs)
    if ranked:
        values = [*(ranked[0].values[axis.name] for axis in sweep.plan.axes), ranked[0].goal]
        best_marks = list(zip(heights[ranked[0].number], map(_format_value, values), strict=True))
    plot_axes = [
        ruler._replace(marks=_label_positions(ruler, [heights[trial.number][k] for trial in (*ranked, *failed)]))
        for k, ruler in enumerate(plot_axes)
    ]
    axes = "".join(
        _draw_axis(ruler, x, x == xs[-1], y, text)
        for ruler, x, (y, text) in zip(plot_axes, xs, best_marks, strict=True)
    )
    legend, height = _legend(sweep, ranked, failed)
    title = summary_line(sweep)
    empty_note = (
        ""
        if ranked or failed
        else f'<text class="dim mid" x="{WIDTH // 2}" y="{_TOP + 20}">no trial has finished yet</text>'
    )
    heading = f'<text class="head2" x="16" y="28">{escape(fit(title, WIDTH - 32, 15, True))}</text>'
    content = f"{heading}{lines}{axes}{empty_note}{legend}"
    css = stylesheet(SHAPES, COLOURS)
    return svg_document(content, (WIDTH, height), css, title, _text_alternative(sweep, ranked))


def _ranked_trials(sweep: Any) -> list[Any]:
    """Return the trials that have a goal value, best first."""
    return [trial for trial in sweep.ranked() if trial.state in ("done", "stopped") and trial.goal is not None]


def _text_alternative(sweep: Any, ranked: Sequence[Any]) -> str:
    """Return a text alternative of the drawing, for screen readers."""
    names = [f"{axis.name}{' (logarithmic)' if axis.log else ''}" for axis in sweep.plan.axes]
    text = f"Parallel coordinates: a line for each trial over the axes {', '.join(names)} and {sweep.plan.goal}."
    for ordinal, trial in zip(("The best", "The second", "The third"), ranked, strict=False):
        values = ", ".join(f"{name} {_format_value(x)}" for name, x in trial.values.items())
        text += f" {ordinal}, trial {trial.number}: {values}, {sweep.plan.goal} {_format_value(trial.goal)}."
    return sanitize(text)


# --- axes ------------------------------------------------------------------------------------------------------------


def _format_value(x: Any) -> str:
    """Format a value for a tick label.

    >>> [_format_value(x) for x in (0.0001, 1e-05, -2.5, 64, True, "relu", [32, 32])]
    ['0.0001', '1e−5', '−2.5', '64', 'True', 'relu', '[32, 32]']
    """
    if isinstance(x, bool) or not isinstance(x, int | float):
        return sanitize(x)
    return format_number(x)


def _make_axis(axis: Any) -> _PlotAxis:
    name = sanitize(axis.name)
    if axis.choices:
        step = (_BOTTOM - _TOP) / len(axis.choices)
        choice_heights = [_BOTTOM - step * (k + 0.5) for k in range(len(axis.choices))]

        def y_of_choice(x: Any) -> float:
            return next(
                y for y, one in zip(choice_heights, axis.choices, strict=True) if one == x and type(one) is type(x)
            )

        stride = -(-len(axis.choices) // 20)
        marks = [(y, _format_value(x)) for y, x in list(zip(choice_heights, axis.choices, strict=True))[::stride]]
        return _PlotAxis(name, "", y_of_choice, marks, step / 2)
    return _numeric_axis(name, axis.low, axis.high, axis.log, "log" if axis.log else "")


def _goal_axis(plan: Any, goals: Sequence[float]) -> _PlotAxis:
    low, high = (min(goals), max(goals)) if goals else (0.0, 1.0)
    is_log = low > 0 and high / low > _LOG_RATIO
    note = f"{'lower' if plan.mode == 'min' else 'higher'} is better{', log' if is_log else ''}"
    if low == high:
        low, high = low - (abs(low) or 1.0) / 2, high + (abs(high) or 1.0) / 2
    elif not is_log:
        low, high = low - 0.03 * (high - low), high + 0.03 * (high - low)
    return _numeric_axis(sanitize(plan.goal), low, high, is_log, note)


def _numeric_axis(name: str, low: float, high: float, is_log: bool, note: str) -> _PlotAxis:
    y = Axis(low, high, _BOTTOM, _TOP, is_log).pixel
    tick_values = ticks(low, high, is_log)
    if len(tick_values) < 2:
        tick_values = [low, high]
    return _PlotAxis(name, note, y, [(y(x), _format_value(x)) for x in tick_values])


def _label_positions(axis: _PlotAxis, ys: Sequence[float]) -> list[tuple[float, str]]:
    """Return the tick labels of an axis. Labels of choices are moved above the lines that pass through them."""
    if not axis.half_height:
        return axis.marks
    return [(min([y, *(at for at in ys if abs(at - y) < axis.half_height)]) - 11, text) for y, text in axis.marks]


def _draw_axis(axis: _PlotAxis, x: float, is_last: bool, best_y: float | None, text: str) -> str:
    """Return the SVG of an axis, its tick labels and the best value. Only the last axis has its labels on the right."""
    parts = [f'<path class="axis" d="M{x:.1f} {_TOP}V{_BOTTOM}"/>']
    parts.append(f'<text class="title" x="{x:.1f}" y="{_TOP - 36}">{escape(fit(axis.title, 130, 13, True))}</text>')
    parts.append(f'<text class="cap dim mid" x="{x:.1f}" y="{_TOP - 20}">{escape(axis.note)}</text>')
    anchor_class, offset = (" mid", 0) if axis.half_height else ("", 9) if is_last else (" end", -8)
    for y, mark in axis.marks:
        if not axis.half_height:
            parts.append(f'<path class="axis" d="M{x - 3:.1f} {y:.1f}h6"/>')
        if is_last and best_y is not None and abs(y - best_y) < 13:
            continue
        css_class = "at" if axis.half_height and mark == text else "cap dim"
        shown = escape(fit(mark, _MAX_LABEL_WIDTH, 11.5 if css_class == "at" else 11, css_class == "at"))
        parts.append(
            f'<text class="{css_class} over{anchor_class}" x="{x + offset:.1f}" y="{y + 3.5:.1f}">{shown}</text>'
        )
    if best_y is not None:
        parts.append(f'<circle class="dot" cx="{x:.1f}" cy="{best_y:.1f}" r="4.5"/>')
    if best_y is not None and not axis.half_height:
        y = best_y + 4 if is_last else best_y - 7
        parts.append(f'<text class="at over" x="{x + 9:.1f}" y="{y:.1f}">{escape(text)}</text>')
    return "".join(parts)


# --- lines -----------------------------------------------------------------------------------------------------------


def _trial_heights(
    sweep: Any, plot_axes: Sequence[_PlotAxis], ranked: Sequence[Any], failed: Sequence[Any]
) -> dict[int, list[float]]:
    """Return the y coordinates of each trial, by trial number. Trials with the same choice are slightly offset."""
    trials = [*ranked, *failed]
    heights: dict[int, list[float]] = {trial.number: [] for trial in trials}
    for plot_axis, axis in zip(plot_axes, sweep.plan.axes, strict=False):
        y_of_trial = {trial.number: plot_axis.y(trial.values[axis.name]) for trial in trials}
        groups: dict[float, list[int]] = {}
        for trial_number, y in y_of_trial.items():
            groups.setdefault(y, []).append(trial_number)
        max_spread = 0.6 * (_BOTTOM - _TOP) / max(len(axis.choices), 1)
        for y, trial_numbers in groups.items():
            gap = min(_LINE_GAP, max_spread / len(trial_numbers)) if plot_axis.half_height else 0.0
            for k, trial_number in enumerate(trial_numbers):
                heights[trial_number].append(y + gap * (k - (len(trial_numbers) - 1) / 2))
    for trial in ranked:
        heights[trial.number].append(plot_axes[-1].y(trial.goal))
    for trial in failed:
        heights[trial.number].append(_BOTTOM + _FAILED_OFFSET)
    return heights


def _trial_line(trial: Any, css_class: str, xs: Sequence[float], ys: Sequence[float]) -> str:
    """Return a trial's line. It crosses each axis at a right angle, so that intersecting lines can be followed."""
    path = f"M{xs[0]:.1f} {ys[0]:.1f}"
    for k in range(1, len(xs)):
        middle = (xs[k - 1] + xs[k]) / 2
        path += f"C{middle:.1f} {ys[k - 1]:.1f} {middle:.1f} {ys[k]:.1f} {xs[k]:.1f} {ys[k]:.1f}"
    return f'<path class="{css_class}" d="{path}"><title>trial {trial.number}</title></path>'


def _legend(sweep: Any, ranked: Sequence[Any], failed: Sequence[Any]) -> tuple[str, int]:
    """Return the legend of line styles, and the height of the drawing including it."""
    entries = [("trial first", "the best")] if ranked else []
    if len(ranked) > _QUANTILES:
        entries += [("trial q0", "the best fifth"), ("trial q2", "the middle"), ("trial q4", "the last fifth")]
    elif len(ranked) > 1:
        entries.append(("trial q2", "others"))
    entries += [("trial early", "stopped early")] if any(trial.state == "stopped" for trial in ranked) else []
    words = [f"{n} {state}" for state in ("diverged", "failed") if (n := sweep.count(state))]
    entries += [("trial lost", " and ".join(words))] if failed else []
    x, y = 16.0, _BOTTOM + 58
    parts = []
    for css_class, text in entries:
        parts.append(
            f'<path class="{css_class}" d="M{x:.1f} {y - 4}h34"/><text class="key" x="{x + 42:.1f}" '
            f'y="{y}">{text}</text>'
        )
        x += 42 + text_width(text, 11.5) + 26
    if failed:
        note = _BOTTOM + _FAILED_OFFSET + 4
        parts.append(f'<text class="cap warn over" x="{_RIGHT + 8}" y="{note}">no value</text>')
    return "".join(parts), int(y) + 18
