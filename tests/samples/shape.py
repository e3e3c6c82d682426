"""Views and copies: reshaping, permuting, expanding and splitting."""

import numpy as np

from samples import distinct_floats, distinct_ints, sample

X, M = distinct_floats(2, 3, 4), distinct_floats(3, 4)
V = distinct_floats(5)
PADS = [(1, (2, 4), (2, 1)), (2, (2, 3, 4), (1, 2, 0, 2)), (3, (1, 2, 3, 3), (1, 0, 2, 1, 1, 1))]
OUTSIDE = dict.fromkeys(("sliced", "empty", "0-d"), "elements outside the input get gradients too")
EMPTY = {"empty": "PyTorch gives the gradient another shape, and fails"}

x = distinct_floats(3, 4)
y = distinct_floats(3, 4, seed=1)
v = distinct_floats(5)
a = distinct_floats(2, 3, 4)

SAMPLES = [
    # --- reshaping ---
    sample("view", lambda F, x: x.view(4, 3) * 1, M),
    sample("view, worked out", lambda F, x: x.view((-1, 2)), M),
    sample("view that splits a dimension", lambda F, x: x.view(3, 2, -1), M),
    sample("view_as", lambda F, x, y: x.view_as(y), M, distinct_floats(2, 6)),
    sample("reshape", lambda F, x: F.reshape(x, (4, 3)), M),
    sample("reshape, worked out", lambda F, x: x.reshape(-1, 2), M),
    sample("reshape by keyword", lambda F, x: F.reshape(x, shape=(-1,)), X),
    sample("reshape to 0-d", lambda F, x: x.reshape(()), distinct_floats(1, 1)),
    sample("reshape a view", lambda F, x: x.transpose(0, 2).reshape(6, 4), X),
    sample("reshape_as", lambda F, x, y: x.reshape_as(y), M, distinct_floats(2, 6)),
    sample("flatten", lambda F, x: F.flatten(x), X),
    sample("flatten the last", lambda F, x: x.flatten(1), X),
    sample("flatten the first", lambda F, x: x.flatten(end_dim=-2), X),
    sample("ravel", lambda F, x: F.ravel(x), M),
    sample("unflatten", lambda F, x: F.unflatten(x, -1, (2, -1)), M),
    sample("squeeze", lambda F, x: x.squeeze(), distinct_floats(1, 3, 1)),
    sample("squeeze one", lambda F, x: F.squeeze(x, -1), distinct_floats(1, 3, 1)),
    sample("squeeze several", lambda F, x: x.squeeze((0, 1, 2)), distinct_floats(1, 3, 1)),
    sample("unsqueeze", lambda F, x: F.unsqueeze(x, 1), M),
    sample("unsqueeze at the end", lambda F, x: x.unsqueeze(-1), M),
    # --- reordering dimensions ---
    sample("permute", lambda F, x: F.permute(x, (2, 0, 1)), X),
    sample("permute, negative", lambda F, x: x.permute(-1, 0, -2), X),
    sample("permute by keyword", lambda F, x: x.permute(dims=(1, 0)), M),
    sample("transpose", lambda F, x: F.transpose(x, 0, -1), X),
    sample("swapaxes", lambda F, x: F.swapaxes(x, 0, 1), M),
    sample("swapdims", lambda F, x: x.swapdims(0, 1), M),
    sample("t", lambda F, x: F.t(x), M),
    sample("t of a line", lambda F, x: x.t(), V),
    sample("T", lambda F, x: x.T, M),
    sample("mT", lambda F, x: x.mT, X),
    sample("movedim", lambda F, x: F.movedim(x, 0, -1), X),
    sample("movedim, several", lambda F, x: x.movedim((0, 1), (2, 0)), X),
    sample("moveaxis", lambda F, x: F.moveaxis(x, -1, 0), X),
    # --- expanding ---
    sample("expand", lambda F, x: x.expand(3, 4), distinct_floats(3, 1)),
    sample("expand, new dimensions", lambda F, x: x.expand(2, -1, 4), distinct_floats(3, 1)),
    sample("expand_as", lambda F, x, y: x.expand_as(y), distinct_floats(3, 1), M),
    sample("broadcast_to", lambda F, x: F.broadcast_to(x, (2, 3, 4)), distinct_floats(3, 1)),
    sample("broadcast_tensors", lambda F, x, y: F.broadcast_tensors(x, y), distinct_floats(3, 1), distinct_floats(4)),
    sample("meshgrid", lambda F, x, y: F.meshgrid(x, y, indexing="ij"), distinct_floats(3), distinct_floats(2)),
    sample("meshgrid of a list", lambda F, *x: F.meshgrid(list(x), indexing="xy"), distinct_floats(3),
        distinct_floats(2), distinct_floats(2)),
    sample("meshgrid of one", lambda F, x: F.meshgrid(x, indexing="xy"), V),
    # --- selecting ---
    sample("select", lambda F, x: F.select(x, 1, -1), X),
    sample("narrow", lambda F, x: F.narrow(x, -1, 1, 2), M),
    sample("narrow from the end", lambda F, x: x.narrow(0, -2, 2), M),
    sample("split", lambda F, x: F.split(x, 2, dim=-1), distinct_floats(2, 5)),
    sample("split by its keyword", lambda F, x: x.split(split_size=3, dim=0), V),
    sample("split by sizes", lambda F, x: x.split([1, 0, 3], 1), M),
    sample("chunk", lambda F, x: F.chunk(x, 3, dim=1), distinct_floats(2, 5)),
    sample("tensor_split", lambda F, x: F.tensor_split(x, 3), V),
    sample("tensor_split at a tensor", lambda F, x, n: F.tensor_split(x, n), V, np.array([1, 3])),
    sample("tensor_split by a 0-d tensor", lambda F, x, n: F.tensor_split(x, n), V, np.array(3)),
    sample("tensor_split at indices", lambda F, x: F.tensor_split(x, (1, 3, 7), dim=-1), M),
    sample("tensor_split at indices from the end", lambda F, x: x.tensor_split((3, -3)), V),
    sample("unbind", lambda F, x: F.unbind(x, -1), M),
    sample("diagonal", lambda F, x: F.diagonal(x), M),
    sample("diagonal above", lambda F, x: x.diagonal(offset=1), M),
    sample("diagonal below", lambda F, x: x.diagonal(-1, 2, -2), X),
    sample("unfold", lambda F, x: x.unfold(0, 3, 1), V),
    sample("unfold by 2", lambda F, x: x.unfold(-1, 2, 2), X),
    sample("unfold with gaps", lambda F, x: x.unfold(0, 1, 3), V),
    sample("unfold twice", lambda F, x: x.unfold(0, 2, 1).unfold(1, 2, 2), M),
    sample("as_strided", lambda F, x: F.as_strided(x, (2, 3), (3, 1)), distinct_floats(6), differs=OUTSIDE),
    sample("as_strided, overlapping", lambda F, x: x.as_strided((3, 2), (1, 1), 1), distinct_floats(5),
        differs=OUTSIDE),
    sample("as_strided, one element repeated", lambda F, x: x.as_strided((2, 2), (0, 0)), V, differs=OUTSIDE),
    sample("as_strided of a view", lambda F, x: x[1:].as_strided((2,), (2,)), V, differs=OUTSIDE),
    # --- memory ---
    sample("contiguous", lambda F, x: x.permute(2, 0, 1).contiguous(), X),
    sample("contiguous, then view", lambda F, x: x.permute(2, 0, 1).contiguous().view(-1), X),
    # --- concatenating ---
    sample("cat", lambda F, x, y: F.cat([x, y]), M, distinct_floats(2, 4)),
    sample("cat along the last", lambda F, x, y: F.cat((x, y, x), dim=-1), M, distinct_floats(3, 1)),
    sample("cat of types", lambda F, x, n: F.cat([x, n]), V, distinct_ints(3, high=5)),
    sample("cat passes over nothing", lambda F, x: F.cat([x[:0].flatten(), x]), M),
    sample("concat", lambda F, x, y: F.concat([x, y], 0), V, distinct_floats(2)),
    sample("stack", lambda F, x, y: F.stack([x, y]), M, distinct_floats(3, 4, seed=1)),
    sample("stack at the end", lambda F, x, y: F.stack((x, y, x), dim=-1), V, distinct_floats(5, seed=1)),
    sample("hstack", lambda F, x, y: F.hstack([x, y]), M, distinct_floats(3, 2)),
    sample("hstack of lines", lambda F, x, y: F.hstack([x, y]), V, distinct_floats(2)),
    sample("vstack", lambda F, x, y: F.vstack([x, y]), M, distinct_floats(4)),
    # --- repeating ---
    sample("repeat", lambda F, x: x.repeat(2, 3), distinct_floats(2, 3)),
    sample("repeat into new dimensions", lambda F, x: x.repeat((2, 1, 2)), distinct_floats(2, 3)),
    sample("repeat once", lambda F, x: x.repeat(1), V),
    sample("tile", lambda F, x: F.tile(x, (2,)), distinct_floats(2, 3)),
    sample("tile into new dimensions", lambda F, x: x.tile(2, 1, 2), distinct_floats(2, 3)),
    sample("tile by keyword", lambda F, x: F.tile(x, dims=(2, 2)), V),
    sample("repeat_interleave", lambda F, x: F.repeat_interleave(x, 2), M),
    sample("repeat_interleave along", lambda F, x: x.repeat_interleave(3, dim=-1), M),
    sample("repeat_interleave by counts", lambda F, x, n: x.repeat_interleave(n, 0), V, distinct_ints(5, high=3)),
    sample("repeat_interleave by one count", lambda F, x, n: x.repeat_interleave(n, 0), V, np.array([2])),
    # --- flipping and rolling ---
    sample("flip", lambda F, x: F.flip(x, (0, -1)), X),
    sample("flip by keyword", lambda F, x: F.flip(x, dims=[1]), M),
    sample("flip along ints", lambda F, x: x.flip(1, 0), M),
    sample("flip along none", lambda F, x: x.flip(()), M),
    sample("fliplr", lambda F, x: F.fliplr(x), M),
    sample("flipud", lambda F, x: x.flipud(), M),
    sample("roll", lambda F, x: F.roll(x, 2), M),
    sample("roll along", lambda F, x: x.roll(-1, 1), M),
    sample("roll along several", lambda F, x: x.roll(shifts=(1, 5), dims=(0, -1)), X),
    sample("roll along one twice", lambda F, x: x.roll((1, 1), (0, 0)), V),
    # --- triangles and diagonals ---
    sample("tril", lambda F, x: F.tril(x), M),
    sample("tril below", lambda F, x: x.tril(-1), X),
    sample("triu", lambda F, x: F.triu(x, diagonal=1), M),
    sample("triu below", lambda F, x: x.triu(-1), X),
    sample("diag of a line", lambda F, x: F.diag(x), V),
    sample("diag of a line, below", lambda F, x: x.diag(-2), V),
    sample("diag of a matrix", lambda F, x: F.diag(x, 1), M),
    sample("diag_embed", lambda F, x: F.diag_embed(x), M),
    sample("diag_embed, given dims", lambda F, x: x.diag_embed(1, 0, 2), M),
    # --- padding ---
    sample("pad", lambda F, x: F.pad(x, (1, 2)), M),
    sample("pad all sides with a scalar", lambda F, x: F.pad(x, (1, 0, 0, 2), value=2.0), M),
    sample("pad and cut", lambda F, x: F.pad(x, (-1, 2, 1, -1)), M),
    *[
        sample(f"pad and cut, {mode}, {cut}", lambda F, x, mode=mode, cut=cut: F.pad(x, cut, mode),
               distinct_floats(1, 2, 5))
        for mode in ("reflect", "replicate", "circular")
        for cut in ((-2, 1), (3, -1), (-1, -2), (-4, 0))
    ],
    sample("pad by nothing", lambda F, x: F.pad(x, ()), M),
    *[
        sample(f"pad, {mode}, {count}d{batch}", call, distinct_floats(*([1] * extra), *shape))
        for mode in ("reflect", "replicate", "circular")
        for count, shape, pads in PADS
        for extra, batch in ((0, ""), (1, ", batched"))
        for call in [lambda F, x, mode=mode, pads=pads: F.pad(x, pads, mode=mode)]
    ],
    sample("pixel_shuffle", lambda F, x: F.pixel_shuffle(x, 2), distinct_floats(2, 8, 3, 2), differs=EMPTY),
    sample("pixel_shuffle of one", lambda F, x: F.pixel_shuffle(x, 3), distinct_floats(9, 1, 2), differs=EMPTY),
    sample("pixel_unshuffle", lambda F, x: F.pixel_unshuffle(x, 2), distinct_floats(2, 3, 4, 2), differs=EMPTY),
    sample("atleast_1d", lambda F, x: F.atleast_1d(x.sum()), x),
    sample("atleast_2d", lambda F, x, y: F.atleast_2d(x.sum(), x, y[0]), x, y),
    *[sample(f"rot90, {k}", lambda F, x, k=k: F.rot90(x, k, [1, 0]), x) for k in (-1, 0, 2, 5)],
    sample("atleast_3d", lambda F, x, v: F.atleast_3d(v.sum(), v, x), x, v),
    sample("atleast_3d of one", lambda F, a: F.atleast_3d(a), a),
    sample("unravel_index", lambda F, n: F.unravel_index(n, (2, 3, 4)), distinct_ints(5, high=24)),
]  # fmt: skip
