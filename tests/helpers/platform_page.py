"""Write the table of `minigrad doctor --table` into book/platforms.md (`make platforms`)."""

from pathlib import Path

__all__ = ["END", "PAGE", "START", "replace_table"]

PAGE = Path(__file__).parents[2] / "book" / "platforms.md"
START, END = "<!-- made by make platforms -->\n", "<!-- until here -->\n"


def replace_table(text: str, table: str) -> str:
    """Return the page with another table between the markers. Raises ValueError if a marker is missing."""
    before, start, rest = text.partition(START)
    _, end, after = rest.partition(END)
    if not start or not end:
        raise ValueError(f"{PAGE.name} must contain {START.strip()!r} and {END.strip()!r}, each on a line of its own.")
    return f"{before}{start}{table}{end}{after}"


if __name__ == "__main__":
    from minigrad.cli.platforms import platform_table

    PAGE.write_text(replace_table(PAGE.read_text(encoding="utf-8"), platform_table()), encoding="utf-8")
