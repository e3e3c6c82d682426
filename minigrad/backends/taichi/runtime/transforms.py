"""Source transformations before compilation: truncating division on CPUs, and buffers with offsets on GPUs.

On a CPU an array is passed as an address. On a GPU several arrays share a buffer, which has no address to add an offset
to. Each array of a kernel is therefore followed by an int, the offset of its first element, which is added to every
index.
"""

from __future__ import annotations

import ast
from typing import NamedTuple, TypeGuard

from minigrad.backends.taichi.runtime.locking import parse
from minigrad.backends.taichi.runtime.vector_functions import scalar_function

__all__ = ["EXACT_DIVISION_KERNELS", "TransformedSource", "add_offsets", "transform_for_cpu"]

INACCURATE_FUNCTIONS = ("log",)  # functions that are inaccurate on a GPU without float64
EXACT_DIVISION_KERNELS = ("div_kernel", "floor_divide_kernel")  # kernels with correctly rounded quotients

# Kernels whose operands of // and % may be negative.
FLOOR_DIVISION_KERNELS = "floor_divide_kernel", "remainder_kernel"


class _TruncatingDivision(ast.NodeTransformer):
    """Replace `//` and `%` by truncating division, which is one instruction. With Python's semantics, which depend on
    signs, strided loops took up to seven times as long. Indices and sizes are never negative."""

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        name = {ast.FloorDiv: "raw_div", ast.Mod: "raw_mod"}.get(node.op.__class__)
        if name is None:
            return node
        return ast.Call(ast.Attribute(ast.Name("ti", ast.Load()), name, ast.Load()), [node.left, node.right], [])


def _truncate_divisions(tree: ast.Module) -> None:
    for node in tree.body:
        if _is_kernel(node) and node.name not in FLOOR_DIVISION_KERNELS:
            node.body = [_TruncatingDivision().visit(line) for line in node.body]


def transform_for_cpu(source: str) -> str:
    """Return `source` with truncating integer division, for a CPU.

    >>> source = "@ti.kernel\\ndef k(y_: ti.types.ndarray(), n: ti.i32):\\n    y_[n // 2] = n % 2\\n"
    >>> print(transform_for_cpu(source), end="")
    @ti.kernel
    def k(y_: ti.types.ndarray(), n: ti.i32):
        y_[ti.raw_div(n, 2)] = ti.raw_mod(n, 2)
    """
    if "//" not in source and "%" not in source:
        return source
    tree = parse(source)
    _truncate_divisions(tree)
    return ast.unparse(tree) + "\n"


class TransformedSource(NamedTuple):
    """Source transformed for a GPU."""

    source: str
    element_types: tuple[str, ...]
    """The element type of each array, such as ``"f32"``, or ``"f32*16"`` for vectors."""
    is_written: tuple[bool, ...]
    """Whether the kernel writes to each array."""


def add_offsets(source: str, lacks_float64: bool, cuda: bool = False) -> TransformedSource:
    """Return `source` with an int offset after each array, and with float32 in place of float64 if `lacks_float64`.

    For `cuda`, loops become grid-stride loops with a fixed number of threads, since Taichi launches another kernel to
    compute a loop bound that is an argument. Kernels with thread blocks set their own number of threads. Float32
    quotients in EXACT_DIVISION_KERNELS are computed in float64, since Taichi's quotients are off by one ulp, and 0 for
    divisors above 2**126. Multiplying by the rounded reciprocal yields the correct quotient after rounding, since no
    quotient of 24-bit significands is nearer than 2**-49 to a rounding boundary of float32.

    >>> kernel = "@ti.kernel\\ndef k(y_: ti.types.ndarray(dtype=ti.f32, ndim=1), n: ti.i32):\\n    y_[n] = 1.0\\n"
    >>> print(add_offsets(kernel, False).source, end="")
    @ti.kernel
    def k(y_: ti.types.ndarray(dtype=ti.f32, ndim=1), y_base: ti.i32, n: ti.i32):
        y_[y_base + n] = 1.0
    """
    inaccurate = [name for name in INACCURATE_FUNCTIONS if lacks_float64 and f"ti.{name}(" in source]
    tree = parse("".join(map(scalar_function, inaccurate)) + source)
    _truncate_divisions(tree)
    functions: dict[str, list[bool | None]] = {}
    is_exact = (
        cuda
        and "ti.f64" not in source
        and any(_is_kernel(x) and x.name in EXACT_DIVISION_KERNELS for x in ast.walk(tree))
    )
    transformed = TransformedSource(source, (), ())
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            function = _OffsetTransformer(node, functions, lacks_float64, is_exact)
            node.args.args = function.arguments
            node.body = [function.visit(line) for line in node.body]
            functions[node.name] = [
                name in function.written if name in function.arrays else None for name in function.names
            ]
            if _is_kernel(node):
                if cuda and "block_dim" not in source:
                    node.body = [_grid_stride_loop(line) for line in node.body]
                transformed = TransformedSource(
                    "", tuple(function.arrays.values()), tuple(x in function.written for x in function.arrays)
                )
    return transformed._replace(source=ast.unparse(tree) + "\n")


def _is_kernel(node: ast.AST) -> TypeGuard[ast.FunctionDef]:
    return isinstance(node, ast.FunctionDef) and any(ast.unparse(x) == "ti.kernel" for x in node.decorator_list)


THREADS = 1 << 20
_GRID_STRIDE_LOOP = f"""
for {{i}}_thread in range({THREADS}):
    {{i}} = {{i}}_thread
    {{i}}_end = {{end}}
    while {{i}} < {{i}}_end:
        {{i}} = ti.select({{i}} < {{i}}_end - {THREADS}, {{i}} + {THREADS}, {{i}}_end)
"""  # the counter stops at the end, so that it does not overflow


def _grid_stride_loop(line: ast.stmt) -> ast.stmt:
    if not (isinstance(line, ast.For) and isinstance(line.target, ast.Name) and isinstance(line.iter, ast.Call)):
        return line
    ends = line.iter.args
    if len(ends) != 1 or isinstance(ends[0], ast.Constant):
        return line
    loop = parse(_GRID_STRIDE_LOOP.format(i=line.target.id, end=ast.unparse(ends[0]))).body[0]
    assert isinstance(loop, ast.For)
    inner = loop.body[-1]
    assert isinstance(inner, ast.While)
    inner.body = [*line.body, *inner.body]
    return loop


class _OffsetTransformer(ast.NodeTransformer):
    def __init__(
        self, node: ast.FunctionDef, functions: dict[str, list[bool | None]], narrow: bool, exact: bool
    ) -> None:
        self.functions, self.lacks_float64, self.is_exact = functions, narrow, exact
        self.names = [x.arg for x in node.args.args]
        self.arrays: dict[str, str] = {}
        self.written: set[str] = set()
        self.arguments: list[ast.arg] = []
        for argument in node.args.args:
            if argument.annotation is not None:
                argument.annotation = self.visit(argument.annotation)
            self.arguments.append(argument)
            annotation_source = ast.unparse(argument.annotation) if argument.annotation else ""
            if "ndarray" in annotation_source or annotation_source == "ti.template()":
                self.arrays[argument.arg] = _element_type(argument.annotation)
                annotation = parse("ti.i32", mode="eval").body if "ndarray" in annotation_source else None
                self.arguments.append(ast.arg(_offset_name(argument.arg), annotation))

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if (
            self.lacks_float64
            and node.attr in INACCURATE_FUNCTIONS
            and isinstance(node.value, ast.Name)
            and node.value.id == "ti"
        ):
            return ast.Name(f"{node.attr}_scalar", ast.Load())
        if self.lacks_float64 and node.attr == "f64" and isinstance(node.value, ast.Name) and node.value.id == "ti":
            node.attr = "f32"
        return self.generic_visit(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        if not (self.is_exact and isinstance(node.op, ast.Div)):
            return node
        numerator, denominator = ast.unparse(node.left), ast.unparse(node.right)
        quotient: ast.AST = parse(f"ti.f32(ti.f64({numerator}) * (1.0 / ti.f64({denominator})))", mode="eval").body
        return quotient

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        if isinstance(node.value, ast.Name) and node.value.id in self.arrays:
            name = node.value.id
            if isinstance(node.ctx, ast.Store):
                self.written.add(name)
            index = self.visit(node.slice)
            node.slice = ast.BinOp(ast.Name(_offset_name(name), ast.Load()), ast.Add(), index)
            return node
        return self.generic_visit(node)

    def visit_Call(self, node: ast.Call) -> ast.AST:
        arguments: list[ast.expr] = []
        writes_arrays = self.functions.get(node.func.id, []) if isinstance(node.func, ast.Name) else []
        for k, x in enumerate(node.args):
            arguments.append(self.visit(x))
            if isinstance(x, ast.Name) and x.id in self.arrays:
                arguments.append(ast.Name(_offset_name(x.id), ast.Load()))
                if writes_arrays[k]:
                    self.written.add(x.id)
        node.args = arguments
        node.func = self.visit(node.func)
        node.keywords = [self.visit(k) for k in node.keywords]
        return node


def _offset_name(name: str) -> str:
    return f"{name.rstrip('_')}_base"


def _element_type(annotation: ast.expr | None) -> str:
    if not isinstance(annotation, ast.Call):
        return ""
    dtype = next((ast.unparse(k.value) for k in annotation.keywords if k.arg == "dtype"), "")
    if dtype.startswith("ti.types.vector("):
        count, _, kind = dtype.removeprefix("ti.types.vector(").rstrip(")").partition(", ")
        return f"{kind.removeprefix('ti.')}*{count}"
    return dtype.removeprefix("ti.")
