"""The autograd library of a model, minigrad or PyTorch: what `watch` needs of it beyond the functions they share."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager
from typing import Any, NamedTuple

import minigrad as mg
from minigrad.core.dispatch import disable_taps
from minigrad.core.snapshot import make_record
from minigrad.core.step import Step

__all__ = ["MINIGRAD", "AutogradLibrary"]

RELU_STEPS = ("ReluBackward", "Relu6Backward")  # operations with entire units at 0, through which no gradient flows
HOST_DEVICES = ("cpu", "numpy")  # devices on which reading a value needs no transfer or synchronisation


class AutogradLibrary(NamedTuple):
    """Functions of an autograd library by which a model is monitored."""

    module: Any
    """The package, `minigrad` or `torch`, with ``Tensor``, ``no_grad``, ``is_grad_enabled``, ``cat``, ``float32``."""
    unobserved: Callable[[], AbstractContextManager[Any]]
    """Context manager in which operations are reported to no listener."""
    previous_nodes: Callable[[Any], Iterable[Any]]
    """The ``grad_fn`` nodes that computed the operands of a node."""
    relu_output: Callable[[Any], Any]
    """The output of a node that is a ReLU; None for another node."""
    is_on_host: Callable[[Any], bool]
    """Whether reading a tensor needs no transfer."""


def _previous_nodes(node: Any) -> list[Any]:
    return [source for source in node.next_functions if isinstance(source, Step)]


def _relu_output(node: Any) -> Any:
    saved = make_record(node).saved if node.name in RELU_STEPS else None
    return None if saved is None else saved[0]


MINIGRAD = AutogradLibrary(mg, disable_taps, _previous_nodes, _relu_output, lambda x: x.device in HOST_DEVICES)
