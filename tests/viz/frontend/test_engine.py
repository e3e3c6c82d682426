"""The player's engine agrees with minigrad: every value of random graphs, also after leaves change."""

import math
import random

import pytest

import minigrad as mg
from minigrad.backends.formula.javascript import FUNCTIONS, javascript
from minigrad.core.op import ANY
from minigrad_viz import to_trace
from minigrad_viz.trace.templates import serialize_op
from player import COMPARE, encode_float, run_job
from strategies import ATTRS, ELEMENTWISE, points
from tiers import NIGHTLY

CLOSE = 1e-12
NO_CODE = "--disallow-code-generation-from-strings"  # like a strict Content-Security-Policy


def full_trace(*roots):
    """Return the trace of these roots with all digits."""
    return to_trace(list(roots)).data(full=True)


# --- random graphs ---------------------------------------------------------------------------------------------------

SCALAR = [op for op in ELEMENTWISE if javascript(op)["js"] is not None]
DIFFERENTIABLE_SCALAR = [op for op in SCALAR if op.differentiable]


class Program:
    """A random computation with its values for some leaves, and for others."""

    def __init__(self, seed, steps=25):
        self.generator = generator = random.Random(seed)
        self.values = [mg.Value(generator.uniform(0.3, 2.0), f"x{k}") for k in range(4)]
        self.changed_values = [mg.Value(x.data * (1.0 + 0.05 * k), x.label) for k, x in enumerate(self.values)]
        used_slots = set()
        while len(self.values) < 4 + steps:
            op = generator.choice(DIFFERENTIABLE_SCALAR)
            operands = [self.operand() for _ in op.inputs]
            if any(isinstance(x, int) for x in operands) and self.append(op, operands):
                used_slots.update(operands)
        for k in range(4, 4 + steps):  # add all unused values into the root
            if k not in used_slots:
                self.append(mg.OPS["add"], [k, len(self.values) - 1], always=True)

    def operand(self):
        """Return the index of an earlier value, or a constant."""
        constant = self.generator.random() < 0.15
        return self.generator.choice([-1.0, 0.5, 2.0, 3.0]) if constant else self.generator.randrange(len(self.values))

    def append(self, op, operands, always=False):
        results = []
        for values in (self.values, self.changed_values):
            value = op(*[values[x] if isinstance(x, int) else x for x in operands], **ATTRS.get(op.name, {}))
            value.label = f"n{len(values)}"
            results.append(value)
        if not always and not all(map(is_moderate, results)):
            return False
        self.values.append(results[0])
        self.changed_values.append(results[1])
        return True


def is_moderate(value):
    """Whether a value is neither huge nor so close to cancellation that rounding would show."""
    operands = [float(x) for x in value.inputs]
    derivatives = [value._local_derivative(slot) or 0.0 for slot in range(len(operands))]
    limit = 10 * max(abs(value.data), 0.1)
    return abs(value.data) < 1e3 and all(
        abs(s) < 1e2 and abs(s * x) <= limit for s, x in zip(derivatives, operands, strict=True)
    )


def test_the_player_supports_every_scalar_operation():
    assert {op.name: javascript(op)["why"] for op in ELEMENTWISE if javascript(op)["js"] is None} == {}


def decode_float(x):
    return float(x.replace("Infinity", "inf")) if isinstance(x, str) else x


def is_close(actual, expected):
    """Whether two values are equal to 12 digits, or to the rounding of values about 1, for differences of such."""
    if actual is None:
        return False
    actual = decode_float(actual)
    both_nan = math.isnan(actual) and math.isnan(expected)
    return both_nan or actual == expected or math.isclose(actual, expected, rel_tol=CLOSE, abs_tol=1e-14)


@pytest.mark.parametrize(
    "options", [pytest.param([], id="compiled"), pytest.param([NO_CODE], id="interpreted", marks=pytest.mark.nightly)]
)
def test_random_graphs_have_python_s_values(options):
    jobs, expected = [], []
    for program in map(Program, range(200 if NIGHTLY else 60)):
        traces = full_trace(program.values[-1]), full_trace(program.changed_values[-1])
        indices = {name: int(k) for k, name in traces[0]["nodes"]["name"].items()}
        leaves = [(indices[x.label], x.data) for x in program.changed_values[:4] if x.label in indices]
        jobs.append({"trace": traces[0], "runs": [[], leaves]})
        expected.append(traces)
    for job, (first, second) in zip(run_job(*options, graphs=jobs)["graphs"], expected, strict=True):
        assert set(job["why"]) == {None}
        for result, trace in zip(job["runs"], (first, second), strict=True):
            assert_same_values(result, trace)


def assert_same_values(actual, trace):
    """Assert that each value of the player equals Python's to 12 digits."""
    nodes, edges = trace["nodes"], trace["edges"]
    titles = [trace["ops"][op]["name"] if op >= 0 else "leaf" for op in nodes["op"]]
    for node, x in enumerate(nodes["value"]):
        assert is_close(actual["value"][node], decode_float(x)), (titles[node], x, actual["value"][node])
    for edge, x in enumerate(edges["local"]):
        if x is not None:
            assert is_close(actual["local"][edge], decode_float(x)), (
                titles[edges["result"][edge]],
                x,
                actual["local"][edge],
            )
    for run, expected in zip(actual["passes"], trace["passes"], strict=True):
        for name in ("upstream", "contribution", "total"):
            for k, x in enumerate(expected[name]):
                assert is_close(run[name][k], decode_float(x)), (name, titles[edges["result"][expected["edge"][k]]], x)


# --- one operation at a time -----------------------------------------------------------------------------------------


def single_op_trace(op, point, attrs):
    """Return the trace of one operation on leaves."""
    count = len(op.inputs)
    y = op(*point, **attrs)
    empty = {
        "block": [0] * (count + 1),
        "formula": [-1] * (count + 1),
        "line": {},
        "stale": [],
        "tensor": {},
        "grad": {},
    }
    return {
        "version": 2,
        "sentence": "",
        "outputs": [count],
        "nodes": {
            "kind": "l" * count + "o",
            "op": [-1] * count + [0],
            "name": {},
            "value": [encode_float(float(x)) for x in (*point, y)],
            "state": "n" * (count + 1),
            "attrs": {str(count): {name: repr(x) for name, x in attrs.items()}},
            **empty,
        },
        "edges": {
            "operand": list(range(count)),
            "result": [count] * count,
            "slot": list(range(count)),
            "flows": "".join(str(int(rule is not None)) for rule in op.vjp),
            "local": [None] * count,
            "formula": [-1] * count,
        },
        "passes": [],
        "blocks": [{"name": "graph", "outer": -1, "kind": "graph"}],
        "ops": [serialize_op(op)],
        "formulas": [],
        "arrays": [],
        "notes": [],
    }


CORNERS = (0.0, -0.0, 1.0, -1.0, 0.1, 0.5, -1.5, 2.5, 30.0, -40.0, 800.0, -800.0, math.inf, -math.inf, math.nan)


BOUNDS = {
    "clamp": ({"min": None, "max": 1.0}, {"min": -1.0, "max": None}, {"min": math.nan, "max": 1.0}),
    "hardtanh": ({"min_val": -1.0, "max_val": 1.0}, {"min_val": -1.0, "max_val": math.nan}),
}


def corner_points(op):
    generator = random.Random(op.name)
    if len(op.inputs) == 1:
        return [(x,) for x in CORNERS] + [(generator.uniform(-3, 3),) for _ in range(30)]
    if len(op.inputs) == 2:
        return [(a, b) for a in CORNERS for b in CORNERS]
    return [tuple(generator.choice(CORNERS) for _ in op.inputs) for _ in range(100)]


@pytest.mark.parametrize("options", [[], [NO_CODE]], ids=["compiled", "interpreted"])
def test_operations_agree_with_python_at_corners(options):
    jobs, expected = [], []
    for op in SCALAR:
        for attrs in BOUNDS.get(op.name, (ATTRS.get(op.name, {}),)):
            runs = [[(k, encode_float(x)) for k, x in enumerate(point)] for point in corner_points(op)]
            jobs.append({"trace": single_op_trace(op, next(iter(points(op))), attrs), "runs": runs})
            expected.append((op, attrs))
    for job, (op, attrs) in zip(run_job(*options, graphs=jobs)["graphs"], expected, strict=True):
        for result, point in zip(job["runs"], corner_points(op), strict=True):
            if "gelu" in op.name and max(map(abs, point)) > 3:
                continue  # 1 + erf cancels there, in Python too
            if op.name == "lerp" and not all(map(math.isfinite, point)):
                continue  # its kernel uses two equivalent formulas that differ at infinity
            y = op(*point, **attrs)
            assert is_close(result["value"][-1], float(y)), (op.name, point, y, result["value"][-1])
            for slot, rule in enumerate(op.rules):
                if rule is not None:
                    local = rule(1.0, y, *point, **attrs)
                    assert is_close(result["local"][slot], local), (op.name, slot, point, local, result["local"][slot])


# --- user-defined operations ------------------------------------------------------------------------------------------


@pytest.fixture
def declare():
    """Declare an op with its kernel for one test."""
    names = []

    def one(name, formula, compute, **options):
        names.append(name)
        op = mg.Op(name, formula, **options)
        mg.kernel(name, "python")(compute)
        return op

    yield one
    for name in names:
        del mg.OPS[name]


def test_a_user_defined_operation_needs_no_javascript(declare):
    swish = declare(
        "test_swish",
        r"\frac{a}{1 + e^{-{beta} {a}}}",
        lambda a, beta: a / (1.0 + math.exp(-beta * a)),
        vjp=(lambda g, y, a, beta: g * (beta * y + mg.sigmoid(beta * a) * (1.0 - beta * y)),),
        attrs={"beta": 1.0},
        domain=(ANY,),
    )
    (result,) = run_job(graphs=[{"trace": single_op_trace(swish, (0.5,), {"beta": 2.0}), "runs": [[(0, 1.25)]]}])[
        "graphs"
    ]
    assert result["why"] == [None, None]
    assert is_close(result["runs"][0]["value"][1], swish(1.25, beta=2.0))
    assert is_close(result["runs"][0]["local"][0], swish.rules[0](1.0, swish(1.25, beta=2.0), 1.25, beta=2.0))


def test_attributes_are_passed_once_in_declared_order(declare):
    band = declare(
        "test_band",
        r"\operatorname{leakyrelu}\left({a}, {slope}\right)",
        lambda a, slope: a if a > 0 else slope * a,
        vjp=(lambda g, a, slope: g * mg.ops.clamp(a, max=slope, min=-1.0),),
        attrs=("slope",),
    )
    assert javascript(band) == {"js": "leakyrelu(a, slope)", "rules": ["(g * clamp(a, (-1), slope))"], "why": None}


def test_uncomputable_operations_explain_why(declare):
    ifs = declare("test_ifs", "{a}", lambda a: a, vjp=(lambda g, a: g if a > 0 else 0.0,))
    unknown = declare("test_unknown", r"\operatorname{Ai} {a}", lambda a: a, vjp=(lambda g: g,))
    wrong = declare("test_wrong", "{a}^2", lambda a: 3.0 * a, vjp=(lambda g: 3.0 * g,))
    unread = declare("test_unread", "{a}}", lambda a: a, vjp=(lambda g: g,))
    named = declare("test_named", "{x}", lambda x, a: x, vjp=(lambda g: g,), inputs=("x",), attrs=("a",))
    bare = mg.Op("test_bare", "{a}", vjp=(lambda g: g,))
    del mg.OPS["test_bare"]
    assert [javascript(op)["why"] for op in (ifs, unknown, unread, named, bare, mg.OPS["matmul"])] == [
        "A derivative rule of test_ifs is not a formula: The truth value of the formula a > 0 is undefined.",
        "The formula of test_unknown contains “Ai”, which the player does not support.",
        "The formula of test_unread cannot be parsed.",
        "test_named has an attribute with the name of an operand, or too many operands.",
        "test_bare is not defined on scalars.",
        "matmul is not defined on scalars.",
    ]
    (result,) = run_job(graphs=[{"trace": single_op_trace(wrong, (2.0,), {}), "runs": [[(0, 5.0)]]}])["graphs"]
    assert result["why"][1] == "Its formula gives 4.0 here, but Python computed 6.0."
    assert result["runs"][0]["value"] == [5.0, None]


def test_the_player_has_all_functions_of_formulas():
    source = (COMPARE.parents[1] / "src" / "engine" / "numeric.js").read_text(encoding="utf-8")
    expected = {name for name in FUNCTIONS.values() if "." not in name} | {"pow", "quotient", "softplus"}
    table = source[source.index("NUMERIC") :]
    listed = {line.split(":")[0].split(",")[0].strip() for line in table[: table.index("\n};")].splitlines()[1:]}
    listed -= {"const", "return", "if", "NaN", "Infinity", "null"}
    assert {name for name in listed if name.isidentifier()} == expected
