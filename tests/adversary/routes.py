"""Routes through variables: closures, globals, defaults, Python modules, functions."""

from __future__ import annotations

import builtins
import contextvars
import functools
import importlib
import operator
import sys
import threading
import types
from functools import partial
from typing import Any

from adversary import route


@route("a closure variable")
def _(world, use, value):
    thing = value

    def step(x):
        return use(x, thing)

    def put(new):
        nonlocal thing
        thing = new

    return step, put


@route("a closure variable of a function in the step")
def _(world, use, value):
    thing = value

    def step(x):
        def inner():
            return (lambda: use(x, thing))()

        return inner()

    def put(new):
        nonlocal thing
        thing = new

    return step, put


@route("a closure variable of a helper")
def _(world, use, value):
    thing = value

    def helper(x):
        return use(x, thing)

    def put(new):
        nonlocal thing
        thing = new

    return lambda x: helper(x) * 1, put


@route("the cell of a closure")
def _(world, use, value):
    def make_step(thing):
        def step(x):
            return use(x, thing)

        return step

    step = make_step(value)
    cell = step.__closure__[step.__code__.co_freevars.index("thing")]
    return step, partial(setattr, cell, "cell_contents")


def module_route(world, source, use, value, name="adversary_module"):
    """Return the step of a Python module with this source, and a function that sets the module's ``thing``."""
    module = world.module(source, name, use=use, thing=value)
    return module.step, partial(setattr, module, "thing")


GLOBALS = {
    "a global variable": "def step(x):\n    return use(x, thing)",
    "a global variable of a helper": "def helper(x):\n    return use(x, thing)\ndef step(x):\n    return helper(x)",
    "a global variable of a helper of a helper": (
        "def inner(x):\n    return use(x, thing)\ndef helper(x):\n    return inner(x)\n"
        "def step(x):\n    return helper(x) * 1"
    ),
    "a global variable in a lambda": "def step(x):\n    return (lambda y: use(y, thing))(x)",
    "a global variable in a comprehension": "def step(x):\n    return [use(y, thing) for y in (x, x + 1)]",
    "a global variable in a generator": (
        "def made(x):\n    yield use(x, thing)\n    yield use(x + 1, thing)\ndef step(x):\n    return list(made(x))"
    ),
    "a global variable in a class made in the step": (
        "def step(x):\n    class Inner:\n        held = thing\n    return use(x, Inner.held)"
    ),
    "a global variable in a method of a class made in the step": (
        "def step(x):\n    class Inner:\n        def call(self):\n            return use(x, thing)\n"
        "    return Inner().call()"
    ),
    "globals()[name]": "def step(x):\n    return use(x, globals()['thing'])",
    "globals()[name] of a helper": (
        "def read(name):\n    return globals()[name]\ndef step(x):\n    return use(x, read('thing'))"
    ),
    "eval": "def step(x):\n    return use(x, eval('thing'))",
    "exec": (
        "def step(x):\n    space = {}\n    exec('found = thing', globals(), space)\n    return use(x, space['found'])"
    ),
    "a default in the step": (
        "def step(x):\n    def inner(x, held=thing):\n        return use(x, held)\n    return inner(x)"
    ),
    "a global variable behind try": (
        "def step(x):\n    try:\n        return use(x, thing)\n    finally:\n        pass"
    ),
    "a global variable behind a with block": (
        "import contextlib\n@contextlib.contextmanager\ndef block():\n    yield thing\n"
        "def step(x):\n    with block() as held:\n        return use(x, held)"
    ),
    "a global variable that a function assigns": (
        "def step(x):\n    global thing\n    thing = thing\n    return use(x, thing)"
    ),
    "a recursive function": (
        "def deep(x, k):\n    return use(x, thing) if k == 0 else deep(x, k - 1)\ndef step(x):\n    return deep(x, 3)"
    ),
    "map and reduce": (
        "import functools\ndef one(x):\n    return use(x, thing)\ndef step(x):\n"
        "    return functools.reduce(lambda a, b: a + b, map(one, [x, x + 1]))"
    ),
    "a callback of sorted": (
        "def place(pair):\n    return pair[0]\ndef step(x):\n"
        "    return use(x, sorted([(1, thing), (0, thing)], key=place)[0][1])"
    ),
}
for _name, _source in GLOBALS.items():
    route(_name)(lambda world, use, value, _source=_source: module_route(world, _source, use, value))


@route("an attribute of a Python module")
def _(world, use, value):
    config = world.module(name="adversary_config", thing=value)
    return lambda x: use(x, config.thing), partial(setattr, config, "thing")


@route("an attribute of a Python module that is a global")
def _(world, use, value):
    config = world.module(name="adversary_config", thing=value)
    module = world.module("import adversary_config as config\ndef step(x):\n    return use(x, config.thing)", use=use)
    return module.step, partial(setattr, config, "thing")


@route("an attribute of a module of a package")
def _(world, use, value):
    package, inner = world.module(name="adversary_package"), world.module(name="adversary_package.config", thing=value)
    package.config = inner
    return lambda x: use(x, package.config.thing), partial(setattr, inner, "thing")


@route("a helper in another Python module")
def _(world, use, value):
    helpers = world.module("def read():\n    return thing", "adversary_helpers", thing=value)
    return lambda x: use(x, helpers.read()), partial(setattr, helpers, "thing")


@route("import module in the step")
def _(world, use, value):
    config = world.module(name="adversary_config", thing=value)

    def step(x):
        import adversary_config

        return use(x, adversary_config.thing)

    return step, partial(setattr, config, "thing")


@route("from module import name in the step")
def _(world, use, value):
    config = world.module(name="adversary_config", thing=value)

    def step(x):
        from adversary_config import thing

        return use(x, thing)

    return step, partial(setattr, config, "thing")


@route("importlib in the step")
def _(world, use, value):
    config = world.module(name="adversary_config", thing=value)
    return lambda x: use(x, importlib.import_module("adversary_config").thing), partial(setattr, config, "thing")


@route("sys.modules")
def _(world, use, value):
    config = world.module(name="adversary_config", thing=value)
    return lambda x: use(x, sys.modules["adversary_config"].thing), partial(setattr, config, "thing")


@route("__getattr__ of a Python module")
def _(world, use, value):
    container = {"thing": value}
    config = world.module(name="adversary_config", __getattr__=lambda name: container[name])
    return lambda x: use(x, config.thing), partial(container.__setitem__, "thing")


@route("a builtin")
def _(world, use, value):
    world.patch.setattr(builtins, "adversary_thing", value, raising=False)
    module = world.module("def step(x):\n    return use(x, adversary_thing)", use=use)
    return module.step, partial(setattr, builtins, "adversary_thing")


@route("a default argument")
def _(world, use, value):
    def step(x, thing=value):
        return use(x, thing)

    def put(new):
        step.__defaults__ = (new,)

    return step, put


@route("a default of a keyword-only argument")
def _(world, use, value):
    def step(x, *, thing=value):
        return use(x, thing)

    return step, partial(step.__kwdefaults__.__setitem__, "thing")


@route("a default argument of a helper")
def _(world, use, value):
    def helper(x, thing=value):
        return use(x, thing)

    def put(new):
        helper.__defaults__ = (new,)

    return lambda x: helper(x), put


@route("keyword-only defaults of a helper, assigned")
def _(world, use, value):
    def helper(x, *, thing=value):
        return use(x, thing)

    def put(new):
        helper.__kwdefaults__ = {"thing": new}

    return lambda x: helper(x), put


@route("a function's attribute")
def _(world, use, value):
    def step(x):
        return use(x, step.thing)

    step.thing = value
    return step, partial(setattr, step, "thing")


@route("a helper's attribute")
def _(world, use, value):
    def helper(x):
        return use(x, helper.thing)

    helper.thing = value
    return lambda x: helper(x), partial(setattr, helper, "thing")


@route("a lambda in a list")
def _(world, use, value):
    def make_reader(thing):
        return lambda: thing

    read = [make_reader(value)]

    def put(new):
        read[0] = make_reader(new)

    return lambda x: use(x, read[0]()), put


@route("a function in a dict")
def _(world, use, value):
    def make_strategy(thing):
        return lambda x: use(x, thing)

    strategies = {"now": make_strategy(value)}
    return lambda x: strategies["now"](x), lambda new: strategies.update(now=make_strategy(new))


@route("a closure variable of a function in a list")
def _(world, use, value):
    thing = value
    functions = [lambda x: use(x, thing)]

    def put(new):
        nonlocal thing
        thing = new

    return lambda x: [function(x) for function in functions], put


@route("functools.partial that is rebound")
def _(world, use, value):
    read = partial(lambda thing, x: use(x, thing), value)

    def put(new):
        nonlocal read
        read = partial(lambda thing, x: use(x, thing), new)

    return lambda x: read(x), put


@route("the keywords of functools.partial")
def _(world, use, value):
    bound = partial(lambda x, thing: use(x, thing), thing=value)
    return lambda x: bound(x), partial(bound.keywords.__setitem__, "thing")


@route("functools.singledispatch")
def _(world, use, value):
    @functools.singledispatch
    def read(x):
        raise TypeError(x)

    def register(new):
        read.register(object, lambda x: new)

    register(value)
    return lambda x: use(x, read(x)), register


@route("functools.lru_cache that is cleared")
def _(world, use, value):
    container = [value]

    @functools.lru_cache
    def read():
        return container[0]

    def put(new):
        container[0] = new
        read.cache_clear()

    return lambda x: use(x, read()), put


@route("the code of a function")
def _(world, use, value):
    container = {"a": value, "b": value}

    def helper(x):
        return use(x, container["a"])

    def other(x):
        return use(x, container["b"])

    codes = [helper.__code__, other.__code__]

    def put(new):
        codes.reverse()
        container["b" if codes[0] is other.__code__ else "a"] = new
        helper.__code__ = codes[0]

    return lambda x: helper(x), put


@route("operator.attrgetter")
def _(world, use, value):
    holder, read = types.SimpleNamespace(inner=types.SimpleNamespace(thing=value)), operator.attrgetter("inner.thing")
    return lambda x: use(x, read(holder)), partial(setattr, holder.inner, "thing")


@route("operator.itemgetter")
def _(world, use, value):
    holder, read = {"thing": value}, operator.itemgetter("thing")
    return lambda x: use(x, read(holder)), partial(holder.__setitem__, "thing")


@route("operator.methodcaller")
def _(world, use, value):
    holder, read = {"thing": value}, operator.methodcaller("get", "thing")
    return lambda x: use(x, read(holder)), partial(holder.__setitem__, "thing")


@route("a context variable")
def _(world, use, value):
    variable = contextvars.ContextVar("thing", default=value)
    return lambda x: use(x, variable.get()), variable.set


@route("threading.local")
def _(world, use, value):
    container = threading.local()
    container.thing = value
    return lambda x: use(x, container.thing), partial(setattr, container, "thing")


class Local(threading.local):
    def __init__(self) -> None:
        self.thing: Any = None


@route("a subclass of threading.local")
def _(world, use, value):
    container = Local()
    container.thing = value
    return lambda x: use(x, container.thing), partial(setattr, container, "thing")
