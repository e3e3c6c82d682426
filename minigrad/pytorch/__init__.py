"""Coverage of PyTorch's API: its public names, the differences, and replacements for missing names.

`minigrad torch` prints the table, and the ``AttributeError`` for a missing name quotes it.
"""

from minigrad.pytorch.advice import missing_name_message, replacement_for
from minigrad.pytorch.coverage import CoverageRow, look_up, markdown, rows, summary, version

__all__ = [
    "CoverageRow",
    "look_up",
    "markdown",
    "missing_name_message",
    "replacement_for",
    "rows",
    "summary",
    "version",
]
