"""Solutions to the exercises of lesson 17."""

from minigrad import lessons

# 17.1 · Weight each derivative by its sample count. A third for one, against a twelfth for each of four.
added = 4 * 2 + 3 * -4 + 1 * 16
shards = {"mean": added / 8, "sum": added, "times": (1 / 3) / (1 / 3 / 4)}
lessons.check("17.1", shards)

# 17.2 · What depends on the full shard (B, D, F), or draws for it alone (G), differs from one process.
still = {"A": True, "B": False, "C": True, "D": False, "E": True, "F": False, "G": False}
lessons.check("17.2", still)


# 17.3 · Read all, then write, and append the values of all.
def doubling(numbers):
    held, tables, distance = list(numbers), [], 1
    while distance < len(held):
        held = [held[rank] + held[rank ^ distance] for rank in range(len(held))]
        tables.append(held)
        distance *= 2
    return tables


lessons.check("17.3", doubling)

# 17.4 · 2 · 7 messages one after the other, of an eighth of the array, or of all of it.
array, start, rate = 4 * 25e6, 0.0005, 1.25e9
costs = {
    "bytes": 14 * array / 8,
    "ring": 14 * (start + array / 8 / rate),
    "star": 14 * (start + array / rate),
}
lessons.check("17.4", costs)


# 17.5 · Samples a second of many, over those of one, over how many there are.
def efficiency(time, workers, weak):
    rows = 1024 * workers if weak else 1024
    return rows / time(workers, rows) / (1024 / time(1, 1024)) / workers


lessons.check("17.5", efficiency)
