"""Generated Python code that tests whether arguments match the key of a trace.

Flattening arguments into a key takes about ten microseconds, longer than a small step; the generated code takes about
one microsecond.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import count
from typing import Any

from minigrad.compiler.jit.arguments import Arguments, IdentityKey, find_overlaps
from minigrad.core.dtypes import get_default_dtype
from minigrad.core.modes import modes
from minigrad.core.specialise import compile_function
from minigrad.core.storage import get_default_device
from minigrad.core.tensor import Tensor
from minigrad.utils.pytree import TreeSpec

__all__ = ["Check", "compile_check"]

Check = Callable[[tuple[Any, ...], dict[str, Any]], Any]


def compile_check(call: Arguments, inputs: list[float]) -> Check | None:
    """Return a function of (args, kwargs) that returns their tensors if their key equals that of `call`, else None.

    The function stores the arguments' floats in `inputs`. If no code can be generated, return None. This applies to
    containers other than tuples, lists and dicts with string keys, and to rare types of leaves.
    """
    writer = _CheckWriter(call)
    try:
        writer.write(call.spec.children[0], "args")
        writer.write(call.spec.children[1], "kwargs")
    except _Unsupported:
        return None
    return writer.compile(inputs)


class _Unsupported(Exception):
    """Raised for arguments that the generated code does not support."""


class _CheckWriter:
    def __init__(self, call: Arguments) -> None:
        self._leaf_keys, self._leaves, self._names = iter(call.leaf_keys), iter(call.leaves), count()
        positional = call.spec.children[0].children
        self._is_flat = len(call.tensors) == len(call.leaves) == len(positional)  # every argument is a tensor
        self._is_flat = self._is_flat and all(child.type is None for child in positional)
        self._overlaps = find_overlaps(call.tensors)
        self._has_addresses = all(hasattr(x._array, "address") for x in call.tensors)
        self._tensors: list[str] = []
        self._floats: list[str] = []
        self._namespace: dict[str, Any] = {"dtype": get_default_dtype, "device": get_default_device, "modes": modes}
        modes_test = f"modes.grad is {modes.grad} and modes.strict is {modes.strict}"
        self._tests = [
            f"dtype() is {self._constant(get_default_dtype())}",
            f"device() == {get_default_device()!r}",
            modes_test,
        ]

    def _constant(self, x: Any) -> str:
        name = f"c{next(self._names)}"
        self._namespace[name] = x
        return name

    def _bind(self, x: str) -> tuple[str, str]:
        """Return a variable for an expression, and the assignment expression that binds it."""
        name = f"v{next(self._names)}"
        return name, f"({name} := {x})"

    def write(self, spec: TreeSpec, x: str) -> None:
        """Add tests that the value of the expression `x` has the structure `spec`."""
        if spec.type is None:
            self._write_leaf(next(self._leaf_keys), next(self._leaves), x)
        elif spec.type is type(None):
            self._tests.append(f"{x} is None")
        elif spec.type in (tuple, list):
            name, bound = self._bind(x)
            self._tests.append(f"{bound}.__class__ is {spec.type.__name__} and len({name}) == {len(spec.children)}")
            for k, child in enumerate(spec.children):
                self.write(child, f"{name}[{k}]")
        elif spec.type is dict and all(type(key) is str for key in spec.context.keys):
            name, bound = self._bind(x)
            self._tests.append(f"{bound}.__class__ is dict and [*{name}] == {list(spec.context.keys)!r}")
            self._tests.append(f"{{*map(type, {name})}} == {{str}}" if spec.children else "True")
            for key, child in zip(spec.context.keys, spec.children, strict=True):
                self.write(child, f"{name}[{key!r}]")
        else:
            raise _Unsupported

    def _write_leaf(self, kind: Any, leaf: Any, x: str) -> None:
        if isinstance(leaf, Tensor):
            self._write_tensor(kind, leaf, x)
        elif kind is float:
            name, bound = self._bind(x)
            self._floats.append(name)
            self._tests.append(f"{bound}.__class__ is float")
        elif isinstance(kind, IdentityKey):
            constant = self._constant(leaf)
            self._tests.append(f"{x} is {constant} and {constant}.__class__ is {self._constant(kind.target_type)}")
        elif kind[0] is bool:
            self._tests.append(f"{x} is {leaf}")
        elif kind[0] in (int, str):
            name, bound = self._bind(x)
            self._tests.append(f"{bound}.__class__ is {kind[0].__name__} and {name} == {leaf!r}")
        else:
            raise _Unsupported

    def _write_tensor(self, kind: Any, leaf: Tensor, x: str) -> None:
        if kind[0] == "again":
            self._tests.append(f"{x} is {self._tensors[kind[1]]}")
            return
        array = leaf._array
        class_name, (name, bound), (array_name, array_binding) = (
            self._constant(kind[0]),
            self._bind(x),
            self._bind("{}._array"),
        )
        self._tests.append(f"{bound}.__class__ is {class_name}")
        self._tests.append(f"({name}._step is None and {name}._base is None or {name}.grad_fn is None)")
        self._tests.append(f"{name}._requires_grad is {leaf._requires_grad}")
        self._tests.append(f"{array_binding.format(name)}.__class__ is {self._constant(type(array))}")
        self._tests.append(
            f"{array_name}.shape == {array.shape!r} and {array_name}.dtype == {self._constant(array.dtype)}"
        )
        contiguous_test = f"{array_name}.address or " if array.flags.c_contiguous and self._has_addresses else ""
        self._tests.append(f"({contiguous_test}{array_name}.strides == {array.strides!r})")
        self._tensors.append(name)

    def compile(self, inputs: list[float]) -> Check:
        arrays = [f"{x}._array" for x in self._tensors]
        if len(arrays) > 1:
            addresses = [f"{x}.address" for x in arrays]
            overlap_test = f"overlaps(({', '.join(self._tensors)})) == {self._overlaps!r}"
            if self._has_addresses and self._overlaps == ():
                overlap_test = (
                    f"(all(({', '.join(addresses)})) and len({{{', '.join(addresses)}}}) == {len(addresses)} or "
                    f"{overlap_test})"
                )
            self._tests.append(overlap_test)
        self._namespace |= {"overlaps": find_overlaps, "inputs": inputs}
        floats = f"    inputs[:] = {''.join([f'{x}, ' for x in self._floats])}\n" if self._floats else ""
        result = "args" if self._is_flat else f"({''.join([f'{x}, ' for x in self._tensors])})"
        tests = " and ".join(self._tests)
        source = f"def check(args, kwargs):\n    if not ({tests}):\n        return None\n{floats}    return {result}\n"
        return compile_function("check", source, self._namespace)
