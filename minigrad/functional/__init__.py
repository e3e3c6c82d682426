"""PyTorch's functions of tensors, a module a family. Importing this package makes them methods of Tensor too."""

from minigrad import random
from minigrad.core.tensor import Tensor
from minigrad.functional import (
    activation,
    arranged,
    attention,
    bits,
    composed,
    conv,
    counting,
    creation,
    derived,
    distance,
    elementwise,
    in_place_views,
    indexing,
    interop,
    inverses,
    linalg,
    loss,
    normalization,
    overwriting,
    pointwise,
    pool,
    printing,
    quantiles,
    reduce,
    resize,
    sampling,
    scattering,
    shape,
    sorting,
    views,
)
from minigrad.functional.activation import *  # noqa: F403 -- the families list their names
from minigrad.functional.arranged import *  # noqa: F403
from minigrad.functional.attention import *  # noqa: F403
from minigrad.functional.bits import *  # noqa: F403
from minigrad.functional.composed import *  # noqa: F403
from minigrad.functional.conv import *  # noqa: F403
from minigrad.functional.counting import *  # noqa: F403
from minigrad.functional.derived import *  # noqa: F403
from minigrad.functional.distance import *  # noqa: F403
from minigrad.functional.elementwise import *  # noqa: F403
from minigrad.functional.indexing import *  # noqa: F403
from minigrad.functional.interop import *  # noqa: F403
from minigrad.functional.inverses import *  # noqa: F403
from minigrad.functional.linalg import *  # noqa: F403
from minigrad.functional.loss import *  # noqa: F403
from minigrad.functional.methods import with_axis
from minigrad.functional.normalization import *  # noqa: F403
from minigrad.functional.pointwise import *  # noqa: F403
from minigrad.functional.pool import *  # noqa: F403
from minigrad.functional.printing import *  # noqa: F403
from minigrad.functional.quantiles import *  # noqa: F403
from minigrad.functional.reduce import *  # noqa: F403
from minigrad.functional.resize import *  # noqa: F403
from minigrad.functional.sampling import *  # noqa: F403
from minigrad.functional.scattering import *  # noqa: F403
from minigrad.functional.shape import *  # noqa: F403
from minigrad.functional.sorting import *  # noqa: F403
from minigrad.functional.views import *  # noqa: F403

_FAMILIES = (
    activation,
    arranged,
    attention,
    bits,
    composed,
    conv,
    counting,
    derived,
    distance,
    elementwise,
    in_place_views,
    indexing,
    interop,
    inverses,
    linalg,
    loss,
    normalization,
    overwriting,
    pointwise,
    pool,
    printing,
    quantiles,
    reduce,
    resize,
    sampling,
    scattering,
    shape,
    sorting,
    views,
)

__all__ = [name for family in _FAMILIES for name in family.__all__ if name != "METHODS"]

for _name in __all__:
    globals()[_name] = with_axis(globals()[_name])
for _family in (creation, random.tensors, *_FAMILIES):
    for _name, _function in _family.METHODS.items():
        setattr(Tensor, _name, with_axis(_function))
