"""Views and in-place writes against PyTorch: a state machine compares values and gradients of random sequences."""

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, rule

import minigrad as mg
from lazy import import_lazily
from minigrad.core.errors import MinigradError
from parity import FLOATS, NARROW
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

TOLERANCE = PARITY["float32"] if NARROW else PYTORCH


class Twin:
    """The same tensor in both libraries. `whole`: it covers its memory, so that as_strided sees the same elements."""

    def __init__(self, ours, theirs, whole):
        self.ours, self.theirs, self.whole = ours, theirs, whole

    def overlaps(self):
        """Return whether elements share a memory location; PyTorch only rejects that reliably for a stride of 0."""
        t = self.theirs
        places = torch.arange(t.untyped_storage().size() // t.element_size()).as_strided(
            t.size(), t.stride(), t.storage_offset()
        )
        return len(places.unique()) < t.numel()


class Views(RuleBasedStateMachine):
    """Pairs of tensors of both libraries: a base computed from a leaf, and views of it and of each other."""

    @initialize(base=st.sampled_from(sorted(BASES)))
    def begin(self, base):
        self.leaves, self.live = [], []
        leaf = self.leaf((2, 3, 2), True)
        ours, theirs = BASES[base](leaf.ours), BASES[base](leaf.theirs)
        self.live.append(Twin(ours, theirs, base != "a view of a copy"))

    def leaf(self, shape, requires_grad):
        numbers = np.cos(np.arange(1.0, 1.0 + np.prod(shape)) + len(self.leaves)).reshape(shape).astype(FLOATS[0])
        found = [module.tensor(numbers, requires_grad=requires_grad) for module in (mg, torch)]
        self.leaves.append(Twin(*found, True))
        return self.leaves[-1]

    @rule(
        which=st.integers(0, 9),
        view=st.sampled_from(sorted(VIEWS)),
        a=st.integers(0, 2),
        b=st.integers(0, 2),
        c=st.integers(0, 2),
    )
    def look(self, which, view, a, b, c):
        x = self.live[which % len(self.live)]
        if view.startswith("as_strided") and not x.whole:
            return
        found = self.both(lambda y: VIEWS[view](y, a, b, c), x)
        if found is not None:
            whole = x.whole and found[1].numel() == x.theirs.numel() and view != "detach"
            self.live.append(Twin(*found, whole and not x.overlaps()))
            self.compare()

    @rule(
        which=st.integers(0, 9),
        write=st.sampled_from(sorted(WRITES)),
        shape=st.sampled_from(["number", "whole", "line", "pair"]),
        requires_grad=st.sampled_from([True, True, False]),
        recorded=st.sampled_from([True, True, True, False]),
    )
    def write(self, which, write, shape, requires_grad, recorded):
        x = self.live[which % len(self.live)]
        size = tuple(x.theirs.shape)
        w = self.leaf({"number": (), "whole": size, "line": size[-1:], "pair": (2,)}[shape], requires_grad)
        if x.overlaps():
            before = x.ours._version
            with pytest.raises(MinigradError):
                x.ours.add_(w.ours)
            assert x.ours._version == before
            return
        modes = (mg.enable_grad, torch.enable_grad) if recorded else (mg.no_grad, torch.no_grad)
        self.both(WRITES[write], x, w, modes=modes)
        self.compare()

    def both(self, function, *twins, modes=None):
        """Return the results of `function` in both libraries; None if both raise."""
        modes = modes or (mg.enable_grad, torch.enable_grad)
        try:
            with modes[1]():
                theirs = function(*[x.theirs for x in twins])
        except REFUSALS as refusal:
            try:
                with modes[0]():
                    function(*[x.ours for x in twins])
            except MinigradError:
                return None
            raise AssertionError(f"PyTorch refuses this: {refusal}") from None
        with modes[0]():
            return function(*[x.ours for x in twins]), theirs

    def compare(self):
        for x in self.live:
            ours, theirs = x.ours, x.theirs
            assert ours.shape == tuple(theirs.shape)
            close(ours, theirs, TOLERANCE)
            assert ours._version == theirs._version
            assert (ours.requires_grad, ours.is_leaf) == (theirs.requires_grad, theirs.is_leaf)
            if theirs.numel():
                assert ours.storage_offset() == theirs.storage_offset()
                steps = zip(ours.shape, ours.stride(), theirs.stride(), strict=True)
                assert all(one == other for size, one, other in steps if size > 1)

    def teardown(self):
        """Compare the derivatives, to second order, of a weighted sum of the tanh of all live tensors."""
        ours = [x.ours for x in self.leaves if x.ours.requires_grad]
        theirs = [x.theirs for x in self.leaves if x.theirs.requires_grad]
        mine, its = weighted(mg, [x.ours for x in self.live]), weighted(torch, [x.theirs for x in self.live])
        for order in (1, 2):
            assert mine.requires_grad == its.requires_grad
            if not its.requires_grad:
                return
            found, expected = gradients(mg.grad, mine, ours), gradients(torch.autograd.grad, its, theirs)
            assert (found is None) == (expected is None)
            if expected is None:
                return
            tolerance = 10 ** (order - 1) * TOLERANCE
            for a, b in zip(found, expected, strict=True):
                if a is None or b is None:
                    assert all(x is None or not x.detach().numpy().any() for x in (a, b))
                else:
                    close(a, b, tolerance * (1.0 + float(b.detach().abs().max()) if b.numel() else 1.0))
            both = [(a, b) for a, b in zip(found, expected, strict=True) if b is not None and b.requires_grad]
            if not both:
                return
            mine, its = weighted(mg, [a for a, _ in both]), weighted(torch, [b for _, b in both])


def close(ours, theirs, tolerance):
    np.testing.assert_allclose(ours.detach().numpy(), theirs.numpy(force=True), rtol=tolerance, atol=tolerance)


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
