# Written by `make stubs` from the declarations: change those.
import builtins
from collections.abc import Iterator, Sequence
from typing import Any, Literal, overload

from minigrad.core.dtypes import DType
from minigrad.core.graph import Node
from minigrad.core.op import Op
from minigrad.core.tensor import Tensor
from minigrad.core.value import Value
from minigrad.functional.return_types import AminmaxResult, SlogdetResult, SortResult, ValuesIndices
from minigrad.random.generator import Generator

class Methods(Node):
    @property
    def T(self) -> Tensor:
        """A view with the dimensions reversed."""
    def __abs__(self) -> Tensor: ...
    def __add__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __and__(self, other: Tensor | builtins.float, /) -> Tensor:
        """Return the bitwise AND, ``input & other``; for bools the logical AND."""
    def __array__(self, dtype: Any = None, copy: builtins.bool | None = None) -> Any: ...
    __array_ufunc__: None
    def __bool__(self) -> builtins.bool: ...
    def __contains__(self, element: Any) -> builtins.bool: ...
    def __copy__(self) -> Tensor:
        """Return a leaf that shares the memory of this tensor, for ``copy.copy``."""
    def __deepcopy__(self, memo: dict[builtins.int, Any]) -> Tensor:
        """Return a leaf with copies of data and gradient, for ``copy.deepcopy``."""
    def __dlpack__(self, **options: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[builtins.int, builtins.int]: ...
    def __eq__(self, other: Tensor | builtins.float, /) -> Tensor: ...  # type: ignore[override]
    def __float__(self) -> builtins.float: ...
    def __floordiv__(self, other: Tensor | builtins.float, /) -> Tensor:
        """Return ``input // other``, rounded down."""
    def __ge__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __getitem__(self, key: Any) -> Tensor:
        """Return the elements at `key`: a view for ints, slices, None and `...`; a copy for lists, tensors and
        bools."""
    def __gt__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __iadd__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __iand__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __ifloordiv__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __imod__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __imul__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __index__(self) -> builtins.int: ...
    def __int__(self) -> builtins.int: ...
    def __invert__(self) -> Tensor:
        """Return the bitwise NOT, ``~input``: ``-input - 1`` for signed ints."""
    def __ior__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __ipow__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __isub__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __itruediv__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __ixor__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __le__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __len__(self) -> builtins.int: ...
    def __lt__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __matmul__(self, other: Tensor) -> Tensor:
        """Return the matrix product over the last two dimensions; the leading batch dimensions are broadcast."""
    def __mod__(self, other: Tensor | builtins.float, /) -> Tensor:
        """Return ``input % other``, with the sign of `other`."""
    def __mul__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __ne__(self, other: Tensor | builtins.float, /) -> Tensor: ...  # type: ignore[override]
    def __neg__(self) -> Tensor: ...
    def __or__(self, other: Tensor | builtins.float, /) -> Tensor:
        """Return the bitwise OR, ``input | other``; for bools the logical OR."""
    def __pos__(self) -> Tensor:
        """Return `input` itself, ``+input``."""
    def __pow__(self, other: Tensor | builtins.float, /) -> Tensor:
        """Return ``input ** exponent``."""
    def __radd__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __rand__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __rfloordiv__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __rmatmul__(self, other: Tensor) -> Tensor: ...
    def __rmod__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __rmul__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __ror__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __rpow__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __rsub__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __rtruediv__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __rxor__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __setitem__(self, key: Any, value: Tensor | builtins.float) -> None:
        """Set the elements at `key` to `value`, a scalar or a tensor that broadcasts to ``self[key]``."""
    def __sub__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __truediv__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __xor__(self, other: Tensor | builtins.float, /) -> Tensor:
        """Return the bitwise XOR, ``input ^ other``; for bools the logical XOR."""
    def abs(self) -> Tensor: ...
    def abs_(self) -> Tensor: ...
    def absolute(self) -> Tensor: ...
    def absolute_(self) -> Tensor: ...
    def acos(self) -> Tensor: ...
    def acos_(self) -> Tensor: ...
    def acosh(self) -> Tensor: ...
    def acosh_(self) -> Tensor: ...
    def add(self, other: Tensor | builtins.float, *, alpha: builtins.float = 1) -> Tensor:
        """Return ``input + alpha * other``."""
    def add_(self, b: Tensor | builtins.float, /, *, alpha: builtins.float = 1) -> Tensor: ...
    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """Return ``beta * input + alpha * sum(batch1 @ batch2)``, summed over the batch: (b, n, k) @ (b, k, m)."""
    def addbmm_(
        self, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1
    ) -> Tensor: ...
    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float = 1) -> Tensor:
        """Return ``input + value * tensor1 / tensor2``, as in the update of Adam."""
    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float = 1) -> Tensor:
        """Add ``value * tensor1 / tensor2`` in place."""
    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float = 1) -> Tensor:
        """Return ``input + value * tensor1 * tensor2``, as in the second moment of Adam."""
    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float = 1) -> Tensor:
        """Add ``value * tensor1 * tensor2`` in place."""
    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """Return ``beta * input + alpha * (mat1 @ mat2)``; `input` is broadcast, and ignored if `beta` is 0."""
    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor: ...
    def addmv(self, mat: Tensor, vec: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """Return ``beta * input + alpha * (mat @ vec)``; see `addmm`."""
    def addmv_(self, mat: Tensor, vec: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor: ...
    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """Return ``beta * input + alpha * outer(vec1, vec2)``."""
    def addr_(self, vec1: Tensor, vec2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor: ...
    def all(self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Test whether all elements over `dim` are nonzero or nan."""
    def allclose(
        self,
        other: Tensor,
        rtol: builtins.float = 1e-05,
        atol: builtins.float = 1e-08,
        equal_nan: builtins.bool = False,
    ) -> builtins.bool:
        """Return whether `isclose` is True for all elements."""
    def amax(self, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor:
        """Return the maximum over `dim`, () meaning all."""
    def amin(self, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor:
        """Return the minimum over `dim`, () meaning all."""
    def aminmax(self, *, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> AminmaxResult:
        """Return `amin` and `amax` along `dim`, or of all elements."""
    def any(self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Test whether any element over `dim` is nonzero or nan."""
    def arccos(self) -> Tensor: ...
    def arccos_(self) -> Tensor: ...
    def arccosh(self) -> Tensor: ...
    def arccosh_(self) -> Tensor: ...
    def arcsin(self) -> Tensor: ...
    def arcsin_(self) -> Tensor: ...
    def arcsinh(self) -> Tensor: ...
    def arcsinh_(self) -> Tensor: ...
    def arctan(self) -> Tensor: ...
    def arctan2(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def arctan2_(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def arctan_(self) -> Tensor: ...
    def arctanh(self) -> Tensor: ...
    def arctanh_(self) -> Tensor: ...
    def argmax(self, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Return the index of the first maximum along `dim`, by default of the flattened tensor."""
    def argmin(self, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Return the index of the first minimum along `dim`, by default of the flattened tensor."""
    def argsort(
        self, dim: builtins.int = -1, descending: builtins.bool = False, *, stable: builtins.bool = False
    ) -> Tensor:
        """Return the indices that sort the tensor along `dim`."""
    def argwhere(self) -> Tensor:
        """Return the indices of the nonzero elements, one per row, like `nonzero`."""
    def as_strided(
        self, size: Sequence[builtins.int], stride: Sequence[builtins.int], storage_offset: builtins.int | None = None
    ) -> Tensor:
        """Return a view into the storage of `input` with shape `size`, the given `stride` and `storage_offset`."""
    def asin(self) -> Tensor: ...
    def asin_(self) -> Tensor: ...
    def asinh(self) -> Tensor: ...
    def asinh_(self) -> Tensor: ...
    def atan(self) -> Tensor: ...
    def atan2(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def atan2_(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def atan_(self) -> Tensor: ...
    def atanh(self) -> Tensor: ...
    def atanh_(self) -> Tensor: ...
    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """Return ``beta * input + alpha * bmm(batch1, batch2)``; see `addmm`."""
    def baddbmm_(
        self, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1
    ) -> Tensor: ...
    def bernoulli(self, p: builtins.float | None = None, *, generator: Generator | None = None) -> Tensor:
        """Return samples, 0 or 1, in the shape and dtype of `input`, which contains the probabilities of 1."""
    def bernoulli_(self, p: Tensor | builtins.float = 0.5, *, generator: Generator | None = None) -> Tensor:
        """Fill in-place with samples that are 1 with probability `p`, which broadcasts, and 0 otherwise."""
    def bfloat16(self) -> Tensor: ...
    def bincount(self, weights: Tensor | None = None, minlength: builtins.int = 0) -> Tensor:
        """Count how often each int from 0 to the maximum occurs in `input`, (n,)."""
    def bitwise_and(self, other: Any) -> Any:
        """Return the bitwise AND, ``input & other``; for bools the logical AND."""
    def bitwise_and_(self, other: Any) -> Any: ...
    def bitwise_not(self) -> Any:
        """Return the bitwise NOT, ``~input``: ``-input - 1`` for signed ints."""
    def bitwise_not_(self) -> Any: ...
    def bitwise_or(self, other: Any) -> Any:
        """Return the bitwise OR, ``input | other``; for bools the logical OR."""
    def bitwise_or_(self, other: Any) -> Any: ...
    def bitwise_xor(self, other: Any) -> Any:
        """Return the bitwise XOR, ``input ^ other``; for bools the logical XOR."""
    def bitwise_xor_(self, other: Any) -> Any: ...
    def bmm(self, mat2: Tensor) -> Tensor:
        """Multiply batches of matrices, (b, n, k) @ (b, k, m), without broadcasting."""
    def bool(self) -> Tensor: ...
    def broadcast_to(self, size: Sequence[builtins.int]) -> Tensor:
        """Broadcast to the shape `size`, as a view; see `expand`."""
    def byte(self) -> Tensor: ...
    def ceil(self) -> Tensor: ...
    def ceil_(self) -> Tensor: ...
    def cholesky(self, upper: builtins.bool = False) -> Tensor:
        """Return the lower triangular L with ``A = L @ L.mT``, or its transpose if `upper`."""
    def cholesky_inverse(self, upper: builtins.bool = False) -> Tensor:
        """Return the inverse of ``L @ L.mT``, where L is `input`, or its transpose if `upper`."""
    def cholesky_solve(self, input2: Tensor, upper: builtins.bool = False) -> Tensor:
        """Solve ``L @ L.mT @ X = input``, (…, n, k), for X, where L is `input2`, or its transpose if `upper`."""
    def chunk(self, chunks: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """Split into at most `chunks` views of equal size along `dim`; the last may be smaller."""
    def clamp(self, min: Tensor | builtins.float | None = None, max: Tensor | builtins.float | None = None) -> Tensor:
        """Clamp `input` to [`min`, `max`], scalars or tensors; None leaves that side unbounded, and nan stays nan."""
    def clamp_(self, min: Any = None, max: Any = None) -> Tensor:
        """Clamp this tensor in place, and return it: see `clamp`."""
    def clamp_max(self, max: Tensor | builtins.float) -> Tensor:
        """Clamp `input` from above: see `clamp`."""
    def clamp_max_(self, max: Any) -> Any: ...
    def clamp_min(self, min: Tensor | builtins.float) -> Tensor:
        """Clamp `input` from below: see `clamp`."""
    def clamp_min_(self, min: Any) -> Any: ...
    def clip(self, min: Tensor | builtins.float | None = None, max: Tensor | builtins.float | None = None) -> Tensor:
        """Clamp `input` to [`min`, `max`], scalars or tensors; None leaves that side unbounded, and nan stays nan."""
    def clip_(self, min: Any = None, max: Any = None) -> Tensor:
        """Clamp this tensor in place, and return it: see `clamp`."""
    def contiguous(self) -> Tensor:
        """Return the tensor itself if it is contiguous in memory, otherwise a contiguous copy."""
    def corrcoef(self) -> Tensor:
        """Return the Pearson correlation coefficients of variables in rows: `cov` normalised and clipped to [-1, 1]."""
    def cos(self) -> Tensor: ...
    def cos_(self) -> Tensor: ...
    def cosh(self) -> Tensor: ...
    def cosh_(self) -> Tensor: ...
    def count_nonzero(self, dim: builtins.int | tuple[builtins.int, ...] | None = None) -> Tensor:
        """Count the nonzero elements along `dim`, or all if None."""
    def cov(
        self, *, correction: builtins.int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
    ) -> Tensor:
        """Estimate the covariance matrix of variables in rows and observations in columns: ``X Xᵀ / (n -
        correction)``."""
    def cpu(self) -> Tensor:
        """Move this tensor to the device "cpu", unless it is on "numpy"."""
    def cross(self, other: Tensor, dim: builtins.int | None = None) -> Tensor:
        """Return the cross product of vectors along `dim`, which has size 3; the operands are broadcast."""
    def cuda(self, device: Any = None) -> Tensor:
        """Move this tensor to the device "cuda"."""
    def cumprod(self, dim: builtins.int, *, dtype: DType | None = None) -> Tensor:
        """Return the cumulative product along `dim`; dtypes are as in `sum`."""
    def cumprod_(self, dim: builtins.int, *, dtype: DType | None = None) -> Tensor: ...
    def cumsum(self, dim: builtins.int, *, dtype: DType | None = None) -> Tensor:
        """Return the cumulative sum along `dim`; dtypes are as in `sum`."""
    def cumsum_(self, dim: builtins.int, *, dtype: DType | None = None) -> Tensor: ...
    @property
    def data(self) -> Tensor:
        """The values of this tensor, detached from the graph."""
    @data.setter
    def data(self, value: Any) -> None: ...
    def deg2rad(self) -> Tensor:
        """Convert degrees to radians."""
    def deg2rad_(self) -> Tensor: ...
    def det(self) -> Tensor:
        """Return the determinants, (…)."""
    def diag(self, diagonal: builtins.int = 0) -> Tensor:
        """Return a matrix with the vector `input` on diagonal `diagonal`, or a copy of that diagonal of a matrix."""
    def diag_embed(self, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1) -> Tensor:
        """Return square matrices, in dimensions `dim1` and `dim2`, with the last dimension of `input` on their
        diagonal."""
    def diagflat(self, offset: builtins.int = 0) -> Tensor:
        """Return a matrix with the flattened `input` on diagonal `offset`."""
    def diagonal(self, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1) -> Tensor:
        """Return a view whose last dimension is the diagonal of `dim1` and `dim2` that is `offset` above the main
        one."""
    def diagonal_scatter(
        self, src: Tensor, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1
    ) -> Tensor:
        """Return a copy with the `diagonal` replaced by `src`."""
    def diff(
        self, n: builtins.int = 1, dim: builtins.int = -1, prepend: Tensor | None = None, append: Tensor | None = None
    ) -> Tensor:
        """Compute the `n`-th difference of consecutive elements along `dim`; for bools, the XOR."""
    def dim(self) -> builtins.int:
        """Return the number of dimensions."""
    def dist(self, other: Tensor, p: builtins.float = 2) -> Tensor:
        """Return the `p`-norm of ``input - other``, over all elements."""
    def div(self, other: Tensor | builtins.float, *, rounding_mode: str | None = None) -> Tensor:
        """Return ``input / other``, rounded by `rounding_mode`: None (exact), "trunc" (toward 0) or "floor" (down)."""
    def div_(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """Divide in place by `other`, and return the tensor: see `div`."""
    def divide(self, other: Tensor | builtins.float, *, rounding_mode: str | None = None) -> Tensor:
        """Return ``input / other``, rounded by `rounding_mode`: None (exact), "trunc" (toward 0) or "floor" (down)."""
    def divide_(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """Divide in place by `other`, and return the tensor: see `div`."""
    def dot(self, tensor: Tensor) -> Tensor:
        """Return the dot product of two vectors of equal length, as a 0-d tensor."""
    def double(self) -> Tensor: ...
    def dsplit(self, indices_or_sections: builtins.int | Sequence[builtins.int]) -> tuple[Tensor, ...]:
        """Split along dimension 2; see `tensor_split`."""
    def element_size(self) -> builtins.int:
        """The size of one element in bytes."""
    def eq(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def equal(self, other: Tensor) -> builtins.bool:
        """Return whether two tensors have the same shape and elements."""
    def erf(self) -> Tensor: ...
    def erf_(self) -> Tensor: ...
    def exp(self) -> Tensor: ...
    def exp2(self) -> Tensor:
        """Return 2 to the power of `input`."""
    def exp2_(self) -> Tensor: ...
    def exp_(self) -> Tensor: ...
    def expand(self, *size: Any) -> Tensor:
        """Return a view with dimensions of size 1 expanded to `size`; -1 keeps a size, and new dimensions are
        prepended."""
    def expand_as(self, other: Tensor) -> Tensor:
        """Expand to the shape of `other`."""
    def expm1(self) -> Tensor: ...
    def expm1_(self) -> Tensor: ...
    def exponential_(self, lambd: builtins.float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Fill in-place with samples from the exponential distribution with rate `lambd` (mean 1 / `lambd`)."""
    def fill_(self, value: Tensor | builtins.float) -> Tensor:
        """Fill this tensor with `value` in place."""
    def fill_diagonal_(self, fill_value: builtins.float) -> Tensor:
        """Fill the main diagonal in place."""
    def fix(self) -> Tensor:
        """Alias of `trunc`."""
    def fix_(self) -> Tensor: ...
    def flatten(self, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor:
        """Flatten the dimensions `start_dim` to `end_dim` into one."""
    def flip(self, *dim_args: Any, dims: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        """Return a copy reversed along `dims`."""
    def fliplr(self) -> Tensor:
        """Flip along dimension 1."""
    def flipud(self) -> Tensor:
        """Flip along dimension 0."""
    def float(self) -> Tensor: ...
    def float_power(self, exponent: Any) -> Tensor:
        """Return ``input ** exponent``, computed in float64."""
    def float_power_(self, exponent: Any) -> Tensor: ...
    def floor(self) -> Tensor: ...
    def floor_(self) -> Tensor: ...
    def floor_divide(self, other: Tensor | builtins.float) -> Tensor:
        """Return ``input // other``, rounded down."""
    def floor_divide_(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def fmax(self, other: Any) -> Tensor:
        """Return the elementwise maximum, ignoring a single nan."""
    def fmin(self, other: Any) -> Tensor:
        """Return the elementwise minimum, ignoring a single nan."""
    def fmod(self, other: Any) -> Tensor:
        """Return the remainder of ``input / other`` with the sign of `input`, as C's fmod; see also `remainder`."""
    def fmod_(self, other: Any) -> Tensor: ...
    def frac(self) -> Tensor:
        """Return the fractional part, with the sign of `input`; the derivative is 1."""
    def frac_(self) -> Tensor: ...
    def gather(self, dim: builtins.int, index: Tensor, *, sparse_grad: builtins.bool = False) -> Tensor:
        """Gather elements along `dim` by `index`: ``out[i][j] = input[index[i][j]][j]`` for `dim` 0."""
    def ge(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def ger(self, vec2: Tensor) -> Tensor:
        """Alias of `outer`."""
    def greater(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def greater_equal(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def gt(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def half(self) -> Tensor: ...
    def heaviside(self, values: Any) -> Tensor:
        """Return 0 where `input` < 0, 1 where `input` > 0, and `values` where it is 0."""
    def heaviside_(self, values: Any) -> Tensor: ...
    def hsplit(self, indices_or_sections: builtins.int | Sequence[builtins.int]) -> tuple[Tensor, ...]:
        """Split along dimension 1, or 0 if `input` is 1-d; see `tensor_split`."""
    def hypot(self, other: Any) -> Tensor:
        """Return ``sqrt(input**2 + other**2)`` without overflow or underflow of the squares; inf if either is
        infinite."""
    def hypot_(self, other: Any) -> Tensor: ...
    def index_add(self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: builtins.float = 1) -> Tensor:
        """Return a copy with `alpha` times the slices of `source` added to those of `input` along `dim` at the 1-d
        `index`."""
    def index_add_(self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: builtins.float = 1) -> Tensor: ...
    def index_copy(self, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor:
        """Return a copy with the slices of `input` at `index` replaced by those of `source`: see `index_add`."""
    def index_copy_(self, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor: ...
    def index_fill(self, dim: builtins.int, index: Tensor, value: Any) -> Tensor:
        """Return a copy with the slices along `dim` at the 1-d `index` filled with `value`, a scalar or 0-d tensor."""
    def index_fill_(self, dim: builtins.int, index: Tensor, value: Any) -> Tensor: ...
    def index_put(self, indices: Sequence[Any], values: Any, accumulate: builtins.bool = False) -> Tensor:
        """Return a copy with ``input[indices]`` set to `values`; if `accumulate`, add them, also at repeated
        indices."""
    def index_put_(self, indices: Sequence[Any], values: Any, accumulate: builtins.bool = False) -> Tensor:
        """Set ``self[indices]`` to `values`; if `accumulate`, add them, also at repeated indices."""
    def index_select(self, dim: builtins.int, index: Tensor) -> Tensor:
        """Return the slices of `input` along `dim` at the 1-d `index`, as ``input[:, index]`` for `dim` 1."""
    def inner(self, other: Tensor) -> Tensor:
        """Sum the products over the last dimensions, which must have equal sizes."""
    def int(self) -> Tensor: ...
    def inverse(self) -> Tensor:
        """Return the inverse of each matrix."""
    def is_contiguous(self) -> builtins.bool:
        """Return whether the tensor is contiguous in memory, in row-major order."""
    @property
    def is_cuda(self) -> builtins.bool:
        """Whether this tensor is on a CUDA device."""
    def is_floating_point(self) -> builtins.bool:
        """Return whether the dtype is floating point."""
    def is_nonzero(self) -> builtins.bool:
        """Return whether the only element of `input` is not 0."""
    def is_same_size(self, other: Tensor) -> builtins.bool:
        """Return whether two tensors have the same shape."""
    def isclose(
        self,
        other: Tensor,
        rtol: builtins.float = 1e-05,
        atol: builtins.float = 1e-08,
        equal_nan: builtins.bool = False,
    ) -> Tensor:
        """Test elementwise whether ``|input - other| <= atol + rtol * |other|``; equal infinities are close."""
    def isfinite(self) -> Tensor: ...
    def isinf(self) -> Tensor: ...
    def isnan(self) -> Tensor: ...
    def isneginf(self) -> Tensor:
        """Test whether each element is -inf."""
    def isposinf(self) -> Tensor:
        """Test whether each element is inf."""
    def item(self) -> builtins.float | builtins.int:
        """Return the only element as a Python scalar."""
    @property
    def itemsize(self) -> builtins.int:
        """The size of one element in bytes."""
    def kron(self, other: Tensor) -> Tensor:
        """Return the Kronecker product: `input` with each element replaced by its product with `other`."""
    def kthvalue(self, k: builtins.int, dim: builtins.int = -1, keepdim: builtins.bool = False) -> SortResult:
        """Return the `k`-th smallest element along `dim`, counting from 1, and its index."""
    def le(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def lerp(self, b: Tensor | builtins.float, c: Tensor | builtins.float, /) -> Tensor: ...
    def lerp_(self, b: Tensor | builtins.float, c: Tensor | builtins.float, /) -> Tensor: ...
    def less(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def less_equal(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def log(self) -> Tensor: ...
    def log10(self) -> Tensor:
        """Return the base 10 logarithm, computed as ln x / ln 10, with two roundings."""
    def log10_(self) -> Tensor: ...
    def log1p(self) -> Tensor: ...
    def log1p_(self) -> Tensor: ...
    def log2(self) -> Tensor: ...
    def log2_(self) -> Tensor: ...
    def log_(self) -> Tensor: ...
    def log_softmax(self, dim: builtins.int | None = None, dtype: DType | None = None) -> Tensor:
        """Return ``log(softmax(input))`` along `dim`, without underflow."""
    def logaddexp(self, other: Any) -> Tensor:
        """Return ``log(exp(input) + exp(other))`` without overflow."""
    def logaddexp2(self, other: Any) -> Tensor:
        """Return ``log2(2**input + 2**other)`` without overflow."""
    def logdet(self) -> Tensor:
        """Return the log of each determinant: nan if it is negative, -inf if 0."""
    def logical_and(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def logical_not(self) -> Tensor: ...
    def logical_or(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def logical_xor(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def logit(self, eps: builtins.float | None = None) -> Tensor:
        """Return ``log(x / (1 - x))``, the inverse of `sigmoid`; `eps` clamps x to [eps, 1 - eps] first."""
    def logit_(self, eps: builtins.float | None = None) -> Tensor: ...
    def logsumexp(self, dim: builtins.int | Sequence[builtins.int] | None, keepdim: builtins.bool = False) -> Tensor:
        """Return ``log(sum(exp(input)))`` over `dim`, without overflow; ints are converted to the default float
        dtype."""
    def long(self) -> Tensor: ...
    def lt(self, b: Tensor | builtins.float, /) -> Tensor: ...
    @property
    def mT(self) -> Tensor:
        """A view with the last two dimensions swapped: each matrix transposed."""
    def masked_fill(self, mask: Tensor, value: Any) -> Tensor:
        """Return a copy with the scalar or 0-d `value` where the bool `mask` is True."""
    def masked_fill_(self, mask: Tensor, value: Any) -> Tensor: ...
    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """Return a copy of `input` with consecutive elements of `source` where the bool `mask` is True."""
    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Tensor: ...
    def masked_select(self, mask: Tensor) -> Tensor:
        """Return the elements of `input` where the bool `mask` is True, as a vector."""
    def matmul(self, other: Tensor) -> Tensor:
        """Return the matrix product over the last two dimensions; the leading batch dimensions are broadcast."""
    @overload
    def max(self, dim: Tensor | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Return the maximum of all elements, like `amax`, or a `ValuesIndices` of values and indices along one
        `dim`."""
    @overload
    def max(self, dim: builtins.int, keepdim: builtins.bool = False) -> ValuesIndices: ...
    def maximum(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def maximum_(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def mean(
        self,
        dim: builtins.int | Sequence[builtins.int] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DType | None = None,
    ) -> Tensor:
        """Return the mean over `dim`, nan if it is empty."""
    @overload
    def median(self, dim: None = None) -> Tensor:
        """Return the median of all elements, or along `dim` a `SortResult` of medians and indices."""
    @overload
    def median(self, dim: builtins.int, keepdim: builtins.bool = False) -> SortResult: ...
    @overload
    def min(self, dim: Tensor | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Return the minimum of all elements, like `amin`, or a `ValuesIndices` along one `dim`; see `max`."""
    @overload
    def min(self, dim: builtins.int, keepdim: builtins.bool = False) -> ValuesIndices: ...
    def minimum(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def minimum_(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def mm(self, mat2: Tensor) -> Tensor:
        """Multiply two matrices, (n, k) @ (k, m), without broadcasting."""
    def moveaxis(
        self, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int]
    ) -> Tensor:
        """Alias of `movedim`."""
    def movedim(
        self, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int]
    ) -> Tensor:
        """Return a view with the dimensions `source` moved to positions `destination`; the others keep their order."""
    def msort(self) -> Tensor:
        """Sort along the first dimension; return the values."""
    def mul(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def mul_(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def multinomial(
        self, num_samples: Any, replacement: builtins.bool = False, *, generator: Generator | None = None
    ) -> Tensor:
        """Return indices sampled with probabilities proportional to `input`."""
    def multiply(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def multiply_(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def mv(self, vec: Tensor) -> Tensor:
        """Multiply a matrix by a vector, (n, k) @ (k,)."""
    def nan_to_num(
        self, nan: builtins.float = 0.0, posinf: builtins.float | None = None, neginf: builtins.float | None = None
    ) -> Tensor:
        """Replace nan by `nan`, and infinities by `posinf` and `neginf`, by default the limits of the dtype."""
    def nan_to_num_(
        self, nan: builtins.float = 0.0, posinf: builtins.float | None = None, neginf: builtins.float | None = None
    ) -> Tensor: ...
    def nanmean(
        self,
        dim: builtins.int | Sequence[builtins.int] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DType | None = None,
    ) -> Tensor:
        """Return the mean over `dim` of elements that are not nan, or nan if there are none."""
    @overload
    def nanmedian(self, dim: None = None) -> Tensor:
        """Return the `median` of the elements that are not nan, or nan if there are none."""
    @overload
    def nanmedian(self, dim: builtins.int, keepdim: builtins.bool = False) -> SortResult: ...
    def nanquantile(
        self, q: Any, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = "linear"
    ) -> Tensor:
        """Return the `quantile` of the elements that are not nan, or nan if there are none."""
    def nansum(
        self,
        dim: builtins.int | Sequence[builtins.int] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DType | None = None,
    ) -> Tensor:
        """Return the sum over `dim`, treating nan as 0."""
    def narrow(self, dim: builtins.int, start: builtins.int | Tensor, length: builtins.int) -> Tensor:
        """Return a view of `length` elements along `dim`, starting at `start`."""
    @property
    def nbytes(self) -> builtins.int:
        """The size of all elements in bytes; elements that share memory, as after `expand`, are counted repeatedly."""
    def ndimension(self) -> builtins.int:
        """Return the number of dimensions."""
    def ne(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def neg(self) -> Tensor: ...
    def neg_(self) -> Tensor: ...
    def negative(self) -> Tensor: ...
    def negative_(self) -> Tensor: ...
    def nelement(self) -> builtins.int:
        """Return the number of elements."""
    def new_empty(
        self, *args: Any, dtype: DType | None = None, device: str | None = None, requires_grad: builtins.bool = False
    ) -> Tensor: ...
    def new_full(
        self, *args: Any, dtype: DType | None = None, device: str | None = None, requires_grad: builtins.bool = False
    ) -> Tensor: ...
    def new_ones(
        self, *args: Any, dtype: DType | None = None, device: str | None = None, requires_grad: builtins.bool = False
    ) -> Tensor: ...
    def new_tensor(
        self, *args: Any, dtype: DType | None = None, device: str | None = None, requires_grad: builtins.bool = False
    ) -> Tensor: ...
    def new_zeros(
        self, *args: Any, dtype: DType | None = None, device: str | None = None, requires_grad: builtins.bool = False
    ) -> Tensor: ...
    @overload
    def nonzero(self, *, as_tuple: Literal[False] = False) -> Tensor:
        """Return the indices of the n nonzero elements, (n, ndim), int64; with `as_tuple` one vector per dimension."""
    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]: ...
    def norm(
        self,
        p: builtins.float | str = "fro",
        dim: builtins.int | Sequence[builtins.int] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DType | None = None,
    ) -> Tensor:
        """Return the vector norm over `dim`: ``sum(abs(input) ** p) ** (1 / p)``, max for inf, min for -inf."""
    def normal_(
        self, mean: builtins.float = 0.0, std: builtins.float = 1.0, *, generator: Generator | None = None
    ) -> Tensor:
        """Fill in-place with samples from the normal distribution with `mean` and standard deviation `std`."""
    def not_equal(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def numel(self) -> builtins.int:
        """Return the number of elements."""
    def numpy(self, *, force: builtins.bool = False) -> Any:
        """Return a NumPy array that shares memory with this tensor."""
    def outer(self, vec2: Tensor) -> Tensor:
        """Return the outer product of two vectors: (n,) and (m,) give (n, m)."""
    def permute(self, *dim_args: Any, dims: Sequence[builtins.int] | None = None) -> Tensor:
        """Return a view with the dimensions permuted to the order `dims`."""
    def positive(self) -> Tensor:
        """Return `input` itself, ``+input``."""
    def pow(self, exponent: Tensor | builtins.float) -> Tensor:
        """Return ``input ** exponent``."""
    def pow_(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def prelu(self, weight: Tensor) -> Tensor:
        """Apply `leaky_relu` with a learned slope: `weight` has one element, or one per channel (dimension 1 of
        `input`)."""
    def prod(
        self, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, dtype: DType | None = None
    ) -> Tensor:
        """Return the product over `dim`, or of all elements; dtypes are as in `sum`."""
    def quantile(
        self, q: Any, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = "linear"
    ) -> Tensor:
        """Return the `q`-th quantiles of all elements or along `dim`; nan propagates."""
    def rad2deg(self) -> Tensor:
        """Convert radians to degrees."""
    def rad2deg_(self) -> Tensor: ...
    def random_(
        self, from_: builtins.int = 0, to: builtins.int | None = None, *, generator: Generator | None = None
    ) -> Tensor:
        """Fill in-place with integers sampled uniformly from [`from_`, `to`)."""
    def ravel(self) -> Tensor:
        """Flatten to one dimension."""
    def reciprocal(self) -> Tensor: ...
    def reciprocal_(self) -> Tensor: ...
    def relu(self) -> Tensor: ...
    def relu_(self) -> Tensor: ...
    def remainder(self, other: Tensor | builtins.float) -> Tensor:
        """Return ``input % other``, with the sign of `other`."""
    def remainder_(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def repeat(self, *repeats: Any) -> Tensor:
        """Repeat the tensor `repeats` times along each dimension; new dimensions are prepended."""
    def repeat_interleave(
        self,
        repeats: builtins.int | Tensor,
        dim: builtins.int | None = None,
        *,
        output_size: builtins.int | None = None,
    ) -> Tensor:
        """Repeat each element `repeats` times along `dim`, by default of the flattened tensor."""
    def reshape(self, *shape_args: Any, shape: Sequence[builtins.int] | None = None) -> Tensor:
        """Return `input` with `shape`, in which one -1 is inferred: a view if the strides allow it, otherwise a
        copy."""
    def reshape_as(self, other: Tensor) -> Tensor:
        """Reshape to the shape of `other`."""
    def roll(
        self, shifts: builtins.int | Sequence[builtins.int], dims: builtins.int | Sequence[builtins.int] | None = None
    ) -> Tensor:
        """Roll the tensor by `shifts` along `dims`; elements shifted past the end wrap around to the start."""
    def rot90(self, k: builtins.int = 1, dims: Sequence[builtins.int] = (0, 1)) -> Tensor:
        """Rotate `k` times by 90 degrees in the plane of two `dims`, from the first towards the second."""
    def round(self, *, decimals: builtins.int = 0) -> Tensor:
        """Round to the nearest integer, half to even, or to `decimals` decimal places (before the point if
        negative)."""
    def round_(self) -> Tensor: ...
    def rsqrt(self) -> Tensor: ...
    def rsqrt_(self) -> Tensor: ...
    def scatter(
        self, dim: builtins.int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
    ) -> Tensor:
        """Return a copy with `src` or `value` written at `index` along `dim`: ``out[index[i][j]][j] = src[i][j]``."""
    def scatter_(
        self, dim: builtins.int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
    ) -> Tensor: ...
    def scatter_add(self, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor:
        """Return a copy with `src` added at `index` along `dim`: ``out[index[i][j]][j] += src[i][j]`` for `dim` 0."""
    def scatter_add_(self, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor: ...
    def scatter_reduce(
        self, dim: builtins.int, index: Tensor, src: Tensor, reduce: str, *, include_self: builtins.bool = True
    ) -> Tensor:
        """Return a copy in which all elements of `src` with the same `index` along `dim` are reduced into that
        position."""
    def scatter_reduce_(
        self, dim: builtins.int, index: Tensor, src: Tensor, reduce: str, *, include_self: builtins.bool = True
    ) -> Tensor: ...
    def select(self, dim: builtins.int, index: builtins.int) -> Tensor:
        """Return a view of slice `index` along `dim`, without that dimension; a negative index counts from the end."""
    def select_scatter(self, src: Tensor, dim: builtins.int, index: builtins.int) -> Tensor:
        """Return a copy with ``input.select(dim, index)`` replaced by `src`."""
    def sigmoid(self) -> Tensor: ...
    def sigmoid_(self) -> Tensor: ...
    def sign(self) -> Tensor: ...
    def sign_(self) -> Tensor: ...
    def signbit(self) -> Tensor:
        """Test whether the sign bit of each element is set, including -0.0 and nan."""
    def sin(self) -> Tensor: ...
    def sin_(self) -> Tensor: ...
    def sinc(self) -> Tensor:
        """Return ``sin(pi * x) / (pi * x)``, and 1 at 0."""
    def sinc_(self) -> Tensor: ...
    def sinh(self) -> Tensor: ...
    def sinh_(self) -> Tensor: ...
    @overload
    def size(self, dim: None = None) -> tuple[builtins.int, ...]:
        """Return the shape, or the size of dimension `dim`."""
    @overload
    def size(self, dim: builtins.int) -> builtins.int: ...
    def slice_scatter(
        self,
        src: Tensor,
        dim: builtins.int = 0,
        start: builtins.int | None = None,
        end: builtins.int | None = None,
        step: builtins.int = 1,
    ) -> Tensor:
        """Return a copy with the slice ``start:end:step`` along `dim` replaced by `src`."""
    def slogdet(self) -> SlogdetResult:
        """Return the sign of each determinant, -1, 0 or 1, and the log of its absolute value, without overflow."""
    def softmax(self, dim: builtins.int | None = None, dtype: DType | None = None) -> Tensor:
        """Return ``exp(input) / sum(exp(input))`` along `dim`, computed in `dtype`: positive values that sum to 1."""
    def sort(
        self, dim: builtins.int = -1, descending: builtins.bool = False, *, stable: builtins.bool = False
    ) -> SortResult:
        """Sort along `dim`; return the values and their indices."""
    def split(self, split_size: builtins.int | Sequence[builtins.int], dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """Split into views along `dim`; see `functional.split`, where `split_size` is named
        `split_size_or_sections`."""
    def split_with_sizes(self, split_sizes: Sequence[builtins.int], dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """Split into views of `split_sizes` along `dim`; see `split`."""
    def sqrt(self) -> Tensor: ...
    def sqrt_(self) -> Tensor: ...
    def square(self) -> Tensor: ...
    def square_(self) -> Tensor: ...
    def squeeze(self, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        """Return a view without the dimensions of size 1; with `dim`, only those in `dim` are removed."""
    def squeeze_(self, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        """Remove all dimensions of size 1, or those in `dim`, in place."""
    def std(
        self,
        dim: Any = None,
        unbiased: builtins.bool | None = None,
        keepdim: builtins.bool = False,
        *,
        correction: builtins.float | None = None,
    ) -> Tensor:
        """Return the standard deviation over `dim`, without overflow or underflow of the squares; see `var`."""
    def storage_offset(self) -> builtins.int:
        """Return the offset of the tensor in its storage, in elements."""
    @overload
    def stride(self, dim: None = None) -> tuple[builtins.int, ...]:
        """Return the strides in elements, or the stride of `dim`."""
    @overload
    def stride(self, dim: builtins.int) -> builtins.int: ...
    def sub(self, other: Tensor | builtins.float, *, alpha: builtins.float = 1) -> Tensor:
        """Return ``input - alpha * other``."""
    def sub_(self, b: Tensor | builtins.float, /, *, alpha: builtins.float = 1) -> Tensor: ...
    def subtract(self, other: Tensor | builtins.float, *, alpha: builtins.float = 1) -> Tensor:
        """Return ``input - alpha * other``."""
    def subtract_(self, b: Tensor | builtins.float, /, *, alpha: builtins.float = 1) -> Tensor: ...
    def sum(
        self,
        dim: builtins.int | Sequence[builtins.int] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DType | None = None,
    ) -> Tensor:
        """Return the sum over `dim`, in `dtype`, which defaults to the input's, or to int64 for ints and bools."""
    def swapaxes(self, axis0: builtins.int, axis1: builtins.int) -> Tensor:
        """Alias of `transpose`."""
    def swapaxes_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Swap two dimensions in place."""
    def swapdims(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Alias of `transpose`."""
    def swapdims_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Swap two dimensions in place."""
    def t(self) -> Tensor:
        """Return a transposed view of a matrix, or a view of a 0-d or 1-d tensor."""
    def t_(self) -> Tensor:
        """Transpose this matrix in place; do nothing for fewer than 2 dimensions."""
    def take(self, index: Tensor) -> Tensor:
        """Return the elements of the flattened `input` at `index`, in the shape of `index`."""
    def take_along_dim(self, indices: Tensor, dim: builtins.int | None = None) -> Tensor:
        """Gather along `dim`, broadcasting `input` and `indices` in the other dimensions; without `dim`, flatten
        `input`."""
    def tan(self) -> Tensor: ...
    def tan_(self) -> Tensor: ...
    def tanh(self) -> Tensor: ...
    def tanh_(self) -> Tensor: ...
    def tensor_split(
        self, indices_or_sections: builtins.int | Sequence[builtins.int] | Tensor, dim: builtins.int = 0
    ) -> tuple[Tensor, ...]:
        """Split into views along `dim`, into a number of parts (an int), or before each index in a sequence."""
    def tile(self, *dim_args: Any, dims: Sequence[builtins.int] | None = None) -> Tensor:
        """Repeat `input` like `repeat`, with `dims` padded with 1 on the left."""
    def to(
        self,
        *args: Any,
        dtype: DType | None = None,
        device: str | None = None,
        copy: builtins.bool = False,
        non_blocking: builtins.bool = False,
    ) -> Tensor:
        """Convert to a dtype, a device, or those of another tensor."""
    def tolist(self) -> Any:
        """Return the elements as nested lists of Python scalars, or one scalar for a 0-d tensor."""
    def topk(
        self, k: builtins.int, dim: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True
    ) -> SortResult:
        """Return the `k` largest (or smallest) elements along `dim` and their indices, always sorted."""
    def trace(self) -> Tensor:
        """Return the sum of the diagonal elements of a matrix."""
    def transpose(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Return a view with dimensions `dim0` and `dim1` swapped."""
    def transpose_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Swap two dimensions in place."""
    def tril(self, diagonal: builtins.int = 0) -> Tensor:
        """Return a copy of the matrices in the last two dimensions with 0 above diagonal `diagonal`."""
    def tril_(self, diagonal: builtins.int = 0) -> Tensor:
        """Set the elements above diagonal `diagonal` to 0 in place."""
    def triu(self, diagonal: builtins.int = 0) -> Tensor:
        """Return a copy of the matrices in the last two dimensions with 0 below diagonal `diagonal`."""
    def triu_(self, diagonal: builtins.int = 0) -> Tensor:
        """Set the elements below diagonal `diagonal` to 0 in place."""
    def true_divide(self, other: Tensor | builtins.float, *, rounding_mode: str | None = None) -> Tensor:
        """Return ``input / other``, rounded by `rounding_mode`: None (exact), "trunc" (toward 0) or "floor" (down)."""
    def true_divide_(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """Divide in place by `other`, and return the tensor: see `div`."""
    def trunc(self) -> Tensor: ...
    def trunc_(self) -> Tensor: ...
    def type(self, dtype: Any = None) -> Any:
        """Convert this tensor to `dtype`."""
    def type_as(self, other: Tensor) -> Tensor:
        """Convert this tensor to the dtype of `other`."""
    def unbind(self, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """Return views of the slices along `dim`, without this dimension."""
    def unflatten(self, dim: builtins.int, sizes: Sequence[builtins.int]) -> Tensor:
        """Return a view with dimension `dim` split into dimensions of `sizes`, in which one -1 is inferred."""
    def unfold(self, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
        """Return a view of all windows of `size` along `dimension`, with stride `step`, in a new last dimension."""
    def uniform_(
        self, from_: builtins.float = 0.0, to: builtins.float = 1.0, *, generator: Generator | None = None
    ) -> Tensor:
        """Fill in-place with samples from the uniform distribution on [`from_`, `to`)."""
    def unique(
        self,
        sorted: builtins.bool = True,
        return_inverse: builtins.bool = False,
        return_counts: builtins.bool = False,
        dim: builtins.int | None = None,
    ) -> Any:
        """Return the distinct elements of `input` in ascending order, or along `dim` its distinct slices."""
    def unique_consecutive(
        self,
        return_inverse: builtins.bool = False,
        return_counts: builtins.bool = False,
        dim: builtins.int | None = None,
    ) -> Any:
        """Return the elements of `input` in row-major order, or its slices along `dim`, without consecutive
        duplicates."""
    def unsqueeze(self, dim: builtins.int) -> Tensor:
        """Return a view with a new dimension of size 1 at position `dim`."""
    def unsqueeze_(self, dim: builtins.int) -> Tensor:
        """Insert a dimension of size 1 at `dim` in place."""
    def var(
        self,
        dim: Any = None,
        unbiased: builtins.bool | None = None,
        keepdim: builtins.bool = False,
        *,
        correction: builtins.float | None = None,
    ) -> Tensor:
        """Return the variance over `dim`: the sum of squared deviations divided by N - `correction`, by default 1."""
    def vdot(self, other: Tensor) -> Tensor:
        """Return the dot product of two vectors, which equals `dot` because all dtypes are real."""
    def view(self, *shape: Any) -> Tensor:
        """Return a view with `shape`, in which one -1 is inferred."""
    def view_as(self, other: Tensor) -> Tensor:
        """Return a view with the shape of `other`."""
    def vsplit(self, indices_or_sections: builtins.int | Sequence[builtins.int]) -> tuple[Tensor, ...]:
        """Split along dimension 0; see `tensor_split`."""
    def where(self, condition: Tensor, other: Any) -> Tensor:
        """Return this tensor where `condition` is True, else `other`: see `mg.where`."""
    def xlogy(self, other: Any) -> Tensor:
        """Return ``input * log(other)``, and 0 where `input` is 0, unless `other` is nan."""
    def xlogy_(self, other: Any) -> Tensor: ...
    def zero_(self) -> Tensor:
        """Fill this tensor with 0 in place."""
    def __hash__(self) -> builtins.int: ...

class Binary(Op):
    @overload
    def __call__(self, a: Tensor, b: Tensor | float, /) -> Tensor: ...
    @overload
    def __call__(self, a: float, b: Tensor, /) -> Tensor: ...
    @overload
    def __call__(self, a: Value, b: Value | float, /) -> Value: ...
    @overload
    def __call__(self, a: float, b: Value, /) -> Value: ...
    @overload
    def __call__(self, a: float, b: float, /) -> float: ...

class BinaryTest(Op):
    @overload
    def __call__(self, a: Tensor, b: Tensor | float, /) -> Tensor: ...
    @overload
    def __call__(self, a: float, b: Tensor, /) -> Tensor: ...
    @overload
    def __call__(self, a: Value, b: Value | float, /) -> bool: ...
    @overload
    def __call__(self, a: float, b: Value, /) -> bool: ...
    @overload
    def __call__(self, a: float, b: float, /) -> bool: ...

class Step(Op):
    @overload
    def __call__(self, a: Tensor, /, alpha: float = 0.0) -> Tensor: ...
    @overload
    def __call__(self, a: Value, /, alpha: float = 0.0) -> Value: ...
    @overload
    def __call__(self, a: float, /, alpha: float = 0.0) -> float: ...

class Ternary(Op):
    @overload
    def __call__(self, a: Tensor, b: Tensor | float, c: Tensor | float, /) -> Tensor: ...
    @overload
    def __call__(self, a: float, b: Tensor, c: Tensor | float, /) -> Tensor: ...
    @overload
    def __call__(self, a: float, b: float, c: Tensor, /) -> Tensor: ...
    @overload
    def __call__(self, a: Value, b: Value | float, c: Value | float, /) -> Value: ...
    @overload
    def __call__(self, a: float, b: Value, c: Value | float, /) -> Value: ...
    @overload
    def __call__(self, a: float, b: float, c: Value, /) -> Value: ...
    @overload
    def __call__(self, a: float, b: float, c: float, /) -> float: ...

class Unary(Op):
    @overload
    def __call__(self, a: Tensor, /) -> Tensor: ...
    @overload
    def __call__(self, a: Value, /) -> Value: ...
    @overload
    def __call__(self, a: float, /) -> float: ...

class UnaryTest(Op):
    @overload
    def __call__(self, a: Tensor, /) -> Tensor: ...
    @overload
    def __call__(self, a: Value, /) -> bool: ...
    @overload
    def __call__(self, a: float, /) -> bool: ...
