"""The reference: every public name is documented once, and docstrings are converted to reStructuredText."""

import re
import zlib
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

import minigrad as mg
import minigrad.functional
from needs import needs

needs("sphinx")

docstrings = import_module("docstrings")  # of the book's extensions
names = import_module("names")


BOOK = Path(__file__).parents[2] / "book"


@pytest.fixture(scope="session")
def inventory(site):
    """The kind and the address of each name."""
    data = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    rows = [line.split(" ", 4) for line in zlib.decompress(data).decode().splitlines()]
    return {row[0]: (row[1], row[3].replace("$", row[0])) for row in rows}


@pytest.mark.parametrize("room", names.ROOMS)
def test_every_public_name_is_in_the_inventory(inventory, room):
    missing = [name for name in names.public(room) if f"{room}.{name}" not in inventory]
    # The packages torch.utils.data and nn.functional are listed elsewhere, under the same objects.
    assert missing == []


def test_what_import_star_gives_is_in_the_inventory(inventory):
    assert [name for name in mg.__all__ if f"minigrad.{name}" not in inventory] == []
    rooms = [name for name in mg.__all__ if isinstance(getattr(mg, name), ModuleType)]
    assert [name for name in rooms if inventory[f"minigrad.{name}"][0] != "py:module"] == []


def test_each_place_of_the_inventory_is_there(site, inventory):
    texts = {}
    for name, (kind, place) in inventory.items():
        page, _, anchor = place.partition("#")
        text = texts.setdefault(page, (site / page).read_text(encoding="utf-8"))
        if kind.startswith("py:"):
            assert f'id="{anchor}"' in text, name


def test_methods_of_tensor_stand_once_with_their_types(site, inventory):
    public = [name for name in vars(mg.Tensor) if not name.startswith("_") and name not in ("label", "T", "mT")]
    assert [name for name in public if f"minigrad.Tensor.{name}" not in inventory] == []
    pages = [path.read_text(encoding="utf-8") for path in (site / "reference").glob("*.html")]
    for name in ("sum", "reshape", "add_", "detach", "shape", "T"):
        assert sum(text.count(f'id="minigrad.Tensor.{name}"') for text in pages) == 1, name
    assert names.typed()["max"] == [
        "(dim: Tensor | None=None, keepdim: bool=False) -> Tensor",
        "(dim: int, keepdim: bool=False) -> Extremes",
    ]


def link(code):
    return {"relu": "minigrad.relu", "errors.ShapeError": "minigrad.core.errors.ShapeError"}.get(code)


def text(doc):
    return "\n".join(docstrings.restructured(doc.splitlines(), link))


def test_code_between_backticks_is_code_and_a_link_where_it_names_something():
    assert text("As `relu`, of `x` and ``y_``.") == "As :py:obj:`relu <minigrad.relu>`, of ``x`` and ``y_``."
    assert text("Raises ShapeError.") == "Raises :py:obj:`ShapeError <minigrad.core.errors.ShapeError>`."


def test_what_is_no_code_has_no_special_meaning():
    assert text("(fan_out, *kernel), |a|, sin_") == r"(fan_out, \*kernel), \|a\|, sin\_"
    assert text("*A batch* is a * b.") == r"*A batch* is a \* b."


def test_examples_and_tables_stay_as_they_are():
    example = "One.\n\n>>> a * b_  # *\n|x|\n\nTwo *."
    assert text(example) == "One.\n\n>>> a * b_  # *\n|x|\n\nTwo \\*."


def test_what_is_set_in_after_a_colon_is_code():
    assert text("So:\n\n    a * b\n    c\n\nAnd *.") == "So::\n\n    a * b\n    c\n\nAnd \\*."


def test_a_word_between_backticks_is_a_link_where_it_can_only_mean_a_name():
    reference = import_module("reference")
    assert reference.link("mg.no_grad", "minigrad.grad") == "minigrad.no_grad"
    assert reference.link("nn.Linear", "minigrad.grad") == "minigrad.nn.Linear"
    assert reference.link("Linear", "minigrad.nn.Bilinear") == "minigrad.nn.Linear"
    assert reference.link("Value", "minigrad.nn.Bilinear") == "minigrad.Value"
    assert reference.link("inputs", "minigrad.grad") is None  # a parameter
    assert reference.link("grad", "minigrad.grad") is None  # itself
    assert reference.link("digits", "minigrad.nn.Linear") is None  # a word
    assert reference.link("a + b", "minigrad.grad") is None


def test_types_that_have_no_page_are_not_hidden_from_nitpick():
    space = {"__file__": str(BOOK / "conf.py")}
    exec((BOOK / "conf.py").read_text(encoding="utf-8"), space)
    assert space["nitpicky"] is True
    assert space["nitpick_ignore"] == [("py:class", "minigrad.compiler.jit.recording.StepRecording")]
    own = ["Node", "minigrad.Value", "minigrad.core.graph.Node", "minigrad_viz.Trace", "mg.Op"]
    for kind, pattern in space["nitpick_ignore_regex"]:
        assert kind == "py:class"
        assert [name for name in own if re.fullmatch(pattern, name)] == []


def test_the_types_that_public_names_return_have_a_place(inventory):
    wanted = [
        "core.graph.Node",
        "core.rules.SavePlan",
        "core.storage.Transfers",
        "profiling.profiler._Row",
        "training.stopping.Best",
        "nn.summary.Row",
    ]
    assert [name for name in wanted if f"minigrad.{name}" not in inventory] == []
    for file in ("rows", "columns"):
        module = import_module(f"minigrad_viz.trace.{file}")
        classes = [name for name in module.__all__ if isinstance(getattr(module, name), type)]
        assert [name for name in classes if f"{module.__name__}.{name}" not in inventory] == []
