"""Containers of modules and parameters behave as lists and dicts."""

import pytest

import minigrad as mg
from minigrad import nn
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError


def three():
    return [nn.Linear(k, k) for k in (1, 2, 3)]


@pytest.mark.parametrize("kind", [nn.ModuleList, lambda modules: nn.Sequential(*modules)])
def test_numbered_modules_are_a_list(kind):
    a, b, c = modules = three()
    held = kind(modules)
    assert list(held) == [held[0], held[1], held[-1]] == modules
    assert len(held) == 3
    assert list(held[1:]) == [b, c]
    assert type(held[1:]) is type(held)
    held[1] = c
    assert list(held) == [a, c, c]
    assert list(held.append(b)) == [a, c, c, b]
    del held[1]
    assert list(held) == [a, c, b]
    assert held.pop(0) is a
    assert list(held.insert(1, a)) == [c, a, b]
    assert list(held.extend([b])) == [c, a, b, b]
    assert list(held._modules) == ["0", "1", "2", "3"]
    with pytest.raises(ShapeError, match="index 4 is out of range for length 4"):
        held[4]
    with pytest.raises(DTypeError, match="indices must be integers or slices, but got 'a'"):
        held["a"]


def test_a_sequence_with_names_keeps_them():
    model = nn.Sequential({"first": nn.Linear(1, 2), "second": nn.Linear(2, 3)})
    assert list(model.state_dict()) == ["first.weight", "first.bias", "second.weight", "second.bias"]
    assert model.second is model[1]
    assert list(model[:1].state_dict()) == ["first.weight", "first.bias"]
    assert model(mg.ones(1, 1)).shape == (1, 3)
    model[0] = nn.Linear(5, 2)
    assert model.first.in_features == 5


def test_lists_add_up():
    a, b = nn.ModuleList(three()), nn.ModuleList(three())
    assert list(a + b) == [*a, *b]
    a += b
    assert len(a) == 6


def test_a_dict_of_modules():
    held = nn.ModuleDict({"a": nn.Linear(1, 1)})
    held["b"] = nn.ReLU()
    held.update([("c", nn.Tanh())])
    assert list(held) == list(held.keys()) == ["a", "b", "c"]
    assert [type(m).__name__ for m in held.values()] == ["Linear", "ReLU", "Tanh"]
    assert dict(held.items())["b"] is held["b"]
    assert "b" in held
    assert held.pop("b") is not None
    del held["c"]
    assert len(held) == 1
    with pytest.raises(KeyError, match="ModuleDict has no module 'z'; it has a"):
        held["z"]
    held.clear()
    assert len(held) == 0
    with pytest.raises(DTypeError, match="k is an int, not a module"):
        held["k"] = 3


def test_lists_and_dicts_of_parameters():
    held = nn.ParameterList([mg.ones(2), nn.Parameter(mg.zeros(3))])
    held.append(mg.tensor([1]))
    assert [p.requires_grad for p in held] == [True, True, False]
    assert list(held.state_dict()) == ["0", "1", "2"]
    held[0] = mg.zeros(5)
    assert held[0].shape == (5,)
    assert len(held[1:]) == 2
    with pytest.raises(DTypeError, match="expected a Parameter or Tensor, but got an int"):
        held.append(3)
    named = nn.ParameterDict({"a": mg.ones(2)})
    named["b"] = mg.ones(1)
    assert list(named.state_dict()) == list(named) == ["a", "b"]
    assert "a" in named
    del named["a"]
    assert [name for name, _ in named.items()] == list(named.keys()) == ["b"]
    assert len(list(named.values())) == len(named) == 1
    with pytest.raises(KeyError, match="no parameter 'a'; it has b"):
        named["a"]
    assert repr(named) == "ParameterDict((b): Parameter of float32 (1,))  # 1 parameter"


@pytest.mark.parity
def test_sequences_are_added_and_repeated_as_in_pytorch(torch):
    found = []
    for library in (mg, torch):
        of = library.nn
        a, b = of.Sequential(of.Linear(2, 2), of.ReLU()), of.Sequential(of.Tanh())
        first, both, twice, again = a[0], a + b, a * 2, 3 * b
        a += b
        b *= 2
        assert both[0] is twice[2] is a[0] is first
        names = [[name for name, _ in x.named_children()] for x in (both, a, b)]
        found.append((names, [len(x) for x in (both, twice, again, a, b)], list(twice.state_dict())))
        for wrong, error in (
            (lambda a=a: a + "b", (TypeError, ValueError)),
            (lambda a=a: a * 0, ValueError),
            (lambda a=a: a * 1.5, TypeError),
        ):
            with pytest.raises(error):
                wrong()
    assert found[0] == found[1]


@pytest.mark.parity
def test_a_dict_of_parameters_has_the_methods_of_a_dict_as_in_pytorch(torch):
    found = []
    for library in (mg, torch):
        x = library.nn.ParameterDict({name: library.ones(k) for k, name in enumerate("abc", 1)})
        told = [
            x.pop("b").tolist(),
            x.popitem()[0],
            list(x),
            x.get("z", 5),
            x.setdefault("d", library.ones(2)).tolist(),
        ]
        y = x | {"e": library.zeros(1)}
        z = {"first": library.zeros(1)} | x
        x |= {"a": library.zeros(3)}
        told += [list(x), list(y), list(z), list(reversed(y)), x["a"].tolist(), y["a"].tolist()]
        told += [list(x.copy()), list(x.fromkeys("pq", library.ones(1)))]
        x.clear()
        told += [len(x), list(x.parameters())]
        for wrong in (lambda x=x: x.pop("b"), lambda x=x: x.popitem()):
            with pytest.raises((KeyError, AttributeError)):
                wrong()
        listed = library.nn.ParameterList([library.ones(1)])
        listed += [library.zeros(2)]
        found.append([*told, list(listed.state_dict())])
    assert found[0] == found[1]


CIRCLES = {
    "attribute": lambda m: setattr(m, "a", m),
    "add_module": lambda m: m.add_module("a", m),
    "append": lambda m: m.append(m),
    "insert": lambda m: m.insert(0, m),
    "extend": lambda m: m.extend([mg.nn.ReLU(), m]),
    "+=": lambda m: m.__iadd__([mg.nn.ReLU(), m]),
    "item": lambda m: m.__setitem__(0, m),
    "around": lambda m: m.append(mg.nn.Sequential(m)),
    "far around": lambda m: m.append(mg.nn.ModuleDict({"a": mg.nn.Sequential(mg.nn.ReLU(), m)})),
    "within": lambda m: setattr(m[0], "a", m),
}


@pytest.mark.parametrize("add", CIRCLES.values(), ids=CIRCLES)
def test_a_module_is_no_part_of_itself(add):
    model = mg.nn.ModuleList([mg.nn.Linear(1, 1), mg.nn.ReLU()])
    shown, names = repr(model), list(model.state_dict())
    with pytest.raises(ArgumentError, match="modules would contain each other in a cycle"):
        add(model)
    assert (repr(model), list(model.state_dict()), len(list(model.modules()))) == (shown, names, 3)


def test_a_module_dict_takes_all_or_none():
    model = mg.nn.ModuleDict({"a": mg.nn.ReLU()})
    for given in ({"b": mg.nn.ReLU(), "c": model}, {"b": mg.nn.ReLU(), "c": 3}):
        with pytest.raises((ArgumentError, DTypeError)):
            model.update(given)
        assert list(model) == ["a"]


def test_a_list_of_modules_is_as_it_was_after_something_else_is_put_in():
    model = mg.nn.ModuleList([mg.nn.Linear(1, 1), mg.nn.ReLU()])
    for add in (lambda: model.insert(0, "a"), lambda: model.extend([mg.nn.ReLU(), "a"])):
        with pytest.raises(DTypeError, match="is a str, not a module"):
            add()
        assert [type(module).__name__ for module in model] == ["Linear", "ReLU"]


def test_the_same_module_may_be_in_two_places():
    one = mg.nn.Linear(1, 1)
    model = mg.nn.Sequential(one, mg.nn.Sequential(one), one)
    assert len(list(model.parameters())) == 2
