"""`python -m torture`: run every campaign, and print a line for each and its failures. See torture/__init__.py."""

from __future__ import annotations

import argparse
import datetime
import os
import platform
import sys
from pathlib import Path

from torture import campaigns
from torture._runner import CampaignResult, run_campaign

RESULTS = Path(__file__).parent / "results.txt"
MAX_FAILURES = 20  # failures of a campaign that are printed


def format_row(name: str, description: str, result: CampaignResult) -> str:
    """Return a row of the table: name, what is tested, and the numbers of cases run, skipped and failed."""
    return " | ".join([name, description, f"{result.ran:,}", f"{result.skipped:,}", f"{len(result.failures):,}"])


def store_rows(theme: str, lines: list[str]) -> None:
    """Replace a theme's rows in the table, with the date and the machine."""
    machine = f"{os.cpu_count()} cores, {platform.machine()}, CPython {platform.python_version()}"
    new = "\n".join([f"# {theme}, {datetime.date.today()}, {machine}", *lines])
    old = RESULTS.read_text(encoding="utf-8").strip().split("\n\n") if RESULTS.exists() else []
    parts = sorted([*(part for part in old if not part.startswith(f"# {theme}, ")), new])
    RESULTS.write_text("\n\n".join(parts) + "\n", encoding="utf-8")


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("--only", default="", help="a theme, or campaigns with this in their name")
    parser.add_argument("--case", type=int, help="run only this case")
    parser.add_argument("--share", type=float, default=1.0, help="fraction of the cases to run")
    parser.add_argument("--write", action="store_true", help="store the rows of complete themes, which the book shows")
    options = parser.parse_args()
    has_failures = False
    for theme, theme_campaigns in campaigns().items():
        lines = []
        for one in theme_campaigns:
            if options.only not in one.name and options.only != theme:
                continue
            cases = range(max(1, round(one.count() * options.share)))
            result = run_campaign(one, cases if options.case is None else range(options.case, options.case + 1))
            lines.append(format_row(one.name, one.description, result))
            print(f"{lines[-1]} | {result.seconds:.0f} s", flush=True)
            for text in result.failures[:MAX_FAILURES]:
                print(f"    {text}", flush=True)
            has_failures |= bool(result.failures)
        if options.write and options.case is None and len(lines) == len(theme_campaigns):
            store_rows(theme, lines)
    return 1 if has_failures else 0


if __name__ == "__main__":
    sys.exit(main())
