"""The trace of a PyTorch object: tensors, or a model's call with its modules as blocks."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any

import torch

from minigrad.core.errors import ArgumentError
from minigrad_viz.trace.models import without_loss_alarms
from minigrad_viz.trace.names import Namespaces
from minigrad_viz.trace.torch.arguments import tensors_in
from minigrad_viz.trace.torch.build import trace_torch
from minigrad_viz.trace.torch.failures import trace_torch_failure
from minigrad_viz.trace.torch.recorder import Recorder
from minigrad_viz.trace.trace import Trace

__all__ = ["trace_torch_object"]


def trace_torch_object(x: Any, inputs: tuple[Any, ...], namespaces: Namespaces) -> tuple[Trace, dict[Any, int]]:
    """Return the trace of tensors, or of ``x(*inputs)`` if `x` is a model, and the index of each leaf and step."""
    if isinstance(x, torch.nn.Module):
        return _trace_model(x, inputs, namespaces)
    roots = [*x, *inputs] if isinstance(x, list | tuple) else [x, *inputs]
    return trace_torch(list({id(root): root for root in roots}.values()), namespaces)


def _trace_model(
    model: torch.nn.Module, inputs: tuple[Any, ...], namespaces: Namespaces
) -> tuple[Trace, dict[Any, int]]:
    """Return the trace of a model's call. The model is called in its current mode; its buffers and the random state are
    restored. If it raises an error, the trace ends in the call that failed.
    """
    name = type(model).__name__
    if not inputs:
        raise ArgumentError(
            f"draw: {name} is a model, whose graph depends on its input.\n"
            "  Pass an input as well, as in draw(model, torch.zeros(1, 3, 32, 32))."
        )
    buffers = [(x, x.detach().clone()) for x in model.buffers()]
    devices = sorted({x.device.index or 0 for x in (*model.parameters(), *model.buffers()) if x.is_cuda})
    try:
        with torch.random.fork_rng(devices), torch.enable_grad(), Recorder():
            output = model(*inputs)
    except Exception as error:
        failure = trace_torch_failure(error, (*namespaces, _input_names(model, inputs)))
        if failure is None:
            raise
        return without_loss_alarms(failure), {}
    else:
        outputs = list(tensors_in(output))
        if not outputs:
            raise ArgumentError(f"draw: {name} returned no tensor, so there is nothing to draw.")
        output_names = {"output": outputs[0] if len(outputs) == 1 else outputs}
        names = (*map(_tensors_and_modules, namespaces), _input_names(model, inputs), output_names)
        trace, indices = trace_torch(outputs, (*names, *namespaces))
        return without_loss_alarms(trace), indices
    finally:
        with torch.no_grad():
            for buffer, saved in buffers:
                buffer.copy_(saved)


def _tensors_and_modules(namespace: Mapping[str, Any]) -> dict[str, Any]:
    """Return the variables that are tensors or modules, whose names precede those of `forward`'s parameters."""
    return {name: x for name, x in list(namespace.items()) if isinstance(x, torch.Tensor | torch.nn.Module)}


def _input_names(model: torch.nn.Module, inputs: tuple[Any, ...]) -> dict[str, Any]:
    """Return the inputs by the names of `forward`'s parameters, for inputs that no variable of the user names."""
    try:
        return dict(inspect.signature(model.forward).bind(*inputs).arguments)
    except (TypeError, ValueError):  # `forward` raises the error itself
        return {}
