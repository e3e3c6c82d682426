"""Declarations of all operations, grouped by family. Ops are callable, as in ``exp(x)``.

A gradient rule (VJP) that is too long for a lambda is a function ``_…_rule`` before the op. As with a lambda, its
parameter names declare the values that it uses, which are saved for the backward pass.
"""

from importlib import import_module

from minigrad.core.op import freeze_builtins
from minigrad.ops.activation import *  # noqa: F403 -- the families list their names
from minigrad.ops.attention import *  # noqa: F403
from minigrad.ops.bits import *  # noqa: F403
from minigrad.ops.conv import *  # noqa: F403
from minigrad.ops.elementwise import *  # noqa: F403
from minigrad.ops.indexing import *  # noqa: F403
from minigrad.ops.linalg import *  # noqa: F403
from minigrad.ops.loss import *  # noqa: F403
from minigrad.ops.normalization import *  # noqa: F403
from minigrad.ops.optim import *  # noqa: F403
from minigrad.ops.pool import *  # noqa: F403
from minigrad.ops.random import *  # noqa: F403
from minigrad.ops.recurrent import *  # noqa: F403
from minigrad.ops.reduce import *  # noqa: F403
from minigrad.ops.sampling import *  # noqa: F403
from minigrad.ops.shape import *  # noqa: F403
from minigrad.ops.sorting import *  # noqa: F403

_FAMILIES = [
    import_module(f"minigrad.ops.{name}")
    for name in (
        "activation",
        "attention",
        "bits",
        "conv",
        "elementwise",
        "indexing",
        "linalg",
        "loss",
        "normalization",
        "optim",
        "pool",
        "random",
        "recurrent",
        "reduce",
        "sampling",
        "shape",
        "sorting",
    )
]

__all__ = [name for family in _FAMILIES for name in family.__all__]

freeze_builtins()
