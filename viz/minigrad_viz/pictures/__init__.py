"""Renderings of traces: SVG, PNG, PDF, TikZ, HTML, text, Graphviz and animations."""
