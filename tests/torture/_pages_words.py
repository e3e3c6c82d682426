"""Calls that receive a hostile string, by mistake or from a file, and their messages."""

from __future__ import annotations

import contextlib
import io
import json
import pickle
import re
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["CALLS"]

HostileCall = Callable[[str, Path], Any]


class _CustomRepr:
    """An object whose repr is a given string."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _storable(text: str) -> str:
    """Return the part of a string that can occur in a file, or in a file name."""
    return re.sub("[\x00\ud800-\udfff]", "", text)


def _model() -> Any:
    import minigrad as mg

    return mg.nn.Sequential(mg.nn.Linear(2, 2), mg.nn.ReLU())


def _model_with(text: str) -> Any:
    """Return a model with a submodule of this name."""
    import minigrad as mg

    model = mg.nn.Sequential()
    model.add_module(text.replace(".", "") or "x", mg.nn.Linear(2, 2))
    return model


def _call(attribute: str, *args: Any, **kwargs: Any) -> Any:
    """Call the function of minigrad with this dotted name."""
    import minigrad as mg

    function: Any = mg
    for part in attribute.split("."):
        function = getattr(function, part)
    return function(*args, **kwargs)


def _ones(*shape: int) -> Any:
    return _call("ones", *(shape or (2,)))


def _safetensors(header: Any, folder: Path) -> Path:
    path = folder / "a.safetensors"
    data = json.dumps(header).encode()
    path.write_bytes(len(data).to_bytes(8, "little") + data + bytes(8))
    return path


def _load_tensor_named(text: str, folder: Path, code: str = "F32") -> Any:
    """Load a model's state from a file whose one tensor has this name."""
    path = _safetensors({_storable(text): {"dtype": _storable(code), "shape": [2], "data_offsets": [0, 8]}}, folder)
    return _model().load_state_dict(_call("load", path))


def _load_class_named(text: str, folder: Path) -> Any:
    """Return a .pt file that references a class of this name."""
    path = folder / "a.pt"
    plain = re.sub(r"[^\x00-\x7f]|\s", "", text)
    data = f"\x80\x02cos{plain}\nname{plain}\n.".encode("latin-1")
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a/data.pkl", data)
        file.writestr("a/version", "3")
    return _call("load", path)


def _load_key(text: str, folder: Path) -> Any:
    path = folder / "a.pt"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a/data.pkl", pickle.dumps({text: 1.0}, 2))
    return _model().load_state_dict(_call("load", path))


def _csv(text: str, folder: Path, call: Callable[[Any], Any]) -> Any:
    path = folder / "a.csv"
    cell = _storable(text).replace('"', '""')
    path.write_text(f'"{cell}",b\n"{cell}",2\n', encoding="utf-8")
    return call(_call("data.read_csv", path))


def _value(text: str) -> Any:
    import minigrad as mg

    return mg.Value(2.0, text) * 3.0


def _command_output(argv: list[str]) -> str:
    """Return what the command prints."""
    from minigrad.cli import main

    output = io.StringIO()
    with contextlib.redirect_stdout(output), contextlib.redirect_stderr(output), contextlib.suppress(SystemExit):
        main(argv)
    return output.getvalue()


def _fit_output(text: str) -> str:
    """Return what training prints for a metric of this name."""
    import minigrad as mg

    printed = io.StringIO()
    model, batch = mg.nn.Linear(1, 1), (mg.ones(2, 1), mg.ones(2, 1))
    sgd = mg.optim.SGD(model.parameters(), lr=0.1)
    with contextlib.redirect_stderr(printed):
        metrics = {text: lambda output, target: output.mean()}
        history = mg.training.fit(model, [batch], sgd, mg.functional.mse_loss, epochs=1, metrics=metrics)
    # A progress bar returns to the start of its line.
    cleaned = printed.getvalue().replace("\r", "\n").replace("\x1b[A", "")
    return f"{cleaned}\n{history!r}"


def _run_function(text: str, returned: Any) -> Any:
    import minigrad as mg

    class Given(mg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2 if returned is None else returned

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return _CustomRepr(text)

    Given.__name__ = text.replace("\x00", "").encode(errors="ignore").decode()
    return Given.apply(mg.ones(2, requires_grad=True)).sum().backward()


def _profiled(text: str) -> Any:
    import minigrad as mg

    with mg.profile() as profile, mg.scope(text):
        mg.ones(2) * 2
    return f"{profile!s}"


def _draw_text(text: str) -> str:
    from minigrad_viz import to_text

    return to_text(_value(text))


def _viz(name: str, *args: Any, **kwargs: Any) -> Any:
    import minigrad_viz

    return getattr(minigrad_viz, name)(*args, **kwargs)


CALLS: dict[str, HostileCall] = {
    "repr of a Value": lambda text, _: repr(_value(text)) + repr(_call("Value", 1.0, text)),
    "Value of a text": lambda text, _: _call("Value", text),
    "Value + text": lambda text, _: _value("a") + text,
    "Value + object": lambda text, _: _value("a") + _CustomRepr(text),
    "tensor of a text": lambda text, _: _call("tensor", text),
    "tensor of objects": lambda text, _: _call("tensor", [_CustomRepr(text)]),
    "device": lambda text, _: _call("ones", 2, device=text),
    "dtype": lambda text, _: _call("ones", 2, dtype=text),
    "to": lambda text, _: _ones().to(text),
    "index": lambda text, _: _ones()[text],
    "dim": lambda text, _: _ones().sum(dim=text),
    "einsum": lambda text, _: _call("einsum", text, _ones()),
    "reduction": lambda text, _: _call("functional.mse_loss", _ones(), _ones(), reduction=text),
    "padding": lambda text, _: _call("functional.pad", _ones(1, 2), (1, 1), mode=text),
    "attribute of mg": lambda text, _: _call(text.replace(".", "") or "x"),
    "attribute of a module": lambda text, _: getattr(_model(), text),
    "submodule": lambda text, _: _model().get_submodule(text),
    "parameter": lambda text, _: _model().get_parameter(text),
    "a name with dots": lambda text, _: _model().register_parameter(f"{text}.", _call("nn.Parameter", _ones())),
    "a part that is none": lambda text, _: _model().add_module(text, 3),
    "a module printed": lambda text, _: repr(_model_with(text)),
    "a module counted": lambda text, _: str(_model_with(text).summary(_ones(3, 2))),
    "a part of another size": lambda text, _: _model_with(text)(_ones(3, 5)),
    "ModuleDict": lambda text, _: _call("nn.ModuleDict")[text],
    "ParameterDict": lambda text, _: _call("nn.ParameterDict")[text],
    "state": lambda text, _: _model().load_state_dict({text: _ones()}),
    "state of texts": lambda text, _: _model().load_state_dict(dict.fromkeys(_model().state_dict(), text)),
    "state of another": lambda text, _: _model_with(text).load_state_dict(_model().state_dict()),
    "state of another shape": lambda text, _: _model_with(text).load_state_dict(
        {name: _ones(5) for name in _model_with(text).state_dict()}
    ),
    "rate": lambda text, _: _call("optim.SGD", _model().parameters(), lr=text),
    "rate that is an object": lambda text, _: _call("optim.Adam", _model().parameters(), betas=_CustomRepr(text)),
    "group": lambda text, _: _call("optim.SGD", [{text: 1}], lr=0.1),
    "option of a group": lambda text, _: repr(
        _call("optim.SGD", [{"params": list(_model().parameters()), text: text}], lr=1.0)
    ),
    "save": lambda text, folder: _call("save", {text: _CustomRepr(text)}, folder / "a.safetensors"),
    "load, a path": lambda text, folder: _call("load", str(folder / _storable(text[:99]))),
    "load, a name": _load_tensor_named,
    "load, a type": lambda text, folder: _load_tensor_named("a", folder, text),
    "load, a layout": lambda text, folder: _call(
        "load", _safetensors({"__metadata__": {"minigrad": _storable(text), "sha256": "x", "tree": "y"}}, folder)
    ),
    "load, a class": _load_class_named,
    "load, a key": _load_key,
    "CSV": lambda text, folder: _csv(text, folder, repr),
    "CSV, a column that is not there": lambda text, folder: _csv("a", folder, lambda table: table.tensor(text)),
    "CSV, a column of texts": lambda text, folder: _csv(text, folder, lambda table: table.tensor()),
    "CSV, a cell too many": lambda text, folder: _call("data.read_csv", _write(folder / "b.csv", f"{text},b\n1\n")),
    "CSV, a path": lambda text, folder: _call("data.read_csv", folder / _storable(text[:99]).replace("/", "")),
    "vocabulary": lambda text, _: _call("data.Vocabulary", "ab").encode(text),
    "Op": lambda text, _: _call("Op", text, "{a}", vjp=(None,)),
    "kernel": lambda text, _: _call("kernel", text, "numpy"),
    "kernel, a device": lambda text, _: _call("kernel", "exp", text),
    "Function": lambda text, _: _run_function(text, None),
    "Function, what it gives": lambda text, _: _run_function(text, _CustomRepr(text)),
    "profile": lambda text, _: _profiled(text),
    "fit": lambda text, _: _fit_output(text),
    "fit, a schedule": lambda text, _: _call(
        "training.fit", _model(), [], None, None, epochs=1, schedule=text, progress=False
    ),
    "lessons": lambda text, _: _call("lessons.check", text, 1),
    "minigrad torch": lambda text, _: _command_output(["torch", "--", text]),
    "minigrad ops": lambda text, _: _command_output(["ops", "--", text]),
    "minigrad lab": lambda text, folder: _command_output(
        ["lab", "--copy", "--", str(folder / _storable(text[:50]).replace("/", ""))]
    ),
    "draw": lambda text, _: _viz("draw", text),
    "draw, an object": lambda text, _: _viz("draw", [_CustomRepr(text)]),
    "draw, a block": lambda text, _: _viz("draw", _model_with(text), _ones(3, 2), expand=[text]),
    "draw, as text": lambda text, _: _draw_text(text),
    "explain": lambda text, _: _viz("explain", text, of=_value(text)),
    "explain, a name that is not there": lambda text, _: _viz("explain", f"{text}!", of=_value(text)),
    "step": lambda text, _: _viz("step", _value("a"), **{text: 1}),
    "tour": lambda text, _: _viz("tour", _value(text), [(text, 3)]),
    "tour, no node": lambda text, _: _viz("tour", _value("a"), [(text + "!", text)]),
    "slider": lambda text, _: _viz("step", _value(text)).slider(text + "!"),
    "values": lambda text, _: setattr(_viz("step", _value("a")), "values", {text + "!": 1.0}),
    "save a picture": lambda text, _: _viz("draw", _value("a")).save(f"{text}!"),
    "watch": lambda text, _: _viz("watch", _CustomRepr(text)),
    "watch, layers": lambda text, _: _viz("watch", _model_with(text), layers=[text + "!"]),
    "watch, printed": lambda text, _: repr(_viz("watch", _model_with(text))),
}


def _write(path: Path, text: str) -> Path:
    path.write_text(_storable(text), encoding="utf-8")
    return path
