"""Containers of modules and parameters behave as lists and dicts."""

import pytest

import minigrad as mg
from minigrad import nn
from minigrad.core.errors import ArgumentError, DTypeError, ShapeError


def three_linears():
    return [nn.Linear(k, k) for k in (1, 2, 3)]


@pytest.mark.parametrize("kind", [nn.ModuleList, lambda modules: nn.Sequential(*modules)])
def test_indexed_containers_behave_as_lists(kind):
    a, b, c = modules = three_linears()
    container = kind(modules)
    assert list(container) == [container[0], container[1], container[-1]] == modules
    assert len(container) == 3
    assert list(container[1:]) == [b, c]
    assert type(container[1:]) is type(container)
    container[1] = c
    assert list(container) == [a, c, c]
    assert list(container.append(b)) == [a, c, c, b]
    del container[1]
    assert list(container) == [a, c, b]
    assert container.pop(0) is a
    assert list(container.insert(1, a)) == [c, a, b]
    assert list(container.extend([b])) == [c, a, b, b]
    assert list(container._modules) == ["0", "1", "2", "3"]
    with pytest.raises(ShapeError, match="index 4 is out of range for length 4"):
        container[4]
    with pytest.raises(DTypeError, match="indices must be integers or slices, but got 'a'"):
        container["a"]


def test_a_named_sequential_retains_its_names():
    model = nn.Sequential({"first": nn.Linear(1, 2), "second": nn.Linear(2, 3)})
    assert list(model.state_dict()) == ["first.weight", "first.bias", "second.weight", "second.bias"]
    assert model.second is model[1]
    assert list(model[:1].state_dict()) == ["first.weight", "first.bias"]
    assert model(mg.ones(1, 1)).shape == (1, 3)
    model[0] = nn.Linear(5, 2)
    assert model.first.in_features == 5


def test_module_lists_concatenate():
    a, b = nn.ModuleList(three_linears()), nn.ModuleList(three_linears())
    assert list(a + b) == [*a, *b]
    a += b
    assert len(a) == 6


def test_a_dict_of_modules():
    container = nn.ModuleDict({"a": nn.Linear(1, 1)})
    container["b"] = nn.ReLU()
    container.update([("c", nn.Tanh())])
    assert list(container) == list(container.keys()) == ["a", "b", "c"]
    assert [type(m).__name__ for m in container.values()] == ["Linear", "ReLU", "Tanh"]
    assert dict(container.items())["b"] is container["b"]
    assert "b" in container
    assert container.pop("b") is not None
    del container["c"]
    assert len(container) == 1
    with pytest.raises(KeyError, match="ModuleDict has no module 'z'; it has a"):
        container["z"]
    container.clear()
    assert len(container) == 0
    with pytest.raises(DTypeError, match=r"register_module: k is an int, which is not a Module subclass\."):
        container["k"] = 3


def test_lists_and_dicts_of_parameters():
    container = nn.ParameterList([mg.ones(2), nn.Parameter(mg.zeros(3))])
    container.append(mg.tensor([1]))
    assert [p.requires_grad for p in container] == [True, True, False]
    assert list(container.state_dict()) == ["0", "1", "2"]
    container[0] = mg.zeros(5)
    assert container[0].shape == (5,)
    assert len(container[1:]) == 2
    with pytest.raises(DTypeError, match="expected a Parameter or Tensor, but got an int"):
        container.append(3)
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
    results = []
    for library in (mg, torch):
        of = library.nn
        a, b = of.Sequential(of.Linear(2, 2), of.ReLU()), of.Sequential(of.Tanh())
        first, both, twice, again = a[0], a + b, a * 2, 3 * b
        a += b
        b *= 2
        assert both[0] is twice[2] is a[0] is first
        names = [[name for name, _ in x.named_children()] for x in (both, a, b)]
        results.append((names, [len(x) for x in (both, twice, again, a, b)], list(twice.state_dict())))
        for wrong, error in (
            (lambda a=a: a + "b", (TypeError, ValueError)),
            (lambda a=a: a * 0, ValueError),
            (lambda a=a: a * 1.5, TypeError),
        ):
            with pytest.raises(error):
                wrong()
    assert results[0] == results[1]


@pytest.mark.parity
def test_a_dict_of_parameters_has_the_methods_of_a_dict_as_in_pytorch(torch):
    results = []
    for library in (mg, torch):
        x = library.nn.ParameterDict({name: library.ones(k) for k, name in enumerate("abc", 1)})
        lists = [
            x.pop("b").tolist(),
            x.popitem()[0],
            list(x),
            x.get("z", 5),
            x.setdefault("d", library.ones(2)).tolist(),
        ]
        y = x | {"e": library.zeros(1)}
        z = {"first": library.zeros(1)} | x
        x |= {"a": library.zeros(3)}
        lists += [list(x), list(y), list(z), list(reversed(y)), x["a"].tolist(), y["a"].tolist()]
        lists += [list(x.copy()), list(x.fromkeys("pq", library.ones(1)))]
        x.clear()
        lists += [len(x), list(x.parameters())]
        for wrong in (lambda x=x: x.pop("b"), lambda x=x: x.popitem()):
            with pytest.raises((KeyError, AttributeError)):
                wrong()
        listed = library.nn.ParameterList([library.ones(1)])
        listed += [library.zeros(2)]
        results.append([*lists, list(listed.state_dict())])
    assert results[0] == results[1]


CYCLES = {
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


@pytest.mark.parametrize("add", CYCLES.values(), ids=CYCLES)
def test_a_module_cannot_contain_itself(add):
    model = mg.nn.ModuleList([mg.nn.Linear(1, 1), mg.nn.ReLU()])
    shown, names = repr(model), list(model.state_dict())
    with pytest.raises(ArgumentError, match="modules would contain each other in a cycle"):
        add(model)
    assert (repr(model), list(model.state_dict()), len(list(model.modules()))) == (shown, names, 3)


def test_update_of_a_module_dict_is_atomic():
    model = mg.nn.ModuleDict({"a": mg.nn.ReLU()})
    for update in ({"b": mg.nn.ReLU(), "c": model}, {"b": mg.nn.ReLU(), "c": 3}):
        with pytest.raises((ArgumentError, DTypeError)):
            model.update(update)
        assert list(model) == ["a"]


def test_a_module_list_is_unchanged_after_a_rejected_insert():
    model = mg.nn.ModuleList([mg.nn.Linear(1, 1), mg.nn.ReLU()])
    for add in (lambda: model.insert(0, "a"), lambda: model.extend([mg.nn.ReLU(), "a"])):
        with pytest.raises(DTypeError, match=r"is a str, which is not a Module subclass\."):
            add()
        assert [type(module).__name__ for module in model] == ["Linear", "ReLU"]


def test_a_module_may_be_registered_twice():
    one = mg.nn.Linear(1, 1)
    model = mg.nn.Sequential(one, mg.nn.Sequential(one), one)
    assert len(list(model.parameters())) == 2
