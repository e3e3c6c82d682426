"""Programs written for PyTorch run with only their imports changed, and compute the same.

Each program in `tests/torch_code` is loaded for either library. PyTorch's initial weights are copied.
"""

import numpy as np
import pytest

import minigrad as mg
from needs import is_available
from strategies import PROGRAM
from tiers import NIGHTLY
from torch_programs import PROGRAM_FOLDER, PROGRAMS, load_program, make_deterministic

# With PyTorch installed, all of them are also trained by both libraries below.
ALONE = PROGRAMS[:: 1 if NIGHTLY or not is_available("torch") else 6]
EACH = pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.name)


def as_floats(x):
    return (x.detach().cpu().numpy() if hasattr(x, "detach") else np.asarray(x)).astype(float)


def relative_difference(actual, expected):
    """Return the largest absolute difference, relative to PyTorch's largest magnitude if that is above 1."""
    actual, expected = as_floats(actual), as_floats(expected)
    assert actual.shape == expected.shape
    finite = np.isfinite(expected)
    np.testing.assert_array_equal(actual[~finite], expected[~finite])
    actual, expected = actual[finite], expected[finite]
    return float(np.abs(actual - expected).max(initial=0.0) / max(1.0, np.abs(expected).max(initial=0.0)))


def paired_models(program, torch):
    """Return the program's model in either library with the same weights, and its training data."""
    torch.manual_seed(0)
    arrays = program.arrays(np.random.default_rng(3))
    codes = [load_program(program.file, "minigrad"), load_program(program.file, "torch")]
    mg_model, torch_model = (getattr(code, program.make)() for code in codes)
    mg_model.load_state_dict(torch_model.state_dict())
    assert list(mg_model.state_dict()) == list(torch_model.state_dict())
    mg_model.to(mg.get_default_device())
    inputs = [[mg.tensor(a) for a in arrays], [torch.tensor(a) for a in arrays]]
    return [(code, model, data) for code, model, data in zip(codes, (mg_model, torch_model), inputs, strict=True)]


@pytest.mark.parametrize("program", ALONE, ids=lambda program: program.name)
def test_the_program_runs_with_its_imports_changed(program, monkeypatch):
    make_deterministic(monkeypatch, "minigrad", mg.get_default_device())
    mg.manual_seed(0)
    code = load_program(program.file, "minigrad")
    model = getattr(code, program.make)().to(mg.get_default_device())
    losses = code.train(model, *[mg.tensor(a) for a in program.arrays(np.random.default_rng(3))])
    assert np.isfinite(losses).all()


@pytest.mark.parity
@EACH
def test_outputs_and_gradients_are_pytorch_s(program, torch, monkeypatch):
    results = []
    for library, (code, model, inputs) in zip(("minigrad", "torch"), paired_models(program, torch), strict=True):
        make_deterministic(monkeypatch, library, inputs[0].device)
        output, loss = code.loss_of(model, *inputs)
        loss.backward()
        results.append([output, loss, *(p.grad for p in model.parameters())])
    assert max(relative_difference(a, b) for a, b in zip(*results, strict=True)) < PROGRAM


@pytest.mark.parity
@EACH
def test_the_program_trains_as_in_pytorch(program, torch, monkeypatch):
    losses, states = [], []
    for library, (code, model, inputs) in zip(("minigrad", "torch"), paired_models(program, torch), strict=True):
        make_deterministic(monkeypatch, library, inputs[0].device)
        losses.append(code.train(model, *inputs))
        states.append(list(model.state_dict().values()))
    assert relative_difference(*losses) < PROGRAM
    assert max(relative_difference(a, b) for a, b in zip(*states, strict=True)) < PROGRAM


def flat(result):
    """Return the results of a snippet as a flat list."""
    if isinstance(result, dict):
        result = list(result.items())
    if isinstance(result, list | tuple):
        return [x for part in result for x in flat(part)]
    return [result]


NAMES = [
    line.strip().rstrip(",")
    for line in (PROGRAM_FOLDER / "snippets.py").read_text().split("SNIPPETS = [")[1].splitlines()
]


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore:.*weight_norm:FutureWarning")  # deprecated in PyTorch
@pytest.mark.parametrize("name", [name for name in NAMES if name.isidentifier()])
def test_the_snippet_finds_what_it_finds_in_pytorch(name, torch):
    actual, expected = (flat(getattr(load_program("snippets", library), name)()) for library in ("minigrad", "torch"))
    assert len(actual) == len(expected)
    for a, b in zip(actual, expected, strict=True):
        if isinstance(b, str | bool):
            assert a == b
        else:
            assert relative_difference(a, b) < PROGRAM
