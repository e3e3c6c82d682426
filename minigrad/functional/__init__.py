"""PyTorch's functions of tensors, a module a family. Importing this package makes them methods of Tensor too."""

from minigrad._tensor import Tensor
from minigrad.functional import linalg, reduce
from minigrad.functional.linalg import *  # noqa: F403 -- the families list their names
from minigrad.functional.reduce import *  # noqa: F403

__all__ = linalg.__all__ + reduce.__all__

_NOT_METHODS = {"Extremes", "linear"}
_METHODS = {name: globals()[name] for name in __all__ if name not in _NOT_METHODS}
_METHODS["__matmul__"] = linalg.matmul

for _name, _function in _METHODS.items():
    setattr(Tensor, _name, _function)
