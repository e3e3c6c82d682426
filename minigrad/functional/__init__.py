"""PyTorch's tensor functions, one module per topic. Importing this package also registers the methods of Tensor."""

import minigrad.random.tensors  # noqa: F401 -- registers methods
from minigrad.core.registry import FUNCTIONS, METHODS
from minigrad.core.tensor import Tensor
from minigrad.functional import (  # noqa: F401 -- registers functions and methods
    activation,
    arithmetic,
    attention,
    bits,
    channels,
    comparison,
    conv,
    counting,
    creation,
    diagonal,
    differences,
    distance,
    dropout,
    einsum,
    elementwise,
    embedding,
    in_place_views,
    indexing,
    interop,
    inverses,
    joining,
    linalg,
    loss,
    margin_loss,
    normalization,
    padding,
    pool,
    printing,
    reduce,
    resize,
    sampling,
    scattering,
    shape,
    sorting,
    splitting,
    statistics,
    subscript,
    views,
)
from minigrad.functional.operations import register_operations
from minigrad.functional.return_types import AminmaxResult, SlogdetResult, SortResult, ValuesIndices

register_operations()
globals().update(FUNCTIONS)
for _name, _method in METHODS.items():
    setattr(Tensor, _name, _method)

__all__ = ["AminmaxResult", "SlogdetResult", "SortResult", "ValuesIndices"]
__all__ += FUNCTIONS  # noqa: PLE0605 -- a dict gives its keys
