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
from minigrad.core.registry import FUNCTIONS, METHODS, TOPICS, accept_axis  # noqa: E402
from minigrad.functional import bits, creation, operations, return_types  # noqa: E402
from minigrad_viz.pictures import palette  # noqa: E402

PACKAGE = Path(mg.__file__).parent
LAZY_MODULES = (
    functional,
    tensor,
    creation,
    random,
    profiling,
    io,
    tape,
    jit,
    dtypes,
    ops,
)  # in minigrad's lookup order
EAGER_MODULES = (
    *(mg.autograd, core.graph, core.grad_mode, core.dispatch, core.op, mg.backends.custom),
    *(core.storage, mg.utils.pytree, core.value),
)
ELEMENTWISE = {op.name for op in (*ops.elementwise.ELEMENTWISE, *ops.activation.ACTIVATIONS)}
OPERATOR_NAMES = {
    *("abs", "add", "and", "eq", "floordiv", "ge", "gt", "invert", "le", "lt", "mod", "mul"),
    *("ne", "neg", "or", "pos", "pow", "sub", "truediv", "xor"),
}
OPERATORS = {f"__{prefix}{sign}__" for prefix in ("", "i", "r") for sign in OPERATOR_NAMES}
OPERAND_TYPES = (mg.Tensor, mg.Value, float)  # operand and result types of elementwise operations
TOPIC_MODULES = [sys.modules[name] for name, topic in TOPICS.items() if topic.functions]
EMPTY = inspect.Parameter.empty


class StubWriter:
    """A stub under construction: its lines and its imports. `shadowed` are names that hide built-in ones in it."""

    def __init__(self, shadowed: Iterable[str] = ()) -> None:
        self.shadowed = frozenset(shadowed)
        self.imports: dict[str, set[str]] = {}
        self.lines: list[str] = []

    def import_name(self, module: str, name: str) -> str:
        """Import a name of another module, and return how to refer to it."""
        if module == "builtins":
            if name in self.shadowed:
                self.imports["builtins"] = set()
            return f"builtins.{name}" if name in self.shadowed else name
        self.imports.setdefault(module, set()).add(name)
        return name

    def annotation(self, kind: Any) -> str:
        """Return the source of an annotation."""
        if kind is None or kind is types.NoneType:
            return "None"
        if kind is ...:
            return "..."
        if isinstance(kind, list):  # the parameters of a Callable
            return f"[{', '.join(map(self.annotation, kind))}]"
        origin, inner = typing.get_origin(kind), typing.get_args(kind)
        if origin in (types.UnionType, typing.Union):
            return " | ".join(map(self.annotation, inner))
        if origin is typing.Literal:
            return f"{self.import_name('typing', 'Literal')}[{', '.join(map(repr, inner))}]"
        if origin is not None:
            return f"{self.annotation(origin)}[{', '.join(map(self.annotation, inner))}]"
        return self.import_name(kind.__module__, kind.__name__)

    def parameters(self, form: inspect.Signature) -> str:
        """Return the source of a signature's parameters. Positional-only parameters come first, including `self`."""
        parts, positional, starred = [], 0, False
        for k, p in enumerate(form.parameters.values()):
            if p.kind is p.POSITIONAL_ONLY:
                positional = k + 1
            if p.kind is p.KEYWORD_ONLY and not starred:
                parts.append("*")
            starred = starred or p.kind in (p.VAR_POSITIONAL, p.KEYWORD_ONLY)
            prefix = {p.VAR_POSITIONAL: "*", p.VAR_KEYWORD: "**"}.get(p.kind, "")
            annotation = "" if p.annotation is EMPTY else f": {self.annotation(p.annotation)}"
            parts.append(f"{prefix}{p.name}{annotation}{'' if p.default is EMPTY else f' = {p.default!r}'}")
        if positional and parts[:positional] != ["self"]:
            parts.insert(positional, "/")
        return ", ".join(parts)

    def define(self, name: str, forms: Sequence[inspect.Signature], doc: str | None = None, indent: str = "") -> None:
        """Add a function, overloaded if it has several signatures, with the first sentence of its docstring."""
        for form in forms:
            if len(forms) > 1:
                self.lines.append(f"{indent}@{self.import_name('typing', 'overload')}")
            head = f"{indent}def {name}({self.parameters(form)}) -> {self.annotation(form.return_annotation)}:"
            if doc and form is forms[0]:
                first = " ".join(doc.partition("\n\n")[0].split()).partition(". ")[0].rstrip(".")
                quotes = 'r"""' if "\\" in first else '"""'
                lines = textwrap.wrap(f'{quotes}{first}."""', 116 - len(indent))
                self.lines += [head, *(f"{indent}    {line}" for line in lines)]
            else:  # object declares that == returns a bool
                self.lines.append(f"{head} ...{'  # type: ignore[override]' if name in ('__eq__', '__ne__') else ''}")

    def source(self, path: Path, public: Iterable[str] = ()) -> str:
        """Return the whole stub, formatted by ruff."""
        import_lines = [
            f"from {m} import {', '.join(names)}" if names else f"import {m}" for m, names in self.imports.items()
        ]
        exports = [f"__all__ = {list(public)}"] if public else []
        text = "\n".join(
            ["# Written by `make stubs` from the declarations: change those.", *import_lines, *exports, *self.lines]
        )
        for command in ("check --select I,RUF022 --fix", "format"):
            ruff = [sys.executable, "-m", "ruff", *command.split(), "--quiet", "--stdin-filename", str(path), "-"]
            child = subprocess.run(
                ruff, input=f"{text}\n", capture_output=True, text=True, check=True, cwd=PACKAGE.parent
            )
            text = child.stdout
        return text


# --- signatures ---


def parameter(name: str, kind: Any = EMPTY, default: Any = EMPTY) -> inspect.Parameter:
    """Return a parameter; one without a default is positional-only."""
    kind_of_parameter = (
        inspect.Parameter.POSITIONAL_ONLY if default is EMPTY else inspect.Parameter.POSITIONAL_OR_KEYWORD
    )
    return inspect.Parameter(name, kind_of_parameter, annotation=kind, default=default)


def signatures(function: Callable[..., Any]) -> list[inspect.Signature]:
    """Return the signature of a function, or those of its overloads, with annotations evaluated."""
    return [inspect.signature(form, eval_str=True) for form in typing.get_overloads(function) or [function]]


AXIS = accept_axis(lambda dim: dim).__code__


def unwrap_axis(value: Any) -> Any:
    """Unwrap a function that also accepts ``axis`` for ``dim``: the stubs declare PyTorch's names only."""
    return value.__wrapped__ if getattr(value, "__code__", None) is AXIS else value


def is_generated(function: Any) -> bool:
    """Whether another function created this one, or it is a lambda."""
    return "<" in getattr(function, "__qualname__", "") or "__signature__" in getattr(function, "__dict__", ())


def is_polymorphic(value: Any) -> bool:
    """Whether it accepts and returns tensors, Values or floats, like an elementwise operation."""
    if isinstance(value, Op):
        return value.name in ELEMENTWISE
    if not inspect.isfunction(value) or value.__module__ == bits.__name__ or typing.get_overloads(value):
        return False
    signature = inspect.signature(value)
    first = signature.parameters.get("input")
    return first is not None and first.annotation == signature.return_annotation == "Any"


def op_signature(op: Op) -> inspect.Signature:
    """Return the signature of an elementwise operation: positional operands, and attributes, which are scalars."""
    attrs = [
        parameter(name, float if op.defaults[name] is not None else float | None, op.defaults[name])
        for name in op.attrs
    ]
    return inspect.Signature([*(parameter(name, Any) for name in op.inputs), *attrs], return_annotation=Any)


def specialise(signature: inspect.Signature, operand_type: type, first: int = 0) -> inspect.Signature:
    """Return `signature` with `operand_type` for operand `first` and the result; earlier operands are floats, later
    ones may be."""
    parameters, position = [], 0
    for p in signature.parameters.values():
        if p.annotation is Any:
            kind = float if position < first else operand_type if position == first else operand_type | float
            p = p.replace(annotation=kind if p.default is EMPTY else operand_type | float | None)
            position += 1
        parameters.append(p)
    return signature.replace(parameters=parameters, return_annotation=operand_type)


def specialisations(signature: inspect.Signature) -> list[inspect.Signature]:
    """Return `signature` for each type that its operands may have, with floats among them."""
    operands = [p for p in signature.parameters.values() if p.annotation is Any and p.default is EMPTY]
    return [
        specialise(signature, operand_type, k)
        for operand_type in OPERAND_TYPES
        for k in range(1 if operand_type is float else len(operands))
    ]


def as_method(signature: inspect.Signature, *extra: inspect.Parameter) -> inspect.Signature:
    """Return the signature of a tensor function as a method."""
    first, *rest = signature.parameters.values()
    return signature.replace(parameters=[first.replace(name="self", annotation=EMPTY), *rest, *extra])


# --- the methods of tensors, and operations as functions ---


def methods() -> dict[str, Any]:
    """Return the methods and properties that importing `functional` adds to Tensor, and the operators of an Operand."""
    members = {name: f for name, f in vars(Operand).items() if inspect.isfunction(f)}
    members |= METHODS
    return {name: f for name, f in members.items() if name in vars(Operand) or name not in vars(object)}


def method_signatures(name: str, function: Any) -> list[inspect.Signature]:
    """Return the signatures of a method that was written out, or generated from an operation or a function."""
    stem = name.removesuffix("_")
    if name in OPERATORS:
        operands = ("self",) if name in ("__abs__", "__invert__", "__neg__", "__pos__") else ("self", "other")
        return [as_method(specialise(inspect.Signature([parameter(x, Any) for x in operands]), mg.Tensor))]
    if (op := generating_op(name)) is not None:
        scale = inspect.signature(METHODS[stem], eval_str=True).parameters.get("alpha")
        return [as_method(specialise(op_signature(op), mg.Tensor), *([scale] if scale else []))]
    if name == "__rmatmul__":
        return [as_method(form) for form in signatures(methods()["__matmul__"])]
    if is_generated(function) and name.endswith("_"):
        return [as_method(form) for form in signatures(methods()[stem])]
    return [
        as_method(specialise(form, mg.Tensor) if is_polymorphic(function) else form) for form in signatures(function)
    ]


def generating_op(name: str) -> Op | None:
    """Return the elementwise operation from which a method was generated."""
    if not is_generated(METHODS.get(name)):
        return None
    op = OPS.get(METHODS[name].__name__.removesuffix("_"))
    return op if op is not None and op.name in ELEMENTWISE else None


def call_class(op: Op) -> str:
    """Return the name of the class that declares an elementwise operation's call, shared by all with this signature."""
    if op.attrs:
        return op.name.title().replace("_", "")
    return ("Unary", "Binary", "Ternary")[len(op.inputs) - 1] + ("Test" if result_type(op) is bool else "")


def result_type(op: Op) -> type:
    """Return the type of its result for floats: float or bool."""
    return type(op(*[1.0] * len(op.inputs)))


def methods_stub() -> str:
    members = methods()
    stub = StubWriter(shadowed=members)
    stub.lines.append(f"class Methods({stub.import_name('minigrad.core.graph', 'Node')}):")
    for name, function in sorted(members.items()):
        if function is None:
            stub.lines.append(f"    {name}: None")
        elif isinstance(function, property):
            stub.lines.append("    @property")
            stub.define(name, method_signatures(name, function.fget), function.__doc__, "    ")
            if function.fset:
                stub.lines.append(f"    @{name}.setter")
                stub.define(name, method_signatures(name, function.fset), None, "    ")
        else:
            stub.define(
                name, method_signatures(name, function), None if is_generated(function) else function.__doc__, "    "
            )
    stub.define("__hash__", [inspect.Signature([parameter("self")], return_annotation=int)], None, "    ")
    stub.shadowed = frozenset()
    operations = [getattr(functional, name) for name in functional.__all__]
    for name, op in sorted({call_class(op): op for op in operations if isinstance(op, Op)}.items()):
        stub.lines.append(f"class {name}({stub.import_name('minigrad.core.op', 'Op')}):")
        calls = []
        for form in specialisations(op_signature(op)):
            result = (
                bool if result_type(op) is bool and form.return_annotation is not mg.Tensor else form.return_annotation
            )
            parameters = [parameter("self"), *form.parameters.values()]
            calls.append(form.replace(parameters=parameters, return_annotation=result))
        stub.define("__call__", calls, None, "    ")
    return stub.source(PACKAGE / "functional" / "_stubs.pyi")


# --- the names of packages ---


def lookup(module: types.ModuleType, name: str) -> Any:
    """Return `name` of a module that registers functions or defines `__all__`; None if the module lacks it."""
    if module in TOPIC_MODULES:
        return FUNCTIONS[name] if name in TOPICS[module.__name__].functions else None
    return getattr(module, name) if name in module.__all__ else None


def package_stub(module: types.ModuleType, names: Iterable[str], sources: Sequence[types.ModuleType]) -> str:
    """Return the stub of a package whose `names` come from `sources`."""
    objects: dict[str, Any] = {name: unwrap_axis(getattr(module, name)) for name in sorted(names)}
    stub = StubWriter(shadowed=objects)
    for name, value in objects.items():
        origin = (
            None
            if value is None
            else next((home for home in sources if unwrap_axis(lookup(home, name)) is value), None)
        )
        if origin is None and value is tuple:
            stub.lines.append(f"{name}: type[tuple[{stub.annotation(int)}, ...]]")
        elif origin is None and isinstance(value, type):
            stub.import_name(value.__module__, name)
        elif origin is None and not isinstance(value, types.ModuleType):  # a constant
            stub.lines.append(f"{name}: {stub.annotation(type(value))}")
        elif origin is None:  # a module
            stub.import_name(value.__name__.rpartition(".")[0], name)
        elif origin is functional:  # which has its own stub
            stub.import_name(origin.__name__, name)
        elif origin is dtypes and name in dtypes.ALIASES:
            stub.lines.append(f"{name}: {stub.import_name(dtypes.__name__, 'DType')}")
        elif inspect.isfunction(value) and name in operations.INPLACE_ACTIVATIONS:
            inplace = parameter("inplace", bool, False)
            calls = specialisations(op_signature(OPS[name]))
            calls = [call.replace(parameters=[*call.parameters.values(), inplace]) for call in calls]
            stub.define(name, calls, value.__doc__)
        elif isinstance(value, Op) and is_polymorphic(value):
            stub.lines.append(f"{name}: {stub.import_name('minigrad.functional._stubs', call_class(value))}")
        elif is_polymorphic(value):
            stub.define(name, [form for one in signatures(value) for form in specialisations(one)], value.__doc__)
        elif inspect.isfunction(value) and is_generated(value):
            stub.define(name, signatures(value), value.__doc__)
        else:
            stub.import_name(origin.__name__, name)
    if hasattr(module, "__version__"):
        stub.lines.append("__version__: str")
    return stub.source(Path(module.__file__ or "").with_suffix(".pyi"), objects)


def public_names() -> set[str]:
    """Return every name of minigrad, including those that it imports lazily."""
    modules = {module.name for module in pkgutil.iter_modules(mg.__path__) if not module.name.startswith("_")}
    return {*mg.__all__, *modules, *(name for lazy_module in LAZY_MODULES for name in lazy_module.__all__)}


def stubs() -> dict[Path, str]:
    """Return the content of each stub by path."""
    return {
        PACKAGE / "functional" / "_stubs.pyi": methods_stub(),
        PACKAGE / "functional" / "__init__.pyi": package_stub(
            functional, functional.__all__, [*TOPIC_MODULES, return_types]
        ),
        PACKAGE / "__init__.pyi": package_stub(mg, public_names(), (*LAZY_MODULES, *EAGER_MODULES)),
        PACKAGE.parent / "viz" / "frontend" / "src" / "drawing" / "palette.js": palette.javascript(),
    }


if __name__ == "__main__":
    for path, text in stubs().items():
        path.write_text(text, encoding="utf-8")
