"""Routes through user-defined objects: attributes, classes, descriptors, methods."""

from __future__ import annotations

import functools
import weakref
from functools import cached_property, partial, partialmethod
from types import MethodType, SimpleNamespace

from adversary import route


class Plain:
    """An object with a `thing`."""

    def __init__(self, thing):
        self.thing = thing

    def read(self):
        return self.thing


def through(read, holder=Plain):
    """Return a route: ``read(object)`` returns the value of an object whose attribute `thing` is set."""

    def made(world, use, value):
        held = holder(value)
        return lambda x: use(x, read(held)), partial(setattr, held, "thing")

    return made


class Slotted:
    __slots__ = ("thing",)

    def __init__(self, thing):
        self.thing = thing


class WithProperty(Plain):
    @property
    def seen(self):
        return self.thing


class Computed:
    def __init__(self, thing):
        self.__dict__["held"] = {"thing": thing}

    def __getattr__(self, name):
        return self.held[name]

    def __setattr__(self, name, value):
        self.held[name] = value


class Intercepted(Plain):
    def __getattribute__(self, name):
        return object.__getattribute__(self, "thing" if name == "seen" else name)


class Descriptor:
    def __get__(self, instance, owner=None):
        return instance._held

    def __set__(self, instance, value):
        instance._held = value


class Described:
    thing = Descriptor()

    def __init__(self, thing):
        self.thing = thing


class Called(Plain):
    def __call__(self):
        return self.thing


class Indexed(Plain):
    def __getitem__(self, key):
        return self.thing


class Iterated(Plain):
    def __iter__(self):
        yield self.thing


class Entered(Plain):
    def __enter__(self):
        return self.thing

    def __exit__(self, *_):
        return None


def entered(held):
    with held as thing:
        return thing


class Inner(Plain):
    def __init__(self, thing):
        super().__init__(thing)
        self.inner = SimpleNamespace(owner=self)


class Cached(Plain):
    @cached_property
    def seen(self):
        return self.__dict__["thing"]

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        self.__dict__.pop("seen", None)


class Partial(Plain):
    def chosen(self, name):
        return getattr(self, name)

    read = partialmethod(chosen, "thing")


OBJECTS = {
    "an attribute of an object": through(lambda o: o.thing),
    "an attribute of an object with slots": through(lambda o: o.thing, Slotted),
    "an attribute of an attribute": through(lambda o: o.inner.owner.thing, Inner),
    "getattr with a computed name": through(lambda o: getattr(o, "th" + "ing")),
    "vars(object)[name]": through(lambda o: vars(o)["thing"]),
    "object.__dict__.get(name)": through(lambda o: o.__dict__.get("thing")),
    "a property": through(lambda o: o.seen, WithProperty),
    "a cached property": through(lambda o: o.seen, Cached),
    "__getattr__": through(lambda o: o.thing, Computed),
    "__getattribute__": through(lambda o: o.seen, Intercepted),
    "a descriptor": through(lambda o: o.thing, Described),
    "__getitem__": through(lambda o: o["any"], Indexed),
    "__iter__": through(lambda o: next(iter(o)), Iterated),
    "__call__": through(lambda o: o(), Called),
    "a with block of an object": through(entered, Entered),
    "a method": through(lambda o: o.read()),
    "a partial method": through(lambda o: o.read(), Partial),
    "types.SimpleNamespace": through(lambda o: o.thing, lambda thing: SimpleNamespace(thing=thing)),
}
for _name, _route in OBJECTS.items():
    route(_name)(_route)


@route("a bound method that was kept")
def _(world, use, value):
    held = Plain(value)
    read = held.read
    return lambda x: use(x, read()), partial(setattr, held, "thing")


@route("a weak reference")
def _(world, use, value):
    held = Plain(value)
    reference = weakref.ref(held)
    world.alive.append(held)
    return lambda x: use(x, reference().thing), partial(setattr, held, "thing")


@route("a weak dict")
def _(world, use, value):
    held = Plain(value)
    table = weakref.WeakValueDictionary(now=held)
    world.alive.append(held)

    def put(new):
        table["now"] = made = Plain(new)
        world.alive.append(made)

    return lambda x: use(x, table["now"].thing), put


def in_class(read):
    """Return a route through a class: ``read(class)``, where the attribute `thing` of its base is set."""

    def made(world, use, value):
        class Meta(type):
            thing_of_meta = value

        class Base(metaclass=Meta):
            thing = value

            @staticmethod
            def fixed():
                return Base.thing

            @classmethod
            def owned(cls):
                return cls.thing

            def of_self(self):
                return self.thing

        class Derived(Base):
            def above(self):
                return super().of_self()

        def put(new):
            Base.thing = Meta.thing_of_meta = new

        return lambda x: use(x, read(Derived)), put

    return made


CLASSES = {
    "a class attribute": in_class(lambda cls: cls.__base__.thing),
    "an inherited class attribute": in_class(lambda cls: cls.thing),
    "a class attribute through an object": in_class(lambda cls: cls().thing),
    "an attribute of a metaclass": in_class(lambda cls: cls.thing_of_meta),
    "a static method": in_class(lambda cls: cls.fixed()),
    "a class method": in_class(lambda cls: cls.owned()),
    "super()": in_class(lambda cls: cls().above()),
    "an object that is made in the step": in_class(lambda cls: cls().of_self()),
    "vars of a class": in_class(lambda cls: vars(cls.__base__)["thing"]),
}
for _name, _route in CLASSES.items():
    route(_name)(_route)


def reading(thing):
    """Return a class whose method `read` returns this thing."""

    class Reading:
        def read(self):
            return thing

    return Reading


@route("a class that is rebound")
def _(world, use, value):
    cls = reading(value)

    def put(new):
        nonlocal cls
        cls = reading(new)

    return lambda x: use(x, cls().read()), put


@route("an object that is rebound")
def _(world, use, value):
    held = Plain(value)

    def put(new):
        nonlocal held
        held = Plain(new)

    return lambda x: use(x, held.thing), put


@route("__class__ that is assigned")
def _(world, use, value):
    held = reading(value)()

    def put(new):
        held.__class__ = reading(new)

    return lambda x: use(x, held.read()), put


@route("__dict__ that is assigned")
def _(world, use, value):
    held = Plain(value)

    def put(new):
        held.__dict__ = {"thing": new}

    return lambda x: use(x, held.thing), put


@route("__bases__ that are assigned")
def _(world, use, value):
    class Child(reading(value)):
        pass

    def put(new):
        Child.__bases__ = (reading(new),)

    return lambda x: use(x, Child().read()), put


@route("a method of a class that is patched")
def _(world, use, value):
    cls = reading(value)
    held = cls()

    def put(new):
        cls.read = lambda self: new

    return lambda x: use(x, held.read()), put


@route("a method of an object that is patched")
def _(world, use, value):
    held = reading(value)()

    def put(new):
        held.read = MethodType(lambda self: new, held)

    return lambda x: use(x, held.read()), put


@route("an attribute of an object that hides one of its class")
def _(world, use, value):
    class Holder:
        thing = value

    held = Holder()

    def put(new):
        if new is value:
            vars(held).pop("thing", None)
        else:
            held.thing = new

    return lambda x: use(x, held.thing), put


@route("functools.cache on a method")
def _(world, use, value):
    class Holder(Plain):
        @functools.cache  # noqa: B019
        def seen(self):
            return self.thing

    held = Holder(value)

    def put(new):
        held.thing = new
        Holder.seen.cache_clear()

    return lambda x: use(x, held.seen()), put
