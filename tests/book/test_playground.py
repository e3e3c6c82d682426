"""The playground agrees with Python: for each program the same graph, values, gradients, formulas and remarks."""

import ast
import importlib.util
import itertools
import json
import math
import random
import subprocess
from functools import cache
from pathlib import Path

import pytest

import minigrad as mg
from minigrad_viz.trace import trace_with_indices
from needs import FRONTEND, PACKAGES, needs
from strategies import ATTRS, DIFFERENTIABLE, points
from tiers import NIGHTLY

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "book" / "playground"
TOLERANCE = 1e-12


@cache
def extension():
    needs("sphinx")
    spec = importlib.util.spec_from_file_location("playground", ROOT / "book" / "_ext" / "playground.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@cache
def catalogue():
    return extension().catalogue()


def run(*command):
    child = subprocess.run(
        [*map(str, command)], cwd=FRONTEND, capture_output=True, encoding="utf-8", timeout=300, check=False
    )
    assert child.returncode == 0, child.stdout + child.stderr
    return child.stdout


def page_results(programs):
    """Return the page's results for programs."""
    needs("node")
    child = subprocess.run(
        ["node", str(SOURCES / "tests" / "compare.js")],
        input=json.dumps({"catalogue": catalogue(), "texts": programs}),
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert child.returncode == 0, child.stderr
    return json.loads(child.stdout)


# --- Python as the oracle --------------------------------------------------------------------------------------------


class ProgramNames(dict):
    """The namespace of a program: functions are operations, and an unassigned name is a leaf."""

    def __init__(self, values):
        super().__init__()
        self.values, self.leaves = values, {}
        self.functions = {name: mg.OPS[op] for name, op in catalogue()["functions"].items()} | {"pi": math.pi}

    def __missing__(self, name):
        if name in self.functions:
            return self.functions[name]
        if name not in self.leaves:
            self.leaves[name] = mg.Value(self.values[name], name)
        return self.leaves[name]


def python_trace(source, values):
    """Return Python's trace of a program, and the root."""
    names = ProgramNames(values)
    tree = ast.parse(source)
    last = tree.body[-1]
    target = last.targets[0].id if isinstance(last, ast.Assign) else None
    exec(compile(ast.Module(tree.body[:-1], []), "lines", "exec"), {"__builtins__": {}}, names)
    root = eval(compile(ast.Expression(last.value), "last", "eval"), {"__builtins__": {}}, names)
    if target:
        names[target] = root
    elif "y" not in names and "y" not in names.leaves:
        names["y"] = root
    return trace_with_indices(root, namespaces=[dict(names)])[0].data(full=True), root


def parse_number(x):
    return float(x.replace("Infinity", "inf")) if isinstance(x, str) else x


def is_close(actual, expected):
    if actual is None or expected is None:
        return actual is expected
    actual, expected = parse_number(actual), parse_number(expected)
    if math.isnan(expected) or math.isinf(expected):
        return (math.isnan(actual) and math.isnan(expected)) or actual == expected
    return math.isclose(actual, expected, rel_tol=TOLERANCE, abs_tol=1e-14)


def assert_same_trace(actual, expected, text):
    """Assert that the page's trace equals Python's."""
    for key in ("version", "outputs", "ops", "arrays"):
        assert actual[key] == expected[key], (text, key)
    for part, keys in {
        "nodes": "kind name state grad op attrs stale line tensor",
        "edges": "operand result slot flows",
    }.items():
        for key in keys.split():
            assert actual[part][key] == expected[part][key], (text, key)
    columns = [("nodes", "value"), ("edges", "local")]
    pairs = [(actual[part][key], expected[part][key], key) for part, key in columns]
    (actual_pass,), (expected_pass,) = actual["passes"], expected["passes"]
    assert (actual_pass["root"], actual_pass["edge"]) == (expected_pass["root"], expected_pass["edge"]), text
    pairs += [(actual_pass[key], expected_pass[key], key) for key in ("upstream", "contribution", "total")]
    for actual_column, expected_column, key in pairs:
        assert len(actual_column) == len(expected_column), (text, key)
        assert all(map(is_close, actual_column, expected_column)), (text, key, actual_column, expected_column)
    if not any(isinstance(x, str) for x in expected["nodes"]["value"]):
        assert actual["sentence"] == expected["sentence"], text
    assert actual["notes"] == expected["notes"], text


def assert_agreement(jobs):
    """Assert that the page and Python agree on each program with its values; return Python's traces."""
    traces = [python_trace(text, values)[0] for text, values in jobs]
    requests = [
        {"text": text, "numbers": values, "expected": trace} for (text, values), trace in zip(jobs, traces, strict=True)
    ]
    for answer, (text, _), trace in zip(page_results(requests), jobs, traces, strict=True):
        assert "mistake" not in answer, (text, answer)
        assert_same_trace(answer["trace"], trace, text)
        assert answer["formulas"] == answer["expected"], text
    return traces


def _deep(layer, inner, depth):
    """Return a program in which a function is applied `depth` times."""
    for _ in range(depth):
        inner = layer.format(f"({inner})")
    return inner


LEAF_VALUES = {"a": 2.0, "b": -3.0, "c": 0.5, "d": 1.25, "x": 0.75, "y": -0.5, "w_1": 1.5, "α": 0.25, "h": 3.0}
PROGRAMS = [
    "(a+b)*c + tanh(d)",
    "lerp(2**53*a, c, 1) + lerp(c, 2**53*a, 0)",
    "a",
    "a*a",
    "a*a + a",
    "y*2",
    "y = a*b",
    "h = a*b\nh*h + h",
    "h = a*b; k = h; k + 1",
    "h = a; h = h*2; h = h + 1; h",
    "b = a*2; a = b + 1; a*a",
    "x = x + 1\nx",
    "k = 2; a**k",
    "2*3*a + (1 + 2)*b",
    "a*2*3",
    "-2**2*a",
    "-a**2",
    "a**-b",
    "a**-1",
    "-(-a)",
    "+a - -b",
    "a - (b - c) - d",
    "a/(b/c)/d",
    "2**a",
    "(-2)*a",
    "a*-2",
    "1 - a",
    "a**2**c",
    "a**0.5 + a**3 + a**2 + a**1 + a**0 + a**-2.5 + a**1e-7 + a**1.5e7",
    "a**c",
    "exp(-a**2/2)/sqrt(2*pi)",
    "max(a, 1.0) + min(b, a) + maximum(a, a)",
    "clamp(a, 0.0, 1.0) + clamp(b, min=0.5) + clamp(c, max=2.0) + clamp(d)",
    "leaky_relu(b, 0.1) + leaky_relu(a) + elu(b, 1.5) + hardtanh(a, -1.0, 1.0) + step(a, 0.1)",
    "lerp(a, b, 0.5) + lerp(a, b, c) + lerp(1.0, 2.0, c) + where(a, b, c) + where(a, 2.0, c)",
    "atan2(a, 2) + atan2(1.5, b) + remainder(a, 1.5) + prelu(b, 0.25)",
    "relu(b) + relu(-a)",
    "tanh(a*9) + sigmoid(b*9) + tanh(b*9)",
    "w_1*α + α",
    "tanh(2)*a + log(10)",
    "(a +\n b) * (\nc)",
    "1e-3*a + .5*b + 1_000*c + 7.*d",
    "sum_1 = a + b # a comment\nsum_1*2",
    "k = a*2; b + 1",
    "log(a*1e300*1e300)",
    "1e999*a",
    "a*(b/(c - 0.5))",
    "log(b)",
    "log(b) + 1/(c - c)",
    "sqrt(c - 0.5)",
    "exp(a*1000)",
    "0*log(c - 0.5)",
    "minimum(a, 1e999)",
    "a/-0.0 + a/(0.0*-3.0)",
    "1_0.2_5*a + 1e1_0*b",
    "5e-324*a + 1e308*b*10 + c**1e308",
    _deep("sigmoid(4*{})", "x", 10),
    _deep("0.125*{}", "a*x + b", 10),
    _deep("8*{}", "a*x + b", 10),
    "1e-9*" + _deep("8*{}", "a*x + b", 10),
    "8*" * 12 + "(a*(x - x))",
]
EXTREME = [1e308, -1e308, 0.0, -0.0, 5e-324, -1e-300, 1e154, 2.0**53, 999999.5, 1e-5]


def test_programs_agree_with_python():
    traces = assert_agreement([(text, LEAF_VALUES) for text in PROGRAMS])
    kinds = {note["kind"] for trace in traces for note in trace["notes"]}
    assert kinds == {"nan", "inf", "gradient", "vanishing", "exploding", "dead", "saturated"}


def random_expression(generator, names, depth):
    """Return a random expression of all operators and functions."""
    choice = generator.random()
    if depth == 0 or choice < 0.12:
        return (
            generator.choice(names)
            if generator.random() < 0.75
            else generator.choice(["2", "3", "0.5", "1.0", "-1", "1e-3", "2.75"])
        )
    inner = [random_expression(generator, names, depth - 1) for _ in range(3)]
    if choice < 0.62:
        sign = generator.choice(["+", "-", "*", "/", "**"])
        return generator.choice(["{} {} {}", "({}) {} ({})", "{}{}({})"]).format(inner[0], sign, inner[1])
    if choice < 0.7:
        return f"-{inner[0]}" if generator.random() < 0.5 else f"-({inner[0]})"
    name = generator.choice(list(catalogue()["functions"]))
    op = mg.OPS[catalogue()["functions"][name]]
    attrs = {"clamp": ["-1.0", "1.0"], "hardtanh": ["-2.0", "2.0"]}.get(op.name, ["0.25"] * len(op.attrs))
    attributes = attrs if generator.random() < 0.5 else []
    return f"{name}({', '.join([*inner[: len(op.inputs)], *attributes])})"


def random_program(seed):
    """Return a random program of a few lines without complex results and divisions of a constant by zero."""
    generator = random.Random(seed)
    while True:
        names, lines = ["a", "b", "c", "x"], []
        for k in range(generator.randint(0, 3)):
            lines.append(f"h_{k} = {random_expression(generator, names, generator.randint(1, 3))}")
            names.append(f"h_{k}")
        lines.append(generator.choice(["", "out = "]) + random_expression(generator, names, generator.randint(1, 4)))
        text = "\n".join(lines)
        values = {name: round(generator.uniform(-2.0, 2.0), 2) for name in "abcx"}
        try:
            trace, root = python_trace(text, values)
        except (ArithmeticError, TypeError, ValueError, AttributeError, mg.errors.MinigradError):
            continue
        extreme_values = [x for x in trace["nodes"]["value"] if isinstance(x, str) or (x and not 1e-6 < abs(x) < 1e6)]
        fits = (
            isinstance(root, mg.Value) and len(trace["nodes"]["value"]) < 150 and (not extreme_values or seed % 4 == 0)
        )
        if fits and not has_cancellation(trace):
            return text, values


def has_cancellation(trace):
    """Whether a gradient is a rounding error of cancelling contributions, which differs between the languages."""
    contributions = {}
    for run in trace["passes"]:
        for edge, contribution in zip(run["edge"], run["contribution"], strict=True):
            contributions.setdefault(trace["edges"]["operand"][edge], []).append(parse_number(contribution))
    return any(
        max(map(abs, terms)) > 0 and abs(sum(terms)) < TOLERANCE * max(map(abs, terms))
        for terms in contributions.values()
    )


@pytest.mark.parametrize("part", range(4))
def test_random_programs_agree_with_python(part):
    assert_agreement([random_program(seed) for seed in range(part, 2000 if NIGHTLY else 240, 4)])


def extreme_program(seed):
    """Return a random expression at extreme values."""
    generator = random.Random(seed)
    while True:
        text = random_expression(generator, ["a", "b", "c", "x"], generator.randint(1, 3))
        values = {name: generator.choice(EXTREME) for name in "abcx"}
        try:
            _, root = python_trace(text, values)
        except (ArithmeticError, TypeError, ValueError, AttributeError, mg.errors.MinigradError):
            continue
        if isinstance(root, mg.Value):
            return text, values


def test_programs_with_extreme_values_agree_with_python():
    assert_agreement([extreme_program(seed) for seed in range(1000 if NIGHTLY else 60)])


CONSTANTS = (0.0, 1.0, -1.0, 2.0, 0.5, -7.5, 3.0)


def function_calls():
    """Yield calls of every function with names and constants in every position, also at the corners of its formula."""
    for name, op_name in catalogue()["functions"].items():
        op = mg.OPS[op_name]
        count = len(op.inputs)
        for (k, point), constant in itertools.product(enumerate(points(op, 2)), CONSTANTS if count > 1 else (0.0,)):
            values = dict(zip("abc", point, strict=False))
            for mask in range(1, 2**count):
                arguments = ["abc"[slot] if mask >> slot & 1 else repr(constant) for slot in range(count)]
                attrs = [f"{attr}={x}" for attr, x in ATTRS.get(op.name, {}).items()] if k else []
                yield f"{name}({', '.join([*arguments, *attrs])})", values


def test_every_function_agrees_with_python():
    assert_agreement(list(function_calls()))


def test_every_differentiable_scalar_operation_is_available():
    known = {op.name for op in DIFFERENTIABLE if not op.name.endswith("_backward")}
    assert set(catalogue()["ops"]) == known
    assert {"max", "min", "tanh", "abs"} <= set(catalogue()["functions"])
    methods = {name for name in vars(mg.Value) if not name.startswith("_")}
    assert {name for name in methods if name in mg.OPS} <= set(catalogue()["functions"])


# --- the script itself -----------------------------------------------------------------------------------------------


def test_modules_in_node():
    needs("node")
    run("node", "--test", *SOURCES.glob("tests/*.test.js"))


@pytest.mark.nightly
def test_types_of_the_playground():
    needs("node", "npm packages")
    run("node", PACKAGES / "typescript" / "bin" / "tsc", "--project", SOURCES)


def test_no_function_is_above_60_lines():
    needs("node", "npm packages")
    assert run("node", "limits.mjs", SOURCES) == ""


def test_the_script_is_small_and_defines_no_global(tmp_path):
    needs("node", "npm packages")
    built = tmp_path / "playground.js"
    run("node", SOURCES / "build.mjs", built)
    text = built.read_text(encoding="utf-8")
    assert text.startswith(("(()=>{", '"use strict";(()=>{'))
    assert len(text.encode()) < 60_000
    assert "</script" not in text.lower()
