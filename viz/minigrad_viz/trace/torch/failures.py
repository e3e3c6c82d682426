"""The graph of a PyTorch function that raised an error, with the call as its last node."""

from __future__ import annotations

from minigrad_viz.trace.failed_call import add_call_node
from minigrad_viz.trace.names import Namespaces
from minigrad_viz.trace.notation import sanitize
from minigrad_viz.trace.rows import Note
from minigrad_viz.trace.torch.build import trace_torch
from minigrad_viz.trace.torch.recorder import RECORDINGS
from minigrad_viz.trace.trace import Trace

__all__ = ["trace_torch_failure"]


def trace_torch_failure(error: BaseException, namespaces: Namespaces) -> Trace | None:
    """Return the graph of the tensors that the failed function was called with, and the call.

    None if `error` was not raised by a recorded function, or the function has no tensor arguments.
    """
    failures = (recording.failure for recording in RECORDINGS if recording.failure is not None)
    failure = next((failure for failure in failures if failure.error == id(error)), None)
    tensors = [] if failure is None else [x for reference in failure.tensors if (x := reference()) is not None]
    if failure is None or not tensors:
        return None
    trace, indices = trace_torch(list({id(x): x for x in tensors}.values()), namespaces)
    at = add_call_node(trace, "x", failure.name.strip("_"), None, [indices[id(x)] for x in tensors])
    if failure.line is not None:
        trace.lines[at] = sanitize(failure.line)
    text = sanitize(" ".join(f"{type(error).__name__}: {error}".split()))
    trace.outputs, trace.passes = [at], []
    trace.notes.append(Note("error", at, text))
    return trace
