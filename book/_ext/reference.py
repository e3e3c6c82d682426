"""Directives for the reference, which document public names with autodoc.

`names` lists the public names of a module, `methods` the Tensor methods of a topic, `command` the help of the command
line. An object with several names is documented under one; the others link to it.
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
    "minigrad.ALIASES": "Aliases of dtypes, as in PyTorch.",
    "minigrad.DTYPES": "Every dtype by its name.",
    "minigrad.e": "Euler's number.",
    "minigrad.inf": "Infinity.",
    "minigrad.nan": "Not a number.",
    "minigrad.pi": "The ratio of a circle's circumference to its diameter.",
    "minigrad.newaxis": "None, for indexing: a dimension of size 1.",
    "minigrad.default_generator": "The generator that random functions draw from.",
    "minigrad.random.default_generator": "The generator that random functions draw from.",
    "minigrad.Size": "PyTorch's name for the type of ``x.shape``, here a plain tuple.",
    "minigrad.__version__": "The version of minigrad.",
    "minigrad.nn.scalar.Activation": "The name of an activation: linear, relu, sigmoid or tanh.",
    "minigrad.training.perplexity": "The exponential of the mean cross entropy.",
    "minigrad.lessons.EXERCISES": "Every exercise of the lessons by its number.",
}


_FACTORY = re.compile(r"<[\w. ]*>")


class Entries(SphinxDirective):
    """A directive that generates reStructuredText and registers the aliases of the objects it documents."""

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
    """Return the aliases of the object with the name `full`."""
    if full.startswith(("minigrad.ops.", "minigrad.Tensor.")):
        return []
    thing = _maybe(full)  # None for a dataclass field without a default
    return others(thing) if primary(thing) == full else []


class Room(Entries):
    """The docstring of a module."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        return self.made([f".. automodule:: {self.arguments[0]}\n   :no-members:"])


class Names(Entries):
    """The public names of a module, those listed by another module (`of`), or those in the content."""

    required_arguments = 1
    option_spec = {"of": directives.unchanged, "but": directives.unchanged}  # noqa: RUF012 -- as in docutils

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
    """Return whether an object is documented under this name."""
    thing = getattr(import_module(room), name)
    return not isinstance(thing, ModuleType) and primary(thing) in (None, f"{room}.{name}")


def entry(full: str) -> str:
    """Return the autodoc directive for a name, or a Python domain directive for constants, dtypes and operations."""
    thing = found(full)
    also = _also(thing)
    if op := _op_of(thing):
        return _operation(full, op, also)
    if isinstance(thing, DType) or not is_object(thing) or full in CONSTANTS:
        room, _, name = full.rpartition(".")
        text = _type(thing, also) if isinstance(thing, DType) else CONSTANTS[full]
        return f".. py:data:: {name}\n   :module: {room}\n\n   {text}"
    if isinstance(thing, type):
        if issubclass(thing, tuple):  # annotations of a named tuple are strings without a module
            names = vars(mg) | vars(builtins) | vars(import_module(thing.__module__))
            thing.__new__.__annotations__ = get_type_hints(thing, names)
        members = f"\n   :members: {', '.join(own())}" if thing is mg.Tensor else "\n   :members:"
        return f".. autoclass:: {full}{members}" + (f"\n\n   {also}" if also else "")
    return f".. autofunction:: {full}" + (f"\n\n   {also}" if also else "")


def _op_of(thing: Any) -> Op | None:
    """Return the operation that an object is or, as a function with `inplace`, wraps."""
    op = thing if isinstance(thing, Op) else mg.OPS.get(getattr(thing, "__name__", ""))
    return op if op is not None and (op is thing or (thing.__doc__ or "").startswith(op.__doc__ or "-")) else None


def _also(thing: Any) -> str:
    names = [f"``{_short(name)}``" for name in others(thing) if not name.startswith("minigrad.nn.functional.")]
    return f"Also {', '.join(names)}." if names else ""


def _short(name: str) -> str:
    return name.replace("minigrad.", "mg.", 1) if name.startswith("minigrad.") else name


def _operation(full: str, op: Op, also: str) -> str:
    rule = "" if not op.differentiable else " and its derivative"
    text = f"Compute :math:`{formula(op)}`. See :py:obj:`minigrad.ops.{op.name}` for its kernels{rule}. {also}"
    room, _, name = full.rpartition(".")
    written = "" if op is found(full) else "If `inplace`, modify `input` in place. "
    return f".. py:function:: {name}{inspect.signature(found(full))}\n   :module: {room}\n\n   {text} {written}"


def _type(thing: DType, also: str) -> str:
    kind = "floating point" if thing.is_floating_point else "Boolean" if thing.name == "bool" else "integer"
    return f"The dtype ``{thing.name}`` ({kind}). {also}"


# --- methods of Tensor -----------------------------------------------------------------------------------------------


class Methods(Entries):
    """The Tensor methods that a module registers."""

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
        text = f"Compute :math:`{formula(op)}` (operation :py:obj:`{op.name} <minigrad.ops.{op.name}>`)."
    elif function:
        text = f"{_told(first(doc), name)}\n\nSee :py:obj:`{_short(function)} <{function}>`."
    else:
        text = _told(doc, name)
    lines = f"\n{' ' * len(head)}".join(heads)
    return f"{head}{lines}\n   :module: minigrad\n\n{textwrap.indent(text, '   ')}"


@cache
def _described() -> dict[str | None, Op]:
    """Return the operations by docstring."""
    return {op.__doc__: op for op in mg.OPS.values()}


def _told(doc: str, name: str) -> str:
    return "\n".join(restructured(doc.splitlines(), lambda code: link(code, f"minigrad.Tensor.{name}")))


def _function_of(name: str, doc: str) -> str | None:
    """Return the qualified name of the function with the same name and docstring, or None."""
    thing = getattr(mg, name, None) if name in dir(mg) else None
    same = thing is not None and not isinstance(thing, Op) and inspect.getdoc(thing) == doc
    return primary(thing) if same else None


# --- the command line ------------------------------------------------------------------------------------------------


class Command(Entries):
    """The output of ``minigrad NAME --help``."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        from minigrad.cli import main

        said = io.StringIO()
        try:
            with mock.patch.dict(os.environ, COLUMNS="100"), contextlib.redirect_stdout(said):
                main([*self.arguments, "--help"])
        except SystemExit as done:
            if done.code:
                raise self.error(f"`minigrad {' '.join(self.arguments)} --help` failed.") from None
        return [nodes.literal_block(said.getvalue(), said.getvalue(), language="none")]


# --- what autodoc reads ----------------------------------------------------------------------------------------------


def read(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Convert a docstring to reStructuredText, in place."""
    lines[:] = restructured(lines, lambda code: link(code, name))


def link(code: str, name: str) -> str | None:
    """Return the public name that `code` refers to in the docstring of `name`, or None, also for a parameter."""
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
    """Return whether two objects are defined in one module, where a lowercase word likely refers to the other."""
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
    """Return a signature that Sphinx can parse: factory defaults become ``...``, ipywidgets' ``t`` typing."""
    made = _FACTORY.sub("...", said or "")
    return (made.replace(": t.", ": ~typing."), back) if made != (said or "") or ": t." in made else None


def skipped(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Skip the fields of a named tuple, which its signature has."""
    return True if (inspect.getdoc(obj) or "").startswith("Alias for field number") else None


def plain_types(app: Sphinx, doctree: nodes.document) -> None:
    """Remove links of builtin types in signatures, which would lead to `minigrad`'s dtypes of the same names.

    Type variables have no page either.
    """
    for reference in list(doctree.findall(addnodes.pending_xref)):
        is_type = reference["refdomain"] == "py" and reference.get("reftype") == "class"
        target = reference["reftarget"]
        if is_type and (hasattr(builtins, target) or isinstance(_maybe(target), TypeVar)):
            reference.replace_self(reference.children)


def link_back(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Link objects on a source page to their documentation.

    Sphinx assumes that all objects of a module are documented in the module of the first.
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
    """Return the names of the objects that each page documents."""
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
