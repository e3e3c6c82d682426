"""GPU computations and memory, on a GPU that every machine can have: Mesa's lavapipe through Vulkan.

The tests run in child processes. On a machine with another GPU: ``MINIGRAD_DEVICE=cuda pytest`` and these files.
"""

import pytest

from child_processes import group_files, run_on_device
from needs import needs

FAMILIES = ("elementwise", "indexing", "linalg", "random", "rows", "sorting")
ON_GPU = ["gpu/test_gpu.py", "whole/test_programs.py", "optim/test_optimizer.py", "autograd/test_autograd.py"]
ON_GPU += [f"optim/test_{name}.py" for name in ("optimizer_groups", "optimizer_state", "hooks")]
ON_GPU += ["ops/test_ops.py", "functional/test_reduce.py", "core/test_views.py"]
ON_GPU += [f"backends/taichi/kernels/test_{family}.py" for family in FAMILIES]


@pytest.mark.nightly
@pytest.mark.parametrize("files", group_files(ON_GPU, size=1))
def test_tensors_are_the_same_on_a_gpu(files):
    needs("vulkan")
    run_on_device("vulkan", files)
