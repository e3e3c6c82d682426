"""Views and in-place writes against PyTorch: a state machine compares values and gradients of random sequences."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

import minigrad as mg
from lazy import import_lazily
from minigrad.core.errors import MinigradError
from parity import FLOATS, LACKS_FLOAT64
from strategies import PARITY, PYTORCH
from tiers import NIGHTLY

torch = import_lazily("torch")

pytestmark = pytest.mark.parity

REFUSALS = (RuntimeError, IndexError, ValueError, TypeError)

# Each returns a view of x, of either library; three small ints select dimensions, indices and sizes.
VIEWS = {
    "view": lambda x, a, b, c: x.view(-1),
    "view as rows": lambda x, a, b, c: x.view(2, -1),
    "reshape": lambda x, a, b, c: x.reshape(-1, 2),
    "flatten": lambda x, a, b, c: x.flatten(a, b),
    "unflatten": lambda x, a, b, c: x.unflatten(a, (2, -1)),
    "permute": lambda x, a, b, c: x.permute(*range(x.ndim)[::-1]),
    "transpose": lambda x, a, b, c: x.transpose(a, b - 2),
    "movedim": lambda x, a, b, c: x.movedim(a, b),
    "squeeze": lambda x, a, b, c: x.squeeze(),
    "unsqueeze": lambda x, a, b, c: x.unsqueeze(a),
    "expand": lambda x, a, b, c: x.unsqueeze(a).expand(*[-1] * a, 2, *[-1] * (x.ndim - a)),
    "diagonal": lambda x, a, b, c: x.diagonal(c - 1, a, b),
    "unfold": lambda x, a, b, c: x.unfold(a, b + 1, c + 1),
    "select": lambda x, a, b, c: x.select(a, b - 1),
    "narrow": lambda x, a, b, c: x.narrow(a, b, c),
    "index": lambda x, a, b, c: x[a:, None, ..., b],
    "every other": lambda x, a, b, c: x[..., c % 2 :: 2],
    "mT": lambda x, a, b, c: x.mT,
    "as_strided": lambda x, a, b, c: x.as_strided((a + 1, b + 1), (c + b + 1, 1)),
    "as_strided, overlapping": lambda x, a, b, c: x.as_strided((a + 2, 2), (c, 1), b),
    "detach": lambda x, a, b, c: x.detach(),
}

# Each writes into x; w may or may not require grad, and its shape may be incompatible.
WRITES = {
    "add_": lambda x, w: x.add_(w),
    "sub_": lambda x, w: x.sub_(0.25),
    "mul_": lambda x, w: x.mul_(w),
    "mul_ by a function of itself": lambda x, w: x.mul_(x.clone().tanh()),
    "div_": lambda x, w: x.div_(w.detach() * w.detach() + 1.0),
    "exp_": lambda x, w: x.mul_(0.25).exp_(),
    "copy_": lambda x, w: x.copy_(w),
    "setitem": lambda x, w: x.__setitem__((..., 0), w.sum()),
    "setitem of a slice": lambda x, w: x.__setitem__((slice(1, None), ...), 0.5),
}

BASES = {
    "contiguous": lambda x: x * 1.5,
    "transposed": lambda x: x.permute(2, 1, 0) * 1.5,
    "with a dimension moved": lambda x: x.permute(1, 0, 2) * 1.5,
    "a view of a copy": lambda x: x.clone()[:, 1:],
    "the leaf": lambda x: x,
}

TOLERANCE = PARITY["float32"] if LACKS_FLOAT64 else PYTORCH


class Twin:
    """The same tensor in both libraries. `full`: it covers its memory, so that as_strided sees the same elements."""

    def __init__(self, tensor, torch_tensor, whole):
        self.tensor, self.torch_tensor, self.whole = tensor, torch_tensor, whole

    def overlaps(self):
        """Return whether elements share a memory location; PyTorch only rejects that reliably for a stride of 0."""
        t = self.torch_tensor
        indices = torch.arange(t.untyped_storage().size() // t.element_size()).as_strided(
            t.size(), t.stride(), t.storage_offset()
        )
        return len(indices.unique()) < t.numel()


class Views(RuleBasedStateMachine):
    """Pairs of tensors of both libraries: a base computed from a leaf, and views of it and of each other."""

    @initialize(base=st.sampled_from(sorted(BASES)))
    def begin(self, base):
        self.leaves, self.live = [], []
        leaf = self.leaf((2, 3, 2), True)
        result, expected = BASES[base](leaf.tensor), BASES[base](leaf.torch_tensor)
        self.live.append(Twin(result, expected, base != "a view of a copy"))

    def leaf(self, shape, requires_grad):
        values = np.cos(np.arange(1.0, 1.0 + np.prod(shape)) + len(self.leaves)).reshape(shape).astype(FLOATS[0])
        results = [module.tensor(values, requires_grad=requires_grad) for module in (mg, torch)]
        self.leaves.append(Twin(*results, True))
        return self.leaves[-1]

    @rule(
        index=st.integers(0, 9),
        view=st.sampled_from(sorted(VIEWS)),
        a=st.integers(0, 2),
        b=st.integers(0, 2),
        c=st.integers(0, 2),
    )
    def look(self, index, view, a, b, c):
        x = self.live[index % len(self.live)]
        if view.startswith("as_strided") and not x.whole:
            return
        results = self.both(lambda y: VIEWS[view](y, a, b, c), x)
        if results is not None:
            full = x.whole and results[1].numel() == x.torch_tensor.numel() and view != "detach"
            self.live.append(Twin(*results, full and not x.overlaps()))
            self.compare()

    @rule(
        index=st.integers(0, 9),
        write=st.sampled_from(sorted(WRITES)),
        shape=st.sampled_from(["number", "whole", "line", "pair"]),
        requires_grad=st.sampled_from([True, True, False]),
        recorded=st.sampled_from([True, True, True, False]),
    )
    def write(self, index, write, shape, requires_grad, recorded):
        x = self.live[index % len(self.live)]
        size = tuple(x.torch_tensor.shape)
        w = self.leaf({"number": (), "whole": size, "line": size[-1:], "pair": (2,)}[shape], requires_grad)
        if x.overlaps():
            initial = x.tensor._version
            with pytest.raises(MinigradError):
                x.tensor.add_(w.tensor)
            assert x.tensor._version == initial
            return
        modes = (mg.enable_grad, torch.enable_grad) if recorded else (mg.no_grad, torch.no_grad)
        self.both(WRITES[write], x, w, modes=modes)
        self.compare()

    def both(self, function, *twins, modes=None):
        """Return the results of `function` in both libraries; None if both raise."""
        modes = modes or (mg.enable_grad, torch.enable_grad)
        try:
            with modes[1]():
                expected = function(*[x.torch_tensor for x in twins])
        except REFUSALS as refusal:
            try:
                with modes[0]():
                    function(*[x.tensor for x in twins])
            except MinigradError:
                return None
            raise AssertionError(f"PyTorch refuses this: {refusal}") from None
        with modes[0]():
            return function(*[x.tensor for x in twins]), expected

    def compare(self):
        for x in self.live:
            result, expected = x.tensor, x.torch_tensor
            assert result.shape == tuple(expected.shape)
            close(result, expected, TOLERANCE)
            assert result._version == expected._version
            assert (result.requires_grad, result.is_leaf) == (expected.requires_grad, expected.is_leaf)
            if expected.numel():
                assert result.storage_offset() == expected.storage_offset()
                steps = zip(result.shape, result.stride(), expected.stride(), strict=True)
                assert all(item == other for size, item, other in steps if size > 1)

    def teardown(self):
        """Compare the derivatives, to second order, of a weighted sum of the tanh of all live tensors."""
        result = [x.tensor for x in self.leaves if x.tensor.requires_grad]
        torch_leaves = [x.torch_tensor for x in self.leaves if x.torch_tensor.requires_grad]
        sum_, torch_sum = (
            weighted(mg, [x.tensor for x in self.live]),
            weighted(torch, [x.torch_tensor for x in self.live]),
        )
        for order in (1, 2):
            assert sum_.requires_grad == torch_sum.requires_grad
            if not torch_sum.requires_grad:
                return
            results, expected = (
                gradients(mg.grad, sum_, result),
                gradients(torch.autograd.grad, torch_sum, torch_leaves),
            )
            assert (results is None) == (expected is None)
            if expected is None:
                return
            tolerance = 10 ** (order - 1) * TOLERANCE
            for a, b in zip(results, expected, strict=True):
                if a is None or b is None:
                    assert all(x is None or not x.detach().numpy().any() for x in (a, b))
                else:
                    close(a, b, tolerance * (1.0 + float(b.detach().abs().max()) if b.numel() else 1.0))
            pair = [(a, b) for a, b in zip(results, expected, strict=True) if b is not None and b.requires_grad]
            if not pair:
                return
            sum_, torch_sum = weighted(mg, [a for a, _ in pair]), weighted(torch, [b for _, b in pair])


def close(actual, expected, tolerance):
    np.testing.assert_allclose(actual.detach().numpy(), expected.numpy(force=True), rtol=tolerance, atol=tolerance)


def weighted(library, tensors):
    """Return the sum of the tanh of all elements, each with its own weight."""
    total = library.tensor(0.0, dtype=getattr(library, FLOATS[0]))
    for x in tensors:
        weights = np.cos(np.arange(float(np.prod(x.shape)))).reshape(tuple(x.shape)).astype(FLOATS[0])
        total = total + (x.tanh() * library.tensor(weights)).sum()
    return total


def gradients(grad, output, inputs):
    """Return the gradients from `grad`; None if it raises because a saved tensor was modified."""
    try:
        return grad(output, inputs, create_graph=True, allow_unused=True)
    except RuntimeError as refusal:
        if not any(words in str(refusal) for words in ("overwritten by", "modified by an inplace operation")):
            raise
        return None


TestViews = Views.TestCase
TestViews.settings = settings(
    max_examples=250 if NIGHTLY else 80,
    stateful_step_count=15,
    suppress_health_check=list(HealthCheck),
)
