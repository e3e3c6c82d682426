"""The player formats numbers and formulas as Python does, character by character."""

import math
import random
import struct

import minigrad as mg
from minigrad.backends.formula import Formula, expression, local_derivative, product
from minigrad.backends.formula.writing import HOLES
from minigrad_viz.trace import notation
from minigrad_viz.trace.templates import local_template, op_data, product_template, template
from player import coded, compare


def floats(count, seed=0):
    generator = random.Random(seed)
    yield from (0.0, -0.0, math.inf, -math.inf, math.nan, 1e5, 999999.5, 1e6, 0.0001, 0.00001, 5e-324, 1.7e308)
    for k in range(count):
        bits = struct.unpack("<d", generator.getrandbits(64).to_bytes(8, "little"))[0]  # any float
        short = round(generator.uniform(-1, 1) * 10 ** generator.randint(-6, 8), generator.randint(0, 6))
        half = (generator.randint(100000, 9999999) + 0.5) / 2 ** generator.randint(0, 4)  # ties are rounded to even
        yield (bits, short, half, generator.gauss(0, 1))[k % 4]


def test_numbers_are_written_as_python_writes_them():
    found = list(floats(10_000))
    expected = [[notation.number(x), notation.pretty(x), notation.brief(x)] for x in found]
    assert compare(numbers=[coded(x) for x in found])["numbers"] == expected


def test_names_are_shortened_as_python_shortens_them():
    names = [
        (name, limit)
        for name in ("w", "weight of the petal₁₂", "重み" * 8, "a😀" * 9, "₁₂₃₄₅₆")
        for limit in (4, 9, 24)
    ]
    found = compare(names=names, subscripts=[0, 12, 9075])
    assert found["names"] == [notation.shorten_name(*pair) for pair in names]
    assert found["subscripts"] == [notation.subscript(n) for n in (0, 12, 9075)]


NAMES = [
    "x",
    "w_1",
    "loss",
    "v₁₂",
    "x1*w1 + b",
    "-x",
    "x²",
    "2",
    "3x",
    "|u|",
    "<b>&'\"",
    "petal length",
    "重み",
    "½",
    "",
]
NUMBERS = [2.0, -3.0, 0.5, -1.5, 1e-7, -2.5e-6, 3e20, 0.0, -0.0, 1.0, 12.0, -1.0, math.inf, -math.inf, math.nan, 1 / 3]


def put_in(formula, parts):
    """Substitute `parts` into the placeholders of `formula`, without simplification."""
    if formula.op is None:
        number = isinstance(formula.value, str) and len(formula.value) == 1 and ord(formula.value) - HOLES
        return formula if number is False or not 0 <= number < 800 else Formula(parts[number // 8])
    return Formula(op=formula.op, args=tuple(put_in(x, parts) for x in formula.args), attrs=formula.attrs)


def written(op, constants, attrs):
    """Return each formula of `op` with its template: that of the value, and those of the rules."""
    places = [chr(HOLES + 8 * (k + 1)) if x is None else x for k, x in enumerate(constants)]
    yield expression(op, places, attrs), template(op, constants, attrs)
    for slot in range(len(op.inputs)):
        for derive, made in ((local_derivative, local_template), (product, product_template)):
            found = made(op, slot, constants, attrs)
            if found is not None:
                yield derive(op, slot, chr(HOLES), places, attrs), found


def test_templates_are_filled_with_names_and_numbers_as_python_writes_them():
    generator, fills, expected = random.Random(0), [], []
    for op in mg.OPS.values():
        if isinstance(notation.formula_of(op, op.inputs), str):
            continue  # it has no formula, and is written as a call
        count = len(op.inputs)
        for _ in range(10):
            constants = [generator.choice(NUMBERS) if generator.random() < 0.3 else None for _ in range(count)]
            attrs = {name: generator.choice([0.5, -1.0, 3]) for name in op.attrs if generator.random() < 0.5}
            for formula, found in written(op, constants, attrs):
                parts = [generator.choice(NAMES + NUMBERS) for _ in range(count + 1)]
                fills.append({"template": found, "parts": [[x] if isinstance(x, str) else coded(x) for x in parts]})
                filled = put_in(formula, parts)
                expected.append((op.name, found, parts, [filled.text(), filled.mathml(), filled.latex()]))
    assert len(fills) > 2000
    for (name, made, parts, python), javascript in zip(expected, compare(fills=fills)["fills"], strict=True):
        assert javascript == python, (name, made, parts)


def test_constants_are_in_the_template_already():
    power = local_template(mg.OPS["pow"], 0, [None, 2.0])
    assert power == {
        "text": "2 · \ue00c",
        "mathml": "<mrow><mn>2</mn><mo>·</mo>\ue00c</mrow>",
        "latex": r"2 \cdot " + "\ue00c",
    }
    assert template(mg.OPS["pow"], [None, 2.0]) is template(mg.OPS["pow"], [None, 2.0])


def test_op_that_cannot_be_written_is_a_call():
    op = mg.Op("test_unread", "{a}}", vjp=(lambda g, a: g if a > 0 else 0.0, lambda g: g))
    try:
        found = template(op, [None, 2.0])
        text, mathml, latex = compare(fills=[{"template": found, "parts": [["y"], ["<x>"], ["b"]]}])["fills"][0]
        assert text == "test_unread(<x>, 2.0)"
        assert latex == r"\operatorname{test\_unread}(\mathrm{{<}x{>}}, 2.0)"
        assert '<mi>test_unread</mi><mo>(</mo><mi>&lt;x&gt;</mi><mo separator="true">,</mo>2.0<mo>)</mo>' in mathml
        assert local_template(op, 0, [None, None]) is None
        assert op_data(op)["why"] is not None
    finally:
        del mg.OPS["test_unread"]
