"""Directives for the reference, which document public names with autodoc.

`names` lists the public names of a module, `methods` the Tensor methods of a topic, `command` the help of the
command line. An object with several names is documented under one; the others link to it.
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

from docstrings import first_paragraph, to_rst
from docutils import nodes
from docutils.parsers.rst import directives
from names import (
    PUBLIC_MODULES,
    aliases,
    has_identity,
    methods_by_topic,
    own_attributes,
    primary_name,
    public_names,
    resolve,
    stub_signatures,
)
from op_facts import formula
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective

import minigrad as mg
from minigrad.core.deprecation import DeprecatedAlias
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


class EntriesDirective(SphinxDirective):
    """A directive that generates reStructuredText and registers the aliases of the objects it documents."""

    has_content = True

    def parse_entries(self, entries: list[str]) -> list[nodes.Node]:
        text = "\n\n".join(entries)
        parsed = self.parse_text_to_nodes(f"````{{eval-rst}}\n{text}\n````")
        domain = self.env.domains.python_domain
        for node in parsed:
            for signature in node.findall(lambda x: isinstance(x, addnodes.desc_signature) and x["ids"]):
                qualified_name = f"{signature.get('module')}.{signature.get('fullname')}"
                for alias in filterfalse(domain.objects.__contains__, _aliases_of(qualified_name)):
                    kind = "class" if isinstance(resolve(qualified_name), type) else "function"
                    domain.note_object(alias, kind, signature["ids"][0], aliased=True, location=signature)
        return parsed


def _aliases_of(qualified_name: str) -> list[str]:
    """Return the aliases of the object with the name `qualified_name`."""
    if qualified_name.startswith(("minigrad.ops.", "minigrad.Tensor.")):
        return []
    obj = _resolve_or_none(qualified_name)  # None for a dataclass field without a default
    return aliases(obj) if primary_name(obj) == qualified_name else []


class ModuleDirective(EntriesDirective):
    """The docstring of a module."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        return self.parse_entries([f".. automodule:: {self.arguments[0]}\n   :no-members:"])


class NamesDirective(EntriesDirective):
    """The public names of a module, those listed by another module (`of`), or those in the content."""

    required_arguments = 1
    option_spec = {"of": directives.unchanged, "but": directives.unchanged}  # noqa: RUF012 -- as in docutils

    def run(self) -> list[nodes.Node]:
        module_name = self.arguments[0]
        names = " ".join(self.content).split()
        if not names:
            names = [
                name
                for name in _listed_names(self.options.get("of", module_name))
                if hasattr(import_module(module_name), name)
            ]
        excluded = self.options.get("but", "").split()
        documented = [name for name in names if name not in excluded and _is_documented_here(module_name, name)]
        return self.parse_entries([directive_for(f"{module_name}.{name}") for name in documented])


def _listed_names(module: str) -> list[str]:
    if module in PUBLIC_MODULES:
        return public_names(module)
    registered = TOPICS[module].functions if module in TOPICS else []
    return registered or [*import_module(module).__all__]


def _is_documented_here(module_name: str, name: str) -> bool:
    """Return whether an object is documented under this name."""
    obj = getattr(import_module(module_name), name)
    return not isinstance(obj, ModuleType) and primary_name(obj) in (None, f"{module_name}.{name}")


def directive_for(qualified_name: str) -> str:
    """Return the autodoc directive for a name, or a Python domain directive for constants, dtypes and operations."""
    obj = resolve(qualified_name)
    aliases_note = _aliases_note(obj)
    if op := _wrapped_op(obj):
        return _op_directive(qualified_name, op, aliases_note)
    if isinstance(obj, DType) or not has_identity(obj) or qualified_name in CONSTANTS:
        module_name, _, name = qualified_name.rpartition(".")
        text = _dtype_text(obj, aliases_note) if isinstance(obj, DType) else CONSTANTS[qualified_name]
        return f".. py:data:: {name}\n   :module: {module_name}\n\n   {text}"
    if isinstance(obj, type):
        if issubclass(obj, tuple):  # annotations of a named tuple are strings without a module
            names = vars(mg) | vars(builtins) | vars(import_module(obj.__module__))
            obj.__new__.__annotations__ = get_type_hints(obj, names)
        members = f"\n   :members: {', '.join(own_attributes())}" if obj is mg.Tensor else "\n   :members:"
        return f".. autoclass:: {qualified_name}{members}" + (f"\n\n   {aliases_note}" if aliases_note else "")
    return f".. autofunction:: {qualified_name}" + (f"\n\n   {aliases_note}" if aliases_note else "")


def _wrapped_op(obj: Any) -> Op | None:
    """Return the operation of an object: the object itself, or the one that a function with `inplace` wraps."""
    op = obj if isinstance(obj, Op) else mg.OPS.get(getattr(obj, "__name__", ""))
    return op if op is not None and (op is obj or (obj.__doc__ or "").startswith(op.__doc__ or "-")) else None


def _aliases_note(obj: Any) -> str:
    names = [f"``{_abbreviate(name)}``" for name in aliases(obj) if not name.startswith("minigrad.nn.functional.")]
    return f"Also {', '.join(names)}." if names else ""


def _abbreviate(name: str) -> str:
    return name.replace("minigrad.", "mg.", 1) if name.startswith("minigrad.") else name


def _op_directive(qualified_name: str, op: Op, also: str) -> str:
    rule = "" if not op.differentiable else " and its derivative"
    text = f"Compute :math:`{formula(op)}`. See :py:obj:`minigrad.ops.{op.name}` for its kernels{rule}. {also}"
    module_name, _, name = qualified_name.rpartition(".")
    signature = inspect.signature(resolve(qualified_name))
    in_place_note = "" if op is resolve(qualified_name) else "If `inplace`, modify `input` in place. "
    return f".. py:function:: {name}{signature}\n   :module: {module_name}\n\n   {text} {in_place_note}"


def _dtype_text(dtype: DType, also: str) -> str:
    kind = "floating point" if dtype.is_floating_point else "Boolean" if dtype.name == "bool" else "integer"
    return f"The dtype ``{dtype.name}`` ({kind}). {also}"


# --- methods of Tensor -----------------------------------------------------------------------------------------------


class MethodsDirective(EntriesDirective):
    """The Tensor methods that a module registers."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        return self.parse_entries([_method_directive(name) for name in methods_by_topic()[self.arguments[0]]])


def _method_directive(name: str) -> str:
    attribute = inspect.getattr_static(mg.Tensor, name)
    kind = "property" if isinstance(attribute, property) else "method"
    head = f".. py:{kind}:: "
    heads = [f"Tensor.{name}{signature}" for signature in (stub_signatures()[name] if kind == "method" else [""])]
    doc = inspect.getdoc(attribute) or ""
    function, op = _same_function(name, doc), _ops_by_doc().get(doc)
    if op:
        text = f"Compute :math:`{formula(op)}` (operation :py:obj:`{op.name} <minigrad.ops.{op.name}>`)."
    elif function:
        text = f"{_docstring_rst(first_paragraph(doc), name)}\n\nSee :py:obj:`{_abbreviate(function)} <{function}>`."
    else:
        text = _docstring_rst(doc, name)
    lines = f"\n{' ' * len(head)}".join(heads)
    return f"{head}{lines}\n   :module: minigrad\n\n{textwrap.indent(text, '   ')}"


@cache
def _ops_by_doc() -> dict[str | None, Op]:
    """Return the operations by docstring."""
    return {op.__doc__: op for op in mg.OPS.values()}


def _docstring_rst(doc: str, name: str) -> str:
    return "\n".join(to_rst(doc.splitlines(), lambda code: link_target(code, f"minigrad.Tensor.{name}")))


def _same_function(name: str, doc: str) -> str | None:
    """Return the qualified name of the function with the same name and docstring, or None."""
    function = getattr(mg, name, None) if name in dir(mg) else None
    is_same = function is not None and not isinstance(function, Op) and inspect.getdoc(function) == doc
    return primary_name(function) if is_same else None


# --- the command line ------------------------------------------------------------------------------------------------


class CommandDirective(EntriesDirective):
    """The output of ``minigrad NAME --help``."""

    optional_arguments = 1

    def run(self) -> list[nodes.Node]:
        from minigrad.cli import main

        output = io.StringIO()
        try:
            with mock.patch.dict(os.environ, COLUMNS="100"), contextlib.redirect_stdout(output):
                main([*self.arguments, "--help"])
        except SystemExit as done:
            if done.code:
                raise self.error(f"`minigrad {' '.join(self.arguments)} --help` failed.") from None
        return [nodes.literal_block(output.getvalue(), output.getvalue(), language="none")]


# --- what autodoc reads ----------------------------------------------------------------------------------------------


def process_docstring(app: Sphinx, what: str, name: str, obj: Any, options: Any, lines: list[str]) -> None:
    """Convert a docstring to reStructuredText, in place."""
    lines[:] = to_rst(lines, lambda code: link_target(code, name))


def link_target(code: str, name: str) -> str | None:
    """Return the public name that `code` refers to in the docstring of `name`; None for a parameter or other text."""
    if not code.replace(".", "").isidentifier() or code in _parameter_names(name):
        return None
    parent = name.rpartition(".")[0]
    nearby = [f"{name}.{code}" for name in (parent, parent.rpartition(".")[0]) if name in PUBLIC_MODULES]
    if code.startswith("mg."):
        candidates = [code.replace("mg.", "minigrad.", 1)]
    elif "." in code:
        candidates = [code, f"minigrad.{code}"]
    elif code[0].islower():  # it may be a word
        candidates = [
            qualified_name
            for qualified_name in nearby
            if qualified_name.startswith("minigrad.") and _same_module(qualified_name, name)
        ]
    else:
        candidates = [*nearby, f"minigrad.{code}"]
    return next((full for full in candidates if full != name and _is_public(full)), None)


def _parameter_names(name: str) -> set[str]:
    try:
        return set(inspect.signature(resolve(name)).parameters)
    except (AttributeError, TypeError, ValueError):
        return set()


def _same_module(one: str, other: str) -> bool:
    """Return whether two objects are defined in one module, where a lowercase word likely refers to the other."""
    modules = [getattr(_resolve_or_none(name), "__module__", None) for name in (one, other)]
    return modules[0] is not None and modules[0] == modules[1]


def _resolve_or_none(full: str) -> Any:
    try:
        return resolve(full)
    except (AttributeError, ValueError):
        return None


def _is_public(full: str) -> bool:
    module_name, _, name = full.rpartition(".")
    if module_name == "minigrad.Tensor":
        return name in own_attributes() or any(name in methods for methods in methods_by_topic().values())
    return module_name in PUBLIC_MODULES and name in public_names(module_name)


def process_signature(
    app: Sphinx, what: str, name: str, obj: Any, options: Any, signature: str | None, return_annotation: str | None
) -> Any:
    """Return a signature that Sphinx can parse: ``...`` replaces factory defaults, and typing ipywidgets' ``t``."""
    cleaned = _FACTORY.sub("...", signature or "")
    return (
        (cleaned.replace(": t.", ": ~typing."), return_annotation)
        if cleaned != (signature or "") or ": t." in cleaned
        else None
    )


def skip_member(app: Sphinx, what: str, name: str, obj: Any, skip: bool, options: Any) -> bool | None:
    """Skip deprecated names, and the fields of a named tuple, which its signature shows."""
    is_field = (inspect.getdoc(obj) or "").startswith("Alias for field number")
    return True if is_field or isinstance(obj, DeprecatedAlias) else None


def unlink_builtins(app: Sphinx, doctree: nodes.document) -> None:
    """Remove links of builtin types in signatures, which would lead to `minigrad`'s dtypes of the same names.

    Type variables have no page either.
    """
    for reference in list(doctree.findall(addnodes.pending_xref)):
        is_type = reference["refdomain"] == "py" and reference.get("reftype") == "class"
        target = reference["reftarget"]
        if is_type and (hasattr(builtins, target) or isinstance(_resolve_or_none(target), TypeVar)):
            reference.replace_self(reference.children)


def fix_backlinks(app: Sphinx, page: str, template: str, context: dict[str, Any], doctree: Any) -> None:
    """Link objects on a source page to their documentation.

    Sphinx assumes that all objects of a module are documented in the module of the first.
    """
    module = page.removeprefix("_modules/").replace("/", ".")
    if module == page or not (entry := vars(app.env)["_viewcode_modules"].get(module)):
        return
    _, _, pages_by_name, module_name = entry
    for name, docname in pages_by_name.items():
        full = next(one for one in _documented_names(app)[docname] if f".{one}".endswith(f".{name}"))
        link = 'class="viewcode-back" href="' + app.builder.get_relative_uri(page, docname) + "#"
        context["body"] = context["body"].replace(f'{link}{module_name}.{name}"', f'{link}{full}"')


@cache
def _documented_names(app: Sphinx) -> dict[str, list[str]]:
    """Return the names of the objects that each page documents."""
    names: dict[str, list[str]] = {}
    for full, entry in app.env.domains.python_domain.objects.items():
        names.setdefault(entry.docname, []).append(full)
    return names


def setup(app: Sphinx) -> dict[str, bool]:
    app.setup_extension("sphinx.ext.autodoc")
    app.connect("html-page-context", fix_backlinks)
    app.add_directive("module-docs", ModuleDirective)
    app.add_directive("names", NamesDirective)
    app.add_directive("methods", MethodsDirective)
    app.add_directive("command", CommandDirective)
    app.connect("autodoc-process-docstring", process_docstring)
    app.connect("autodoc-process-signature", process_signature)
    app.connect("autodoc-skip-member", skip_member)
    app.connect("doctree-read", unlink_builtins)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
