"""Write `minigrad/pytorch/names.txt` again: PyTorch's public names, from the PyTorch that is installed.

    python tests/helpers/torch_names.py

A name is public here if it begins with a letter and is no module or type that the family imports for itself; of
`torch`, what its compilers and its other backends keep there for themselves is left out, too.
"""

import inspect
import types
from importlib import import_module
from pathlib import Path

from lazy import LazyModule

torch = LazyModule("torch")
FILE = Path(__file__).parents[2] / "minigrad" / "pytorch" / "names.txt"
FAMILIES = (
    "torch", "torch.Tensor", "torch.nn", "torch.nn.functional", "torch.nn.init", "torch.nn.utils", "torch.nn.utils.rnn",
    "torch.optim", "torch.optim.lr_scheduler", "torch.utils.data", "torch.autograd", "torch.cuda", "torch.linalg",
)  # fmt: skip
# Of `torch`: what its compilers, its other backends and its types of bits keep there for themselves.
INNER = (
    "batch_norm_", "cudnn_", "fbgemm_", "fused_", "import_ir", "miopen_", "mkldnn_", "parse_", "q_", "quantize", "sym_",
    "autocast_", "set_autocast", "get_autocast", "is_autocast", "native_", "fake_quantize", "choose_", "quantized_",
    "unify_", "merge_", "has_", "bits", "float4", "float8", "uint1", "uint2", "uint3", "uint4", "uint5", "uint6",
    "uint7", "int1", "int2", "int3", "int4", "int5", "int6", "int7", "quint", "qint", "sparse_", "rnn_", "gru", "lstm",
    "profiler_",
)  # fmt: skip
KEPT = {"uint16", "uint32", "uint64", "int16", "int32", "int64", "int8", "sparse_coo_tensor", "quantize_per_tensor"}
ROOMS = {
    "amp", "autograd", "backends", "compiler", "cuda", "distributed", "distributions", "export", "fft", "func", "fx",
    "hub", "jit", "linalg", "masked", "mps", "multiprocessing", "nested", "nn", "optim", "profiler",
    "quantization", "random", "signal", "sparse", "special", "testing", "utils", "xpu",
}  # fmt: skip


def is_public(family: str, name: str, thing: object) -> bool:
    if name.startswith("_") or name.endswith("_copy"):
        return False
    if isinstance(thing, types.ModuleType):
        return family == "torch" and name in ROOMS
    home = getattr(thing, "__module__", None) or ""
    if family == "torch":
        if name.startswith(INNER) and name not in KEPT:
            return False
        if isinstance(thing, type) and not issubclass(thing, torch.Tensor) and not home.startswith("torch.autograd"):
            return name in KNOWN
        return not name.isupper() and name not in ("PRIVATE_OPS", "classproperty")
    if family == "torch.nn.functional":
        return (
            callable(thing)
            and not inspect.isclass(thing)
            and not name.startswith(("has_torch", "handle_torch", "Optional"))
        )
    if family == "torch.cuda":
        return name in torch.cuda.__all__ and not name.endswith(("Storage", "Tensor"))
    if family == "torch.autograd":
        return (name in torch.autograd.__all__ and name[0].islower()) or name == "Function"
    return not home.startswith("typing")


KNOWN = {"Generator", "Size", "device", "dtype", "finfo", "iinfo", "memory_format", "layout", "Stream", "Event"}


def names(family: str) -> list[str]:
    place = torch.Tensor if family == "torch.Tensor" else import_module(family)
    listed = (
        dir(place) if family in ("torch", "torch.Tensor", "torch.nn", "torch.nn.functional", "torch.linalg") else None
    )
    listed = listed or getattr(place, "__all__", dir(place))
    public = sorted({name for name in listed if is_public(family, name, getattr(place, name, None))})
    return [name + parameters(getattr(place, name, None)) for name in public]


def parameters(thing: object) -> str:
    """What a function or class takes, as "(input,dim)", where Python knows it by name."""
    try:
        taken = inspect.signature(thing).parameters.values()
    except (TypeError, ValueError):
        return ""
    named = [p.name for p in taken if p.kind in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY) and p.name[0] != "_"]
    return f"({','.join(named)})" if named and named[0] != "self" else ""


if __name__ == "__main__":
    version = torch.__version__.split("+")[0]
    lines = [f"# PyTorch {version}: public names, and what they take. By tests/helpers/torch_names.py."]
    lines += [f"{family}: {' '.join(names(family))}" for family in FAMILIES]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(*(f"{len(names(family)):5} {family}" for family in FAMILIES), sep="\n")
