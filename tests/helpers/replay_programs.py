"""Programs whose graphs a drawing recomputes; each returns its loss and its variables."""

import minigrad as mg

nn, F = mg.nn, mg.functional


def leaf(*values):
    return mg.tensor(list(values), requires_grad=True)


class SinCos(mg.autograd.Function):
    @staticmethod
    def forward(ctx, x, by, sizes):
        ctx.save_for_backward(x)
        ctx.by = by
        return x.sin() * by, x.cos()

    @staticmethod
    def backward(ctx, g, h):
        (x,) = ctx.saved_tensors
        return g * x.cos() * ctx.by - h * x.sin(), None, None


class Cube(mg.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3.0 * x * x


def mlp():
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3))
    x, t = mg.randn(5, 4), mg.tensor([0, 1, 2, 0, 1])
    loss = F.cross_entropy(model(x), t)
    return loss, locals()


def cnn():
    convolution = [nn.Conv2d(1, 4, 3, padding=1), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2)]
    model = nn.Sequential(*convolution, nn.Flatten(), nn.Linear(64, 10))
    x, t = mg.randn(6, 1, 8, 8), mg.tensor([0, 1, 2, 3, 4, 5])
    logits = model(x)
    loss = F.cross_entropy(logits, t)
    del convolution
    return loss, locals()


def transformer():
    layer = nn.TransformerEncoderLayer(8, 2, 16, 0.1, batch_first=True)
    x, mask = mg.randn(2, 5, 8), nn.Transformer.generate_square_subsequent_mask(5)
    y = layer(x, mask)
    loss = (y * y).mean()
    return loss, locals()


def recurrent():
    """An LSTM, step by step; the one of `nn` is a single operation unless it is recorded."""
    from_input, from_state, x = nn.Linear(3, 16), nn.Linear(4, 16), mg.randn(5, 2, 3)
    h = c = mg.zeros(2, 4)
    outputs = []
    for k in range(5):
        i, f, g, o = (from_input(x[k]) + from_state(h)).chunk(4, 1)
        c = f.sigmoid() * c + i.sigmoid() * g.tanh()
        h = o.sigmoid() * c.tanh()
        outputs.append(h)
    loss = mg.stack(outputs).sum() + h.sum()
    return loss, locals()


def embedding_and_indexing():
    table, index = nn.Embedding(10, 4), mg.tensor([[1, 2], [3, 1]])
    e = table(index)
    part = e[:, 0] * e[:, -1, :]
    loss = (part[mg.tensor([1, 0, 1])].sum(1) ** 2).sum()
    return loss, locals()


def in_place_and_views():
    w, b = mg.randn(3, requires_grad=True), mg.zeros(2, 3)
    b[0] = w * 2.0
    b[1].add_(w.exp())
    b.mul_(3.0)
    c = w * 1.5
    c += 1.0
    c[1:] *= 2.0
    c.view(3, 1).mul_(w.detach().view(3, 1))
    total = mg.zeros(())
    total += c.sum()
    double = w + 0.0
    double.add_(mg.ones(3, dtype=mg.float64))  # computed in float64, stored as float32
    loss = b.sum() + (c.exp() * b[1]).sum() + total + double.sum()
    return loss, locals()


def strides():
    x = mg.randn(4, 4, requires_grad=True)
    y = x.t() * 2.0
    z = y.as_strided((3, 3), (1, 4))
    loss = (z.diagonal() ** 2).sum() + y.unfold(0, 2, 1).sum() + x.expand(2, 4, 4).permute(2, 0, 1).flip(0).sum()
    return loss, locals()


def several_outputs():
    x = mg.randn(3, 4, requires_grad=True)
    values, order = x.sort(1)
    maximum = x.max(0)
    a, b, c = values[:, :3].unbind(1)
    loss = (a * b).sum() + c.sum() + maximum.values.sum()
    return loss, locals()


def functions():
    x = mg.randn(3, requires_grad=True)
    s, c = SinCos.apply(x, 2.0, (1, 2))
    loss = (s * c).sum() + Cube.apply(c).sum()
    return loss, locals()


def dropout():
    model, x = nn.Sequential(nn.Linear(4, 8), nn.Dropout(0.5), nn.Linear(8, 1)), mg.ones(2, 4)
    loss = F.dropout2d(model(x).view(2, 1, 1, 1)).sum()
    return loss, locals()


def float64():
    w, x = mg.randn(3, 3, dtype=mg.float64, requires_grad=True), mg.ones(3, dtype=mg.float32)
    loss = ((w @ x.double()).tanh().to(mg.float32) * x).sum()
    return loss, locals()


def backward_hooks():
    layer, x = nn.Linear(2, 2), mg.ones(1, 2, requires_grad=True)
    layer.register_full_backward_hook(lambda *_: None)
    loss = layer(x).sum()
    return loss, locals()


def second_derivative():
    x = leaf(1.0, 2.0)
    (gradient,) = mg.grad((x.exp() * x).sum(), x, create_graph=True)
    loss = (gradient * gradient).sum()
    return loss, locals()


PROGRAMS = [
    *(mlp, cnn, transformer, recurrent, embedding_and_indexing, in_place_and_views, strides, several_outputs),
    *(functions, dropout, float64, backward_hooks, second_derivative),
]
