"""Finite differences and numerical integration."""

from samples import distinct_floats, sample

x = distinct_floats(3, 4)

SAMPLES = [
    sample("trapezoid", lambda F, x: F.trapezoid(x, dx=0.5, dim=0), x,
           differs={"empty": "PyTorch's zeros have no gradient"}),
    sample("trapezoid at positions", lambda F, x, v: F.trapz(x, v), x, distinct_floats(4)),
]  # fmt: skip
