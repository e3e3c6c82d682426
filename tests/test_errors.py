"""What errors and printed things say of names that command a terminal: as Python writes them in quotes."""

import traceback

import pytest

import minigrad as mg
from minigrad.cli import main
from minigrad.errors import ArgumentError, DeclarationError, MinigradError, MissingFileError, printable
from needs import needs

LOUD = "\x1b[2J\x07\x9b1m\u202e\ud83d"
QUIET = r"\x1b[2J\x07\x9b1m\u202e\ud83d"


def test_printable_keeps_lines_tabs_accents_and_joined_emoji():
    text = "a\tb\nü é ∂ 漢字 שלום 👩‍👩‍👧 \u200b"
    assert printable(text) == text
    assert printable(f"a{LOUD}b") == f"a{QUIET}b"


@pytest.mark.parametrize("kind", [MinigradError, ArgumentError, MissingFileError])
def test_the_text_of_an_error_commands_no_terminal(kind):
    assert str(kind(f"there is no {LOUD}")) == f"there is no {QUIET}"


def test_an_operation_is_called_by_an_identifier():
    with pytest.raises(DeclarationError, match=r"Op '<b>': its name must be an identifier"):
        mg.Op("<b>", "{a}", vjp=(None,))


def test_modules_tables_optimizers_and_trainings_are_printed_without_commands(tmp_path, capsys):
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


def test_where_in_a_model_an_error_arose_is_told_without_commands():
    needs("numpy")
    model = mg.nn.Sequential()
    model.add_module(f"x{LOUD}", mg.nn.Linear(2, 2))
    with pytest.raises(mg.errors.ShapeError) as caught:
        model(mg.ones(3, 5))
    assert f"in Sequential: x{QUIET}, Linear" in "".join(traceback.format_exception_only(caught.value))


def test_the_command_says_names_and_folders_without_commands(tmp_path, capsys):
    assert main(["lab", "--copy", str(tmp_path / "a\x1b[2Jb")]) == 0
    assert rf"{tmp_path}/a\x1b[2Jb: " in capsys.readouterr().out
    needs("numpy")
    assert main(["torch", "a\x1b[2Jb"]) == 2
    assert capsys.readouterr().err.endswith(" has no a\\x1b[2Jb\n")
