"""The output format of benchmarks and `results.txt`: what | figure | limit | held or NOT | comment."""

from __future__ import annotations

__all__ = ["row"]


def row(
    label: str,
    figure: str,
    bound: str | None = None,
    *,
    at_least: bool = False,
    is_wrong: bool = False,
    comment: str = "",
) -> bool:
    """Print a line; return whether the figure misses its limit, or the results are `is_wrong`, which counts as a miss.

    >>> row("add, NumPy", "1.22", "0.9", at_least=True, comment="results differ by 5e-08")
    add, NumPy | 1.22 | at least 0.9 | held | results differ by 5e-08
    False
    >>> row("a row", "9.5 ns", "8"), row("a pass", "1,000", wrong=True)
    a row | 9.5 ns | at most 8 | NOT
    a pass | 1,000 | – | NOT
    (True, True)
    """
    missed, limit_text = is_wrong, "–"
    if bound is not None:
        value, limit = (float(text.split()[0].replace(",", "")) for text in (figure, bound))
        missed |= value < limit if at_least else value > limit
        limit_text = f"{'at least' if at_least else 'at most'} {bound}"
    verdict = "NOT" if missed else "held" if bound is not None else "–"
    print(" | ".join([label, figure, limit_text, verdict, *([comment] if comment else [])]), flush=True)
    return missed
