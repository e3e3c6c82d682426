"""Write the stubs for names that are created at run time, from their declarations.

    python tests/helpers/stubs.py        or: make stubs

`minigrad/functional/_stubs.pyi` declares the methods and operators that the modules of `functional` add to tensors,
and the calls of elementwise operations; `minigrad/functional/__init__.pyi` and `minigrad/__init__.pyi` declare the
names of these packages, the latter including those that it imports lazily. A function whose declaration has a full
signature is imported from there. The signature is written out for a function that accepts tensors, Values and floats,
and for a function that another function created.
"""

import inspect
import pkgutil
import subprocess
import sys
import textwrap
import types
import typing
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

sys.path[:0] = [str(Path(__file__).parents[2]), str(Path(__file__).parents[2] / "viz")]

import minigrad as mg  # noqa: E402 -- found by the path above
from minigrad import core, functional, io, ops, profiling, random  # noqa: E402
from minigrad.compiler import jit, tape  # noqa: E402
from minigrad.core import dtypes, tensor  # noqa: E402
from minigrad.core.op import (  # noqa: E402
    OPS,
    Op,
    Operand,
)
from minigrad.core.registry import FUNCTIONS, METHODS, TOPICS, with_axis  # noqa: E402
from minigrad.functional import bits, creation, operations, return_types  # noqa: E402
from minigrad_viz.pictures import palette  # noqa: E402

HOUSE = Path(mg.__file__).parent
LAZY = (functional, tensor, creation, random, profiling, io, tape, jit, dtypes, ops)  # in minigrad's lookup order
EAGER = (
    *(mg.autograd, core.graph, core.grad_mode, core.dispatch, core.op, mg.backends.custom),
    *(core.storage, mg.utils.pytree, core.value),
)
ELEMENTWISE = {op.name for op in (*ops.elementwise.ELEMENTWISE, *ops.activation.ACTIVATIONS)}
SIGNS = {
    *("abs", "add", "and", "eq", "floordiv", "ge", "gt", "invert", "le", "lt", "mod", "mul"),
    *("ne", "neg", "or", "pos", "pow", "sub", "truediv", "xor"),
}
OPERATORS = {f"__{prefix}{sign}__" for prefix in ("", "i", "r") for sign in SIGNS}
FACES = (mg.Tensor, mg.Value, float)  # operand and result types of elementwise operations
TOPIC_MODULES = [sys.modules[name] for name, topic in TOPICS.items() if topic.functions]
EMPTY = inspect.Parameter.empty


class Text:
    """A stub under construction: its lines and its imports. `shadowed` are names that hide built-in ones in it."""

    def __init__(self, shadowed: Iterable[str] = ()) -> None:
        self.shadowed = frozenset(shadowed)
        self.imports: dict[str, set[str]] = {}
        self.lines: list[str] = []

    def named(self, module: str, name: str) -> str:
        """Import a name of another module, and return how to refer to it."""
        if module == "builtins":
            if name in self.shadowed:
                self.imports["builtins"] = set()
            return f"builtins.{name}" if name in self.shadowed else name
        self.imports.setdefault(module, set()).add(name)
        return name

    def type(self, kind: Any) -> str:
        """Return the source of an annotation."""
        if kind is None or kind is types.NoneType:
            return "None"
        if kind is ...:
            return "..."
        if isinstance(kind, list):  # the parameters of a Callable
            return f"[{', '.join(map(self.type, kind))}]"
        origin, inner = typing.get_origin(kind), typing.get_args(kind)
        if origin in (types.UnionType, typing.Union):
            return " | ".join(map(self.type, inner))
        if origin is typing.Literal:
            return f"{self.named('typing', 'Literal')}[{', '.join(map(repr, inner))}]"
        if origin is not None:
            return f"{self.type(origin)}[{', '.join(map(self.type, inner))}]"
        return self.named(kind.__module__, kind.__name__)

    def parameters(self, form: inspect.Signature) -> str:
        """Return the source of a signature's parameters. Positional-only parameters come first, including `self`."""
        parts, by_place, starred = [], 0, False
        for k, p in enumerate(form.parameters.values()):
            if p.kind is p.POSITIONAL_ONLY:
                by_place = k + 1
            if p.kind is p.KEYWORD_ONLY and not starred:
                parts.append("*")
            starred = starred or p.kind in (p.VAR_POSITIONAL, p.KEYWORD_ONLY)
            sign = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
            kind = "" if p.annotation is EMPTY else f": {self.type(p.annotation)}"
            parts.append(f"{sign}{p.name}{kind}{'' if p.default is EMPTY else f' = {p.default!r}'}")
        if by_place and parts[:by_place] != ["self"]:
            parts.insert(by_place, "/")
        return ", ".join(parts)

    def define(self, name: str, forms: Sequence[inspect.Signature], doc: str | None = None, indent: str = "") -> None:
        """Add a function, overloaded if it has several signatures, with the first sentence of its docstring."""
        for form in forms:
            if len(forms) > 1:
                self.lines.append(f"{indent}@{self.named('typing', 'overload')}")
            head = f"{indent}def {name}({self.parameters(form)}) -> {self.type(form.return_annotation)}:"
            if doc and form is forms[0]:
                first = " ".join(doc.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".")
                quotes = 'r"""' if "\\" in first else '"""'
                lines = textwrap.wrap(f'{quotes}{first}."""', 116 - len(indent))
                self.lines += [head, *(f"{indent}    {line}" for line in lines)]
            else:  # object declares that == returns a bool
                self.lines.append(f"{head} ...{'  # type: ignore[override]' if name in ('__eq__', '__ne__') else ''}")

    def finished(self, path: Path, public: Iterable[str] = ()) -> str:
        """Return the whole stub, formatted by ruff."""
        heads = [f"from {m} import {', '.join(names)}" if names else f"import {m}" for m, names in self.imports.items()]
        listed = [f"__all__ = {list(public)}"] if public else []
        text = "\n".join(
            ["# Written by `make stubs` from the declarations: change those.", *heads, *listed, *self.lines]
        )
        for command in ("check --select I,RUF022 --fix", "format"):
            ruff = [sys.executable, "-m", "ruff", *command.split(), "--quiet", "--stdin-filename", str(path), "-"]
            done = subprocess.run(ruff, input=f"{text}\n", capture_output=True, text=True, check=True, cwd=HOUSE.parent)
            text = done.stdout
        return text


# --- signatures ---


def parameter(name: str, kind: Any = EMPTY, default: Any = EMPTY) -> inspect.Parameter:
    """Return a parameter; one without a default is positional-only."""
    where = inspect.Parameter.POSITIONAL_ONLY if default is EMPTY else inspect.Parameter.POSITIONAL_OR_KEYWORD
    return inspect.Parameter(name, where, annotation=kind, default=default)


def forms(function: Callable[..., Any]) -> list[inspect.Signature]:
    """Return the signature of a function, or those of its overloads, with annotations evaluated."""
    return [inspect.signature(form, eval_str=True) for form in typing.get_overloads(function) or [function]]


AXIS = with_axis(lambda dim: dim).__code__


def source(thing: Any) -> Any:
    """Unwrap a function that also accepts ``axis`` for ``dim``: the stubs declare PyTorch's names only."""
    return thing.__wrapped__ if getattr(thing, "__code__", None) is AXIS else thing


def made(function: Any) -> bool:
    """Whether another function created this one, or it is a lambda."""
    return "<" in getattr(function, "__qualname__", "") or "__signature__" in getattr(function, "__dict__", ())


def of_any_face(thing: Any) -> bool:
    """Whether it accepts and returns tensors, Values or floats, like an elementwise operation."""
    if isinstance(thing, Op):
        return thing.name in ELEMENTWISE
    if not inspect.isfunction(thing) or thing.__module__ == bits.__name__ or typing.get_overloads(thing):
        return False
    form = inspect.signature(thing)
    given = form.parameters.get("input")
    return given is not None and given.annotation == form.return_annotation == "Any"


def of_op(op: Op) -> inspect.Signature:
    """Return the signature of an elementwise operation: positional operands, and attributes, which are scalars."""
    attrs = [
        parameter(name, float if op.defaults[name] is not None else float | None, op.defaults[name])
        for name in op.attrs
    ]
    return inspect.Signature([*(parameter(name, Any) for name in op.inputs), *attrs], return_annotation=Any)


def faced(form: inspect.Signature, face: type, first: int = 0) -> inspect.Signature:
    """Return `form` with `face` for operand `first` and the result; earlier operands are floats, later ones may be."""
    parameters, seen = [], 0
    for p in form.parameters.values():
        if p.annotation is Any:
            kind = float if seen < first else face if seen == first else face | float
            p = p.replace(annotation=kind if p.default is EMPTY else face | float | None)
            seen += 1
        parameters.append(p)
    return form.replace(parameters=parameters, return_annotation=face)


def faces(form: inspect.Signature) -> list[inspect.Signature]:
    """Return `form` for each type that its operands may have, with floats among them."""
    operands = [p for p in form.parameters.values() if p.annotation is Any and p.default is EMPTY]
    return [faced(form, face, k) for face in FACES for k in range(1 if face is float else len(operands))]


def bound(form: inspect.Signature, *more: inspect.Parameter) -> inspect.Signature:
    """Return the signature of a tensor function as a method."""
    first, *rest = form.parameters.values()
    return form.replace(parameters=[first.replace(name="self", annotation=EMPTY), *rest, *more])


# --- the methods of tensors, and operations as functions ---


def methods() -> dict[str, Any]:
    """Return the methods and properties that importing `functional` adds to Tensor, and the operators of an Operand."""
    found = {name: f for name, f in vars(Operand).items() if inspect.isfunction(f)}
    found |= METHODS
    return {name: f for name, f in found.items() if name in vars(Operand) or name not in vars(object)}


def method_forms(name: str, function: Any) -> list[inspect.Signature]:
    """Return the signatures of a method that was written out, or generated from an operation or a function."""
    stem = name.removesuffix("_")
    if name in OPERATORS:
        operands = ("self",) if name in ("__abs__", "__invert__", "__neg__", "__pos__") else ("self", "other")
        return [bound(faced(inspect.Signature([parameter(x, Any) for x in operands]), mg.Tensor))]
    if (op := op_of(name)) is not None:
        scale = inspect.signature(METHODS[stem], eval_str=True).parameters.get("alpha")
        return [bound(faced(of_op(op), mg.Tensor), *([scale] if scale else []))]
    if name == "__rmatmul__":
        return [bound(form) for form in forms(methods()["__matmul__"])]
    if made(function) and name.endswith("_"):
        return [bound(form) for form in forms(methods()[stem])]
    return [bound(faced(form, mg.Tensor) if of_any_face(function) else form) for form in forms(function)]


def op_of(name: str) -> Op | None:
    """Return the elementwise operation from which a method was generated."""
    if not made(METHODS.get(name)):
        return None
    op = OPS.get(METHODS[name].__name__.removesuffix("_"))
    return op if op is not None and op.name in ELEMENTWISE else None


def class_of(op: Op) -> str:
    """Return the name of the class that declares an elementwise operation's call, shared by all with this signature."""
    if op.attrs:
        return op.name.title().replace("_", "")
    return ("Unary", "Binary", "Ternary")[len(op.inputs) - 1] + ("Test" if returned(op) is bool else "")


def returned(op: Op) -> type:
    """Return the type of its result for floats: float or bool."""
    return type(op(*[1.0] * len(op.inputs)))


def stub_of_methods() -> str:
    found = methods()
    text = Text(shadowed=found)
    text.lines.append(f"class Methods({text.named('minigrad.core.graph', 'Node')}):")
    for name, function in sorted(found.items()):
        if function is None:
            text.lines.append(f"    {name}: None")
        elif isinstance(function, property):
            text.lines.append("    @property")
            text.define(name, method_forms(name, function.fget), function.__doc__, "    ")
            if function.fset:
                text.lines.append(f"    @{name}.setter")
                text.define(name, method_forms(name, function.fset), None, "    ")
        else:
            text.define(name, method_forms(name, function), None if made(function) else function.__doc__, "    ")
    text.define("__hash__", [inspect.Signature([parameter("self")], return_annotation=int)], None, "    ")
    text.shadowed = frozenset()
    named = [getattr(functional, name) for name in functional.__all__]
    for name, op in sorted({class_of(op): op for op in named if isinstance(op, Op)}.items()):
        text.lines.append(f"class {name}({text.named('minigrad.core.op', 'Op')}):")
        calls = []
        for form in faces(of_op(op)):
            result = (
                bool if returned(op) is bool and form.return_annotation is not mg.Tensor else form.return_annotation
            )
            parameters = [parameter("self"), *form.parameters.values()]
            calls.append(form.replace(parameters=parameters, return_annotation=result))
        text.define("__call__", calls, None, "    ")
    return text.finished(HOUSE / "functional" / "_stubs.pyi")


# --- the names of packages ---


def given_by(home: types.ModuleType, name: str) -> Any:
    """Return `name` of a module that registers functions or defines `__all__`; None if the module lacks it."""
    if home in TOPIC_MODULES:
        return FUNCTIONS[name] if name in TOPICS[home.__name__].functions else None
    return getattr(home, name) if name in home.__all__ else None


def stub_of(module: types.ModuleType, names: Iterable[str], homes: Sequence[types.ModuleType]) -> str:
    """Return the stub of a package whose `names` come from `homes`."""
    found: dict[str, Any] = {name: source(getattr(module, name)) for name in sorted(names)}
    text = Text(shadowed=found)
    for name, thing in found.items():
        home = None if thing is None else next((home for home in homes if source(given_by(home, name)) is thing), None)
        if home is None and thing is tuple:
            text.lines.append(f"{name}: type[tuple[{text.type(int)}, ...]]")
        elif home is None and isinstance(thing, type):
            text.named(thing.__module__, name)
        elif home is None and not isinstance(thing, types.ModuleType):  # a constant
            text.lines.append(f"{name}: {text.type(type(thing))}")
        elif home is None:  # a module
            text.named(thing.__name__.rpartition(".")[0], name)
        elif home is functional:  # which has its own stub
            text.named(home.__name__, name)
        elif home is dtypes and name in dtypes.ALIASES:
            text.lines.append(f"{name}: {text.named(dtypes.__name__, 'DType')}")
        elif inspect.isfunction(thing) and name in operations.TAKES_INPLACE:
            asked = parameter("inplace", bool, False)
            calls = faces(of_op(OPS[name]))
            calls = [call.replace(parameters=[*call.parameters.values(), asked]) for call in calls]
            text.define(name, calls, thing.__doc__)
        elif isinstance(thing, Op) and of_any_face(thing):
            text.lines.append(f"{name}: {text.named('minigrad.functional._stubs', class_of(thing))}")
        elif of_any_face(thing):
            text.define(name, [form for one in forms(thing) for form in faces(one)], thing.__doc__)
        elif inspect.isfunction(thing) and made(thing):
            text.define(name, forms(thing), thing.__doc__)
        else:
            text.named(home.__name__, name)
    if hasattr(module, "__version__"):
        text.lines.append("__version__: str")
    return text.finished(Path(module.__file__ or "").with_suffix(".pyi"), found)


def public_names() -> set[str]:
    """Return every name of minigrad, including those that it imports lazily."""
    modules = {module.name for module in pkgutil.iter_modules(mg.__path__) if not module.name.startswith("_")}
    return {*mg.__all__, *modules, *(name for room in LAZY for name in room.__all__)}


def stubs() -> dict[Path, str]:
    """Return the content of each stub by path."""
    return {
        HOUSE / "functional" / "_stubs.pyi": stub_of_methods(),
        HOUSE / "functional" / "__init__.pyi": stub_of(functional, functional.__all__, [*TOPIC_MODULES, return_types]),
        HOUSE / "__init__.pyi": stub_of(mg, public_names(), (*LAZY, *EAGER)),
        HOUSE.parent / "viz" / "frontend" / "src" / "drawing" / "palette.js": palette.javascript(),
    }


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text, encoding="utf-8")
