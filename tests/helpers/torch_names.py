"""Rewrite `minigrad/pytorch/names.txt`, PyTorch's public names, from the installed PyTorch.

    python tests/helpers/torch_names.py

The first lines list the families, which the table of the book shows. A name of a family is public if it begins with a
letter and is no module or type that the family imports for itself; from `torch`, internals of its compilers and other
backends are omitted as well. A name is followed by its signatures, ``cat(tensors,dim=)``, with = after a parameter
that has a default, and | between signatures; ``out=`` and the parameters of named tensors are omitted.

Then follows a line for the members of each class of the families, ``.torch.nn.Module: ...``, and one for every other
public module, ``+torch.nn.modules.linear: Linear=torch.nn ...``. A name there is followed by the family that exports
the same object under that name; a submodule is marked with a point.
"""

import ast
import contextlib
import inspect
import io
import pkgutil
import sys
import types
import warnings
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from pathlib import Path

from lazy import LazyModule

torch = LazyModule("torch")
FILE = Path(__file__).parents[2] / "minigrad" / "pytorch" / "names.txt"
FAMILIES = (
    "torch", "torch.Tensor", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils", "torch.nn.utils.rnn",
    "torch.optim", "torch.optim.lr_scheduler", "torch.utils.data", "torch.autograd", "torch.cuda", "torch.linalg",
)  # fmt: skip
# Prefixes of internal names in `torch`: of its compilers, its other backends and its sub-byte dtypes.
INTERNAL_PREFIXES = (
    "batch_norm_", "cudnn_", "fbgemm_", "fused_", "import_ir", "miopen_", "mkldnn_", "parse_", "q_", "quantize", "sym_",
    "autocast_", "set_autocast", "get_autocast", "is_autocast", "native_", "fake_quantize", "choose_", "quantized_",
    "unify_", "merge_", "has_", "bits", "float4", "float8", "uint1", "uint2", "uint3", "uint4", "uint5", "uint6",
    "uint7", "int1", "int2", "int3", "int4", "int5", "int6", "int7", "quint", "qint", "sparse_", "rnn_", "gru", "lstm",
    "profiler_",
)  # fmt: skip
PUBLIC_EXCEPTIONS = {
    "uint16",
    "uint32",
    "uint64",
    "int16",
    "int32",
    "int64",
    "int8",
    "sparse_coo_tensor",
    "quantize_per_tensor",
}
PUBLIC_MODULES = {
    "amp", "autograd", "backends", "compiler", "cuda", "distributed", "distributions", "export", "fft", "func", "fx",
    "hub", "jit", "linalg", "masked", "mps", "multiprocessing", "nested", "nn", "optim", "profiler",
    "quantization", "random", "signal", "sparse", "special", "testing", "utils", "xpu",
}  # fmt: skip


def is_public(family: str, name: str, value: object) -> bool:
    if name.startswith("_") or name.endswith("_copy"):
        return False
    if isinstance(value, types.ModuleType):
        return family == "torch" and name in PUBLIC_MODULES
    home = getattr(value, "__module__", None) or ""
    if family == "torch":
        if name.startswith(INTERNAL_PREFIXES) and name not in PUBLIC_EXCEPTIONS:
            return False
        if isinstance(value, type) and not issubclass(value, torch.Tensor) and not home.startswith("torch.autograd"):
            return name in PUBLIC_TYPES
        return not name.isupper() and name not in ("PRIVATE_OPS", "classproperty")
    if family == "torch.nn.functional":
        return (
            callable(value)
            and not inspect.isclass(value)
            and not name.startswith(("has_torch", "handle_torch", "Optional"))
        )
    if family == "torch.cuda":
        return name in torch.cuda.__all__ and not name.endswith(("Storage", "Tensor"))
    if family == "torch.autograd":
        return (name in torch.autograd.__all__ and name[0].islower()) or name == "Function"
    return not home.startswith("typing")


PUBLIC_TYPES = {"Generator", "Size", "device", "dtype", "finfo", "iinfo", "memory_format", "layout", "Stream", "Event"}


@cache
def names(family: str) -> dict[str, str]:
    """Return the public names of a family, each with its signatures."""
    namespace = torch.Tensor if family == "torch.Tensor" else import_module(family)
    candidates = (
        dir(namespace)
        if family in ("torch", "torch.Tensor", "torch.nn", "torch.nn.functional", "torch.linalg")
        else None
    )
    candidates = candidates or getattr(namespace, "__all__", dir(namespace))
    public = sorted({name for name in candidates if is_public(family, name, getattr(namespace, name, None))})
    return {name: signatures(family, name, getattr(namespace, name, None)) for name in public}


# --- signatures ---

OMITTED_PARAMETERS = {"out", "names"}  # which minigrad's functions do not accept
BUILT_IN = {"torch": ("_VariableFunctions.pyi", ""), "torch.Tensor": ("__init__.pyi", "TensorBase")}
BUILT_IN["torch.nn.functional"] = ("_nn.pyi", "")
WRONG_STUBS = {"torch.Tensor.copy_", "torch.Tensor.requires_grad_"}  # whose parameter names are wrong


def signatures(family: str, name: str, value: object) -> str:
    """Return the signatures of a function or class, as "(input,dim=)"; empty if they are unknown."""
    try:
        parameters = list(inspect.signature(value).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    if parameters and parameters[0].name in ("self", "cls"):
        parameters = parameters[1:]
    keyword_parameters = [p for p in parameters if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    signatures_found = (
        [format_signature([(p.name, p.default is not p.empty) for p in keyword_parameters])]
        if keyword_parameters
        else []
    )
    if not keyword_parameters and callable(value) and not isinstance(value, type):
        signatures_found = stub_signatures(family, name) or docstring_signature(value)
    return f"({'|'.join(signatures_found)})" if any(signatures_found) else ""


def format_signature(parameters: list[tuple[str, bool]]) -> str:
    shown = [(name, default) for name, default in parameters if name[0] != "_" and name not in OMITTED_PARAMETERS]
    return ",".join(f"{name}{'=' * default}" for name, default in shown)


def stub_signatures(family: str, name: str) -> list[str]:
    """Return the signatures of a function written in C++, from PyTorch's own stubs."""
    if f"{family}.{name}" in WRONG_STUBS or family not in BUILT_IN:
        return []
    signatures_found = stubs(family).get(name) or (
        stubs("torch").get(name) if family == "torch.nn.functional" else None
    )
    return list(dict.fromkeys(signatures_found or []))


@cache
def stubs(family: str) -> dict[str, list[str]]:
    file, class_name = BUILT_IN[family]
    body = ast.parse((Path(import_module("torch").__file__).parent / "_C" / file).read_text(encoding="utf-8")).body
    if class_name:
        body = next(x.body for x in body if isinstance(x, ast.ClassDef) and x.name == class_name)
    signatures_by_name: dict[str, list[str]] = {}
    for function in body:
        if isinstance(function, ast.FunctionDef) and not takes_named_dims(function):
            signatures_by_name.setdefault(function.name, []).append(
                format_signature(list(parameters_of(function.args, bool(class_name))))
            )
    return signatures_by_name


def takes_named_dims(function: ast.FunctionDef) -> bool:
    """Whether it takes named dimensions, in addition to an overload without them."""
    return any(
        "EllipsisType" in ast.unparse(x.annotation) for x in ast.walk(function.args) if getattr(x, "annotation", None)
    )


def parameters_of(args: ast.arguments, is_method: bool) -> Iterator[tuple[str, bool]]:
    positional = [*args.posonlyargs, *args.args]
    first = len(positional) - len(args.defaults)
    for k, x in enumerate(positional):
        if not (is_method and k == 0):
            yield "input" if x.arg == "self" else x.arg, k >= first
    for x in args.kwonlyargs:  # another overload has it without a default
        yield x.arg, True


def docstring_signature(value: object) -> list[str]:
    """Return the signature in the first line of a docstring."""
    first = (getattr(value, "__doc__", None) or "").strip().partition("\n")[0]
    text = first.partition("(")[2].rpartition(") -> ")[0]
    if not text:
        return []
    try:
        function = ast.parse(f"def f({text}): ...").body[0]
    except SyntaxError:
        return []
    assert isinstance(function, ast.FunctionDef)
    return [format_signature(list(parameters_of(function.args, False)))]


# --- the members of classes ---

OPERATORS = (
    "add", "iadd", "mul", "imul", "rmul", "or", "ior", "ror", "len", "contains", "getitem", "getitems", "setitem",
    "delitem", "iter", "reversed", "call",
)  # fmt: skip


@cache
def members(family: str) -> dict[str, dict[str, str]]:
    """Return the members of each class of a family, without those inherited from a base in the table."""
    namespace = import_module(family) if family != "torch.Tensor" else None
    classes = {name: x for name in names(family) if isinstance(x := getattr(namespace, name, None), type)}
    table_classes = {getattr(import_module(home), name) for home, name in BASES}
    members_by_class = {}
    for name, kind in classes.items():
        member_names = {
            member for base in kind.__mro__ if lists_members_of(base, kind, table_classes) for member in vars(base)
        }
        member_names = {x for x in member_names if is_member(kind, x) and not is_as_in_base(kind, x, table_classes)}
        if member_names and f"{family}.{name}" not in OMITTED_CLASSES:
            members_by_class[name] = {
                member: signatures("", member, getattr(kind, member)) for member in sorted(member_names)
            }
    return members_by_class


BASES = (
    ("torch", "Tensor"), ("torch.nn", "Module"), ("torch.nn", "Sequential"), ("torch.optim", "Optimizer"),
    ("torch.optim.lr_scheduler", "LRScheduler"), ("torch.utils.data", "Dataset"), ("torch.utils.data", "Sampler"),
)  # fmt: skip
OMITTED_CLASSES = {
    "torch.Event",
    "torch.autograd.Function",
    "torch.Size",
    "torch.Stream",
    "torch.Tensor",
}  # different in minigrad, or in the table itself


def lists_members_of(base: type, kind: type, tabled: set[type]) -> bool:
    """Whether to list the members of a base with a class: the base is public and not in the table."""
    return base is kind or (base not in tabled and base.__module__.startswith("torch") and "._" not in base.__module__)


def is_member(kind: type, name: str) -> bool:
    """Whether it is an operator or a documented method; `forward` and `extra_repr` of modules do not count."""
    if name.startswith("_"):
        return name in {f"__{sign}__" for sign in OPERATORS}
    method = getattr(kind, name)
    return (
        inspect.isroutine(method)
        and bool(method.__doc__)
        and name not in ("forward", "extra_repr", "profile_hook_step")
    )


def is_as_in_base(kind: type, member: str, tabled: set[type]) -> bool:
    """Whether a base in the table has the member, with the same signature."""
    base = next((base for base in kind.__mro__[1:] if base in tabled and hasattr(base, member)), None)
    return base is not None and signatures("", member, getattr(kind, member)) == signatures(
        "", member, getattr(base, member)
    )


# --- other modules ---


@cache
def other_names() -> dict[str, dict[str, str]]:
    """Return the names of every public module that are not in the table, with the family that exports each object."""
    homes: dict[tuple[int, str], str] = {}
    for family in (*FAMILIES, "torch.distributions"):
        namespace = torch.Tensor if family == "torch.Tensor" else import_module(family)
        for name in names(family):
            value = getattr(namespace, name, None)
            if isinstance(value, type | types.FunctionType):
                homes.setdefault((id(value), name), family)
    names_by_module: dict[str, dict[str, str]] = {}
    for path, module in modules():
        table_names = names(path) if path in FAMILIES else {}
        unlisted = [name for name in public_names(module) if name not in table_names]
        values = {name: getattr(module, name, None) for name in unlisted}
        own_values = {
            name: x for name, x in values.items() if module_of(x).startswith(path)
        }  # and not imported from elsewhere
        names_by_module[path] = {name: homes.get((id(own_values.get(name)), name), "") for name in unlisted}
    for path in [*names_by_module]:
        parent, _, name = path.rpartition(".")
        if parent and name not in (names(parent) if parent in FAMILIES else {}):
            names_by_module[parent][name] = "."
    tensor = names("torch.Tensor")
    names_by_module["torch.Tensor"] = {name: "" for name in dir(torch.Tensor) if name[0] != "_" and name not in tensor}
    return {
        path: dict(sorted(names_by_module[path].items())) for path in sorted(names_by_module) if names_by_module[path]
    }


def modules() -> Iterator[tuple[str, types.ModuleType | None]]:
    """Yield every public module of PyTorch, with None for one that needs a package that is not installed."""
    stack = [("torch", import_module("torch"))]
    while stack:
        path, module = stack.pop()
        yield path, module
        folder = Path(import_module("torch").__file__).parent.joinpath(*path.split(".")[1:])
        for info in pkgutil.iter_modules([str(folder)]):
            if not info.name.startswith("_"):
                stack.append((f"{path}.{info.name}", import_quietly(f"{path}.{info.name}")))


def import_quietly(path: str) -> types.ModuleType | None:
    quiet = io.StringIO()
    with contextlib.redirect_stdout(quiet), contextlib.redirect_stderr(quiet), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return import_module(path)
        except ImportError:
            return None


def public_names(module: types.ModuleType | None) -> list[str]:
    """Return a module's `__all__`, or what it defines; for `torch` everything that is PyTorch's."""
    if module is None:
        return []
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about deprecated names
        values = {name: x for name, x in vars(module).items() if name[0] != "_" and not isinstance(x, types.ModuleType)}
    if module.__name__ == "torch":
        return sorted(
            name for name, x in values.items() if module_of(x).partition(".")[0] not in sys.stdlib_module_names
        )
    defined = [name for name, x in values.items() if module_of(x) == module.__name__]
    return sorted({name for name in getattr(module, "__all__", defined) if name[0] != "_"})


def module_of(value: object) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # about deprecated names
        return getattr(value, "__module__", None) or ""


def file_content() -> str:
    """Return the content of the file."""
    version = import_module("torch").__version__.partition("+")[0]
    lines = [f"# PyTorch {version}: public names, and what they take. By tests/helpers/torch_names.py."]
    lines += [f"{family}: {' '.join(name + marker for name, marker in names(family).items())}" for family in FAMILIES]
    for family in FAMILIES:
        for kind, group in members(family).items():
            lines.append(f".{family}.{kind}: {' '.join(name + marker for name, marker in group.items())}")
    for path, group in other_names().items():
        lines.append(f"+{path}: {' '.join(f'{name}={home}' if home else name for name, home in group.items())}")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(file_content(), encoding="utf-8")
    print(*(f"{len(names(family)):5} {family}" for family in FAMILIES), sep="\n")
