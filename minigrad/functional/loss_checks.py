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
from minigrad.functional.checks import check_broadcastable, check_floating, check_option, check_tensor

__all__ = [
    "apply_weight",
    "check_float_pair",
    "check_input_target",
    "check_logits",
    "check_no_grad_operand",
    "check_reduction",
    "check_same_shape",
    "check_weight",
    "class_index_message",
    "reduce_losses",
    "reduce_weighted",
    "target_shape_message",
]


def reduce_losses(losses: Tensor, reduction: str) -> Tensor:
    if reduction == "none":
        return losses
    return {"mean": reductions.mean, "sum": reductions.sum}[reduction](losses)


def reduce_weighted(losses: Tensor, weight: Tensor | None, reduction: str) -> Tensor:
    """Reduce the product of `losses` and `weight`. "mean" divides by the sum of the weights."""
    if weight is None:
        return reduce_losses(losses, reduction)
    if reduction != "mean":
        return reduce_losses(losses * weight, reduction)
    return reductions.sum(losses * weight) / reductions.sum(weight)


def apply_weight(name: str, losses: Tensor, weight: Tensor | None) -> Tensor:
    if weight is None:
        return losses
    check_no_grad_operand(name, weight=weight)
    check_broadcastable(weight, losses.shape, name, "weight")
    return losses * weight


def check_input_target(name: str, input: Tensor, target: Tensor, weight: Tensor | None = None) -> tuple[Tensor, Tensor]:
    """Check the operands of a loss. Return `input` and `target`, with a warning if their shapes differ."""
    check_tensor(input, name)
    check_tensor(target, name, "target")
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


def check_reduction(
    name: str, reduction: str, size_average: Any = None, reduce: Any = None, *extra_options: str
) -> None:
    if size_average is not None or reduce is not None:
        reduction_name = "none" if reduce is False else "sum" if size_average is False else "mean"
        raise ArgumentError(
            f"{name}: size_average and reduce are not supported; use reduction.\n"
            f'  Write {name}(…, reduction="{reduction_name}").'
        )
    check_option(reduction, ("mean", "sum", "none", *extra_options), name, "reduction")


def check_logits(name: str, input: Tensor, target: Tensor) -> None:
    check_tensor(target, name, "target")
    check_floating(input, name)
    if not input.ndim:
        raise ShapeError(f"{name}: expected input (N, C), (C,) or (N, C, d1, …), but got a 0-d tensor.")


def check_float_pair(name: str, input: Tensor, target: Tensor) -> None:
    check_floating(input, name)
    check_floating(target, name, "target")


def check_no_grad_operand(name: str, **tensors: Tensor) -> None:
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


def target_shape_message(name: str, input: Tensor, target: Tensor) -> str:
    positions = (input.shape[0], *input.shape[2:])
    if target.shape == positions:  # the dtype is floating point, since class indices of this shape are valid
        return (
            f"{name}: target has the shape {target.shape} of class indices, but dtype {target.dtype.name}.\n"
            f"  Write target.long() for class indices; class probabilities have shape {input.shape}."
        )
    message = (
        f"{name}: input {input.shape} has {input.shape[1]} classes, along dimension 1, but target has shape "
        f"{target.shape}.\n  Expected class indices of shape {positions}"
    )
    return message + (f" or class probabilities of shape {input.shape}." if name == "cross_entropy" else ".")


def class_index_message(name: str, target: Tensor, count: int, ignore_index: int) -> str:
    classes = ops.reshape(target, shape=(-1,)).tolist()
    bad_class = next(k for k in classes if k != ignore_index and not 0 <= k < count)
    return (
        f"{name}: target {bad_class} is out of bounds for {count} classes.\n"
        f"  Class indices go from 0 to {count - 1}; mark positions to ignore with ignore_index."
    )
