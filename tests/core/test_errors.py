"""Errors: their built-in base classes, and the escaping of control characters in messages and printed output."""

import builtins
import copy
import re
import traceback

import pytest

import minigrad as mg
from cases import merge_cases
from minigrad.cli import doctor, main
from minigrad.core import errors
from minigrad.core.errors import ArgumentError, DeclarationError, MinigradError, MissingFileError, printable
from needs import needs

LOUD = "\x1b[2J\x07\x9b1m\u202e\ud83d"
QUIET = r"\x1b[2J\x07\x9b1m\u202e\ud83d"


def test_printable_keeps_lines_tabs_accents_and_joined_emoji():
    text = "a\tb\nü é ∂ 漢字 שלום 👩‍👩‍👧 \u200b"
    assert printable(text) == text
    assert printable(f"a{LOUD}b") == f"a{QUIET}b"


@pytest.mark.parametrize("kind", [MinigradError, ArgumentError, MissingFileError])
def test_error_messages_escape_control_characters(kind):
    assert str(kind(f"there is no {LOUD}")) == f"there is no {QUIET}"


def test_an_op_name_must_be_an_identifier():
    with pytest.raises(DeclarationError, match=r"Op '<b>': the name must be an identifier"):
        mg.Op("<b>", "{a}", vjp=(None,))


def test_reprs_escape_control_characters(tmp_path, capsys):
    needs("numpy")
    model = mg.nn.Sequential()
    model.add_module(f"x{LOUD}", mg.nn.Linear(1, 1))
    sgd = mg.optim.SGD([{"params": model.parameters(), f"y{LOUD}": 1}], lr=0.1)
    batch = mg.ones(2, 1), mg.ones(2, 1)
    metrics = {f"z{LOUD}": lambda output, target: output.mean()}
    history = mg.training.fit(model, [batch], sgd, mg.functional.mse_loss, epochs=1, metrics=metrics)
    path = tmp_path / "a.csv"
    path.write_text("a\x1b[2J,b\n1,2\n", encoding="utf-8")
    assert f"(x{QUIET}): Linear" in repr(model)
    assert f"x{QUIET} "[:9] in str(model.summary(mg.ones(2, 1)))
    assert f"y{QUIET}: 1" in repr(sgd)
    assert f"z{QUIET}" in repr(history)
    assert repr(mg.data.read_csv(path)) == r"Table(1 rows; a\x1b[2J: int, b: int)"
    assert f"z{QUIET}=" in capsys.readouterr().err


def test_the_scope_note_of_an_error_escapes_control_characters():
    needs("numpy")
    model = mg.nn.Sequential()
    model.add_module(f"x{LOUD}", mg.nn.Linear(2, 2))
    with pytest.raises(mg.errors.ShapeError) as caught:
        model(mg.ones(3, 5))
    assert f"in Sequential: x{QUIET}, Linear" in "".join(traceback.format_exception_only(caught.value))


def test_the_cli_escapes_control_characters(tmp_path, capsys, monkeypatch):
    assert main(["lab", "--copy", str(tmp_path / "a\x1b[2Jb")]) == 0
    assert rf"{tmp_path}/a\x1b[2Jb: " in capsys.readouterr().out
    needs("numpy")
    monkeypatch.setenv("MINIGRAD_DATA", str(tmp_path / "a\x1b[2Jb"))
    assert main(["data"]) == 0
    assert main(["tour", "--epochs", "1", "--out", str(tmp_path / "a\x1b[2Jb.html")]) == 0
    monkeypatch.setattr(doctor, "_run_checks", lambda: iter([doctor.Finding("ok", "a\x1b[2Jb", "a\x1b[2Jb")]))
    assert main(["doctor"]) == 0
    message = capsys.readouterr().out
    assert "\x1b" not in message
    assert message.count(r"a\x1b[2Jb") >= 7
    assert main(["torch", "a\x1b[2Jb"]) == 2
    assert capsys.readouterr().err.endswith(" has no a\\x1b[2Jb\n")


# Ten typical mistakes per class: the call, and the built-in exception that PyTorch raises.
MISTAKES = {
    "ShapeError": """
        t.ones(2) + t.ones(3)                                        RuntimeError
        t.ones(2, 3) @ t.ones(2, 3)                                  RuntimeError
        t.ones(6).reshape(4)                                         RuntimeError
        t.cat([t.ones(2, 3), t.ones(2, 4)], 0)                       RuntimeError
        t.nn.Linear(2, 3)(t.ones(4, 5))                              RuntimeError
        t.ones(3).gather(0, t.tensor([7]))                           RuntimeError
        bool(t.ones(2))                                              RuntimeError
        t.ones(2)[5]                                                 IndexError
        t.ones(2).sum(1)                                             IndexError
        t.nn.functional.cross_entropy(t.ones(2, 3), t.tensor([0]))   ValueError
    """,
    "DTypeError": """
        t.ones(2) @ t.ones(2, dtype=t.int64)                         RuntimeError
        t.tensor([1], requires_grad=True)                            RuntimeError
        t.tensor([1, 2]).mean()                                      RuntimeError
        -t.tensor([True])                                            RuntimeError
        t.tensor([1]).add_(1.5)                                      RuntimeError
        t.nn.Linear(2, 2)(t.ones(2, dtype=t.float64))                RuntimeError
        t.nn.functional.embedding(t.tensor([0.5]), t.ones(3, 2))     RuntimeError
        t.ones(2) + "a"                                              TypeError
        t.ones(2) - None                                             TypeError
        t.nn.Sequential(3)                                           TypeError
    """,
    "ArgumentError": """
        t.div(t.ones(2), 2, rounding_mode="up")                      RuntimeError
        t.nn.functional.gelu(t.ones(2), approximate="x")             RuntimeError
        t.bernoulli(t.tensor([2.0]))                                 RuntimeError
        t.multinomial(t.tensor([-1.0, 1.0]), 1)                      RuntimeError
        t.quantile(t.ones(2), 2.0)                                   RuntimeError
        t.randint(5, 2, (2,))                                        RuntimeError
        t.meshgrid(t.ones(2), indexing="x")                          RuntimeError
        t.nn.Linear(2, 2).load_state_dict({})                        RuntimeError
        t.nn.MSELoss(reduction="avg")(t.ones(2), t.ones(2))          ValueError
        t.optim.SGD([t.ones(2, requires_grad=True)], lr=-1)          ValueError
    """,
    "DivisionError": """
        t.tensor([1]) // 0                                           RuntimeError
        t.tensor([1]) // t.tensor([0])                               RuntimeError
        t.tensor([1]) % 0                                            RuntimeError
        1 // t.tensor([0])                                           RuntimeError
        1 % t.tensor([0])                                            RuntimeError
        t.fmod(t.tensor([1]), t.tensor([0]))                         RuntimeError
        t.div(t.tensor([1]), 0, rounding_mode="floor")               RuntimeError
        t.div(t.tensor([1]), 0, rounding_mode="trunc")               RuntimeError
        t.floor_divide(t.tensor([1]), 0)                             RuntimeError
        t.tensor([1]).remainder_(0)                                  RuntimeError
    """,
    "LinAlgError": """
        t.linalg.inv(t.zeros(2, 2))                                  RuntimeError
        t.linalg.inv(t.zeros(3, 2, 2))                               RuntimeError
        t.inverse(t.zeros(2, 2))                                     RuntimeError
        t.linalg.cholesky(-t.eye(2))                                 RuntimeError
        t.linalg.cholesky(t.zeros(2, 2))                             RuntimeError
        t.linalg.solve(t.zeros(2, 2), t.ones(2))                     RuntimeError
        t.linalg.solve(t.zeros(2, 2), t.ones(2, 2))                  RuntimeError
        t.linalg.solve(t.ones(2, 2), t.ones(2))                      RuntimeError
        t.linalg.inv(t.ones(2, 2))                                   RuntimeError
        t.linalg.matrix_power(t.zeros(2, 2), -1)                     RuntimeError
    """,
    "GraphError": """
        t.ones(()).backward()                                        RuntimeError
        w().add_(1)                                                  RuntimeError
        w()[0].fill_(1)                                              RuntimeError
        w().numpy()                                                  RuntimeError
        (w() * 2).requires_grad_(False)                              RuntimeError
        t.autograd.grad(w().sum(), w())                              RuntimeError
        copy.deepcopy(w() * 2)                                       RuntimeError
        w().detach().sum().backward()                                RuntimeError
        (w() * 2).numpy()                                            RuntimeError
        [y := w().sum().square(), y.backward(), y.backward()]        RuntimeError
    """,
}


def mistakes():
    return [(kind, *line.rsplit(maxsplit=1)) for kind, lines in MISTAKES.items() for line in lines.strip().splitlines()]


def make(library, call):
    space = {"t": library, "copy": copy, "w": lambda: library.ones(2, requires_grad=True)}
    eval(call.strip(), space)


@merge_cases
@pytest.mark.parametrize(("kind", "call", "builtin"), mistakes())
def test_a_mistake_raises_a_subclass_of_pytorchs_builtin(kind, call, builtin):
    needs("numpy")
    with pytest.raises(getattr(errors, kind)) as caught:
        make(mg, call)
    assert isinstance(caught.value, getattr(builtins, builtin))


@merge_cases
@pytest.mark.parity
@pytest.mark.parametrize(("kind", "call", "builtin"), mistakes())
def test_pytorch_raises_the_same_builtin(torch, kind, call, builtin):
    with pytest.raises(getattr(builtins, builtin)):
        make(torch, call)


def test_errors_are_runtime_errors_where_pytorch_raises_one_and_the_docstring_stars_them():
    starred = set(re.findall(r"^ +[├└]── (\w+) \*", errors.__doc__, re.MULTILINE))
    named = set(re.findall(r"^ +[├└]── (\w+)", errors.__doc__, re.MULTILINE))
    kinds = {name: kind for name, kind in vars(errors).items() if isinstance(kind, type) and kind is not MinigradError}
    assert named == set(kinds)
    assert starred == {name for name, kind in kinds.items() if issubclass(kind, RuntimeError)}
    assert set(kinds) - starred == {
        "DeclarationError",
        "DivergedError",
        "MissingFileError",
        "MissingPackageError",
    }
