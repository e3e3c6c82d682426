"""Bitwise operations on bools, integers, and both mixed."""

from samples import distinct_floats, distinct_ints, sample

a, b = distinct_ints(3, 4, high=12), distinct_ints(4, high=7, seed=1) - 3
x = distinct_floats(3, 4)

SAMPLES = [
    sample("&, | and ^", lambda F, a, b: (a & b, a | b, a ^ b), a, b),
    sample("&, | and ^ of bools", lambda F, x: ((x > 0) & (x < 1), (x > 2) | (x < 1), (x > 0) ^ (x > 1)), x),
    sample("& of bools and integers", lambda F, a, b: (a > 3) & b, a, b),
    sample("with scalars on either side", lambda F, a: (a & 3, 3 | a, a ^ True, 5 & a), a),
    sample("~", lambda F, a, x: (~a, ~(x > 0), F.bitwise_not(a)), a, x),
    sample("functions", lambda F, a, b: (F.bitwise_and(a, b), F.bitwise_or(a, 2), F.bitwise_xor(a, b)), a, b),
]
