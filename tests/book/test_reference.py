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
    content = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    rows = [line.split(" ", 4) for line in zlib.decompress(content).decode().splitlines()]
    return {row[0]: (row[1], row[3].replace("$", row[0])) for row in rows}


@pytest.mark.parametrize("module_name", names.PUBLIC_MODULES)
def test_every_public_name_is_in_the_inventory(inventory, module_name):
    missing = [name for name in names.public_names(module_name) if f"{module_name}.{name}" not in inventory]
    # The packages torch.utils.data and nn.functional are listed elsewhere, under the same objects.
    assert missing == []


def test_names_of_import_star_are_in_the_inventory(inventory):
    assert [name for name in mg.__all__ if f"minigrad.{name}" not in inventory] == []
    modules = [name for name in mg.__all__ if isinstance(getattr(mg, name), ModuleType)]
    assert [name for name in modules if inventory[f"minigrad.{name}"][0] != "py:module"] == []


def test_each_address_of_the_inventory_exists(site, inventory):
    pages = {}
    for name, (kind, address) in inventory.items():
        page, _, anchor = address.partition("#")
        text = pages.setdefault(page, (site / page).read_text(encoding="utf-8"))
        if kind.startswith("py:"):
            assert f'id="{anchor}"' in text, name


def test_methods_of_tensor_are_documented_once_with_types(site, inventory):
    public = [name for name in vars(mg.Tensor) if not name.startswith("_") and name not in ("label", "T", "mT")]
    assert [name for name in public if f"minigrad.Tensor.{name}" not in inventory] == []
    pages = [path.read_text(encoding="utf-8") for path in (site / "reference").glob("*.html")]
    for name in ("sum", "reshape", "add_", "detach", "shape", "T"):
        assert sum(text.count(f'id="minigrad.Tensor.{name}"') for text in pages) == 1, name
    assert names.stub_signatures()["max"] == [
        "(dim: Tensor | None=None, keepdim: bool=False) -> Tensor",
        "(dim: int, keepdim: bool=False) -> ValuesIndices",
    ]


def link(code):
    return {"relu": "minigrad.relu", "errors.ShapeError": "minigrad.core.errors.ShapeError"}.get(code)


def convert(doc):
    return "\n".join(docstrings.to_rst(doc.splitlines(), link))


def test_backticked_code_becomes_code_or_a_link():
    assert convert("As `relu`, of `x` and ``y_``.") == "As :py:obj:`relu <minigrad.relu>`, of ``x`` and ``y_``."
    assert convert("Raises ShapeError.") == "Raises :py:obj:`ShapeError <minigrad.core.errors.ShapeError>`."


def test_prose_is_escaped():
    assert convert("(fan_out, *kernel), |a|, sin_") == r"(fan_out, \*kernel), \|a\|, sin\_"
    assert convert("*A batch* is a * b.") == r"*A batch* is a \* b."


def test_examples_and_tables_are_unchanged():
    example = "One.\n\n>>> a * b_  # *\n|x|\n\nTwo *."
    assert convert(example) == "One.\n\n>>> a * b_  # *\n|x|\n\nTwo \\*."


def test_an_indented_block_after_a_colon_is_code():
    assert convert("So:\n\n    a * b\n    c\n\nAnd *.") == "So::\n\n    a * b\n    c\n\nAnd \\*."


def test_a_backticked_name_is_a_link_if_unambiguous():
    reference = import_module("reference")
    assert reference.link_target("mg.no_grad", "minigrad.grad") == "minigrad.no_grad"
    assert reference.link_target("nn.Linear", "minigrad.grad") == "minigrad.nn.Linear"
    assert reference.link_target("Linear", "minigrad.nn.Bilinear") == "minigrad.nn.Linear"
    assert reference.link_target("Value", "minigrad.nn.Bilinear") == "minigrad.Value"
    assert reference.link_target("inputs", "minigrad.grad") is None  # a parameter
    assert reference.link_target("grad", "minigrad.grad") is None  # itself
    assert reference.link_target("digits", "minigrad.nn.Linear") is None  # a word
    assert reference.link_target("a + b", "minigrad.grad") is None


def test_nitpick_ignores_no_own_types():
    space = {"__file__": str(BOOK / "conf.py")}
    exec((BOOK / "conf.py").read_text(encoding="utf-8"), space)
    assert space["nitpicky"] is True
    assert space["nitpick_ignore"] == [("py:class", "minigrad.compiler.jit.step_trace.StepTrace")]
    names = ["Node", "minigrad.Value", "minigrad.core.graph.Node", "minigrad_viz.Trace", "mg.Op"]
    for kind, pattern in space["nitpick_ignore_regex"]:
        assert kind == "py:class"
        assert [name for name in names if re.fullmatch(pattern, name)] == []


def test_returned_types_are_documented(inventory):
    types = [
        "core.graph.Node",
        "core.rules.SavePlan",
        "core.storage.Transfers",
        "profiling.profiler._KernelTotals",
        "training.stopping.BestEpoch",
        "nn.summary.SummaryRow",
    ]
    assert [name for name in types if f"minigrad.{name}" not in inventory] == []
    for file in ("rows", "columns"):
        module = import_module(f"minigrad_viz.trace.{file}")
        classes = [name for name in module.__all__ if isinstance(getattr(module, name), type)]
        assert [name for name in classes if f"{module.__name__}.{name}" not in inventory] == []
