"""Random programs over all operations, run on `numpy`, on `cpu`, with `mg.jit`, and in PyTorch.

The program of a number is the same in each campaign. It creates tensors of several dtypes and shapes, views of them,
in-place writes, calls that must raise, and gradients to second order; `_programs_calls.py` defines the calls. The
results of two libraries may differ as much as minigrad's do when its kernels round differently (`rounding_spread`), and
no more. A failing program is reported with as few lines as still fail.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

from torture import Campaign

__all__ = ["CAMPAIGNS"]

SPREAD_FACTOR = 16.0  # tolerance as a multiple of the spread from rounding in minigrad
SEVERAL = "returns multiple views"
RUNS = 5  # of a jitted step: captured, captured as launches, and replayed
OVERWRITTEN = "modified by an inplace operation"  # in the messages of both libraries
# After how many runs launches are merged, and the limit: none merged, only loops fused, all merged. Merging is slow.
MERGE_SETTINGS = ((2 * RUNS, 0), (1, 0), (2 * RUNS, 0), (1, 1024))


def compare_libraries(case_number: int) -> str | None:
    """Compare a program on numpy, on cpu and in PyTorch: values, dtypes, views, errors and gradients."""
    from torture import _program_generator

    return _smallest(_program_generator.program(case_number), _compare_libraries)


def _compare_libraries(program: Any) -> str | None:
    from torture import _programs_run as run
    from torture._program_exceptions import is_expected

    numpy_result = run.run_program(program, run.minigrad_library("numpy"))
    cpu_result = run.run_program(program, run.minigrad_library("cpu"))
    dropped = run.layout_dependent_lines(program, numpy_result, cpu_result)
    only_one_raises = numpy_result.errors.keys() ^ cpu_result.errors.keys()
    dropped += [
        k
        for k in only_one_raises
        if is_expected(program.lines[k].text, numpy_result.errors.get(k), cpu_result.errors.get(k))
    ]
    if dropped:
        return _compare_libraries(program.without(dropped))
    wrong = _compare_errors(program, numpy_result, cpu_result) or _compare_results(
        program, run.describe(numpy_result), run.describe(cpu_result), "on cpu"
    )
    return wrong or (_compare_with_pytorch(program) if program.parity else None)


def _compare_errors(program: Any, actual: Any, expected: Any) -> str | None:
    """Describe where only one device raises for a line or in the backward pass, or the errors differ."""
    from minigrad.core.errors import MinigradError

    lines = dict(enumerate(map(str, program.lines)))
    for k, line in lines.items():
        a, b = actual.errors.get(k), expected.errors.get(k)
        if a is not None and not isinstance(a, (MinigradError, NameError)):
            return f"{line}: {type(a).__name__}: {a}"
        if _error_key(a) != _error_key(b):
            return f"{line}: {a!r}, on cpu {b!r}"
    a, b = actual.backward_error, expected.backward_error
    if a is not None and not isinstance(a, MinigradError):
        return f"backward: {type(a).__name__}: {a}"
    return None if _error_key(a) == _error_key(b) else f"backward: {a!r}, on cpu {b!r}"


def _error_key(error: Exception | None) -> tuple[type, str]:
    """Return the class of an error, and the function that raised: messages may contain values and addresses."""
    return type(error), str(error).partition(":")[0]


def _compare_with_pytorch(program: Any) -> str | None:
    """Describe what differs from PyTorch. Lines for which PyTorch has no kernel are dropped, with their dependents."""
    import parity
    from torture import _programs_run as run
    from torture._program_exceptions import UNCOMPARED_DERIVATIVES, is_expected

    torch_result = run.run_program(program, run.pytorch_library())
    numpy_result = run.run_program(program, run.minigrad_library("numpy"))
    dropped = []
    for k, line in enumerate(map(str, program.lines)):
        a, b = numpy_result.errors.get(k), torch_result.errors.get(k)
        if (a is None) != (b is None):
            expected = is_expected(line, a, b) or any(words in str(b) for words in parity.NO_KERNEL)
            if not expected and not (dropped and isinstance(b or a, NameError)):  # caused by a dropped line
                return f"{line}: here {a!r}, in PyTorch {b!r}"
            dropped.append(k)
        elif isinstance(b, IndexError | ValueError | TypeError) and not isinstance(a, type(b)):
            return f"{line}: here {a!r}, in PyTorch {b!r}"
    if dropped:
        return _compare_with_pytorch(program.without(dropped))
    dropped_layouts = run.layout_dependent_lines(program, numpy_result, torch_result)
    if dropped_layouts:
        return _compare_with_pytorch(program.without(dropped_layouts))
    a, b = numpy_result.backward_error, torch_result.backward_error
    unsupported = (*parity.NO_KERNEL, "is not implemented", "undefined Tensor in C++", OVERWRITTEN, SEVERAL)
    if OVERWRITTEN in str(a) or any(words in str(b) for words in unsupported):  # saved tensors differ
        numpy_result.grads = torch_result.grads = {}
    elif (a is None) != (b is None):
        return f"backward: here {a!r}, in PyTorch {b!r}"
    for one in UNCOMPARED_DERIVATIVES:
        if any(one.line in line.text for line in program.lines):
            for result in (numpy_result, torch_result):
                result.grads = {x: g for x, g in result.grads.items() if int(x.split()[1]) < one.order}
    try:
        expected = run.describe(torch_result)
    except RuntimeError as error:
        if SEVERAL in str(error):  # written through a view: PyTorch raises on any further use
            return None
        raise
    actual = run.describe(numpy_result)
    return _compare_results(program, actual, _without_nan(actual, expected), "in PyTorch")


def _without_nan(actual: dict[str, Any], expected: dict[str, Any]) -> dict[str, Any]:
    """Return PyTorch's results, with minigrad's second derivatives where PyTorch's are NaN: norms and powers at 0."""
    import numpy as np

    filled = dict(expected)
    for label, b in expected.items():
        if (
            label.startswith("gradient 2")
            and isinstance(b, np.ndarray)
            and getattr(actual.get(label), "shape", None) == b.shape
        ):
            filled[label] = np.where(np.isnan(b), actual[label], b)
    return filled


def _compare_results(program: Any, actual: dict[str, Any], expected: dict[str, Any], reference: str) -> str | None:
    """Return the first label whose results differ by more than rounding."""
    import numpy as np

    from torture import _programs_run as run

    spread: Any = False  # not yet known
    size = max([largest(x) for x in (*actual.values(), *[leaf.array for leaf in program.leaves])], default=0.0)
    for label in [*actual, *[label for label in expected if label not in actual]]:
        a, b = actual.get(label), expected.get(label)
        if label.startswith("gradient") and (a is None or b is None):  # one library may return 0, the other None
            values = a if b is None else b
            if isinstance(values, np.ndarray) and np.nan_to_num(values).any():
                return f"{label} {a}, {reference} {b}"
            continue
        if isinstance(a, np.ndarray) and isinstance(b, np.ndarray):
            if _is_close(a, b, size, 0.0):
                continue
            if spread is False:
                spread = run.rounding_spread(program, actual)
            if spread is not None and a.shape == b.shape and not _is_close(a, b, size, spread[label]):
                return f"{label} {a.tolist()}, {reference} {b.tolist()}"
        elif a != b and not (label.startswith("strides") and None in (a, b)):  # the layouts may differ
            return f"{label} {a}, {reference} {b}"
    return None


def largest(x: Any) -> float:
    """Return the largest finite element of a floating-point array, 0 for others."""
    import numpy as np

    return (
        float(np.abs(x[np.isfinite(x)]).max(initial=0.0)) if isinstance(x, np.ndarray) and x.dtype.kind == "f" else 0.0
    )


def _is_close(a: Any, b: Any, size: float, spread: Any) -> bool:
    """Whether arrays have equal shapes and elements, up to a tolerance and the spread of each element."""
    import numpy as np

    from strategies import PARITY

    if a.shape != b.shape:
        return False
    if a.dtype.kind != "f" or b.dtype.kind != "f":
        return bool(((a == b) | (spread > 0)).all())
    tolerance = max(PARITY[x.dtype.name] for x in (a, b))
    with np.errstate(all="ignore"):
        difference = np.abs(a.astype(float) - b.astype(float))
        limit = tolerance * (np.abs(b) + max(size, largest(b))) + SPREAD_FACTOR * spread
        return bool(((a == b) | (np.isnan(a) & np.isnan(b)) | (difference <= limit)).all())


def _smallest(program: Any, check: Callable[[Any], str | None]) -> str | None:
    """Describe the failure of a program with the smallest program that also fails."""
    from torture import _programs_run as run

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        wrong = check(program)
        if wrong is None:
            return None
        small = run.shrink(program, lambda one: check(one) is not None)
        return f"{check(small)}{small}"


# --- jitted steps ---


def check_interpreted(case_number: int) -> str | None:
    """Compare a program as a jitted step on numpy, which replays its calls, with the plain function."""
    from torture import _program_generator

    return _smallest(_program_generator.program(case_number), lambda program: _check_jitted(program, "numpy"))


def check_compiled(case_number: int) -> str | None:
    """Compare the same on cpu, as kernel launches: unchanged, with fused loops, or merged into one."""
    from minigrad.compiler.jit import step_trace
    from torture import _program_generator

    settings = step_trace.MERGE_AFTER_REPLAYS, step_trace.MAX_MERGED_LAUNCHES
    step_trace.MERGE_AFTER_REPLAYS, step_trace.MAX_MERGED_LAUNCHES = MERGE_SETTINGS[case_number % len(MERGE_SETTINGS)]
    try:
        return _smallest(_program_generator.program(case_number), lambda program: _check_jitted(program, "cpu"))
    finally:
        step_trace.MERGE_AFTER_REPLAYS, step_trace.MAX_MERGED_LAUNCHES = settings


def _check_jitted(program: Any, device: str) -> str | None:
    """Describe where a jitted step returns other bits than its function, in one of its runs."""
    import minigrad as mg
    from minigrad.core.errors import CaptureError, LinAlgError
    from torture import _programs_run as run

    step = run.ProgramStep(program, device)
    jitted = mg.jit(step)
    for turn in range(RUNS):
        try:
            outputs, leaves = step.call(jitted, turn)
        except LinAlgError as error:  # on other inputs than it was captured with, which ends the step
            step.call(step, turn)
            return (
                None
                if turn and any(isinstance(x, LinAlgError) for x in (*step.errors.values(), step.backward_error))
                else repr(error)
            )
        uncapturable = [k for k, error in step.errors.items() if isinstance(error, CaptureError)]
        if uncapturable:  # reading elements cannot be captured
            return _check_jitted(program.without(uncapturable), device)
        errors = {k: _error_class(error) for k, error in step.errors.items()}, type(step.backward_error)
        if isinstance(step.backward_error, CaptureError):
            return _check_jitted(program.of_order(0), device)
        expected, expected_leaves = step.call(step, turn)
        if ({k: _error_class(error) for k, error in step.errors.items()}, type(step.backward_error)) != errors:
            is_later_input = turn >= 2  # with other inputs other lines raise, which a capture cannot foresee
            if is_later_input or OVERWRITTEN in str(step.backward_error):  # it saves normalised indices
                continue
            return f"jitted it raises {errors}, else {step.errors} and {step.backward_error}"
        for label in expected:
            if not _is_bitwise_equal(outputs[label], expected[label]):
                return f"run {turn}: {label} {outputs[label].tolist()}, not jitted {expected[label].tolist()}"
        for label in expected_leaves:
            if not _is_bitwise_equal(leaves[label], expected_leaves[label]):
                return (
                    f"run {turn}: {label} is left as {leaves[label].tolist()}, not jitted "
                    f"{expected_leaves[label].tolist()}"
                )
    return None


def _error_class(error: Exception) -> type:
    """Return the class of an error. A jitted step checks indices late, so a write to a leaf may raise either error."""
    from minigrad.core.errors import GraphError, ShapeError

    return GraphError if isinstance(error, ShapeError) and "index" in str(error) else type(error)


def _is_bitwise_equal(a: Any, b: Any) -> bool:
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
        compare_libraries, many=20_000, few=4, seconds=SECONDS, environment=ONE_THREAD, needs=("torch",),
    ),
    Campaign(
        "programs by the interpreter",
        "the same programs as jitted steps on numpy, run with two sets of inputs: the same bits",
        check_interpreted, many=5_000, few=50, seconds=SECONDS, environment=ONE_THREAD,
    ),
    Campaign(
        "programs compiled",
        "the same as jitted steps on cpu: kernel launches, fused loops, or one merged kernel: the same bits",
        check_compiled, many=1000, few=4, seconds=SECONDS, environment=ONE_THREAD,
    ),
]  # fmt: skip
