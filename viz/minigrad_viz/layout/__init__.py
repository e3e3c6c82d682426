"""Graph layout in columns of boxes, with frames around the contents of open blocks."""

from minigrad_viz.layout.layered import Layout, Ports, layout

__all__ = ["Layout", "Ports", "layout"]
