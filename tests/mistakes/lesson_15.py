"""Wrong answers to the exercises of lesson 15, with the expected explanations."""

import re

import minigrad as mg


def prices(three=32e6, one=12e6, n=28_125):
    return {"three calls": three, "fused": one, "n": n}


def each_once(replace=True, before=False, op_only=False, ordered=True, in_place=False):
    def function(program):
        first, instead, remaining = {}, {}, []
        for op, reads, out in program:
            new = tuple(instead.get(x, x) for x in reads) if replace else reads
            key = op if op_only else (op, reads if before else new)
            key = key if ordered or op_only else (op, frozenset(new))
            if key in first:
                instead[out] = first[key]
            else:
                first[key] = out
                remaining.append((op, new, out))
        if in_place:
            program[:] = remaining
        return remaining

    return function


def replaced_once(first, second):
    return second[0].replace(first[1], f"({first[0]})", 1)


def descend(read=False, ask=False, swap=False, always=False, keep=False, late=False, uphill=False, still=False):
    def function(w, x, rate):
        if not keep:
            w.grad = None
        loss = ((w - x) ** 2).sum()
        loss.backward()
        if ask:
            rate = rate / 2 if loss < 1 else rate
        elif always:
            rate = rate / 2
        else:
            rate = mg.where(loss > 1, rate / 2, rate) if swap else mg.where(loss < 1, rate / 2, rate)
        with mg.no_grad():
            if not still:
                w.sub_(w.grad * (rate.item() if read else -rate if uphill else rate))
            return ((w - x) ** 2).sum() if late else loss

    return function


def nothing_back(w, x, rate):
    descend()(w, x, rate)
    return 1.0


def again(**other):
    return {"A": False, "B": True, "C": False, "D": True, "E": True, "F": True} | other


FUNCTIONS = ["15.2", "15.3", "15.5"]  # whose answer is a function

MISTAKES = [
    ("15.1", prices(three=28e6), "Two of the calls read x, and each has to load it"),
    ("15.1", prices(three=36e6), "r is a Python number, and no array"),
    ("15.1", prices(three=20e6), "that is what they read"),
    ("15.1", prices(three=12e6), "that is what they write"),
    ("15.1", prices(three=8e6), "Each has four bytes"),
    ("15.1", prices(three=32), "Give it in bytes, for a million"),
    ("15.1", prices(one=8e6), "the result has to be written"),
    ("15.1", prices(one=16e6), "x is read once"),
    ("15.1", prices(one=20e6), "only x, y and the result are in memory"),
    ("15.1", prices(one=32e6), "In one, the difference never goes to memory"),
    ("15.1", prices(n=9_400), "that is the price of one call"),
    ("15.1", prices(n=75_000), "The three calls transfer 32"),
    ("15.1", prices(n=900_000), "Divide by the bytes for each element"),
    ("15.1", prices(n=112_500), "These are 32 bytes"),
    ("15.1", prices(n=14_000), "Is a factor missing"),
    ("15.1", {"three calls": 32e6, "n": 28_125}, "fused is missing from the dict"),
    ("15.1", 32e6, "the answer should be a dict"),
    ("15.2", lambda program: list(program), "t3 computes the same as t2. It should be left out"),
    ("15.2", each_once(replace=False), "t4 still reads t3, which no row writes any longer. Read t2 instead"),
    ("15.2", each_once(before=True), "Replace first, then check if such a row exists"),
    ("15.2", each_once(op_only=True), "t3 = sub(t1, t0) is missing, and has to stay"),
    ("15.2", each_once(ordered=False), "and their order count"),
    ("15.2", each_once(in_place=True), "your function changes the program that it got"),
    ("15.2", lambda program: len(program), "return a list of rows; this is a int"),
    ("15.2", lambda program: [row[0] for row in program], "should be an operation, a tuple of what it reads"),
    ("15.2", lambda program: each_once()(program)[::-1], "It should be t2 = mul(t0, t1); t4 = add(t2, t2)"),
    ("15.3", lambda first, second: second[0].replace(first[1], first[0]), "without parentheses the operators"),
    ("15.3", lambda first, second: second[0].replace(first[1], f"({first[0]})"), "t31 is another name"),
    ("15.3", replaced_once, "still reads t3. Replace it everywhere"),
    ("15.3", lambda first, second: second[0], "still reads t3. Put its snippet there"),
    ("15.3", lambda first, second: first[0], "that is the first alone"),
    ("15.3", lambda first, second: re.sub(r"\bt4\b", f"({first[0]})", second[0]), "still reads t3"),
    ("15.3", lambda first, second: (first[0], second[0]), "return one string; this is a tuple"),
    ("15.3", lambda first, second: f"{second[1]} = ({first[0]})", "which is no expression"),
    ("15.3", lambda first, second: f"fused({first[0]})", "It should consist of names, numbers and"),
    ("15.3", lambda first, second: f"({first[0]}) * {second[1]}", "t5 is in neither of the two"),
    ("15.4", again(A=True), "A is not retraced: other values in the same shape"),
    ("15.4", again(B=False), "B is retraced: another shape is another trace"),
    ("15.4", again(C=True), "a schedule works"),
    ("15.4", again(D=False), "the modules that a step uses are guarded"),
    ("15.4", again(E=False), "E is retraced: globals and closure variables that the step reads"),
    ("15.4", again(F=False), "guards cover the functions that a step calls"),
    ("15.4", again(F="frozen"), "F should be True or False, and this is 'frozen'"),
    ("15.5", descend(read=True), "it cannot be captured: jit: data-dependent control flow: `if` reads a tensor"),
    ("15.5", descend(ask=True), "it cannot be captured: jit: data-dependent control flow: `if` reads a tensor"),
    ("15.5", descend(swap=True), "so the rate should be 0.125"),
    ("15.5", descend(always=True), "so the rate should be 0.125"),
    ("15.5", descend(keep=True), "in step 1"),
    ("15.5", descend(late=True), "that is the loss after the update"),
    ("15.5", descend(uphill=True), "goes uphill. Subtract"),
    ("15.5", descend(still=True), "has not changed"),
    ("15.5", nothing_back, "the loss that you return = 1"),
    ("15.5", 3.0, "not a function. Pass descend itself"),
]  # fmt: skip
