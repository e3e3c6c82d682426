"""Where a Value stores its gradient: in the node, next to the mark of the backward pass that computed it.

A node that a fast pass has reached holds the `FastPass` in `_requires_grad`, as its mark, and the gradient in
`_gradient`, which counts once the pass is `done`. So all gradients of a pass appear at once, and none after an error.
"""

from __future__ import annotations

from typing import Any

from minigrad.core.graph import Node, grad_lock

__all__ = ["ASSIGNED", "NO_GRADIENT", "UNREACHED", "FastPass", "GradientNode", "SharedGradient"]

NO_GRADIENT = float("-0.0")
"""The total before the first contribution, since -0.0 + x is x for every float. It is compared by identity."""


class FastPass:
    """A backward pass: the mark of the nodes that it has reached. Their gradients count once it is `done`."""

    __slots__ = ("done", "inputs")

    def __init__(self, done: bool = False) -> None:
        self.done = done
        self.inputs: Any = None  # the last sequence of nodes all of which it has reached, which several sums share


ASSIGNED = FastPass(done=True)
"""The mark of a Value whose gradient was assigned."""


UNREACHED = FastPass()
"""The mark of an operand that no pass has reached, if a pass needs to treat it specially."""


class SharedGradient:
    """The mark of nodes that have the same gradient, which `token` computes for all of them at once."""

    __slots__ = ("_gradient", "token")

    def __init__(self, token: FastPass) -> None:
        self._gradient = NO_GRADIENT
        self.token = token

    @property
    def done(self) -> bool:
        """Whether the gradient counts."""
        return self.token.done


class GradientNode(Node):
    """A node whose `_requires_grad` is False, True or a mark."""

    __slots__ = ()

    _gradient: Any = vars(Node)["grad"]  # the slot; the mark of the node decides whether it counts

    @property
    def grad(self) -> Any:
        """The accumulated gradient: a float, a Value after ``backward(create_graph=True)``, or None."""
        with grad_lock:
            mark, assigned = self._requires_grad, self._get_extra("grad")
            if not mark or mark is True or not mark.done:
                return assigned
            gradient = mark._gradient if mark.__class__ is SharedGradient else self._gradient
            if assigned is None or gradient is NO_GRADIENT:
                return assigned if gradient is NO_GRADIENT else gradient
            return assigned + gradient

    @grad.setter
    def grad(self, gradient: Any) -> None:
        with grad_lock:
            if self._get_extra("grad") is not None:
                del self._extras["grad"]
            mark = self._requires_grad
            if mark is True or (mark and mark.done):
                self._gradient = NO_GRADIENT if gradient is None else gradient
                self._requires_grad = True if gradient is None and self._op is None else ASSIGNED
            elif gradient is not None:  # a running pass adds its gradient to this one
                self._set_extra("grad", gradient)
