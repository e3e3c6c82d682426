"""PyTorch coverage: the committed table matches the package, and options and defaults are PyTorch's."""

import inspect
import os
import re
import subprocess
import sys
from contextlib import suppress
from operator import attrgetter
from pathlib import Path
from types import SimpleNamespace

import pytest

import minigrad as mg
from cases import merge_cases
from minigrad import cli, pytorch
from minigrad.core.errors import DeviceError, DTypeError, MinigradError
from minigrad.pytorch import coverage
from minigrad.pytorch.advice import DIFFERENCES, REPLACEMENTS, UNSUPPORTED_METHODS, UNSUPPORTED_OPTIONS
from needs import needs

needs("numpy")


PAGE = Path(__file__).parents[2] / "book" / "pytorch.md"
ROWS = pytorch.rows()


def test_the_page_of_the_book_is_up_to_date():
    same = PAGE.read_text(encoding="utf-8") == pytorch.markdown()
    assert same, "book/pytorch.md does not match the package; run: make torch"


def test_the_page_has_every_name_once():
    for family in dict.fromkeys(row.family for row in ROWS):
        section = PAGE.read_text(encoding="utf-8").split(f"\n## {family}\n")[1].split("\n## ")[0]
        listed = re.findall(r"^\| `(\w+)` \|", section, re.MULTILINE)
        for line in re.findall(r"^\*\*(?:Yes|No):\*\* (.*)\.$", section, re.MULTILINE):
            listed += re.findall(r"`(\w+)`", line)
        assert sorted(listed) == sorted(row.name for row in ROWS if row.family == family)


def test_differences_are_available_and_replacements_are_missing():
    available = {f"{row.family}.{row.name}" for row in ROWS if row.state != "no"}
    assert set(DIFFERENCES) <= available
    assert not UNSUPPORTED_METHODS & available
    assert not DIFFERENCES.keys() & set(" ".join(REPLACEMENTS).split())


@pytest.mark.parity
def test_names_and_signatures_match_this_pytorch(torch):
    import torch_names

    assert torch.__version__.split("+")[0] == pytorch.version(), (
        "write the list of names again for this version: make torch"
    )
    for family in torch_names.FAMILIES:
        listed = {name: f"({forms})" if forms else "" for name, forms in coverage.names()[family].items()}
        assert listed == torch_names.names(family)
        for kind, members in torch_names.members(family).items():
            listed = {x: f"({forms})" if forms else "" for x, forms in coverage.names(".")[f"{family}.{kind}"].items()}
            assert listed == members


@pytest.mark.parity
def test_callables_and_modules_match_pytorch(torch):
    differ = set()
    for row in ROWS:
        if row.state == "yes":
            pair = (
                attrgetter(f"{row.family}.{row.name}"[6:])(torch),
                getattr(coverage.minigrad_counterpart(row.family), row.name),
            )
            if len({(callable(x), inspect.ismodule(x)) for x in pair}) > 1:
                differ.add(f"{row.family}.{row.name}")
    assert differ == set()


@pytest.mark.parity
@pytest.mark.nightly
def test_the_file_of_names_matches_this_pytorch(torch):
    """Run in a subprocess, since it imports every module of PyTorch."""
    code = "import torch_names; assert torch_names.file_content() == torch_names.FILE.read_text(encoding='utf-8')"
    path = os.pathsep.join(sys.path)
    subprocess.run([sys.executable, "-c", code], check=True, timeout=300, env={**os.environ, "PYTHONPATH": path})


# One call for each option that only the notes mention: PyTorch computes it, and minigrad refuses it.
OPTIONS = {
    "torch.nn.Embedding sparse": "t.nn.Embedding(3, 2, sparse=True)",
    "torch.nn.EmbeddingBag sparse": "t.nn.EmbeddingBag(3, 2, sparse=True)",
    "torch.nn.functional.embedding sparse": "F.embedding(i, t.ones(3, 2), sparse=True)",
    "torch.nn.functional.embedding_bag sparse": "F.embedding_bag(i[None], t.ones(3, 2), sparse=True)",
    **{
        f"torch.optim.{name} differentiable": f"t.optim.{name}([t.ones(1, requires_grad=True)], differentiable=True)"
        for name in ("Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "SGD")
    },
    "torch.repeat_interleave repeat_interleave(repeats)": "t.repeat_interleave(t.tensor([1, 2]))",
}


@merge_cases
@pytest.mark.parity
@pytest.mark.parametrize(("option", "call"), OPTIONS.items())
def test_a_refused_option_exists_in_pytorch_and_is_noted(torch, option, call):
    name, _, words = option.partition(" ")
    family, _, name = name.rpartition(".")
    (row,) = [row for row in ROWS if (row.family, row.name) == (family, name)]
    assert row.state == "differs"
    assert words in row.note
    space = {"t": torch, "F": torch.nn.functional, "i": torch.tensor([0])}
    eval(call, space)
    with pytest.raises((MinigradError, TypeError)):
        eval(call, {"t": mg, "F": mg.nn.functional, "i": mg.tensor([0])})


def test_each_unsupported_option_is_tested():
    assert {f"{name} {option}" for name, options in UNSUPPORTED_OPTIONS.items() for option in options} <= OPTIONS.keys()


@pytest.mark.parametrize(
    ("name", "note"),
    [
        ("torch.cov", "without `aweights=`, `fweights=`"),
        ("torch.searchsorted", "without `sorter=`"),
        ("torch.sum", ""),
        ("torch.Tensor.split", "without `split_size=`"),
        ("torch.nn.ParameterDict", "`|=`, `__iter__`, `__len__`, `__reversed__`"),
        ("torch.nn.Sequential", "without `+`, `__delitem__`, `__getitem__`, `+=`"),
        ("torch.nn.Module", "`assign=` of `load_state_dict()`"),
        ("torch.optim.Optimizer", "`register_step_post_hook()`"),
        ("torch.utils.data.Subset", "`__getitems__`"),
    ],
)
def test_options_and_methods_are_compared(monkeypatch, name, note):
    """Compare with a function and a class that take no more than these, since ours may have gained options."""

    class Bare:
        def __init__(self, *args):
            pass

        def load_state_dict(self, state_dict, strict=True):
            pass

    functions = {
        "cov": lambda input, *, correction=1: None,
        "searchsorted": lambda sorted_sequence, input, *, out_int32=False, right=False, side=None: None,
        "split": lambda tensor, split_size_or_sections, dim=0: None,
        "sum": lambda input, dim=None, keepdim=False, *, dtype=None: None,
    }
    family, _, last = name.rpartition(".")
    counterpart = (
        type("Tensor", (), functions) if family == "torch.Tensor" else SimpleNamespace(**{last: Bare} | functions)
    )
    monkeypatch.setattr(coverage, "minigrad_counterpart", lambda family: counterpart)
    monkeypatch.setattr(coverage, "DIFFERENCES", {})
    row = next(row for row in pytorch.look_up({name[6:]}) if row.family == family)
    assert row.state == ("differs" if note else "yes")
    assert note in row.note


def test_functions_with_arbitrary_keywords_are_listed():
    """Options of these cannot be compared; each was checked manually."""
    names = set()
    for row in ROWS:
        function = getattr(coverage.minigrad_counterpart(row.family), row.name, None) if row.state != "no" else None
        with suppress(TypeError, ValueError):
            if any(p.kind is p.VAR_KEYWORD for p in inspect.signature(function).parameters.values()):
                names.add(f"{row.family[6:]}.{row.name}".lstrip("."))
    assert names == {
        "Tensor",
        "rand_like",
        "randint_like",
        "randn_like",
        "nn.Identity",
        "nn.RNN",
        "utils.data.StackDataset",
    }


def test_universally_unsupported_options_are_never_accepted():
    never = {"layout", "memory_format", "names", "out", "pin_memory"}
    accepted = set()
    for row in ROWS:
        with suppress(TypeError, ValueError, AttributeError):
            parameters = inspect.signature(
                getattr(coverage.minigrad_counterpart(row.family), row.name)
            ).parameters.keys()
            accepted |= {(row.name, name) for name in parameters & never}
    assert accepted == {("DataLoader", "pin_memory")}


def test_the_command_finds_every_public_name_of_pytorch():
    pairs = [
        (family, name)
        for kind in ("", ".", "+")
        for family, members in coverage.names(kind).items()
        for name in members
    ]
    assert len(pairs) > 7000
    spelled = {x: None for family, name in pairs for x in coverage._spellings(family, name)}
    for start in range(0, len(spelled), 997):  # all at once, in a few calls
        some = set(list(spelled)[start : start + 997])
        rows = pytorch.look_up(some)
        assert rows
    assert pytorch.look_up({"FloatTensor"})[0][:3] == ("torch", "FloatTensor", "no")
    assert {f"{row.family}.{row.name}" for row in pytorch.look_up({"checkpoint"})} >= {
        "torch.utils.checkpoint",
        "torch.utils.checkpoint.checkpoint",
    }
    assert ("torch", "accelerator", "no") in [row[:3] for row in pytorch.look_up({"accelerator"})]
    assert pytorch.look_up({"nonsense"}) == []


@pytest.mark.parametrize("name", ["half", "bfloat16"])
def test_smaller_floats_raise_with_advice(name):
    with pytest.raises(
        DTypeError, match=rf"{name}: not supported; float32 is the smallest floating-point dtype.*\n  Omit \.{name}\(\)"
    ):
        getattr(mg.ones(2), name)()


@pytest.mark.needs("a machine without CUDA")
def test_cuda_without_a_gpu_raises():
    needs("taichi")
    for ask in (mg.ones(2).cuda, lambda: mg.nn.Linear(2, 2).to("cuda"), lambda: mg.zeros(2, device="cuda")):
        with pytest.raises(DeviceError, match="cuda"):
            ask()


def test_flags_of_pytorch_backends_can_be_set():
    mg.backends.cudnn.benchmark = mg.backends.cudnn.deterministic = True
    assert not mg.backends.cudnn.is_available()
    assert not mg.backends.mps.is_available()
    mg.cuda.synchronize()
    mg.cuda.empty_cache()
    assert mg.cuda.current_device() == 0


def run(capsys, *arguments):
    code = cli.main(arguments)
    return (code, *capsys.readouterr())


def test_the_command_prints_counts_per_family_and_rows_of_names(capsys):
    code, out, _ = run(capsys, "torch")
    lines = out.splitlines()
    assert code == 0
    assert lines[0].split() == ["PyTorch", pytorch.version(), "yes", "differs", "no"]
    assert [(a, int(b), int(c), int(d)) for a, b, c, d in map(str.split, lines[1:-1])] == pytorch.summary(ROWS)
    assert run(capsys, "torch", "nn.Linear", "compile")[1].splitlines() == [
        "torch.compile    no       remove the line; mg.jit compiles a training step",
        "torch.nn.Linear  yes",
    ]
    assert {line.split()[0].rpartition(".")[0] for line in run(capsys, "torch", "optim")[1].splitlines()} >= {
        "torch.optim"
    }


def test_the_command_prints_the_page(capsys):
    assert run(capsys, "torch", "--markdown") == (0, pytorch.markdown(), "")


def test_a_name_unknown_to_pytorch_prints_one_line(capsys):
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


def test_load_ignores_weights_only(tmp_path):
    mg.save({"a": mg.ones(2)}, tmp_path / "a.pt")
    for allowed in (True, False):
        assert mg.load(tmp_path / "a.pt", map_location=mg.device("cpu"), weights_only=allowed)["a"].tolist() == [
            1.0,
            1.0,
        ]


@pytest.mark.parity
@pytest.mark.parametrize("family", ["nn", "nn.functional", "nn.init", "optim", "optim.lr_scheduler"])
def test_defaults_are_pytorch_s(torch, family):
    namespace, torch_namespace = (attrgetter(family)(one) for one in (mg, torch))
    names = [name for name in dir(torch_namespace) if not name.startswith("_") and hasattr(namespace, name)]
    compared = {name: [defaults(getattr(one, name)) for one in (namespace, torch_namespace)] for name in names}
    differ = {
        f"{name}({key}={mg_defaults[key]!r}), in PyTorch {torch_defaults[key]!r}"
        for name, (mg_defaults, torch_defaults) in compared.items()
        for key in mg_defaults.keys() & torch_defaults.keys()
        if mg_defaults[key] != torch_defaults[key]
    }
    assert differ == set()
    assert any(mg_defaults.keys() & torch_defaults.keys() for mg_defaults, torch_defaults in compared.values())


def defaults(function):
    """Return the parameters with a default other than a function: an activation belongs to its library."""
    called = function.__init__ if isinstance(function, type) else function
    try:
        parameters = inspect.signature(called).parameters.values()
    except (TypeError, ValueError):  # not a function, or written in C++
        return {}
    return {one.name: one.default for one in parameters if one.default is not one.empty and not callable(one.default)}
