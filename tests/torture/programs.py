"""Random programs over all operations, run on `numpy`, on `cpu`, with `mg.jit`, and in PyTorch.

The program of a number is the same in each campaign. It creates tensors of several dtypes and shapes, views of them,
in-place writes, calls that must raise, and gradients to second order; `_programs_calls.py` defines the calls. The
results of two libraries may differ as much as minigrad's do when its kernels round differently (`noisy`), and no more.
A failing program is reported with as few lines as still fail.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from torture import Campaign

__all__ = ["CAMPAIGNS"]

TIMES = 16.0  # tolerance as a multiple of the spread from rounding in minigrad
SEVERAL = "returns multiple views"
RUNS = 5  # of a jitted step: captured, captured as launches, and replayed
OVERWRITTEN = "modified by an inplace operation"  # in the messages of both libraries
# After how many runs launches are merged, and the limit: none merged, only loops fused, all merged. Merging is slow.
HOW = ((2 * RUNS, 0), (1, 0), (2 * RUNS, 0), (1, 1024))


def beside(number: int) -> str | None:
    """Compare a program on numpy, on cpu and in PyTorch: values, dtypes, views, errors and gradients."""
    from torture import _programs_made

    return _smallest(_programs_made.program(number), _beside)


def _beside(program: Any) -> str | None:
    from torture import _programs_run as run
    from torture._programs_decided import decided

    mine = run.ran(program, run.minigrad("numpy"))
    its = run.ran(program, run.minigrad("cpu"))
    odd = run.lying_otherwise(program, mine, its)
    unequal = mine.refused.keys() ^ its.refused.keys()
    odd += [k for k in unequal if decided(program.lines[k].text, mine.refused.get(k), its.refused.get(k))]
    if odd:
        return _beside(program.without(odd))
    wrong = _alike(program, mine, its) or _compared(program, run.told(mine), run.told(its), "on cpu")
    return wrong or (_in_pytorch(program) if program.parity else None)


def _alike(program: Any, mine: Any, its: Any) -> str | None:
    """Describe where only one device raises for a line or in the backward pass, or the errors differ."""
    from minigrad.core.errors import MinigradError

    lines = dict(enumerate(map(str, program.lines)))
    for k, line in lines.items():
        a, b = mine.refused.get(k), its.refused.get(k)
        if a is not None and not isinstance(a, (MinigradError, NameError)):
            return f"{line}: {type(a).__name__}: {a}"
        if _said(a) != _said(b):
            return f"{line}: {a!r}, on cpu {b!r}"
    a, b = mine.stopped, its.stopped
    if a is not None and not isinstance(a, MinigradError):
        return f"backward: {type(a).__name__}: {a}"
    return None if _said(a) == _said(b) else f"backward: {a!r}, on cpu {b!r}"


def _said(error: Exception | None) -> tuple[type, str]:
    """Return the class of an error, and the function that raised: messages may contain values and addresses."""
    return type(error), str(error).partition(":")[0]


def _in_pytorch(program: Any) -> str | None:
    """Describe what differs from PyTorch. Lines for which PyTorch has no kernel are dropped, with their dependents."""
    import parity
    from torture import _programs_run as run
    from torture._programs_decided import DERIVATIVES, decided

    its = run.ran(program, run.pytorch())
    mine = run.ran(program, run.minigrad("numpy"))
    left_out = []
    for k, line in enumerate(map(str, program.lines)):
        a, b = mine.refused.get(k), its.refused.get(k)
        if (a is None) != (b is None):
            known = decided(line, a, b) or any(words in str(b) for words in parity.NO_KERNEL)
            if not known and not (left_out and isinstance(b or a, NameError)):  # caused by a dropped line
                return f"{line}: here {a!r}, in PyTorch {b!r}"
            left_out.append(k)
        elif isinstance(b, IndexError | ValueError | TypeError) and not isinstance(a, type(b)):
            return f"{line}: here {a!r}, in PyTorch {b!r}"
    if left_out:
        return _in_pytorch(program.without(left_out))
    odd = run.lying_otherwise(program, mine, its)
    if odd:
        return _in_pytorch(program.without(odd))
    a, b = mine.stopped, its.stopped
    unknown = (*parity.NO_KERNEL, "is not implemented", "undefined Tensor in C++", OVERWRITTEN, SEVERAL)
    if OVERWRITTEN in str(a) or any(words in str(b) for words in unknown):  # saved tensors differ
        mine.grads = its.grads = {}
    elif (a is None) != (b is None):
        return f"backward: here {a!r}, in PyTorch {b!r}"
    for one in DERIVATIVES:
        if any(one.line in line.text for line in program.lines):
            for found in (mine, its):
                found.grads = {x: g for x, g in found.grads.items() if int(x.split()[1]) < one.order}
    try:
        there = run.told(its)
    except RuntimeError as error:
        if SEVERAL in str(error):  # written through a view: PyTorch raises on any further use
            return None
        raise
    here = run.told(mine)
    return _compared(program, here, _without_nan(here, there), "in PyTorch")


def _without_nan(mine: dict[str, Any], its: dict[str, Any]) -> dict[str, Any]:
    """Return PyTorch's results, with minigrad's second derivatives where PyTorch's are NaN: norms and powers at 0."""
    import numpy as np

    found = dict(its)
    for label, b in its.items():
        if (
            label.startswith("gradient 2")
            and isinstance(b, np.ndarray)
            and getattr(mine.get(label), "shape", None) == b.shape
        ):
            found[label] = np.where(np.isnan(b), mine[label], b)
    return found


def _compared(program: Any, mine: dict[str, Any], its: dict[str, Any], where: str) -> str | None:
    """Return the first label whose results differ by more than rounding."""
    import numpy as np

    from torture import _programs_run as run

    spread: Any = False  # not yet known
    size = max([largest(x) for x in (*mine.values(), *[leaf.array for leaf in program.leaves])], default=0.0)
    for label in [*mine, *[label for label in its if label not in mine]]:
        a, b = mine.get(label), its.get(label)
        if label.startswith("gradient") and (a is None or b is None):  # one library may return 0, the other None
            there = a if b is None else b
            if isinstance(there, np.ndarray) and np.nan_to_num(there).any():
                return f"{label} {a}, {where} {b}"
            continue
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            if _near(a, b, size, 0.0):
                continue
            if spread is False:
                spread = run.noisy(program, mine)
            if spread is not None and a.shape == b.shape and not _near(a, b, size, spread[label]):
                return f"{label} {a.tolist()}, {where} {b.tolist()}"
        elif a != b and not (label.startswith("strides") and None in (a, b)):  # the layouts may differ
            return f"{label} {a}, {where} {b}"
    return None


def largest(x: Any) -> float:
    """Return the largest finite element of a floating-point array, 0 for others."""
    import numpy as np

    return (
        float(np.abs(x[np.isfinite(x)]).max(initial=0.0)) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else 0.0
    )


def _near(a: Any, b: Any, size: float, spread: Any) -> bool:
    """Whether arrays have equal shapes and elements, up to a tolerance and the spread of each element."""
    import numpy as np

    from strategies import PARITY

    if a.shape != b.shape:
        return False
    if a.dtype.kind != "f" or b.dtype.kind != "f":
        return bool(((a == b) | (spread > 0)).all())
    tolerance = max(PARITY[x.dtype.name] for x in (a, b))
    with np.errstate(all="ignore"):
        off = np.abs(a.astype(float) - b.astype(float))
        limit = tolerance * (np.abs(b) + max(size, largest(b))) + TIMES * spread
        return bool(((a == b) | (np.isnan(a) & np.isnan(b)) | (off <= limit)).all())


def _smallest(program: Any, check: Callable[[Any], str | None]) -> str | None:
    """Describe the failure of a program with the smallest program that also fails."""
    from torture import _programs_run as run

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = check(program)
        if wrong is None:
            return None
        small = run.shrunk(program, lambda one: check(one) is not None)
        return f"{check(small)}{small}"


# --- jitted steps ---


def interpreted(number: int) -> str | None:
    """Compare a program as a jitted step on numpy, which replays its calls, with the plain function."""
    from torture import _programs_made

    return _smallest(_programs_made.program(number), lambda program: _recorded(program, "numpy"))


def compiled(number: int) -> str | None:
    """Compare the same on cpu, as kernel launches: unchanged, with fused loops, or merged into one."""
    from minigrad.compiler.jit import recording
    from torture import _programs_made

    before = recording.JOINED, recording.MOST
    recording.JOINED, recording.MOST = HOW[number % len(HOW)]
    try:
        return _smallest(_programs_made.program(number), lambda program: _recorded(program, "cpu"))
    finally:
        recording.JOINED, recording.MOST = before


def _recorded(program: Any, device: str) -> str | None:
    """Describe where a jitted step returns other bits than its function, in one of its runs."""
    import minigrad as mg
    from minigrad.core.errors import CaptureError, LinAlgError
    from torture import _programs_run as run

    step = run.Step(program, device)
    jitted = mg.jit(step)
    for turn in range(RUNS):
        try:
            mine, left = step.called(jitted, turn)
        except LinAlgError as error:  # on other inputs than it was captured with, which ends the step
            step.called(step, turn)
            return (
                None
                if turn and any(isinstance(x, LinAlgError) for x in (*step.refused.values(), step.stopped))
                else repr(error)
            )
        unfit = [k for k, error in step.refused.items() if isinstance(error, CaptureError)]
        if unfit:  # reading elements cannot be captured
            return _recorded(program.without(unfit), device)
        refused = {k: _kind(error) for k, error in step.refused.items()}, type(step.stopped)
        if isinstance(step.stopped, CaptureError):
            return _recorded(program.of_order(0), device)
        its, right = step.called(step, turn)
        if ({k: _kind(error) for k, error in step.refused.items()}, type(step.stopped)) != refused:
            later = turn >= 2  # with other inputs other lines raise, which a capture cannot foresee
            if later or OVERWRITTEN in str(step.stopped):  # it saves normalised indices
                continue
            return f"jitted it raises {refused}, else {step.refused} and {step.stopped}"
        for label in its:
            if not _equal(mine[label], its[label]):
                return f"run {turn}: {label} {mine[label].tolist()}, not jitted {its[label].tolist()}"
        for label in right:
            if not _equal(left[label], right[label]):
                return f"run {turn}: {label} is left as {left[label].tolist()}, not jitted {right[label].tolist()}"
    return None


def _kind(error: Exception) -> type:
    """Return the class of an error. A jitted step checks indices late, so a write to a leaf may raise either error."""
    from minigrad.core.errors import GraphError, ShapeError

    return GraphError if isinstance(error, ShapeError) and "index" in str(error) else type(error)


def _equal(a: Any, b: Any) -> bool:
    """Whether arrays have one dtype, one shape and equal elements bit for bit; the sign of 0 does not matter."""
    import numpy as np

    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return False
    if a.dtype.kind != "f":
        return bool((a == b).all())
    return bool(((a == b) | (np.isnan(a) & np.isnan(b))).all())


SECONDS = 300.0  # of a case: a failing one is shrunk, and may be compiled often
ONE_THREAD = (("OMP_NUM_THREADS", "1"),)

CAMPAIGNS = [
    Campaign(
        "programs beside PyTorch",
        "a random program on numpy, on cpu and in PyTorch: values, views, writes, errors, gradients of gradients",
        beside, many=20_000, few=4, seconds=SECONDS, environment=ONE_THREAD, needs=("torch",),
    ),
    Campaign(
        "programs by the interpreter",
        "the same programs as jitted steps on numpy, run with two sets of inputs: the same bits",
        interpreted, many=5_000, few=50, seconds=SECONDS, environment=ONE_THREAD,
    ),
    Campaign(
        "programs compiled",
        "the same as jitted steps on cpu: kernel launches, fused loops, or one merged kernel: the same bits",
        compiled, many=1000, few=4, seconds=SECONDS, environment=ONE_THREAD,
    ),
]  # fmt: skip
