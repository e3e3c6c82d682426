"""`help`, `dir` and name completion list every method and operation with its signature."""

import inspect
import pydoc

import pytest

import minigrad as mg
from cases import merge_cases
from needs import needs

needs("numpy")


@merge_cases
@pytest.mark.parametrize("name", sorted(n for n in dir(mg.Tensor) if not n.startswith("_")))
def test_every_method_has_a_name_and_help(name):
    method = getattr(mg.Tensor, name)
    assert inspect.getdoc(method) or inspect.ismemberdescriptor(method)
    if inspect.isfunction(method):
        assert method.__name__.lstrip("_") not in ("lambda", "method", "apply", "write", "<lambda>")
        first = next(iter(inspect.signature(method).parameters.values()))
        assert first.kind in (first.POSITIONAL_ONLY, first.POSITIONAL_OR_KEYWORD)


def test_generated_methods_are_shown_by_their_own_names():
    assert str(inspect.signature(mg.Tensor.add_)) == "(self, b, /, *, alpha=1)"
    assert mg.Tensor.add_.__name__ == "add_"
    assert mg.Tensor.add_.__doc__ == "In-place version of ``add(self, b)``; returns the tensor."
    assert str(inspect.signature(mg.Tensor.sin)) == "(self, /)"


@merge_cases
@pytest.mark.parametrize("op", mg.OPS.values(), ids=lambda op: op.name)
def test_every_operation_has_help_and_a_signature(op):
    assert f"{op.name}(" in pydoc.plain(pydoc.render_doc(op))
    assert op.__doc__.startswith("The operation $")
    assert list(inspect.signature(op).parameters) == [*op.inputs, *op.attrs]


def test_help_of_an_operation_documents_its_formula():
    assert mg.sin.__doc__ == (
        "The operation $\\sin a$ on floats, Values, and tensors, elementwise.\n\n"
        "It is differentiable with respect to a. Ints and bools are promoted to the default float dtype."
    )
    assert mg.OPS["eq"].__doc__.endswith("It is not differentiable.")
    assert mg.Op.__doc__.startswith("Declaration of an operation.")


def test_completion_lists_lazy_names_and_no_internal_ones():
    names = dir(mg)
    assert {"tensor", "Tensor", "conv2d", "randn", "functional", "sin", "Value", "float64"} <= set(names)
    assert not {"wrap", "put_at", "find_spec", "Any"} & set(names)
    assert all(hasattr(mg, name) for name in names)
