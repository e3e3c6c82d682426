"""What differs from PyTorch under the same name, and what to write where a name is not here."""

from __future__ import annotations

from collections.abc import Iterator
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Any

__all__ = ["DIFFERS", "INERT", "REFUSED", "advice", "missing"]

# Methods that are here only to say, in an error, what to write instead.
REFUSED = {"torch.Tensor.half", "torch.Tensor.bfloat16"}

# Parameters that are here only to be refused: whatever changes what is computed is an ArgumentError.
_OPTIMIZERS = ("Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "SGD")
INERT = {
    "torch.nn.Embedding": ("sparse",),
    "torch.nn.EmbeddingBag": ("sparse",),
    "torch.nn.functional.embedding": ("sparse",),
    "torch.nn.functional.embedding_bag": ("sparse",),
    **{f"torch.optim.{name}": ("differentiable",) for name in _OPTIMIZERS},
}

# The name is here, and means something else in a way that a reader of PyTorch's pages may meet.
DIFFERS = {
    "torch.Event": "an event of a backward pass, not one of a GPU's stream",
    "torch.Generator": "another stream of numbers: seeds give other numbers than in PyTorch, the same on each device",
    "torch.Size": "a plain tuple, without numel()",
    "torch.Tensor": "makes nothing when called: write tensor(data) or empty(sizes)",
    "torch.Tensor.data": (
        "assigning to it copies the values, and every write by way of it is noticed: backward() raises GraphError "
        "where a gradient needs the old values, of which PyTorch makes another gradient"
    ),
    "torch.Tensor.storage": "a property",
    "torch.Tensor.type": 'names are those of minigrad, as "minigrad.float32"',
    "torch.backends": 'cudnn and mps alone, whose switches change nothing; the Mac\'s GPU is the device "metal"',
    "torch.cuda": "one device; where there is none, seeds and waiting do nothing",
    "torch.distributed": "fit alone, which trains in several processes by Ray",
    "torch.cuda.manual_seed": "seeds the one generator that all devices share, if there is a GPU",
    "torch.cuda.manual_seed_all": "seeds the one generator that all devices share, if there is a GPU",
    "torch.compiler": "Tape and mg.jit, and none of PyTorch's names: there is nothing to set",
    "torch.jit": "a function, which records a step of training; nothing of TorchScript",
    "torch.distributions": "no gamma, beta, Poisson and the like, and no transforms",
    "torch.Tensor.det": "its slope at a singular matrix is its cofactors; PyTorch's is 0, but with create_graph",
    "torch.det": "its slope at a singular matrix is its cofactors; PyTorch's is 0, but with create_graph",
    "torch.linalg": "no eigenvalues, and no factors but Cholesky's; of singular values no vectors",
    "torch.linalg.det": "its slope at a singular matrix is its cofactors; PyTorch's is 0, but with create_graph",
    "torch.load": "reads safetensors and PyTorch's .pt, and runs nothing of them, whatever weights_only says",
    "torch.save": "writes safetensors: tensors, numbers and texts in dicts, lists and tuples, no other objects",
    "torch.manual_seed": "other numbers than PyTorch's, the same on each device",
    "torch.sort": "is always stable",
    "torch.autograd.Function": "without vmap, jvp, setup_context, mark_dirty and save_for_forward",
    "torch.repeat_interleave": "not of counts alone, repeat_interleave(repeats)",
    "torch.optim.Muon": "computes in float32, where PyTorch rounds to bfloat16",
    "torch.utils.data.DataLoader": "workers are spawned; device= keeps a data set on a device",
}

# Patterns of qualified names, one or several, of which the first that fits counts; what to write instead.
INSTEAD = {
    "torch.compile": "leave the line out; mg.jit records a whole step of training",
    "torch.export torch.onnx": "models are not exported: save their state_dict()",
    "torch.fx": "mg.record() and the viewer show the graph of a call",
    "torch.func": "mg.autograd.functional has vjp, jvp, jacobian, hessian",
    "torch.vmap": "write the batch as a dimension",
    "torch.fft": "there are no Fourier transforms, and no complex numbers",
    "torch.linalg.*_ex": "the same without _ex: it raises LinAlgError where there is none",
    "torch.linalg.lstsq": "with independent columns: L = cholesky(A.mT @ A), then cholesky_solve(A.mT @ B, L)",
    "torch.linalg.*": "products, solve, inv, det, cholesky, svdvals are here; else take NumPy: np.linalg on x.numpy()",
    "torch.special": "the functions that are here are in mg itself",
    "torch.distributed.*": "mg.distributed.fit trains in several processes, by Ray",
    "torch.multiprocessing": "one process computes; DataLoader(num_workers=…) has workers",
    "torch.nn.parallel torch.nn.DataParallel": "one device computes: leave it out, and use the module itself",
    "torch.nn.SyncBatchNorm": "one device computes: nn.BatchNorm2d",
    "torch.utils.data.Distributed*": "one process computes: shuffle=True",
    "torch.amp torch.*autocast* torch.GradScaler torch.cuda.amp": (
        "numbers are float32 or float64: leave autocast and GradScaler out"
    ),
    "torch.half torch.Tensor.half torch.Tensor.bfloat16": "float32 is the smallest float: leave it out",
    "torch.float16 torch.bfloat16": "float32 is the smallest float",
    "torch.complex*": "there are no complex numbers: keep the two parts in a dimension of size 2",
    "torch.cdouble torch.cfloat torch.chalf torch.stft": "there are no complex numbers",
    "torch.int8": "mg.uint8, mg.int32 and mg.int64 are here",
    "torch.*int16 torch.short": "mg.int32",
    "torch.uint32 torch.uint64": "mg.int64",
    "torch.FloatTensor": "mg.tensor(data, dtype=mg.float32), or mg.empty(sizes)",
    "torch.DoubleTensor": "mg.tensor(data, dtype=mg.float64), or mg.empty(sizes, dtype=mg.float64)",
    "torch.LongTensor": "mg.tensor(data, dtype=mg.int64)",
    "torch.IntTensor": "mg.tensor(data, dtype=mg.int32)",
    "torch.BoolTensor": "mg.tensor(data, dtype=mg.bool)",
    "torch.ByteTensor": "mg.tensor(data, dtype=mg.uint8)",
    "torch.HalfTensor": "mg.tensor(data): float32 is the smallest float",
    "torch.cuda.*Tensor": 'mg.tensor(data, device="cuda")',
    "torch.accelerator": 'mg.cuda.is_available(), mg.cuda.synchronize(); tensors go there by x.to("cuda")',
    "torch.set_default_tensor_type": "mg.set_default_dtype(mg.float64), mg.set_default_device(…)",
    "torch.set_float32_matmul_precision": "products are of float32, always: leave it out",
    "torch.get_float32_matmul_precision": "products are of float32, always",
    "torch.use_deterministic_algorithms": "every computation is deterministic: leave it out",
    "torch.are_deterministic_algorithms_enabled": "every computation is deterministic",
    "torch.set_printoptions": 'format numbers as texts: f"{x.item():.3f}"',
    "torch.channels_last* torch.*_format": "images are (N, C, H, W) in memory: leave memory_format out",
    "torch.memory_format": "images are (N, C, H, W) in memory: leave it out",
    "torch.profiler torch.autograd.profiler": "mg.profile()",
    "torch.quantization": "numbers are float32 or float64",
    "torch.hub": "build the model, and load_state_dict(mg.load(file))",
    "torch.mps": 'the device "metal"',
    "torch.xpu": "there is no such device",
    "torch.sparse* torch.Tensor.*sparse*": "tensors are dense",
    "torch.layout": "tensors are dense: leave layout= out",
    "torch.Tensor.resize*": "x = x.new_empty(sizes)",
    "torch.Tensor.share_memory_": "one process computes: leave it out",
    "torch.Tensor.pin_memory": "numbers go to a GPU when they are first used: leave it out",
    "torch.Tensor.is_cpu": 'x.device.type == "cpu"',
    "torch.Tensor.get_device": "x.device",
    "torch.Tensor.short torch.Tensor.char": "x.int()",
    "torch.svd*": "mg.linalg.svdvals(x); for the vectors NumPy's np.linalg.svd of x.numpy()",
    "torch.nn.*3d torch.nn.functional.*3d torch.max_pool3d torch.conv*3d": (
        "images of two dimensions are the most there is"
    ),
    "torch.nn.Lazy*": "give the sizes: nn.Linear(in_features, out_features)",
    "torch.nn.Uninitialized*": "give the sizes",
    "torch.embedding_bag": "F.embedding_bag",
    "torch.nn.Buffer": "self.register_buffer(name, tensor)",
    "torch.nn.NLLLoss2d": "nn.NLLLoss",
    "torch.nn.functional.upsample*": "F.interpolate",
    "torch.nn.functional.*_with_indices": "F.max_pool2d(…, return_indices=True)",
    "torch.nn.functional.multi_head_attention_forward": "nn.MultiheadAttention, or F.scaled_dot_product_attention",
    "torch.nn.utils.clip_grad_norm": "clip_grad_norm_",
    "torch.nn.init.*[!_]": "the same with _ at its end",
    "torch.optim.LBFGS": "optim.Adam, or SGD",
    "torch.optim.SparseAdam": "optim.Adam: gradients are dense",
    "torch.cuda.*memory*": "mg.memory()",
    "torch.cuda.*stream* torch.cuda.Stream*": "a device computes in the order in which it is asked",
    "torch.cuda.Event": "mg.synchronize(), then time.perf_counter()",
    "torch.autograd.Variable torch.autograd.variable": "a tensor is all there is: mg.tensor(…, requires_grad=True)",
    "torch.autograd.*gradcheck": "mg.gradcheck and mg.gradgradcheck",
    "torch.autograd.set_detect_anomaly": "with mg.detect_anomaly(): around what is to be looked at",
    "torch.utils.tensorboard": "write the numbers into a list, and plot it",
    "torch.utils.checkpoint": "all is kept: call the function itself",
}


def advice(family: str, name: str) -> str:
    """What to write where ``family.name`` of PyTorch is not here; nothing if there is nothing to say."""
    asked = f"{family}.{name}"
    for path in _upwards(asked):
        for patterns, words in INSTEAD.items():
            if any(fnmatchcase(path, pattern) for pattern in patterns.split()):
                return words
    if family == "torch" and name.endswith("_") and hasattr(_named("Tensor"), name):
        return f"the method: x.{name}(…)"
    if family == "torch.nn.functional" and name.endswith("_") and hasattr(_named("functional"), name[:-1]):
        return f"F.{name[:-1]}(x, inplace=True)"
    return ""


def _upwards(path: str) -> Iterator[str]:
    """A name and the modules that it is in, from the innermost on, below `torch` itself."""
    while "." in path:
        yield path
        path = path.rpartition(".")[0]


def _named(name: str) -> Any:
    return getattr(import_module("minigrad"), name, None)  # None where there is no NumPy


def missing(family: str, name: str, always: bool = False) -> str:
    """The second line of an error about a name that is not here, if there is something to say; `always` says that."""
    words = DIFFERS.get(f"{family}.{name}") or advice(family, name)
    if words or always:
        return f".\n  PyTorch's {family}.{name} is not here{words and ': '}{words}."
    return ""
