"""The output format of benchmarks and `results.txt`: what | figure | limit | held or NOT | comment."""

from __future__ import annotations

__all__ = ["row"]


def row(
    what: str, figure: str, bar: str | None = None, *, at_least: bool = False, wrong: bool = False, more: str = ""
) -> bool:
    """Print a line; return whether the figure misses its limit, or the results are `wrong`, which counts as a miss.

    >>> row("add, NumPy", "1.22", "0.9", at_least=True, more="results differ by 5e-08")
    add, NumPy | 1.22 | at least 0.9 | held | results differ by 5e-08
    False
    >>> row("a row", "9.5 ns", "8"), row("a pass", "1,000", wrong=True)
    a row | 9.5 ns | at most 8 | NOT
    a pass | 1,000 | – | NOT
    (True, True)
    """
    missed, asked = wrong, "–"
    if bar is not None:
        number, limit = (float(text.split()[0].replace(",", "")) for text in (figure, bar))
        missed |= number < limit if at_least else number > limit
        asked = f"{'at least' if at_least else 'at most'} {bar}"
    verdict = "NOT" if missed else "held" if bar is not None else "–"
    print(" | ".join([what, figure, asked, verdict, *([more] if more else [])]), flush=True)
    return missed
