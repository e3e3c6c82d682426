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

Call = Callable[[str, Path], Any]


class _Odd:
    """An object whose repr is a given string."""

    def __init__(self, text: str) -> None:
        self.text = text

    def __repr__(self) -> str:
        return self.text


def _whole(text: str) -> str:
    """Return the part of a string that can occur in a file, or in a file name."""
    return re.sub("[\x00\ud800-\udfff]", "", text)


def _model() -> Any:
    import minigrad as mg

    return mg.nn.Sequential(mg.nn.Linear(2, 2), mg.nn.ReLU())


def _named(text: str) -> Any:
    """Return a model with a submodule of this name."""
    import minigrad as mg

    model = mg.nn.Sequential()
    model.add_module(text.replace(".", "") or "x", mg.nn.Linear(2, 2))
    return model


def _with(attribute: str, *given: Any, **named: Any) -> Any:
    """Call the function of minigrad with this dotted name."""
    import minigrad as mg

    found: Any = mg
    for part in attribute.split("."):
        found = getattr(found, part)
    return found(*given, **named)


def _ones(*shape: int) -> Any:
    return _with("ones", *(shape or (2,)))


def _safetensors(header: Any, folder: Path) -> Path:
    path = folder / "a.safetensors"
    data = json.dumps(header).encode()
    path.write_bytes(len(data).to_bytes(8, "little") + data + bytes(8))
    return path


def _of_file(text: str, folder: Path, code: str = "F32") -> Any:
    """Load a model's state from a file whose one tensor has this name."""
    path = _safetensors({_whole(text): {"dtype": _whole(code), "shape": [2], "data_offsets": [0, 8]}}, folder)
    return _model().load_state_dict(_with("load", path))


def _pickled(text: str, folder: Path) -> Any:
    """Return a .pt file that references a class of this name."""
    path = folder / "a.pt"
    plain = re.sub(r"[^\x00-\x7f]|\s", "", text)
    made = f"\x80\x02cos{plain}\nname{plain}\n.".encode("latin-1")
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a/data.pkl", made)
        file.writestr("a/version", "3")
    return _with("load", path)


def _key_of_pickle(text: str, folder: Path) -> Any:
    path = folder / "a.pt"
    with zipfile.ZipFile(path, "w") as file:
        file.writestr("a/data.pkl", pickle.dumps({text: 1.0}, 2))
    return _model().load_state_dict(_with("load", path))


def _csv(text: str, folder: Path, call: Callable[[Any], Any]) -> Any:
    path = folder / "a.csv"
    cell = _whole(text).replace('"', '""')
    path.write_text(f'"{cell}",b\n"{cell}",2\n', encoding="utf-8")
    return call(_with("data.read_csv", path))


def _value(text: str) -> Any:
    import minigrad as mg

    return mg.Value(2.0, text) * 3.0


def _said_by(argv: list[str]) -> str:
    """Return what the command prints."""
    from minigrad.cli import main

    said = io.StringIO()
    with contextlib.redirect_stdout(said), contextlib.redirect_stderr(said), contextlib.suppress(SystemExit):
        main(argv)
    return said.getvalue()


def _fitted(text: str) -> str:
    """Return what training prints for a metric of this name."""
    import minigrad as mg

    said = io.StringIO()
    model, batch = mg.nn.Linear(1, 1), (mg.ones(2, 1), mg.ones(2, 1))
    sgd = mg.optim.SGD(model.parameters(), lr=0.1)
    with contextlib.redirect_stderr(said):
        metrics = {text: lambda output, target: output.mean()}
        history = mg.training.fit(model, [batch], sgd, mg.functional.mse_loss, epochs=1, metrics=metrics)
    moved = said.getvalue().replace("\r", "\n").replace("\x1b[A", "")  # a progress bar returns to the start of its line
    return f"{moved}\n{history!r}"


def _function(text: str, returned: Any) -> Any:
    import minigrad as mg

    class Given(mg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 2 if returned is None else returned

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return _Odd(text)

    Given.__name__ = text.replace("\x00", "").encode(errors="ignore").decode()
    return Given.apply(mg.ones(2, requires_grad=True)).sum().backward()


def _profiled(text: str) -> Any:
    import minigrad as mg

    with mg.profile() as seen, mg.scope(text):
        mg.ones(2) * 2
    return f"{seen!s}"


def _drawn(text: str) -> str:
    from minigrad_viz import to_text

    return to_text(_value(text))


def _viz(name: str, *given: Any, **named: Any) -> Any:
    import minigrad_viz

    return getattr(minigrad_viz, name)(*given, **named)


CALLS: dict[str, Call] = {
    "repr of a Value": lambda text, _: repr(_value(text)) + repr(_with("Value", 1.0, text)),
    "Value of a text": lambda text, _: _with("Value", text),
    "Value + text": lambda text, _: _value("a") + text,
    "Value + object": lambda text, _: _value("a") + _Odd(text),
    "tensor of a text": lambda text, _: _with("tensor", text),
    "tensor of objects": lambda text, _: _with("tensor", [_Odd(text)]),
    "device": lambda text, _: _with("ones", 2, device=text),
    "dtype": lambda text, _: _with("ones", 2, dtype=text),
    "to": lambda text, _: _ones().to(text),
    "index": lambda text, _: _ones()[text],
    "dim": lambda text, _: _ones().sum(dim=text),
    "einsum": lambda text, _: _with("einsum", text, _ones()),
    "reduction": lambda text, _: _with("functional.mse_loss", _ones(), _ones(), reduction=text),
    "padding": lambda text, _: _with("functional.pad", _ones(1, 2), (1, 1), mode=text),
    "attribute of mg": lambda text, _: _with(text.replace(".", "") or "x"),
    "attribute of a module": lambda text, _: getattr(_model(), text),
    "submodule": lambda text, _: _model().get_submodule(text),
    "parameter": lambda text, _: _model().get_parameter(text),
    "a name with dots": lambda text, _: _model().register_parameter(f"{text}.", _with("nn.Parameter", _ones())),
    "a part that is none": lambda text, _: _model().add_module(text, 3),
    "a module printed": lambda text, _: repr(_named(text)),
    "a module counted": lambda text, _: str(_named(text).summary(_ones(3, 2))),
    "a part of another size": lambda text, _: _named(text)(_ones(3, 5)),
    "ModuleDict": lambda text, _: _with("nn.ModuleDict")[text],
    "ParameterDict": lambda text, _: _with("nn.ParameterDict")[text],
    "state": lambda text, _: _model().load_state_dict({text: _ones()}),
    "state of texts": lambda text, _: _model().load_state_dict(dict.fromkeys(_model().state_dict(), text)),
    "state of another": lambda text, _: _named(text).load_state_dict(_model().state_dict()),
    "state of another shape": lambda text, _: _named(text).load_state_dict(
        {name: _ones(5) for name in _named(text).state_dict()}
    ),
    "rate": lambda text, _: _with("optim.SGD", _model().parameters(), lr=text),
    "rate that is an object": lambda text, _: _with("optim.Adam", _model().parameters(), betas=_Odd(text)),
    "group": lambda text, _: _with("optim.SGD", [{text: 1}], lr=0.1),
    "option of a group": lambda text, _: repr(
        _with("optim.SGD", [{"params": list(_model().parameters()), text: text}], lr=1.0)
    ),
    "save": lambda text, folder: _with("save", {text: _Odd(text)}, folder / "a.safetensors"),
    "load, a path": lambda text, folder: _with("load", str(folder / _whole(text[:99]))),
    "load, a name": _of_file,
    "load, a type": lambda text, folder: _of_file("a", folder, text),
    "load, a layout": lambda text, folder: _with(
        "load", _safetensors({"__metadata__": {"minigrad": _whole(text), "sha256": "x", "tree": "y"}}, folder)
    ),
    "load, a class": _pickled,
    "load, a key": _key_of_pickle,
    "CSV": lambda text, folder: _csv(text, folder, repr),
    "CSV, a column that is not there": lambda text, folder: _csv("a", folder, lambda table: table.tensor(text)),
    "CSV, a column of texts": lambda text, folder: _csv(text, folder, lambda table: table.tensor()),
    "CSV, a cell too many": lambda text, folder: _with("data.read_csv", _written(folder / "b.csv", f"{text},b\n1\n")),
    "CSV, a path": lambda text, folder: _with("data.read_csv", folder / _whole(text[:99]).replace("/", "")),
    "vocabulary": lambda text, _: _with("data.Vocabulary", "ab").encode(text),
    "Op": lambda text, _: _with("Op", text, "{a}", vjp=(None,)),
    "kernel": lambda text, _: _with("kernel", text, "numpy"),
    "kernel, a device": lambda text, _: _with("kernel", "exp", text),
    "Function": lambda text, _: _function(text, None),
    "Function, what it gives": lambda text, _: _function(text, _Odd(text)),
    "profile": lambda text, _: _profiled(text),
    "fit": lambda text, _: _fitted(text),
    "fit, a schedule": lambda text, _: _with(
        "training.fit", _model(), [], None, None, epochs=1, schedule=text, progress=False
    ),
    "lessons": lambda text, _: _with("lessons.check", text, 1),
    "minigrad torch": lambda text, _: _said_by(["torch", "--", text]),
    "minigrad ops": lambda text, _: _said_by(["ops", "--", text]),
    "minigrad lab": lambda text, folder: _said_by(
        ["lab", "--copy", "--", str(folder / _whole(text[:50]).replace("/", ""))]
    ),
    "draw": lambda text, _: _viz("draw", text),
    "draw, an object": lambda text, _: _viz("draw", [_Odd(text)]),
    "draw, a block": lambda text, _: _viz("draw", _named(text), _ones(3, 2), expand=[text]),
    "draw, as text": lambda text, _: _drawn(text),
    "explain": lambda text, _: _viz("explain", text, of=_value(text)),
    "explain, a name that is not there": lambda text, _: _viz("explain", f"{text}!", of=_value(text)),
    "step": lambda text, _: _viz("step", _value("a"), **{text: 1}),
    "tour": lambda text, _: _viz("tour", _value(text), [(text, 3)]),
    "tour, no node": lambda text, _: _viz("tour", _value("a"), [(text + "!", text)]),
    "slider": lambda text, _: _viz("step", _value(text)).slider(text + "!"),
    "values": lambda text, _: setattr(_viz("step", _value("a")), "values", {text + "!": 1.0}),
    "save a picture": lambda text, _: _viz("draw", _value("a")).save(f"{text}!"),
    "watch": lambda text, _: _viz("watch", _Odd(text)),
    "watch, layers": lambda text, _: _viz("watch", _named(text), layers=[text + "!"]),
    "watch, printed": lambda text, _: repr(_viz("watch", _named(text))),
}


def _written(path: Path, text: str) -> Path:
    path.write_text(_whole(text), encoding="utf-8")
    return path
