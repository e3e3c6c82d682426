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
from minigrad_viz.trace import placed
from needs import FRONTEND, PACKAGES, needs
from strategies import ATTRS, DIFFERENTIABLE, points
from tiers import NIGHTLY

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "book" / "playground"
CLOSE = 1e-12


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
    done = subprocess.run(
        [*map(str, command)], cwd=FRONTEND, capture_output=True, encoding="utf-8", timeout=300, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def asked(texts):
    """Return the page's results for programs."""
    needs("node")
    done = subprocess.run(
        ["node", str(SOURCES / "tests" / "compare.js")],
        input=json.dumps({"catalogue": catalogue(), "texts": texts}),
        capture_output=True,
        encoding="utf-8",
        timeout=300,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


# --- Python as the oracle --------------------------------------------------------------------------------------------


class Names(dict):
    """The namespace of a program: functions are operations, and an unassigned name is a leaf."""

    def __init__(self, numbers):
        super().__init__()
        self.numbers, self.leaves = numbers, {}
        self.functions = {name: mg.OPS[op] for name, op in catalogue()["functions"].items()} | {"pi": math.pi}

    def __missing__(self, name):
        if name in self.functions:
            return self.functions[name]
        if name not in self.leaves:
            self.leaves[name] = mg.Value(self.numbers[name], name)
        return self.leaves[name]


def by_python(text, numbers):
    """Return Python's trace of a program, and the root."""
    names = Names(numbers)
    lines = ast.parse(text)
    last = lines.body[-1]
    target = last.targets[0].id if isinstance(last, ast.Assign) else None
    exec(compile(ast.Module(lines.body[:-1], []), "lines", "exec"), {"__builtins__": {}}, names)
    root = eval(compile(ast.Expression(last.value), "last", "eval"), {"__builtins__": {}}, names)
    if target:
        names[target] = root
    elif "y" not in names and "y" not in names.leaves:
        names["y"] = root
    return placed(root, namespaces=[dict(names)])[0].data(full=True), root


def number(x):
    return float(x.replace("Infinity", "inf")) if isinstance(x, str) else x


def near(found, expected):
    if found is None or expected is None:
        return found is expected
    found, expected = number(found), number(expected)
    if math.isnan(expected) or math.isinf(expected):
        return (math.isnan(found) and math.isnan(expected)) or found == expected
    return math.isclose(found, expected, rel_tol=CLOSE, abs_tol=1e-14)


def check(found, expected, text):
    """Assert that the page's trace equals Python's."""
    for key in ("version", "outputs", "ops", "arrays"):
        assert found[key] == expected[key], (text, key)
    for part, keys in {
        "nodes": "kind name state grad op attrs stale line tensor",
        "edges": "operand result slot flows",
    }.items():
        for key in keys.split():
            assert found[part][key] == expected[part][key], (text, key)
    columns = [("nodes", "value"), ("edges", "local")]
    pairs = [(found[part][key], expected[part][key], key) for part, key in columns]
    (one,), (other,) = found["passes"], expected["passes"]
    assert (one["root"], one["edge"]) == (other["root"], other["edge"]), text
    pairs += [(one[key], other[key], key) for key in ("upstream", "contribution", "total")]
    for mine, its, key in pairs:
        assert len(mine) == len(its), (text, key)
        assert all(map(near, mine, its)), (text, key, mine, its)
    if not any(isinstance(x, str) for x in expected["nodes"]["value"]):
        assert found["sentence"] == expected["sentence"], text
    assert found["notes"] == expected["notes"], text


def compare(jobs):
    """Assert that the page and Python agree on each program with its values; return Python's traces."""
    made = [by_python(text, numbers)[0] for text, numbers in jobs]
    texts = [
        {"text": text, "numbers": numbers, "expected": trace} for (text, numbers), trace in zip(jobs, made, strict=True)
    ]
    for answer, (text, _), trace in zip(asked(texts), jobs, made, strict=True):
        assert "mistake" not in answer, (text, answer)
        check(answer["trace"], trace, text)
        assert answer["formulas"] == answer["expected"], text
    return made


def _deep(layer, inner, depth):
    """Return a program in which a function is applied `depth` times."""
    for _ in range(depth):
        inner = layer.format(f"({inner})")
    return inner


NUMBERS = {"a": 2.0, "b": -3.0, "c": 0.5, "d": 1.25, "x": 0.75, "y": -0.5, "w_1": 1.5, "α": 0.25, "h": 3.0}
TEXTS = [
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


def test_texts_are_what_they_are_in_python():
    made = compare([(text, NUMBERS) for text in TEXTS])
    kinds = {note["kind"] for trace in made for note in trace["notes"]}
    assert kinds == {"nan", "inf", "gradient", "vanishing", "exploding", "dead", "saturated"}


def expression(generator, names, depth):
    """Return a random expression of all operators and functions."""
    pick = generator.random()
    if depth == 0 or pick < 0.12:
        return (
            generator.choice(names)
            if generator.random() < 0.75
            else generator.choice(["2", "3", "0.5", "1.0", "-1", "1e-3", "2.75"])
        )
    inner = [expression(generator, names, depth - 1) for _ in range(3)]
    if pick < 0.62:
        sign = generator.choice(["+", "-", "*", "/", "**"])
        return generator.choice(["{} {} {}", "({}) {} ({})", "{}{}({})"]).format(inner[0], sign, inner[1])
    if pick < 0.7:
        return f"-{inner[0]}" if generator.random() < 0.5 else f"-({inner[0]})"
    name = generator.choice(list(catalogue()["functions"]))
    op = mg.OPS[catalogue()["functions"][name]]
    attrs = {"clamp": ["-1.0", "1.0"], "hardtanh": ["-2.0", "2.0"]}.get(op.name, ["0.25"] * len(op.attrs))
    given = attrs if generator.random() < 0.5 else []
    return f"{name}({', '.join([*inner[: len(op.inputs)], *given])})"


def program(seed):
    """Return a random program of a few lines without complex results and divisions of a constant by zero."""
    generator = random.Random(seed)
    while True:
        names, lines = ["a", "b", "c", "x"], []
        for k in range(generator.randint(0, 3)):
            lines.append(f"h_{k} = {expression(generator, names, generator.randint(1, 3))}")
            names.append(f"h_{k}")
        lines.append(generator.choice(["", "out = "]) + expression(generator, names, generator.randint(1, 4)))
        text = "\n".join(lines)
        numbers = {name: round(generator.uniform(-2.0, 2.0), 2) for name in "abcx"}
        try:
            trace, root = by_python(text, numbers)
        except (ArithmeticError, TypeError, ValueError, AttributeError, mg.errors.MinigradError):
            continue
        wild = [x for x in trace["nodes"]["value"] if isinstance(x, str) or (x and not 1e-6 < abs(x) < 1e6)]
        fits = isinstance(root, mg.Value) and len(trace["nodes"]["value"]) < 150 and (not wild or seed % 4 == 0)
        if fits and not cancels(trace):
            return text, numbers


def cancels(trace):
    """Whether a gradient is a rounding error of cancelling contributions, which differs between the languages."""
    given = {}
    for run in trace["passes"]:
        for edge, contribution in zip(run["edge"], run["contribution"], strict=True):
            given.setdefault(trace["edges"]["operand"][edge], []).append(number(contribution))
    return any(max(map(abs, some)) > 0 and abs(sum(some)) < CLOSE * max(map(abs, some)) for some in given.values())


@pytest.mark.parametrize("part", range(4))
def test_random_programs_are_what_they_are_in_python(part):
    compare([program(seed) for seed in range(part, 2000 if NIGHTLY else 240, 4)])


def extreme(seed):
    """Return a random expression at extreme values."""
    generator = random.Random(seed)
    while True:
        text = expression(generator, ["a", "b", "c", "x"], generator.randint(1, 3))
        numbers = {name: generator.choice(EXTREME) for name in "abcx"}
        try:
            _, root = by_python(text, numbers)
        except (ArithmeticError, TypeError, ValueError, AttributeError, mg.errors.MinigradError):
            continue
        if isinstance(root, mg.Value):
            return text, numbers


def test_random_programs_are_what_they_are_in_python_where_floats_end():
    compare([extreme(seed) for seed in range(1000 if NIGHTLY else 60)])


CONSTANTS = (0.0, 1.0, -1.0, 2.0, 0.5, -7.5, 3.0)


def calls():
    """Yield calls of every function with names and constants in every position, also at the corners of its formula."""
    for name, found in catalogue()["functions"].items():
        op = mg.OPS[found]
        count = len(op.inputs)
        for (k, point), constant in itertools.product(enumerate(points(op, 2)), CONSTANTS if count > 1 else (0.0,)):
            numbers = dict(zip("abc", point, strict=False))
            for kept in range(1, 2**count):
                given = ["abc"[slot] if kept >> slot & 1 else repr(constant) for slot in range(count)]
                attrs = [f"{attr}={x}" for attr, x in ATTRS.get(op.name, {}).items()] if k else []
                yield f"{name}({', '.join([*given, *attrs])})", numbers


def test_every_function_is_what_it_is_in_python():
    compare(list(calls()))


def test_every_operation_on_numbers_with_a_derivative_can_be_written():
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


def test_the_script_is_small_and_leaves_no_name_behind(tmp_path):
    needs("node", "npm packages")
    built = tmp_path / "playground.js"
    run("node", SOURCES / "build.mjs", built)
    text = built.read_text(encoding="utf-8")
    assert text.startswith(("(()=>{", '"use strict";(()=>{'))
    assert len(text.encode()) < 60_000
    assert "</script" not in text.lower()
