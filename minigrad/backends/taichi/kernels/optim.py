"""In-place optimizer updates: one launch per parameter, fusing the parameter, its gradient and the optimizer state.

An update consists of a few lines of Taichi source that read and assign declared variables. Code generation adds the
loops for the memory layout, as in `source`. Values that change from step to step, such as the learning rate, are
arguments, so that each source is compiled once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from minigrad.backends.numpy.optim import rectification
from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.functions import required_functions, to_vector_form
from minigrad.backends.taichi.codegen.strided_walk import compute_walk
from minigrad.backends.taichi.kernels.elementwise import copy_into, full
from minigrad.backends.taichi.runtime.array import CACHE_LINE, TAICHI, array_argument, empty, owned_bytes
from minigrad.backends.taichi.runtime.caches import ArchDict
from minigrad.backends.taichi.runtime.kernel import get_kernel
from minigrad.backends.taichi.runtime.types import FLOAT
from minigrad.backends.taichi.runtime.vector_functions import cast_literals
from minigrad.core.dispatch import kernel
from minigrad.core.shapes import broadcast_shapes

__all__: list[str] = []

VECTORISED = (
    -1
)  # Kernel variant for vectors of 16. Variant 0 is for contiguous arrays, and n > 0 for arrays of n dimensions.
_kernels: dict[Any, Any] = ArchDict()

# Maximum number of elements updated on one core. Updates are memory-bound and gain little from a second core.
MAX_SERIAL = source.serial_limit(1 << 14)
MOMENTS = "m = m + (grad - m) * one_minus_beta1\nv = v + (grad * grad - v) * one_minus_beta2\n"
ADAM = f"{MOMENTS}p = p - m * step_size / (ti.sqrt(v) + eps)"
AMSGRAD = f"{MOMENTS}w = ti.select(v < w, w, v)\np = p - m * step_size / (ti.sqrt(w) + eps)"
NADAM = f"{MOMENTS}p = p - (m * step_size + grad * grad_step_size) / (ti.sqrt(v) + eps)"
RADAM_YOUNG = f"{MOMENTS}p = p - m * step_size"
ADAMAX = """m = m + (grad - m) * one_minus_beta1
u = u * beta2
magnitude = ti.abs(grad) + eps
u = ti.select(magnitude < u, u, magnitude)
p = p - m * step_size / u"""
SQUARES = "s = s + (grad * grad - s) * weight\n"
ADADELTA = f"""{SQUARES}delta = ti.sqrt(d + eps) / ti.sqrt(s + eps) * grad
p = p - delta * lr
d = d + (delta * delta - d) * weight"""
LION = """direction = m + (grad - m) * one_minus_beta1
p = ti.select(direction > 0, p - lr, ti.select(direction < 0, p + lr, p))
m = m + (grad - m) * one_minus_beta2"""


def _apply_update(
    name: str, lines: str, names: Sequence[str], arrays: Sequence[Any], scalars: Mapping[str, float], out: Any
) -> Any:
    """Apply an update. Return the parameter and the optimizer state, written to `out` or to new arrays."""
    old_arrays = (arrays[0], *arrays[2:])
    new_arrays = (out,) if isinstance(out, np.ndarray) else out
    if new_arrays is None:
        shape = broadcast_shapes(*[x.shape for x in arrays if isinstance(x, np.ndarray)], op=name)
        dtype = next(x.dtype for x in arrays if isinstance(x, np.ndarray))
        new_arrays = tuple([empty(shape, dtype) for _ in old_arrays])
    for x, y in zip(old_arrays, new_arrays, strict=True):
        if x is not y:
            copy_into(y, x)
    p, grad = new_arrays[0], arrays[1]
    if not isinstance(grad, np.ndarray):
        grad = full(p.shape, p.dtype, grad)
    if p.size:
        _launch(name, lines, names, (p, grad, *new_arrays[1:]), scalars)
    if out is not None:
        return out
    return new_arrays if len(new_arrays) > 1 else p


def _launch(name: str, lines: str, names: Sequence[str], arrays: Sequence[Any], scalars: Mapping[str, float]) -> None:
    p = arrays[0]
    shape, size = p.shape, p.size
    addresses = [x.address if x.shape == shape else 0 for x in arrays]
    if source.VECTORIZED and p.dtype is FLOAT and 0 not in addresses:
        nbytes = p.nbytes
        pointers: list[Any] = [(address, size, nbytes) for address in addresses]
        form, counts = VECTORISED, (-(-size // source.VECTOR_SIZE),)  # type: tuple[int, tuple[int, ...]]
    else:
        form, counts, pointers = _choose_form(arrays)
    serial = size <= (MAX_SERIAL if form == VECTORISED else source.SERIAL_LIMIT)
    key = name, lines, p.dtype, form, serial
    compiled_kernel = _kernels.get(key)
    if compiled_kernel is None:
        code = _update_source(name, lines, names, tuple(scalars), p.dtype.name, form, serial)
        compiled_kernel = _kernels[key] = get_kernel(name, *code)
        if form == VECTORISED or (not form and not source.VECTORIZED and p.dtype == FLOAT):
            params = [source.KernelArgument("a", x, p.dtype.name) for x in names]
            params += [source.KernelArgument("f", x, p.dtype.name) for x in scalars]
            compiled_kernel.work = source.Computation(
                lines, tuple(params), (), written=tuple([x for x in names if x != "grad"])
            )
    compiled_kernel.launch(*pointers, *scalars.values(), *counts)


def _choose_form(arrays: Sequence[Any]) -> tuple[int, tuple[int, ...], list[Any]]:
    """Return the form of the kernel for the layout of the arrays, its counts, and its array arguments."""
    p = arrays[0]
    shape, size, form = p.shape, p.size, 0
    counts: tuple[int, ...] = (size,)
    for x in arrays:
        if not (x.address or x.flags.c_contiguous) or x.shape != shape:
            walk = compute_walk(shape, *[(x.shape, x.strides, x.itemsize) for x in arrays])
            if not walk.is_flat:
                form, counts = walk.dims, walk.numbers
            break
    pointers = [array_argument(x) for x in arrays]
    if not form and source.VECTORIZED and p.dtype == FLOAT:
        addresses, owns_blocks = 0, True
        for one, x in zip(pointers, arrays, strict=True):
            addresses |= one[0]
            owns_blocks = owns_blocks and (x.address or owned_bytes(x) == x.nbytes)
        if addresses % CACHE_LINE == 0 and (
            size % source.VECTOR_SIZE == 0 or owns_blocks
        ):  # otherwise the last vector would extend past the block
            form, counts = VECTORISED, (-(-size // source.VECTOR_SIZE),)
    return form, counts, pointers


def _update_source(
    name: str, lines: str, arrays: Sequence[str], scalar_names: Sequence[str], dtype: str, form: int, serial: bool
) -> tuple[str, str]:
    """Return the source of an update kernel and the kinds of its arguments, which are arrays, scalars and sizes."""
    compute_type, width = source.TAICHI_NAMES[dtype], source.VECTOR_SIZE if form == VECTORISED else 1
    lines, counts, count, head, indent = lines.replace("\n", f"\n{' ' * 8}"), ["n"], "n", "", " " * 8
    offsets = dict.fromkeys(arrays, "i")
    if form > 0:
        dims = range(form)
        counts = [f"{x}{k}" for x in arrays for k in dims] + [f"n{k}" for k in dims]
        count = " * ".join(f"n{k}" for k in dims)
        head = f"{indent}index = i\n" + "".join(
            f"{indent}i{k} = index % n{k}\n{indent}index = index // n{k}\n" for k in reversed(dims)
        )
        head += "".join(f"{indent}{x}_index = {' + '.join(f'i{k} * {x}{k}' for k in dims)}\n" for x in arrays)
        offsets = {x: f"{x}_index" for x in arrays}
    loop, end, scalar_params = head, "", list(scalar_names)
    if width > 1:
        lines, scalar_params = to_vector_form(lines).replace("\n", f"\n{' ' * 4}"), [f"{x}_" for x in scalar_names]
        count = f"(n + {source.VECTORS_PER_ITERATION - 1}) // {source.VECTORS_PER_ITERATION}"
        loop = "".join(f"{indent}{x} = ti.Vector([{x}_ for j in range({width})])\n" for x in scalar_names)
        loop += (
            f"{indent}for i in range(t * {source.VECTORS_PER_ITERATION}, ti.min(n, (t + 1) * "
            f"{source.VECTORS_PER_ITERATION})):\n"
        )
        indent = " " * 12
    for x in arrays:
        loop += f"{indent}{x} = {x}_[{offsets[x]}]\n"
        end += f"{indent}{x}_[{offsets[x]}] = {x}\n" if x != "grad" else ""
    body = cast_literals(f"{loop}{indent}{lines}\n{end}", compute_type)
    arguments = [f"{x}_: {source.array_annotation(dtype, width)}" for x in arrays]
    arguments += [f"{x}: ti.{compute_type}" for x in scalar_params] + [f"{x}: ti.i32" for x in counts]
    once = source.SERIALIZE if serial else ""
    loop_code = (
        source.parallel_loop(count, body, serial) if width > 1 else f"{once}    for i in range({count}):\n{body}"
    )
    code = (
        f"{required_functions(body, compute_type, width > 1)}@ti.kernel\ndef {name}_kernel(\n"
        f"    {', '.join(arguments)}\n):\n{loop_code}"
    )
    return code, "a" * len(arrays) + "f" * len(scalar_names) + "i" * len(counts)


Update = Callable[..., tuple[str, dict[str, float]]]


def _register(name: str, state_names: str) -> Callable[[Update], Update]:
    """Return a decorator that registers an update kernel. The decorated function maps attributes to source lines and
    their scalars."""
    names = ("p", "grad", *state_names)

    def register(update: Update) -> Update:
        def run(*arrays: Any, out: Any = None, **attrs: Any) -> Any:
            lines, numbers = update(**attrs)
            return _apply_update(name, lines, names, arrays, numbers, out)

        kernel(name, TAICHI)(run)
        return update

    return register


def _first_lines(weight_decay: float, maximize: bool, keep: float | None = None) -> Any:
    """Return the source lines that negate the gradient and apply weight decay, where required, and their scalars.

    If `keep` is given, weight decay is decoupled and multiplies the parameter by `keep`.
    """
    lines = "grad = grad * -1\n" if maximize else ""
    if not weight_decay:
        return lines, {}
    if keep is not None:
        return f"{lines}p = p * decay_factor\n", {"decay_factor": keep}
    return f"{lines}grad = grad + p * weight_decay\n", {"weight_decay": weight_decay}


@_register("sgd_step", "")
def _(lr: float, weight_decay: float, maximize: bool) -> Any:
    first, numbers = _first_lines(weight_decay, maximize)
    return f"{first}p = p - grad * lr", {**numbers, "lr": lr}


@_register("momentum_step", "b")
def _(lr: float, momentum: float, dampening: float, nesterov: bool, weight_decay: float, maximize: bool) -> Any:
    first, numbers = _first_lines(weight_decay, maximize)
    way = "(grad + b * momentum)" if nesterov else "b"
    lines = f"{first}b = b * momentum + grad * weight\np = p - {way} * lr"
    return lines, {**numbers, "lr": lr, "momentum": momentum, "weight": 1 - dampening}


def _with_moments(
    lines: str,
    scalars: dict[str, float],
    lr: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
    decoupled: bool,
    maximize: bool,
) -> tuple[str, dict[str, float]]:
    """Return the source lines and scalars of an update with two moving averages. `lines` follow the weight decay."""
    first, decay_scalars = _first_lines(weight_decay, maximize, 1 - lr * weight_decay if decoupled else None)
    return first + lines, {**decay_scalars, "one_minus_beta1": 1 - beta1, "one_minus_beta2": 1 - beta2, **scalars}


def _adam(lines: str, lr: float, beta1: float, beta2: float, eps: float, step: int, **kwargs: Any) -> Any:
    bias_correction = (1 - beta2**step) ** 0.5  # bias correction of v, applied to the step size and eps
    scalars = {"step_size": lr / (1 - beta1**step) * bias_correction, "eps": eps * bias_correction}
    return _with_moments(lines, scalars, lr, beta1, beta2, **kwargs)


_register("adam_step", "mv")(partial(_adam, ADAM))
_register("amsgrad_step", "mvw")(partial(_adam, AMSGRAD))


@_register("nadam_step", "mv")
def _(lr: float, eps: float, beta2: float, step: int, mu: float, next_mu: float, mu_product: float, **how: Any) -> Any:
    even = (1 - beta2**step) ** 0.5
    rates = {"step_size": next_mu / (1 - mu_product * next_mu), "grad_step_size": (1 - mu) / (1 - mu_product)}
    numbers = {**{name: lr * even * rate for name, rate in rates.items()}, "eps": eps * even}
    return _with_moments(NADAM, numbers, lr, beta2=beta2, **how)


@_register("radam_step", "mv")
def _(lr: float, beta1: float, beta2: float, eps: float, step: int, **how: Any) -> Any:
    r, rate = rectification(beta2, step), lr / (1 - beta1**step)
    if not r:
        return _with_moments(RADAM_YOUNG, {"step_size": rate}, lr, beta1, beta2, **how)
    numbers = {"step_size": rate * r * (1 - beta2**step) ** 0.5, "eps": eps}
    return _with_moments(ADAM, numbers, lr, beta1, beta2, **how)


@_register("adamax_step", "mu")
def _(lr: float, beta1: float, beta2: float, eps: float, step: int, weight_decay: float, maximize: bool) -> Any:
    first, numbers = _first_lines(weight_decay, maximize)
    more = {"one_minus_beta1": 1 - beta1, "beta2": beta2, "eps": eps, "step_size": lr / (1 - beta1**step)}
    return first + ADAMAX, {**numbers, **more}


@_register("adagrad_step", "s")
def _(lr: float, eps: float, weight_decay: float, maximize: bool) -> Any:
    first, numbers = _first_lines(weight_decay, maximize)
    return f"{first}s = s + grad * grad\np = p - grad * lr / (ti.sqrt(s) + eps)", {**numbers, "lr": lr, "eps": eps}


@_register("adadelta_step", "sd")
def _(lr: float, rho: float, eps: float, weight_decay: float, maximize: bool) -> Any:
    first, numbers = _first_lines(weight_decay, maximize)
    return first + ADADELTA, {**numbers, "lr": lr, "weight": 1 - rho, "eps": eps}


def _rmsprop(state_names: str) -> Update:
    mean, variance = ("a = a + (grad - a) * weight\n", "s - a * a") if "a" in state_names else ("", "s")
    direction = f"grad / (ti.sqrt({variance}) + eps)"
    last = f"b = b * momentum + {direction}\np = p - b * lr" if "b" in state_names else f"p = p - {direction} * lr"

    def update(lr: float, alpha: float, eps: float, momentum: float, weight_decay: float, maximize: bool) -> Any:
        first, numbers = _first_lines(weight_decay, maximize)
        momentum_scalars = {"momentum": momentum} if "b" in state_names else {}
        return f"{first}{SQUARES}{mean}{last}", {
            **numbers,
            "lr": lr,
            "weight": 1 - alpha,
            "eps": eps,
            **momentum_scalars,
        }

    return update


for _variant, _state_names in (("", "s"), ("momentum_", "sb"), ("centered_", "sa"), ("centered_momentum_", "sab")):
    _register(f"rmsprop_{_variant}step", _state_names)(_rmsprop(_state_names))


@_register("lion_step", "m")
def _(lr: float, weight_decay: float, **how: Any) -> Any:
    return _with_moments(LION, {"lr": lr}, lr, weight_decay=weight_decay, decoupled=True, **how)
