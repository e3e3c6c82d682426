"""`python -m adversary`: run cases from a seed, and print the outcomes of each kind."""

from __future__ import annotations

import argparse
import sys
from collections import Counter, defaultdict

from adversary import kinds
from adversary._cases import EQUAL, RAISED, REFUSED, RETRACED, STALE, Case, case_of_kind, case_of_number

VERDICTS = (EQUAL, REFUSED, STALE, RAISED, RETRACED)


def case_named(name: str, device: str) -> Case:
    """Return the case of this name: a number, or a kind and a seed. Raises KeyError or ValueError if there is none."""
    kind, _, seed = name.rpartition("#")
    kinds_by_name = {str(one): one for one in kinds()}
    return case_of_kind(kinds_by_name[kind], int(seed), device) if kind else case_of_number(int(seed))


def select_cases(options: argparse.Namespace) -> list[Case]:
    """Return the requested cases."""
    if options.case:
        return [case_named(options.case, options.device)]
    selected = [one for one in kinds() if options.kind in str(one)]
    if options.cases:
        return [case_of_number(options.seed + k) for k in range(options.cases)]
    return [
        case_of_kind(one, seed, options.device) for one in selected for seed in range(options.seed, options.seed + 2)
    ]


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m adversary", description=__doc__)
    parser.add_argument("--cases", type=int, default=0, help="number of random cases; by default each kind separately")
    parser.add_argument("--seed", type=int, default=0, help="seed of the first case")
    parser.add_argument("--case", default="", help="run only this case: a number, or KIND#SEED")
    parser.add_argument("--kind", default="", help="kinds whose name contains this, each separately")
    parser.add_argument("--device", default="numpy", help="device of the cases of single kinds")
    parser.add_argument("--quiet", action="store_true", help="print only the table")
    options = parser.parse_args()
    table: dict[str, Counter[str]] = defaultdict(Counter)
    total: Counter[str] = Counter()
    for case in select_cases(options):
        outcome = case.run()
        total[outcome.verdict] += 1
        for kind in case.kinds:
            table[str(kind)][outcome.verdict] += 1
        if outcome.failed and not options.quiet:
            print(f"{case}: {outcome.verdict}\n    {outcome.explanation}", flush=True)
    width = max(map(len, table))
    print(f"{'kind':{width}} | {' | '.join(VERDICTS)}")
    for name, counts in sorted(table.items()):
        columns = [f"{counts[verdict] or '':>{len(verdict)}}" for verdict in VERDICTS]
        print(f"{name:{width}} | {' | '.join(columns)}")
    print(f"{total.total():,} cases of {len(table)} kinds: {', '.join(f'{total[one]:,} {one}' for one in VERDICTS)}")
    return int(any(total[verdict] for verdict in VERDICTS[2:]))


if __name__ == "__main__":
    sys.exit(main())
