"""Activations composed of other operations."""

from samples import distinct_floats, sample

X = distinct_floats(3, 4)
# Hardsigmoid and hardswish are not compared in float64, for which PyTorch uses a float32 1/6. See tests/nn.
OF_INTS = dict.fromkeys(("int64", "int32", "uint8", "bool"), "PyTorch cuts the value off; we refuse")

SAMPLES = [
    sample("celu", lambda F, x: F.celu(x, 1.5), X),
    sample("celu in place", lambda F, x: F.celu(x * 1.0, inplace=True), X),
    sample("glu", lambda F, x: F.glu(x), X),
    sample("glu of rows", lambda F, x: F.glu(x, 0), distinct_floats(4, 3)),
    sample("hardshrink", lambda F, x: F.hardshrink(x, 0.7), X),
    sample("hardsigmoid", lambda F, x: F.hardsigmoid(x * 1.5), X, parity=False),
    sample("hardswish", lambda F, x: F.hardswish(x * 1.5), X, parity=False),
    sample("hardswish in place", lambda F, x: F.hardswish(x * 1.5, inplace=True), X, parity=False),
    sample("softshrink", lambda F, x: F.softshrink(x, 0.7), X),
    sample("tanhshrink", lambda F, x: F.tanhshrink(x), distinct_floats(3, 4, low=1.0)),  # near 0 few digits are left
    sample("threshold", lambda F, x: F.threshold(x, 0.3, -2.0), X),
    sample("threshold in place", lambda F, x: F.threshold(x * 1.0, 0.3, 9.0, True), X),
]
