"""Functional derivatives: vector-Jacobian and Jacobian-vector products, Jacobians and Hessians.

The functions take a function of tensors or Values and its inputs, like PyTorch's `torch.autograd.functional`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from minigrad.autograd.gradients import grad
from minigrad.core.errors import DTypeError, ShapeError, describe_type
from minigrad.core.grad_mode import enable_grad
from minigrad.core.graph import Node
from minigrad.core.value import Value

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vjp"]

Function = Callable[..., Any]


@enable_grad
def vjp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False) -> tuple[Any, Any]:
    """Return ``func(*inputs)`` and the vector-Jacobian product vᵀJ, computed by one backward pass.

    `v` has the shapes of the outputs, and may be omitted for a single scalar output. With `create_graph` both results
    are differentiable. Raises ShapeError if the shape of `v` is invalid.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 2.0])
    >>> vjp(lambda x: x * x, x, mg.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    leaves = _leaves(inputs, create_graph)
    outputs = _outputs(func(*leaves))
    products = _gradients(outputs, leaves, _check_v(v, outputs, "vjp"), create_graph)
    return _unwrap_single(_detach_outputs(outputs, create_graph)), _unwrap_single(products, inputs)


@enable_grad
def jvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False) -> tuple[Any, Any]:
    """Return ``func(*inputs)`` and the Jacobian-vector product Jv, the directional derivative along `v`.

    `v` has the shapes of the inputs, and may be omitted for a single scalar input. The product takes two backward
    passes: uᵀJ is linear in u, and its derivative along v is Jv (the "double backwards trick", Townsend 2017).

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 2.0])
    >>> jvp(lambda x: (x * x).sum(), x, mg.tensor([1.0, 10.0]))
    (tensor(5.), tensor(42.))
    """
    leaves = _leaves(inputs, create_graph)
    outputs = _outputs(func(*leaves))
    dummies = [_new_leaf(_zero(output)) for output in outputs]
    vjp_results = _gradients(outputs, leaves, dummies, True)
    products = _gradients(vjp_results, dummies, _check_v(v, leaves, "jvp"), create_graph)
    return _unwrap_single(_detach_outputs(outputs, create_graph)), _unwrap_single(products)


@enable_grad
def hvp(func: Function, inputs: Any, v: Any = None, create_graph: bool = False) -> tuple[Any, Any]:
    """Return ``func(*inputs)``, a scalar, and the Hessian-vector product Hv; `v` has the shapes of the inputs.

    >>> import minigrad as mg
    >>> x = mg.tensor([1.0, 2.0])
    >>> hvp(lambda x: (x * x * x).sum(), x, mg.tensor([1.0, 1.0]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    leaves = _leaves(inputs, create_graph)
    outputs = _outputs(func(*leaves))
    gradients = _gradients(outputs, leaves, [None] * len(outputs), True)
    products = _gradients(gradients, leaves, _check_v(v, leaves, "hvp"), create_graph)
    return _unwrap_single(_detach_outputs(outputs, create_graph)), _unwrap_single(products, inputs)


@enable_grad
def jacobian(func: Function, inputs: Any, create_graph: bool = False) -> Any:
    """Return the Jacobian of `func`, computed by one backward pass per output element.

    For one output and one input, the Jacobian is a tensor of shape (*output, *input). For several inputs it is a tuple
    of tensors, and for several outputs a tuple with one item per output. For Values it contains floats.

    >>> import minigrad as mg
    >>> jacobian(lambda x: x * x, mg.tensor([1.0, 3.0]))
    tensor([[2., 0.],
            [0., 6.]])
    """
    leaves = _leaves(inputs, create_graph)
    returned = func(*leaves)
    rows = []
    for output in _outputs(returned):
        one_hots = [_one_hot(output, k) for k in range(_size(output))]
        gradients = [_gradients([output], leaves, [unit], create_graph) for unit in one_hots]
        rows.append(
            _unwrap_single(
                tuple([_stack_rows(output, x, column) for x, column in _group_by_input(leaves, gradients)]), inputs
            )
        )
    return tuple(rows) if isinstance(returned, tuple | list) else rows[0]


def hessian(func: Function, inputs: Any, create_graph: bool = False) -> Any:
    """Return the Hessian of a function with a scalar output, computed as the Jacobian of its gradient.

    >>> import minigrad as mg
    >>> hessian(lambda x: (x * x * x).sum(), mg.tensor([1.0, 3.0]))
    tensor([[ 6.,  0.],
            [ 0., 18.]])
    """

    def gradient(*leaves: Any) -> Any:
        outputs = _outputs(func(*leaves))
        if len(outputs) != 1 or _size(outputs[0]) != 1:
            raise ShapeError("hessian: the function must return a tensor with one element; see jacobian for more.")
        return _unwrap_single(_gradients(outputs, leaves, [None], True), inputs)

    return jacobian(gradient, inputs, create_graph)


# --- helpers for tensors and Values ---


def _as_tuple(x: Any) -> tuple[Any, ...]:
    return tuple(x) if isinstance(x, tuple | list) else (x,)


def _outputs(returned: Any) -> tuple[Any, ...]:
    outputs = _as_tuple(returned)
    for x in outputs:
        if not isinstance(x, Node):
            raise DTypeError(
                f"autograd: the function returned {x!r:.100}, {describe_type(x)}; expected a tensor or a Value.\n"
                "  Return what was computed from the arguments, several results as a tuple."
            )
    return outputs


def _unwrap_single(results: tuple[Any, ...], original: Any = None) -> Any:
    """Return the first result, or all of them if there are several or if `original` is a tuple or list."""
    return results if len(results) > 1 or isinstance(original, tuple | list) else results[0]


def _new_leaf(x: Any) -> Any:
    return Value(float(x)) if isinstance(x, float | int | Value) else x.detach().clone().requires_grad_()


def _leaves(inputs: Any, create_graph: bool) -> list[Any]:
    """Return new leaves for the inputs. With `create_graph`, inputs that require grad are returned unchanged."""
    return [
        x if create_graph and isinstance(x, Node) and x._edge() is not None else _new_leaf(x) for x in _as_tuple(inputs)
    ]


def _detach_outputs(outputs: tuple[Any, ...], create_graph: bool) -> tuple[Any, ...]:
    return outputs if create_graph else tuple([x.detach() for x in outputs])


def _size(x: Any) -> int:
    return 1 if isinstance(x, Value) else int(x._array.size)


def _zero(x: Any) -> Any:
    return 0.0 if isinstance(x, Value) else x.detach().clone().zero_()


def _one_hot(x: Any, index: int) -> Any:
    if isinstance(x, Value):
        return 1.0
    unit = x.detach().reshape(-1).clone().zero_()
    unit[index] = 1.0
    return unit.reshape(x.shape)


def _check_v(v: Any, references: Sequence[Any], name: str) -> list[Any]:
    weights = list(_as_tuple(v)) if v is not None else [None] * len(references)
    if len(weights) != len(references):
        raise DTypeError(f"{name}: v has {len(weights)} entries, but expected {len(references)}.")
    for weight, x in zip(weights, references, strict=True):
        if weight is None and _size(x) != 1:
            raise ShapeError(f"{name}: v can only be None for a single element, but the shape is {x.shape}.")
        is_supported = isinstance(weight, Node | float | int)
        if weight is not None and not is_supported:
            raise DTypeError(f"{name}: v is {describe_type(weight)}; expected a tensor or a Value.")
        if weight is not None and not isinstance(x, Value) and weight.shape != x.shape:
            raise ShapeError(f"{name}: v has invalid size: should be {x.shape} but got {weight.shape}.")
    return weights


def _gradients(
    outputs: Sequence[Any], inputs: Sequence[Any], weights: Sequence[Any], create_graph: bool
) -> tuple[Any, ...]:
    """Return the gradients of the weighted outputs, with zeros for inputs that the outputs do not depend on."""
    pairs = [(x, w) for x, w in zip(outputs, weights, strict=True) if _requires_grad(x)]
    if not pairs:
        return tuple([_zero(x) for x in inputs])
    roots, seeds = zip(*pairs, strict=True)
    gradients = grad(roots, inputs, seeds, retain_graph=True, create_graph=create_graph, allow_unused=True)
    return tuple([_zero(x) if g is None else g for x, g in zip(inputs, gradients, strict=True)])


def _requires_grad(x: Any) -> bool:
    edge = x._edge() if isinstance(x, Node) else None
    return edge is not None and edge._requires_grad


def _group_by_input(leaves: Sequence[Any], rows: Sequence[tuple[Any, ...]]) -> list[tuple[Any, list[Any]]]:
    return [(x, [row[i] for row in rows]) for i, x in enumerate(leaves)]


def _stack_rows(output: Any, x: Any, rows: list[Any]) -> Any:
    if isinstance(output, Value):
        return rows[0]
    from minigrad.functional import stack

    shape = (*output.shape, *x.shape)
    return stack(rows).reshape(shape) if rows else x.detach().new_zeros(shape)
