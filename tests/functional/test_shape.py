"""Views and copies: error messages, empty results, and shared memory."""

import numpy as np
import pytest

import minigrad as mg
import parity
from cases import merge_cases
from minigrad.core.errors import ArgumentError, DTypeError, MinigradError, ShapeError
from samples import distinct_floats, sample

M, X, V = distinct_floats(3, 4), distinct_floats(2, 3, 4), distinct_floats(5)

REFUSED = {
    "view that cannot be": (lambda F, x: x.permute(1, 0).view(-1), M),
    "view of another size": (lambda F, x: x.view(5, -1), M),
    "reshape by two -1": (lambda F, x: x.reshape(-1, -1), M),
    "flatten backwards": (lambda F, x: x.flatten(2, 1), X),
    "unflatten, not fitting": (lambda F, x: x.unflatten(0, (2, 2)), M),
    "squeeze, not there": (lambda F, x: x.squeeze(2), M),
    "unsqueeze, not there": (lambda F, x: x.unsqueeze(3), M),
    "permute too few": (lambda F, x: x.permute(0, 1), X),
    "permute twice the same": (lambda F, x: x.permute(0, 0), M),
    "t of three dimensions": (lambda F, x: x.t(), X),
    "mT of a line": (lambda F, x: x.mT, V),
    "movedim, twice the same": (lambda F, x: x.movedim((0, 1), (2, 2)), X),
    "movedim, unequal": (lambda F, x: x.movedim((0, 1), 2), X),
    "expand a new dimension by -1": (lambda F, x: x.expand(-1, 3, 4), M),
    "expand what is not 1": (lambda F, x: x.expand(6, 4), M),
    "expand to fewer": (lambda F, x: x.expand(4), M),
    "meshgrid of a matrix": (lambda F, x: F.meshgrid(x, indexing="ij"), M),
    "meshgrid, other indexing": (lambda F, x: F.meshgrid(x, indexing="yx"), V),
    "meshgrid of nothing": (lambda F, x: F.meshgrid([]), V),
    "broadcast_tensors": (lambda F, x: F.broadcast_tensors(x, x[:2]), V),
    "select, not there": (lambda F, x: x.select(0, 5), M),
    "select of a number": (lambda F, x: x[0].select(0, 0), V),
    "narrow, too long": (lambda F, x: x.narrow(1, 2, 3), M),
    "narrow, negative": (lambda F, x: x.narrow(1, 2, -1), M),
    "split by sizes that do not fit": (lambda F, x: x.split([1, 1], 1), M),
    "split by 0": (lambda F, x: x.split(0), M),
    "chunk by 0": (lambda F, x: F.chunk(x, 0), V),
    "tensor_split by 0": (lambda F, x: F.tensor_split(x, 0), V),
    "unbind a number": (lambda F, x: x[0].unbind(), V),
    "diagonal of one dimension": (lambda F, x: x.diagonal(0, 1, -1), M),
    "diagonal of a line": (lambda F, x: x.diagonal(), V),
    "unfold, too large": (lambda F, x: x.unfold(0, 6, 1), V),
    "unfold by 0": (lambda F, x: x.unfold(0, 2, 0), V),
    "as_strided too far": (lambda F, x: x.as_strided((2, 10), (6, 2)), V),
    "as_strided before": (lambda F, x: x.as_strided((2,), (1,), -1), V),
    "as_strided backwards": (lambda F, x: x.as_strided((2,), (-1,), 3), V),
    "as_strided, unequal": (lambda F, x: x.as_strided((2,), (6, 2)), V),
    "cat of unequal": (lambda F, x: F.cat([x, x[:2]], 1), M),
    "cat of other dimensions": (lambda F, x: F.cat([x, x[0]]), M),
    "cat of none": (lambda F, x: F.cat([]), M),
    "cat of numbers": (lambda F, x: F.cat([x[0], x[1]]), V),
    "stack of unequal": (lambda F, x: F.stack([x, x[:2]]), M),
    "stack of none": (lambda F, x: F.stack([]), M),
    "repeat too few": (lambda F, x: x.repeat(2), M),
    "repeat a negative number of times": (lambda F, x: x.repeat(-1), V),
    "repeat_interleave, negative": (lambda F, x: x.repeat_interleave(-1), V),
    "repeat_interleave, two counts": (lambda F, x: x.repeat_interleave(x[:2] > 9, 0), V),
    "flip twice the same": (lambda F, x: x.flip(0, 0), M),
    "fliplr of a line": (lambda F, x: F.fliplr(x), V),
    "flipud of a number": (lambda F, x: F.flipud(x[0]), V),
    "roll by too many": (lambda F, x: x.roll((1, 1), 0), V),
    "roll of two shifts": (lambda F, x: x.roll((1, 1)), V),
    "tril of a line": (lambda F, x: x.tril(), V),
    "diag of three dimensions": (lambda F, x: x.diag(), X),
    "diag_embed, twice the same": (lambda F, x: x.diag_embed(1, 0, -3), M),
    "pad by no pairs": (lambda F, x: F.pad(x, (1, 2, 3)), M),
    "pad cut too much": (lambda F, x: F.pad(x, (-3, -2)), M),
    "pad, too many": (lambda F, x: F.pad(x, (1, 1, 1, 1)), V),
    "pad, reflected too far": (lambda F, x: F.pad(x, (4, 0), mode="reflect"), M),
    "pad, wrapped too far": (lambda F, x: F.pad(x, (5, 0), mode="circular"), M),
    "pad, reflected line": (lambda F, x: F.pad(x, (1, 1), mode="reflect"), V),
    "pad in another mode": (lambda F, x: F.pad(x, (1, 1), mode="mirror"), M),
}


@pytest.mark.parity
@pytest.mark.filterwarnings("ignore")
@merge_cases
@pytest.mark.parametrize("case", REFUSED)
def test_what_pytorch_refuses_is_refused(torch, case):
    call, array = REFUSED[case]
    with pytest.raises((RuntimeError, IndexError, ValueError, TypeError, NotImplementedError)):
        call(parity.torch_functions(), torch.tensor(array))
    with pytest.raises(MinigradError):
        call(parity.minigrad_functions(), mg.tensor(array))


EMPTY = {
    "expand": (lambda F, x: x.expand(3, 0), distinct_floats(3, 1)),
    "diagonal beyond": (lambda F, x: x.diagonal(7), M),
    "diag beyond": (lambda F, x: x.diag(-5), M),
    "unfold": (lambda F, x: x.unfold(0, 0, 1), V),
    "repeat": (lambda F, x: x.repeat(0, 1), M),
    "repeat_interleave": (lambda F, x: x.repeat_interleave(0), M),
    "narrow": (lambda F, x: x.narrow(1, 4, 0), M),
    "chunk": (lambda F, x: x[:0].chunk(3), M),
    "split": (lambda F, x: x[:0].split(0), M),
    "pad": (lambda F, x: F.pad(x, (-1, -3)), M),
    "cat": (lambda F, x: F.cat([x[:0], x[:0]]), V),
    "as_strided": (lambda F, x: x.as_strided((0, 9), (1, 1)), V),
}


@pytest.mark.parity
@merge_cases
@pytest.mark.parametrize("case", EMPTY)
def test_empty_results_match_pytorch(torch, case):
    call, array = EMPTY[case]
    for dtype in parity.FLOATS:
        parity.check_forward(sample(case, call, array), dtype, "contiguous")
        parity.check_gradient(sample(case, call, array), dtype, "contiguous")


@pytest.mark.parity
@pytest.mark.parametrize("others", [("float32", "int64"), ("bool", "uint8"), ("int32", "uint8", "bool")], ids=str)
def test_cat_and_stack_have_pytorch_s_types(torch, others):
    arrays = [np.ones(3, dtype) for dtype in others]
    for name in ("cat", "stack", "hstack"):
        parity.assert_same(
            getattr(mg, name)([mg.tensor(x) for x in arrays]),
            getattr(torch, name)([torch.tensor(x) for x in arrays]),
            "float64",
        )
    nothing = torch.zeros(0, dtype=torch.float64)
    assert (
        str(torch.cat([torch.ones(2), nothing]).dtype)[6:]
        == mg.cat([mg.ones(2), mg.zeros(0, dtype=mg.float64)]).dtype.name
    )


def test_incompatible_view_suggests_reshape():
    with pytest.raises(ShapeError) as error:
        mg.zeros(3, 4).T.view(-1)
    assert str(error.value) == (
        "view: view size (12,) is not compatible with input tensor's size (4, 3) and stride (1, 4).\n"
        "  Write reshape(…), which copies if necessary."
    )


@merge_cases
@pytest.mark.parametrize(
    ("wrong", "kind", "message"),
    [
        (lambda x: x.view(1.5), DTypeError, r"view: expected ints, or one sequence of ints, but got 1\.5\."),
        (lambda x: x.reshape(5), ShapeError, r"reshape: shape \(5,\), of 5 elements, is invalid for input of size 6"),
        (lambda x: x.expand(2, 4), ShapeError, r"expand: shapes \(2, 3\) and \(2, 4\) cannot be broadcast together"),
        (
            lambda x: x.expand(3),
            ShapeError,
            r"expand: the expanded size \(3,\) must match the existing size \(2, 3\) at non-singleton",
        ),
        (
            lambda x: x.select(1, 3),
            ShapeError,
            r"select: index 3 out of range for tensor of size \(2, 3\) at dimension 1\.",
        ),
        (
            lambda x: x.narrow(1, 2, 2),
            ShapeError,
            r"narrow: start \(2\) \+ length \(2\) exceeds dimension 1 of shape \(2, 3\)\.",
        ),
        (
            lambda x: x.split([1, 2]),
            ShapeError,
            r"split: expected split sizes to sum exactly to 2 \(the size of dimension 0\), but got \[1,",
        ),
        (
            lambda x: x.unsqueeze(3),
            ShapeError,
            r"unsqueeze: dimension out of range \(expected to be in range of \[-3, 2\], but got 3\) for a",
        ),
        (lambda x: x[None].t(), ShapeError, r"t: expects a tensor with <= 2 dimensions, but got shape \(1, 2, 3\)\."),
        (
            lambda x: mg.cat([x, x.T]),
            ShapeError,
            r"cat: sizes of tensors must match except in dimension 0, but got shapes \(2, 3\), \(3, 2\)",
        ),
        (
            lambda x: mg.cat([x[0, 0]]),
            ShapeError,
            r"cat: zero-dimensional tensors cannot be concatenated.\n  Write stack\(\[a, b\]\)",
        ),
        (lambda x: mg.stack([x, x[0]]), ShapeError, r"stack: expected tensors of equal size, but got \(2, 3\) and "),
        (lambda x: mg.cat([x, 1.0]), DTypeError, r"cat: one of tensors must be a tensor, not a float\."),
        (lambda x: x.unfold(1, 4, 1), ShapeError, "unfold: maximum size for tensor at dimension 1 is 3"),
        (lambda x: x.as_strided((7,), (1,)), ShapeError, "out of bounds: they reach element 6, but .* 0 to 5"),
        (lambda x: x.repeat(2), ShapeError, r"repeat: expected a non-negative count for each dimension"),
        (
            lambda x: mg.pad(x, (3, 0), "reflect"),
            ShapeError,
            "allows a padding size of at most 2 for dimension 1 of size 3",
        ),
        (lambda x: mg.pad(x, (-4, 0), "reflect"), ShapeError, r"pad: pad=\(-4, 0\) crops more elements than"),
        (
            lambda x: mg.pad(x, (1, 1), "edge"),
            ArgumentError,
            "pad: expected mode to be one of 'constant', 'reflect', 'replicate', 'circular', but got",
        ),
        (lambda x: x.repeat_interleave(2, 0, output_size=5), ShapeError, "output_size=5, but the repeats sum to 4"),
    ],
    ids=lambda x: x if isinstance(x, str) else "",
)
def test_invalid_calls_raise(wrong, kind, message):
    with pytest.raises(kind, match=message):
        wrong(mg.zeros(2, 3))


def test_views_share_memory_and_copies_do_not():
    x = mg.tensor(np.arange(12.0).reshape(3, 4))
    views = [
        x.view(-1),
        x.reshape(2, 6),
        x.mT,
        x.diagonal(),
        x.unfold(1, 2, 2),
        x.unsqueeze(0),
        x.as_strided((2,), (1,)),
    ]
    views += [*x.split(2), *x.chunk(2, 1), *x.unbind(), x.flatten(), x.expand(2, 3, 4), *mg.meshgrid(x[0], x[1])]
    copies = [
        x.T.reshape(-1),
        x.T.contiguous(),
        mg.cat([x]),
        x.repeat(1, 1),
        x.flip(()),
        x.roll(0),
        x.tril(9),
        mg.diag(x),
    ]
    x.fill_(7.0)
    assert all((view.numpy() == 7.0).all() and view._version == 1 for view in views)
    assert all((copy.numpy() != 7.0).any() and copy._version == 0 for copy in copies)
    assert x.contiguous() is x
    assert not x.T.is_contiguous()


def test_strides_and_offsets_are_in_elements():
    x = mg.zeros(2, 3, 4)
    assert (x.stride(), x.stride(-2), x.storage_offset()) == ((12, 4, 1), 4, 0)
    part = x[1:, 1, ::2].T
    assert (part.stride(), part.storage_offset()) == ((2, 12), 16)
    assert part.detach().storage_offset() == 16
    assert x.expand(5, 2, 3, 4).stride() == (0, 12, 4, 1)


OVERLAPPING = {
    "expanded": lambda x: x.expand(2, 3),
    "windows": lambda x: x.unfold(0, 2, 1),
    "strided": lambda x: x.as_strided((2,), (0,)),
}


@pytest.mark.parametrize("view", OVERLAPPING)
def test_overlapping_views_cannot_be_written(view):
    """Unlike in PyTorch, where writing to overlapping windows is undefined."""
    x = mg.zeros(3)
    with pytest.raises(
        ShapeError,
        match=r"more than one element of the written-to tensor refers to a single memory location\.\n  clone",
    ):
        OVERLAPPING[view](x).add_(1.0)
    assert (x.tolist(), x._version) == ([0.0, 0.0, 0.0], 0)
    x.unfold(0, 1, 2).add_(1.0)
    assert x.tolist() == [1.0, 0.0, 1.0]


def test_split_views_can_be_written_and_pass_gradients():
    """Unlike in PyTorch, which forbids in-place writes to one of several returned views."""
    x = mg.tensor([1.0, 2.0, 3.0, 4.0], requires_grad=True)
    y = x * 2.0
    for part, factor in zip(y.split(2), (10.0, 100.0), strict=True):
        part.mul_(factor)
    mg.sum(y).backward()
    assert (y.tolist(), x.grad.tolist()) == ([20.0, 40.0, 600.0, 800.0], [20.0, 20.0, 200.0, 200.0])


def test_as_strided_passes_gradients_outside_its_input():
    """Unlike in PyTorch, which drops them."""
    x = mg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    mg.sum(x[:1].as_strided((3,), (1,)) * mg.tensor([5.0, 6.0, 7.0])).backward()
    assert x.grad.tolist() == [5.0, 6.0, 7.0]


def test_as_strided_stays_within_what_was_detached():
    x = mg.zeros(2, 3)
    with pytest.raises(ShapeError, match="out of bounds"):
        x[1].detach().as_strided((3,), (1,), 0)
    assert x[1].as_strided((3,), (1,), 0).tolist() == [0.0, 0.0, 0.0]


def test_a_write_through_a_view_of_a_transposed_base_reaches_it():
    x = mg.tensor(np.arange(6.0).reshape(2, 3), requires_grad=True)
    y = x.T * 2.0  # not contiguous
    y.T.view(-1)[1:3].mul_(10.0)
    mg.sum(y).backward()
    assert x.grad.tolist() == [[2.0, 20.0, 20.0], [2.0, 2.0, 2.0]]


def test_nan_and_infinity_do_not_leak_from_masked_elements():
    x = mg.tensor([[1.0, np.inf], [np.nan, 2.0]], requires_grad=True)
    mg.sum(x.tril(-1) + mg.pad(x, (0, -1))).backward(mg.tensor(1.0))
    assert x.grad.tolist() == [[2.0, 0.0], [3.0, 0.0]]
    assert x.triu().detach().tolist() == [[1.0, np.inf], [0.0, 2.0]]


def test_no_pad_shares_memory_with_its_input():
    x = mg.arange(10.0).reshape(1, 2, 5)
    for mode in ("constant", "reflect", "replicate", "circular"):
        for cut in ((0, 0), (-4, 0), (-1, -1), (1, -2)):
            y = mg.pad(x, cut, mode)
            assert y.is_contiguous(), (mode, cut)
            y.zero_()
            assert x.sum().item() == 45.0, (mode, cut)


def test_rot90_requires_two_different_dims():
    with pytest.raises(ShapeError, match=r"rot90: expected rotation dims to be different, but got dims=\(0, -2\)"):
        mg.rot90(mg.ones(2, 3), 1, (0, -2))


def test_cat_with_empty_tensors_records_them_in_the_graph():
    nothing = mg.zeros(0, requires_grad=True)
    y = mg.cat([nothing, mg.ones(2, 3), nothing], 1)
    mg.sum(y).backward()
    assert (y.tolist(), nothing.grad.shape) == ([[1.0] * 3] * 2, (0,))


def test_trapezoid_requires_one_x_per_y():
    with pytest.raises(
        ShapeError, match=r"trapezoid: there must be one x value for each sample of y, but got 4 and 3\."
    ):
        mg.trapezoid(mg.ones(3), mg.ones(4))


def test_gradient_of_permute_is_permuted_back():
    x = mg.zeros(2, 3, 4, requires_grad=True)
    upstream = np.arange(24.0, dtype=np.float32).reshape(3, 4, 2)
    x.permute(1, 2, 0).backward(mg.tensor(upstream))
    assert (x.grad.numpy() == upstream.transpose(2, 0, 1)).all()


def test_unravel_index_gives_int64_and_takes_integers_alone():
    for dtype in (mg.int32, mg.uint8):
        rows, columns = mg.unravel_index(mg.tensor([1, 5], dtype=dtype), (2, 300))
        assert (rows.tolist(), columns.tolist(), rows.dtype, columns.dtype) == ([0, 0], [1, 5], mg.int64, mg.int64)
    for wrong in (mg.ones(2), mg.ones(2) > 0):
        with pytest.raises(DTypeError, match=r"unravel_index: .* integer dtype, but got (float32|bool)"):
            mg.unravel_index(wrong, (2, 3))
