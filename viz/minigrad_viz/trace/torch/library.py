"""What `watch` needs of PyTorch."""

from __future__ import annotations

from contextlib import nullcontext
from typing import Any

import torch

from minigrad_viz.trace.library import AutogradLibrary
from minigrad_viz.trace.torch.internals import saved_result

__all__ = ["PYTORCH"]


def _previous_nodes(node: Any) -> list[Any]:
    nodes = [inner for inner, _ in node.next_functions if inner is not None]
    return [inner for inner in nodes if not hasattr(inner, "variable")]


def _relu_output(node: Any) -> Any:
    return saved_result(node) if node.name() == "ReluBackward0" else None


PYTORCH = AutogradLibrary(torch, nullcontext, _previous_nodes, _relu_output, lambda x: x.device.type == "cpu")
