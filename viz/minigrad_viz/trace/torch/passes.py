"""The backward passes of a trace of PyTorch tensors: those that the user ran, otherwise passes of our own."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from minigrad_viz.trace.array_summary import ArraySummary
from minigrad_viz.trace.columns import Pass
from minigrad_viz.trace.notation import sanitize
from minigrad_viz.trace.rows import Note, TensorData
from minigrad_viz.trace.torch.backward import BackwardEvent, BackwardPass, run_backward
from minigrad_viz.trace.torch.builder import TorchBuilder
from minigrad_viz.trace.torch.internals import disable_function_modes, has_hooks, sequence_number
from minigrad_viz.trace.torch.recorder import RECORDINGS

__all__ = ["add_passes"]


def add_passes(builder: TorchBuilder, roots: Sequence[torch.Tensor]) -> None:
    """Append a backward pass from each of `roots` to the trace, and set the gradients that the user's passes found."""
    trace = builder.trace
    for root, source in zip(roots, builder.graph.roots, strict=True):
        index = builder.index_of(source)
        run = Pass(index, trace)
        if root.grad_fn is None:
            if trace.states[index] == "b":
                trace.passes.append(run)
            continue
        observed = _observed_pass(root)
        try:
            backward_pass = observed or _own_pass(root)
        except RuntimeError as error:
            trace.notes.append(Note("freed", index, _explain_failure(trace.title(index), error)))
            continue
        if observed is None:
            _note_hooks(builder)
        _PassWriter(builder, run).write(backward_pass)
        trace.passes.append(run)
        if observed is not None:
            _set_gradients(builder, run)


def _note_hooks(builder: TorchBuilder) -> None:
    """Report tensors with hooks, which a pass of our own does not call."""
    trace = builder.trace
    hooked = sorted({index for x, index in builder.tensors_with_indices() if has_hooks(x)})
    modules = [trace.blocks[k].module for k in trace.modules if trace.blocks[k].module is not None]
    named = [type(module).__name__ for module in modules if has_hooks(module)]
    if named:
        text = f"{named[0]} has a backward hook, which may modify gradients: the backward pass shown runs no hooks."
        trace.notes.append(Note("hook", None, text))
    if hooked and not any(note.kind == "hook" for note in trace.notes):
        subject = f"{trace.title(hooked[0])} has a hook" if len(hooked) == 1 else f"{len(hooked)} nodes have hooks"
        text = f"{subject}, which may modify its gradient: the backward pass shown runs no hooks."
        trace.notes.append(Note("hook", hooked[0], text, tuple(hooked)))


def _observed_pass(root: torch.Tensor) -> BackwardPass | None:
    number = sequence_number(root.grad_fn)
    runs = [run for recording in RECORDINGS for run in recording.observer.passes.values()]
    passes = [run for run in runs if run.root == number and run.is_complete]
    return passes[-1] if passes and passes[-1].events else None


def _own_pass(root: torch.Tensor) -> BackwardPass:
    """Run the backward pass from `root`, or from the sum of its elements, and restore the random state."""
    devices = sorted({root.device.index or 0}) if root.is_cuda else []
    with torch.no_grad(), torch.random.fork_rng(devices), disable_function_modes():
        return run_backward(root.grad_fn, root.output_nr, torch.ones_like(root))


def _explain_failure(title: str, error: RuntimeError) -> str:
    text = sanitize(str(error).splitlines()[0])
    if "second time" in text:
        return (
            f"The backward pass of {title} cannot be shown: its graph was freed by backward(). Compute it within "
            "`with minigrad_viz.record():`, which records the pass that backward() runs."
        )
    return f"The backward pass of {title} cannot be shown: {text}"


class _PassWriter:
    """Writes the events of a pass into the columns of the trace's pass."""

    def __init__(self, builder: TorchBuilder, run: Pass) -> None:
        self._builder, self._run = builder, run
        self._upstream: dict[Any, Any] = {}  # the gradients of each step's output
        self._totals: dict[int, Any] = {}
        self._split: set[Any] = set()  # steps whose outputs' gradients were passed on

    def write(self, backward_pass: BackwardPass) -> None:
        """Append the events that flow over edges of the trace."""
        for event in backward_pass.events:
            self._write(event)

    def _write(self, event: BackwardEvent) -> None:
        builder = self._builder
        step = builder.step_of_node.get(event.node)
        if step is None:
            return
        if event.node == step.final.key[1]:
            self._upstream.setdefault(step.final.key, event.upstream)
            if len(step.used_outputs) > 1 and step.final.key not in self._split:
                self._write_outputs(step, event.upstream)
        edge = builder.edge_of.get((event.node, event.slot))
        if edge is None:
            return  # inside a node of the trace
        grads = self._upstream.get(step.final.key, event.upstream)
        upstream = next((grads[k] for k in step.used_outputs if k < len(grads) and grads[k] is not None), None)
        if len(step.used_outputs) > 1:
            upstream = self._totals.get(builder.indices[step.final.key], upstream)
        self._append(edge, upstream, event.contribution, event.total)

    def _write_outputs(self, step: Any, grads: tuple[Any, ...]) -> None:
        """Append an event from each output of a step to the step; together they are its gradient."""
        builder = self._builder
        self._split.add(step.final.key)
        shaped = [builder.trace.tensors[builder.picks[step.final.key, output]] for output in step.used_outputs]
        total: dict[int, Any] = {}
        for output in step.used_outputs:
            if output >= len(grads) or grads[output] is None:
                continue
            edge = builder.trace.start[builder.picks[step.final.key, output]]
            total[output] = grads[output]
            parts = [{output: grads[output]}, total]
            contribution, sum_so_far = (_joined([part.get(k) for k in step.used_outputs], shaped) for part in parts)
            self._append(edge, grads[output], contribution, sum_so_far)

    def _append(self, edge: int, upstream: Any, contribution: Any, total: Any) -> None:
        run = self._run
        run.edge.append(edge)
        run.upstream.append(upstream)
        run.contribution.append(contribution)
        run.total.append(total)
        self._totals[self._builder.trace.operand[edge]] = total


def _joined(grads: list[Any], shaped: list[TensorData]) -> Any:
    """Return the gradients of several outputs as one array, with zeros for those that have none yet: stacked if their
    shapes agree, otherwise concatenated. Summarised gradients give a summary.
    """
    known = [grad for grad in grads if grad is not None]
    if any(isinstance(grad, ArraySummary) for grad in known):
        return ArraySummary.join(grads, [data.shape for data in shaped])
    arrays = [
        np.zeros(data.shape, known[0].dtype) if grad is None else grad for grad, data in zip(grads, shaped, strict=True)
    ]
    if len({x.shape for x in arrays}) == 1:
        return np.stack(arrays)
    return np.concatenate([x.reshape(-1) for x in arrays])


def _set_gradients(builder: TorchBuilder, run: Pass) -> None:
    """Set the gradients of the nodes that the user's pass went through, which PyTorch does not keep."""
    trace, totals = builder.trace, defaultdict[int, Any](lambda: None)
    totals.update(trace.totals(run))
    for index, total in totals.items():
        if trace.kinds[index] == "o" and trace.states[index] == "n" and total is not None:
            trace.states[index] = "f"
            shape, dtype, _ = trace.tensors[index]
            trace.grads[index] = np.ones(shape, _numpy_name(dtype)) if index == run.root else total


def _numpy_name(dtype: str) -> str:
    return dtype if hasattr(np, dtype) else "float32"
