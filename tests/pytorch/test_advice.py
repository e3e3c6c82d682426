"""Errors for missing names of PyTorch, with a replacement."""

import re
import warnings
from importlib import import_module

import pytest

import minigrad as mg
from minigrad.pytorch import coverage
from needs import needs

needs("numpy")

MODULES = sorted(
    {family for kind in ("", "+") for family in coverage.names(kind)}
    | {
        f"{family}.{name}"
        for family, members in coverage.names("+").items()
        for name, rest in members.items()
        if rest == "."
    }
)


def test_every_module_of_pytorch_can_be_imported_or_has_advice():
    """Each is a file of ours, or a module with its available names, or raises an error with its name."""
    refused, imported = [], []
    for path in MODULES:
        mg_path = path.replace("torch", "minigrad", 1)
        family, _, name = path.rpartition(".")
        if path == "torch.Tensor" or coverage.names().get(family, {}).get(name):  # a class or a function
            continue
        try:
            with warnings.catch_warnings():  # an old path of ours that is also a module of PyTorch
                warnings.filterwarnings("ignore", message=r"minigrad\.storage has moved to minigrad\.core\.storage")
                module = import_module(mg_path)
        except ModuleNotFoundError as error:
            refused.append((path, str(error)))
            continue
        if module.__spec__.origin is None:
            imported.append(path)
            for name in module.__all__:
                assert getattr(module, name) is getattr(
                    coverage.minigrad_counterpart(coverage.names("+")[path][name]), name
                )
    assert {"torch.nn.modules", "torch.nn.modules.linear", "torch.utils.data.dataloader", "torch.optim.adamw"} <= set(
        imported
    )
    for path, message in refused:
        assert re.match(r"No module named 'minigrad[\w.]*'\.\n  PyTorch's torch[\w.]* is not available", message), (
            path,
            message,
        )
    gone = {"torch.amp", "torch.utils.checkpoint", "torch.utils.tensorboard", "torch.nn.parallel", "torch.onnx"}
    assert gone <= {path for path, _ in refused}
    from minigrad.distributions.categorical import Categorical
    from minigrad.nn.modules.conv import Conv2d

    assert (Categorical, Conv2d) == (mg.distributions.Categorical, mg.nn.Conv2d)
    assert mg.nn.modules.conv.Conv2d is Conv2d


@pytest.mark.parametrize(
    ("statement", "kind", "text"),
    [
        (
            "from minigrad.amp import autocast",
            ModuleNotFoundError,
            (
                "No module named 'minigrad.amp'.\n  PyTorch's torch.amp is not available: dtypes are float32 and "
                "float64: remove autocast and GradScaler."
            ),
        ),
        (
            "from minigrad import amp",
            ModuleNotFoundError,
            "No module named 'minigrad.amp'.\n  PyTorch's torch.amp is not",
        ),
        (
            "from minigrad import compile",
            ImportError,
            "cannot import name 'compile' from 'minigrad'.\n  PyTorch's torch.compile is not available: remove the",
        ),
        (
            "from minigrad.nn.functional import ctc_loss",
            ImportError,
            "cannot import name 'ctc_loss' from 'minigrad.nn.functional'.\n  PyTorch's torch.nn.functional.ctc_loss is",
        ),
        ("from minigrad.nn.modules import Conv3d", ImportError, "images have at most two spatial dimensions."),
        ("import minigrad.nonsense", ModuleNotFoundError, "No module named 'minigrad.nonsense'"),
        ("from minigrad.nn import nonsense", ImportError, "cannot import name 'nonsense' from 'minigrad.nn' ("),
    ],
)
def test_an_import_of_a_missing_name_has_advice(statement, kind, text):
    with pytest.raises(ImportError) as caught:
        exec(statement, {})
    assert type(caught.value) is kind
    assert text in str(caught.value)


def test_a_missing_attribute_of_a_synthetic_module_has_advice():
    with pytest.raises(
        AttributeError, match=r"no attribute 'Conv3d'\.\n  PyTorch's torch\.nn\.modules\.Conv3d is not available"
    ):
        mg.nn.modules.Conv3d  # noqa: B018 -- asking is the test
    with pytest.raises(AttributeError, match=r"PyTorch's torch\.distributions\.Gamma is not available\."):
        mg.distributions.Gamma  # noqa: B018 -- asking is the test


@pytest.mark.parametrize(
    ("ask", "text"),
    [
        (
            lambda: mg.compile,
            (
                "module 'minigrad' has no attribute 'compile'.\n  PyTorch's torch.compile is not available: remove the "
                "line; mg.jit compiles a training step."
            ),
        ),
        (lambda: mg.fft, "torch.fft is not available: there are no Fourier transforms and no complex dtypes."),
        (
            lambda: mg.amp,
            "torch.amp is not available: dtypes are float32 and float64: remove autocast and GradScaler.",
        ),
        (lambda: mg.autocast, "remove autocast and GradScaler."),
        (lambda: mg.float16, "torch.float16 is not available: float32 is the smallest float dtype."),
        (lambda: mg.FloatTensor, "mg.tensor(data, dtype=mg.float32), or mg.empty(sizes)."),
        (lambda: mg.relu_, "torch.relu_ is not available: use the method x.relu_(…)."),
        (lambda: mg.nn.DataParallel, "there is one device: remove it, and use the module itself."),
        (lambda: mg.nn.Conv3d, "images have at most two spatial dimensions."),
        (lambda: mg.nn.functional.leaky_relu_, "F.leaky_relu(x, inplace=True)."),
        (lambda: mg.optim.LBFGS, "torch.optim.LBFGS is not available: optim.Adam, or SGD."),
        (
            lambda: mg.linalg.qr,
            "products, solve, inv, det, cholesky, svdvals are available; else use np.linalg on x.numpy().",
        ),
        (
            lambda: mg.cuda.amp,
            "torch.cuda.amp is not available: dtypes are float32 and float64: remove autocast and GradScaler.",
        ),
    ],
)
def test_a_missing_name_has_advice(ask, text):
    with pytest.raises(AttributeError) as error:
        ask()
    assert str(error.value).endswith(text)


def test_a_name_unknown_to_pytorch_has_no_advice():
    with pytest.raises(AttributeError) as error:
        mg.no_such_name  # noqa: B018 -- asking is the test
    assert str(error.value) == "module 'minigrad' has no attribute 'no_such_name'"
