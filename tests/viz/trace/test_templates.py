"""The player formats numbers and formulas as Python does, character by character."""

import math
import random
import struct

import minigrad as mg
from minigrad.backends.formula import Formula, expression, local_derivative, product
from minigrad.backends.formula.printer import HOLES
from minigrad_viz.trace import notation
from minigrad_viz.trace.templates import local_template, product_template, serialize_op, template
from player import encode_float, run_job


def floats(count, seed=0):
    generator = random.Random(seed)
    yield from (0.0, -0.0, math.inf, -math.inf, math.nan, 1e5, 999999.5, 1e6, 0.0001, 0.00001, 5e-324, 1.7e308)
    for k in range(count):
        bits = struct.unpack("<d", generator.getrandbits(64).to_bytes(8, "little"))[0]  # any float
        short = round(generator.uniform(-1, 1) * 10 ** generator.randint(-6, 8), generator.randint(0, 6))
        half = (generator.randint(100000, 9999999) + 0.5) / 2 ** generator.randint(0, 4)  # ties are rounded to even
        yield (bits, short, half, generator.gauss(0, 1))[k % 4]


def test_numbers_are_formatted_as_in_python():
    values = list(floats(10_000))
    expected = [[notation.format_float(x), notation.format_pretty(x), notation.format_brief(x)] for x in values]
    assert run_job(numbers=[encode_float(x) for x in values])["numbers"] == expected


def test_names_are_shortened_as_in_python():
    names = [
        (name, limit)
        for name in ("w", "weight of the petal₁₂", "重み" * 8, "a😀" * 9, "₁₂₃₄₅₆")
        for limit in (4, 9, 24)
    ]
    result = run_job(names=names, subscripts=[0, 12, 9075])
    assert result["names"] == [notation.shorten_name(*pair) for pair in names]
    assert result["subscripts"] == [notation.subscript(n) for n in (0, 12, 9075)]


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


def substitute(formula, parts):
    """Substitute `parts` into the placeholders of `formula`, without simplification."""
    if formula.op is None:
        hole = isinstance(formula.value, str) and len(formula.value) == 1 and ord(formula.value) - HOLES
        return formula if hole is False or not 0 <= hole < 800 else Formula(parts[hole // 8])
    return Formula(op=formula.op, args=tuple(substitute(x, parts) for x in formula.args), attrs=formula.attrs)


def formulas_with_templates(op, constants, attrs):
    """Return each formula of `op` with its template: that of the value, and those of the rules."""
    operands = [chr(HOLES + 8 * (k + 1)) if x is None else x for k, x in enumerate(constants)]
    yield expression(op, operands, attrs), template(op, constants, attrs)
    for slot in range(len(op.inputs)):
        for derive, derive_template in ((local_derivative, local_template), (product, product_template)):
            filled = derive_template(op, slot, constants, attrs)
            if filled is not None:
                yield derive(op, slot, chr(HOLES), operands, attrs), filled


def test_filled_templates_equal_pythons_formulas():
    generator, fills, expected = random.Random(0), [], []
    for op in mg.OPS.values():
        if isinstance(notation.make_formula(op, op.inputs), str):
            continue  # it has no formula, and is written as a call
        count = len(op.inputs)
        for _ in range(10):
            constants = [generator.choice(NUMBERS) if generator.random() < 0.3 else None for _ in range(count)]
            attrs = {name: generator.choice([0.5, -1.0, 3]) for name in op.attrs if generator.random() < 0.5}
            for formula, source in formulas_with_templates(op, constants, attrs):
                parts = [generator.choice(NAMES + NUMBERS) for _ in range(count + 1)]
                fills.append(
                    {"template": source, "parts": [[x] if isinstance(x, str) else encode_float(x) for x in parts]}
                )
                filled = substitute(formula, parts)
                expected.append((op.name, source, parts, [filled.formula(), filled.mathml(), filled.latex()]))
    assert len(fills) > 2000
    for (name, source, parts, python), javascript in zip(expected, run_job(fills=fills)["fills"], strict=True):
        assert javascript == python, (name, source, parts)


def test_template_contains_constants():
    power = local_template(mg.OPS["pow"], 0, [None, 2.0])
    assert power == {
        "text": "2 · \ue00c",
        "mathml": "<mrow><mn>2</mn><mo>·</mo>\ue00c</mrow>",
        "latex": r"2 \cdot " + "\ue00c",
    }
    assert template(mg.OPS["pow"], [None, 2.0]) is template(mg.OPS["pow"], [None, 2.0])


def test_op_without_formula_is_a_call():
    op = mg.Op("test_unread", "{a}}", vjp=(lambda g, a: g if a > 0 else 0.0, lambda g: g))
    try:
        source = template(op, [None, 2.0])
        text, mathml, latex = run_job(fills=[{"template": source, "parts": [["y"], ["<x>"], ["b"]]}])["fills"][0]
        assert text == "test_unread(<x>, 2.0)"
        assert latex == r"\operatorname{test\_unread}(\mathrm{{<}x{>}}, 2.0)"
        assert '<mi>test_unread</mi><mo>(</mo><mi>&lt;x&gt;</mi><mo separator="true">,</mo>2.0<mo>)</mo>' in mathml
        assert local_template(op, 0, [None, None]) is None
        assert serialize_op(op)["why"] is not None
    finally:
        del mg.OPS["test_unread"]
