"""The expected labels of a player at each position: every label with a value, derived from the engine's results."""

from __future__ import annotations

import functools
import json
import re

import numpy as np

from minigrad_viz.trace import notation
from minigrad_viz.trace.notation import formula_of, mathml

pretty = functools.lru_cache(100_000)(notation.pretty)
brief = functools.lru_cache(100_000)(notation.brief)

# --- labels ----------------------------------------------------------------------------------------------------------


def single(x):
    """Return the scalar if there is exactly one element, else None."""
    if isinstance(x, np.ndarray):
        return float(x.reshape(-1)[0]) if x.size == 1 else None
    return x


def bracketed(x):
    return f"({brief(x)})" if x < 0 else brief(x)


def finite(x):
    found = x[np.isfinite(x)]
    return float(found.min()), float(found.max())


def quantity(x, show=brief):
    """Format a scalar, or summarise an array in one line."""
    if x is None or single(x) is not None:
        return show(single(x))
    low, high = finite(x)
    shape = ", ".join(map(str, x.shape)) + "," * (x.ndim == 1)
    return f"({shape}) from {show(low)} to {show(high)}"


def words(x):
    """Format the same for a screen reader."""
    if single(x) is not None:
        return pretty(single(x))
    low, high = finite(x)
    shape = " by ".join(map(str, x.shape))
    return f"an array of {shape}" + (
        f", all {pretty(low)}" if low == high else f" from {pretty(low)} to {pretty(high)}"
    )


def letters(markup):
    return re.sub("<[^>]*>", "", markup)


# --- expectations ----------------------------------------------------------------------------------------------------


class Moments:
    """The state and the labels that a player should show at each position."""

    def __init__(self, played):
        self.played, self.trace = played, played.trace
        self.events, self.seed, self.last = played.events, played.seed, played.last
        self.root = played.place(played.root)
        self.title = [self.trace.title(k) for k in range(len(self.trace.kinds))]
        self.computed = {node: k + 1 for k, node in enumerate(played.order)}
        self.text = self.trace.json(full=True)
        data = json.loads(self.text)["edges"]
        ways = zip(data["result"], data["slot"], strict=True)
        self.ruled = {way for way, formula in zip(ways, data["formula"], strict=True) if formula >= 0}
        self.of = {}
        for event in self.events:
            self.of[event.operand] = event.of

    def gradient(self, node, position):
        """Return (state, met, of, value), counting the events up to this position."""
        if node == self.root and self.last >= self.seed:
            begun = position >= self.seed
            one = np.ones_like(self.played.values[node])
            return ("final", 0, 0, one if self.trace.tensors else 1.0) if begun else ("none", 0, 0, None)
        if node in self.played.blocked:
            return "blocked", 0, 0, None
        arrived = [e.total for e in self.events[: max(0, position - self.seed)] if e.operand == node]
        met, of = len(arrived), self.of.get(node, 0)
        state = "none" if not met else "partial" if met < of else "final"
        return state, met, of, arrived[-1] if met else None

    def value(self, node, position):
        return self.played.values[node] if self.computed.get(node, 0) <= position else None

    def card(self, node, position):
        value, (state, met, of, grad) = self.value(node, position), self.gradient(node, position)
        constant = self.trace.kinds[node] == "c"
        array = value is not None and single(value) is None
        shaped = np.size(self.played.values[node]) != 1
        pale = value is None
        marks = [{"none": "wait"}.get(state, state)] + ["pale"] * pale
        said = {"none": "gradient not computed yet", "blocked": "gets no gradient"}.get(state)
        tensor = " by ".join(map(str, np.shape(self.played.values[node])))
        shown = f"a tensor of shape {tensor}" if shaped else None
        many = f" so far, {met} of {of} contributions" if state == "partial" else ""
        said = said or f"gradient {shown or pretty(single(grad))}{many}"
        number = "" if value is None else pretty(single(value))
        sign = {"none": "—", "blocked": "blocked"}.get(state) or ("" if shaped else brief(single(grad)))
        sums = "" if of < 2 or not met else f"Σ {met} of {of}" if state == "partial" else f"Σ {of}"
        kind = {"l": "leaf", "o": "operation", "c": "constant"}[self.trace.kinds[node]]
        end = f"{kind}, value {shown or number}, {said}"
        end = "not computed yet" if pale else f"constant, value {number}" if constant else end
        return {
            "state": marks,
            "value": None if shaped else "" if value is None else brief(single(value)),
            "grad": None if constant else "" if pale else sign,
            "sum": None if constant else sums,
            "pictures": array + (shaped and grad is not None),
            "said": end,
        }

    def row(self, node, position):
        value, grad = self.value(node, position), self.gradient_text(node, position)
        return ["" if value is None else quantity(value, pretty), grad]

    def gradient_text(self, node, position):
        state, met, of, grad = self.gradient(node, position)
        text = {"none": "—", "blocked": "blocked"}.get(state) or quantity(grad, pretty)
        return f"{text} (Σ {met} of {of})" if state == "partial" else text

    def state_text(self, node, position):
        state, _, of, _ = self.gradient(node, position)
        known = {"none": "not computed yet", "blocked": "gets no gradient"}
        return known.get(state) or (f"final, Σ of {of}" if state == "final" and of > 1 else state)

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
            return self.played.order[position - 1]
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
            return f"{brief(up)} × {bracketed(local)} = {brief(down)}"
        shape = f"[{'×'.join(map(str, down.shape))}]"
        return f"+ {shape if single(down) is None else bracketed(single(down))}"

    def sum(self, position):
        event = self.event(position)
        name = self.title[event.operand]
        if event.of < 2:
            return ""
        if event.local is None:
            return f"{name}.grad → {quantity(event.total)}"
        before = "0" if event.before is None else brief(event.before)
        return f"{name}.grad: {before} + {bracketed(event.contribution)} → {brief(event.total)}"

    def factors(self, position):
        """Return upstream × local = contribution for scalars; for arrays the contribution."""
        event = self.event(position)
        if event.local is not None:
            return f"{brief(event.upstream)} × {bracketed(event.local)} = {brief(event.contribution)}"
        return quantity(event.contribution)

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
            end = quantity(self.gradient(node, position)[3]) + rule
            return f"∂{self.title[node]}/∂{self.title[node]} = ", end
        left, right = self.symbols(position)
        event = self.event(position)
        ruled, factors = (event.result, event.slot) in self.ruled, self.factors(position)
        if event.local is None:
            return left + ("" if ruled else right), ("" if not self.trace.tensors else " = ") + factors + self.sum(
                position
            )
        return left + right + factors, self.sum(position)

    def computation(self, node):
        """Return the expression with names, then with values, then its result; for tensors only the result."""
        y = quantity(self.played.values[node])
        if self.trace.tensors:
            return f" = {y}"
        op = self.trace.ops[self.trace.op[node]]
        operands = self.trace.operand[self.trace.start[node] : self.trace.start[node + 1]]
        numbers = [(k, self.played.values[k]) for k in operands]
        ways = (
            self.trace.symbols(node),
            [x if self.trace.kinds[k] == "c" else notation.shortened(x) for k, x in numbers],
        )
        return " = ".join([*[letters(mathml(formula_of(op, way))) for way in ways], y])

    def spoken(self, position):
        """Return the beginning, after the step count, and the end of the sentence for screen readers."""
        kind, node = self.kind(position), self.node(position)
        name = self.title[node]
        if kind == "start":
            return "start: ", " known."
        if kind == "forward":
            op = self.trace.ops[self.trace.op[node]].name
            return f"forward: {op} of ", f" is {name} = {words(self.played.values[node])}."
        if kind == "seed":
            return f"backward: starts at {name}", f" gradient {words(self.gradient(node, position)[3])}."
        event = self.event(position)
        down, total = words(event.contribution), words(event.total)
        above = f" {words(event.upstream)}"
        if single(event.upstream) is None:
            above = f", {' by '.join(map(str, event.upstream.shape))},"
        op = self.trace.ops[self.trace.op[event.result]].name
        local = f"through {op} gives" if event.local is None else f"times local {pretty(event.local)} is"
        first = f"backward: {self.title[event.result]} to {name}. Upstream{above} {local} {down}"
        if event.of == 1:
            return first, f"the gradient of {name}."
        if event.met == 1:
            return first, f"the gradient of {name} so far, 1 of {event.of}."
        added = f": {words(event.before)} plus {down} is {total}"
        added = added if single(event.total) is not None else f", which becomes {total}"
        return first, f"added to the gradient of {name}{added}, {event.met} of {event.of}."

    def labels(self, position):
        """Return the local derivatives on edges whose result is computed, except on the active edge."""
        now = self.event(position) if self.kind(position) == "edge" else None
        told = now and (now.result, now.slot)
        known = [key for key in self.played.locals if self.computed[key[0]] <= position and key != told]
        return sorted(brief(self.played.locals[key]) for key in known)

    def texts(self, position):
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
                "value": None if active < 0 else "not computed yet" if value is None else quantity(value, pretty),
                "gradient": None if active < 0 else self.gradient_text(active, position),
                "state": None if active < 0 else self.state_text(active, position),
            },
        }
