"""`make torture`: run every campaign, print a line for each, and what failed. See torture/__init__.py."""

from __future__ import annotations

import argparse
import datetime
import sys
from pathlib import Path

from torture import campaigns
from torture._running import Outcome, outcome

RESULTS = Path(__file__).parent / "results.txt"
SHOWN = 20  # failures of a campaign that are printed


def line(name: str, what: str, found: Outcome) -> str:
    """A line of the table: name, what was tried, how many cases, of these not on this machine, and how many failed."""
    return " | ".join([name, what, f"{found.tried:,}", f"{found.skipped:,}", f"{len(found.failures):,}"])


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m torture", description=__doc__)
    parser.add_argument("--only", default="", help="campaigns with this in their name, or a theme")
    parser.add_argument("--case", type=int, help="this case alone")
    parser.add_argument("--share", type=float, default=1.0, help="of the cases")
    parser.add_argument("--write", action="store_true", help="keep the table, which the book shows")
    options = parser.parse_args()
    missed, table = False, [f"# {datetime.date.today()}"]
    for theme, found in campaigns().items():
        chosen = [one for one in found if options.only in one.name or options.only == theme]
        table += ["", f"# {theme}"] if chosen else []
        for one in chosen:
            cases = range(max(1, round(one.many * options.share)))
            result = outcome(one, cases if options.case is None else range(options.case, options.case + 1))
            table.append(line(one.name, one.what, result))
            print(f"{table[-1]} | {result.seconds:.0f} s", flush=True)
            for text in result.failures[:SHOWN]:
                print(f"    {text}", flush=True)
            missed |= bool(result.failures)
    if options.write:
        RESULTS.write_text("\n".join(table) + "\n", encoding="utf-8")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
