# Written by `make stubs` from the declarations: change those.
from typing import overload

from minigrad.core.tensor import Tensor
from minigrad.core.value import Value
from minigrad.functional._stubs import Binary, BinaryTest, Step, Ternary, Unary, UnaryTest
from minigrad.functional.activation import (
    celu,
    glu,
    gumbel_softmax,
    hardshrink,
    hardsigmoid,
    hardswish,
    prelu,
    softshrink,
    tanhshrink,
    threshold,
)
from minigrad.functional.arithmetic import addcdiv, addcmul, float_power, fmod, positive, rsub
from minigrad.functional.attention import log_softmax, scaled_dot_product_attention, softmax, softmin
from minigrad.functional.bits import bitwise_and, bitwise_not, bitwise_or, bitwise_xor
from minigrad.functional.channels import channel_shuffle, pixel_shuffle, pixel_unshuffle
from minigrad.functional.comparison import (
    allclose,
    equal,
    fmax,
    fmin,
    is_nonzero,
    is_same_size,
    isclose,
    isneginf,
    isposinf,
    signbit,
)
from minigrad.functional.conv import conv1d, conv2d, conv_transpose1d, conv_transpose2d, fold, unfold
from minigrad.functional.counting import bincount, isin, unique, unique_consecutive
from minigrad.functional.diagonal import diag, diag_embed, diagflat, tril, triu
from minigrad.functional.differences import diff, trapezoid, trapz
from minigrad.functional.distance import cdist, cosine_similarity, dist, pairwise_distance
from minigrad.functional.dropout import alpha_dropout, dropout, dropout1d, dropout2d, feature_alpha_dropout
from minigrad.functional.einsum import einsum, tensordot
from minigrad.functional.elementwise import (
    deg2rad,
    exp2,
    fix,
    frac,
    heaviside,
    hypot,
    log10,
    logaddexp,
    logaddexp2,
    logit,
    nan_to_num,
    rad2deg,
    sinc,
    where,
    xlogy,
)
from minigrad.functional.embedding import embedding, embedding_bag, one_hot
from minigrad.functional.indexing import (
    argwhere,
    count_nonzero,
    gather,
    index_add,
    index_copy,
    index_fill,
    index_select,
    masked_fill,
    masked_scatter,
    masked_select,
    nonzero,
    scatter_add,
    take,
    take_along_dim,
)
from minigrad.functional.interop import clone, detach, from_dlpack, is_floating_point, is_tensor, numel
from minigrad.functional.inverses import cholesky, cholesky_inverse, cholesky_solve, det, inverse, logdet, slogdet
from minigrad.functional.joining import (
    block_diag,
    cartesian_prod,
    cat,
    column_stack,
    combinations,
    concat,
    concatenate,
    dstack,
    hstack,
    row_stack,
    stack,
    vstack,
)
from minigrad.functional.linalg import (
    addbmm,
    addmm,
    addmv,
    addr,
    baddbmm,
    bilinear,
    bmm,
    chain_matmul,
    cross,
    dot,
    ger,
    inner,
    kron,
    linear,
    matmul,
    mm,
    mv,
    outer,
    trace,
    vander,
    vdot,
)
from minigrad.functional.loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cross_entropy,
    gaussian_nll_loss,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    nll_loss,
    poisson_nll_loss,
    smooth_l1_loss,
)
from minigrad.functional.margin_loss import (
    cosine_embedding_loss,
    hinge_embedding_loss,
    hinge_loss,
    margin_ranking_loss,
    multi_margin_loss,
    multilabel_margin_loss,
    multilabel_soft_margin_loss,
    soft_margin_loss,
    triplet_margin_loss,
    triplet_margin_with_distance_loss,
)
from minigrad.functional.normalization import (
    batch_norm,
    group_norm,
    instance_norm,
    layer_norm,
    local_response_norm,
    normalize,
    rms_norm,
)
from minigrad.functional.padding import pad
from minigrad.functional.pool import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    avg_pool1d,
    avg_pool2d,
    lp_pool1d,
    lp_pool2d,
    max_pool1d,
    max_pool2d,
    max_unpool1d,
    max_unpool2d,
    min_pool2d,
)
from minigrad.functional.reduce import (
    all,
    amax,
    amin,
    aminmax,
    any,
    argmax,
    argmin,
    cumprod,
    cumsum,
    logsumexp,
    max,
    mean,
    min,
    nanmean,
    nansum,
    norm,
    prod,
    std,
    std_mean,
    sum,
    var,
    var_mean,
)
from minigrad.functional.resize import interpolate
from minigrad.functional.return_types import AminmaxResult, SlogdetResult, SortResult, ValuesIndices
from minigrad.functional.sampling import affine_grid, grid_sample
from minigrad.functional.scattering import (
    diagonal_scatter,
    index_put,
    scatter,
    scatter_reduce,
    select_scatter,
    slice_scatter,
)
from minigrad.functional.shape import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_shapes,
    flip,
    fliplr,
    flipud,
    repeat_interleave,
    roll,
    rot90,
    tile,
    unravel_index,
)
from minigrad.functional.sorting import argsort, bucketize, kthvalue, median, msort, searchsorted, sort, topk
from minigrad.functional.splitting import chunk, dsplit, hsplit, split, split_with_sizes, tensor_split, unbind, vsplit
from minigrad.functional.statistics import corrcoef, cov, nanmedian, nanquantile, quantile
from minigrad.functional.views import (
    as_strided,
    broadcast_tensors,
    broadcast_to,
    diagonal,
    flatten,
    meshgrid,
    moveaxis,
    movedim,
    narrow,
    permute,
    ravel,
    reshape,
    select,
    squeeze,
    swapaxes,
    swapdims,
    t,
    transpose,
    unflatten,
    unsqueeze,
)

__all__ = [
    "AminmaxResult",
    "SlogdetResult",
    "SortResult",
    "ValuesIndices",
    "abs",
    "absolute",
    "acos",
    "acosh",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "add",
    "addbmm",
    "addcdiv",
    "addcmul",
    "addmm",
    "addmv",
    "addr",
    "affine_grid",
    "all",
    "allclose",
    "alpha_dropout",
    "amax",
    "amin",
    "aminmax",
    "any",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "as_strided",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "avg_pool1d",
    "avg_pool2d",
    "baddbmm",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "bincount",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "block_diag",
    "bmm",
    "broadcast_shapes",
    "broadcast_tensors",
    "broadcast_to",
    "bucketize",
    "cartesian_prod",
    "cat",
    "cdist",
    "ceil",
    "celu",
    "chain_matmul",
    "channel_shuffle",
    "cholesky",
    "cholesky_inverse",
    "cholesky_solve",
    "chunk",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "clone",
    "column_stack",
    "combinations",
    "concat",
    "concatenate",
    "conv1d",
    "conv2d",
    "conv_transpose1d",
    "conv_transpose2d",
    "corrcoef",
    "cos",
    "cosh",
    "cosine_embedding_loss",
    "cosine_similarity",
    "count_nonzero",
    "cov",
    "cross",
    "cross_entropy",
    "cumprod",
    "cumsum",
    "deg2rad",
    "det",
    "detach",
    "diag",
    "diag_embed",
    "diagflat",
    "diagonal",
    "diagonal_scatter",
    "diff",
    "dist",
    "div",
    "divide",
    "dot",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dsplit",
    "dstack",
    "einsum",
    "elu",
    "embedding",
    "embedding_bag",
    "eq",
    "equal",
    "erf",
    "exp",
    "exp2",
    "expm1",
    "feature_alpha_dropout",
    "fix",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "float_power",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "fold",
    "frac",
    "from_dlpack",
    "gather",
    "gaussian_nll_loss",
    "ge",
    "gelu",
    "gelu_backward",
    "gelu_tanh",
    "gelu_tanh_backward",
    "ger",
    "glu",
    "greater",
    "greater_equal",
    "grid_sample",
    "group_norm",
    "gt",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "heaviside",
    "hinge_embedding_loss",
    "hinge_loss",
    "hsplit",
    "hstack",
    "huber_loss",
    "hypot",
    "index_add",
    "index_copy",
    "index_fill",
    "index_put",
    "index_select",
    "inner",
    "instance_norm",
    "interpolate",
    "inverse",
    "is_floating_point",
    "is_nonzero",
    "is_same_size",
    "is_tensor",
    "isclose",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "kl_div",
    "kron",
    "kthvalue",
    "l1_loss",
    "layer_norm",
    "le",
    "leaky_relu",
    "lerp",
    "less",
    "less_equal",
    "linear",
    "local_response_norm",
    "log",
    "log1p",
    "log2",
    "log10",
    "log_softmax",
    "logaddexp",
    "logaddexp2",
    "logdet",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logit",
    "logsigmoid",
    "logsumexp",
    "lp_pool1d",
    "lp_pool2d",
    "lt",
    "margin_ranking_loss",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "matmul",
    "max",
    "max_pool1d",
    "max_pool2d",
    "max_unpool1d",
    "max_unpool2d",
    "maximum",
    "mean",
    "median",
    "meshgrid",
    "min",
    "min_pool2d",
    "minimum",
    "mish",
    "mm",
    "moveaxis",
    "movedim",
    "mse_loss",
    "msort",
    "mul",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "multiply",
    "mv",
    "nan_to_num",
    "nanmean",
    "nanmedian",
    "nanquantile",
    "nansum",
    "narrow",
    "ne",
    "neg",
    "negative",
    "nll_loss",
    "nonzero",
    "norm",
    "normalize",
    "not_equal",
    "numel",
    "one_hot",
    "outer",
    "pad",
    "pairwise_distance",
    "permute",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson_nll_loss",
    "positive",
    "pow",
    "prelu",
    "prod",
    "quantile",
    "rad2deg",
    "ravel",
    "reciprocal",
    "relu",
    "relu6",
    "relu_backward",
    "remainder",
    "repeat_interleave",
    "reshape",
    "rms_norm",
    "roll",
    "rot90",
    "round",
    "row_stack",
    "rsqrt",
    "rsub",
    "scaled_dot_product_attention",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "searchsorted",
    "select",
    "select_scatter",
    "selu",
    "sigmoid",
    "sign",
    "signbit",
    "silu",
    "sin",
    "sinc",
    "sinh",
    "slice_scatter",
    "slogdet",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "sort",
    "split",
    "split_with_sizes",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "std_mean",
    "step",
    "sub",
    "subtract",
    "sum",
    "swapaxes",
    "swapdims",
    "t",
    "take",
    "take_along_dim",
    "tan",
    "tanh",
    "tanhshrink",
    "tensor_split",
    "tensordot",
    "threshold",
    "tile",
    "topk",
    "trace",
    "transpose",
    "trapezoid",
    "trapz",
    "tril",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "triu",
    "true_divide",
    "trunc",
    "unbind",
    "unflatten",
    "unfold",
    "unique",
    "unique_consecutive",
    "unravel_index",
    "unsqueeze",
    "vander",
    "var",
    "var_mean",
    "vdot",
    "vsplit",
    "vstack",
    "where",
    "xlogy",
]
abs: Unary
absolute: Unary
acos: Unary
acosh: Unary

@overload
def add(input: Tensor, other: Tensor | float, *, alpha: float = 1) -> Tensor:
    """Return ``input + alpha * other``."""

@overload
def add(input: float, other: Tensor, *, alpha: float = 1) -> Tensor: ...
@overload
def add(input: Value, other: Value | float, *, alpha: float = 1) -> Value: ...
@overload
def add(input: float, other: Value, *, alpha: float = 1) -> Value: ...
@overload
def add(input: float, other: float, *, alpha: float = 1) -> float: ...

arccos: Unary
arccosh: Unary
arcsin: Unary
arcsinh: Unary
arctan: Unary
arctan2: Binary
arctanh: Unary
asin: Unary
asinh: Unary
atan: Unary
atan2: Binary
atanh: Unary
ceil: Unary

@overload
def clamp(input: Tensor, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
    """Clamp `input` to [`min`, `max`], scalars or tensors; None leaves that side unbounded, and nan stays nan."""

@overload
def clamp(input: Value, min: Value | float | None = None, max: Value | float | None = None) -> Value: ...
@overload
def clamp(input: float, min: float | None = None, max: float | None = None) -> float: ...
@overload
def clamp_max(input: Tensor, max: Tensor | float) -> Tensor:
    """Clamp `input` from above: see `clamp`."""

@overload
def clamp_max(input: float, max: Tensor) -> Tensor: ...
@overload
def clamp_max(input: Value, max: Value | float) -> Value: ...
@overload
def clamp_max(input: float, max: Value) -> Value: ...
@overload
def clamp_max(input: float, max: float) -> float: ...
@overload
def clamp_min(input: Tensor, min: Tensor | float) -> Tensor:
    """Clamp `input` from below: see `clamp`."""

@overload
def clamp_min(input: float, min: Tensor) -> Tensor: ...
@overload
def clamp_min(input: Value, min: Value | float) -> Value: ...
@overload
def clamp_min(input: float, min: Value) -> Value: ...
@overload
def clamp_min(input: float, min: float) -> float: ...
@overload
def clip(input: Tensor, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
    """Clamp `input` to [`min`, `max`], scalars or tensors; None leaves that side unbounded, and nan stays nan."""

@overload
def clip(input: Value, min: Value | float | None = None, max: Value | float | None = None) -> Value: ...
@overload
def clip(input: float, min: float | None = None, max: float | None = None) -> float: ...

cos: Unary
cosh: Unary

@overload
def div(input: Tensor, other: Tensor | float, *, rounding_mode: str | None = None) -> Tensor:
    """Return ``input / other``, rounded by `rounding_mode`: None (exact), "trunc" (toward 0) or "floor" (down)."""

@overload
def div(input: float, other: Tensor, *, rounding_mode: str | None = None) -> Tensor: ...
@overload
def div(input: Value, other: Value | float, *, rounding_mode: str | None = None) -> Value: ...
@overload
def div(input: float, other: Value, *, rounding_mode: str | None = None) -> Value: ...
@overload
def div(input: float, other: float, *, rounding_mode: str | None = None) -> float: ...
@overload
def divide(input: Tensor, other: Tensor | float, *, rounding_mode: str | None = None) -> Tensor:
    """Return ``input / other``, rounded by `rounding_mode`: None (exact), "trunc" (toward 0) or "floor" (down)."""

@overload
def divide(input: float, other: Tensor, *, rounding_mode: str | None = None) -> Tensor: ...
@overload
def divide(input: Value, other: Value | float, *, rounding_mode: str | None = None) -> Value: ...
@overload
def divide(input: float, other: Value, *, rounding_mode: str | None = None) -> Value: ...
@overload
def divide(input: float, other: float, *, rounding_mode: str | None = None) -> float: ...
@overload
def elu(a: Tensor, /, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    r"""The operation $\operatorname{elu} a$ on floats, Values, and tensors, elementwise."""

@overload
def elu(a: Value, /, alpha: float = 1.0, inplace: bool = False) -> Value: ...
@overload
def elu(a: float, /, alpha: float = 1.0, inplace: bool = False) -> float: ...

eq: BinaryTest
erf: Unary
exp: Unary
expm1: Unary
floor: Unary

@overload
def floor_divide(input: Tensor, other: Tensor | float) -> Tensor:
    """Return ``input // other``, rounded down."""

@overload
def floor_divide(input: float, other: Tensor) -> Tensor: ...
@overload
def floor_divide(input: Value, other: Value | float) -> Value: ...
@overload
def floor_divide(input: float, other: Value) -> Value: ...
@overload
def floor_divide(input: float, other: float) -> float: ...

ge: BinaryTest

@overload
def gelu(input: Tensor, approximate: str = "none") -> Tensor:
    """Return x Φ(x), with Φ the normal CDF; `approximate` "tanh" approximates Φ (Hendrycks, Gimpel 2016)."""

@overload
def gelu(input: Value, approximate: str = "none") -> Value: ...
@overload
def gelu(input: float, approximate: str = "none") -> float: ...

gelu_backward: Binary
gelu_tanh: Unary
gelu_tanh_backward: Binary
greater: BinaryTest
greater_equal: BinaryTest
gt: BinaryTest

@overload
def hardtanh(input: Tensor, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Tensor:
    """Clamp `input` to [`min_val`, `max_val`]."""

@overload
def hardtanh(input: Value, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> Value: ...
@overload
def hardtanh(input: float, min_val: float = -1.0, max_val: float = 1.0, inplace: bool = False) -> float: ...

isfinite: UnaryTest
isinf: UnaryTest
isnan: UnaryTest
le: BinaryTest

@overload
def leaky_relu(a: Tensor, /, negative_slope: float = 0.01, inplace: bool = False) -> Tensor:
    r"""The operation $\operatorname{leakyrelu} a$ on floats, Values, and tensors, elementwise."""

@overload
def leaky_relu(a: Value, /, negative_slope: float = 0.01, inplace: bool = False) -> Value: ...
@overload
def leaky_relu(a: float, /, negative_slope: float = 0.01, inplace: bool = False) -> float: ...

lerp: Ternary
less: BinaryTest
less_equal: BinaryTest
log: Unary
log1p: Unary
log2: Unary
logical_and: BinaryTest
logical_not: UnaryTest
logical_or: BinaryTest
logical_xor: BinaryTest

@overload
def logsigmoid(input: Tensor) -> Tensor:
    """Return the logarithm of `sigmoid` without underflow."""

@overload
def logsigmoid(input: Value) -> Value: ...
@overload
def logsigmoid(input: float) -> float: ...

lt: BinaryTest
maximum: Binary
minimum: Binary

@overload
def mish(a: Tensor, /, inplace: bool = False) -> Tensor:
    r"""The operation $a \cdot \tanh \ln\left(1 + e^a\right)$ on floats, Values, and tensors, elementwise."""

@overload
def mish(a: Value, /, inplace: bool = False) -> Value: ...
@overload
def mish(a: float, /, inplace: bool = False) -> float: ...

mul: Binary
multiply: Binary
ne: BinaryTest
neg: Unary
negative: Unary
not_equal: BinaryTest

@overload
def pow(input: Tensor, exponent: Tensor | float) -> Tensor:
    """Return ``input ** exponent``."""

@overload
def pow(input: float, exponent: Tensor) -> Tensor: ...
@overload
def pow(input: Value, exponent: Value | float) -> Value: ...
@overload
def pow(input: float, exponent: Value) -> Value: ...
@overload
def pow(input: float, exponent: float) -> float: ...

reciprocal: Unary

@overload
def relu(a: Tensor, /, inplace: bool = False) -> Tensor:
    r"""The operation $\operatorname{relu} a$ on floats, Values, and tensors, elementwise."""

@overload
def relu(a: Value, /, inplace: bool = False) -> Value: ...
@overload
def relu(a: float, /, inplace: bool = False) -> float: ...
@overload
def relu6(a: Tensor, /, inplace: bool = False) -> Tensor:
    r"""The operation $\operatorname{relu6} a$ on floats, Values, and tensors, elementwise."""

@overload
def relu6(a: Value, /, inplace: bool = False) -> Value: ...
@overload
def relu6(a: float, /, inplace: bool = False) -> float: ...

relu_backward: Binary

@overload
def remainder(input: Tensor, other: Tensor | float) -> Tensor:
    """Return ``input % other``, with the sign of `other`."""

@overload
def remainder(input: float, other: Tensor) -> Tensor: ...
@overload
def remainder(input: Value, other: Value | float) -> Value: ...
@overload
def remainder(input: float, other: Value) -> Value: ...
@overload
def remainder(input: float, other: float) -> float: ...
@overload
def round(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Round to the nearest integer, half to even, or to `decimals` decimal places (before the point if negative)."""

@overload
def round(input: Value, *, decimals: int = 0) -> Value: ...
@overload
def round(input: float, *, decimals: int = 0) -> float: ...

rsqrt: Unary

@overload
def selu(a: Tensor, /, inplace: bool = False) -> Tensor:
    r"""The operation $\operatorname{selu} a$ on floats, Values, and tensors, elementwise."""

@overload
def selu(a: Value, /, inplace: bool = False) -> Value: ...
@overload
def selu(a: float, /, inplace: bool = False) -> float: ...

sigmoid: Unary
sign: Unary

@overload
def silu(a: Tensor, /, inplace: bool = False) -> Tensor:
    r"""The operation $a \cdot \sigma a$ on floats, Values, and tensors, elementwise."""

@overload
def silu(a: Value, /, inplace: bool = False) -> Value: ...
@overload
def silu(a: float, /, inplace: bool = False) -> float: ...

sin: Unary
sinh: Unary

@overload
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """Return ``log(1 + exp(beta * input)) / beta``, a smooth ReLU, or `input` where ``beta * input > threshold``."""

@overload
def softplus(input: Value, beta: float = 1.0, threshold: float = 20.0) -> Value: ...
@overload
def softplus(input: float, beta: float = 1.0, threshold: float = 20.0) -> float: ...

softsign: Unary
sqrt: Unary
square: Unary
step: Step

@overload
def sub(input: Tensor, other: Tensor | float, *, alpha: float = 1) -> Tensor:
    """Return ``input - alpha * other``."""

@overload
def sub(input: float, other: Tensor, *, alpha: float = 1) -> Tensor: ...
@overload
def sub(input: Value, other: Value | float, *, alpha: float = 1) -> Value: ...
@overload
def sub(input: float, other: Value, *, alpha: float = 1) -> Value: ...
@overload
def sub(input: float, other: float, *, alpha: float = 1) -> float: ...
@overload
def subtract(input: Tensor, other: Tensor | float, *, alpha: float = 1) -> Tensor:
    """Return ``input - alpha * other``."""

@overload
def subtract(input: float, other: Tensor, *, alpha: float = 1) -> Tensor: ...
@overload
def subtract(input: Value, other: Value | float, *, alpha: float = 1) -> Value: ...
@overload
def subtract(input: float, other: Value, *, alpha: float = 1) -> Value: ...
@overload
def subtract(input: float, other: float, *, alpha: float = 1) -> float: ...

tan: Unary
tanh: Unary

@overload
def true_divide(input: Tensor, other: Tensor | float, *, rounding_mode: str | None = None) -> Tensor:
    """Return ``input / other``, rounded by `rounding_mode`: None (exact), "trunc" (toward 0) or "floor" (down)."""

@overload
def true_divide(input: float, other: Tensor, *, rounding_mode: str | None = None) -> Tensor: ...
@overload
def true_divide(input: Value, other: Value | float, *, rounding_mode: str | None = None) -> Value: ...
@overload
def true_divide(input: float, other: Value, *, rounding_mode: str | None = None) -> Value: ...
@overload
def true_divide(input: float, other: float, *, rounding_mode: str | None = None) -> float: ...

trunc: Unary
