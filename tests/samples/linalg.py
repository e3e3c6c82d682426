"""Linear algebra."""

from samples import distinct_floats, sample


def einsum(equation, *shapes, **options):
    inputs = [distinct_floats(*shape, seed=k) for k, shape in enumerate(shapes)]
    return sample(f"einsum {equation!r} of {shapes}", lambda F, *x: F.einsum(equation, *x), *inputs, **options)


def tensordot(dims, *shapes):
    inputs = [distinct_floats(*shape, seed=k) for k, shape in enumerate(shapes)]
    return sample(f"tensordot over {dims} of {shapes}", lambda F, a, b: F.tensordot(a, b, dims=dims), *inputs)


v = distinct_floats(5)
x = distinct_floats(3, 4)
y = distinct_floats(3, 4, seed=1)
square = distinct_floats(3, 3)
column = distinct_floats(3, seed=2)
row = distinct_floats(3, seed=1)
many = distinct_floats(2, 3, 4)
matrices = distinct_floats(2, 4, 3, seed=1)

SAMPLES = [
    sample("matmul", lambda F, a, b: F.matmul(a, b), distinct_floats(3, 4), distinct_floats(4, 2)),
    sample("matmul of vectors", lambda F, a, b: F.matmul(a, b), distinct_floats(3), distinct_floats(3, seed=1)),
    sample(
        "matmul, batched and broadcast", lambda F, a, b: a @ b, distinct_floats(3, 1, 2, 3), distinct_floats(2, 3, 2)
    ),
    sample("mm", lambda F, a, b: F.mm(a, b), distinct_floats(3, 4), distinct_floats(4, 2)),
    sample("bmm", lambda F, a, b: a.bmm(b), distinct_floats(3, 2, 4), distinct_floats(3, 4, 2)),
    sample("mv", lambda F, a, b: a.mv(b), distinct_floats(3, 4), distinct_floats(4)),
    sample("dot", lambda F, a, b: a.dot(b), distinct_floats(3), distinct_floats(3, seed=1)),
    sample("vdot", lambda F, a, b: a.vdot(b), distinct_floats(3), distinct_floats(3, seed=1)),
    sample("inner", lambda F, a, b: F.inner(a, b), distinct_floats(3, 4), distinct_floats(2, 4)),
    sample("inner of vectors", lambda F, a, b: a.inner(b), distinct_floats(3), distinct_floats(3, seed=1)),
    sample("inner of a scalar", lambda F, a, b: F.inner(a, b), distinct_floats(2, 3), distinct_floats()),
    sample("outer", lambda F, a, b: F.outer(a, b), distinct_floats(3), distinct_floats(2)),
    sample("trace", lambda F, a: F.trace(a), distinct_floats(3, 3)),
    sample("trace, oblong", lambda F, a: a.trace(), distinct_floats(3, 4)),
    sample(
        "addmm", lambda F, c, a, b: F.addmm(c, a, b), distinct_floats(2), distinct_floats(3, 4), distinct_floats(4, 2)
    ),
    sample(
        "addmm, beta and alpha",
        lambda F, c, a, b: c.addmm(a, b, beta=2, alpha=3),
        distinct_floats(3, 2),
        distinct_floats(3, 4),
        distinct_floats(4, 2),
    ),
    sample(
        "addmm, beta 0",
        lambda F, c, a, b: c.addmm(a, b, beta=0),
        distinct_floats(3, 2),
        distinct_floats(3, 4),
        distinct_floats(4, 2),
    ),
    sample(
        "addbmm",
        lambda F, x, a, b: F.addbmm(x, a, b, beta=2, alpha=3),
        distinct_floats(3, 2),
        distinct_floats(2, 3, 4),
        distinct_floats(2, 4, 2, seed=1),
    ),
    sample("addr", lambda F, x, v, w: x.addr(v, w), distinct_floats(3, 4), distinct_floats(3), distinct_floats(4)),
    sample(
        "addmv",
        lambda F, c, a, b: F.addmv(c, a, b, alpha=2),
        distinct_floats(3),
        distinct_floats(3, 4),
        distinct_floats(4),
    ),
    sample(
        "baddbmm",
        lambda F, c, a, b: F.baddbmm(c, a, b),
        distinct_floats(2, 1),
        distinct_floats(3, 2, 4),
        distinct_floats(3, 4, 1),
    ),
    sample(
        "linear", lambda F, x, w, b: F.linear(x, w, b), distinct_floats(3, 4), distinct_floats(2, 4), distinct_floats(2)
    ),
    sample("linear without a bias", lambda F, x, w: F.linear(x, w), distinct_floats(3, 4), distinct_floats(2, 4)),
    sample(
        "linear of batches",
        lambda F, x, w, b: F.linear(x, w, b),
        distinct_floats(2, 3, 4),
        distinct_floats(2, 4),
        distinct_floats(2),
    ),
    sample(
        "linear of a vector",
        lambda F, x, w, b: F.linear(x, w, b),
        distinct_floats(4),
        distinct_floats(2, 4),
        distinct_floats(2),
    ),
    sample(
        "linear, one bias",
        lambda F, x, w, b: F.linear(x, w, b),
        distinct_floats(3, 4),
        distinct_floats(2, 4),
        distinct_floats(1),
    ),
    sample("linear, one output", lambda F, x, w: F.linear(x, w), distinct_floats(3, 4), distinct_floats(4)),
    einsum("ij,jk->ik", (3, 4), (4, 2)),
    einsum("ij,jk", (3, 4), (4, 2)),
    einsum("bhqd,bhkd->bhqk", (2, 2, 2, 3), (2, 2, 2, 3)),
    einsum("i,j->ij", (3,), (4,)),
    einsum("ij,ij->ij", (3, 4), (3, 4)),
    einsum("ij,ij->", (3, 4), (3, 4)),
    einsum("bi,bi->b", (3, 4), (3, 4)),
    einsum("ij,k->ik", (3, 4), (2,)),
    einsum("ij,jk->ki", (3, 4), (4, 2)),
    einsum("abc,cbd->dab", (3, 2, 3), (3, 2, 2)),
    einsum("ij->ji", (3, 4)),
    einsum("ba", (3, 4)),
    einsum("ij->", (3, 4)),
    einsum(" i j -> j ", (3, 4)),
    einsum("ij->ij", (3, 4)),
    einsum("ii", (3, 3)),
    einsum("ii->i", (3, 3)),
    einsum("iii->i", (3, 3, 3)),
    einsum("iji->j", (3, 2, 3)),
    einsum("ii,i->i", (3, 3), (3,)),
    einsum("...ij,...jk->...ik", (3, 1, 2, 3), (2, 3, 2)),
    einsum("...i,...i->...", (3, 4), (4,)),
    einsum("...", (3, 4)),
    einsum("i...->...", (3, 4)),
    einsum("...i->i", (3, 4)),
    einsum("...i,...j", (4, 2), (3, 1, 3)),
    einsum("ij,jk->ik", (3, 4), (1, 2)),
    einsum("ij,jk->ijk", (3, 1), (4, 2)),
    einsum("ij,jk,kl->il", (3, 4), (4, 2), (2, 3)),
    einsum("i,ij,j->", (3,), (3, 4), (4,)),
    einsum("i,j,k->kji", (3,), (2,), (2,)),
    einsum("i,i,i->i", (3,), (3,), (3,)),
    einsum("Ab,bA->", (3, 2), (2, 3)),
    sample(
        "einsum of lists",
        lambda F, a, b: F.einsum(a, [0, 1], b, [1, 2], [0, 2]),
        distinct_floats(3, 4),
        distinct_floats(4, 2),
    ),
    sample(
        "einsum of lists with dots",
        lambda F, a, b: F.einsum(a, [..., 0], b, [..., 1]),
        distinct_floats(3, 4),
        distinct_floats(3, 2),
    ),
    sample("einsum of a list", lambda F, a, b: F.einsum("ij,jk", [a, b]), distinct_floats(3, 4), distinct_floats(4, 2)),
    tensordot(1, (3, 4), (4, 2)),
    tensordot(0, (3, 2), (2,)),
    tensordot(2, (2, 3, 4), (3, 4, 2)),
    tensordot(([1], [0]), (3, 4), (4, 2)),
    tensordot(([-1, 0], [0, -1]), (3, 4), (4, 3)),
    tensordot(([0, 2], [1, 0]), (3, 2, 4), (4, 3, 2)),
    sample(
        "bilinear",
        lambda F, x, y, w, b: F.bilinear(x, y, w, b),
        distinct_floats(2),
        distinct_floats(3),
        distinct_floats(4, 2, 3),
        distinct_floats(4),
    ),
    sample(
        "bilinear of batches",
        lambda F, x, y, w: F.bilinear(x, y, w),
        *(distinct_floats(2, 3, 2), distinct_floats(2, 3, 4, seed=1), distinct_floats(1, 2, 4)),
    ),
    sample("kron", lambda F, x, y: F.kron(x, y), distinct_floats(2, 3), distinct_floats(3, 2)),
    sample(
        "kron of a row and more",
        lambda F, x, y: F.kron(x, y),
        distinct_floats(3),
        distinct_floats(2, 2, 2),
        differs={"transposed": "PyTorch refuses to view it"},
    ),
    sample("vander", lambda F, v: F.vander(v.detach(), 4), v),  # PyTorch overwrites what its rule needs
    sample("vander, increasing", lambda F, v: F.vander(v, increasing=True), v, parity=False),
    sample("ger", lambda F, v, w: F.ger(v, w), v, distinct_floats(3)),
    sample("chain_matmul", lambda F, x, y, z: F.chain_matmul(x, y, z), x, distinct_floats(4, 2), distinct_floats(2, 3)),
    sample(
        "cross",
        lambda F, x, y: F.cross(x, y, dim=0),
        x,
        y,
        differs={"broadcast": "zeros differ by rounding errors"},
    ),
    sample(
        "cross along the last", lambda F, x, y: x.cross(y, -1), distinct_floats(2, 3), distinct_floats(2, 3, seed=1)
    ),
    sample("addmm_", lambda F, c, a: c.clone().addmm_(a, c, beta=2, alpha=3), square, square),
    sample("addmv_", lambda F, c, a, b: c.clone().addmv_(a, b), row, square, column),
    sample("addr_", lambda F, c, a, b: c.clone().addr_(a, b), square, row, column),
    sample("addbmm_", lambda F, c, a, b: c.clone().addbmm_(a, b), square, many, matrices),
    sample("baddbmm_", lambda F, c, a, b: c.clone().baddbmm_(a, b), distinct_floats(2, 3, 3), many, matrices),
]
