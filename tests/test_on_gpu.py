"""What a GPU computes, and how its memory behaves, on one that every machine can have: Mesa's lavapipe, by Vulkan.

Each file runs in a child process. On a machine with another GPU: ``MINIGRAD_DEVICE=cuda pytest`` and these files.
"""

import pytest

from children import on_device
from tools import need

ON_GPU = ["gpu/test_gpu.py", "test_autograd.py", "test_ops.py", "test_programs.py", "test_reduce.py", "test_views.py"]
ON_GPU += ["optim/test_optimizer.py"]
ON_GPU += [
    f"backends/test_taichi_{family}.py" for family in ("elementwise", "indexing", "linalg", "random", "rows", "sorting")
]


@pytest.mark.slow
@pytest.mark.parametrize("file", ON_GPU)
def test_tensors_are_the_same_on_a_gpu(file):
    need("vulkan")
    on_device("vulkan", file)
