"""Formatting of reports."""

from __future__ import annotations

from minigrad.backends.limits import format_size
from minigrad.core.storage import Transfers

__all__ = ["format_table", "format_transfers"]


def format_transfers(uploads: Transfers, downloads: Transfers) -> list[str]:
    """Return one line each with the number and size of the uploads and the downloads."""
    directions = {"uploads": uploads, "downloads": downloads}
    return [f"{direction}: {times:,}, {format_size(size)}" for direction, (times, size) in directions.items()]


def format_table(rows: list[list[str]]) -> list[str]:
    """Format rows of strings as lines. The first column is left-aligned, the others are right-aligned."""
    widths = [max(len(row[k]) for row in rows) for k in range(len(rows[0]))]
    return [
        "  ".join(x.ljust(w) if not k else x.rjust(w) for k, (x, w) in enumerate(zip(row, widths, strict=True)))
        for row in rows
    ]
