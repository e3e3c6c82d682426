"""A trace as a picture, a page, a table of text, or a drawing by Graphviz: what needs no script to be seen."""
