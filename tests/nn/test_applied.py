"""Modules that are a function and its settings."""

import pickle

import pytest

import minigrad as mg
from minigrad.nn.applied import Applied, AppliedToInput


class Scaled(AppliedToInput, of=lambda input, by=2.0, inplace=False: input * by):
    def __init__(self, by: float = 2.0, inplace: bool = False) -> None:
        super().__init__(by=by, inplace=inplace)


def test_settings_are_attributes_that_are_read_at_each_call():
    layer = Scaled(by=3.0)
    assert layer(mg.tensor([1.0, 2.0])).tolist() == [3.0, 6.0]
    layer.by = 5.0
    assert layer(mg.tensor([1.0, 2.0])).tolist() == [5.0, 10.0]
    assert repr(layer) == "Scaled(by=5.0)"
    assert repr(Scaled(inplace=True)) == "Scaled(by=2.0, inplace=True)"


def test_a_subclass_has_its_function_and_settings():
    class Halved(Scaled):
        def __init__(self) -> None:
            super().__init__(0.5)

    assert Halved()(mg.tensor([4.0])).tolist() == [2.0]


def test_a_subclass_that_makes_a_bare_module_applies_its_function():
    class Bare(mg.nn.Tanh):
        def __init__(self) -> None:
            mg.nn.Module.__init__(self)

    assert Bare()(mg.zeros(1)).tolist() == [0.0]


def test_layers_of_the_package_are_pickled_with_their_settings():
    for layer in (mg.nn.ELU(0.5), mg.nn.MaxPool2d(2, return_indices=True), mg.nn.CrossEntropyLoss(mg.ones(3))):
        again = pickle.loads(pickle.dumps(layer))
        assert repr(again) == repr(layer)
        assert isinstance(again, Applied)
        assert again._settings == layer._settings
        assert again.state_dict().keys() == layer.state_dict().keys()


@pytest.mark.parametrize(("layer", "asked"), [(mg.nn.ReLU(), "input"), (mg.nn.MSELoss(), "target")])
def test_inputs_may_be_named(layer, asked):
    given = {"input": mg.ones(1), **({"target": mg.ones(1)} if asked == "target" else {})}
    assert layer(**given).shape in ((1,), ())


@pytest.mark.parametrize("layer", [mg.nn.Sigmoid, mg.nn.MSELoss, mg.nn.ReLU])
def test_what_is_no_setting_is_refused(layer):
    with pytest.raises(TypeError, match="unexpected keyword argument 'slope'"):
        layer(slope=1.0)
