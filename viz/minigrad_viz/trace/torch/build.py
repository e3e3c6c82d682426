"""Build the trace of PyTorch tensors, or of a model with its inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch

from minigrad_viz.trace.alarms import add_alarms
from minigrad_viz.trace.names import Namespaces
from minigrad_viz.trace.rows import Note
from minigrad_viz.trace.torch.builder import TorchBuilder
from minigrad_viz.trace.torch.graph import build_graph
from minigrad_viz.trace.torch.groups import join_steps
from minigrad_viz.trace.torch.names import tensor_names
from minigrad_viz.trace.torch.passes import add_passes
from minigrad_viz.trace.torch.summaries import copy_to_host
from minigrad_viz.trace.trace import Trace

__all__ = ["trace_torch"]


def trace_torch(roots: Sequence[torch.Tensor], namespaces: Namespaces) -> tuple[Trace, dict[Any, int]]:
    """Return the trace of the graph that computes `roots`, and the index of each node, by the id of its tensor, or of
    tensors that still have its value.
    """
    graph = build_graph(roots)
    builder = TorchBuilder(graph)
    for step in join_steps(graph):
        builder.add_step(step)
    outputs = [builder.index_of(source) for source in graph.roots]
    for root, index in zip(roots, outputs, strict=True):
        if builder.trace.tensors[index].array is None:
            builder.trace.tensors[index] = builder.trace.tensors[index]._replace(array=copy_to_host(root))
    names = tensor_names(graph, builder.node_of_source, namespaces)
    builder.finish(builder.resolve_names(names, namespaces), outputs)
    for node in sorted(builder.hidden_writes):
        text = (
            f"{builder.trace.title(node)} was modified in-place after it was computed, through a tensor from detach() "
            "or .data that shares its memory: later operations read values that are not in this graph."
        )
        builder.trace.notes.append(Note("overwritten", node, text, (node,)))
    add_passes(builder, roots)
    add_alarms(builder.trace)
    indices = {id(x): index for x, index in builder.tensors_with_indices()} | dict(
        zip(map(id, roots), outputs, strict=True)
    )
    return builder.trace, indices
