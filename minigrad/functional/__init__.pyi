# Written by `make stubs` from the declarations: change those.
from typing import overload

from minigrad._stubs import Binary, BinaryTest, Elu, Hardtanh, LeakyRelu, Step, Ternary, Unary, UnaryTest
from minigrad._tensor import Tensor
from minigrad.functional.attention import log_softmax, scaled_dot_product_attention, softmax, softmin
from minigrad.functional.conv import conv1d, conv2d, conv_transpose1d, conv_transpose2d, fold, unfold
from minigrad.functional.elementwise import allclose, equal, isclose, prelu, where
from minigrad.functional.indexing import (
    argwhere,
    count_nonzero,
    embedding,
    gather,
    index_add,
    index_copy,
    index_fill,
    index_select,
    masked_fill,
    masked_scatter,
    masked_select,
    nonzero,
    one_hot,
    scatter,
    scatter_add,
    take,
    take_along_dim,
)
from minigrad.functional.interop import from_dlpack, is_floating_point, is_tensor, numel
from minigrad.functional.linalg import (
    addmm,
    addmv,
    baddbmm,
    bmm,
    dot,
    einsum,
    inner,
    linear,
    matmul,
    mm,
    mv,
    outer,
    tensordot,
    trace,
    vdot,
)
from minigrad.functional.loss import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    cosine_similarity,
    cross_entropy,
    hinge_embedding_loss,
    hinge_loss,
    huber_loss,
    kl_div,
    l1_loss,
    margin_ranking_loss,
    mse_loss,
    nll_loss,
    pairwise_distance,
    smooth_l1_loss,
)
from minigrad.functional.normalization import (
    batch_norm,
    dropout,
    group_norm,
    instance_norm,
    layer_norm,
    normalize,
    rms_norm,
)
from minigrad.functional.pool import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    adaptive_max_pool1d,
    adaptive_max_pool2d,
    avg_pool1d,
    avg_pool2d,
    interpolate,
    max_pool1d,
    max_pool2d,
    min_pool2d,
)
from minigrad.functional.reduce import (
    Extremes,
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    cumprod,
    cumsum,
    logsumexp,
    max,
    mean,
    min,
    norm,
    prod,
    std,
    sum,
    var,
)
from minigrad.functional.sampling import affine_grid, grid_sample
from minigrad.functional.shape import (
    cat,
    concat,
    diag,
    diag_embed,
    flip,
    fliplr,
    flipud,
    hstack,
    pad,
    repeat_interleave,
    roll,
    stack,
    tile,
    tril,
    triu,
    vstack,
)
from minigrad.functional.sorting import Sorted, argsort, kthvalue, median, msort, sort, topk
from minigrad.functional.views import (
    as_strided,
    broadcast_tensors,
    broadcast_to,
    chunk,
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
    split,
    squeeze,
    swapaxes,
    swapdims,
    t,
    tensor_split,
    transpose,
    unbind,
    unflatten,
    unsqueeze,
)
from minigrad.value import Value

__all__ = [
    "Extremes",
    "Sorted",
    "abs",
    "absolute",
    "acos",
    "acosh",
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "add",
    "addmm",
    "addmv",
    "affine_grid",
    "all",
    "allclose",
    "amax",
    "amin",
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
    "avg_pool1d",
    "avg_pool2d",
    "baddbmm",
    "batch_norm",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "bmm",
    "broadcast_tensors",
    "broadcast_to",
    "cat",
    "ceil",
    "chunk",
    "clamp",
    "clip",
    "concat",
    "conv1d",
    "conv2d",
    "conv_transpose1d",
    "conv_transpose2d",
    "cos",
    "cosh",
    "cosine_similarity",
    "count_nonzero",
    "cross_entropy",
    "cumprod",
    "cumsum",
    "diag",
    "diag_embed",
    "diagonal",
    "div",
    "divide",
    "dot",
    "dropout",
    "einsum",
    "elu",
    "embedding",
    "eq",
    "equal",
    "erf",
    "exp",
    "expm1",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "floor",
    "floor_divide",
    "fold",
    "from_dlpack",
    "gather",
    "ge",
    "gelu",
    "gelu_backward",
    "gelu_tanh",
    "gelu_tanh_backward",
    "greater",
    "greater_equal",
    "grid_sample",
    "group_norm",
    "gt",
    "hardtanh",
    "hinge_embedding_loss",
    "hinge_loss",
    "hstack",
    "huber_loss",
    "index_add",
    "index_copy",
    "index_fill",
    "index_select",
    "inner",
    "instance_norm",
    "interpolate",
    "is_floating_point",
    "is_tensor",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "kl_div",
    "kthvalue",
    "l1_loss",
    "layer_norm",
    "le",
    "leaky_relu",
    "lerp",
    "less",
    "less_equal",
    "linear",
    "log",
    "log1p",
    "log2",
    "log_softmax",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logsigmoid",
    "logsumexp",
    "lt",
    "margin_ranking_loss",
    "masked_fill",
    "masked_scatter",
    "masked_select",
    "matmul",
    "max",
    "max_pool1d",
    "max_pool2d",
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
    "multiply",
    "mv",
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
    "pow",
    "prelu",
    "prod",
    "ravel",
    "reciprocal",
    "relu",
    "relu6",
    "remainder",
    "repeat_interleave",
    "reshape",
    "rms_norm",
    "roll",
    "round",
    "rsqrt",
    "scaled_dot_product_attention",
    "scatter",
    "scatter_add",
    "select",
    "selu",
    "sigmoid",
    "sign",
    "silu",
    "sin",
    "sinh",
    "smooth_l1_loss",
    "softmax",
    "softmin",
    "softplus",
    "softsign",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
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
    "tensor_split",
    "tensordot",
    "tile",
    "topk",
    "trace",
    "transpose",
    "tril",
    "triu",
    "true_divide",
    "trunc",
    "unbind",
    "unflatten",
    "unfold",
    "unsqueeze",
    "var",
    "vdot",
    "vstack",
    "where",
]
abs: Unary
absolute: Unary
acos: Unary
acosh: Unary

@overload
def add(input: Tensor, other: Tensor | float, *, alpha: float = 1) -> Tensor:
    """``input + alpha * other``."""

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
    """`input` brought into `min` … `max`, numbers or tensors; None leaves that end open, and nan stays nan."""

@overload
def clamp(input: Value, min: Value | float | None = None, max: Value | float | None = None) -> Value: ...
@overload
def clamp(input: float, min: float | None = None, max: float | None = None) -> float: ...
@overload
def clip(input: Tensor, min: Tensor | float | None = None, max: Tensor | float | None = None) -> Tensor:
    """`input` brought into `min` … `max`, numbers or tensors; None leaves that end open, and nan stays nan."""

@overload
def clip(input: Value, min: Value | float | None = None, max: Value | float | None = None) -> Value: ...
@overload
def clip(input: float, min: float | None = None, max: float | None = None) -> float: ...

cos: Unary
cosh: Unary

@overload
def div(input: Tensor, other: Tensor | float, *, rounding_mode: str | None = None) -> Tensor:
    """``input / other``, and its `rounding_mode`: None, "trunc" towards 0 or "floor" down."""

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
    """``input / other``, and its `rounding_mode`: None, "trunc" towards 0 or "floor" down."""

@overload
def divide(input: float, other: Tensor, *, rounding_mode: str | None = None) -> Tensor: ...
@overload
def divide(input: Value, other: Value | float, *, rounding_mode: str | None = None) -> Value: ...
@overload
def divide(input: float, other: Value, *, rounding_mode: str | None = None) -> Value: ...
@overload
def divide(input: float, other: float, *, rounding_mode: str | None = None) -> float: ...

elu: Elu
eq: BinaryTest
erf: Unary
exp: Unary
expm1: Unary
floor: Unary

@overload
def floor_divide(input: Tensor, other: Tensor | float) -> Tensor:
    """``input // other``, rounded down."""

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
    """x Φ(x), with Φ the normal distribution; `approximate` "tanh" takes a formula for Φ (Hendrycks, Gimpel 2016)."""

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
hardtanh: Hardtanh
isfinite: UnaryTest
isinf: UnaryTest
isnan: UnaryTest
le: BinaryTest
leaky_relu: LeakyRelu
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
    """The logarithm of `sigmoid`, without underflow."""

@overload
def logsigmoid(input: Value) -> Value: ...
@overload
def logsigmoid(input: float) -> float: ...

lt: BinaryTest
maximum: Binary
minimum: Binary
mish: Unary
mul: Binary
multiply: Binary
ne: BinaryTest
neg: Unary
negative: Unary
not_equal: BinaryTest

@overload
def pow(input: Tensor, exponent: Tensor | float) -> Tensor:
    """``input ** exponent``."""

@overload
def pow(input: float, exponent: Tensor) -> Tensor: ...
@overload
def pow(input: Value, exponent: Value | float) -> Value: ...
@overload
def pow(input: float, exponent: Value) -> Value: ...
@overload
def pow(input: float, exponent: float) -> float: ...

reciprocal: Unary
relu: Unary
relu6: Unary

@overload
def remainder(input: Tensor, other: Tensor | float) -> Tensor:
    """``input % other``, with the sign of `other`."""

@overload
def remainder(input: float, other: Tensor) -> Tensor: ...
@overload
def remainder(input: Value, other: Value | float) -> Value: ...
@overload
def remainder(input: float, other: Value) -> Value: ...
@overload
def remainder(input: float, other: float) -> float: ...

round: Unary
rsqrt: Unary
selu: Unary
sigmoid: Unary
sign: Unary
silu: Unary
sin: Unary
sinh: Unary

@overload
def softplus(input: Tensor, beta: float = 1.0, threshold: float = 20.0) -> Tensor:
    """``log(1 + exp(beta * input)) / beta``, a smooth relu; where beta * input is above `threshold`, the input
    itself."""

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
    """``input - alpha * other``."""

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
    """``input - alpha * other``."""

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
    """``input / other``, and its `rounding_mode`: None, "trunc" towards 0 or "floor" down."""

@overload
def true_divide(input: float, other: Tensor, *, rounding_mode: str | None = None) -> Tensor: ...
@overload
def true_divide(input: Value, other: Value | float, *, rounding_mode: str | None = None) -> Value: ...
@overload
def true_divide(input: float, other: Value, *, rounding_mode: str | None = None) -> Value: ...
@overload
def true_divide(input: float, other: float, *, rounding_mode: str | None = None) -> float: ...

trunc: Unary
