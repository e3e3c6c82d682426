"""strict_shapes disables broadcasting in every operation, and the error suggests explicit calls of expand."""

import threading

import pytest

import minigrad as mg
from minigrad.core.errors import ShapeError
from needs import needs

needs("numpy")


def test_strict_shapes_disables_broadcasting():
    a, b = mg.zeros(3, 1), mg.zeros(3)
    with mg.strict_shapes():
        with pytest.raises(ShapeError) as error:
            a - b
        assert str(error.value) == (
            "sub: strict_shapes() disables broadcasting, but shapes (3, 1) and (3,) differ.\n"
            "  For a result of shape (3, 3), write a.expand(3, 3) and b.expand(3, 3) for operands a and b."
        )
        assert (a.expand(3, 3) - b.expand(3, 3)).shape == (3, 3)
    assert (a - b).shape == (3, 3)


REFUSED = {
    "a 0-d tensor": lambda a, b: a + mg.tensor(1.0),
    "in place": lambda a, b: a.add_(b[:1]),
    "copy": lambda a, b: mg.zeros(3, 3).copy_(b),
    "set": lambda a, b: a.__setitem__(slice(None), b[:1]),
    "maximum": lambda a, b: mg.maximum(a, b),
    "where": lambda a, b: mg.where(a > 0, a, b),
    "comparison": lambda a, b: a == b,
    "batches": lambda a, b: mg.zeros(1, 2, 3) @ mg.zeros(4, 3, 2),
    "other types": lambda a, b: a * b.to(mg.int64),
}


@pytest.mark.parametrize("name", REFUSED)
def test_strict_shapes_applies_to_every_kind_of_operation(name):
    a, b = mg.zeros(3, 1), mg.zeros(3)
    REFUSED[name](a, b)
    with mg.strict_shapes(), pytest.raises(ShapeError, match="disables broadcasting"):
        REFUSED[name](a, b)


def test_strict_shapes_allows_scalars_equal_shapes_layers_and_derivatives():
    x, w, b = mg.ones(2, 3, requires_grad=True), mg.ones(4, 3), mg.ones(4)

    @mg.strict_shapes()
    def step():
        y = mg.linear(x, w, b) * 2.0 + 1
        z = (y * y.to(mg.float64)).sum()
        z.backward()
        y[0] = 5.0
        return y

    step()
    assert x.grad.shape == (2, 3)
    with mg.strict_shapes(), mg.strict_shapes(False):
        assert (mg.zeros(3, 1) + mg.zeros(3)).shape == (3, 3)


def test_strict_shapes_is_thread_local():
    results = []
    with mg.strict_shapes():
        thread = threading.Thread(target=lambda: results.append((mg.zeros(3, 1) + mg.zeros(3)).shape))
        thread.start()
        thread.join()
    assert results == [(3, 3)]
