"""What of PyTorch is here: its public names, what differs, and what to write where a name is not here.

`minigrad torch` prints the table, and ``AttributeError`` of a name that is not here quotes it.
"""

from minigrad.pytorch.advice import advice, missing
from minigrad.pytorch.coverage import CoverageRow, look_up, markdown, rows, summary, version

__all__ = ["CoverageRow", "advice", "look_up", "markdown", "missing", "rows", "summary", "version"]
