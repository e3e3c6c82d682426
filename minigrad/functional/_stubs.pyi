# Written by `make stubs` from the declarations: change those.
import builtins
from collections.abc import Iterator, Sequence
from typing import Any, Literal, overload

from minigrad.core.dtypes import DType
from minigrad.core.graph import Node
from minigrad.core.op import Op
from minigrad.core.tensor import Tensor
from minigrad.core.value import Value
from minigrad.functional.return_types import Ends, Extremes, SignedLogarithm, Sorted
from minigrad.random.generator import Generator

class Methods(Node):
    @property
    def T(self) -> Tensor:
        """A view with the dimensions in reverse."""
    def __abs__(self) -> Tensor: ...
    def __add__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __and__(self, other: Tensor | builtins.float, /) -> Tensor:
        """``input & other``, bit by bit, as for bools "and"."""
    def __array__(self, dtype: Any = None, copy: builtins.bool | None = None) -> Any: ...
    __array_ufunc__: None
    def __bool__(self) -> builtins.bool: ...
    def __contains__(self, element: Any) -> builtins.bool: ...
    def __copy__(self) -> Tensor:
        """A leaf that shares these numbers, for ``copy.copy``."""
    def __deepcopy__(self, memo: dict[builtins.int, Any]) -> Tensor:
        """A leaf with numbers, and a gradient, of its own, for ``copy.deepcopy``; views are no views of each other
        then."""
    def __dlpack__(self, **options: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[builtins.int, builtins.int]: ...
    def __eq__(self, other: Tensor | builtins.float, /) -> Tensor: ...  # type: ignore[override]
    def __float__(self) -> builtins.float: ...
    def __floordiv__(self, other: Tensor | builtins.float, /) -> Tensor:
        """``input // other``, rounded down."""
    def __ge__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __getitem__(self, key: Any) -> Tensor:
        """The numbers at `key`: a view by ints, slices, None and `...`; a copy where lists, tensors or bools take
        part."""
    def __gt__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __iadd__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __iand__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __ifloordiv__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __imod__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __imul__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __index__(self) -> builtins.int: ...
    def __int__(self) -> builtins.int: ...
    def __invert__(self) -> Tensor:
        """``~input``, bit by bit: for bools "not", for signed ints ``-input - 1``."""
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
        """The matrix product, over the last two dimensions; those before them are batches, and broadcast."""
    def __mod__(self, other: Tensor | builtins.float, /) -> Tensor:
        """``input % other``, with the sign of `other`."""
    def __mul__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __ne__(self, other: Tensor | builtins.float, /) -> Tensor: ...  # type: ignore[override]
    def __neg__(self) -> Tensor: ...
    def __or__(self, other: Tensor | builtins.float, /) -> Tensor:
        """``input | other``, bit by bit, as for bools "or"."""
    def __pos__(self) -> Tensor:
        """``+input``: itself."""
    def __pow__(self, other: Tensor | builtins.float, /) -> Tensor:
        """``input ** exponent``."""
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
        """Write `value`, a number or a tensor that broadcasts to ``self[key]``, to the places of `key`."""
    def __sub__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __truediv__(self, other: Tensor | builtins.float, /) -> Tensor: ...
    def __xor__(self, other: Tensor | builtins.float, /) -> Tensor:
        """``input ^ other``, bit by bit: for bools, whether they differ."""
    def abs(self) -> Tensor: ...
    def abs_(self) -> Tensor: ...
    def absolute(self) -> Tensor: ...
    def absolute_(self) -> Tensor: ...
    def acos(self) -> Tensor: ...
    def acos_(self) -> Tensor: ...
    def acosh(self) -> Tensor: ...
    def acosh_(self) -> Tensor: ...
    def add(self, other: Tensor | builtins.float, *, alpha: builtins.float = 1) -> Tensor:
        """``input + alpha * other``."""
    def add_(self, b: Tensor | builtins.float, /, *, alpha: builtins.float = 1) -> Tensor: ...
    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """``beta * input + alpha * sum(batch1 @ batch2)``, the sum over the matrices (b, n, k) @ (b, k, m)."""
    def addbmm_(
        self, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1
    ) -> Tensor: ...
    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float = 1) -> Tensor:
        """``input + value * tensor1 / tensor2``, as in the step of Adam."""
    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float = 1) -> Tensor:
        """Add ``value * tensor1 / tensor2`` to these numbers."""
    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float = 1) -> Tensor:
        """``input + value * tensor1 * tensor2``, as in the second moment of Adam."""
    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: builtins.float = 1) -> Tensor:
        """Add ``value * tensor1 * tensor2`` to these numbers."""
    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """beta input + alpha (mat1 @ mat2); `input` broadcasts to the product, and is not read where `beta` is 0."""
    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor: ...
    def addmv(self, mat: Tensor, vec: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """beta input + alpha (mat @ vec), as `addmm`."""
    def addmv_(self, mat: Tensor, vec: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor: ...
    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor:
        """``beta * input + alpha * outer(vec1, vec2)``."""
    def addr_(self, vec1: Tensor, vec2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1) -> Tensor: ...
    def all(self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Whether no number over `dim`, () for none, is 0: bools, or uint8 of uint8."""
    def allclose(
        self,
        other: Tensor,
        rtol: builtins.float = 1e-05,
        atol: builtins.float = 1e-08,
        equal_nan: builtins.bool = False,
    ) -> builtins.bool:
        """Whether `isclose` holds everywhere."""
    def amax(self, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor:
        """The largest number over `dim`, () for all; nan where there is one."""
    def amin(self, dim: builtins.int | Sequence[builtins.int] = (), keepdim: builtins.bool = False) -> Tensor:
        """The smallest number over `dim`, () for all; nan where there is one."""
    def aminmax(self, *, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Ends:
        """`amin` and `amax` along `dim`, or of all numbers."""
    def any(self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Whether any number over `dim`, () for none, is not 0: bools, or uint8 of uint8."""
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
        """Where the largest number first stands along `dim`; without one, in the flattened tensor."""
    def argmin(self, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Where the smallest number first stands along `dim`; without one, in the flattened tensor."""
    def argsort(
        self, dim: builtins.int = -1, descending: builtins.bool = False, *, stable: builtins.bool = False
    ) -> Tensor:
        """The indices of `sort`: where the numbers stood that come first, second, … in order along `dim`."""
    def argwhere(self) -> Tensor:
        """`nonzero`: a row for each number that is not 0."""
    def as_strided(
        self, size: Sequence[builtins.int], stride: Sequence[builtins.int], storage_offset: builtins.int | None = None
    ) -> Tensor:
        """A view of shape `size` into the memory of `input`, in which neighbours along a dimension stand `stride`
        apart."""
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
        """beta input + alpha (batch1 @ batch2), of batches of matrices as `bmm`, and else as `addmm`."""
    def baddbmm_(
        self, batch1: Tensor, batch2: Tensor, *, beta: builtins.float = 1, alpha: builtins.float = 1
    ) -> Tensor: ...
    def bernoulli(self, p: builtins.float | None = None, *, generator: Generator | None = None) -> Tensor:
        """1 with the probability in `input`, else 0, of its shape and type; with `p` in place of all its numbers."""
    def bernoulli_(self, p: Tensor | builtins.float = 0.5, *, generator: Generator | None = None) -> Tensor:
        """Overwrite these numbers by 1 with probability `p`, else 0; a tensor `p` broadcasts."""
    def bfloat16(self) -> Tensor: ...
    def bincount(self, weights: Tensor | None = None, minlength: builtins.int = 0) -> Tensor:
        """How often each int from 0 to the largest stands in `input`, (n,): int64, of at least `minlength` numbers."""
    def bitwise_and(self, other: Any) -> Any:
        """``input & other``, bit by bit, as for bools "and"."""
    def bitwise_and_(self, other: Any) -> Any: ...
    def bitwise_not(self) -> Any:
        """``~input``, bit by bit: for bools "not", for signed ints ``-input - 1``."""
    def bitwise_not_(self) -> Any: ...
    def bitwise_or(self, other: Any) -> Any:
        """``input | other``, bit by bit, as for bools "or"."""
    def bitwise_or_(self, other: Any) -> Any: ...
    def bitwise_xor(self, other: Any) -> Any:
        """``input ^ other``, bit by bit: for bools, whether they differ."""
    def bitwise_xor_(self, other: Any) -> Any: ...
    def bmm(self, mat2: Tensor) -> Tensor:
        """The products of two batches of matrices, (b, n, k) @ (b, k, m), without broadcasting."""
    def bool(self) -> Tensor: ...
    def broadcast_to(self, size: Sequence[builtins.int]) -> Tensor:
        """A view in which dimensions of size 1 are repeated to `size`; -1 keeps one, and new ones come at the left."""
    def byte(self) -> Tensor: ...
    def ceil(self) -> Tensor: ...
    def ceil_(self) -> Tensor: ...
    def cholesky(self, upper: builtins.bool = False) -> Tensor:
        """The lower triangular L of ``A = L @ L.mT``, or with `upper` its transpose; of A only that half is read."""
    def cholesky_inverse(self, upper: builtins.bool = False) -> Tensor:
        """The inverse of ``L @ L.mT``, where L is `input`, or with `upper` its transpose."""
    def cholesky_solve(self, input2: Tensor, upper: builtins.bool = False) -> Tensor:
        """X of ``L @ L.mT @ X = input``, (…, n, k), where L is `input2`, or with `upper` its transpose."""
    def chunk(self, chunks: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """At most `chunks` views of parts along `dim`, of one size, the last perhaps smaller; see `split`."""
    def clamp(self, min: Tensor | builtins.float | None = None, max: Tensor | builtins.float | None = None) -> Tensor:
        """`input` brought into `min` … `max`, numbers or tensors; None leaves that end open, and nan stays nan."""
    def clamp_(self, min: Any = None, max: Any = None) -> Tensor:
        """Overwrite these numbers with `clamp` of them, and return them."""
    def clamp_max(self, max: Tensor | builtins.float) -> Tensor:
        """`clamp` from above alone."""
    def clamp_max_(self, max: Any) -> Any: ...
    def clamp_min(self, min: Tensor | builtins.float) -> Tensor:
        """`clamp` from below alone."""
    def clamp_min_(self, min: Any) -> Any: ...
    def clip(self, min: Tensor | builtins.float | None = None, max: Tensor | builtins.float | None = None) -> Tensor:
        """`input` brought into `min` … `max`, numbers or tensors; None leaves that end open, and nan stays nan."""
    def clip_(self, min: Any = None, max: Any = None) -> Tensor:
        """Overwrite these numbers with `clamp` of them, and return them."""
    def contiguous(self) -> Tensor:
        """The tensor itself if its numbers stand in memory in order, else a copy of which that is true."""
    def corrcoef(self) -> Tensor:
        """The correlations of variables, a row each: `cov` by the roots of both variances, brought into -1 … 1."""
    def cos(self) -> Tensor: ...
    def cos_(self) -> Tensor: ...
    def cosh(self) -> Tensor: ...
    def cosh_(self) -> Tensor: ...
    def count_nonzero(self, dim: builtins.int | tuple[builtins.int, ...] | None = None) -> Tensor:
        """How many numbers over `dim`, None for all, are not 0."""
    def cov(
        self, *, correction: builtins.int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None
    ) -> Tensor:
        """The covariances of variables, a row each, over their observations, the columns: ``X Xᵀ / (n -
        correction)``."""
    def cpu(self) -> Tensor:
        """These numbers in the memory of the processor, on the device "cpu", or "numpy" where they are there."""
    def cross(self, other: Tensor, dim: builtins.int | None = None) -> Tensor:
        """The vector that stands upright on two, as long as their parallelogram is large, along `dim` of size 3."""
    def cuda(self, device: Any = None) -> Tensor:
        """These numbers on the device "cuda"."""
    def cumprod(self, dim: builtins.int, *, dtype: DType | None = None) -> Tensor:
        """The running products along `dim`, of the shape of `input`, in types as `sum`."""
    def cumprod_(self, dim: builtins.int, *, dtype: DType | None = None) -> Tensor: ...
    def cumsum(self, dim: builtins.int, *, dtype: DType | None = None) -> Tensor:
        """The running sums along `dim`, of the shape of `input`, in types as `sum`."""
    def cumsum_(self, dim: builtins.int, *, dtype: DType | None = None) -> Tensor: ...
    @property
    def data(self) -> Tensor:
        """The same values without a place in the graph, as `detach`."""
    @data.setter
    def data(self, new: Any) -> None: ...
    def deg2rad(self) -> Tensor:
        """Degrees as radians."""
    def deg2rad_(self) -> Tensor: ...
    def det(self) -> Tensor:
        """The determinants, (…)."""
    def diag(self, diagonal: builtins.int = 0) -> Tensor:
        """Of a line, the matrix with it on the diagonal, `diagonal` above the main one; of a matrix, that diagonal,
        copied."""
    def diag_embed(self, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1) -> Tensor:
        """Square matrices, in dimensions `dim1` and `dim2` of the result, with the last dimension on their diagonal."""
    def diagflat(self, offset: builtins.int = 0) -> Tensor:
        """A matrix with all numbers of `input` along its diagonal, or `offset` above it."""
    def diagonal(self, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1) -> Tensor:
        """A view of the diagonals of dimensions `dim1` and `dim2`, as a last dimension: `offset` above the main one."""
    def diagonal_scatter(
        self, src: Tensor, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1
    ) -> Tensor:
        """A copy with `src` in place of the `diagonal`."""
    def diff(
        self, n: builtins.int = 1, dim: builtins.int = -1, prepend: Tensor | None = None, append: Tensor | None = None
    ) -> Tensor:
        """Return each element less the one before it along `dim`, `n` times over; of bools, whether the two differ."""
    def dim(self) -> builtins.int:
        """The number of dimensions."""
    def dist(self, other: Tensor, p: builtins.float = 2) -> Tensor:
        """The `p`-norm of all numbers of ``input - other``."""
    def div(self, other: Tensor | builtins.float, *, rounding_mode: str | None = None) -> Tensor:
        """``input / other``, and its `rounding_mode`: None, "trunc" towards 0 or "floor" down."""
    def div_(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """Overwrite these numbers with `div` of them, and return them."""
    def divide(self, other: Tensor | builtins.float, *, rounding_mode: str | None = None) -> Tensor:
        """``input / other``, and its `rounding_mode`: None, "trunc" towards 0 or "floor" down."""
    def divide_(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """Overwrite these numbers with `div` of them, and return them."""
    def dot(self, tensor: Tensor) -> Tensor:
        """The dot product of two vectors of one length, a number."""
    def double(self) -> Tensor: ...
    def dsplit(self, indices_or_sections: builtins.int | Sequence[builtins.int]) -> tuple[Tensor, ...]:
        """`tensor_split` along the third dimension."""
    def element_size(self) -> builtins.int:
        """The bytes of one number."""
    def eq(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def equal(self, other: Tensor) -> builtins.bool:
        """Whether two tensors have the same shape and the same numbers."""
    def erf(self) -> Tensor: ...
    def erf_(self) -> Tensor: ...
    def exp(self) -> Tensor: ...
    def exp2(self) -> Tensor:
        """2 to the power `input`."""
    def exp2_(self) -> Tensor: ...
    def exp_(self) -> Tensor: ...
    def expand(self, *size: Any) -> Tensor:
        """A view in which dimensions of size 1 are repeated to `size`; -1 keeps one, and new ones come at the left."""
    def expand_as(self, other: Tensor) -> Tensor:
        """`expand` to the shape of `other`."""
    def expm1(self) -> Tensor: ...
    def expm1_(self) -> Tensor: ...
    def exponential_(self, lambd: builtins.float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Overwrite these numbers by ones drawn from the exponential distribution of rate `lambd`, of mean 1 /
        `lambd`."""
    def fill_(self, value: Tensor | builtins.float) -> Tensor:
        """Overwrite each number with `value`."""
    def fill_diagonal_(self, fill_value: builtins.float) -> Tensor:
        """Overwrite the numbers whose places are equal in all dimensions."""
    def fix(self) -> Tensor:
        """`trunc` by its other name."""
    def fix_(self) -> Tensor: ...
    def flatten(self, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor:
        """`reshape` with the dimensions from `start_dim` to `end_dim` in one."""
    def flip(self, *given: Any, dims: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        """A copy in reverse along `dims`."""
    def fliplr(self) -> Tensor:
        """`flip` along dimension 1."""
    def flipud(self) -> Tensor:
        """`flip` along dimension 0."""
    def float(self) -> Tensor: ...
    def float_power(self, exponent: Any) -> Tensor:
        """``input ** exponent`` in float64, whatever the types were."""
    def float_power_(self, exponent: Any) -> Tensor: ...
    def floor(self) -> Tensor: ...
    def floor_(self) -> Tensor: ...
    def floor_divide(self, other: Tensor | builtins.float) -> Tensor:
        """``input // other``, rounded down."""
    def floor_divide_(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def fmax(self, other: Any) -> Tensor:
        """`maximum`, in which a nan gives way to a number; where two tie, the first gets the gradient, as in
        PyTorch."""
    def fmin(self, other: Any) -> Tensor:
        """`minimum`, in which a nan gives way to a number; where two tie, the first gets the gradient, as in
        PyTorch."""
    def fmod(self, other: Any) -> Tensor:
        """What is left of ``input / other``, with the sign of `input`, as C's fmod; `remainder` has that of `other`."""
    def fmod_(self, other: Any) -> Tensor: ...
    def frac(self) -> Tensor:
        """What is behind the point, with the sign of `input`; its slope is 1."""
    def frac_(self) -> Tensor: ...
    def gather(self, dim: builtins.int, index: Tensor, *, sparse_grad: builtins.bool = False) -> Tensor:
        """Of each line along `dim` the numbers that `index` says: ``out[i][j] = input[index[i][j]][j]`` where `dim` is
        0."""
    def ge(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def ger(self, vec2: Tensor) -> Tensor:
        """`outer` by its other name."""
    def greater(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def greater_equal(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def gt(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def half(self) -> Tensor: ...
    def heaviside(self, values: Any) -> Tensor:
        """0 where `input` is below 0, 1 where it is above, and `values` where it is 0; nan stays nan."""
    def heaviside_(self, values: Any) -> Tensor: ...
    def hsplit(self, indices_or_sections: builtins.int | Sequence[builtins.int]) -> tuple[Tensor, ...]:
        """`tensor_split` along the columns; of one dimension along that."""
    def hypot(self, other: Any) -> Tensor:
        """``sqrt(input**2 + other**2)``, also where the squares are too large or too small; inf if either is
        infinite."""
    def hypot_(self, other: Any) -> Tensor: ...
    def index_add(self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: builtins.float = 1) -> Tensor:
        """A copy with the slices of `source`, times `alpha`, added to those of `input` at `index`, a vector, along
        `dim`."""
    def index_add_(self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: builtins.float = 1) -> Tensor: ...
    def index_copy(self, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor:
        """A copy with the slices of `source` in place of those of `input` at `index`; takes and raises as
        `index_add`."""
    def index_copy_(self, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor: ...
    def index_fill(self, dim: builtins.int, index: Tensor, value: Any) -> Tensor:
        """A copy with `value`, a number or a tensor without dimensions, in the slices at `index`, a vector, along
        `dim`."""
    def index_fill_(self, dim: builtins.int, index: Tensor, value: Any) -> Tensor: ...
    def index_put(self, indices: Sequence[Any], values: Any, accumulate: builtins.bool = False) -> Tensor:
        """A copy with `values` at ``input[indices]``; with `accumulate` added there, as often as a place is named."""
    def index_put_(self, indices: Sequence[Any], values: Any, accumulate: builtins.bool = False) -> Tensor:
        """Write `values` at ``self[indices]``; with `accumulate` add them there, as often as a place is named."""
    def index_select(self, dim: builtins.int, index: Tensor) -> Tensor:
        """The slices of `input` at `index`, a vector of ints, along `dim`, as ``input[:, index]`` where `dim` is 1."""
    def inner(self, other: Tensor) -> Tensor:
        """The sum over products along the last dimensions, of one size; of numbers, their product."""
    def int(self) -> Tensor: ...
    def inverse(self) -> Tensor:
        """The matrices whose product with those of `input` is 1 on the diagonal, 0 elsewhere."""
    def is_contiguous(self) -> builtins.bool:
        """Whether the numbers stand in memory in order, the last dimension's side by side."""
    @property
    def is_cuda(self) -> builtins.bool:
        """Whether these numbers are in the memory of a CUDA device."""
    def is_floating_point(self) -> builtins.bool:
        """Whether its numbers are floats."""
    def is_nonzero(self) -> builtins.bool:
        """Whether the one number in `input` is not 0."""
    def is_same_size(self, other: Tensor) -> builtins.bool:
        """Whether two tensors have one shape."""
    def isclose(
        self,
        other: Tensor,
        rtol: builtins.float = 1e-05,
        atol: builtins.float = 1e-08,
        equal_nan: builtins.bool = False,
    ) -> Tensor:
        """Where ``|input - other| <= atol + rtol * |other|``; equal infinities are close, and with `equal_nan` two
        nans."""
    def isfinite(self) -> Tensor: ...
    def isinf(self) -> Tensor: ...
    def isnan(self) -> Tensor: ...
    def isneginf(self) -> Tensor:
        """Where a number is -inf."""
    def isposinf(self) -> Tensor:
        """Where a number is inf."""
    def item(self) -> builtins.float | builtins.int:
        """The one number as Python's."""
    @property
    def itemsize(self) -> builtins.int:
        """The bytes of one number."""
    def kron(self, other: Tensor) -> Tensor:
        """Kronecker's product: each number of `input` times all of `other`, in its place."""
    def kthvalue(self, k: builtins.int, dim: builtins.int = -1, keepdim: builtins.bool = False) -> Sorted:
        """The `k`-th smallest number along `dim`, from 1 on, and where it stood."""
    def le(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def lerp(self, b: Tensor | builtins.float, c: Tensor | builtins.float, /) -> Tensor: ...
    def lerp_(self, b: Tensor | builtins.float, c: Tensor | builtins.float, /) -> Tensor: ...
    def less(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def less_equal(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def log(self) -> Tensor: ...
    def log10(self) -> Tensor:
        """The logarithm to base 10, as ln x / ln 10: its last digit is rounded twice."""
    def log10_(self) -> Tensor: ...
    def log1p(self) -> Tensor: ...
    def log1p_(self) -> Tensor: ...
    def log2(self) -> Tensor: ...
    def log2_(self) -> Tensor: ...
    def log_(self) -> Tensor: ...
    def log_softmax(self, dim: builtins.int | None = None, dtype: DType | None = None) -> Tensor:
        """``log(softmax(input))`` along `dim`, also where the softmax is too small for a float."""
    def logaddexp(self, other: Any) -> Tensor:
        """``log(exp(input) + exp(other))`` without overflow."""
    def logaddexp2(self, other: Any) -> Tensor:
        """``log2(2**input + 2**other)`` without overflow."""
    def logdet(self) -> Tensor:
        """The logarithm of each determinant: nan of one below 0, -inf of 0."""
    def logical_and(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def logical_not(self) -> Tensor: ...
    def logical_or(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def logical_xor(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def logit(self, eps: builtins.float | None = None) -> Tensor:
        """``log(x / (1 - x))``, from which `sigmoid` comes back; with `eps`, of x brought into eps … 1 - eps."""
    def logit_(self, eps: builtins.float | None = None) -> Tensor: ...
    def logsumexp(self, dim: builtins.int | Sequence[builtins.int] | None, keepdim: builtins.bool = False) -> Tensor:
        """``log(sum(exp(input)))`` over `dim`, without overflow; ints become the default float."""
    def long(self) -> Tensor: ...
    def lt(self, b: Tensor | builtins.float, /) -> Tensor: ...
    @property
    def mT(self) -> Tensor:
        """A view with the last two dimensions exchanged: each matrix transposed."""
    def masked_fill(self, mask: Tensor, value: Any) -> Tensor:
        """A copy with `value`, a number or a tensor without dimensions, where `mask`, of bools, is True."""
    def masked_fill_(self, mask: Tensor, value: Any) -> Tensor: ...
    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """A copy with the numbers of `source`, one after the other, where `mask`, of bools, is True."""
    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Tensor: ...
    def masked_select(self, mask: Tensor) -> Tensor:
        """The numbers of `input` where `mask`, of bools, is True, in a line."""
    def matmul(self, other: Tensor) -> Tensor:
        """The matrix product, over the last two dimensions; those before them are batches, and broadcast."""
    @overload
    def max(self, dim: Tensor | None = None, keepdim: builtins.bool = False) -> Tensor:
        """The largest number of all, as `amax`; over one `dim`, an `Extremes`, whose index gets the gradient: the
        first."""
    @overload
    def max(self, dim: builtins.int, keepdim: builtins.bool = False) -> Extremes: ...
    def maximum(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def maximum_(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def mean(
        self,
        dim: builtins.int | Sequence[builtins.int] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DType | None = None,
    ) -> Tensor:
        """The mean over `dim`; nan where there is nothing."""
    @overload
    def median(self, dim: None = None) -> Tensor:
        """The middle number of all, of two the smaller; along `dim`, a `Sorted`, with where it stood."""
    @overload
    def median(self, dim: builtins.int, keepdim: builtins.bool = False) -> Sorted: ...
    @overload
    def min(self, dim: Tensor | None = None, keepdim: builtins.bool = False) -> Tensor:
        """The smallest number of all, as `amin`; over one `dim`, an `Extremes` with its first index."""
    @overload
    def min(self, dim: builtins.int, keepdim: builtins.bool = False) -> Extremes: ...
    def minimum(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def minimum_(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def mm(self, mat2: Tensor) -> Tensor:
        """The product of two matrices, (n, k) @ (k, m), without broadcasting."""
    def moveaxis(
        self, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int]
    ) -> Tensor:
        """`movedim`."""
    def movedim(
        self, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int]
    ) -> Tensor:
        """A view in which the dimensions `source` are those numbered `destination`; the others keep their order."""
    def msort(self) -> Tensor:
        """The numbers in order along the first dimension."""
    def mul(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def mul_(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def multinomial(
        self, num_samples: Any, replacement: builtins.bool = False, *, generator: Generator | None = None
    ) -> Tensor:
        """Indices drawn with probabilities in proportion to `input`, (n,) or rows (m, n): (num_samples,) or (m,
        ditto)."""
    def multiply(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def multiply_(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def mv(self, vec: Tensor) -> Tensor:
        """The product of a matrix and a vector, (n, k) @ (k,)."""
    def nan_to_num(
        self, nan: builtins.float = 0.0, posinf: builtins.float | None = None, neginf: builtins.float | None = None
    ) -> Tensor:
        """`input` with `nan` for nans, `posinf` and `neginf` for infinities, by default the extremes of its type."""
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
        """The mean of what is not nan, in a floating-point `dtype`; nan where nothing is."""
    @overload
    def nanmedian(self, dim: None = None) -> Tensor:
        """`median` of those numbers that are not nan; nan where there are none."""
    @overload
    def nanmedian(self, dim: builtins.int, keepdim: builtins.bool = False) -> Sorted: ...
    def nanquantile(
        self, q: Any, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = "linear"
    ) -> Tensor:
        """`quantile` of those numbers that are not nan; nan where there are none."""
    def nansum(
        self,
        dim: builtins.int | Sequence[builtins.int] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DType | None = None,
    ) -> Tensor:
        """`sum`, in which nan counts as 0."""
    def narrow(self, dim: builtins.int, start: builtins.int | Tensor, length: builtins.int) -> Tensor:
        """A view of `length` places along `dim`, from `start` on, which may count from the end."""
    @property
    def nbytes(self) -> builtins.int:
        """The bytes of its numbers, those that other dimensions share counted each time."""
    def ndimension(self) -> builtins.int:
        """The number of dimensions."""
    def ne(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def neg(self) -> Tensor: ...
    def neg_(self) -> Tensor: ...
    def negative(self) -> Tensor: ...
    def negative_(self) -> Tensor: ...
    def nelement(self) -> builtins.int:
        """How many numbers there are."""
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
        """The places of the n numbers that are not 0: (n, dimensions), int64; `as_tuple`, a vector for each
        dimension."""
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
        """The vector norm over `dim`: ``sum(abs(input) ** p) ** (1 / p)``; "fro" is p = 2, inf and -inf the
        extremes."""
    def normal_(
        self, mean: builtins.float = 0.0, std: builtins.float = 1.0, *, generator: Generator | None = None
    ) -> Tensor:
        """Overwrite these numbers by ones drawn from the normal distribution of `mean` and standard deviation `std`."""
    def not_equal(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def numel(self) -> builtins.int:
        """How many numbers there are."""
    def numpy(self, *, force: builtins.bool = False) -> Any:
        """The numbers as a NumPy array that shares their memory."""
    def outer(self, vec2: Tensor) -> Tensor:
        """The products of each number of one vector with each of another: (n,) and (m,) give (n, m)."""
    def permute(self, *given: Any, dims: Sequence[builtins.int] | None = None) -> Tensor:
        """A view with the dimensions in the order of `dims`."""
    def positive(self) -> Tensor:
        """``+input``: itself."""
    def pow(self, exponent: Tensor | builtins.float) -> Tensor:
        """``input ** exponent``."""
    def pow_(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def prelu(self, weight: Tensor) -> Tensor:
        """`leaky_relu` with a learned slope: `weight` has one number, or one a channel, dimension 1 of `input`."""
    def prod(
        self, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, dtype: DType | None = None
    ) -> Tensor:
        """The product over one `dim`, or of all numbers, in types as `sum`."""
    def quantile(
        self, q: Any, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = "linear"
    ) -> Tensor:
        """The number that a share `q`, from 0 to 1, of all numbers is below, or of those along `dim`; nan if one is
        nan."""
    def rad2deg(self) -> Tensor:
        """Radians as degrees."""
    def rad2deg_(self) -> Tensor: ...
    def random_(
        self, from_: builtins.int = 0, to: builtins.int | None = None, *, generator: Generator | None = None
    ) -> Tensor:
        """Overwrite these numbers by whole ones drawn evenly from `from_` up to `to`: also ``random_(to)``."""
    def ravel(self) -> Tensor:
        """`reshape` to one dimension."""
    def reciprocal(self) -> Tensor: ...
    def reciprocal_(self) -> Tensor: ...
    def relu(self) -> Tensor: ...
    def relu_(self) -> Tensor: ...
    def remainder(self, other: Tensor | builtins.float) -> Tensor:
        """``input % other``, with the sign of `other`."""
    def remainder_(self, b: Tensor | builtins.float, /) -> Tensor: ...
    def repeat(self, *repeats: Any) -> Tensor:
        """A copy of the whole, `repeats` times along each dimension; new dimensions come at the left."""
    def repeat_interleave(
        self,
        repeats: builtins.int | Tensor,
        dim: builtins.int | None = None,
        *,
        output_size: builtins.int | None = None,
    ) -> Tensor:
        """Each number along `dim`, by default of the flattened tensor, `repeats` times: one count, or one for each."""
    def reshape(self, *given: Any, shape: Sequence[builtins.int] | None = None) -> Tensor:
        """The numbers, in order, in `shape`, where one -1 is worked out: a view where the strides allow it, else a
        copy."""
    def reshape_as(self, other: Tensor) -> Tensor:
        """`reshape` to the shape of `other`."""
    def roll(
        self, shifts: builtins.int | Sequence[builtins.int], dims: builtins.int | Sequence[builtins.int] | None = None
    ) -> Tensor:
        """A copy moved on by `shifts` along `dims`; what leaves at one end comes in at the other."""
    def rot90(self, k: builtins.int = 1, dims: Sequence[builtins.int] = (0, 1)) -> Tensor:
        """`input` turned `k` times by a right angle, from the first of two `dims` to the second, or raises
        ShapeError."""
    def round(self, *, decimals: builtins.int = 0) -> Tensor:
        """The nearest whole number, of two the even one; with `decimals` so many digits after the point, or before
        it."""
    def round_(self) -> Tensor: ...
    def rsqrt(self) -> Tensor: ...
    def rsqrt_(self) -> Tensor: ...
    def scatter(
        self, dim: builtins.int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
    ) -> Tensor:
        """A copy with numbers of `src`, or one number, at `index` along `dim`: ``out[index[i][j]][j] = src[i][j]``."""
    def scatter_(
        self, dim: builtins.int, index: Tensor, src: Any = None, *, value: Any = None, reduce: str | None = None
    ) -> Tensor: ...
    def scatter_add(self, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor:
        """A copy with the numbers of `src` added at `index` along `dim`: ``out[index[i][j]][j] += src[i][j]``."""
    def scatter_add_(self, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor: ...
    def scatter_reduce(
        self, dim: builtins.int, index: Tensor, src: Tensor, reduce: str, *, include_self: builtins.bool = True
    ) -> Tensor:
        """A copy in which each place has the `reduce` of all numbers of `src` that `index` sends there along `dim`."""
    def scatter_reduce_(
        self, dim: builtins.int, index: Tensor, src: Tensor, reduce: str, *, include_self: builtins.bool = True
    ) -> Tensor: ...
    def select(self, dim: builtins.int, index: builtins.int) -> Tensor:
        """A view of what stands at `index`, from either end, along `dim`, which is gone."""
    def select_scatter(self, src: Tensor, dim: builtins.int, index: builtins.int) -> Tensor:
        """A copy with `src` in place of ``input.select(dim, index)``."""
    def sigmoid(self) -> Tensor: ...
    def sigmoid_(self) -> Tensor: ...
    def sign(self) -> Tensor: ...
    def sign_(self) -> Tensor: ...
    def signbit(self) -> Tensor:
        """Where the sign is a minus, that of -0.0 and of a nan too."""
    def sin(self) -> Tensor: ...
    def sin_(self) -> Tensor: ...
    def sinc(self) -> Tensor:
        """``sin(pi * x) / (pi * x)``, which is 1 at 0, with the derivatives of its power series there."""
    def sinc_(self) -> Tensor: ...
    def sinh(self) -> Tensor: ...
    def sinh_(self) -> Tensor: ...
    @overload
    def size(self, dim: None = None) -> tuple[builtins.int, ...]:
        """The shape, or the size of dimension `dim`."""
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
        """A copy with `src` in place of the numbers from `start` to `end`, every `step`, along `dim`."""
    def slogdet(self) -> SignedLogarithm:
        """The sign of each determinant, -1, 0 or 1, and the logarithm of its amount: no product that could overflow."""
    def softmax(self, dim: builtins.int | None = None, dtype: DType | None = None) -> Tensor:
        """``exp(input) / sum(exp(input))`` along `dim`: positive numbers whose sum along it is 1."""
    def sort(
        self, dim: builtins.int = -1, descending: builtins.bool = False, *, stable: builtins.bool = False
    ) -> Sorted:
        """The numbers in order along `dim`, and where they stood."""
    def split(self, split_size: builtins.int | Sequence[builtins.int], dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """`functional.split`; PyTorch's method calls the sizes `split_size`."""
    def split_with_sizes(self, split_sizes: Sequence[builtins.int], dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """`split` by a list of sizes."""
    def sqrt(self) -> Tensor: ...
    def sqrt_(self) -> Tensor: ...
    def square(self) -> Tensor: ...
    def square_(self) -> Tensor: ...
    def squeeze(self, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        """A view without the dimensions of size 1, all or those in `dim`."""
    def squeeze_(self, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        """Leave dimensions of size 1 out of this tensor, all or those in `dim`."""
    def std(
        self,
        dim: Any = None,
        unbiased: builtins.bool | None = None,
        keepdim: builtins.bool = False,
        *,
        correction: builtins.float | None = None,
    ) -> Tensor:
        """The standard deviation over `dim`, the root of `var`, also where the squares overflow or underflow."""
    def storage_offset(self) -> builtins.int:
        """Which number of its storage is the first of this tensor."""
    @overload
    def stride(self, dim: None = None) -> tuple[builtins.int, ...]:
        """How many numbers apart neighbours stand in memory, along each dimension or `dim`."""
    @overload
    def stride(self, dim: builtins.int) -> builtins.int: ...
    def sub(self, other: Tensor | builtins.float, *, alpha: builtins.float = 1) -> Tensor:
        """``input - alpha * other``."""
    def sub_(self, b: Tensor | builtins.float, /, *, alpha: builtins.float = 1) -> Tensor: ...
    def subtract(self, other: Tensor | builtins.float, *, alpha: builtins.float = 1) -> Tensor:
        """``input - alpha * other``."""
    def subtract_(self, b: Tensor | builtins.float, /, *, alpha: builtins.float = 1) -> Tensor: ...
    def sum(
        self,
        dim: builtins.int | Sequence[builtins.int] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DType | None = None,
    ) -> Tensor:
        """The sum over `dim`, added up as `dtype`: without one floats keep theirs, ints and bools become int64."""
    def swapaxes(self, axis0: builtins.int, axis1: builtins.int) -> Tensor:
        """`transpose`."""
    def swapaxes_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Exchange two dimensions of this tensor."""
    def swapdims(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """`transpose`."""
    def swapdims_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Exchange two dimensions of this tensor."""
    def t(self) -> Tensor:
        """A view of a matrix with rows as columns; of fewer dimensions, as it is."""
    def t_(self) -> Tensor:
        """Exchange the dimensions of this matrix; what has fewer than two stays."""
    def take(self, index: Tensor) -> Tensor:
        """The numbers of `input`, all in one line, at `index`; in the shape of `index`."""
    def take_along_dim(self, indices: Tensor, dim: builtins.int | None = None) -> Tensor:
        """`gather`, with `input` and `indices` broadcast in the other dimensions; without `dim`, from all numbers in
        line."""
    def tan(self) -> Tensor: ...
    def tan_(self) -> Tensor: ...
    def tanh(self) -> Tensor: ...
    def tanh_(self) -> Tensor: ...
    def tensor_split(
        self, indices_or_sections: builtins.int | Sequence[builtins.int] | Tensor, dim: builtins.int = 0
    ) -> tuple[Tensor, ...]:
        """Return views of parts along `dim`: that many, the first perhaps larger by one; or cut before each of the
        indices."""
    def tile(self, *given: Any, dims: Sequence[builtins.int] | None = None) -> Tensor:
        """`repeat`, where `dims` that are left out, at the left, are 1."""
    def to(
        self,
        *what: Any,
        dtype: DType | None = None,
        device: str | None = None,
        copy: builtins.bool = False,
        non_blocking: builtins.bool = False,
    ) -> Tensor:
        """These numbers as a type, on a device, or as another tensor's are; itself if so already, unless `copy`."""
    def tolist(self) -> Any:
        """The numbers as nested lists of Python's; one number where there are no dimensions."""
    def topk(
        self, k: builtins.int, dim: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True
    ) -> Sorted:
        """The `k` largest numbers along `dim`, or smallest, and where they stood; always in order, the most extreme
        first."""
    def trace(self) -> Tensor:
        """The sum of the diagonal of a matrix."""
    def transpose(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """A view with dimensions `dim0` and `dim1` exchanged."""
    def transpose_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Exchange two dimensions of this tensor."""
    def tril(self, diagonal: builtins.int = 0) -> Tensor:
        """A copy of the last two dimensions' matrices with 0 above the diagonal that is `diagonal` above the main
        one."""
    def tril_(self, diagonal: builtins.int = 0) -> Tensor:
        """Overwrite what is above the diagonal with 0."""
    def triu(self, diagonal: builtins.int = 0) -> Tensor:
        """A copy of the last two dimensions' matrices with 0 below the diagonal that is `diagonal` above the main
        one."""
    def triu_(self, diagonal: builtins.int = 0) -> Tensor:
        """Overwrite what is below the diagonal with 0."""
    def true_divide(self, other: Tensor | builtins.float, *, rounding_mode: str | None = None) -> Tensor:
        """``input / other``, and its `rounding_mode`: None, "trunc" towards 0 or "floor" down."""
    def true_divide_(self, other: Any, *, rounding_mode: str | None = None) -> Tensor:
        """Overwrite these numbers with `div` of them, and return them."""
    def trunc(self) -> Tensor: ...
    def trunc_(self) -> Tensor: ...
    def type(self, dtype: Any = None) -> Any:
        """These numbers as `dtype`; without one the name of their type, "minigrad.float32" for example."""
    def type_as(self, other: Tensor) -> Tensor:
        """These numbers in the type of `other`."""
    def unbind(self, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """A view of each place along `dim`, which is gone."""
    def unflatten(self, dim: builtins.int, sizes: Sequence[builtins.int]) -> Tensor:
        """A view in which dimension `dim` is several, of `sizes`, where one -1 is worked out."""
    def unfold(self, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
        """A view of all windows of `size` along `dimension`, one every `step`: they are in a new last dimension."""
    def uniform_(
        self, from_: builtins.float = 0.0, to: builtins.float = 1.0, *, generator: Generator | None = None
    ) -> Tensor:
        """Overwrite these numbers by ones drawn evenly from `from_` up to `to`."""
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
        """Return the elements of `input` in row-major order, or along `dim` its slices, without repeats of the one
        before."""
    def unsqueeze(self, dim: builtins.int) -> Tensor:
        """A view with a new dimension of size 1, number `dim` of the result."""
    def unsqueeze_(self, dim: builtins.int) -> Tensor:
        """Put a new dimension of size 1 at number `dim` of this tensor."""
    def var(
        self,
        dim: Any = None,
        unbiased: builtins.bool | None = None,
        keepdim: builtins.bool = False,
        *,
        correction: builtins.float | None = None,
    ) -> Tensor:
        """The variance over `dim`: squared distances from the mean, over their number less `correction`, by default
        1."""
    def vdot(self, other: Tensor) -> Tensor:
        """`dot`: numbers here are real, so that there is nothing to conjugate."""
    def view(self, *shape: Any) -> Tensor:
        """The numbers, in order, in `shape`, where one -1 is worked out; they share the memory."""
    def view_as(self, other: Tensor) -> Tensor:
        """`view` in the shape of `other`."""
    def vsplit(self, indices_or_sections: builtins.int | Sequence[builtins.int]) -> tuple[Tensor, ...]:
        """`tensor_split` along the rows."""
    def where(self, condition: Tensor, other: Any) -> Tensor:
        """These numbers where `condition` holds, else `other`: see `mg.where`."""
    def xlogy(self, other: Any) -> Tensor:
        """``input * log(other)``, and 0 where `input` is 0, whatever `other` is but nan."""
    def xlogy_(self, other: Any) -> Tensor: ...
    def zero_(self) -> Tensor:
        """Overwrite each number with 0."""
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
