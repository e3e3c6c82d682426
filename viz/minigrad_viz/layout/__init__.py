"""Graph layout: columns of boxes, and frames around the parts of open blocks (`nesting`)."""

from minigrad_viz.layout.layered import Layout, Ports, layout

__all__ = ["Layout", "Ports", "layout"]
