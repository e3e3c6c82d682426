"""Every differentiable operation, declared once, grouped by family. The ops are the functions: ``exp(x)``."""

from minigrad.op import close_table
from minigrad.ops import elementwise, shape
from minigrad.ops.elementwise import *  # noqa: F403 -- the families list their names
from minigrad.ops.shape import *  # noqa: F403

__all__ = elementwise.__all__ + shape.__all__

close_table()
