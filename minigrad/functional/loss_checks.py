"""Helpers for losses: reductions, and checks of input, target and weight."""

from __future__ import annotations

import warnings
from typing import Any

from minigrad import ops
from minigrad.core.errors import ArgumentError, GraphError, ShapeError
from minigrad.core.modes import modes
from minigrad.core.shapes import broadcast_shapes
from minigrad.core.tensor import Tensor
from minigrad.functional import reduce as reductions
from minigrad.functional.checks import check_option, check_stretches, floats_of, tensor_of

__all__ = [
    "averaged",
    "check_constant",
    "check_reduction",
    "check_same_shape",
    "check_scores",
    "check_weight",
    "checked_pair",
    "no_such_class",
    "reduced",
    "shapes_that_do_not_fit",
    "two_floats",
    "weighted",
]


def reduced(losses: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return losses
    return {"mean": reductions.mean, "sum": reductions.sum}[reduction](losses)


def averaged(losses: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    """Reduce `losses` weighted by `weight`; "mean" divides by the sum of the weights."""
    if weight is None:
        return reduced(losses, reduction)
    if reduction != "mean":
        return reduced(losses * weight, reduction)
    return reductions.sum(losses * weight) / reductions.sum(weight)


def weighted(name: str, losses: Tensor, weight: Tensor | None) -> Tensor:
    if weight is None:
        return losses
    check_constant(name, weight=weight)
    check_stretches(weight, losses.shape, name, "weight")
    return losses * weight


def checked_pair(name: str, input: Tensor, target: Tensor, weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Return `input` and `target`; warn if their shapes differ."""
    tensor_of(input, name)
    tensor_of(target, name, "target")
    if input.shape != target.shape:
        shape = broadcast_shapes(input.shape, target.shape, op=name)
        warnings.warn(
            f"{name}: using a target size {target.shape} that is different to the input size {input.shape}; both are "
            f"broadcast to {shape}, which is seldom intended.\n  Write target.reshape(input.shape).",
            stacklevel=3,
        )
    if weight is not None and weight.shape != input.shape:
        raise ShapeError(f"{name}: expected weight of the input's shape {input.shape}, but got {weight.shape}.")
    return input, target


def check_reduction(name: str, reduction: str, size_average: Any = None, reduce: Any = None, *more: str) -> None:
    if size_average is not None or reduce is not None:
        modern = "none" if reduce is False else "sum" if size_average is False else "mean"
        raise ArgumentError(
            f"{name}: size_average and reduce are not supported; use reduction.\n"
            f'  Write {name}(…, reduction="{modern}").'
        )
    check_option(reduction, ("mean", "sum", "none", *more), name, "reduction")


def check_scores(name: str, input: Tensor, target: Tensor) -> None:
    tensor_of(target, name, "target")
    floats_of(input, name)
    if not input.ndim:
        raise ShapeError(f"{name}: expected input (N, C), (C,) or (N, C, d1, …), but got a 0-d tensor.")


def two_floats(name: str, input: Tensor, target: Tensor) -> None:
    floats_of(input, name)
    floats_of(target, name, "target")


def check_constant(name: str, **tensors: Tensor) -> None:
    for argument, x in tensors.items():
        if x.requires_grad and modes.grad:
            raise GraphError(f"{name}: not differentiable with respect to {argument}.\n  Write {argument}.detach().")


def check_same_shape(name: str, input: Tensor, target: Tensor) -> None:
    if input.shape != target.shape:
        raise ShapeError(
            f"{name}: the target size {target.shape} is different to the input size {input.shape}.\n"
            "  Write target.reshape(input.shape)."
        )


def check_weight(name: str, input: Tensor, weight: Tensor) -> None:
    if weight.shape != input.shape[1:2]:
        raise ShapeError(
            f"{name}: expected weight of shape ({input.shape[1]},), one value for each class, but got {weight.shape}."
        )


def shapes_that_do_not_fit(name: str, input: Tensor, target: Tensor) -> str:
    positions = (input.shape[0], *input.shape[2:])
    if target.shape == positions:  # the dtype is floating point, or the shapes would match
        return (
            f"{name}: target has the shape {target.shape} of class indices, but dtype {target.dtype.name}.\n"
            f"  Write target.long() for class indices; class probabilities have shape {input.shape}."
        )
    text = (
        f"{name}: input {input.shape} has {input.shape[1]} classes, along dimension 1, but target has shape "
        f"{target.shape}.\n  Expected class indices of shape {positions}"
    )
    return text + (f" or class probabilities of shape {input.shape}." if name == "cross_entropy" else ".")


def no_such_class(name: str, target: Tensor, count: int, ignore_index: int) -> str:
    given = ops.reshape(target, shape=(-1,)).tolist()
    wrong = next(k for k in given if k != ignore_index and not 0 <= k < count)
    return (
        f"{name}: target {wrong} is out of bounds for {count} classes.\n"
        f"  Class indices go from 0 to {count - 1}; mark positions to ignore with ignore_index."
    )
