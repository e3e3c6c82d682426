"""Write the page of the book on PyTorch's own samples: how many give PyTorch's results, and which differ on purpose.

PYTHONPATH=tests:tests/helpers python tests/helpers/opinfo_page.py > book/pytorch_samples.md        or: make opinfo
"""

import warnings
from collections import Counter

import numpy as np
import torch

import minigrad as mg
import opinfo

INTRODUCTION = """# PyTorch's own samples

PyTorch tests its operations with samples that its authors wrote: `op_db` of `torch.testing._internal`, up to
a few hundred calls for each operation and dtype, and calls that must raise. minigrad implements {functions}
of these functions of PyTorch {version} ({entries} entries of `op_db`), and both libraries run each sample.
Results must have the same type, dtype, shape and elements, and in float64 the same first and second
gradients; calls that PyTorch rejects must be rejected. {outside} samples are not compared, because they use
features that minigrad lacks: complex and half-precision dtypes, memory formats, generators. Random elements
are not compared either.

`make opinfo` writes this page; `tests/pytorch/test_pytorch_opinfo.py` compares a part of the samples in `make
test`, all of them in `make nightly`. Its exceptions are in `tests/pytorch/exceptions.txt`.

| device | kind | compared | as in PyTorch | differ on purpose | differ |
|---|---|---|---|---|---|
{totals}

## What differs on purpose

| operation | dtype | samples | reason |
|---|---|---|---|
{reasons}
"""


def page(devices: tuple[str, ...] = ("numpy", "cpu")) -> str:
    """Compare all samples with PyTorch on these devices, and return the page."""
    totals, reasons, outside = [], Counter[tuple[str, str, str]](), 0
    for device in devices:
        mg.set_default_device(device)
        counts = Counter[tuple[bool, str]]()
        for name, dtype in opinfo.units():
            for outcome in opinfo.check_samples(name, dtype):
                line = opinfo.find_exemption(outcome, device)
                stage = outcome.stage if outcome.stage in ("passed", "outside") else "decided" if line else "differs"
                counts[dtype == "error", stage] += 1
                if line is not None:
                    reasons[name, line.reason, dtype] += device == devices[0]
        for refusals, kind in ((False, "samples"), (True, "calls that must raise")):
            passed, intentional, differs = (counts[refusals, stage] for stage in ("passed", "decided", "differs"))
            compared = passed + intentional + differs
            passed_cell = f"{passed:,} ({100 * passed / compared:.2f}%)"
            totals.append(f"| {device} | {kind} | {compared:,} | {passed_cell} | {intentional} | {differs} |")
        outside = counts[False, "outside"]
    rows: dict[tuple[str, str], list[tuple[str, int]]] = {}
    for (name, reason, dtype), count in sorted(reasons.items()):
        rows.setdefault((name, reason), []).append((dtype, count))
    return INTRODUCTION.format(
        version=torch.__version__.split("+")[0],
        functions=len({op.name for op in opinfo.operations().values()}),
        entries=len(opinfo.operations()),
        outside=outside,
        totals="\n".join(totals),
        reasons="\n".join(
            f"| `{name}` | {', '.join(dtype for dtype, _ in outcome)} | {sum(n for _, n in outcome)} | {reason} |"
            for (name, reason), outcome in rows.items()
        ),
    )


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    print(page(), end="")
