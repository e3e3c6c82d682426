"""detect_anomaly reports the first operation that returns a NaN or an infinity, with its pass and source line."""

import math
from pathlib import Path

import pytest

import minigrad as mg
from minigrad.core.errors import GraphError
from needs import needs

needs("numpy")


def line_of(text):
    """Return the number of the first line of this file that equals `text`."""
    lines = Path(__file__).read_text(encoding="utf-8").splitlines()
    return next(value for value, line in enumerate(lines, 1) if line.strip() == text)


def logarithm(x):
    y = x + 1.0
    return y.log()


def root(x):
    y = x.sqrt()
    return (y * 1.0).sum()


def test_an_infinity_in_the_forward_pass_raises():
    with mg.detect_anomaly(), pytest.raises(GraphError) as error:
        logarithm(mg.tensor([1.0, -1.0, 0.0]))
    assert str(error.value) == (
        "anomaly: log returned 1 infinity in 3 elements, in the forward pass\n"
        f"  at {__file__}:{line_of('return y.log()')}: return y.log()"
    )


def test_the_backward_pass_names_the_line_of_the_forward_pass():
    x = mg.tensor([4.0, 0.0], requires_grad=True)
    with mg.detect_anomaly():
        y = root(x)
        with pytest.raises(GraphError) as error:
            y.backward()
    assert str(error.value) == (
        "anomaly: div returned 1 infinity in 2 elements, in the backward pass, in the derivative of sqrt, which was "
        f"computed\n  at {__file__}:{line_of('y = x.sqrt()')}: y = x.sqrt()"
    )
    assert x.grad is None


def test_anomalies_of_values_raise():
    with (
        pytest.raises(GraphError, match=r"anomaly: div returned 1 NaN in 1 element, in the forward pass"),
        mg.detect_anomaly(),
    ):
        mg.Value(0.0) / mg.Value(0.0)


def test_propagated_nans_do_not_raise():
    x = mg.tensor([math.nan, math.inf, 1.0])
    with mg.detect_anomaly():
        y = (x * 2.0).exp()
        mg.where(mg.tensor([True, False, True]), x, -math.inf)
    assert math.isnan(y[0].item())
    with pytest.raises(GraphError, match="sub returned 1 NaN in 1 element"), mg.detect_anomaly():
        x[1] - x[1]


def test_anomalies_outside_the_block_do_not_raise():
    with mg.detect_anomaly():
        mg.tensor(1.0) * 2.0
    assert mg.tensor(0.0).log().item() == -math.inf


def test_an_inplace_write_compares_with_the_old_values():
    x = mg.tensor([4.0, -1.0])
    with (
        mg.detect_anomaly(),
        pytest.raises(GraphError, match="anomaly: sqrt returned 1 NaN in 2 elements, in the forward"),
    ):
        x.sqrt_()
    with mg.detect_anomaly():
        mg.tensor([math.nan, 1.0]).mul_(2.0)
        with mg.no_grad(), pytest.raises(GraphError, match="div returned 1 infinity"):
            mg.tensor([1.0]).div_(mg.tensor([0.0]))


def test_propagated_infinities_do_not_raise():
    with mg.detect_anomaly():
        assert (mg.tensor([math.inf, 1.0]) * 2.0).tolist() == [math.inf, 2.0]
