"""Every differentiable operation, declared once, grouped by family. The ops are the functions: ``exp(x)``."""

from minigrad.op import close_table
from minigrad.ops import activation, elementwise, linalg, reduce, shape
from minigrad.ops.activation import *  # noqa: F403 -- the families list their names
from minigrad.ops.elementwise import *  # noqa: F403
from minigrad.ops.linalg import *  # noqa: F403
from minigrad.ops.reduce import *  # noqa: F403
from minigrad.ops.shape import *  # noqa: F403

__all__ = activation.__all__ + elementwise.__all__ + linalg.__all__ + reduce.__all__ + shape.__all__

close_table()
