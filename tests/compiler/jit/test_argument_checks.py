"""Checks: the generated code accepts arguments only if their keys are equal, and finds what a trace reads."""

import itertools
from types import SimpleNamespace

import numpy as np
import pytest

import minigrad as mg
from minigrad.compiler.jit.argument_checks import compile_check
from minigrad.compiler.jit.arguments import Arguments


def function(*args, **kwargs):
    """Stand in for a step."""


def tensors():
    whole = mg.arange(12.0).view(3, 4)
    shared, model, other = mg.ones(3), mg.nn.Linear(1, 1), mg.nn.Linear(1, 1)
    frozen, parameter = mg.ones(3, requires_grad=True), mg.nn.Parameter(mg.ones(3))
    return SimpleNamespace(**{name: x for name, x in locals().items() if name != "self"})


def cases(t):
    x, y, z = mg.ones(3) * 1, mg.ones(3) * 1, mg.ones(4) * 1
    return [
        *[
            (x,),
            (y,),
            (z,),
            (t.frozen,),
            (t.parameter,),
            (mg.ones(3, dtype=mg.float64),),
            (t.whole[0],),
            (t.whole[:, 0],),
        ],
        *[
            (x, y),
            (y, x),
            (x, x),
            (x, z),
            (t.whole[0], t.whole[1]),
            (t.whole[0], t.whole[0]),
            (t.whole[0], t.whole[1:]),
        ],
        *[(t.whole[:2], t.whole[1:]), (t.whole.T,), (t.whole,), (x[:0],), (y[:0], x[:0])],
        *[(x, 1), (x, 2), (x, True), (x, 1.0), (x, 2.5), (x, "a"), (x, "b"), (x, None), (None, x), (x, t.model)],
        *[(x, t.other), ([x],), ((x,),), ([x, 0.5],), ([y, 1.5],), ({"a": x},), ({"b": x},), ({"a": y, "b": 0.5},)],
        *[
            ({"b": 0.5, "a": y},),
            ({"a": [y, {"c": (0.5, None)}]},),
            ({"a": [x, {"c": (1.5, None)}]},),
            ((), x),
            ([], x),
        ],
        *[({}, x), (x, np.float64(1.0)), (1.0, 2.0), (x, (1, (2,))), (x, (1, (3,)))],
    ]


@pytest.mark.parametrize("device", ["numpy", pytest.param("cpu", marks=pytest.mark.needs("taichi"))])
def test_a_check_passes_exactly_for_equal_keys(device):
    before = mg.get_default_device()
    mg.set_default_device(device)
    try:
        t = tensors()
        argument_lists = [(args, {}) for args in cases(t)] + [((), {"x": args[0]}) for args in cases(t)[:4]]
        argument_lists += [((args[0],), {"by": by}) for args in cases(t)[:2] for by in (1, 0.5)]
        calls = [Arguments(function, args, kwargs) for args, kwargs in argument_lists]
        written = 0
        for call in calls:
            inputs = []
            check = compile_check(call, inputs)
            if check is None:
                assert any(isinstance(x, np.generic) for x in call.leaves)
                continue
            for other, (args, kwargs) in zip(calls, argument_lists, strict=True):
                inputs[:] = []
                checked = check(args, kwargs)
                assert (checked is not None) == (call.key == other.key), (args, kwargs, call.leaves)
                if checked is not None:
                    written += 1
                    assert [id(x) for x in checked] == [id(x) for x in other.tensors]
                    assert inputs == other.floats
        assert written > len(calls)
    finally:
        mg.set_default_device(before)


def test_modes_and_defaults_are_checked():
    x = mg.ones(3)
    check = compile_check(Arguments(function, (x,), {}), [])
    assert check((x,), {})[0] is x
    with mg.no_grad():
        assert check((x,), {}) is None
    mg.set_default_dtype(mg.float64)
    try:
        assert check((x,), {}) is None
    finally:
        mg.set_default_dtype(mg.float32)
    with mg.strict_shapes():
        assert check((x,), {}) is None
    assert check((x,), {})[0] is x


def test_a_tensor_that_got_a_graph_fails_the_check():
    w, base = mg.ones(2, requires_grad=True), mg.zeros(4)
    view = base[:2]
    check = compile_check(Arguments(function, (view,), {}), [])
    assert check((view,), {})[0] is view
    base.mul_(mg.cat([w, w]))
    assert check((view,), {}) is None  # because of its base
    x = mg.zeros(2)
    check = compile_check(Arguments(function, (x,), {}), [])
    x.add_(w)
    assert check((x,), {}) is None


def test_rare_containers_and_leaves_have_no_check():
    x = mg.ones(2)
    for args in ((slice(1), x), ({1: x},), (x, np.float32(1)), (SimpleNamespace(x=x),), (mg.max(x[None], 1),), (x, 1j)):
        assert compile_check(Arguments(function, args, {}), []) is None


def test_results_are_equal_with_and_without_checks(monkeypatch):
    def step(d, by, n=2):
        return {"y": d["x"] * by + n, "more": [d["more"][0] - by]}

    def results():
        jitted, records = mg.jit(step), []
        for k, n in itertools.product(range(1, 5), (2, 3, 2)):
            result = jitted({"x": mg.ones(2) * k, "more": [mg.zeros(2)]}, 0.5 * k, n=n)
            records.append([result["y"].tolist(), result["more"][0].tolist()])
        return records, jitted.trace_count

    expected = results()
    assert expected[1] == 2
    monkeypatch.setattr("minigrad.compiler.jit.compile_check", lambda *args: None)
    assert results() == expected
