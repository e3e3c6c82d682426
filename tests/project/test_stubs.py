"""The stubs: they match the declarations, they are complete, and user code type-checks against them."""

import ast
import inspect
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import minigrad as mg
import stubs
from cases import run_cases
from minigrad import functional
from minigrad.core.graph import Node
from minigrad.core.registry import METHODS

ROOT = stubs.PACKAGE.parent


def test_stubs_are_up_to_date():
    stale = [path for path, text in stubs.stubs().items() if path.read_text(encoding="utf-8") != text]
    names = ", ".join(str(path.relative_to(ROOT)) for path in stale)
    assert not stale, f"stale stubs: {names}; run: make stubs"


def names_in(body: list[ast.stmt]) -> set[str]:
    """Return the names that statements bind."""
    names = set()
    for node in body:
        if isinstance(node, ast.ImportFrom):
            names |= {alias.asname or alias.name for alias in node.names}
        elif isinstance(node, ast.FunctionDef | ast.ClassDef):
            names.add(node.name)
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names.add(node.target.id)
    return names


def test_every_method_and_property_of_a_tensor_is_declared():
    (methods,) = [
        node
        for node in ast.parse((stubs.PACKAGE / "functional" / "_stubs.pyi").read_text(encoding="utf-8")).body
        if isinstance(node, ast.ClassDef) and node.name == "Methods"
    ]
    declared = names_in(methods.body) | set(vars(object)) | set(vars(Node)) | {"__module__", "__weakref__"}
    written = names_in(ast.parse(inspect.getsource(mg.Tensor)).body[0].body)
    assert set(vars(mg.Tensor)) - declared - written <= {"label", *mg.Tensor.__slots__}
    assert len(names_in(methods.body)) > 250


@pytest.mark.parametrize(
    ("module", "public_names"), [(mg, stubs.public_names), (functional, lambda: functional.__all__)]
)
def test_every_public_name_is_declared(module, public_names):
    tree, names = ast.parse(Path(module.__file__).with_suffix(".pyi").read_text(encoding="utf-8")), public_names()
    assert set(names) <= names_in(tree.body)
    (exports,) = [node.value for node in tree.body if isinstance(node, ast.Assign)]
    assert set(ast.literal_eval(exports)) == set(names)


def test_the_package_is_marked_as_typed():
    assert (stubs.PACKAGE / "py.typed").read_text(encoding="utf-8") == ""


def test_the_stub_class_does_not_exist_at_run_time():
    assert mg.Tensor.__mro__[1] is Node


def test_generated_methods_accept_the_declared_arguments():
    def check(name):
        (form,) = stubs.method_signatures(name, METHODS[name])
        _, *rest = form.parameters.values()
        x = mg.tensor([0.25, 0.5])
        operands = [mg.tensor([0.5, 0.25]) for p in rest if p.kind is p.POSITIONAL_ONLY]
        keywords = {p.name: 2.0 for p in rest if p.kind is not p.POSITIONAL_ONLY}
        assert isinstance(getattr(x, name)(*operands, **keywords), mg.Tensor)
        with pytest.raises(TypeError):
            getattr(x, name)(*operands, *keywords.values(), 1.0)

    generated = sorted(name for name in METHODS if stubs.generating_op(name))
    assert len(generated) > 100
    run_cases(check, [(name, name) for name in generated])


USER_CODE = """
import minigrad as mg
from minigrad import functional as F

x = mg.zeros(2, 3, requires_grad=True)
w = mg.tensor([[1.0], [2.0], [3.0]])
v = mg.Value(2.0)
y = x.clone()
y += 1
y /= x
y[0] = 2.0
y.data = x


def loss(prediction: mg.Tensor, target: mg.Tensor) -> mg.Tensor:
    return ((prediction - target) ** 2).mean()


for row in x:
    loss(row, row).backward()
"""
REVEALED_TYPES = {
    "x": "Tensor",
    "y": "Tensor",
    "x.sum(0)": "Tensor",
    "x @ w": "Tensor",
    "x[1:, None]": "Tensor",
    "x.T": "Tensor",
    "x.shape": "tuple[int, ...]",
    "x.size(0)": "int",
    "x.size()": "tuple[int, ...]",
    "x.grad": "Tensor | None",
    "x.data": "Tensor",
    "len(x)": "int",
    "float(x.sum())": "float",
    "int(x.sum())": "int",
    "2 * x - 1.0": "Tensor",
    "-abs(x) ** 2": "Tensor",
    "2 ** x": "Tensor",
    "x == 1": "Tensor",
    "1.0 < x": "Tensor",
    "x.max()": "Tensor",
    "x.max(dim=1).indices": "Tensor",
    "x.sort()[0]": "Tensor",
    "x.median(0).values": "Tensor",
    "x.stride()": "tuple[int, ...]",
    "x.nonzero()": "Tensor",
    "x.nonzero(as_tuple=True)": "tuple[Tensor, ...]",
    "x.add_(1.0, alpha=2)": "Tensor",
    "x.clip(min=0.0)": "Tensor",
    "x.index_add_(0, w, x)": "Tensor",
    "x.float().bool().dtype": "DType",
    "x.tolist()": "Any",
    "mg.float32": "DType",
    "mg.bool": "DType",
    "mg.tensor(1.0)": "Tensor",
    "mg.zeros_like(x)": "Tensor",
    "mg.randn(3)": "Tensor",
    "mg.random.rand(3)": "Tensor",
    "mg.conv2d(x, w, padding='same')": "Tensor",
    "mg.where(x > 0, x, 0.0)": "Tensor",
    "F.where(x)": "tuple[Tensor, ...]",
    "mg.relu(x)": "Tensor",
    "mg.relu(v)": "Value",
    "mg.relu(1.0)": "float",
    "mg.relu.formula": "str",
    "mg.gt(v, 1.0)": "bool",
    "mg.maximum(0.0, x)": "Tensor",
    "F.add(1.0, v, alpha=2.0)": "Value",
    "F.elu(x, alpha=0.5)": "Tensor",
    "F.gelu(x, approximate='tanh')": "Tensor",
    "F.mse_loss(x, y)": "Tensor",
}
EXPECTED_ERRORS = {
    "x.sum(dims=0)": 'Unexpected keyword argument "dims" for "sum" of "Methods"; did you mean "dim"?',
    "x.reluu()": '"Tensor" has no attribute "reluu"',
    "x.sin(1.0)": 'Too many arguments for "sin" of "Methods"',
    "x.sin_(alpha=2.0)": 'Unexpected keyword argument "alpha" for "sin_" of "Methods"',
    "x + 'a'": 'Unsupported operand types for + ("Tensor" and "str")',
    "mg.zeross(2)": 'Module has no attribute "zeross"; maybe "zeros"?',
    "mg.zeros(2, dtype='float')": 'Argument "dtype" to "zeros" has incompatible type "str"; expected "DType | None"',
    "mg.relu('a')": 'No overload variant of "__call__" of "Unary" matches argument type "str"',
    "mg.conv2d('image', w)": 'Argument 1 to "conv2d" has incompatible type "str"; expected "Tensor"',
    "F.nothing": 'Module has no attribute "nothing"',
}


@pytest.mark.nightly
@pytest.mark.slow
def test_user_code_type_checks_strictly(tmp_path):
    first = USER_CODE.count("\n") + 1
    user_file = tmp_path / "reader.py"
    lines = [f"reveal_type({line})" for line in REVEALED_TYPES] + list(EXPECTED_ERRORS)
    user_file.write_text(USER_CODE + "\n".join(lines) + "\n", encoding="utf-8")
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--follow-imports=silent",
        "--cache-dir",
        str(tmp_path / "kept"),
    ]
    child = subprocess.run(
        [*command, user_file.name],
        cwd=tmp_path, env={**os.environ, "MYPYPATH": str(ROOT)}, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    messages = re.findall(r"^reader.py:(\d+): (error|note): (.*?)(?:  \[[a-z-]+\])?$", child.stdout, re.MULTILINE)
    kinds = [re.sub(r"minigrad\.[\w.]+\.", "", text[18:-1]) for _, _, text in messages if text.startswith("Revealed")]
    kinds = [re.sub(r"tuple\[.*fallback=(\w+)\]", r"\1", kind) for kind in kinds]  # a named tuple
    assert dict(zip(REVEALED_TYPES, kinds, strict=True)) == REVEALED_TYPES
    errors = {lines[int(line) - first]: text for line, kind, text in messages if kind == "error"}
    assert errors == EXPECTED_ERRORS
