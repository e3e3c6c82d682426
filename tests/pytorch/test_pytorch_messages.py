"""A message has the words that a user would search for: those of PyTorch's message for the same mistake."""

import re
import warnings

import pytest

import minigrad as mg

# Calls with the library as L, and the words that both messages have.
CALLS = {
    "L.ones(2, 3) + L.ones(2, 4)": "at non singleton dimension",
    "L.ones(2, 3) @ L.ones(2, 3)": "mat and mat shapes cannot be multiplied",
    "L.ones(2, 3).mm(L.ones(2, 3))": "mat and mat shapes cannot be multiplied",
    "L.ones(2, 3).bmm(L.ones(2, 3))": "must be a d tensor",
    "L.ones(2, 3).reshape(4, 2)": "is invalid for input of size",
    "L.ones(2, 3).view(4, 2)": "is invalid for input of size",
    "L.ones(2, 3).t().view(6)": "view size is not compatible with input tensor s size and stride",
    "L.ones(2, 3).reshape(-1, -1)": "only one dimension can be inferred",
    "L.ones(2, 3).sum(5)": "dimension out of range expected to be in range of but got",
    "L.ones(2, 3).permute(0, 0)": "duplicate dims are not allowed",
    "L.ones(2, 3).transpose(0, 3)": "dimension out of range expected to be in range of but got",
    "L.ones(2, 3).squeeze(4)": "dimension out of range expected to be in range of but got",
    "L.ones(2, 3).expand(4, 3)": "at non singleton dimension",
    "L.ones(2, 3)[5]": "index is out of bounds for",
    "L.ones(2, 3)[0, 1, 2]": "too many indices for",
    "L.ones(2, 3)[L.tensor([5])]": "index is out of bounds for dimension with size",
    "L.ones(2, 3).gather(1, L.tensor([[5]]))": "index is out of bounds for dimension with size",
    "L.cat([L.ones(2, 3), L.ones(2, 4)])": "sizes of tensors must match except in dimension",
    "L.cat([])": "cat expected a non empty list of tensors",
    "L.stack([L.ones(2), L.ones(3)])": "equal size but got",
    "L.tensor('a')": "invalid data type",
    "L.arange(0, 5, -1)": "inconsistent with step",
    "L.ones(2).item()": "a tensor with elements cannot be converted to",
    "bool(L.ones(2))": "boolean value of",
    "float(L.ones(2))": "be converted to",
    "L.ones(2).backward()": "does not require grad and does not have a grad_fn",
    "L.ones(2, requires_grad=True).backward()": "grad can be implicitly created only for scalar outputs",
    "y = L.ones(1, requires_grad=True).sum(); y = y * y; y.backward(); y.backward()": "trying to backward through the",
    "a = L.ones(2, requires_grad=True); a.add_(1)": "that requires grad is being used in an in place operation",
    "a = L.ones(2, requires_grad=True); b = a.exp(); b.add_(1); b.sum().backward()": "has been modified by an inplace",
    "L.ones(2, requires_grad=True).numpy()": "tensor that requires grad",
    "L.tensor([1, 2], requires_grad=True)": "can require gradients",
    "L.ones(2, dtype=L.int64).mean()": "a floating point",
    "L.ones(2, 3).float().matmul(L.ones(3, 2, dtype=L.float64))": "to have the same dtype",
    "L.nn.functional.cross_entropy(L.ones(2, 3), L.tensor([0, 5]))": "target is out of bounds",
    "L.nn.functional.nll_loss(L.ones(2, 3), L.ones(2))": "expected target dtype to be",
    "L.nn.functional.conv2d(L.ones(1, 3, 8, 8), L.ones(4, 2, 3, 3))": "expected input to have channels but got",
    "L.nn.functional.conv2d(L.ones(1, 3, 2, 2), L.ones(4, 3, 3, 3))": "kernel size can t be greater than",
    "L.nn.functional.linear(L.ones(2, 3), L.ones(5, 4))": "shapes cannot be multiplied",
    "L.nn.functional.layer_norm(L.ones(2, 3), (4,))": "given normalized_shape expected input with shape but got input",
    "L.nn.functional.batch_norm(L.ones(1, 3), None, None, training=True)": "expected more than value per channel when",
    "L.nn.functional.max_pool2d(L.ones(1, 1, 2, 2), 3)": "output size is too small",
    "L.nn.functional.dropout(L.ones(2), 2.0)": "has to be between and but got",
    "L.nn.Linear(3, 2)(L.ones(2, 4))": "shapes cannot be multiplied",
    "L.nn.Linear(3, 2).load_state_dict({'weight': L.ones(2, 3)})": "error s in loading state_dict for linear",
    "L.nn.Linear(3, 2).load_state_dict({'weight': L.ones(3, 3), 'bias': L.ones(2)})": "error s in loading state_dict",
    "L.nn.Conv2d(3, 4, 3, groups=2)": "must be divisible by groups",
    "L.nn.MultiheadAttention(5, 2)": "embed_dim must be divisible by num_heads",
    "L.nn.Sequential(1)": "is not a module subclass",
    "L.nn.Module()(L.ones(1))": "module is missing the required forward function",
    "L.nn.ModuleList([1])": "is not a module subclass",
    "L.optim.SGD([], lr=0.1)": "got an empty parameter list",
    "L.optim.SGD([L.ones(2)], lr=-1)": "invalid learning rate",
    "L.optim.SGD(L.ones(2), lr=0.1)": "should be an iterable of tensors or dicts but got",
    "L.optim.Adam([L.ones(2)], betas=(1.5, 0.9))": "invalid beta parameter",
    "L.autograd.grad(L.ones(2, requires_grad=True).sum(), L.ones(2))": "does not require grad",
    "L.einsum('ij,jk->il', L.ones(2, 3), L.ones(3, 2))": "does not appear in the equation for any input operand",
    "L.linalg.inv(L.ones(2, 3))": "inv a must be batches of square matrices",
    "L.linalg.inv(L.zeros(2, 2))": "the input matrix is singular",
    "L.linalg.cholesky(-L.eye(2))": "the input is not positive definite",
    "L.topk(L.ones(3), 5)": "selected index k out of range",
    "L.ones(3).split([1, 1])": "to sum exactly to",
    "L.ones(2, 3).chunk(0)": "chunks to be greater than",
    "L.ones(3).masked_fill(L.ones(3), 0)": "only supports boolean masks but got",
    "L.where(L.ones(2), L.ones(2), L.ones(2))": "where expected condition to be a boolean tensor but got",
    "L.multinomial(L.tensor([-1.0, 1.0]), 1)": "probability tensor contains either inf nan",
    "L.randint(5, 2, (2,))": "expects from to be less than to but got from to",
    "next(iter(L.utils.data.DataLoader([1, 2], batch_size=0)))": "batch_size should be a positive integer value but",
    "L.utils.data.TensorDataset(L.ones(2), L.ones(3))": "size mismatch between tensors",
}


def message_words(library, call):
    """Return the words of the error that a call raises."""
    with warnings.catch_warnings(action="ignore"), pytest.raises(Exception) as caught:  # noqa: PT011
        exec(call, {"L": library})
    return re.findall(r"[a-z_]+", str(caught.value).lower())


@pytest.mark.parity
@pytest.mark.parametrize("call", CALLS)
def test_a_message_has_the_words_of_pytorch_s(torch, call):
    expected = f" {CALLS[call]} "
    assert expected in f" {' '.join(message_words(torch, call))} ", "PyTorch's message has changed"
    assert expected in f" {' '.join(message_words(mg, call))} "
