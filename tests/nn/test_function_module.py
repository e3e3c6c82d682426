"""Modules that apply a function with settings."""

import pickle

import pytest

import minigrad as mg
from minigrad.nn.function_module import FunctionModule, UnaryFunctionModule


class Leaky(UnaryFunctionModule, of="leaky_relu"):
    def __init__(self, negative_slope: float = 0.5, inplace: bool = False) -> None:
        super().__init__(negative_slope=negative_slope, inplace=inplace)


def test_settings_are_attributes_read_at_each_call():
    layer = Leaky()
    assert layer(mg.tensor([-1.0, 2.0])).tolist() == [-0.5, 2.0]
    layer.negative_slope = 0.25
    assert layer(mg.tensor([-1.0, 2.0])).tolist() == [-0.25, 2.0]
    assert repr(layer) == "Leaky(negative_slope=0.25)"
    assert repr(Leaky(inplace=True)) == "Leaky(negative_slope=0.5, inplace=True)"


def test_a_subclass_has_its_function_and_settings():
    class Halved(Leaky):
        def __init__(self) -> None:
            super().__init__(0.125)

    assert Halved()(mg.tensor([-8.0])).tolist() == [-1.0]


def test_a_patched_function_is_applied(monkeypatch):
    layer = Leaky()
    monkeypatch.setattr(mg.functional, "leaky_relu", lambda input, **settings: input * 3.0)
    assert layer(mg.tensor([-1.0])).tolist() == [-3.0]


@pytest.mark.parametrize("layer", [x for x in vars(mg.nn.activation).values() if isinstance(x, type)])
def test_the_function_of_each_layer_exists(layer):
    if issubclass(layer, FunctionModule) and hasattr(layer, "applies"):
        assert callable(getattr(mg.functional, layer.applies))


def test_a_subclass_that_skips_its_init_applies_its_function():
    class Bare(mg.nn.Tanh):
        def __init__(self) -> None:
            mg.nn.Module.__init__(self)

    assert Bare()(mg.zeros(1)).tolist() == [0.0]


def test_layers_of_the_package_are_pickled_with_their_settings():
    for layer in (mg.nn.ELU(0.5), mg.nn.MaxPool2d(2, return_indices=True), mg.nn.CrossEntropyLoss(mg.ones(3))):
        again = pickle.loads(pickle.dumps(layer))
        assert repr(again) == repr(layer)
        assert isinstance(again, FunctionModule)
        assert again._settings == layer._settings
        assert again.state_dict().keys() == layer.state_dict().keys()


@pytest.mark.parametrize(("layer", "last_argument"), [(mg.nn.ReLU(), "input"), (mg.nn.MSELoss(), "target")])
def test_inputs_may_be_named(layer, last_argument):
    kwargs = {"input": mg.ones(1), **({"target": mg.ones(1)} if last_argument == "target" else {})}
    assert layer(**kwargs).shape in ((1,), ())


@pytest.mark.parametrize("layer", [mg.nn.Sigmoid, mg.nn.MSELoss, mg.nn.ReLU])
def test_an_unknown_setting_raises(layer):
    with pytest.raises(TypeError, match="unexpected keyword argument 'slope'"):
        layer(slope=1.0)


def test_a_pickled_layer_without_settings_does_not_use_the_defaults():
    layer = mg.nn.ELU(0.5)
    del layer.__dict__["_settings"]
    with pytest.raises(AttributeError, match="_settings"):
        layer(mg.zeros(1))
