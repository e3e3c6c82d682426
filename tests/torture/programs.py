"""Random programs over the table of operations, run on `numpy`, on `cpu`, by `mg.jit`, and by PyTorch.

The program of a number is the same in each campaign. It makes tensors of some types and shapes, views of them, writes
in place, calls that must be refused, and gradients to second order; `_programs_calls.py` has the calls. What two
libraries compute may differ as much as it does when our own kernels round otherwise (`noisy`), and no more.
A program that fails is told with as few lines as fail too.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from torture import Campaign

__all__ = ["CAMPAIGNS"]

TIMES = 16.0  # as far as our kernels move a number when they round otherwise, so many times may another library
SEVERAL = "returns multiple views"
RUNS = 5  # of a recorded step: recorded, recorded as launches, and run
OVERWRITTEN = ("modified by an inplace operation", "modified by an inplace operation")  # minigrad's and PyTorch's
# After how many runs launches are joined, and how many at most: none is, loops are fused alone, all are. It takes long.
HOW = ((2 * RUNS, 0), (1, 0), (2 * RUNS, 0), (1, 1024))


def beside(number: int) -> str | None:
    """A program on numpy and on cpu, and by PyTorch: values, types, views, refusals and gradients."""
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
    """Where one device refuses a line, or the backward pass, and another does not, or in other words."""
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
    """What kind of error it is, and the name of what refuses: a text may show numbers, and where they are."""
    return type(error), str(error).partition(":")[0]


def _in_pytorch(program: Any) -> str | None:
    """What is not as in PyTorch. Lines for which PyTorch has no kernel are left out, and what depends on them."""
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
            if not known and not (left_out and isinstance(b or a, NameError)):  # of what such a line was to make
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
    unknown = (*parity.NO_KERNEL, "is not implemented", "undefined Tensor in C++", OVERWRITTEN[1], SEVERAL)
    if OVERWRITTEN[0] in str(a) or any(words in str(b) for words in unknown):  # what a rule keeps is each one's own
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
        if SEVERAL in str(error):  # was written through: PyTorch says nothing of it any more
            return None
        raise
    here = run.told(mine)
    return _compared(program, here, _without_nan(here, there), "in PyTorch")


def _without_nan(mine: dict[str, Any], its: dict[str, Any]) -> dict[str, Any]:
    """What PyTorch tells, with our second slopes where its are nan: of norms and powers at 0, where ours are 0."""
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
    """The first label of which both do not say the same, but for rounding."""
    import numpy as np

    from torture import _programs_run as run

    spread: Any = False  # not yet known
    size = max([largest(x) for x in (*mine.values(), *[leaf.array for leaf in program.leaves])], default=0.0)
    for label in [*mine, *[label for label in its if label not in mine]]:
        a, b = mine.get(label), its.get(label)
        if label.startswith("gradient") and (a is None or b is None):  # where one says 0, another says nothing
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
        elif a != b and not (label.startswith("strides") and None in (a, b)):  # where one's results lie otherwise
            return f"{label} {a}, {where} {b}"
    return None


def largest(x: Any) -> float:
    """The largest finite number of an array of fractions; 0 for what is none."""
    import numpy as np

    return (
        float(np.abs(x[np.isfinite(x)]).max(initial=0.0)) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else 0.0
    )


def _near(a: Any, b: Any, size: float, spread: Any) -> bool:
    """Whether arrays have one shape and are equal to some digits of the largest number, and to the spread of each."""
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
    """What is wrong with a program, and the smallest one of which something is."""
    from torture import _programs_run as run

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = check(program)
        if wrong is None:
            return None
        small = run.shrunk(program, lambda one: check(one) is not None)
        return f"{check(small)}{small}"


# --- recorded steps ---


def interpreted(number: int) -> str | None:
    """A program as a recorded step on numpy, whose calls are run again, against the same without recording."""
    from torture import _programs_made

    return _smallest(_programs_made.program(number), lambda program: _recorded(program, "numpy"))


def compiled(number: int) -> str | None:
    """The same on cpu, where it becomes launches of kernels: as they are, with loops fused, or joined into one."""
    from minigrad.compiler.jit import recording
    from torture import _programs_made

    before = recording.JOINED, recording.MOST
    recording.JOINED, recording.MOST = HOW[number % len(HOW)]
    try:
        return _smallest(_programs_made.program(number), lambda program: _recorded(program, "cpu"))
    finally:
        recording.JOINED, recording.MOST = before


def _recorded(program: Any, device: str) -> str | None:
    """Where a recorded step gives other bits than the function that it was made of, in one of its runs."""
    import minigrad as mg
    from minigrad.core.errors import CaptureError, LinAlgError
    from torture import _programs_run as run

    step = run.Step(program, device)
    jitted = mg.jit(step)
    for turn in range(RUNS):
        try:
            mine, left = step.called(jitted, turn)
        except LinAlgError as error:  # of other numbers than it was recorded with, which ends the step
            step.called(step, turn)
            return (
                None
                if turn and any(isinstance(x, LinAlgError) for x in (*step.refused.values(), step.stopped))
                else repr(error)
            )
        unfit = [k for k, error in step.refused.items() if isinstance(error, CaptureError)]
        if unfit:  # what reads numbers cannot be recorded
            return _recorded(program.without(unfit), device)
        refused = {k: _kind(error) for k, error in step.refused.items()}, type(step.stopped)
        if isinstance(step.stopped, CaptureError):
            return _recorded(program.of_order(0), device)
        its, right = step.called(step, turn)
        if ({k: _kind(error) for k, error in step.refused.items()}, type(step.stopped)) != refused:
            later = turn >= 2  # with other numbers others are refused, which a recording cannot know
            if later or OVERWRITTEN[0] in str(step.stopped):  # it keeps indices that it brought into range
                continue
            return f"recorded it refuses {refused}, else {step.refused} and {step.stopped}"
        for label in its:
            if not _equal(mine[label], its[label]):
                return f"run {turn}: {label} {mine[label].tolist()}, not recorded {its[label].tolist()}"
        for label in right:
            if not _equal(left[label], right[label]):
                return f"run {turn}: {label} is left as {left[label].tolist()}, not recorded {right[label].tolist()}"
    return None


def _kind(error: Exception) -> type:
    """What kind an error is. Of a write to a leaf at a place that is not there either may be told: recorded, a place
    given by numbers is looked at later."""
    from minigrad.core.errors import GraphError, ShapeError

    return GraphError if isinstance(error, ShapeError) and "index" in str(error) else type(error)


def _equal(a: Any, b: Any) -> bool:
    """Whether arrays have one type, one shape and the same numbers, to the last digit; 0 has either sign."""
    import numpy as np

    if (a.dtype, a.shape) != (b.dtype, b.shape):
        return False
    if a.dtype.kind != "f":
        return bool((a == b).all())
    return bool(((a == b) | (np.isnan(a) & np.isnan(b))).all())


SECONDS = 300.0  # of a case: one that fails is made small, and may be compiled often
ONE_THREAD = (("OMP_NUM_THREADS", "1"),)

CAMPAIGNS = [
    Campaign(
        "programs beside PyTorch",
        "a random program on numpy, on cpu and in PyTorch: values, views, writes, refusals, gradients of gradients",
        beside, many=20_000, few=4, seconds=SECONDS, environment=ONE_THREAD, needs=("torch",),
    ),
    Campaign(
        "programs by the interpreter",
        "the same programs as steps that mg.jit recorded, on numpy, run with two sets of numbers: the same bits",
        interpreted, many=5_000, few=50, seconds=SECONDS, environment=ONE_THREAD,
    ),
    Campaign(
        "programs compiled",
        "the same as steps on cpu: launches of kernels, with loops fused, or joined into one kernel: the same bits",
        compiled, many=1000, few=4, seconds=SECONDS, environment=ONE_THREAD,
    ),
]  # fmt: skip
