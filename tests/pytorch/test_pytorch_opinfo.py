"""Each sample of PyTorch's own tests, `op_db`, gives PyTorch's result, gradient and second gradient, or is refused.

Intended differences are listed in `tests/pytorch/exceptions.txt`, with reasons; a line that no sample needs fails.
A subset of the operations, chosen by hash, is compared in `make test`, all of them in `make nightly`.
"""

import pytest

import minigrad as mg
from needs import needs
from tiers import cross

needs("torch")
needs("expecttest")

PARTS = 240


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@cross(2, device=["numpy", "cpu"], part=range(PARTS))
def test_samples_and_refusals_are_pytorch_s(on_cpu, device, part):
    import opinfo

    mg.set_default_device(device)
    differs, stale = [], []
    for name, dtype in opinfo.units(part, PARTS):
        used = set()
        for outcome in opinfo.check_samples(name, dtype):
            if outcome.stage not in ("passed", "outside"):
                exception = opinfo.find_exemption(outcome, device)
                used.add(exception)
                if exception is None:
                    differs.append(f"{name} {dtype} {outcome.index}: {outcome.stage}: {outcome.message}")
        lines = [line for line in opinfo.exemptions(device) if line.operation == name and dtype in line.dtypes.split()]
        stale += [line for line in lines if line not in used]
    assert (differs, stale) == ([], [])
