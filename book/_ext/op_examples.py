"""A small graph for each operation: of Values at a point of its domain, or of tensors in a line of code."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

import minigrad as mg
import minigrad.nn.functional as F
from minigrad.core.op import Op
from minigrad.ops.conv import Window
from minigrad.ops.normalization import Norm
from minigrad_viz import draw

__all__ = ["Example", "count_orders", "make_example"]

POINTS = (0.5, 2.0, 1.5, -0.5, -5.5, 3.5)  # for Values: each operand gets the first unused one in its domain
ATTRS = {"clamp": {"min": -1.0, "max": 1.0}}

LEAVES: dict[str, Any] = {
    "x": [[1.0, -2.0, 0.5], [3.0, 0.25, -1.0]],
    "u": [[1.0, 0.5, -1.0], [2.0, -0.5, 0.25]],
    "v": [1.0, 2.0, 0.5],
    "r": [0.5, -1.0],
    "m": [[2.0, 1.0], [0.5, 3.0]],
    "n": [[1.0, -1.0], [0.5, 2.0]],
    "s": [[2.0, 0.5], [0.5, 1.0]],
    "p": [[0.25, 0.5, 0.25], [0.5, 0.125, 0.375]],
    "image": [[[[1.0, 2.0, 0.5], [-1.0, 3.0, 0.25], [0.5, -2.0, 1.5]]]],
    "small": [[[[1.0, -1.0], [0.5, 2.0]]]],
    "rows": [[[0.5, 1.25]]],
    "columns": [[[1.5, 0.25]]],
    "one": 1.0,
}
INDEX_TENSORS: dict[str, Any] = {
    "i": [0, 2],
    "classes": [2, 0],
    "lines": [[0, 2], [1, 1]],
    "places": [[[[1, 3], [4, 8]]]],
}
NAMESPACE = {"mg": mg, "F": F, "ops": mg.ops, "Window": Window, "Norm": Norm}

# A call of each operation that only tensors support; variables in the code are defined above.
WINDOW = "Window((2, 2), (1, 1), ((0, 0), (0, 0)), (1, 1))"
BY_ROW = "Norm((2, 3), (1,), (1,), 1e-5)"
TENSOR_CODE = {
    "sum_to": "y = ops.sum_to(x, shape=(3,))",
    "expand": "y = v.expand(2, 3)",
    "reshape": "y = x.reshape(3, 2)",
    "permute": "y = x.permute(1, 0)",
    "index": "y = x[0, 1:]",
    "index_backward": "y = ops.index_backward(r, shape=(3,), key=(slice(1, 3),))",
    "diagonal": "y = m.diagonal()",
    "diagonal_backward": "y = ops.diagonal_backward(r, shape=(2, 2), offset=0, dim1=0, dim2=1)",
    "unfold": "y = v.unfold(0, 2, 1)",
    "unfold_backward": "y = ops.unfold_backward(m, shape=(3,), dim=0, size=2, step=1)",
    "as_strided": "y = v.as_strided((2, 2), (1, 1))",
    "as_strided_backward": "y = mg.grad(v.as_strided((2, 2), (1, 1)), v, m, create_graph=True)[0]",
    "contiguous": "y = x.T.contiguous()",
    "flip": "y = x.flip(1)",
    "roll": "y = x.roll(1, 1)",
    "tril": "y = mg.tril(m)",
    "triu": "y = mg.triu(m)",
    "cat": "y = mg.cat([v, r])",
    "pad": "y = F.pad(v, (1, 1))",
    "repeat_interleave": "y = v.repeat_interleave(2)",
    "repeat_interleave_backward": "y = ops.repeat_interleave_backward(x, count=3, repeats=1, dim=1)",
    "to": "y = v.to(mg.float64)",
    "copy": "y = v.clone()",
    "overwrite": "y = x * 1.0\ny[0] = v",
    "sum": "y = x.sum(dim=0)",
    "mean": "y = x.mean(dim=0)",
    "var": "y = x.var(dim=1)",
    "std": "y = x.std(dim=1)",
    "logsumexp": "y = x.logsumexp(dim=1)",
    "norm": "y = v.norm()",
    "amax": "y = x.amax(dim=1)",
    "amin": "y = x.amin(dim=1)",
    "max": "y = x.max(dim=1).values",
    "min": "y = x.min(dim=1).values",
    "pick_along": "y = ops.pick_along(x, classes, dim=1, keepdim=False)",
    "put_along": "y = ops.put_along(r, classes, shape=(2, 3), dim=1, keepdim=False)",
    "cumsum": "y = v.cumsum(0)",
    "cumprod": "y = v.cumprod(0)",
    "prod": "y = x.prod(dim=1)",
    "recur": "y = ops.recur(x, u, dim=1, reverse=False)",
    "shift": "y = ops.shift(v, dim=0, by=1, fill=0.0)",
    "layer_norm": "y = F.layer_norm(x, (3,))",
    "group_norm": "y = F.group_norm(image, 1)",
    "batch_norm": "y = F.batch_norm(x, None, None, training=True)",
    "instance_norm": "y = F.instance_norm(image)",
    "rms_norm": "y = F.rms_norm(x, (3,))",
    "norm_backward": "z = F.layer_norm(x, (3,))\ny = mg.grad(z, x, u, create_graph=True)[0]",
    "norm_weight": "z = F.layer_norm(x, (3,), v)\ny = mg.grad(z, v, u, create_graph=True)[0]",
    "dropout": "mg.manual_seed(0)\ny = F.dropout(x, 0.5)",
    "softmax": "y = mg.softmax(v, dim=0)",
    "log_softmax": "y = mg.log_softmax(v, dim=0)",
    "softmax_backward": "y = ops.softmax_backward(u, p, dim=1)",
    "log_softmax_backward": "y = ops.log_softmax_backward(u, x, dim=1)",
    "scaled_dot_product_attention": "y = F.scaled_dot_product_attention(m, n, s)",
    "attention_backward": "z = F.scaled_dot_product_attention(m, n, s)\ny = mg.grad(z, m, n, create_graph=True)[0]",
    "lstm_sequence": (
        "gates, h = mg.stack([m, n]).reshape(2, 1, 4), one.reshape(1, 1)\n"
        "y = ops.lstm_sequence(gates, h, h, s.reshape(4, 1), None, reverse=False)[0]"
    ),
    "gru_sequence": (
        "y = ops.gru_sequence(x.reshape(2, 1, 3), one.reshape(1, 1), v.reshape(3, 1), None, reverse=False)[0]"
    ),
    "rnn_sequence": (
        "y = ops.rnn_sequence(m.reshape(2, 1, 2), r.reshape(1, 2), n, None, activation='tanh', reverse=False)[0]"
    ),
    "conv2d": "y = F.conv2d(image, small)",
    "conv2d_input": f"how = {WINDOW}\ny = ops.conv2d_input(small, small, shape=(1, 1, 3, 3), window=how, groups=1)",
    "conv2d_weight": f"how = {WINDOW}\ny = ops.conv2d_weight(small, image, window=how, groups=1)",
    "im2col": "y = F.unfold(image, 2)",
    "col2im": "z = F.unfold(image, 2)\ny = F.fold(z, (3, 3), 2)",
    "gather": "y = x.gather(1, lines)",
    "scatter_add": "y = x.scatter_add(1, lines, m)",
    "scatter": "y = x.scatter(1, lines, m)",
    "index_select": "y = v.index_select(0, i)",
    "index_add": "y = v.index_add(0, i, r)",
    "index_copy": "y = v.index_copy(0, i, r)",
    "embedding": "y = F.embedding(i, u.T)",
    "matmul": "y = m @ x",
    "linear": "y = F.linear(x, p, r)",
    "contract": "y = mg.einsum('ij,kj->ik', x, u)",
    "solve": "y = mg.linalg.solve(m, x)",
    "inverse": "y = m.inverse()",
    "solve_triangular": "y = mg.linalg.solve_triangular(m, x, upper=True)",
    "slogdet": "y = mg.slogdet(m).logabsdet",
    "det": "y = mg.det(m)",
    "cofactor": "y = ops.cofactor(m)",
    "cholesky": "y = mg.cholesky(s)",
    "thin_svd": "y = mg.linalg.svdvals(m)",
    "cross_entropy": "y = F.cross_entropy(x, classes)",
    "cross_entropy_backward": "y = mg.grad(F.cross_entropy(x, classes), x, one, create_graph=True)[0]",
    "soft_cross_entropy": "y = F.cross_entropy(x, p, reduction='none')",
    "nll_loss": "y = F.nll_loss(x, classes)",
    "kl_div": "y = F.kl_div(x, p, reduction='none')",
    "binary_cross_entropy": "y = F.binary_cross_entropy(p, p.detach(), reduction='none')",
    "bce_with_logits": "y = F.binary_cross_entropy_with_logits(x, p, reduction='none')",
    "hinge_loss": "y = F.hinge_loss(x, u, reduction='none')",
    "mse_loss": "y = F.mse_loss(x, u, reduction='none')",
    "l1_loss": "y = F.l1_loss(x, u, reduction='none')",
    "huber_loss": "y = F.huber_loss(x, u, reduction='none')",
    "max_pool": "y = F.max_pool2d(image, 2, stride=1)",
    "min_pool": "y = F.min_pool2d(image, 2, stride=1)",
    "pick_at": "y = ops.pick_at(image, places, dims=2)",
    "put_at": "y = ops.put_at(small, places, shape=(1, 1, 3, 3), dims=2)",
    "resample": "y = F.avg_pool1d(x, 2, stride=1)",
    "grid_sample": "y = ops.grid_sample(image, rows, columns, nearest=False)",
    "grid_put": "y = ops.grid_put(rows.reshape(1, 1, 1, 2), rows, columns, shape=(1, 1, 3, 3), nearest=False)",
    "sort": "y = x.sort(dim=1).values",
    "topk": "y = v.topk(2).values",
}
REASONS = {
    "move": "it copies between devices, and the book is built on one.",
    "pick": "it selects one of several results, which drawings omit.",
}


class Example(NamedTuple):
    """Code to run, a drawing with its trace, and how often the graph was differentiated."""

    code: str
    html: str
    orders: str


def make_example(op: Op) -> Example | str:
    """Return a small graph that contains `op`, or the reason if there is none."""
    if not op.differentiable:
        return "it has no derivative, so it is not recorded in a graph."
    if op.name in REASONS:
        return REASONS[op.name]
    with use_numpy():
        code, y, leaves = _value_example(op) if op.domain else _tensor_example(op)
        html = draw(y)._repr_mimebundle_()["text/html"]
        if f'"name":"{op.name}"' not in html:
            raise AssertionError(f"the example of {op.name} does not show it: {code}")
        return Example(code, html, count_orders(y, leaves))


@contextmanager
def use_numpy() -> Iterator[None]:
    """Use the device `numpy`, since small graphs need no compiled kernels."""
    previous = mg.get_default_device()
    mg.set_default_device("numpy")
    try:
        yield
    finally:
        mg.set_default_device(previous)


def _value_example(op: Op) -> tuple[str, Any, list[Any]]:
    points: list[float] = []
    for domain in op.domain:
        candidates = [x for x in POINTS if domain.low <= x <= domain.high and x not in domain.kinks]
        points.append(next((x for x in candidates if x not in points), (domain.low + domain.high) / 2))
    leaves = [mg.Value(x, name) for x, name in zip(points, op.inputs, strict=True)]
    attrs = ATTRS.get(op.name, {})
    y = op(*leaves, **attrs)
    y.label = "y"
    arguments = ", ".join([*op.inputs, *(f"{name}={x}" for name, x in attrs.items())])
    lines = [f'{name} = mg.Value({x}, "{name}")' for x, name in zip(points, op.inputs, strict=True)]
    return "\n".join([*lines, f"y = mg.ops.{op.name}({arguments})"]), y, leaves


def _tensor_example(op: Op) -> tuple[str, Any, list[Any]]:
    code = TENSOR_CODE[op.name]
    identifiers = [x.id for x in ast.walk(ast.parse(code)) if isinstance(x, ast.Name)]
    tensors: dict[str, Any] = {}
    lines = []
    for name in dict.fromkeys(identifiers):
        if name in LEAVES or name in INDEX_TENSORS:
            requires_grad = name in LEAVES
            data = LEAVES[name] if requires_grad else INDEX_TENSORS[name]
            tensors[name] = mg.tensor(data, requires_grad=requires_grad)
            tensors[name].label = name
            lines.append(f"{name} = mg.tensor({data}{', requires_grad=True' * requires_grad})")
    namespace = NAMESPACE | tensors
    exec(code, namespace)
    y = namespace["y"]
    y.label = "y"
    source = "\n".join([*lines, *code.replace(" ops.", " mg.ops.").splitlines()])
    return source, y, [x for x in tensors.values() if x.requires_grad]


def count_orders(y: Any, leaves: list[Any]) -> str:
    """Differentiate `y` by its leaves and its upstream gradient, up to three times; return how often."""
    of_tensors = isinstance(y, mg.Tensor)
    g = mg.tensor(np.full(y.shape, 0.5), dtype=y.dtype, requires_grad=True) if of_tensors else mg.Value(0.5)
    total, inputs = y * g, [*leaves, g]
    for _ in range(3):
        total = total.sum() if of_tensors else total
        gradients = mg.grad(total, inputs, create_graph=True, allow_unused=True)
        parts = [x.sum() if of_tensors else x for x in gradients if isinstance(x, mg.Tensor | mg.Value)]
        differentiable = [x for x in parts if x.requires_grad]
        if not differentiable:
            return "until all further derivatives are zero"
        total = sum(differentiable[1:], differentiable[0])
    return "three times"
