"""See inside PyTorch: traces of models and losses whose forward and backward passes PyTorch computes.

`recorder` observes the forward pass, `backward` observes or runs the backward pass, `graph` joins the two, and `build`
makes a trace of the result. Nothing here is imported before a PyTorch object is drawn or recorded.
"""

from minigrad_viz.trace.torch.failures import trace_torch_failure
from minigrad_viz.trace.torch.graph import is_computed, operations_since
from minigrad_viz.trace.torch.models import trace_torch_object
from minigrad_viz.trace.torch.recorder import Recorder

__all__ = ["Recorder", "is_computed", "operations_since", "trace_torch_failure", "trace_torch_object"]
