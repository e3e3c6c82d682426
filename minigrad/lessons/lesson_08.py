"""The exercises of lesson 8, Kernels and devices."""

from __future__ import annotations

import ast
import inspect
import math
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from minigrad.lessons.checking import Wrong, as_number, call, check_keys, compare, compare_arrays, exercise
from minigrad.lessons.expressions import evaluate

__all__: list[str] = []


# --- 08.1: softsign --------------------------------------------------------------------------------------------------

_TAICHI = SimpleNamespace(
    abs=abs, exp=math.exp, log=math.log, max=max, min=min, sqrt=math.sqrt, tanh=math.tanh,
    select=lambda condition, x, y: x if condition else y,
)  # fmt: skip
_PARTS = (
    ast.Expression, ast.BinOp, ast.UnaryOp, ast.Compare, ast.Call, ast.Attribute, ast.Name, ast.Constant, ast.Load,
    ast.operator, ast.unaryop, ast.cmpop,
)  # fmt: skip


def _snippet(text: Any) -> Callable[[float], float]:
    """Evaluate a snippet for one scalar. Raise `Wrong` where minigrad would reject it."""
    if not isinstance(text, str):
        raise Wrong(f'the snippet should be a string, like "a / (1 + ti.exp(-a))", not a {type(text).__name__}.')
    try:
        tree = ast.parse(text.strip(), mode="eval")
    except SyntaxError as error:
        raise Wrong(f"the snippet {text!r} is no expression: {error.msg}. Write no `return` and no `=`.") from None
    for part in ast.walk(tree):
        if isinstance(part, ast.Call) and not isinstance(part.func, ast.Attribute):
            raise Wrong(f"the snippet calls {ast.unparse(part.func)}; its functions are Taichi's, such as ti.abs.")
        if isinstance(part, ast.Attribute) and (ast.unparse(part.value) != "ti" or not hasattr(_TAICHI, part.attr)):
            raise Wrong(f"the snippet has {ast.unparse(part)} in it; its functions are Taichi's, such as ti.abs.")
        if isinstance(part, ast.Name) and part.id not in ("a", "ti"):
            raise Wrong(f"the snippet names {part.id!r}. The operand is called a.")
        if not isinstance(part, _PARTS):
            raise Wrong(f"the snippet {text!r} should consist of +, -, *, /, numbers, a, and functions such as ti.abs.")
    return lambda a: float(evaluate(tree.body, {"ti": _TAICHI, "a": a}))


def _rule(rule: Any) -> Callable[[float, float, float], Any]:
    """Wrap a rule, which names the parameters it needs, as a function of g, y and a."""
    if not callable(rule):
        raise Wrong(f"the rule should be a function, like lambda g, y, a: …, and this is a {type(rule).__name__}.")
    names = list(inspect.signature(rule).parameters)
    if unknown := [name for name in names if name not in ("g", "y", "a")]:
        raise Wrong(f"the rule has the parameters {', '.join(unknown)}. It may have g, y and a.")
    if "g" not in names:
        raise Wrong("the rule has no parameter g, the gradient of the output, by which the derivative is multiplied.")
    return lambda g, y, a: call(rule, *[{"g": g, "y": y, "a": a}[name] for name in names])


@exercise("08.1", "the derivative is 1/(1 + |a|)² on both sides of 0. These two lines define softsign on every device.")
def _softsign(answer: Any) -> None:
    check_keys(answer, "snippet", "rule")
    compute, rule = _snippet(answer["snippet"]), _rule(answer["rule"])
    for a in (3.0, -1.0, 0.0):
        size = 1.0 + abs(a)
        mistakes = [
            (a + abs(a), "that is a / 1, and then + |a|. Put parentheses around 1 + ti.abs(a)."),
            (abs(a) / size, "the numerator is a itself, with its sign."),
            (a / (size - 2.0 * abs(a)) if abs(a) != 1.0 else math.inf, "in the denominator, |a| is added."),
        ]
        try:
            value = compute(a)
        except ZeroDivisionError:
            raise Wrong(f"the snippet divides by 0 at a = {a:g}. The denominator is 1 + ti.abs(a).") from None
        compare(f"the snippet at a = {a:g}", value, a / size, mistakes)
    for g, a in ((1.0, 3.0), (1.0, -1.0), (1.0, -3.0), (2.0, 1.0), (1.0, 0.0)):
        size, y = 1.0 + abs(a), a / (1.0 + abs(a))
        mistakes = [
            (1.0 / size**2, "the derivative is right, but it must be multiplied by g, the gradient of the output."),
            (g / size, "that is the derivative of the numerator alone. The denominator depends on a, too."),
            (g * (size - a) / size**2, "the derivative of |a| is −1 for negative a: in the numerator a·(−1) is |a|."),
            (g * (size + abs(a)) / size**2, "in the quotient rule there is a minus sign between the two products."),
            (g / (1.0 + a) ** 2 if a != -1.0 else math.inf, "right for positive a. A negative one needs |a|, too."),
            (g * y, "that is g times the output. The rule needs the derivative."),
        ]
        name = f"the rule at a = {a:g} with g = {g:g}"
        try:
            derivative = rule(g, y, a)
        except ZeroDivisionError:
            raise Wrong(f"{name} divides by 0. The denominator is 1 + |a|, which is never 0.") from None
        compare(name, derivative, g / size**2, mistakes, "softsign goes up everywhere.")


# --- 08.2: bytes -----------------------------------------------------------------------------------------------------


@exercise("08.2", "fused, the product never goes to memory: 8 million bytes of 24 less. And memory decides here.")
def _bytes(answer: Any) -> None:
    check_keys(answer, "two kernels", "one kernel", "operations per byte")
    known: dict[str, tuple[float, list[tuple[float, str]]]] = {
        "two kernels": (
            24e6,
            [
                (16e6, "the product goes to memory and back: one kernel writes it, the other reads it."),
                (20e6, "the product is transferred twice: one kernel writes it, the other reads it."),
                (12e6, "that is one kernel. The multiplication and the addition read two arrays each, and write one."),
                (8e6, "that is what they write. Reading moves bytes, too."),
                (6e6, "these are elements. A float32 has four bytes."),
                (48e6, "a float32 has four bytes, not eight."),
            ],
        ),
        "one kernel": (
            16e6,
            [
                (12e6, "three arrays are read, and the result has to be written."),
                (24e6, "that is what two kernels transfer. In one, the product never leaves the processor."),
                (20e6, "the product needs no array: c is added to it at once."),
                (4e6, "one array, or elements instead of bytes? There are four arrays, and a float32 has four bytes."),
                (32e6, "a float32 has four bytes, not eight."),
            ],
        ),
        "operations per byte": (
            0.125,
            [
                (8.0, "that is bytes per operation. Turn it over."),
                (1 / 16, "each element is multiplied and added to: two operations."),
                (1 / 12, "that is of the two kernels, 2 million operations and 24 million bytes. Ask the fused one."),
                (0.5, "that is per element, or per byte of one array. The fused kernel transfers 16 million bytes."),
                (2e6, "that is how many operations there are. Divide by the bytes that the fused kernel transfers."),
            ],
        ),
    }
    for name, (right, mistakes) in known.items():
        megabytes = [(right / 1e6, "that is in megabytes. Give it in bytes.")] if right > 1.0 else []
        compare(name, answer[name], right, [*mistakes, *megabytes])


# --- 08.3: a loop that copies ----------------------------------------------------------------------------------------


class _Address(int):
    """An address on a board: all that a program knows of an array there."""


class _Board:
    """The lesson's board, which records uploads (x, or else a w) and the size of each download."""

    def __init__(self, x: Any) -> None:
        self._x = x
        self._memory: list[Any] = []
        self.ups: list[str] = []
        self.downs: list[int] = []

    def put(self, array: Any) -> _Address:
        import numpy as np

        if isinstance(array, _Address):
            raise Wrong("you put an address on the board. An array with an address is there already.")
        self.ups.append("x" if np.array_equal(array, self._x) else "w")
        return self._keep(np.array(array))

    def get(self, address: Any) -> Any:
        array = self._at(address)
        self.downs.append(array.size)
        return array.copy()

    def run(self, op: str, *addresses: Any) -> _Address:
        if op not in ("step", "loss"):
            raise Wrong(f'the board has no kernel for {op!r}. There are "step" and "loss".')
        if len(addresses) != 2:
            raise Wrong(f'run("{op}", …) takes two addresses, those of w and of x, and got {len(addresses)}.')
        w, x = map(self._at, addresses)
        return self._keep(w - 0.25 * (w - x) if op == "step" else ((w - x) ** 2).sum())

    def _at(self, address: Any) -> Any:
        if not isinstance(address, _Address):
            raise Wrong(f"the board expects an address, as put and run return it, but got a {type(address).__name__}.")
        return self._memory[address]

    def _keep(self, array: Any) -> _Address:
        self._memory.append(array)
        return _Address(len(self._memory) - 1)

    def __repr__(self) -> str:
        return "a board"


@exercise("08.3", "two uploads, one download of w and one of each loss: for ten steps or for ten thousand.")
def _stays(answer: Any) -> None:
    import numpy as np

    for steps in (1, 5):
        x, w = np.array([1.0, -2.0, 0.5]), np.array([0.0, 4.0, -1.0])
        board, case = _Board(x), f"in {steps} step{'s'[: steps > 1]}"
        result = call(answer, board, x.copy(), w.copy(), steps)
        if not isinstance(result, tuple | list) or len(result) != 2:
            raise Wrong(f"return two things, w and the list of losses; this is a {type(result).__name__}.")
        path, right = [w], []
        for _ in range(steps):
            right.append(float(((path[-1] - x) ** 2).sum()))
            path.append(path[-1] - 0.25 * (path[-1] - x))
        _look_at_w(f"{case}, w", result[0], path)
        _look_at_losses(case, result[1], [*right, float(((path[-1] - x) ** 2).sum())])
        _look_at_moves(case, board, steps)


def _look_at_w(name: str, last: Any, path: list[Any]) -> None:
    if isinstance(last, _Address):
        raise Wrong("the w that you return is an address. Fetch what is there, after the loop: board.get(…).")
    mistakes = [
        (path[0], "has not changed. Return the array at the address that the last board.run returned."),
        (
            path[1],
            "has made one step only. Each step begins at the address of the last one: far_w = board.run(…).",
        ),
        (path[-2], "is one step behind. Fetch it after the last step."),
    ]
    compare_arrays(name, last, path[-1], [one for one in mistakes if one[0] is not path[-1]])


def _look_at_losses(case: str, losses: Any, right: list[float]) -> None:
    steps = len(right) - 1
    if not isinstance(losses, list | tuple) or len(losses) != steps:
        count = f" of {len(losses)}" if isinstance(losses, list | tuple) else ""
        raise Wrong(f"{case}, the losses should be a list of {steps}, and this is a {type(losses).__name__}{count}.")
    for k, loss in enumerate(losses):
        if isinstance(loss, _Address):
            raise Wrong("the losses that you return are addresses. Fetch each scalar: board.get(…).")
        mistakes = [
            (right[k + 1], "that is the loss after the step. The loop above looks before it."),
            (right[0], "that is the loss of the first w again. Use the address that the last step returned."),
        ]
        value = as_number(loss.item() if hasattr(loss, "item") else loss, f"loss {k}")
        compare(f"{case}, loss {k}", value, right[k], [one for one in mistakes if one[0] != right[k]])


def _look_at_moves(case: str, board: _Board, steps: int) -> None:
    for name in ("x", "w"):
        if (count := board.ups.count(name)) > 1:
            raise Wrong(f"{case}, {name} is uploaded {count} times. Do that before the loop, and keep its address.")
    whole = sum(size > 1 for size in board.downs)
    if not board.ups or not whole:
        raise Wrong("right, but computed here. The arrays should go to the board, and board.run compute there.")
    if whole > 1:
        raise Wrong(f"{case}, full arrays are downloaded {whole} times. Fetch w once, after the loop.")
    if len(board.downs) > steps + 1:
        raise Wrong(f"{case}, there are {len(board.downs)} downloads. One for w and one a loss are {steps + 1}.")


# --- 08.4: races -----------------------------------------------------------------------------------------------------

_LOOPS = {
    "A": (True, "x is only read, and each iteration writes its own y. Concurrent reads are safe."),
    "B": (True, "each iteration reads and writes its own x[i], and no other iteration accesses it."),
    "C": (False, "iteration i reads x[i + 1], which iteration i + 1 overwrites: before or after is not determined."),
    "D": (False, "all iterations read and write total[0], as the workers did with their drawer."),
    "E": (True, "the elements are in another order, but each iteration writes its own, and y is not read."),
    "F": (False, "iterations 0 and 1 both write y[0]; the last write wins, and which is last is not determined."),
}


@exercise("08.4", "an iteration may read what no other writes, and write what no other reads or writes.")
def _races(answer: Any) -> None:
    check_keys(answer, *_LOOPS)
    for letter, (safe, why) in _LOOPS.items():
        flag = answer[letter]
        if not isinstance(flag, bool):
            raise Wrong(f"{letter} should be True (the same in any order) or False (a race), not {flag!r:.40}.")
        if flag != safe:
            raise Wrong(f"{letter} is {'no' if safe else 'a'} race: {why}")
