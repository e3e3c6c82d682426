"""Routes through user-defined objects: attributes, classes, descriptors, methods."""

from __future__ import annotations

import functools
import weakref
from functools import cached_property, partial, partialmethod
from types import MethodType, SimpleNamespace

from adversary import route


class PlainHolder:
    """An object with a `thing`."""

    def __init__(self, thing):
        self.thing = thing

    def read(self):
        return self.thing


def object_route(read, holder=PlainHolder):
    """Return a route: ``read(object)`` returns the value of an object whose attribute `thing` is set."""

    def build(world, use, value):
        instance = holder(value)
        return lambda x: use(x, read(instance)), partial(setattr, instance, "thing")

    return build


class SlottedObject:
    __slots__ = ("thing",)

    def __init__(self, thing):
        self.thing = thing


class PropertyHolder(PlainHolder):
    @property
    def shown(self):
        return self.thing


class ComputedAttributes:
    def __init__(self, thing):
        self.__dict__["stored"] = {"thing": thing}

    def __getattr__(self, name):
        return self.stored[name]

    def __setattr__(self, name, value):
        self.stored[name] = value


class InterceptingHolder(PlainHolder):
    def __getattribute__(self, name):
        return object.__getattribute__(self, "thing" if name == "shown" else name)


class Descriptor:
    def __get__(self, instance, owner=None):
        return instance._stored

    def __set__(self, instance, value):
        instance._stored = value


class DescriptorHolder:
    thing = Descriptor()

    def __init__(self, thing):
        self.thing = thing


class CallableHolder(PlainHolder):
    def __call__(self):
        return self.thing


class IndexableHolder(PlainHolder):
    def __getitem__(self, key):
        return self.thing


class IterableHolder(PlainHolder):
    def __iter__(self):
        yield self.thing


class ContextHolder(PlainHolder):
    def __enter__(self):
        return self.thing

    def __exit__(self, *_):
        return None


def enter_and_read(manager):
    with manager as thing:
        return thing


class SelfReference(PlainHolder):
    def __init__(self, thing):
        super().__init__(thing)
        self.inner = SimpleNamespace(owner=self)


class CachedPropertyHolder(PlainHolder):
    @cached_property
    def shown(self):
        return self.__dict__["thing"]

    def __setattr__(self, name, value):
        super().__setattr__(name, value)
        self.__dict__.pop("shown", None)


class PartialMethodHolder(PlainHolder):
    def chosen(self, name):
        return getattr(self, name)

    read = partialmethod(chosen, "thing")


OBJECTS = {
    "an attribute of an object": object_route(lambda o: o.thing),
    "an attribute of an object with slots": object_route(lambda o: o.thing, SlottedObject),
    "an attribute of an attribute": object_route(lambda o: o.inner.owner.thing, SelfReference),
    "getattr with a computed name": object_route(lambda o: getattr(o, "th" + "ing")),
    "vars(object)[name]": object_route(lambda o: vars(o)["thing"]),
    "object.__dict__.get(name)": object_route(lambda o: o.__dict__.get("thing")),
    "a property": object_route(lambda o: o.shown, PropertyHolder),
    "a cached property": object_route(lambda o: o.shown, CachedPropertyHolder),
    "__getattr__": object_route(lambda o: o.thing, ComputedAttributes),
    "__getattribute__": object_route(lambda o: o.shown, InterceptingHolder),
    "a descriptor": object_route(lambda o: o.thing, DescriptorHolder),
    "__getitem__": object_route(lambda o: o["any"], IndexableHolder),
    "__iter__": object_route(lambda o: next(iter(o)), IterableHolder),
    "__call__": object_route(lambda o: o(), CallableHolder),
    "a with block of an object": object_route(enter_and_read, ContextHolder),
    "a method": object_route(lambda o: o.read()),
    "a partial method": object_route(lambda o: o.read(), PartialMethodHolder),
    "types.SimpleNamespace": object_route(lambda o: o.thing, lambda thing: SimpleNamespace(thing=thing)),
}
for _name, _route in OBJECTS.items():
    route(_name)(_route)


@route("a bound method that was kept")
def _(world, use, value):
    holder = PlainHolder(value)
    read = holder.read
    return lambda x: use(x, read()), partial(setattr, holder, "thing")


@route("a weak reference")
def _(world, use, value):
    holder = PlainHolder(value)
    reference = weakref.ref(holder)
    world.kept_alive.append(holder)
    return lambda x: use(x, reference().thing), partial(setattr, holder, "thing")


@route("a weak dict")
def _(world, use, value):
    holder = PlainHolder(value)
    table = weakref.WeakValueDictionary(now=holder)
    world.kept_alive.append(holder)

    def put(new):
        table["now"] = replacement = PlainHolder(new)
        world.kept_alive.append(replacement)

    return lambda x: use(x, table["now"].thing), put


def class_route(read):
    """Return a route through a class: ``read(class)``, where the attribute `thing` of its base is set."""

    def build(world, use, value):
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
            def inherited(self):
                return super().of_self()

        def put(new):
            Base.thing = Meta.thing_of_meta = new

        return lambda x: use(x, read(Derived)), put

    return build


CLASSES = {
    "a class attribute": class_route(lambda cls: cls.__base__.thing),
    "an inherited class attribute": class_route(lambda cls: cls.thing),
    "a class attribute through an object": class_route(lambda cls: cls().thing),
    "an attribute of a metaclass": class_route(lambda cls: cls.thing_of_meta),
    "a static method": class_route(lambda cls: cls.fixed()),
    "a class method": class_route(lambda cls: cls.owned()),
    "super()": class_route(lambda cls: cls().inherited()),
    "an object that is made in the step": class_route(lambda cls: cls().of_self()),
    "vars of a class": class_route(lambda cls: vars(cls.__base__)["thing"]),
}
for _name, _route in CLASSES.items():
    route(_name)(_route)


def reader_class(thing):
    """Return a class whose method `read` returns this thing."""

    class Reader:
        def read(self):
            return thing

    return Reader


@route("a class that is rebound")
def _(world, use, value):
    cls = reader_class(value)

    def put(new):
        nonlocal cls
        cls = reader_class(new)

    return lambda x: use(x, cls().read()), put


@route("an object that is rebound")
def _(world, use, value):
    holder = PlainHolder(value)

    def put(new):
        nonlocal holder
        holder = PlainHolder(new)

    return lambda x: use(x, holder.thing), put


@route("__class__ that is assigned")
def _(world, use, value):
    holder = reader_class(value)()

    def put(new):
        holder.__class__ = reader_class(new)

    return lambda x: use(x, holder.read()), put


@route("__dict__ that is assigned")
def _(world, use, value):
    holder = PlainHolder(value)

    def put(new):
        holder.__dict__ = {"thing": new}

    return lambda x: use(x, holder.thing), put


@route("__bases__ that are assigned")
def _(world, use, value):
    class Child(reader_class(value)):
        pass

    def put(new):
        Child.__bases__ = (reader_class(new),)

    return lambda x: use(x, Child().read()), put


@route("a method of a class that is patched")
def _(world, use, value):
    cls = reader_class(value)
    holder = cls()

    def put(new):
        cls.read = lambda self: new

    return lambda x: use(x, holder.read()), put


@route("a method of an object that is patched")
def _(world, use, value):
    holder = reader_class(value)()

    def put(new):
        holder.read = MethodType(lambda self: new, holder)

    return lambda x: use(x, holder.read()), put


@route("an attribute of an object that hides one of its class")
def _(world, use, value):
    class Holder:
        thing = value

    holder = Holder()

    def put(new):
        if new is value:
            vars(holder).pop("thing", None)
        else:
            holder.thing = new

    return lambda x: use(x, holder.thing), put


@route("functools.cache on a method")
def _(world, use, value):
    class Holder(PlainHolder):
        @functools.cache  # noqa: B019
        def shown(self):
            return self.thing

    instance = Holder(value)

    def put(new):
        instance.thing = new
        Holder.shown.cache_clear()

    return lambda x: use(x, instance.shown()), put
