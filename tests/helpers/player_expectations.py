"""The expected labels of a player at each position: every label with a value, derived from the engine's results."""

from __future__ import annotations

import functools
import json
import re

import numpy as np

from minigrad_viz.trace import notation
from minigrad_viz.trace.notation import make_formula, mathml

pretty = functools.lru_cache(100_000)(notation.format_pretty)
brief = functools.lru_cache(100_000)(notation.format_brief)

# --- labels ----------------------------------------------------------------------------------------------------------


def scalar_of(x):
    """Return the scalar if there is exactly one element, else None."""
    if isinstance(x, np.ndarray):
        return float(x.reshape(-1)[0]) if x.size == 1 else None
    return x


def parenthesised(x):
    return f"({brief(x)})" if x < 0 else brief(x)


def finite_range(x):
    values = x[np.isfinite(x)]
    return float(values.min()), float(values.max())


def summarise(x, format_scalar=brief):
    """Format a scalar, or summarise an array in one line."""
    if x is None or scalar_of(x) is not None:
        return format_scalar(scalar_of(x))
    low, high = finite_range(x)
    shape = ", ".join(map(str, x.shape)) + "," * (x.ndim == 1)
    return f"({shape}) from {format_scalar(low)} to {format_scalar(high)}"


def speak(x):
    """Format the same for a screen reader."""
    if scalar_of(x) is not None:
        return pretty(scalar_of(x))
    low, high = finite_range(x)
    shape = " by ".join(map(str, x.shape))
    return f"an array of {shape}" + (
        f", all {pretty(low)}" if low == high else f" from {pretty(low)} to {pretty(high)}"
    )


def strip_tags(markup):
    return re.sub("<[^>]*>", "", markup)


# --- expectations ----------------------------------------------------------------------------------------------------


class PlayerExpectations:
    """The state and the labels that a player should show at each position."""

    def __init__(self, playback):
        self.playback, self.trace = playback, playback.trace
        self.events, self.seed, self.last = playback.events, playback.seed, playback.last
        self.root = playback.index_of(playback.root)
        self.title = [self.trace.title(k) for k in range(len(self.trace.kinds))]
        self.computed = {node: k + 1 for k, node in enumerate(playback.order)}
        self.trace_json = self.trace.json(full=True)
        data = json.loads(self.trace_json)["edges"]
        edges = zip(data["result"], data["slot"], strict=True)
        self.has_formula = {way for way, formula in zip(edges, data["formula"], strict=True) if formula >= 0}
        self.contribution_counts = {}
        for event in self.events:
            self.contribution_counts[event.operand] = event.of

    def gradient(self, node, position):
        """Return (state, met, of, value), counting the events up to this position."""
        if node == self.root and self.last >= self.seed:
            has_seed = position >= self.seed
            ones = np.ones_like(self.playback.values[node])
            return ("final", 0, 0, ones if self.trace.tensors else 1.0) if has_seed else ("none", 0, 0, None)
        if node in self.playback.blocked:
            return "blocked", 0, 0, None
        totals = [e.total for e in self.events[: max(0, position - self.seed)] if e.operand == node]
        met, of = len(totals), self.contribution_counts.get(node, 0)
        state = "none" if not met else "partial" if met < of else "final"
        return state, met, of, totals[-1] if met else None

    def value(self, node, position):
        return self.playback.values[node] if self.computed.get(node, 0) <= position else None

    def card(self, node, position):
        value, (state, met, of, grad) = self.value(node, position), self.gradient(node, position)
        constant = self.trace.kinds[node] == "c"
        is_array = value is not None and scalar_of(value) is None
        is_shaped = np.size(self.playback.values[node]) != 1
        is_pale = value is None
        marks = [{"none": "wait"}.get(state, state)] + ["pale"] * is_pale
        description = {"none": "gradient not computed yet", "blocked": "gets no gradient"}.get(state)
        shape = " by ".join(map(str, np.shape(self.playback.values[node])))
        shape_label = f"a tensor of shape {shape}" if is_shaped else None
        progress = f" so far, {met} of {of} contributions" if state == "partial" else ""
        description = description or f"gradient {shape_label or pretty(scalar_of(grad))}{progress}"
        value_label = "" if value is None else pretty(scalar_of(value))
        gradient_label = {"none": "—", "blocked": "blocked"}.get(state) or ("" if is_shaped else brief(scalar_of(grad)))
        sum_label = "" if of < 2 or not met else f"Σ {met} of {of}" if state == "partial" else f"Σ {of}"
        kind = {"l": "leaf", "o": "operation", "c": "constant"}[self.trace.kinds[node]]
        label = f"{kind}, value {shape_label or value_label}, {description}"
        label = "not computed yet" if is_pale else f"constant, value {value_label}" if constant else label
        return {
            "state": marks,
            "value": None if is_shaped else "" if value is None else brief(scalar_of(value)),
            "grad": None if constant else "" if is_pale else gradient_label,
            "sum": None if constant else sum_label,
            "pictures": is_array + (is_shaped and grad is not None),
            "said": label,
        }

    def row(self, node, position):
        value, grad = self.value(node, position), self.gradient_text(node, position)
        return ["" if value is None else summarise(value, pretty), grad]

    def gradient_text(self, node, position):
        state, met, of, grad = self.gradient(node, position)
        text = {"none": "—", "blocked": "blocked"}.get(state) or summarise(grad, pretty)
        return f"{text} (Σ {met} of {of})" if state == "partial" else text

    def state_text(self, node, position):
        state, _, of, _ = self.gradient(node, position)
        labels = {"none": "not computed yet", "blocked": "gets no gradient"}
        return labels.get(state) or (f"final, Σ of {of}" if state == "final" and of > 1 else state)

    # --- the step at a position

    def kind(self, position):
        if position == 0:
            return "start"
        return "forward" if position < self.seed else "seed" if position == self.seed else "edge"

    def node(self, position):
        kind = self.kind(position)
        if kind == "start":
            return -1
        if kind == "forward":
            return self.playback.order[position - 1]
        return self.root if kind == "seed" else self.event(position).operand

    def event(self, position):
        return self.events[position - self.seed - 1]

    def chip(self, position):
        kind = self.kind(position)
        if kind == "forward":
            return f"Forward {position} of {len(self.computed)}"
        back = f"Backward {position - self.seed} of {self.last - self.seed}"
        return {"start": "Start", "seed": "Backward", "edge": back}[kind]

    def product(self, position):
        """Return the label of the active edge."""
        if self.kind(position) != "edge":
            return ""
        _, _, _, up, local, down, *_ = self.event(position)
        if local is not None:
            return f"{brief(up)} × {parenthesised(local)} = {brief(down)}"
        shape = f"[{'×'.join(map(str, down.shape))}]"
        return f"+ {shape if scalar_of(down) is None else parenthesised(scalar_of(down))}"

    def sum_label(self, position):
        event = self.event(position)
        name = self.title[event.operand]
        if event.of < 2:
            return ""
        if event.local is None:
            return f"{name}.grad → {summarise(event.total)}"
        before = "0" if event.before is None else brief(event.before)
        return f"{name}.grad: {before} + {parenthesised(event.contribution)} → {brief(event.total)}"

    def factors(self, position):
        """Return upstream × local = contribution for scalars; for arrays the contribution."""
        event = self.event(position)
        if event.local is not None:
            return f"{brief(event.upstream)} × {parenthesised(event.local)} = {brief(event.contribution)}"
        return summarise(event.contribution)

    def symbols(self, position):
        event = self.event(position)
        root, result, operand = (self.title[k] for k in (self.root, event.result, event.operand))
        sign = "+=" if event.of > 1 else "="
        right = "" if event.result == self.root else f"∂{root}/∂{result} · ∂{result}/∂{operand} = "
        return f"∂{root}/∂{operand} {sign} ", right

    def formula(self, position):
        """Return the beginning and the end of the line below the sentence."""
        kind, node = self.kind(position), self.node(position)
        if kind == "start":
            return "", "Press → to compute the first operation."
        if kind == "forward":
            return f"{self.title[node]} = ", self.computation(node)
        if kind == "seed":
            rule = "each arrow multiplies the incoming gradient (upstream) by its derivative (local)"
            end = summarise(self.gradient(node, position)[3]) + rule
            return f"∂{self.title[node]}/∂{self.title[node]} = ", end
        left, right = self.symbols(position)
        event = self.event(position)
        has_formula, factors = (event.result, event.slot) in self.has_formula, self.factors(position)
        if event.local is None:
            return left + ("" if has_formula else right), (
                "" if not self.trace.tensors else " = "
            ) + factors + self.sum_label(position)
        return left + right + factors, self.sum_label(position)

    def computation(self, node):
        """Return the expression with names, then with values, then its result; for tensors only the result."""
        y = summarise(self.playback.values[node])
        if self.trace.tensors:
            return f" = {y}"
        op = self.trace.ops[self.trace.op[node]]
        operands = self.trace.operand[self.trace.start[node] : self.trace.start[node + 1]]
        operand_values = [(k, self.playback.values[k]) for k in operands]
        argument_lists = (
            self.trace.symbols(node),
            [x if self.trace.kinds[k] == "c" else notation.round_for_display(x) for k, x in operand_values],
        )
        return " = ".join([*[strip_tags(mathml(make_formula(op, way))) for way in argument_lists], y])

    def sentence(self, position):
        """Return the beginning, after the step count, and the end of the sentence for screen readers."""
        kind, node = self.kind(position), self.node(position)
        name = self.title[node]
        if kind == "start":
            return "start: ", " known."
        if kind == "forward":
            op = self.trace.ops[self.trace.op[node]].name
            return f"forward: {op} of ", f" is {name} = {speak(self.playback.values[node])}."
        if kind == "seed":
            return f"backward: starts at {name}", f" gradient {speak(self.gradient(node, position)[3])}."
        event = self.event(position)
        down, total = speak(event.contribution), speak(event.total)
        upstream = f" {speak(event.upstream)}"
        if scalar_of(event.upstream) is None:
            upstream = f", {' by '.join(map(str, event.upstream.shape))},"
        op = self.trace.ops[self.trace.op[event.result]].name
        local = f"through {op} gives" if event.local is None else f"times local {pretty(event.local)} is"
        first = f"backward: {self.title[event.result]} to {name}. Upstream{upstream} {local} {down}"
        if event.of == 1:
            return first, f"the gradient of {name}."
        if event.met == 1:
            return first, f"the gradient of {name} so far, 1 of {event.of}."
        added = f": {speak(event.before)} plus {down} is {total}"
        added = added if scalar_of(event.total) is not None else f", which becomes {total}"
        return first, f"added to the gradient of {name}{added}, {event.met} of {event.of}."

    def labels(self, position):
        """Return the local derivatives on edges whose result is computed, except on the active edge."""
        active = self.event(position) if self.kind(position) == "edge" else None
        shown = active and (active.result, active.slot)
        keys = [key for key in self.playback.locals if self.computed[key[0]] <= position and key != shown]
        return sorted(brief(self.playback.locals[key]) for key in keys)

    def all_labels(self, position):
        """Return every label at a position, with the keys of numbers.js."""
        nodes, active = range(len(self.title)), self.node(position)
        value = None if active < 0 else self.value(active, position)
        return {
            "count": f"{position} / {self.last}",
            "chip": self.chip(position),
            "product": self.product(position),
            "done": max(0, position - self.seed - 1),
            "labels": self.labels(position),
            "current": 0 if active < 0 else active + 2,
            "table": [self.row(node, position) for node in nodes],
            "cards": {str(node): self.card(node, position) for node in nodes},
            "inspector": {
                "title": self.title[active] if active >= 0 else "",
                "value": None if active < 0 else "not computed yet" if value is None else summarise(value, pretty),
                "gradient": None if active < 0 else self.gradient_text(active, position),
                "state": None if active < 0 else self.state_text(active, position),
            },
        }
