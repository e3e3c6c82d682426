"""Names of the nodes of a PyTorch graph: the variables, attributes and modules of the user that hold the tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from minigrad_viz.trace.names import Namespaces, names_of
from minigrad_viz.trace.torch.graph import Graph, NodeRef
from minigrad_viz.trace.torch.internals import sequence_number
from minigrad_viz.trace.torch.recorder import RECORDINGS

__all__ = ["tensor_names"]


def tensor_names(graph: Graph, node_of: Callable[[NodeRef], Any], namespaces: Namespaces) -> dict[Any, str]:
    """Return the names of nodes, by their keys in the builder.

    A variable names the node that computed its tensor, even if the tensor was modified in-place since.
    """
    values: dict[int, NodeRef] = {}
    for key, step in graph.steps.items():
        for output, value in step.outputs.items():
            values[id(value)] = NodeRef(key, output)

    values |= {id(value): NodeRef(key) for key, value in graph.values.items() if key[0] == "value"}

    def node_of_tensor(x: Any) -> Any:
        if not isinstance(x, torch.Tensor):
            return None
        if ("leaf", id(x)) in graph.leaves:
            return x
        if x.grad_fn is not None:
            source = NodeRef(("node", sequence_number(x.grad_fn)), x.output_nr)
            return node_of(source) if source.key in graph.steps else None
        for recording in RECORDINGS:
            value = recording.value_of(x)
            if value is not None and id(value) in values:
                return node_of(values[id(value)])
        return None

    nodes = [*graph.steps, *(x if isinstance(x, torch.Tensor) else key for key, x in graph.leaves.items())]
    nodes += [node for node in (node_of(source) for source in values.values()) if node not in set(graph.steps)]
    return names_of(nodes, namespaces, lambda node: None, node_of_tensor)
