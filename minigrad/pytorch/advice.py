"""Notes on names that differ from PyTorch, and replacements for missing names."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Any

__all__ = ["DIFFERENCES", "UNSUPPORTED_METHODS", "UNSUPPORTED_OPTIONS", "missing_name_message", "replacement_for"]

# Methods that exist only to raise an error with a replacement.
UNSUPPORTED_METHODS = {"torch.Tensor.half", "torch.Tensor.bfloat16"}

# Parameters for which any value other than the default raises ArgumentError.
_OPTIMIZERS = ("Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "SGD")
UNSUPPORTED_OPTIONS = {
    "torch.nn.Embedding": ("sparse",),
    "torch.nn.EmbeddingBag": ("sparse",),
    "torch.nn.functional.embedding": ("sparse",),
    "torch.nn.functional.embedding_bag": ("sparse",),
    **{f"torch.optim.{name}": ("differentiable",) for name in _OPTIMIZERS},
}

# Names whose meaning differs from PyTorch's documentation.
DIFFERENCES = {
    "torch.Event": "an event of a backward pass, not of a GPU stream",
    "torch.Generator": "another random stream: a seed gives other values than in PyTorch, the same on each device",
    "torch.Size": "a plain tuple, without numel()",
    "torch.Tensor": "the class cannot be called: write tensor(data) or empty(sizes)",
    "torch.Tensor.data": (
        "assigning to it copies the values, and writes through it count as in-place operations: backward() raises "
        "GraphError if a gradient needs the old values, where PyTorch silently computes another gradient"
    ),
    "torch.Tensor.storage": "a property",
    "torch.Tensor.type": 'the names are those of minigrad, such as "minigrad.float32"',
    "torch.backends": 'only cudnn and mps, whose flags have no effect; the GPU of a Mac is the device "metal"',
    "torch.cuda": "one device; without one, seeding and synchronising do nothing",
    "torch.distributed": "only fit, which trains in several processes with Ray",
    "torch.cuda.manual_seed": "seeds the one generator that all devices share, if there is a GPU",
    "torch.cuda.manual_seed_all": "seeds the one generator that all devices share, if there is a GPU",
    "torch.compiler": "Tape and mg.jit, and none of PyTorch's names: there is nothing to set",
    "torch.jit": "a function that traces a training step; no TorchScript",
    "torch.distributions": "no gamma, beta, Poisson and similar distributions, and no transforms",
    "torch.Tensor.det": "the gradient at a singular matrix is its cofactors; in PyTorch it is 0 without create_graph",
    "torch.det": "the gradient at a singular matrix is its cofactors; in PyTorch it is 0 without create_graph",
    "torch.linalg": "no eigenvalues, no factorisation but Cholesky, and singular values without vectors",
    "torch.linalg.det": "the gradient at a singular matrix is its cofactors; in PyTorch it is 0 without create_graph",
    "torch.load": "reads safetensors and PyTorch's .pt, and executes no code from them, whatever weights_only is",
    "torch.save": "writes safetensors: tensors, numbers and strings in dicts, lists and tuples, no other objects",
    "torch.manual_seed": "other values than PyTorch's, the same on each device",
    "torch.sort": "always stable",
    "torch.autograd.Function": "without vmap, jvp, setup_context, mark_dirty and save_for_forward",
    "torch.repeat_interleave": "without the form repeat_interleave(repeats)",
    "torch.optim.Muon": "computes in float32, where PyTorch rounds to bfloat16",
    "torch.utils.data.DataLoader": "workers are spawned; device= keeps a data set on a device",
}

# Maps patterns of qualified names to replacements. The first match is used.
REPLACEMENTS = {
    "torch.compile": "remove the line; mg.jit compiles a training step",
    "torch.export torch.onnx": "models cannot be exported: save their state_dict()",
    "torch.fx": "mg.record() and the viewer show the graph of a call",
    "torch.func": "mg.autograd.functional has vjp, jvp, jacobian, hessian",
    "torch.vmap": "write the batch as a dimension",
    "torch.fft": "there are no Fourier transforms and no complex dtypes",
    "torch.linalg.*_ex": "the function without _ex, which raises LinAlgError",
    "torch.linalg.lstsq": "with independent columns: L = cholesky(A.mT @ A), then cholesky_solve(A.mT @ B, L)",
    "torch.linalg.*": "products, solve, inv, det, cholesky, svdvals are available; else use np.linalg on x.numpy()",
    "torch.special": "available functions are in mg itself",
    "torch.distributed.*": "mg.distributed.fit trains in several processes with Ray",
    "torch.multiprocessing": "computation is in one process; DataLoader(num_workers=…) has workers",
    "torch.nn.parallel torch.nn.DataParallel": "there is one device: remove it, and use the module itself",
    "torch.nn.SyncBatchNorm": "there is one device: nn.BatchNorm2d",
    "torch.utils.data.Distributed*": "there is one process: shuffle=True",
    "torch.amp torch.*autocast* torch.GradScaler torch.cuda.amp": (
        "dtypes are float32 and float64: remove autocast and GradScaler"
    ),
    "torch.half torch.Tensor.half torch.Tensor.bfloat16": "float32 is the smallest float dtype: remove it",
    "torch.float16 torch.bfloat16": "float32 is the smallest float dtype",
    "torch.complex*": "there are no complex dtypes: store both parts in a dimension of size 2",
    "torch.cdouble torch.cfloat torch.chalf torch.stft": "there are no complex dtypes",
    "torch.int8": "use mg.uint8, mg.int32 or mg.int64",
    "torch.*int16 torch.short": "mg.int32",
    "torch.uint32 torch.uint64": "mg.int64",
    "torch.FloatTensor": "mg.tensor(data, dtype=mg.float32), or mg.empty(sizes)",
    "torch.DoubleTensor": "mg.tensor(data, dtype=mg.float64), or mg.empty(sizes, dtype=mg.float64)",
    "torch.LongTensor": "mg.tensor(data, dtype=mg.int64)",
    "torch.IntTensor": "mg.tensor(data, dtype=mg.int32)",
    "torch.BoolTensor": "mg.tensor(data, dtype=mg.bool)",
    "torch.ByteTensor": "mg.tensor(data, dtype=mg.uint8)",
    "torch.HalfTensor": "mg.tensor(data): float32 is the smallest float dtype",
    "torch.cuda.*Tensor": 'mg.tensor(data, device="cuda")',
    "torch.accelerator": 'mg.cuda.is_available(), mg.cuda.synchronize(); x.to("cuda") moves a tensor',
    "torch.set_default_tensor_type": "mg.set_default_dtype(mg.float64), mg.set_default_device(…)",
    "torch.set_float32_matmul_precision": "products are always computed in float32: remove it",
    "torch.get_float32_matmul_precision": "products are always computed in float32",
    "torch.use_deterministic_algorithms": "every computation is deterministic: remove it",
    "torch.are_deterministic_algorithms_enabled": "every computation is deterministic",
    "torch.set_printoptions": 'format elements as strings: f"{x.item():.3f}"',
    "torch.channels_last* torch.*_format": "images are contiguous as (N, C, H, W): remove memory_format",
    "torch.memory_format": "images are contiguous as (N, C, H, W): remove it",
    "torch.profiler torch.autograd.profiler": "mg.profile()",
    "torch.quantization": "dtypes are float32 and float64",
    "torch.hub": "build the model, and load_state_dict(mg.load(file))",
    "torch.mps": 'the device "metal"',
    "torch.xpu": "there is no such device",
    "torch.sparse* torch.Tensor.*sparse*": "tensors are dense",
    "torch.layout": "tensors are dense: remove layout=",
    "torch.Tensor.resize*": "x = x.new_empty(sizes)",
    "torch.Tensor.share_memory_": "computation is in one process: remove it",
    "torch.Tensor.pin_memory": "elements are copied to a GPU when they are first used: remove it",
    "torch.Tensor.is_cpu": 'x.device.type == "cpu"',
    "torch.Tensor.get_device": "x.device",
    "torch.Tensor.short torch.Tensor.char": "x.int()",
    "torch.svd*": "mg.linalg.svdvals(x); for the vectors use np.linalg.svd on x.numpy()",
    "torch.nn.*3d torch.nn.functional.*3d torch.max_pool3d torch.conv*3d": (
        "images have at most two spatial dimensions"
    ),
    "torch.nn.Lazy*": "pass the sizes: nn.Linear(in_features, out_features)",
    "torch.nn.Uninitialized*": "pass the sizes",
    "torch.embedding_bag": "F.embedding_bag",
    "torch.nn.Buffer": "self.register_buffer(name, tensor)",
    "torch.nn.NLLLoss2d": "nn.NLLLoss",
    "torch.nn.functional.upsample*": "F.interpolate",
    "torch.nn.functional.*_with_indices": "F.max_pool2d(…, return_indices=True)",
    "torch.nn.functional.multi_head_attention_forward": "nn.MultiheadAttention, or F.scaled_dot_product_attention",
    "torch.nn.utils.clip_grad_norm": "clip_grad_norm_",
    "torch.nn.init.*[!_]": "the name with a trailing _",
    "torch.optim.LBFGS": "optim.Adam, or SGD",
    "torch.optim.SparseAdam": "optim.Adam: gradients are dense",
    "torch.cuda.*memory*": "mg.memory()",
    "torch.cuda.*stream* torch.cuda.Stream*": "a device executes calls in order",
    "torch.cuda.Event": "mg.synchronize(), then time.perf_counter()",
    "torch.autograd.Variable torch.autograd.variable": "use a tensor: mg.tensor(…, requires_grad=True)",
    "torch.autograd.*gradcheck": "mg.gradcheck and mg.gradgradcheck",
    "torch.autograd.set_detect_anomaly": "with mg.detect_anomaly(): around the code to check",
    "torch.utils.tensorboard": "append the values to a list, and plot it",
    "torch.utils.checkpoint": "activations are never recomputed: call the function itself",
}


def replacement_for(family: str, name: str) -> str:
    """Return advice for the missing PyTorch name ``family.name``; "" if no replacement is known."""
    qualified_name = f"{family}.{name}"
    for path in _enclosing_names(qualified_name):
        for patterns, replacement in REPLACEMENTS.items():
            if any(fnmatchcase(path, pattern) for pattern in patterns.split()):
                return replacement
    if family == "torch" and name.endswith("_") and hasattr(_minigrad_attribute("Tensor"), name):
        return f"use the method x.{name}(…)"
    if family == "torch.nn.functional" and name.endswith("_") and hasattr(_minigrad_attribute("functional"), name[:-1]):
        return f"F.{name[:-1]}(x, inplace=True)"
    return ""


def _enclosing_names(path: str) -> Iterator[str]:
    """Yield a qualified name and those of its parent modules, innermost first, except `torch`."""
    while "." in path:
        yield path
        path = path.rpartition(".")[0]


def _minigrad_attribute(name: str) -> Any:
    return getattr(import_module("minigrad"), name, None)  # None without NumPy


def missing_name_message(family: str, name: str, always: bool = False) -> str:
    """Return the second line of the error for a missing name; "" if no replacement is known and `always` is False."""
    replacement = DIFFERENCES.get(f"{family}.{name}") or replacement_for(family, name)
    if replacement or always:
        return f".\n  PyTorch's {family}.{name} is not available{replacement and ': '}{replacement}."
    return ""
