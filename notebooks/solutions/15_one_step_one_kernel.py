"""Solutions to the exercises of lesson 15."""

import re

import minigrad as mg
from minigrad import lessons

# 15.1 · Reads and writes are 2 + 1, 1 + 1 and 2 + 1 arrays: 32 bytes for each n. Three calls cost as much as 900,000.
prices = {"three calls": 32_000_000, "fused": 12_000_000, "n": 3 * 30 * 10_000 / 32}
lessons.check("15.1", prices)


# 15.2 · First the names, then the question whether this was computed already.
def each_once(program):
    first, instead, kept = {}, {}, []
    for op, reads, out in program:
        reads = tuple(instead.get(x, x) for x in reads)
        if (op, reads) in first:
            instead[out] = first[op, reads]
        else:
            first[op, reads] = out
            kept.append((op, reads, out))
    return kept


lessons.check("15.2", each_once)


# 15.3 · \b is the edge of a word: t3 is not found in t31. Parentheses keep the first snippet together.
def fused(first, second):
    text, name = first
    return re.sub(rf"\b{name}\b", f"({text})", second[0])


lessons.check("15.3", fused)

# 15.4 · Arguments and rates are read at each call; shapes, modules, globals and closure variables are guarded.
again = {"A": False, "B": True, "C": False, "D": True, "E": True, "F": True}
lessons.check("15.4", again)


# 15.5 · The branch becomes an operation, and the value that was read stays a tensor.
def descend(w, x, rate):
    w.grad = None
    loss = ((w - x) ** 2).sum()
    loss.backward()
    rate = mg.where(loss < 1, rate / 2, rate)
    with mg.no_grad():
        w.sub_(w.grad * rate)
    return loss


lessons.check("15.5", descend)
