"""Alarms: notes that warn the user about a problem in a graph, explain it and suggest a remedy.

For NaN and infinity the note names the *first* operation that produced it, and lists the nodes it contaminated. A
network may train well even beyond the thresholds below; they only determine when a picture shows a warning.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from minigrad_viz.trace.array_summary import ArraySummary, count_bad_elements, has_nan, magnitude
from minigrad_viz.trace.columns import Pass, count_phrase, is_close, is_finite
from minigrad_viz.trace.notation import format_pretty, formula_text, make_formula
from minigrad_viz.trace.rows import Note
from minigrad_viz.trace.trace import Trace

__all__ = ["add_alarms"]

# Threshold of |tanh|, and likewise of sigmoid, above which the derivative is below 2% of its maximum.
SATURATION_LEVEL = 0.99
MAX_SATURATED_FRACTION = 0.5  # fraction of saturated elements above which a tensor counts as saturated
MAX_NEAR_DISTANCE, MIN_FAR_DISTANCE = 3, 8  # distances from the output, in operations, at which gradients are compared
MAX_GRADIENT_RATIO = 1e6  # largest accepted ratio between a gradient far from the output and those near it
# Kinds of notes after which .grad may be the result of a pass other than the one shown.
INCONCLUSIVE_NOTES = ("hook", "replayed")
MIN_DEAD_ROWS = 32  # minimum number of rows for a unit that is 0 in all rows to count as dead


def add_alarms(trace: Trace) -> None:
    """Append the alarms of `trace` to its notes."""
    value_checks = (_stale_values, _non_finite_values)
    gradient_checks = (_non_finite_gradients, _faded_gradients, _dead_relus, _saturated_nodes, _stale_gradients)
    for check in value_checks + gradient_checks:
        trace.notes.extend(check(trace))


# --- values ----------------------------------------------------------------------------------------------------------


def _stale_values(trace: Trace) -> Iterable[Note]:
    """Report the first node whose operand was modified after the node was computed, and the resulting mismatch."""
    if not trace.modified_operands:
        return
    first_stale = min(trace.modified_operands)
    modified = trace.modified_operands[first_stale]
    names = " and ".join(trace.title(operand) for operand in modified)
    was = "was" if len(modified) == 1 else "were"
    other_count = len(trace.modified_operands) - 1
    suffix = f"; the same applies to {count_phrase(other_count, 'more node', 'more nodes')}" if other_count else ""
    if modified == [first_stale]:
        text = f"{names} was modified in-place, but its own derivative needs the original values"
    elif first_stale in trace.tensors:
        text = (
            f"{names} {was} modified in-place after {trace.title(first_stale)} was computed, so "
            f"{trace.title(first_stale)} is stale"
        )
    else:
        text = (
            f"{names} {was} assigned another value after {trace.title(first_stale)} was computed: "
            f"{_formula_with_numbers(trace, first_stale)} "
            f"now, but {trace.title(first_stale)} is still {format_pretty(trace.values[first_stale])}"
        )
    roots_with_pass = {run.root for run in trace.passes}
    missing = any(root not in roots_with_pass for root in trace.outputs)
    missing = missing and not any(note.kind in ("partial", "freed") for note in trace.notes)
    consequence = "no backward pass can be shown" if first_stale in trace.tensors else "local derivatives are missing"
    text += f"{suffix}. Recompute it." + (f" Until then {consequence}." if missing else "")
    yield Note("overwritten", first_stale, text, tuple(sorted(trace.modified_operands)))


def _non_finite_values(trace: Trace) -> Iterable[Note]:
    """Report the first value that is not finite; if it is an infinity, also the first NaN."""
    bad = trace.non_finite_nodes()
    harmful = _harmful_nodes(trace, bad) if bad else ()
    first = next((index for index in bad if index in harmful or not _is_intended_infinity(trace, index)), None)
    if first is None:
        return
    yield _origin_note(trace, first, bad)
    if not has_nan(_value_of(trace, first)):
        nan = next((index for index in bad if has_nan(_value_of(trace, index))), None)
        if nan is not None:
            yield _origin_note(trace, nan, bad)


def _origin_note(trace: Trace, index: int, bad: list[int]) -> Note:
    value = _value_of(trace, index)
    nan = has_nan(value)
    kind = "NaN" if nan else "infinity"
    if trace.op[index] < 0:
        origin = "an input value"
    else:
        origin = _formula_with_numbers(trace, index)
        if index in trace.tensors and value is not None:
            origin += f", in {count_bad_elements(value, nan)}"
    contaminated = _contaminated_nodes(trace, index, set(bad))
    spread = f" It spread to {count_phrase(len(contaminated), 'node', 'nodes')}." if len(contaminated) > 1 else ""
    return Note(
        "nan" if nan else "inf", index, f"{trace.title(index)} is the first {kind}: {origin}.{spread}", contaminated
    )


def _is_intended_infinity(trace: Trace, index: int) -> bool:
    """Whether an infinity is intended, for example as an input for a mask. A NaN is never intended."""
    if has_nan(_value_of(trace, index)):
        return False
    if trace.op[index] < 0 or "inf" in str(trace.attrs.get(index, {})):
        return True
    operands = trace.operand[trace.start[index] : trace.start[index + 1]]
    # A non-finite operand is reported instead; an unknown one is likely the -inf of a mask.
    return any(_value_of(trace, x) is None or not is_finite(_value_of(trace, x)) for x in operands)


def _harmful_nodes(trace: Trace, bad: list[int]) -> set[int]:
    """Return the nodes in `bad` that are outputs or contain NaN, and those in `bad` on which such nodes depend.
    Dependencies may pass through nodes in `bad` or with unknown values.
    """
    outputs = set(trace.outputs)
    harmful = {index for index in bad if index in outputs or has_nan(_value_of(trace, index))}
    last, bad_set = max(harmful, default=-1), set(bad)
    for node in range(last, -1, -1):
        if node in harmful:
            operands = trace.operand[trace.start[node] : trace.start[node + 1]]
            harmful.update(x for x in operands if x in bad_set or _value_of(trace, x) is None)
    return harmful & bad_set


def _contaminated_nodes(trace: Trace, index: int, bad: set[int]) -> tuple[int, ...]:
    """Return the nodes in `bad` that depend on node `index` through nodes that are in `bad` or unknown."""
    touched, reached = {index}, []
    for node in range(index + 1, len(trace.kinds)):
        operands = trace.operand[trace.start[node] : trace.start[node + 1]]
        if not touched.isdisjoint(operands):
            if node in bad:
                reached.append(node)
            if node in bad or _value_of(trace, node) is None:
                touched.add(node)
    return tuple(reached)


def _non_finite_gradients(trace: Trace) -> Iterable[Note]:
    """Report the first backward step with a non-finite product of finite factors."""
    for run in trace.passes:
        if run.root not in trace.tensors and all(map(math.isfinite, run.contribution)):
            continue
        for position, product in enumerate(run.contribution):
            if is_finite(product):
                continue
            edge = run.edge[position]
            operand, result = trace.operand[edge], trace.result[edge]
            kind = "NaN" if has_nan(product) else "infinity"
            derivative_phrase = f"∂{trace.title(run.root)}/∂{trace.title(operand)}, through {trace.title(result)}"
            if product.__class__ is float:
                local = format_pretty(trace.local[edge])
                detail = f": {format_pretty(run.upstream[position])} × {local} = {format_pretty(product)}"
            else:
                detail = f", in {count_bad_elements(product, kind == 'NaN')}"
            nodes = {
                trace.operand[e]: None
                for e, x in zip(run.edge[position:], run.total[position:], strict=True)
                if not is_finite(x)
            }
            text = f"The first {kind} of the backward pass is in {derivative_phrase}{detail}."
            yield Note("gradient", operand, text, tuple(nodes), (edge,))
            return


# --- vanishing and exploding gradients -------------------------------------------------------------------------------


def _faded_gradients(trace: Trace) -> Iterable[Note]:
    """Report leaves far from the output whose gradients are much smaller or larger than those of nodes near it."""
    for run in trace.passes[:1]:
        distances, totals = _distances(trace, run), trace.totals(run)
        near_sizes = [magnitude(totals[node]) for node in totals if distances[node] <= MAX_NEAR_DISTANCE]
        near_values = [size for size in near_sizes if size and math.isfinite(size)]
        leaves = [node for node in totals if distances[node] >= MIN_FAR_DISTANCE and trace.kinds[node] == "l"]
        far_sizes = {node: size for node in leaves if (size := magnitude(totals[node]))}
        if not near_values or not far_sizes:
            continue
        smallest_near, largest_near = min(near_values), max(near_values)
        small = {node: size for node, size in far_sizes.items() if size < smallest_near / MAX_GRADIENT_RATIO}
        large = {
            node: size
            for node, size in far_sizes.items()
            if math.isfinite(size) and size > largest_near * MAX_GRADIENT_RATIO
        }
        if small:
            yield _faded_note(trace, "vanishing", small, min(small, key=lambda n: small[n]), distances, smallest_near)
        if large:
            yield _faded_note(trace, "exploding", large, max(large, key=lambda n: large[n]), distances, largest_near)


def _faded_note(
    trace: Trace, kind: Any, sizes: dict[int, float], worst: int, distances: list[int], reference: float
) -> Note:
    name = trace.title(worst)
    other_leaves = count_phrase(len(sizes) - 1, "other leaf", "other leaves")
    size, why, remedy = {
        "vanishing": (
            "tiny",
            "factors below 1",
            "it will hardly learn. Start with larger weights, use ReLU or residuals",
        ),
        "exploding": (
            "huge",
            "factors above 1",
            "an update will overshoot. Start with smaller weights, or clip gradients",
        ),
    }[kind]
    text = (
        f"The gradient of {name} is {size}, {format_pretty(sizes[worst])} against {format_pretty(reference)} near the "
        f"output: the {distances[worst]} operations between multiply {why}; {remedy}."
        + (f" The same applies to {other_leaves}." if other_leaves else "")
    )
    return Note(kind, worst, text, tuple(sorted(sizes)))


def _distances(trace: Trace, run: Pass) -> list[int]:
    """Return the distance of each node from the root of a pass, in operations along the shortest path."""
    distances = [len(trace.kinds)] * len(trace.kinds)
    distances[run.root] = 0
    operands, results = trace.operand, trace.result
    for edge in run.edge:  # results precede their operands
        distance = distances[results[edge]] + 1
        if distance < distances[operands[edge]]:
            distances[operands[edge]] = distance
    return distances


# --- activations that block gradients --------------------------------------------------------------------------------


def _dead_relus(trace: Trace) -> Iterable[Note]:
    """Report ReLUs that are 0 for every input. Scalar ReLUs are considered together, tensors entirely or by unit."""
    scalars, dead = [], []
    for index in _nodes_of_op(trace, "relu"):
        value = _value_of(trace, index)
        if value.__class__ is float:
            scalars.append(index)
        elif value is not None and value.size and (counts := _dead_units(value)) != (0, 0):
            dead.append((index, counts))
    if scalars and all(trace.values[index] == 0.0 for index in scalars):
        is_single = len(scalars) == 1
        names = trace.title(scalars[0]) if is_single else f"All {len(scalars)} ReLUs"
        text = f"{names} {'is' if is_single else 'are'} 0: dead. Their input is negative and no gradient passes. "
        text = text.replace("Their", "Its") if is_single else text
        yield Note(
            "dead", scalars[0], f"{text}A smaller learning rate, or a positive bias, keeps them alive.", tuple(scalars)
        )
    if dead:
        index, (dead_units, units) = dead[0]
        dead_phrase = (
            "is 0 everywhere" if dead_units == units else f"has {dead_units} of {units} units that are 0 for every row"
        )
        other_nodes = count_phrase(len(dead) - 1, "more node", "more nodes")
        text = (
            f"{trace.title(index)} {dead_phrase}: dead ReLUs, through which no gradient passes, so they cannot "
            "recover. A smaller learning rate, or leaky ReLU, keeps them alive."
        )
        text += f" The same applies to {other_nodes}." if other_nodes else ""
        yield Note("dead", index, text, tuple(index for index, _ in dead))


def _dead_units(y: Any) -> tuple[int, int]:
    """Return the number of units (last dimension) that are 0 in every row, and of all units; (0, 0) if inconclusive."""
    if isinstance(y, ArraySummary):
        return (1, 1) if y.statistics["min"] == y.statistics["max"] == 0.0 else (0, 0)
    if not y.any():
        return 1, 1
    rows = y.reshape(-1, y.shape[-1]) if y.ndim > 1 else y.reshape(1, -1)
    dead_units = int((~rows.any(0)).sum()) if len(rows) >= MIN_DEAD_ROWS else 0
    return (dead_units, rows.shape[1]) if dead_units else (0, 0)


def _saturated_nodes(trace: Trace) -> Iterable[Note]:
    """Report saturated tanh and sigmoid nodes."""
    saturated = []
    for name, low in (("tanh", -SATURATION_LEVEL), ("sigmoid", 1.0 - SATURATION_LEVEL)):
        for index in _nodes_of_op(trace, name):
            value = _value_of(trace, index)
            if value is None or not is_finite(value):
                continue
            value = value.cells if isinstance(value, ArraySummary) else value
            if value.__class__ is float:
                fraction = float(value > SATURATION_LEVEL or value < low)
            else:
                fraction = float(((value > SATURATION_LEVEL) | (value < low)).mean()) if value.size else 0.0
            if fraction > MAX_SATURATED_FRACTION:
                saturated.append((index, name, fraction))
    if saturated:
        index, name, fraction = saturated[0]
        part = "" if index not in trace.tensors else f" in {fraction:.0%} of its elements"
        other_nodes = count_phrase(len(saturated) - 1, "more node", "more nodes")
        text = (
            f"{trace.title(index)} is saturated{part}: {name} is flat there, its derivative near 0, so hardly any "
            "gradient passes. Smaller weights, or inputs of mean 0 and standard deviation 1, keep it in its steep "
            "part."
        )
        text += f" The same applies to {other_nodes}." if other_nodes else ""
        yield Note("saturated", index, text, tuple(sorted(index for index, _, _ in saturated)))


# --- gradients from another pass -------------------------------------------------------------------------------------


def _stale_gradients(trace: Trace) -> Iterable[Note]:
    """Report leaves whose .grad is not the result of one pass, due to a missing zero_grad or a second backward."""
    if (
        len(trace.passes) != 1
        or len(trace.outputs) != 1
        or any(note.kind in INCONCLUSIVE_NOTES for note in trace.notes)
    ):
        return
    totals = trace.totals(trace.passes[0])
    root = trace.outputs[0]
    if trace.kinds[root] == "l":
        return  # the graph is a single leaf, whose gradient belongs to another graph
    seed = trace.grads.get(root)
    if root in trace.tensors and math.prod(trace.tensors[root].shape) != 1:
        return  # the seed of the pass is unknown
    factor = 1.0 if seed is None else float(seed if seed.__class__ is float else seed.reshape(-1)[0])
    mismatched = []
    for index, grad in trace.grads.items():
        if trace.kinds[index] == "l" and index in totals and magnitude(grad) and is_finite(totals[index]):
            times = _multiple_of(grad, totals[index])
            if times is None or not (math.isclose(times, factor, rel_tol=1e-5) and factor not in range(2, 100)):
                mismatched.append((index, times))
    if not mismatched:
        return
    index, times = mismatched[0]
    name, other_leaves = trace.title(index), count_phrase(len(mismatched) - 1, "other leaf", "other leaves")
    explanation = "backward() accumulates into .grad, unless it began at a later result"
    is_integer_multiple = times is not None and round(times) >= 2 and math.isclose(times, round(times), rel_tol=1e-5)
    # The gradient of a Value that is a root accumulates its seeds.
    if is_integer_multiple and (seed is None or times == factor):
        multiple = round(times or 0)
        text = f"The gradient of {name} is {multiple} times that of one pass: {explanation}."
    elif seed is None and trace.states[root] == "n" and trace.kinds[root] == "o":
        text = f"The gradient of {name} is from an earlier pass: backward() will accumulate into it."
    else:
        text = f"The gradient of {name} contains more than this pass: {explanation}."
    text += f" The same applies to {other_leaves}." if other_leaves else ""
    yield Note("stale", index, f"{text} Call zero_grad() before each backward().", tuple(i for i, _ in mismatched))


def _multiple_of(grad: Any, total: Any) -> float | None:
    """Return `grad` / `total` if one is a multiple of the other, otherwise None."""
    size = magnitude(total)
    times = magnitude(grad) / size if size else 0.0
    for factor in (times, -times):
        if factor and is_close(grad, total.scaled(factor) if isinstance(total, ArraySummary) else factor * total):
            return factor
    return None


# --- helpers ---------------------------------------------------------------------------------------------------------


def _value_of(trace: Trace, index: int) -> Any:
    """Return the value or array of a node; None if unknown."""
    shaped = trace.tensors.get(index)
    return trace.values[index] if shaped is None else shaped.array


def _nodes_of_op(trace: Trace, name: str) -> list[int]:
    op_indices = {candidate for candidate, op in enumerate(trace.ops) if op.name == name}
    return [index for index, op_index in enumerate(trace.op) if op_index in op_indices] if op_indices else []


def _formula_with_numbers(trace: Trace, index: int) -> str:
    """Return the formula of a node in terms of names and, for scalars, also of numbers."""
    op = trace.ops[trace.op[index]]
    operands = trace.operand[trace.start[index] : trace.start[index + 1]]
    formula = formula_text(make_formula(op, trace.symbols(index)))
    values: list[Any] = [trace.values[x] for x in operands]
    if index in trace.tensors or any(x is None for x in values):
        return formula
    numeric_formula = formula_text(make_formula(op, values))
    return formula if formula == numeric_formula else f"{formula} = {numeric_formula}"
