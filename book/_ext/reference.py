"""Reference pages from docstrings: which names a page has, and how what autodoc reads becomes text.

`names` lists the public names of a module, `methods` those that a family of functions gives to Tensor, `command` what
the command line says of itself. An object with several names stands under one, and the others lead there.
"""

from __future__ import annotations

import builtins
import contextlib
import inspect
import io
import os
import re
import textwrap
from functools import cache
from importlib import import_module
from itertools import filterfalse
from types import ModuleType
from typing import Any, TypeVar, get_type_hints
from unittest import mock

from docstrings import first, restructured
from docutils import nodes
from docutils.parsers.rst import directives
from names import ROOMS, found, is_object, methods, others, own, primary, public, typed
from op_facts import formula
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import minigrad as mg
from minigrad.core.dtypes import DType
from minigrad.core.op import Op
from minigrad.core.registry import TOPICS

__all__ = ["setup"]

CONSTANTS = {
    "minigrad.OPS": "Every declared operation by its name.",
    "minigrad.ALIASES": "Other names of types, as PyTorch has them.",
    "minigrad.DTYPES": "The types of numbers that there are, by name.",
    "minigrad.e": "Euler's number.",
    "minigrad.inf": "Infinity.",
    "minigrad.nan": "Not a number.",
    "minigrad.pi": "The circumference of a circle of diameter 1.",
    "minigrad.newaxis": "None, for indexing: a dimension of size 1.",
    "minigrad.default_generator": "The generator that random functions draw from.",
    "minigrad.random.default_generator": "The same: the generator that random functions draw from.",
    "minigrad.Size": "PyTorch's name for the type of ``x.shape``, here a plain tuple.",
    "minigrad.__version__": "The version of minigrad.",
    "minigrad.nn.scalar.Activation": "The name of an activation: linear, relu, sigmoid or tanh.",
    "minigrad.training.perplexity": "e to the mean cross entropy: among how many classes a model hesitates.",
    "minigrad.lessons.EXERCISES": "Every exercise of the lessons by its number.",
}


_FACTORY = re.compile(r"<[\w. ]*>")


class Entries(SphinxDirective):
    """A directive that writes reStructuredText, and gives what it describes its other names."""

    has_content = True

    def made(self, entries: list[str]) -> list[nodes.Node]:
        text = "\n\n".join(entries)
        parsed = self.parse_text_to_nodes(f"````{{eval-rst}}\n{text}\n````")
        domain = self.env.domains.python_domain
        for node in parsed:
            for signature in node.findall(lambda x: isinstance(x, addnodes.desc_signature) and x["ids"]):
                full = f"{signature.get('module')}.{signature.get('fullname')}"
                for other in filterfalse(domain.objects.__contains__, _others(full)):
                    kind = "class" if isinstance(found(full), type) else "function"
                    domain.note_object(other, kind, signature["ids"][0], aliased=True, location=signature)
        return parsed


def _others(full: str) -> list[str]:
    """The other names of what `full` names, each of its attributes too."""
    if full.startswith(("minigrad.ops.", "minigrad.Tensor.")):
        return []
    thing = _maybe(full)  # of a field of a dataclass, which its class has not, None
    return others(thing) if primary(thing) == full else []


class Room(Entries):
    """What a module says of itself."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        return self.made([f".. automodule:: {self.arguments[0]}\n   :no-members:"])


class Names(Entries):
    """The public names of a module, those that another module lists, or the ones that are written down."""

    required_arguments = 1
    option_spec = {"of": directives.unchanged, "but": directives.unchanged}  # noqa: RUF012 -- docutils has it so

    def run(self) -> list[nodes.Node]:
        room = self.arguments[0]
        listed = " ".join(self.content).split()
        if not listed:
            listed = [name for name in _listed(self.options.get("of", room)) if hasattr(import_module(room), name)]
        left = self.options.get("but", "").split()
        shown = [name for name in listed if name not in left and _is_shown(room, name)]
        return self.made([entry(f"{room}.{name}") for name in shown])


def _listed(module: str) -> list[str]:
    if module in ROOMS:
        return public(module)
    registered = TOPICS[module].functions if module in TOPICS else []
    return registered or [*import_module(module).__all__]


def _is_shown(room: str, name: str) -> bool:
    """Whether this is where the object is described."""
    thing = getattr(import_module(room), name)
    return not isinstance(thing, ModuleType) and primary(thing) in (None, f"{room}.{name}")


def entry(full: str) -> str:
    """A name, as a directive of autodoc's, or of its own where autodoc cannot know what it is."""
    thing = found(full)
    also = _also(thing)
    if op := _op_of(thing):
        return _operation(full, op, also)
    if isinstance(thing, DType) or not is_object(thing) or full in CONSTANTS:
        room, _, name = full.rpartition(".")
        text = _type(thing, also) if isinstance(thing, DType) else CONSTANTS[full]
        return f".. py:data:: {name}\n   :module: {room}\n\n   {text}"
    if isinstance(thing, type):
        if issubclass(thing, tuple):  # the signature of a named tuple has types as text, and not of which module
            names = vars(mg) | vars(builtins) | vars(import_module(thing.__module__))
            thing.__new__.__annotations__ = get_type_hints(thing, names)
        members = f"\n   :members: {', '.join(own())}" if thing is mg.Tensor else "\n   :members:"
        return f".. autoclass:: {full}{members}" + (f"\n\n   {also}" if also else "")
    return f".. autofunction:: {full}" + (f"\n\n   {also}" if also else "")


def _op_of(thing: Any) -> Op | None:
    """The operation that an object is, or of which it is the function that can also write in place."""
    op = thing if isinstance(thing, Op) else mg.OPS.get(getattr(thing, "__name__", ""))
    return op if op is not None and (op is thing or (thing.__doc__ or "").startswith(op.__doc__ or "-")) else None


def _also(thing: Any) -> str:
    names = [f"``{_short(name)}``" for name in others(thing) if not name.startswith("minigrad.nn.functional.")]
    return f"Also {', '.join(names)}." if names else ""


def _short(name: str) -> str:
    return name.replace("minigrad.", "mg.", 1) if name.startswith("minigrad.") else name


def _operation(full: str, op: Op, also: str) -> str:
    rule = "" if not op.differentiable else " and its derivative"
    text = f"The operation :math:`{formula(op)}`. :py:obj:`minigrad.ops.{op.name}` has its kernels{rule}. {also}"
    room, _, name = full.rpartition(".")
    written = "" if op is found(full) else "If `inplace`, modify `input` in place. "
    return f".. py:function:: {name}{inspect.signature(found(full))}\n   :module: {room}\n\n   {text} {written}"


def _type(thing: DType, also: str) -> str:
    kind = "fractions" if thing.is_floating_point else "truth values" if thing.name == "bool" else "whole numbers"
    return f"The type ``{thing.name}``, of {kind}. {also}"


# --- methods of Tensor -----------------------------------------------------------------------------------------------


class Methods(Entries):
    """The methods that a family of functions gives to Tensor."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        return self.made([_method(name) for name in methods()[self.arguments[0]]])


def _method(name: str) -> str:
    thing = inspect.getattr_static(mg.Tensor, name)
    kind = "property" if isinstance(thing, property) else "method"
    head = f".. py:{kind}:: "
    heads = [f"Tensor.{name}{signature}" for signature in (typed()[name] if kind == "method" else [""])]
    doc = inspect.getdoc(thing) or ""
    function, op = _function_of(name, doc), _described().get(doc)
    if op:
        text = f"The operation :py:obj:`{op.name} <minigrad.ops.{op.name}>`, :math:`{formula(op)}`."
    elif function:
        text = f"{_told(first(doc), name)}\n\nAs the function :py:obj:`{_short(function)} <{function}>`."
    else:
        text = _told(doc, name)
    lines = f"\n{' ' * len(head)}".join(heads)
    return f"{head}{lines}\n   :module: minigrad\n\n{textwrap.indent(text, '   ')}"


@cache
def _described() -> dict[str | None, Op]:
    """The operations by what `help` says of them."""
    return {op.__doc__: op for op in mg.OPS.values()}


def _told(doc: str, name: str) -> str:
    return "\n".join(restructured(doc.splitlines(), lambda code: link(code, f"minigrad.Tensor.{name}")))


def _function_of(name: str, doc: str) -> str | None:
    """The function of the same name and docstring."""
    thing = getattr(mg, name, None) if name in dir(mg) else None
    same = thing is not None and not isinstance(thing, Op) and inspect.getdoc(thing) == doc
    return primary(thing) if same else None


# --- the command line ------------------------------------------------------------------------------------------------


class Command(Entries):
    """What ``minigrad NAME --help`` prints."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        from minigrad.cli import main

        said = io.StringIO()
        try:
            with mock.patch.dict(os.environ, COLUMNS="100"), contextlib.redirect_stdout(said):
                main([*self.arguments, "--help"])
        except SystemExit as done:
            if done.code:
                raise self.error(f"`minigrad {' '.join(self.arguments)} --help` says nothing.") from None
        return [nodes.literal_block(said.getvalue(), said.getvalue(), language="none")]


# --- what autodoc reads ----------------------------------------------------------------------------------------------


def read(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """A docstring, in place, as reStructuredText."""
    lines[:] = restructured(lines, lambda code: link(code, name))


def link(code: str, name: str) -> str | None:
    """The public name that `code`, in the docstring of `name`, is; None if it is none, or is a parameter there."""
    if not code.replace(".", "").isidentifier() or code in _parameters(name):
        return None
    around = name.rpartition(".")[0]
    near = [f"{room}.{code}" for room in (around, around.rpartition(".")[0]) if room in ROOMS]
    if code.startswith("mg."):
        tried = [code.replace("mg.", "minigrad.", 1)]
    elif "." in code:
        tried = [code, f"minigrad.{code}"]
    elif code[0].islower():  # it may be a word
        tried = [full for full in near if full.startswith("minigrad.") and _neighbours(full, name)]
    else:
        tried = [*near, f"minigrad.{code}"]
    return next((full for full in tried if full != name and _known(full)), None)


def _parameters(name: str) -> set[str]:
    try:
        return set(inspect.signature(found(name)).parameters)
    except (AttributeError, TypeError, ValueError):
        return set()


def _neighbours(one: str, other: str) -> bool:
    """Whether two names are declared in one module: a word there is more likely to be that name than a word."""
    modules = [getattr(_maybe(name), "__module__", None) for name in (one, other)]
    return modules[0] is not None and modules[0] == modules[1]


def _maybe(full: str) -> Any:
    try:
        return found(full)
    except (AttributeError, ValueError):
        return None


def _known(full: str) -> bool:
    room, _, name = full.rpartition(".")
    if room == "minigrad.Tensor":
        return name in own() or any(name in given for given in methods().values())
    return room in ROOMS and name in public(room)


def signed(app: Sphinx, what: str, name: str, obj: Any, options: Any, said: str | None, back: str | None) -> Any:
    """A signature that Sphinx can read: made defaults are ``...``, and what ipywidgets calls t is typing."""
    made = _FACTORY.sub("...", said or "")
    return (made.replace(": t.", ": ~typing."), back) if made != (said or "") or ": t." in made else None


def skipped(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """The fields of a named tuple stand in its signature."""
    return True if (inspect.getdoc(obj) or "").startswith("Alias for field number") else None


def plain_types(app: Sphinx, doctree: nodes.document) -> None:
    """In signatures float, int and bool are Python's, not the types of tensors that have these names in `minigrad`.

    Variables of types have no page, since they stand for any type.
    """
    for reference in list(doctree.findall(addnodes.pending_xref)):
        is_type = reference["refdomain"] == "py" and reference.get("reftype") == "class"
        target = reference["reftarget"]
        if is_type and (hasattr(builtins, target) or isinstance(_maybe(target), TypeVar)):
            reference.replace_self(reference.children)


def link_back(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Lead from a page of source code back to the name under which each object is shown.

    Sphinx takes the objects of a module to be shown in one room, that of the first.
    """
    module = page.removeprefix("_modules/").replace("/", ".")
    if module == page or not (entry := vars(app.env)["_viewcode_modules"].get(module)):
        return
    _, _, shown_on, room = entry
    for name, docname in shown_on.items():
        full = next(one for one in _shown(app)[docname] if f".{one}".endswith(f".{name}"))
        link = 'class="viewcode-back" href="' + app.builder.get_relative_uri(page, docname) + "#"
        context["body"] = context["body"].replace(f'{link}{room}.{name}"', f'{link}{full}"')


@cache
def _shown(app: Sphinx) -> dict[str, list[str]]:
    """Return the names of objects that each page shows."""
    names: dict[str, list[str]] = {}
    for full, entry in app.env.domains.python_domain.objects.items():
        names.setdefault(entry.docname, []).append(full)
    return names


def setup(app: Sphinx) -> dict[str, bool]:
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("html-page-context", link_back)
    app.add_directive("room", Room)
    app.add_directive("names", Names)
    app.add_directive("methods", Methods)
    app.add_directive("command", Command)
    app.connect("autodoc-process-docstring", read)
    app.connect("autodoc-process-signature", signed)
    app.connect("autodoc-skip-member", skipped)
    app.connect("doctree-read", plain_types)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
