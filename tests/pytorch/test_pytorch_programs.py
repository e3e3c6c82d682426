"""Programs written for PyTorch run with only their imports changed, and compute the same.

Each program in `tests/torch_code` is loaded for either library. PyTorch's initial weights are copied.
"""

import numpy as np
import pytest

import minigrad as mg
from needs import is_here
from strategies import PROGRAM
from tiers import NIGHTLY
from torch_programs import HERE, PROGRAMS, deterministic, loaded

# With PyTorch installed, all of them are also trained by both libraries below.
ALONE = PROGRAMS[:: 1 if NIGHTLY or not is_here("torch") else 6]
EACH = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)


def numbers(x):
    return (x.detach().cpu().numpy() if hasattr(x, "detach") else np.asarray(x)).astype(float)


def apart(mine, its):
    """Return the largest absolute difference, relative to PyTorch's largest magnitude if that is above 1."""
    mine, its = numbers(mine), numbers(its)
    assert mine.shape == its.shape
    finite = np.isfinite(its)
    np.testing.assert_array_equal(mine[~finite], its[~finite])
    mine, its = mine[finite], its[finite]
    return float(np.abs(mine - its).max(initial=0.0) / max(1.0, np.abs(its).max(initial=0.0)))


def carried(program, torch):
    """Return the program's model in either library with the same weights, and its training data."""
    torch.manual_seed(0)
    arrays = program.arrays(np.random.default_rng(3))
    codes = [loaded(program.file, "minigrad"), loaded(program.file, "torch")]
    mine, its = (getattr(code, program.make)() for code in codes)
    mine.load_state_dict(its.state_dict())
    assert list(mine.state_dict()) == list(its.state_dict())
    mine.to(mg.get_default_device())
    inputs = [[mg.tensor(a) for a in arrays], [torch.tensor(a) for a in arrays]]
    return [(code, model, given) for code, model, given in zip(codes, (mine, its), inputs, strict=True)]


@pytest.mark.parametrize("program", ALONE, ids=lambda program: program.name)
def test_the_program_runs_with_its_imports_changed(program, monkeypatch):
    deterministic(monkeypatch, "minigrad", mg.get_default_device())
    mg.manual_seed(0)
    code = loaded(program.file, "minigrad")
    model = getattr(code, program.make)().to(mg.get_default_device())
    losses = code.train(model, *[mg.tensor(a) for a in program.arrays(np.random.default_rng(3))])
    assert np.isfinite(losses).all()


@pytest.mark.parity
@EACH
def test_outputs_and_gradients_are_pytorch_s(program, torch, monkeypatch):
    results = []
    for library, (code, model, inputs) in zip(("minigrad", "torch"), carried(program, torch), strict=True):
        deterministic(monkeypatch, library, inputs[0].device)
        output, loss = code.loss_of(model, *inputs)
        loss.backward()
        results.append([output, loss, *(p.grad for p in model.parameters())])
    assert max(apart(a, b) for a, b in zip(*results, strict=True)) < PROGRAM


@pytest.mark.parity
@EACH
def test_the_program_trains_as_in_pytorch(program, torch, monkeypatch):
    losses, states = [], []
    for library, (code, model, inputs) in zip(("minigrad", "torch"), carried(program, torch), strict=True):
        deterministic(monkeypatch, library, inputs[0].device)
        losses.append(code.train(model, *inputs))
        states.append(list(model.state_dict().values()))
    assert apart(*losses) < PROGRAM
    assert max(apart(a, b) for a, b in zip(*states, strict=True)) < PROGRAM


def flat(result):
    """Return the results of a snippet as a flat list."""
    if isinstance(result, dict):
        result = list(result.items())
    if isinstance(result, list | tuple):
        return [x for part in result for x in flat(part)]
    return [result]


NAMES = [line.strip().rstrip(",") for line in (HERE / "snippets.py").read_text().split("SNIPPETS = [")[1].splitlines()]


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")  # deprecated in PyTorch
@pytest.mark.parametrize("name", [name for name in NAMES if name.isidentifier()])
def test_the_snippet_finds_what_it_finds_in_pytorch(name, torch):
    mine, its = (flat(getattr(loaded("snippets", library), name)()) for library in ("minigrad", "torch"))
    assert len(mine) == len(its)
    for a, b in zip(mine, its, strict=True):
        if isinstance(b, str | bool):
            assert a == b
        else:
            assert apart(a, b) < PROGRAM
