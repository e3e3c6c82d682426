"""In-place optimizer updates: one launch per parameter, fusing the parameter, its gradient and the optimizer state.

An update is a few lines of Taichi source that read and assign the variables of its declaration. Code generation adds
the loops for the memory layout, as in `source`. Values that change from step to step, such as the learning rate, are
arguments, so that each source is compiled once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from minigrad.backends.numpy.optim import rectified
from minigrad.backends.taichi.codegen import source
from minigrad.backends.taichi.codegen.functions import needed, packed
from minigrad.backends.taichi.codegen.walks import walk_of
from minigrad.backends.taichi.kernels.elementwise import filled, put
from minigrad.backends.taichi.runtime.array import DEVICE, LINE, empty, pointer, room_of
from minigrad.backends.taichi.runtime.caches import Remembered
from minigrad.backends.taichi.runtime.kernel import compiled
from minigrad.backends.taichi.runtime.types import FLOAT
from minigrad.backends.taichi.runtime.vector_functions import typed
from minigrad.core.dispatch import kernel
from minigrad.core.shapes import broadcast_shapes

__all__: list[str] = []

VECTORS = -1  # form of a kernel vectorised by 16; 0 is contiguous, a positive form is the number of dimensions
_kernels: dict[Any, Any] = Remembered()

SERIAL = 1 << 17  # maximum elements for one core: updates are memory-bound, so a second core does not pay off
MOMENTS = "m = m + (grad - m) * rest1\nv = v + (grad * grad - v) * rest2\n"
ADAM = f"{MOMENTS}p = p - m * rate / (ti.sqrt(v) + eps)"
AMSGRAD = f"{MOMENTS}w = ti.select(v < w, w, v)\np = p - m * rate / (ti.sqrt(w) + eps)"
NADAM = f"{MOMENTS}p = p - (m * rate + grad * rate_now) / (ti.sqrt(v) + eps)"
RADAM_YOUNG = f"{MOMENTS}p = p - m * rate"
ADAMAX = """m = m + (grad - m) * rest1
u = u * beta2
size = ti.abs(grad) + eps
u = ti.select(size < u, u, size)
p = p - m * rate / u"""
SQUARES = "s = s + (grad * grad - s) * rest\n"
ADADELTA = f"""{SQUARES}delta = ti.sqrt(d + eps) / ti.sqrt(s + eps) * grad
p = p - delta * lr
d = d + (delta * delta - d) * rest"""
LION = """way = m + (grad - m) * rest1
p = ti.select(way > 0, p - lr, ti.select(way < 0, p + lr, p))
m = m + (grad - m) * rest2"""


def _updated(
    name: str, lines: str, names: Sequence[str], arrays: Sequence[Any], numbers: Mapping[str, float], out: Any
) -> Any:
    """Return the updated parameter and optimizer state, in `out` or in new arrays."""
    before = (arrays[0], *arrays[2:])
    after = (out,) if isinstance(out, np.ndarray) else out
    if after is None:
        shape = broadcast_shapes(*[x.shape for x in arrays if isinstance(x, np.ndarray)], op=name)
        dtype = next(x.dtype for x in arrays if isinstance(x, np.ndarray))
        after = tuple([empty(shape, dtype) for _ in before])
    for x, y in zip(before, after, strict=True):
        if x is not y:
            put(y, x)
    p, grad = after[0], arrays[1]
    if not isinstance(grad, np.ndarray):
        grad = filled(p.shape, p.dtype, grad)
    if p.size:
        _launch(name, lines, names, (p, grad, *after[1:]), numbers)
    if out is not None:
        return out
    return after if len(after) > 1 else p


def _launch(name: str, lines: str, names: Sequence[str], arrays: Sequence[Any], numbers: Mapping[str, float]) -> None:
    p = arrays[0]
    shape, size, form = p.shape, p.size, 0
    counts: tuple[int, ...] = (size,)
    for x in arrays:
        if not (x.address or x.flags.c_contiguous) or x.shape != shape:
            walk = walk_of(shape, *[(x.shape, x.strides, x.itemsize) for x in arrays])
            if not walk.flat:
                form, counts = walk.dims, walk.numbers
            break
    at = [pointer(x) for x in arrays]
    if not form and source.VECTORIZED and p.dtype == FLOAT:
        places, ours = 0, True
        for one, x in zip(at, arrays, strict=True):
            places |= one[0]
            ours = ours and (x.address or room_of(x) == x.nbytes)
        if places % LINE == 0 and (size % source.WIDE == 0 or ours):  # else it would write past the end of the block
            form, counts = VECTORS, (-(-size // source.WIDE),)
    serial = size <= (SERIAL if form == VECTORS else source.SERIAL)
    key = name, lines, p.dtype, form, serial
    made = _kernels.get(key)
    if made is None:
        text = _text(name, lines, names, tuple(numbers), p.dtype.name, form, serial)
        made = _kernels[key] = compiled(name, *text)
        if form == VECTORS or (not form and not source.VECTORIZED and p.dtype == FLOAT):
            takes = [source.Taken("a", x, p.dtype.name) for x in names]
            takes += [source.Taken("f", x, p.dtype.name) for x in numbers]
            made.work = source.Work(lines, tuple(takes), (), writes=tuple([x for x in names if x != "grad"]))
    made.launch(*at, *numbers.values(), *counts)


def _text(
    name: str, lines: str, arrays: Sequence[str], numbers: Sequence[str], dtype: str, form: int, serial: bool
) -> tuple[str, str]:
    """Return the source of an update and the kinds of its arguments: arrays, scalars, then sizes as in `source`."""
    work, wide = source.TI[dtype], source.WIDE if form == VECTORS else 1
    lines, counts, count, head, indent = lines.replace("\n", f"\n{' ' * 8}"), ["n"], "n", "", " " * 8
    place = dict.fromkeys(arrays, "i")
    if form > 0:
        dims = range(form)
        counts = [f"{x}{k}" for x in arrays for k in dims] + [f"n{k}" for k in dims]
        count = " * ".join(f"n{k}" for k in dims)
        head = f"{indent}rest_i = i\n" + "".join(
            f"{indent}i{k} = rest_i % n{k}\n{indent}rest_i = rest_i // n{k}\n" for k in reversed(dims)
        )
        head += "".join(f"{indent}{x}_at = {' + '.join(f'i{k} * {x}{k}' for k in dims)}\n" for x in arrays)
        place = {x: f"{x}_at" for x in arrays}
    loop, end, given = head, "", list(numbers)
    if wide > 1:
        lines, given = packed(lines).replace("\n", f"\n{' ' * 4}"), [f"{x}_" for x in numbers]
        count = f"(n + {source.STRETCH - 1}) // {source.STRETCH}"
        loop = "".join(f"{indent}{x} = ti.Vector([{x}_ for j in range({wide})])\n" for x in numbers)
        loop += f"{indent}for i in range(t * {source.STRETCH}, ti.min(n, (t + 1) * {source.STRETCH})):\n"
        indent = " " * 12
    for x in arrays:
        loop += f"{indent}{x} = {x}_[{place[x]}]\n"
        end += f"{indent}{x}_[{place[x]}] = {x}\n" if x != "grad" else ""
    body = typed(f"{loop}{indent}{lines}\n{end}", work)
    arguments = [f"{x}_: {source.array_of(dtype, wide)}" for x in arrays]
    arguments += [f"{x}: ti.{work}" for x in given] + [f"{x}: ti.i32" for x in counts]
    once = source.ONCE if serial else ""
    whole = source.spread(count, body, serial) if wide > 1 else f"{once}    for i in range({count}):\n{body}"
    text = f"{needed(body, work, wide > 1)}@ti.kernel\ndef {name}_kernel(\n    {', '.join(arguments)}\n):\n{whole}"
    return text, "a" * len(arrays) + "f" * len(numbers) + "i" * len(counts)


Update = Callable[..., tuple[str, dict[str, float]]]


def _register(name: str, memory: str) -> Callable[[Update], Update]:
    """Register the kernel of an update, given as a function from attributes to source lines and their scalars."""
    names = ("p", "grad", *memory)

    def register(update: Update) -> Update:
        def run(*arrays: Any, out: Any = None, **attrs: Any) -> Any:
            lines, numbers = update(**attrs)
            return _updated(name, lines, names, arrays, numbers, out)

        kernel(name, DEVICE)(run)
        return update

    return register


def _begun(weight_decay: float, maximize: bool, keep: float | None = None) -> Any:
    """Return the first lines, the sign of the gradient and weight decay, and their scalars, omitting no-ops.

    Decoupled weight decay multiplies the parameter by `keep`.
    """
    lines = "grad = grad * -1\n" if maximize else ""
    if not weight_decay:
        return lines, {}
    if keep is not None:
        return f"{lines}p = p * keep\n", {"keep": keep}
    return f"{lines}grad = grad + p * decay\n", {"decay": weight_decay}


@_register("sgd_step", "")
def _(lr: float, weight_decay: float, maximize: bool) -> Any:
    first, numbers = _begun(weight_decay, maximize)
    return f"{first}p = p - grad * lr", {**numbers, "lr": lr}


@_register("momentum_step", "b")
def _(lr: float, momentum: float, dampening: float, nesterov: bool, weight_decay: float, maximize: bool) -> Any:
    first, numbers = _begun(weight_decay, maximize)
    way = "(grad + b * momentum)" if nesterov else "b"
    lines = f"{first}b = b * momentum + grad * rest\np = p - {way} * lr"
    return lines, {**numbers, "lr": lr, "momentum": momentum, "rest": 1 - dampening}


def _of_moments(
    lines: str,
    numbers: dict[str, float],
    lr: float,
    beta1: float,
    beta2: float,
    weight_decay: float,
    decoupled: bool,
    maximize: bool,
) -> tuple[str, dict[str, float]]:
    """Return an update with moving averages, of which `lines` are the main part."""
    first, more = _begun(weight_decay, maximize, 1 - lr * weight_decay if decoupled else None)
    return first + lines, {**more, "rest1": 1 - beta1, "rest2": 1 - beta2, **numbers}


def _adam(lines: str, lr: float, beta1: float, beta2: float, eps: float, step: int, **how: Any) -> Any:
    even = (1 - beta2**step) ** 0.5  # bias correction of v, applied to rate and eps instead
    numbers = {"rate": lr / (1 - beta1**step) * even, "eps": eps * even}
    return _of_moments(lines, numbers, lr, beta1, beta2, **how)


_register("adam_step", "mv")(partial(_adam, ADAM))
_register("amsgrad_step", "mvw")(partial(_adam, AMSGRAD))


@_register("nadam_step", "mv")
def _(lr: float, eps: float, beta2: float, step: int, mu: float, next_mu: float, mu_product: float, **how: Any) -> Any:
    even = (1 - beta2**step) ** 0.5
    rates = {"rate": next_mu / (1 - mu_product * next_mu), "rate_now": (1 - mu) / (1 - mu_product)}
    numbers = {**{name: lr * even * rate for name, rate in rates.items()}, "eps": eps * even}
    return _of_moments(NADAM, numbers, lr, beta2=beta2, **how)


@_register("radam_step", "mv")
def _(lr: float, beta1: float, beta2: float, eps: float, step: int, **how: Any) -> Any:
    r, rate = rectified(beta2, step), lr / (1 - beta1**step)
    if not r:
        return _of_moments(RADAM_YOUNG, {"rate": rate}, lr, beta1, beta2, **how)
    numbers = {"rate": rate * r * (1 - beta2**step) ** 0.5, "eps": eps}
    return _of_moments(ADAM, numbers, lr, beta1, beta2, **how)


@_register("adamax_step", "mu")
def _(lr: float, beta1: float, beta2: float, eps: float, step: int, weight_decay: float, maximize: bool) -> Any:
    first, numbers = _begun(weight_decay, maximize)
    more = {"rest1": 1 - beta1, "beta2": beta2, "eps": eps, "rate": lr / (1 - beta1**step)}
    return first + ADAMAX, {**numbers, **more}


@_register("adagrad_step", "s")
def _(lr: float, eps: float, weight_decay: float, maximize: bool) -> Any:
    first, numbers = _begun(weight_decay, maximize)
    return f"{first}s = s + grad * grad\np = p - grad * lr / (ti.sqrt(s) + eps)", {**numbers, "lr": lr, "eps": eps}


@_register("adadelta_step", "sd")
def _(lr: float, rho: float, eps: float, weight_decay: float, maximize: bool) -> Any:
    first, numbers = _begun(weight_decay, maximize)
    return first + ADADELTA, {**numbers, "lr": lr, "rest": 1 - rho, "eps": eps}


def _rmsprop(memory: str) -> Update:
    mean, variance = ("a = a + (grad - a) * rest\n", "s - a * a") if "a" in memory else ("", "s")
    way = f"grad / (ti.sqrt({variance}) + eps)"
    last = f"b = b * momentum + {way}\np = p - b * lr" if "b" in memory else f"p = p - {way} * lr"

    def update(lr: float, alpha: float, eps: float, momentum: float, weight_decay: float, maximize: bool) -> Any:
        first, numbers = _begun(weight_decay, maximize)
        kept = {"momentum": momentum} if "b" in memory else {}
        return f"{first}{SQUARES}{mean}{last}", {**numbers, "lr": lr, "rest": 1 - alpha, "eps": eps, **kept}

    return update


for _kind, _memory in (("", "s"), ("momentum_", "sb"), ("centered_", "sa"), ("centered_momentum_", "sab")):
    _register(f"rmsprop_{_kind}step", _memory)(_rmsprop(_memory))


@_register("lion_step", "m")
def _(lr: float, weight_decay: float, **how: Any) -> Any:
    return _of_moments(LION, {"lr": lr}, lr, weight_decay=weight_decay, decoupled=True, **how)
