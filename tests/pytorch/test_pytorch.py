"""What of PyTorch is here: the committed table is what the package has, and errors say what to write instead."""

import inspect
import re
from operator import attrgetter
from pathlib import Path

import pytest

import minigrad as mg
from minigrad import cli, pytorch
from minigrad.errors import DeviceError, DTypeError
from minigrad.pytorch.advice import DIFFERS, INSTEAD, REFUSED
from needs import needs

needs("numpy")


PAGE = Path(__file__).parents[2] / "book" / "pytorch.md"
ROWS = pytorch.rows()


def test_the_page_of_the_book_is_what_the_package_has():
    same = PAGE.read_text(encoding="utf-8") == pytorch.markdown()
    assert same, "book/pytorch.md is not what the package has; run: make torch"


def test_the_page_has_every_name_once():
    for family in dict.fromkeys(row.family for row in ROWS):
        section = PAGE.read_text(encoding="utf-8").split(f"\n## {family}\n")[1].split("\n## ")[0]
        listed = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
        for line in re.findall(r"^\*\*(?:Yes|No):\*\* (.*)\.$", section, re.MULTILINE):
            listed += re.findall(r"`(\w+)`", line)
        assert sorted(listed) == sorted(row.name for row in ROWS if row.family == family)


def test_what_differs_is_here_and_what_is_not_here_has_no_other_meaning():
    here = {f"{row.family}.{row.name}" for row in ROWS if row.state != "no"}
    assert set(DIFFERS) <= here
    assert not REFUSED & here
    assert not [name for name in DIFFERS if name in INSTEAD]


@pytest.mark.parity
def test_the_list_of_names_is_that_of_this_pytorch(torch):
    import torch_names

    assert torch.__version__.split("+")[0] == pytorch.version(), (
        "write the list of names again for this version: make torch"
    )
    for family in torch_names.FAMILIES:
        names = [token.partition("(")[0] for token in torch_names.names(family)]
        assert names == [row.name for row in ROWS if row.family == family]


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (
            lambda: mg.compile,
            (
                "module 'minigrad' has no attribute 'compile'.\n  PyTorch's torch.compile is not here: leave the "
                "line out; mg.jit records a whole step of training."
            ),
        ),
        (lambda: mg.fft, "torch.fft is not here: there are no Fourier transforms, and no complex numbers."),
        (
            lambda: mg.amp,
            "torch.amp is not here: numbers are float32 or float64: leave autocast and GradScaler out.",
        ),
        (lambda: mg.autocast, "leave autocast and GradScaler out."),
        (lambda: mg.float16, "torch.float16 is not here: float32 is the smallest float."),
        (lambda: mg.FloatTensor, "mg.tensor(data, dtype=mg.float32), or mg.empty(sizes)."),
        (lambda: mg.relu_, "torch.relu_ is not here: the method: x.relu_(…)."),
        (lambda: mg.nn.DataParallel, "one device computes: leave it out, and use the module itself."),
        (lambda: mg.nn.Conv3d, "images of two dimensions are the most there is."),
        (lambda: mg.nn.functional.leaky_relu_, "F.leaky_relu(x, inplace=True)."),
        (lambda: mg.optim.LBFGS, "torch.optim.LBFGS is not here: optim.Adam, or SGD."),
        (
            lambda: mg.linalg.qr,
            "products, solve, inv, det, cholesky, svdvals are here; else take NumPy: np.linalg on x.numpy().",
        ),
        (
            lambda: mg.cuda.amp,
            "torch.cuda.amp is not here: numbers are float32 or float64: leave autocast and GradScaler out.",
        ),
    ],
)
def test_a_name_that_is_not_here_says_what_to_write_instead(ask, text):
    with pytest.raises(AttributeError) as error:
        ask()
    assert str(error.value).endswith(text)


def test_a_name_that_pytorch_has_not_either_is_told_plainly():
    with pytest.raises(AttributeError) as error:
        mg.no_such_name  # noqa: B018 -- asking is the test
    assert str(error.value) == "module 'minigrad' has no attribute 'no_such_name'"


@pytest.mark.parametrize("name", ["half", "bfloat16"])
def test_smaller_floats_are_refused_in_words(name):
    with pytest.raises(DTypeError, match=rf"{name}: float32 is the smallest float here.*\n  Leave \.{name}\(\) out"):
        getattr(mg.ones(2), name)()


@pytest.mark.needs("a machine without CUDA")
def test_cuda_without_a_gpu_says_so_for_tensors_and_modules():
    needs("taichi")
    for ask in (mg.ones(2).cuda, lambda: mg.nn.Linear(2, 2).to("cuda"), lambda: mg.zeros(2, device="cuda")):
        with pytest.raises(DeviceError, match="cuda"):
            ask()


def test_switches_of_pytorch_s_libraries_can_be_set():
    mg.backends.cudnn.benchmark = mg.backends.cudnn.deterministic = True
    assert not mg.backends.cudnn.is_available()
    assert not mg.backends.mps.is_available()
    mg.cuda.synchronize()
    mg.cuda.empty_cache()
    assert mg.cuda.current_device() == 0


def run(capsys, *arguments):
    code = cli.main(arguments)
    return (code, *capsys.readouterr())


def test_the_command_prints_counts_a_family_and_the_rows_of_a_name(capsys):
    code, out, _ = run(capsys, "torch")
    lines = out.splitlines()
    assert code == 0
    assert lines[0].split() == ["PyTorch", pytorch.version(), "here", "differs", "not", "here"]
    assert [(a, int(b), int(c), int(d)) for a, b, c, d in map(str.split, lines[1:-1])] == pytorch.summary(ROWS)
    assert run(capsys, "torch", "nn.Linear", "compile")[1].splitlines() == [
        "torch.compile    no       leave the line out; mg.jit records a whole step of training",
        "torch.nn.Linear  yes",
    ]
    assert {line.split()[0].rpartition(".")[0] for line in run(capsys, "torch", "optim")[1].splitlines()} >= {
        "torch.optim"
    }


def test_the_command_prints_the_page(capsys):
    assert run(capsys, "torch", "--markdown") == (0, pytorch.markdown(), "")


def test_a_name_that_pytorch_has_not_is_told_in_one_line(capsys):
    line = f"minigrad torch: PyTorch {pytorch.version()} has no nonsense\n"
    assert run(capsys, "torch", "nonsense") == (2, "", line)


def test_gumbel_softmax_draws_by_softmax_and_lets_a_gradient_through():
    mg.manual_seed(0)
    logits = mg.tensor([0.0, 1.0, 2.0], requires_grad=True)
    draws = mg.nn.functional.gumbel_softmax(logits.expand(4000, 3), hard=True)
    assert mg.allclose(draws, draws.round(), atol=1e-6)  # zeros and ones
    assert mg.equal(draws.round().sum(1), mg.ones(4000))
    for share, chance in zip(draws.mean(0).tolist(), logits.softmax(0).tolist(), strict=True):
        assert abs(share - chance) < 4 * (chance * (1 - chance) / 4000) ** 0.5  # four standard deviations
    (draws * mg.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert logits.grad.abs().min() > 0


def test_a_file_is_read_the_same_whatever_it_is_allowed(tmp_path):
    mg.save({"a": mg.ones(2)}, tmp_path / "a.pt")
    for allowed in (True, False):
        assert mg.load(tmp_path / "a.pt", map_location=mg.device("cpu"), weights_only=allowed)["a"].tolist() == [
            1.0,
            1.0,
        ]


@pytest.mark.parity
@pytest.mark.parametrize("family", ["nn", "nn.functional", "nn.init", "optim", "optim.lr_scheduler"])
def test_defaults_are_pytorch_s(torch, family):
    ours, theirs = (attrgetter(family)(one) for one in (mg, torch))
    names = [name for name in dir(theirs) if not name.startswith("_") and hasattr(ours, name)]
    found = {name: [defaults(getattr(one, name)) for one in (ours, theirs)] for name in names}
    differ = {
        f"{name}({key}={mine[key]!r}), in PyTorch {its[key]!r}"
        for name, (mine, its) in found.items()
        for key in mine.keys() & its.keys()
        if mine[key] != its[key]
    }
    assert differ == set()
    assert any(mine.keys() & its.keys() for mine, its in found.values())


def defaults(function):
    """The parameters that have a default, but for functions: an activation is of either library."""
    called = function.__init__ if isinstance(function, type) else function
    try:
        parameters = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):  # no function, or one that is written in C++
        return {}
    return {one.name: one.default for one in parameters if one.default is not one.empty and not callable(one.default)}
