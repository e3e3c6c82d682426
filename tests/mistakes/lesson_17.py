"""Wrong answers to the exercises of lesson 17, with the expected explanations."""


def shards(mean=1.5, together=12, times=4):
    return {"mean": mean, "sum": together, "times": times}


def still(**other):
    return {"A": True, "B": False, "C": True, "D": False, "E": True, "F": False, "G": False, **other}


def doubling(partner=lambda rank, step: rank ^ 2**step, add_own=True, at_once=False, start=False, steps=None):
    def function(values):
        partial_sums, tables, step = values if at_once == "the list" else list(values), [], 0
        tables = [list(partial_sums)] if start else []
        while 2**step < len(values) if steps is None else step < steps:
            new = partial_sums if at_once else [0.0] * len(partial_sums)
            for rank in range(len(partial_sums)):
                other = partial_sums[partner(rank, step) % len(partial_sums)]
                new[rank] = partial_sums[rank] + other if add_own else other
            partial_sums = new
            tables.append(list(partial_sums))
            step += 1
        return tables

    return function


def costs(sent=175e6, ring=0.147, star=1.127):
    return {"bytes": sent, "ring": ring, "star": star}


def efficiency(strong=None, weak=None):
    """Return the right answer, except for one of its two parts."""
    one = lambda time: time(1, 1024)  # noqa: E731
    strong = strong or (lambda time, n: one(time) / time(n, 1024) / n)
    weak = weak or (lambda time, n: one(time) / time(n, 1024 * n))
    return lambda time, workers, is_weak: (weak if is_weak else strong)(time, workers)


FUNCTIONS = ["17.3", "17.5"]  # whose answer is a function

MISTAKES = [
    ("17.1", [1.5, 12, 4], "the answer should be a dict"),
    ("17.1", {"mean": 1.5, "sum": 12}, "times is missing from the dict"),
    ("17.1", shards(mean=14 / 3), "that is the plain mean. A shard is weighted by its samples"),
    ("17.1", shards(mean=4.67), "that is the plain mean"),
    ("17.1", shards(mean=4), "divide by the eight samples, and not by the three shards"),
    ("17.1", shards(mean=9.5), "the weights are the wrong way round"),
    ("17.1", shards(together=14), "these are derivatives of *means*"),
    ("17.1", shards(together=112), "and not by eight"),
    ("17.1", shards(times=0.25), "upside down"),
    ("17.1", shards(times=1), "four samples share the first third"),
    ("17.1", shards(times=2.67), "that is relative to its right weight"),
    ("17.2", [True] * 7, "the answer should be a dict"),
    ("17.2", still(A="yes"), "A should be True or False"),
    ("17.2", still(A=False), "A does give the same: a layer norm takes its mean over one sample"),
    ("17.2", still(B=True), "B does not give the same: a batch norm takes its mean over the shard"),
    ("17.2", still(C=False), "momentum is computed from gradients"),
    ("17.2", still(D=True), "long ones count less than they should"),
    ("17.2", still(E=False), "one process clips the gradient of the full batch"),
    ("17.2", still(F=True), "the mean of two roots is not the root of the mean"),
    ("17.2", still(G=True), "one process would have drawn another mask"),
    ("17.3", 3, "this is a int, not a function"),
    ("17.3", sum, "return a list of lists; this is a float"),
    ("17.3", doubling(at_once=True), "Read all first, then write"),
    ("17.3", doubling(at_once="the list"), "your function changes the list that it got"),
    ("17.3", doubling(add_own=False), "they swap. Each has to add"),
    ("17.3", doubling(lambda rank, step: rank ^ (step + 1)), "2**k in step k"),
    ("17.3", doubling(lambda rank, step: rank ^ 1), "the partner is r ^ 1 in each step"),
    ("17.3", doubling(lambda rank, step: rank + 2**step), "one sends and another answers"),
    ("17.3", doubling(lambda rank, step: rank + 1), "they add what the next one has"),
    ("17.3", doubling(start=True), "Is the one before them too many?"),
    ("17.3", doubling(steps=0), "there are 1 step(s), until 2**k is the number of workers"),
    ("17.3", lambda values: doubling()(values)[-1], "after *each* step, a list of lists"),
    ("17.3", lambda values: [[0.0] * len(values)] * 3, "there are 1 step(s)"),
    ("17.3", lambda values: [[x + 1 for x in row] for row in doubling()(values)], "worker 0 has 12 after step 0"),
    ("17.4", 175e6, "the answer should be a dict"),
    ("17.4", costs(sent=43.75e6), "Each has four bytes"),
    ("17.4", costs(sent=87.5e6), "that is one way around"),
    ("17.4", costs(sent=200e6), "There are 2 · 7"),
    ("17.4", costs(sent=700e6), "that is what worker 0 sends in a star"),
    ("17.4", costs(sent=175), "give it in bytes"),
    ("17.4", costs(ring=0.14), "14 messages have a latency, too"),
    ("17.4", costs(ring=0.1405), "and not only one"),
    ("17.4", costs(ring=0.0735), "There is a second"),
    ("17.4", costs(ring=1.127), "that is the star"),
    ("17.4", costs(star=1.12), "14 messages have a latency, too"),
    ("17.4", costs(star=0.5635), "It sends the sum back to seven, too"),
    ("17.4", costs(star=0.161), "one after the other at worker 0"),
    ("17.4", costs(star=1.288), "sends nothing to itself"),
    ("17.5", 0.9, "this is a float, not a function"),
    ("17.5", lambda *a: 100 * efficiency()(*a), "that is in percent"),
    ("17.5", lambda *a: 1 / efficiency()(*a), "upside down"),
    ("17.5", efficiency(strong=lambda time, n: time(1, 1024) / time(n, 1024)), "that is the speedup"),
    ("17.5", efficiency(strong=lambda time, n: time(n, 1024) / time(1, 1024)), "upside down"),
    ("17.5", efficiency(strong=lambda time, n: time(1, 1024) / time(n, 1024 * n)), "with 1,024 rows for each"),
    ("17.5", efficiency(weak=lambda time, n: time(1, 1024) / time(n, 1024) / n), "with 1,024 rows for all"),
    ("17.5", efficiency(weak=lambda time, n: time(1, 1024) / time(n, 1024 * n) / n), "Do not divide"),
    ("17.5", efficiency(weak=lambda time, n: n * time(1, 1024) / time(n, 1024 * n)), "that is the speedup in samples"),
]  # fmt: skip
