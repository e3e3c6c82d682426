"""The coverage table of operations: the samples that reach each, and whether values and gradients are right.

    python tests/helpers/table.py        or: make table

A sample reaches an operation that computes in its forward or backward pass. An operation's gradient counts as checked
if its rule runs in a gradient that is compared with central differences; its second gradient, if that gradient is
differentiated again. With PyTorch installed, values and gradients are also compared with PyTorch's. The exit status
is 0 if the table is complete and correct: samples reach every operation, and every applicable cell is filled.
"""

import sys
import warnings
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

import minigrad as mg  # noqa: E402 -- found by the path above
import parity  # noqa: E402
from minigrad.core.dispatch import get_kernels  # noqa: E402
from minigrad.core.graph import Node, topological  # noqa: E402
from samples import Sample, all_samples  # noqa: E402

COLUMNS = ("forward", "gradient", "second order")


def operations_behind(tensors) -> set[str]:
    """Return the operations in the graph behind `tensors`."""
    roots = [x._edge() for x in tensors]
    return {node._op.name for node in topological([r for r in roots if isinstance(r, Node)]) if node._op is not None}


def reached_operations(sample: Sample) -> tuple[set[str], set[str], set[str]]:
    """Return the operations that a sample and its gradients compute, and those whose rule runs once and twice."""
    computed: set[str] = set()
    first: set[str] = set()
    second: set[str] = set()
    with mg.tap(lambda call: computed.add(call.op)), suppress(*parity.EXPECTED_ERRORS):
        outputs, leaves = parity.call_sample(
            sample, mg.tensor, parity.minigrad_functions(), parity.FLOATS[0], "contiguous"
        )
        roots = [x for x in outputs if x.requires_grad]
        first = operations_behind(roots)
        if not roots:
            return computed, set(), set()
        inputs = [x for x in leaves if x.requires_grad]
        weights = [mg.ones(*x.shape, dtype=x.dtype) for x in roots]
        grads = mg.grad(roots, inputs, weights, create_graph=True, allow_unused=True)
        differentiable_grads = [g for g in grads if g is not None and g.requires_grad]
        second = operations_behind(differentiable_grads)
        if differentiable_grads:
            mg.grad(
                differentiable_grads,
                inputs,
                [mg.ones(*g.shape, dtype=g.dtype) for g in differentiable_grads],
                allow_unused=True,
            )
    return computed, first | second, first


def error_of(check: Callable[..., None], *args: object) -> str:
    """Return the error that `check` raises, or an empty string."""
    try:
        check(*args)
    except Exception as error:  # noqa: BLE001 -- reported in the table
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return ""


def errors_of(sample: Sample, compare: bool) -> tuple[str, str, str]:
    """Return the errors of a sample's values, gradients and second gradients."""
    value = gradient = second = ""
    if compare and sample.parity:
        value = error_of(parity.check_forward, sample, "float64", "contiguous")
        gradient = error_of(parity.check_gradient, sample, "float64", "contiguous")
    if not sample.kinked and parity.is_differentiable(sample):
        gradient = gradient or error_of(parity.check_first, sample)
        second = error_of(parity.check_second, sample)
    return value, gradient, second


def coverage_table(compare: bool) -> tuple[list[str], bool]:
    """Return the lines to print, and whether the table is complete and correct."""
    samples = all_samples()
    counts = {name: [0, 0, 0] for name in mg.OPS}
    failures: dict[str, list[str]] = {}
    for key, sample in samples.items():
        errors = errors_of(sample, compare)
        for column, (names, verdict) in enumerate(zip(reached_operations(sample), errors, strict=True)):
            for name in names & counts.keys():
                counts[name][column] += column == 0 or not sample.kinked
                if verdict:
                    failures.setdefault(name, []).append(f"{COLUMNS[column]}, {key}: {verdict}")
    lines = [f"{'operation':24}" + "".join(f"{column:>14}" for column in COLUMNS)]
    complete = not failures
    for name, row in counts.items():
        computes, differentiable = bool(get_kernels(name)), mg.OPS[name].differentiable  # `pick` only marks an output
        applicable = (computes, differentiable, differentiable)
        cells = [f"{n} ok" if n else "MISSING" if a else "–" for n, a in zip(row, applicable, strict=True)]
        complete &= "MISSING" not in cells
        lines.append(f"{name:24}" + "".join(f"{cell:>14}" for cell in cells) + ("  WRONG" if name in failures else ""))
    lines += [f"{name}: {line}" for name, messages in failures.items() for line in messages]
    method = (
        "values and gradients by PyTorch and central differences" if compare else "gradients by central differences"
    )
    lines.append(
        f"{len(counts)} operations, {len(samples)} samples; {method}: {'complete' if complete else 'NOT COMPLETE'}"
    )
    return lines, complete


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    try:
        import torch  # noqa: F401
    except ImportError:
        table_lines, complete = coverage_table(compare=False)
    else:
        table_lines, complete = coverage_table(compare=True)
    print(*table_lines, sep="\n")
    sys.exit(not complete)
