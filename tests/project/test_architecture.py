"""Architecture rules: the direction of imports, the size of packages, and what an import loads."""

import ast
import importlib
import inspect
from functools import cache
from itertools import takewhile
from pathlib import Path

import pytest

import minigrad
from cases import merge_cases
from minigrad import ops
from minigrad.core.effects import EFFECTS, Effects
from minigrad.core.modes import modes
from minigrad.core.op import Op
from minigrad.core.registry import FUNCTIONS, TOPICS
from needs import is_available, needs

PACKAGE = Path(minigrad.__file__).parent
ROOT = PACKAGE.parent

# Each package may import those before it in this list; within `core`, `backends` and `backends.taichi`, each file or
# package may import those before it.
PACKAGES = [
    "core",
    "backends",
    "ops",
    "random",
    "profiling",
    "pytorch",
    "functional",
    "autograd",
    "optim",
    "nn",
    "linalg",
    "distributions",
    "io",
    "data",
    "utils",
    "compiler",
    "training",
    "distributed",
    "lessons",
    "__init__",
    "cli",
    "__main__",
]
CORE = [
    "errors",
    "deprecation",
    "packages",
    "dtypes",
    "shapes",
    "specialise",
    "symbolic",
    "modes",
    "grad_mode",
    "effects",
    "dispatch",
    "storage",
    "rules",
    "op",
    "graph",
    "step",
    "promotion",
    "views",
    "registry",
    "hooks",
    "accumulation",
    "value_gradient",
    "value",
    "tensor",
    "snapshot",
]
BACKENDS = ["devices", "limits", "custom", "python", "numpy", "taichi", "arrays", "formula", "loops"]
VIEWER = ["trace", "layout", "pictures", "widget", "__init__"]
TAICHI = ["runtime", "codegen", "kernels"]
ORDERS = {"core": CORE, "backends": BACKENDS, "backends.taichi": TAICHI}


def modules() -> dict[str, Path]:
    """Return every module of both packages by its dotted name."""
    folders = {"minigrad": PACKAGE, "minigrad_viz": ROOT / "viz" / "minigrad_viz"}
    paths = {}
    for package, folder in folders.items():
        for path in sorted(folder.rglob("*.py")):
            parts = [package, *path.relative_to(folder).with_suffix("").parts]
            paths[".".join(part for part in parts if part != "__init__")] = path
    return paths


MODULES = modules()


@cache
def imports_of(module: str) -> frozenset[str]:
    """Return the modules that a module imports: at the top, in functions, and for type checking only."""
    imported = set()
    for node in ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            qualified = [f"{node.module}.{alias.name}" for alias in node.names]
            imported |= {name if name in MODULES else str(node.module) for name in qualified}
    return frozenset(imported & MODULES.keys()) - {module}


def package_of(module: str) -> str:
    return (module.split(".")[1:] or ["__init__"])[0]


def may_import(module: list[str], imported: list[str]) -> bool:
    """Whether a module may import another of its package, by the order of their innermost common package."""
    common = len([*takewhile(lambda pair: pair[0] == pair[1], zip(module, imported, strict=False))])
    order = ORDERS.get(".".join(module[:common]))
    if order is None or common in (len(module), len(imported)):
        return True
    return order.index(imported[common]) < order.index(module[common])


@pytest.mark.parametrize("package", PACKAGES)
def test_imports_point_one_way(package):
    violations = []
    for module in MODULES:
        first, *parts = module.split(".")
        if first != "minigrad" or package_of(module) != package:
            continue
        for name in imports_of(module):
            package_name, *rest = name.split(".")
            if package_name == "minigrad_viz":
                allowed = package == "cli"
            elif package_of(name) != package:
                allowed = PACKAGES.index(package_of(name)) < PACKAGES.index(package)
            else:
                allowed = may_import(parts, rest)
            if not allowed:
                violations.append(f"{module} imports {name}")
    assert violations == []
    assert {package_of(module) for module in MODULES if module.startswith("minigrad.")} <= set(PACKAGES)


def test_imports_of_the_viewer_point_one_way():
    packages = {module: package_of(module) for module in MODULES if module.startswith("minigrad_viz")}
    violations = [
        f"{module} imports {name}"
        for module, package_name in packages.items()
        for name in imports_of(module) & packages.keys()
        if VIEWER.index(packages[name]) > VIEWER.index(package_name)
    ]
    assert violations == []
    assert set(packages.values()) == set(VIEWER)


def test_the_viewer_reads_no_private_state_of_the_engine():
    """It reads `core.snapshot`, and a replay writes through `core.views`. PyTorch's private names are in one module."""
    as_pytorch = {"_base", "_get_name", "_modules", "_parameters", "_version"}
    allowed = as_pytorch | {"_replace", "_asdict", "_fields", "_repr_mimebundle_", "_getframe"}
    private = {}
    for module in MODULES:
        if not module.startswith("minigrad_viz") or module == "minigrad_viz.trace.torch.internals":
            continue
        nodes = list(ast.walk(ast.parse(MODULES[module].read_text(encoding="utf-8"))))
        defined = {node.name for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef)} | allowed
        defined |= {node.attr for node in nodes if isinstance(node, ast.Attribute) and is_self(node.value)}
        used = {node.attr for node in nodes if isinstance(node, ast.Attribute) and not is_self(node.value)}
        used |= {alias.name for node in nodes if isinstance(node, ast.ImportFrom) for alias in node.names}
        for node in nodes:  # getattr(x, "_y")
            if (
                isinstance(node, ast.Call)
                and isinstance(node.func, ast.Name)
                and node.func.id in ("getattr", "hasattr")
            ):
                used |= {x.value for x in node.args if isinstance(x, ast.Constant) and isinstance(x.value, str)}
        if names := {name for name in used - defined if name.startswith("_") and not name.startswith("__")}:
            private[module] = names
    assert private == {}


def is_self(node: ast.AST) -> bool:
    return isinstance(node, ast.Name) and node.id in ("self", "cls")


def test_library_and_viewer_have_no_class_name_in_common():
    """Class names are unique across the project."""
    class_names = {"minigrad": set(), "minigrad_viz": set()}
    for module, path in MODULES.items():
        tree = ast.parse(path.read_text(encoding="utf-8"))
        class_names[module.partition(".")[0]] |= {node.name for node in tree.body if isinstance(node, ast.ClassDef)}
    assert class_names["minigrad"] & class_names["minigrad_viz"] == set()


def test_imports_have_no_cycle():
    """No module imports itself, directly or through others."""
    remaining = {module: imports_of(module) for module in MODULES}
    while leaves := [module for module, imported in remaining.items() if not imported & remaining.keys()]:
        for module in leaves:
            del remaining[module]
    while roots := [module for module in remaining if not any(module in imports for imports in remaining.values())]:
        for module in roots:
            del remaining[module]
    assert sorted(remaining) == []


def test_packages_that_report_effects_do_not_refer_to_the_compiler():
    """Packages below the compiler report to `core.effects`; their imports and attributes never name a capture."""
    listeners = {"compiler", "training", "distributed", "lessons", "cli", "__init__", "__main__"}
    effects = {name for name in vars(Effects) if not name.startswith("_")}
    assert set(EFFECTS) == effects <= set(dir(modes))
    reported = set()
    for module, path in MODULES.items():
        if module.startswith("minigrad_viz"):
            continue
        tree = ast.parse(path.read_text(encoding="utf-8"))
        names = {node.attr for node in ast.walk(tree) if isinstance(node, ast.Attribute)}
        names |= {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
        if package_of(module) not in listeners:
            assert not {"capture", "Capture", "Jitted"} & names, module
            assert not {name for name in imports_of(module) if "compiler" in name}, module
            reported |= effects & names
    assert reported == effects  # an effect that nobody reports need not be in the protocol


def test_only_one_module_executes_generated_source():
    """`core.specialise`, whose docstring says why; `widget.notebook` runs notebook cells, which their author wrote."""
    runs = set()
    for module, path in MODULES.items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Name) and node.id in ("compile", "eval", "exec"):
                runs.add(module)
    assert runs == {"minigrad.core.specialise", "minigrad_viz.widget.notebook"}


# Class names that may occur twice: `nn.scalar` has the modules of `nn` for Values; modules define their own
# thread-local state and their own finder of renamed modules.
ALLOWED_DUPLICATES = {"Module", "_Finder", "_Here"}
# Class names of the viewer that the library has too; this list may only shrink.
VIEWER_DUPLICATES = {
    "Block",
    "Call",
    "Event",
    "History",
    "Layer",
    "Node",
    "Shown",
    "Step",
    "Stop",
    "View",
    "Work",
    "Writer",
}


def test_class_names_are_unique():
    modules_by_class: dict[str, list[str]] = {}
    for module, path in MODULES.items():
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef):
                modules_by_class.setdefault(node.name, []).append(module)
    duplicates = {
        name: modules
        for name, modules in modules_by_class.items()
        if len(modules) > 1 and name not in ALLOWED_DUPLICATES
    }
    within_a_package = {
        name: modules
        for name, modules in duplicates.items()
        if len({module.split(".")[0] for module in modules}) < len(modules)
    }
    assert within_a_package == {}
    assert duplicates.keys() <= VIEWER_DUPLICATES


def statements(path: Path) -> int:
    """Count the statements of a file, without docstrings. Unlike lines, they do not depend on the length of names."""
    return sum(
        isinstance(node, ast.stmt) and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    )


WITH_PYTORCH = ROOT / "viz" / "minigrad_viz" / "trace" / "torch"


def sources() -> list[Path]:
    return [*PACKAGE.rglob("*.py"), *(ROOT / "viz").rglob("*.py")]


def importable_sources() -> list[Path]:
    return [path for path in sources() if is_available("torch") or path.parent != WITH_PYTORCH]


def files_in(*parts: str) -> list[Path]:
    return sorted(PACKAGE.joinpath(*parts).glob("*.py"))


# There are two budgets, because there are two kinds of code. The engine is one idea, which a newcomer should be able
# to read in an afternoon: it has a budget of statements. There are as many operations and functions as in PyTorch, read
# one at a time: if each is short, there may be any number of them. A budget should make you look for the simpler idea;
# if there is none, raise it and say why. (2,425 includes the protocol by which computations report their effects to the
# jit, 40, the public view of a graph, 178, and the table of functions and methods, 77. 9.2 includes the sequences of
# recurrent layers, whose kernels and second derivatives are loops over time; without them it is 8.4.)


def test_the_engine_can_be_read_in_an_afternoon():
    assert sum(map(statements, files_in("core"))) <= 2425


def test_an_operation_and_a_function_take_few_statements_on_average():
    needs("numpy")
    functional = importlib.import_module("minigrad.functional")
    modules = (functional, functional.creation)
    functions = {getattr(family, name) for family in modules for name in family.__all__}  # without aliases
    declared = {x for name in ops.__all__ if isinstance(x := getattr(ops, name), Op)}
    # `tape` runs graphs of kernels, `threads` share the work of one
    kernels = [path for path in files_in("backends", "numpy") if path.stem not in ("tape", "threads")]
    assert sum(map(statements, files_in("ops") + kernels)) / len(declared) <= 9.2
    assert sum(map(statements, files_in("functional"))) / len(functions) <= 10.25


def test_no_file_is_above_400_lines_and_no_function_above_60():
    lengths = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in sources()}
    long_functions = {
        f"{path.name}:{node.name}": node.end_lineno - node.lineno + 1
        for path in sources()
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.FunctionDef) and node.end_lineno and node.end_lineno - node.lineno + 1 > 60
    }
    assert {path: length for path, length in lengths.items() if length > 400} == {}
    assert long_functions == {}


@merge_cases
@pytest.mark.parametrize("path", importable_sources(), ids=lambda p: str(p.relative_to(ROOT)))
def test_all_lists_the_public_names_of_a_module(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    if not tree.body or (len(tree.body) == 1 and ast.get_docstring(tree)):
        return  # an empty package: only a docstring
    parts = path.relative_to(PACKAGE.parent if PACKAGE in path.parents else ROOT / "viz").with_suffix("").parts
    module = importlib.import_module(".".join(part for part in parts if part != "__init__"))
    declared = getattr(module, "__all__", None)
    if module.__name__ in TOPICS:  # the registry lists a module's functions
        registered = {
            f.__name__ for f in FUNCTIONS.values() if inspect.isfunction(f) and f.__module__ == module.__name__
        }
        declared = [*(declared or ()), *registered]
    assert len(set(declared)) == len(declared)
    assert all(hasattr(module, name) for name in declared)
    if "backends" not in parts or "formula" in parts:  # kernels are looked up in the registry, not by name
        defined = {
            n.name for n in tree.body if isinstance(n, ast.FunctionDef | ast.ClassDef) and not n.name.startswith("_")
        }
        assert defined <= set(declared)
