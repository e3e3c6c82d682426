"""Evaluation of learners' expressions, node by node."""

import ast
import math
from types import SimpleNamespace

import pytest

from minigrad.lessons.expressions import evaluate

NAMES = {"a": -2.5, "b": 2, "both": (1, 2), "ti": SimpleNamespace(exp=math.exp, max=max)}


@pytest.mark.parametrize(
    "text",
    [
        *("a", "a + b * 3 - -a / b", "a ** b // 2 % 7", "ti.exp(a) + ti.max(a, b, 0.5)", "1 < b <= 2", "3 < b < a / 0"),
        *("b & 3 | 4 ^ 1", "~b << 2 >> 1", "not a", "b is b", "a is not b", "b in both", "a != b == 2", "+a"),
    ],
)
def test_an_expression_has_its_python_value(text):
    actual, expected = evaluate(ast.parse(text, mode="eval").body, NAMES), eval(text, {}, NAMES)
    assert (type(actual), actual) == (type(expected), expected)


@pytest.mark.parametrize("text", ["[a]", "lambda: a", "a if b else b", "(a := b)", "f'{a}'", "a and b"])
def test_other_expressions_raise(text):
    with pytest.raises(TypeError, match="unsupported expression"):
        evaluate(ast.parse(text, mode="eval").body, NAMES)
