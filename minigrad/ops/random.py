"""Counter-based random sampling. Values are sampled from the stream of a 64-bit `key`, starting at `offset`.

The operations are pure functions of their attributes, so the same key and offset yield the same values. A `Generator`
advances the offset. The operations are not differentiable.
"""

from __future__ import annotations

from minigrad.core.op import Op

__all__ = ["random_choice", "random_int", "random_normal", "random_permutation", "random_uniform"]

random_uniform = Op(
    "random_uniform", r"\operatorname{uniform}(0, 1)", vjp=(), attrs=("key", "offset", "shape", "dtype")
)
random_normal = Op("random_normal", r"N(0, 1)", vjp=(), attrs=("key", "offset", "shape", "dtype"))
random_int = Op("random_int", r"U", vjp=(), attrs=("key", "offset", "shape", "low", "high", "dtype"))
random_permutation = Op("random_permutation", r"\pi", vjp=(), attrs=("key", "offset", "count"))
random_choice = Op("random_choice", r"\sim {a}", vjp=(None,), attrs=("key", "offset", "count", "replacement"))
