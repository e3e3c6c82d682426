"""Modules: parameters, buffers, submodules, attributes, modes and hooks that change between calls."""

from __future__ import annotations

import copy
import types
from functools import partial

import minigrad as mg
from adversary import Knob, Scene, scene

nn, F = mg.nn, mg.functional


def module_scene(model, *knobs, step=None):
    """Return the scene of a step that calls a module."""
    return Scene(step or (lambda x: model(x)), knobs, [model])


def weights(*values, shape=(2, 3)):
    """Return parameters filled with these values."""
    return [nn.Parameter(mg.full(shape, value)) for value in values]


class ApplyAll(nn.Module):
    """A module that applies whatever parameters, buffers and submodules it has."""

    def forward(self, x):
        for p in (*self.parameters(recurse=False), *self.buffers(recurse=False)):
            x = x * p
        for part in self.children():
            x = part(x)
        return x


class AttributeModule(nn.Module):
    """A module that computes with an attribute of any type."""

    def __init__(self, attribute):
        super().__init__()
        self.attribute = attribute

    def forward(self, x):
        return x * self.attribute


@scene("a parameter that is replaced")
def _(world):
    model = nn.Linear(3, 2)
    return module_scene(model, Knob(partial(setattr, model, "weight"), [model.weight, *weights(2.0, -1.0)]))


@scene("a parameter that is None at times")
def _(world):
    model = nn.Linear(3, 2)
    return module_scene(model, Knob(partial(setattr, model, "bias"), [model.bias, None]))


@scene("a parameter that is registered and deleted")
def _(world):
    model = ApplyAll()

    def put(names):
        for name in list(model._parameters):
            delattr(model, name)
        for name in names:
            model.register_parameter(name, *weights(2.0 + len(name), shape=(3,)))

    return module_scene(model, Knob(put, [[], ["a"], ["a", "bcd"]]))


@scene("a parameter whose data is assigned")
def _(world):
    model = nn.Linear(3, 2)

    def put(value):
        model.weight.data = mg.full((2, 3), value)

    put(0.5)
    return module_scene(model, Knob(put, [0.5, 2.0, -1.0]))


@scene("a parameter that is written in place")
def _(world):
    model = nn.Linear(3, 2)

    def put(value):
        with mg.no_grad():
            model.weight.fill_(value)

    put(0.5)
    return module_scene(model, Knob(put, [0.5, 2.0]))


@scene("a buffer that is replaced")
def _(world):
    model = ApplyAll()
    model.register_buffer("b", mg.tensor(2.0))
    return module_scene(model, Knob(partial(setattr, model, "b"), [model.b, mg.tensor(3.0), mg.tensor(5.0)]))


@scene("a buffer that is registered and deleted")
def _(world):
    model = ApplyAll()

    def put(value):
        if "b" in model._buffers:
            del model.b
        if value is not None:
            model.register_buffer("b", mg.tensor(value))

    return module_scene(model, Knob(put, [None, 2.0, 3.0]))


@scene("a buffer that is written in place")
def _(world):
    model = ApplyAll()
    model.register_buffer("b", mg.tensor(2.0))
    return module_scene(model, Knob(model.b.fill_, [2.0, 3.0]))


@scene("a module in a module that is replaced")
def _(world):
    model = nn.Sequential(nn.Linear(3, 3), nn.ReLU())
    return module_scene(model, Knob(partial(model.__setitem__, 1), [model[1], nn.Tanh(), nn.Linear(3, 3)]))


@scene("a module that is added as an attribute and deleted")
def _(world):
    model = ApplyAll()

    def put(part):
        if "part" in model._modules:
            del model.part
        if part is not None:
            model.part = part

    return module_scene(model, Knob(put, [None, nn.Tanh(), nn.Linear(3, 3)]))


@scene("nn.Sequential that is edited")
def _(world):
    model = nn.Sequential(nn.Linear(3, 3))

    def put(parts):
        while len(model) > 1:
            del model[1]
        for part in parts:
            model.append(part)

    return module_scene(model, Knob(put, [[], [nn.Tanh()], [nn.ReLU(), nn.Tanh()], [nn.Tanh(), nn.ReLU()]]))


@scene("the order of modules in nn.Sequential")
def _(world):
    model = nn.Sequential(nn.Tanh(), nn.Sigmoid())

    def put(order):
        parts = {"tanh": nn.Tanh(), "sigmoid": nn.Sigmoid()}
        for k, name in enumerate(order):
            model[k] = parts[name]

    return module_scene(model, Knob(put, [["tanh", "sigmoid"], ["sigmoid", "tanh"]]))


class ContainerModule(nn.Module):
    """A module that calls the modules in a container that is its attribute."""

    def __init__(self, parts):
        super().__init__()
        self.parts = parts

    def forward(self, x):
        for part in self.parts.values() if hasattr(self.parts, "values") else self.parts:
            x = part(x) if callable(part) else x * part
        return x


@scene("nn.ModuleList that is edited")
def _(world):
    model = ContainerModule(nn.ModuleList([nn.Linear(3, 3)]))

    def put(parts):
        del model.parts[1:]
        model.parts.extend(parts)

    return module_scene(model, Knob(put, [[], [nn.Tanh()], [nn.Tanh(), nn.ReLU()]]))


@scene("nn.ModuleDict that is edited")
def _(world):
    model = ContainerModule(nn.ModuleDict({"a": nn.Linear(3, 3)}))

    def put(parts):
        for name in [name for name in model.parts if name != "a"]:
            del model.parts[name]
        model.parts.update(parts)

    return module_scene(model, Knob(put, [{}, {"b": nn.Tanh()}, {"c": nn.ReLU(), "b": nn.Tanh()}]))


@scene("nn.ParameterList that is edited")
def _(world):
    model = ContainerModule(nn.ParameterList(weights(2.0, shape=(3,))))

    def put(value):
        model.parts[0] = weights(value, shape=(3,))[0]

    return module_scene(model, Knob(put, [2.0, 3.0, 5.0]))


@scene("nn.ParameterList that grows")
def _(world):
    model = ContainerModule(nn.ParameterList(weights(2.0, shape=(3,))))
    return module_scene(model, Knob(lambda value: model.parts.extend(weights(value)), [2.0, 3.0, 5.0], undone=False))


@scene("nn.ParameterDict that is edited")
def _(world):
    model = ContainerModule(nn.ParameterDict({"a": weights(2.0)[0]}))

    def put(value):
        model.parts["a"] = weights(value)[0]

    return module_scene(model, Knob(put, [2.0, 3.0, 5.0]))


@scene("a list of modules that is no module")
def _(world):
    model = nn.Module()
    parts = [nn.Linear(3, 3)]
    model.parts = parts

    def put(count):
        parts[1:] = [nn.Tanh()] * count

    def step(x):
        for part in model.parts:
            x = part(x)
        return x

    return module_scene(model, Knob(put, [0, 1, 2]), step=step)


ATTRIBUTES = {
    "a tensor that is an attribute of a module": lambda: [mg.tensor(2.0), mg.tensor(3.0), mg.tensor([4.0])],
    "a float that is an attribute of a module": lambda: [2.0, 3.0, -0.5],
    "a NumPy scalar that is an attribute of a module": lambda: [mg.tensor(2.0).numpy()[()], 3.0],
    "zero and minus zero as attributes of a module": lambda: [0.0, -0.0],
    "1, True and 1.0 as attributes of a module": lambda: [1, True, 1.0],
}
for _name, _values in ATTRIBUTES.items():

    @scene(_name)
    def _(world, values=_values):
        attributes = values()
        model = AttributeModule(attributes[0])
        integers = mg.tensor([1, 2])
        step = lambda x: (model(x.abs()), model(integers))  # noqa: E731
        return module_scene(model, Knob(partial(setattr, model, "attribute"), attributes), step=step)


@scene("an attribute of a module that is not called")
def _(world):
    model = nn.Module()
    model.part = AttributeModule(2.0)
    return module_scene(
        model, Knob(partial(setattr, model.part, "attribute"), [2.0, 3.0]), step=lambda x: x * model.part.attribute
    )


@scene("a list that is an attribute of a module")
def _(world):
    model = nn.Module()
    model.values = [2.0]
    step = lambda x: x * sum(model.values)  # noqa: E731
    return module_scene(model, Knob(partial(model.values.__setitem__, 0), [2.0, 3.0]), step=step)


@scene("a dict that is an attribute of a module")
def _(world):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.options = {"scale": 2.0}

        def forward(self, x):
            return x * self.options["scale"]

    model = Net()
    return module_scene(model, Knob(partial(model.options.__setitem__, "scale"), [2.0, 3.0]))


@scene("an object that is an attribute of a module")
def _(world):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.config = types.SimpleNamespace(scale=2.0)

        def forward(self, x):
            return x * self.config.scale

    model = Net()
    return module_scene(model, Knob(partial(setattr, model.config, "scale"), [2.0, 3.0]))


@scene("a function that is an attribute of a module")
def _(world):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.activation = mg.relu

        def forward(self, x):
            return self.activation(x)

    model = Net()
    return module_scene(model, Knob(partial(setattr, model, "activation"), [mg.relu, mg.tanh]))


@scene("a class attribute of a module")
def _(world):
    class Net(nn.Module):
        scale = 2.0

        def forward(self, x):
            return x * self.scale

    return module_scene(Net(), Knob(partial(setattr, Net, "scale"), [2.0, 3.0]))


@scene("a global variable that forward reads")
def _(world):
    module = world.module("def forward(self, x):\n    return x * thing", thing=2.0)
    net = type("Net", (nn.Module,), {"forward": module.forward})
    return module_scene(net(), Knob(partial(setattr, module, "thing"), [2.0, 3.0]))


@scene("a property of a module")
def _(world):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.options = {"scale": 2.0}

        @property
        def scale(self):
            return self.options["scale"]

        def forward(self, x):
            return x * self.scale

    model = Net()
    return module_scene(model, Knob(partial(model.options.__setitem__, "scale"), [2.0, 3.0]))


@scene("train and eval")
def _(world):
    model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))
    return module_scene(model, Knob(model.train, [True, False]))


@scene("training of a part that is set by itself")
def _(world):
    model = nn.Sequential(nn.Dropout(0.5), nn.Dropout(0.25))
    return module_scene(model, Knob(partial(setattr, model[1], "training"), [True, False]))


@scene("training of a module that is only looked at")
def _(world):
    model = nn.Module()
    return Scene(lambda x: x * (2 if model.training else 3), Knob(model.train, [True, False]))


@scene("requires_grad_ of a module")
def _(world):
    model = nn.Sequential(nn.Linear(3, 3), nn.Tanh(), nn.Linear(3, 1))

    def step(x):
        model.zero_grad()
        model(x).sum().backward()
        return [p.grad for p in model.parameters()]

    return module_scene(model, Knob(model[0].requires_grad_, [True, False]), step=step)


@scene("weights that are tied")
def _(world):
    model = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3))
    return module_scene(model, Knob(partial(setattr, model[1], "weight"), [model[1].weight, model[0].weight]))


@scene("a state that is loaded into a module")
def _(world):
    model = nn.Linear(3, 2)
    states = [copy.deepcopy(model.state_dict()), copy.deepcopy(nn.Linear(3, 2).state_dict())]
    return module_scene(model, Knob(model.load_state_dict, states))


@scene("a module that is converted")
def _(world):
    model = nn.Linear(3, 2)
    return module_scene(model, Knob(model.to, [mg.float32, mg.float64]), step=lambda x: model(x.to(model.weight.dtype)))


@scene("nn.init between calls")
def _(world):
    model = nn.Linear(3, 2)
    put = lambda value: nn.init.constant_(model.weight, value)  # noqa: E731
    put(0.5)
    return module_scene(model, Knob(put, [0.5, 2.0]))


@scene("weight_norm and remove_weight_norm")
def _(world):
    model = nn.Linear(3, 2)

    def put(normed):
        (nn.utils.weight_norm if normed else nn.utils.remove_weight_norm)(model)
        if normed:
            model.weight_g.data = model.weight_g * 2

    return module_scene(model, Knob(put, [False, True]))


@scene("spectral_norm and remove_spectral_norm")
def _(world):
    model = nn.Linear(3, 2)

    def put(normed):
        (nn.utils.spectral_norm if normed else nn.utils.remove_spectral_norm)(model)

    return module_scene(model, Knob(put, [False, True]))


@scene("a model that is rebound")
def _(world):
    model = nn.Linear(3, 2)
    models = [model, nn.Linear(3, 2), nn.Tanh()]

    def put(k):
        nonlocal model
        model = models[k]

    return Scene(lambda x: model(x), Knob(put, [0, 1, 2]))


@scene("a model in a dict")
def _(world):
    models = {"now": nn.Linear(3, 2)}
    put = partial(models.__setitem__, "now")
    return Scene(lambda x: models["now"](x), Knob(put, [models["now"], nn.Linear(3, 2), nn.Tanh()]))


@scene("a model that is an attribute of an object")
def _(world):
    trainer = types.SimpleNamespace(model=nn.Linear(3, 2))
    put = partial(setattr, trainer, "model")
    return Scene(lambda x: trainer.model(x), Knob(put, [trainer.model, nn.Linear(3, 2)]))


@scene("a part that is chosen by name")
def _(world):
    model, chosen = nn.ModuleDict({"a": nn.Linear(3, 2), "b": nn.Linear(3, 2)}), ["a"]
    put = partial(chosen.__setitem__, 0)
    return module_scene(model, Knob(put, ["a", "b"]), step=lambda x: getattr(model, chosen[0])(x))


@scene("forward of an object that is patched")
def _(world):
    model = nn.Linear(3, 2)
    forward = model.forward
    versions = [forward, lambda x: forward(x) * 2, types.MethodType(lambda self, x: F.linear(x, self.weight), model)]

    def put(k):
        if k:
            model.forward = versions[k]
        else:
            vars(model).pop("forward", None)

    return Scene(lambda x: model(x), Knob(put, [0, 1, 2]))


@scene("forward of a class that is patched")
def _(world):
    class Net(nn.Linear):
        pass

    model = Net(3, 2)
    versions = [nn.Linear.forward, lambda self, x: F.linear(x, self.weight) * 2]
    return module_scene(model, Knob(partial(setattr, Net, "forward"), versions))


@scene("__class__ of a module that is assigned")
def _(world):
    class Doubled(nn.Linear):
        def forward(self, x):
            return super().forward(x) * 2

    model = nn.Linear(3, 2)
    return Scene(lambda x: model(x), Knob(partial(setattr, model, "__class__"), [nn.Linear, Doubled]))


@scene("parameters that are counted")
def _(world):
    model = nn.Sequential(nn.Linear(3, 3))

    def put(count):
        while len(model) > 1:
            del model[-1]
        for _ in range(count):
            model.append(nn.Linear(3, 3))

    step = lambda x: x * sum([p.numel() for p in model.parameters()])  # noqa: E731
    return module_scene(model, Knob(put, [0, 1, 2]), step=step)


@scene("the names of a state_dict")
def _(world):
    model = ApplyAll()

    def put(name):
        for old in list(model._parameters):
            delattr(model, old)
        model.register_parameter(name, *weights(2.0, shape=(3,)))

    put("a")
    return module_scene(
        model, Knob(put, ["a", "bc"]), step=lambda x: {f"{name}!": y * x for name, y in model.state_dict().items()}
    )
