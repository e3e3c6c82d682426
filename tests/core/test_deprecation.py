"""Old names of attributes work for one release and warn with the new name."""

import importlib

import pytest

from cases import merge_cases
from minigrad.core.deprecation import DeprecatedAlias

NAMES = {
    "minigrad.backends.formula": {"Phrase": "RawFormula"},
    "minigrad.core.snapshot": {"node_of": "get_node", "record_of": "make_record"},
    "minigrad.data.idx": {"Openable": "SupportsOpen"},
    "minigrad.distributed.sweeps.plan": {"Axis": "SearchAxis", "Plan": "SweepPlan"},
    "minigrad_viz.trace": {"Block": "TraceBlock", "Node": "TraceNode", "Step": "PassStep", "Stop": "TourStop"},
    "minigrad_viz.trace.gradient_flow": {"Measured": "StepMeasurement"},
    "minigrad_viz.trace.history": {"Event": "Arrival", "History": "Timeline"},
    "minigrad_viz.trace.rows": {
        "About": "ModuleInfo",
        "Block": "TraceBlock",
        "Node": "TraceNode",
        "Shaped": "TensorData",
        "Step": "PassStep",
        "Stop": "TourStop",
    },
    "minigrad_viz.widget.sweep_widget": {"Followed": "SweepWidget"},
}
CLASSES = {
    "core.op": ("Op",),
    "data.sampler": ("TensorSampler",),
    "distributed.sweeps.results": ("Sweep", "Trial"),
    "nn.utils.rnn": ("PackedSequence",),
    "training.run": ("Run",),
}


class Layer:
    def reset(self):
        return self

    restart = DeprecatedAlias("reset")


def test_an_alias_of_a_method_warns_at_the_calling_line():
    layer = Layer()
    with pytest.warns(DeprecationWarning, match=r"Layer\.restart is deprecated .* use reset\.") as warned:
        assert layer.restart() is layer
    assert [warning.filename for warning in warned] == [__file__]


@pytest.mark.parametrize(("module", "name"), [(module, name) for module, names in CLASSES.items() for name in names])
def test_each_alias_of_a_public_class_is_an_attribute_of_it(module, name):
    cls = getattr(importlib.import_module(f"minigrad.{module}"), name)
    aliases = {old: alias._new_name for old, alias in vars(cls).items() if isinstance(alias, DeprecatedAlias)}
    assert aliases
    assert [new for new in aliases.values() if not hasattr(cls, new)] == []


@merge_cases
@pytest.mark.parametrize(("module", "old"), [(module, old) for module, names in NAMES.items() for old in names])
def test_a_deprecated_name_of_a_module_is_the_new_one_and_warns(module, old):
    imported, new = importlib.import_module(module), NAMES[module][old]
    with pytest.warns(DeprecationWarning, match=rf"{module}\.{old} is deprecated .* use {new}\.") as warned:
        deprecated = getattr(imported, old)
    assert deprecated is getattr(imported, new)
    assert [warning.filename for warning in warned] == [__file__]
    assert old not in imported.__all__


def test_an_unknown_name_raises_attribute_error():
    with pytest.raises(AttributeError, match=r"module 'minigrad_viz\.trace\.rows' has no attribute 'Nodes'"):
        importlib.import_module("minigrad_viz.trace.rows").Nodes  # noqa: B018
