"""The exercises of lesson 18, Inside a PyTorch model. The last two need PyTorch."""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Sequence
from numbers import Real
from typing import Any

from minigrad.lessons.checking import Wrong, call, check_keys, compare, compare_arrays, compare_flags, exercise

__all__: list[str] = []


def _import_torch() -> Any:
    try:
        import torch
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "The checks of lesson 18 need PyTorch. Install it with: pip install torch", name="torch"
        ) from error
    return torch


# --- 18.1: two arrows -------------------------------------------------------------------------------------------------

_H = [
    (12, "that is ∂loss/∂h = 2 · h. Through h it is multiplied by ∂h/∂w = 3 once more."),
    (18, "h · h has two edges from h, and so two contributions: 2 · h."),
    (30, "the product got h.detach(), so nothing flows from it to h."),
    (6, "that is h, or ∂loss/∂h without one of its factors. It is 2 · h times 3."),
]
_PRODUCT = [
    (0, "detach blocks the way to h. The other operand, w, gets its gradient."),
    (6, "the product is subtracted."),
    (-12, "h.detach() is a constant there: the derivative is −h, and not that of a square."),
    (-3, "∂h/∂w is on the way that is blocked. The other factor of the product is h, which is 6."),
    (-2, "that is the gradient of h.detach(), if there were one. w gets minus the other factor, h."),
]


@exercise(
    "18.1", "2h · 3 = 36 through h; −6 through the product, where h is a constant; and .grad adds up, also again."
)
def _arrows(answer: Any) -> None:
    check_keys(answer, "h", "product", "grad", "again")
    compare("through h it", answer["h"], 36, _H)
    compare("through the product it", answer["product"], -6, _PRODUCT)
    grad = [
        (24, "that is without detach, where −w · 3 flows through h, too."),
        (36, "both contributions arrive at w, and are added up."),
        (42, "the second contribution is negative."),
    ]
    compare("w.grad", answer["grad"], 30, grad)
    again = [
        (30, "backward accumulates: the second pass is added to what was in w.grad."),
        (0, "the second pass is added to the first; it does not cancel it."),
        (900, "the second pass is added to the first, not multiplied."),
        (36, "the second pass contributes all of its gradient, 30."),
    ]
    compare("w.grad, the second time,", answer["again"], 60, again)


# --- 18.2: does it arrive? --------------------------------------------------------------------------------------------

_ARRIVES = {
    "A": (True, "detach blocks one operand of the product. The other one is w itself."),
    "B": (False, "w.data is w without its history, like w.detach(). No gradient flows to w."),
    "C": (
        True,
        "the divisor is a constant, so the gradient is incomplete. But w is divided by it, and gets ½.",
    ),
    "D": (False, "both products are below 4, so both units are silent, and a ReLU passes 0 below 0."),
    "E": (False, "round is a staircase: its derivative is 0 wherever it has one. A gradient arrives, and it is 0."),
    "F": (True, "both elements of w are above 0, so where takes both from w, and not from w.detach()."),
    "G": (False, "a list of Python numbers has no history: torch.tensor makes a new leaf of it."),
}


@exercise("18.2", "A, C and F have a way to w that is neither cut (B, G) nor multiplied by 0 (D, E).")
def _arrivals(answer: Any) -> None:
    check_keys(answer, *_ARRIVES)
    compare_flags(answer, _ARRIVES, "does get there", "does not get there")


# --- 18.3: a length that can be 0 -------------------------------------------------------------------------------------

_ROWS = [[3.0, 4.0, 0.0], [0.0, 0.0, 0.0], [2e-4, -1e-4, 2e-4], [-1.0, 2.0, -2.0]]


@exercise("18.3", "where chooses what goes *into* the root; a value that where drops after it still gets 0 · ∞ = nan.")
def _lengths(answer: Any) -> None:
    torch = _import_torch()
    import numpy as np

    rows = np.array(_ROWS)
    right = np.sqrt((rows**2).sum(1))
    v = torch.tensor(_ROWS, dtype=torch.float64, requires_grad=True)
    result = call(answer, v)
    if not isinstance(result, torch.Tensor):
        raise Wrong(f"the result should be a PyTorch tensor, and this is a {type(result).__name__}.")
    if tuple(result.shape) != (4,):
        cause = "Is a keepdim left?" if result.numel() == 4 else "Sum over dim 1."
        raise Wrong(f"for four rows the result should have the shape (4,), and this has {tuple(result.shape)}. {cause}")
    values = result.detach().numpy()
    mistakes = [
        ((rows**2).sum(1), "the root is missing."),
        (np.abs(rows).sum(1), "that is the sum of the magnitudes. Square, sum, take the root."),
    ]
    if np.allclose(values[::3], right[::3]) and not math.isclose(values[2], right[2], rel_tol=1e-4):
        raise Wrong(
            f"the length of a row is {values[2]:.4g}, and it should be {right[2]:.4g}. A constant that is added, or a "
            "clamp, changes the short ones."
        )
    compare_arrays("the result", values, right, mistakes)
    if not result.requires_grad:
        raise Wrong("the lengths are right, but they need no gradient: stay with tensors, without detach and item.")
    (result * torch.tensor([1.0, 2.0, 3.0, 4.0], dtype=torch.float64)).sum().backward()
    if v.grad is None:
        raise Wrong("the lengths are right, but no gradient arrives at v: something on the way is blocked.")
    gradient = v.grad.numpy()
    if np.isnan(gradient).any():
        raise Wrong(
            "the lengths are right, but the gradient of the row of zeros is nan. The root of 0 is still computed, and "
            "its gradient is 0 · ∞, also where its value is not used. Let no 0 reach the root."
        )
    expected = np.divide(rows, right[:, None], out=np.zeros_like(rows), where=right[:, None] > 0)
    compare_arrays("the lengths are right, but the gradient", gradient, expected * [[1], [2], [3], [4]])


# --- 18.4: a training -------------------------------------------------------------------------------------------------

_STEPS = 12


def _start() -> tuple[Any, Any, Any]:
    """Return a network of two layers with fixed float64 weights, eight samples and their targets."""
    torch = _import_torch()
    layers = {
        "hidden": torch.nn.Linear(2, 3, dtype=torch.float64),
        "relu": torch.nn.ReLU(),
        "output": torch.nn.Linear(3, 1, dtype=torch.float64),
    }
    model = torch.nn.Sequential(OrderedDict(layers))
    with torch.no_grad():
        for parameter, values in zip(
            model.parameters(),
            (
                [[0.5, -0.25], [0.75, 0.5], [-0.5, 0.625]],
                [0.25, 0.0, 0.125],
                [[0.5, -0.75, 0.375]],
                [0.25],
            ),
            strict=True,
        ):
            parameter.copy_(torch.tensor(values))
    x = torch.tensor([[k % 3 - 1.0, k % 4 / 2 - 0.5] for k in range(8)], dtype=torch.float64)
    return model, x, (x[:, :1] * x[:, 1:] + 1).detach()


def _train(frozen: bool = False, forgets: bool = True, total: bool = False, steps: int = _STEPS) -> tuple[Any, Any]:
    """Return the parameters and the losses of a training, optionally with a mistake."""
    torch = _import_torch()
    model, x, t = _start()
    optimizer, losses = torch.optim.SGD(model.parameters(), lr=0.125), []
    for _ in range(steps):
        h = torch.relu(model.hidden(x))
        squares = (model.output(h.detach() if frozen else h) - t).square()
        loss = squares.sum() if total else squares.mean()
        if forgets:
            optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return _parameters(model), losses


def _parameters(model: Any) -> Any:
    return _import_torch().cat([parameter.detach().reshape(-1) for parameter in model.parameters()]).numpy()


@exercise("18.4", "no_grad cut off the layer hidden; the gradients added up; and each loss kept its graph in memory.")
def _repaired(answer: Any) -> None:
    import numpy as np

    model, x, t = _start()
    before = _parameters(model)
    losses = call(answer, model, x, t, _STEPS)
    if not isinstance(losses, Sequence) or len(losses) != _STEPS:
        size = f"{len(losses)} of them" if isinstance(losses, Sequence) else f"a {type(losses).__name__}"
        raise Wrong(f"return the list of the losses, one for each of the {_STEPS} steps; this is {size}.")
    after = _parameters(model)
    if np.array_equal(after, before):
        raise Wrong("the parameters of the model have not changed. Is optimizer.step() there, after backward?")
    right, right_losses = _train()
    blocked = "the layer hidden never moves: draw the loss, and look for what is blocked."
    mistakes = [
        (
            _train(frozen=True, forgets=False)[0],
            "the layer hidden never moves: draw the loss, and look for what is blocked.",
        ),
        (_train(frozen=True)[0], blocked),
        (_train(forgets=False)[0], "the gradients of all steps add up. Call zero_grad before each backward."),
        (_train(total=True)[0], "that is the gradient of the sum over the samples. Take the mean."),
        (_train(steps=_STEPS - 1)[0], "one step is missing."),
        (_train(steps=1)[0], "there was one step only."),
    ]
    compare_arrays(f"after {_STEPS} steps the parameters", after, right, mistakes)
    if kept := [loss for loss in losses if isinstance(loss, _import_torch().Tensor)]:
        cost = "it keeps the graph of its step in memory. " if kept[0].grad_fn is not None else ""
        raise Wrong(f"the network learns now. But a loss in the list is a tensor: {cost}Append loss.item().")
    if not all(isinstance(loss, Real) and math.isfinite(loss) for loss in losses):
        raise Wrong("the losses should be Python floats.")
    compare_arrays("the network learns now. But the list of losses", list(losses), np.array(right_losses))
