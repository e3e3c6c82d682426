"""Alarms: notes that warn the user about a graph, each with what it means and what to do.

For NaN and infinity the note names the *first* operation that produced it, and lists the nodes it contaminated. A
network may train well beyond the thresholds below; they decide when a picture warns.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any

from minigrad_viz.trace.columns import Pass, count, finite, same
from minigrad_viz.trace.notation import formula_of, plain, pretty
from minigrad_viz.trace.rows import Note
from minigrad_viz.trace.trace import Trace

__all__ = ["raise_alarms"]

SATURATED = 0.99  # |tanh| above it, and sigmoid likewise: the derivative is below 2% of its maximum
MOST = 0.5  # fraction of saturated elements above which a tensor counts as saturated
NEAR, FAR = 3, 8  # distances from the output, in operations, at which gradients are compared
SCALE = 1e6  # tolerated ratio between a gradient far from the output and those near it
_OTHER_PASS = ("hook", "replayed")  # notes after which .grad may belong to a pass other than the one shown
BATCH = 32  # minimum rows before a unit that is 0 in all of them counts as dead


def raise_alarms(trace: Trace) -> None:
    """Append the alarms of `trace` to its notes."""
    for find in (_overwritten, _not_finite, _gradient_not_finite, _faded, _dead, _saturated, _left_over):
        trace.notes.extend(find(trace))


# --- values ----------------------------------------------------------------------------------------------------------


def _overwritten(trace: Trace) -> Iterable[Note]:
    """Report the first node with a modified operand, and how the two disagree."""
    if not trace.late:
        return
    at = min(trace.late)
    late = trace.late[at]
    names = " and ".join(trace.title(place) for place in late)
    was = "was" if len(late) == 1 else "were"
    others = len(trace.late) - 1
    more = f"; the same applies to {count(others, 'more node', 'more nodes')}" if others else ""
    if late == [at]:
        text = f"{names} was modified in-place, but its own derivative needs the original values"
    elif at in trace.tensors:
        text = f"{names} {was} modified in-place after {trace.title(at)} was computed, so {trace.title(at)} is stale"
    else:
        text = (
            f"{names} {was} assigned another value after {trace.title(at)} was computed: {_with_numbers(trace, at)} "
            f"now, but {trace.title(at)} is still {pretty(trace.values[at])}"
        )
    passed = {run.root for run in trace.passes}
    missing = any(root not in passed for root in trace.outputs)
    missing = missing and not any(note.kind in ("partial", "freed") for note in trace.notes)
    what = "no backward pass can be shown" if at in trace.tensors else "local derivatives are missing"
    text += f"{more}. Recompute it." + (f" Until then {what}." if missing else "")
    yield Note("overwritten", at, text, tuple(sorted(trace.late)))


def _not_finite(trace: Trace) -> Iterable[Note]:
    """Report the first value that is not finite; if it is an infinity, also the first NaN."""
    bad = trace.not_finite()
    harmful = _harmful(trace, bad) if bad else ()
    first = next((index for index in bad if index in harmful or not _put_in(trace, index)), None)
    if first is None:
        return
    yield _origin(trace, first, bad)
    if not _has_nan(_held(trace, first)):
        nan = next((index for index in bad if _has_nan(_held(trace, index))), None)
        if nan is not None:
            yield _origin(trace, nan, bad)


def _origin(trace: Trace, index: int, bad: list[int]) -> Note:
    held = _held(trace, index)
    nan = _has_nan(held)
    what = "NaN" if nan else "infinity"
    if trace.op[index] < 0:
        origin = "an input value"
    else:
        origin = _with_numbers(trace, index)
        if index in trace.tensors and held is not None:
            origin += f", in {_bad_cells(held, nan)}"
    reached = _reached(trace, index, set(bad))
    spread = f" It spread to {count(len(reached), 'node', 'nodes')}." if len(reached) > 1 else ""
    return Note("nan" if nan else "inf", index, f"{trace.title(index)} is the first {what}: {origin}.{spread}", reached)


def _put_in(trace: Trace, index: int) -> bool:
    """Whether an infinity is intended: an input, as for a mask. A NaN never is."""
    if _has_nan(_held(trace, index)):
        return False
    if trace.op[index] < 0 or "inf" in str(trace.attrs.get(index, {})):
        return True
    operands = trace.operand[trace.start[index] : trace.start[index + 1]]
    # A non-finite operand is reported instead; an unknown one is likely the -inf of a mask.
    return any(_held(trace, x) is None or not finite(_held(trace, x)) for x in operands)


def _harmful(trace: Trace, bad: list[int]) -> set[int]:
    """Return the nodes in `bad` that reach an output or become NaN, through such nodes or unknown ones."""
    outputs = set(trace.outputs)
    found = {index for index in bad if index in outputs or _has_nan(_held(trace, index))}
    last, wrong = max(found, default=-1), set(bad)
    for node in range(last, -1, -1):
        if node in found:
            operands = trace.operand[trace.start[node] : trace.start[node + 1]]
            found.update(x for x in operands if x in wrong or _held(trace, x) is None)
    return found & wrong


def _reached(trace: Trace, index: int, bad: set[int]) -> tuple[int, ...]:
    """Return the nodes in `bad` that depend on node `index` through such nodes or unknown ones."""
    touched, found = {index}, []
    for node in range(index + 1, len(trace.kinds)):
        operands = trace.operand[trace.start[node] : trace.start[node + 1]]
        if not touched.isdisjoint(operands):
            if node in bad:
                found.append(node)
            if node in bad or _held(trace, node) is None:
                touched.add(node)
    return tuple(found)


def _gradient_not_finite(trace: Trace) -> Iterable[Note]:
    """Report the first backward step with a non-finite product of finite factors."""
    for run in trace.passes:
        if run.root not in trace.tensors and all(map(math.isfinite, run.contribution)):
            continue
        for at, product in enumerate(run.contribution):
            if finite(product):
                continue
            edge = run.edge[at]
            operand, result = trace.operand[edge], trace.result[edge]
            what = "NaN" if _has_nan(product) else "infinity"
            way = f"∂{trace.title(run.root)}/∂{trace.title(operand)}, through {trace.title(result)}"
            if product.__class__ is float:
                local = pretty(trace.local[edge])
                how = f": {pretty(run.upstream[at])} × {local} = {pretty(product)}"
            else:
                how = f", in {_bad_cells(product, what == 'NaN')}"
            nodes = {
                trace.operand[e]: None for e, x in zip(run.edge[at:], run.total[at:], strict=True) if not finite(x)
            }
            text = f"The first {what} of the backward pass is in {way}{how}."
            yield Note("gradient", operand, text, tuple(nodes), (edge,))
            return


# --- vanishing and exploding gradients -------------------------------------------------------------------------------


def _faded(trace: Trace) -> Iterable[Note]:
    """Report vanishing and exploding gradients: leaves far from the output, compared with nodes near it."""
    for run in trace.passes[:1]:
        away, totals = _distances(trace, run), trace.totals(run)
        close = [_size(totals[node]) for node in totals if away[node] <= NEAR]
        near = [size for size in close if size and math.isfinite(size)]
        leaves = [node for node in totals if away[node] >= FAR and trace.kinds[node] == "l"]
        far = {node: size for node in leaves if (size := _size(totals[node]))}
        if not near or not far:
            continue
        least, most = min(near), max(near)
        small = {node: size for node, size in far.items() if size < least / SCALE}
        large = {node: size for node, size in far.items() if math.isfinite(size) and size > most * SCALE}
        if small:
            yield _far_away(trace, "vanishing", small, min(small, key=lambda n: small[n]), away, least)
        if large:
            yield _far_away(trace, "exploding", large, max(large, key=lambda n: large[n]), away, most)


def _far_away(trace: Trace, kind: Any, found: dict[int, float], worst: int, away: list[int], near: float) -> Note:
    name = trace.title(worst)
    others = count(len(found) - 1, "other leaf", "other leaves")
    what, why, remedy = {
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
        f"The gradient of {name} is {what}, {pretty(found[worst])} against {pretty(near)} near the output: "
        f"the {away[worst]} operations between multiply {why}; {remedy}."
        + (f" The same applies to {others}." if others else "")
    )
    return Note(kind, worst, text, tuple(sorted(found)))


def _distances(trace: Trace, run: Pass) -> list[int]:
    """Return the distance of each node from the root of a pass, in operations along the shortest path."""
    away = [len(trace.kinds)] * len(trace.kinds)
    away[run.root] = 0
    operands, results = trace.operand, trace.result
    for edge in run.edge:  # results precede their operands
        there = away[results[edge]] + 1
        if there < away[operands[edge]]:
            away[operands[edge]] = there
    return away


# --- activations that block gradients --------------------------------------------------------------------------------


def _dead(trace: Trace) -> Iterable[Note]:
    """Report ReLUs that are 0 for every input: scalars all together, tensors entirely or by unit."""
    scalars, dead = [], []
    for index in _made_by(trace, "relu"):
        held = _held(trace, index)
        if held.__class__ is float:
            scalars.append(index)
        elif held is not None and held.size and (found := _dead_units(held)) != (0, 0):
            dead.append((index, found))
    if scalars and all(trace.values[index] == 0.0 for index in scalars):
        one = len(scalars) == 1
        names = trace.title(scalars[0]) if one else f"All {len(scalars)} ReLUs"
        text = f"{names} {'is' if one else 'are'} 0: dead. Their input is negative and no gradient passes. "
        text = text.replace("Their", "Its") if one else text
        yield Note(
            "dead", scalars[0], f"{text}A smaller learning rate, or a positive bias, keeps them alive.", tuple(scalars)
        )
    if dead:
        index, (off, units) = dead[0]
        which = "is 0 everywhere" if off == units else f"has {off} of {units} units that are 0 for every row"
        more = f" The same applies to {count(len(dead) - 1, 'more node', 'more nodes')}." if len(dead) > 1 else ""
        text = (
            f"{trace.title(index)} {which}: dead ReLUs, through which no gradient passes, so they cannot "
            f"recover. A smaller learning rate, or leaky ReLU, keeps them alive.{more}"
        )
        yield Note("dead", index, text, tuple(index for index, _ in dead))


def _dead_units(y: Any) -> tuple[int, int]:
    """Return how many units (last dimension) are 0 for every row, and the unit count; (0, 0) if inconclusive."""
    if not y.any():
        return 1, 1
    rows = y.reshape(-1, y.shape[-1]) if y.ndim > 1 else y.reshape(1, -1)
    off = int((~rows.any(0)).sum()) if len(rows) >= BATCH else 0
    return (off, rows.shape[1]) if off else (0, 0)


def _saturated(trace: Trace) -> Iterable[Note]:
    """Report saturated tanh and sigmoid nodes."""
    found = []
    for name, low in (("tanh", -SATURATED), ("sigmoid", 1.0 - SATURATED)):
        for index in _made_by(trace, name):
            held = _held(trace, index)
            if held is None or not finite(held):
                continue
            if held.__class__ is float:
                flat = float(held > SATURATED or held < low)
            else:
                flat = float(((held > SATURATED) | (held < low)).mean()) if held.size else 0.0
            if flat > MOST:
                found.append((index, name, flat))
    if found:
        index, name, flat = found[0]
        part = "" if index not in trace.tensors else f" in {flat:.0%} of its elements"
        more = f" The same applies to {count(len(found) - 1, 'more node', 'more nodes')}." if len(found) > 1 else ""
        text = (
            f"{trace.title(index)} is saturated{part}: {name} is flat there, its derivative near 0, so hardly any "
            "gradient passes. Smaller weights, or inputs of mean 0 and standard deviation 1, keep it in its steep "
            f"part.{more}"
        )
        yield Note("saturated", index, text, tuple(sorted(index for index, _, _ in found)))


# --- gradients from another pass -------------------------------------------------------------------------------------


def _left_over(trace: Trace) -> Iterable[Note]:
    """Report leaves whose .grad is not that of one pass: a missing zero_grad, or a second backward."""
    if len(trace.passes) != 1 or len(trace.outputs) != 1 or any(note.kind in _OTHER_PASS for note in trace.notes):
        return
    totals = trace.totals(trace.passes[0])
    root = trace.outputs[0]
    if trace.kinds[root] == "l":
        return  # a leaf alone: its gradient belongs to another graph
    seed = trace.grads.get(root)
    if root in trace.tensors and math.prod(trace.tensors[root].shape) != 1:
        return  # its seed is unknown
    factor = 1.0 if seed is None else float(seed if seed.__class__ is float else seed.reshape(-1)[0])
    odd = []
    for index, grad in trace.grads.items():
        if trace.kinds[index] == "l" and index in totals and _size(grad) and finite(totals[index]):
            times = _times(grad, totals[index])
            if times is None or not (math.isclose(times, factor, rel_tol=1e-5) and factor not in range(2, 100)):
                odd.append((index, times))
    if not odd:
        return
    index, times = odd[0]
    name, more = trace.title(index), count(len(odd) - 1, "other leaf", "other leaves")
    adds = "backward() accumulates into .grad, unless it began at a later result"
    whole = times is not None and round(times) >= 2 and math.isclose(times, round(times), rel_tol=1e-5)
    if whole and (seed is None or times == factor):  # a Value's root accumulates its seeds
        many = round(times or 0)
        text = f"The gradient of {name} is {many} times that of one pass: {adds}."
    elif seed is None and trace.states[root] == "n" and trace.kinds[root] == "o":
        text = f"The gradient of {name} is from an earlier pass: backward() will accumulate into it."
    else:
        text = f"The gradient of {name} contains more than this pass: {adds}."
    text += f" The same applies to {more}." if more else ""
    yield Note("stale", index, f"{text} Call zero_grad() before each backward().", tuple(i for i, _ in odd))


def _times(grad: Any, total: Any) -> float | None:
    """Return the factor by which `grad` is a multiple of `total`; None if it is not."""
    size = _size(total)
    times = _size(grad) / size if size else 0.0
    for factor in (times, -times):
        if factor and same(grad, factor * total):
            return factor
    return None


# --- helpers ---------------------------------------------------------------------------------------------------------


def _held(trace: Trace, index: int) -> Any:
    """Return the value or array of a node; None if unknown."""
    shaped = trace.tensors.get(index)
    return trace.values[index] if shaped is None else shaped.array


def _made_by(trace: Trace, name: str) -> list[int]:
    wanted = {place for place, op in enumerate(trace.ops) if op.name == name}
    return [index for index, at in enumerate(trace.op) if at in wanted] if wanted else []


def _size(x: Any) -> float:
    """Return the magnitude of a number, or the root mean square of an array, without overflow."""
    if x.__class__ is float:
        return abs(float(x))
    top = float(abs(x).max()) if getattr(x, "size", 1) else 0.0
    if not top or not math.isfinite(top):
        return top
    return top * float((((x / top) ** 2).mean()) ** 0.5) if hasattr(x, "mean") else top


def _has_nan(x: Any) -> bool:
    return bool(math.isnan(x)) if x.__class__ is float else x is not None and bool((x != x).any())


def _bad_cells(x: Any, nan: bool) -> str:
    n = int((x != x).sum() if nan else (abs(x) == math.inf).sum())
    return f"{n:,} of {x.size:,} elements" if x.size > 1 else "its only element"


def _with_numbers(trace: Trace, index: int) -> str:
    """Return how a node was computed, in names and, for scalars, in numbers."""
    op = trace.ops[trace.op[index]]
    operands = trace.operand[trace.start[index] : trace.start[index + 1]]
    formula = plain(formula_of(op, trace.symbols(index)))
    values: list[Any] = [trace.values[x] for x in operands]
    if index in trace.tensors or any(x is None for x in values):
        return formula
    numbers = plain(formula_of(op, values))
    return formula if formula == numbers else f"{formula} = {numbers}"
