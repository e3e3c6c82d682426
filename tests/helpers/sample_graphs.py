"""Typical graphs of the player's users, for screenshots and browser tests."""

import minigrad as mg
from minigrad import functional as F
from minigrad_viz import draw, tour


def scalars():
    """About thirty nodes: a small network of Values with one input."""
    x, t = [mg.Value(v, f"x{i}") for i, v in enumerate((1.0, -2.0))], 0.5
    net = mg.nn.scalar.MLP([2, 2, 1], seed=0)
    loss = (net(x)[0] - t) ** 2
    loss.label = "loss"
    return loss


def neuron():
    """The one neuron of lesson 1."""
    w, x, b = mg.Value(-2.0, "w"), mg.Value(3.0, "x"), mg.Value(6.0, "b")
    y = (w * x + b).sigmoid()
    y.label = "y"
    return y


def cross_entropy():
    """The tour of lesson 4."""
    s0, s1, s2 = (mg.Value(0.0, name) for name in ("s0", "s1", "s2"))
    loss = (s0.exp() + s1.exp() + s2.exp()).log() - s0
    loss.label = "loss"
    stops = [
        (loss, "Forward is done: three equal scores, and a loss of ln 3."),
        ("seed", "Backward begins: the gradient of the loss itself is 1."),
        (("s0", "loss"), "The minus sign: −1 arrives at the right score. “Push it up!”"),
        (("s2", "backward"), "By the logarithm and the power, ⅓ arrives at a wrong score: its probability."),
        (("s0", "backward"), "The right score has got ⅓ as well, its probability, and −1: together −⅔."),
    ]
    return tour(loss, stops)


def values():
    """About two hundred Values: a network of three layers, and its loss."""
    x = [mg.Value(v, f"x{i}") for i, v in enumerate((0.5, -1.0, 0.8))]
    loss = (mg.nn.scalar.MLP([3, 7, 5, 1], seed=0)(x)[0] - 0.5) ** 2
    loss.label = "loss"
    return loss


def expression():
    """A dozen nodes, one of them used twice."""
    a, b, c = mg.Value(2.0, "a"), mg.Value(-3.0, "b"), mg.Value(10.0, "c")
    d = a * b
    d.label = "d"
    e = d + c
    e.label = "e"
    y = (e * a).tanh() + a
    y.label = "y"
    return y


def not_a_number():
    """A logarithm of a negative value, and the NaNs that follow."""
    a, b = mg.Value(2.0, "a"), mg.Value(3.0, "b")
    y = (a - b).log() * b + a
    y.label = "y"
    return y


def signs():
    """Gradients of both signs, a gradient of 0, and a dead unit, which raises an alarm."""
    x, w, v, b, c = (mg.Value(d, n) for n, d in {"x": 2.0, "w": -3.0, "v": 1.5, "b": 1.0, "c": 0.5}.items())
    dead = (w * x + b).relu()
    dead.label = "h"
    y = (v * x - c).tanh() - dead * c - x
    y.label = "y"
    return y


def large():
    """Two thousand nodes, more than the player draws in SVG."""
    y = mg.Value(1.0, "x")
    for _ in range(500):
        y = y * 0.5 + y * 0.4
    return y


def mlp():
    """Two layers on tensors, in scopes."""
    mg.manual_seed(0)
    w1, w2 = mg.randn(4, 6, requires_grad=True), mg.randn(6, 3, requires_grad=True)
    b1 = mg.zeros(6, requires_grad=True)
    with mg.record():
        x = mg.randn(8, 4)
        with mg.scope("hidden"):
            h = (x @ w1 + b1).tanh()
        with mg.scope("out"):
            o = h @ w2
        loss = F.cross_entropy(o, mg.tensor([0, 1, 2, 0, 1, 2, 0, 1]))
    return loss


def transformer():
    """One block of a transformer, in nested scopes."""
    mg.manual_seed(0)
    width = 8
    shapes = dict.fromkeys(("wq", "wk", "wv", "wo"), (width, width)) | {"w1": (width, 32), "w2": (32, width)}
    p = {name: mg.randn(*shape).mul(0.3).detach().requires_grad_() for name, shape in shapes.items()}
    with mg.record(lines=True):
        x = mg.randn(6, width)
        with mg.scope("block0"):
            with mg.scope("attention"):
                q, k, v = x @ p["wq"], x @ p["wk"], x @ p["wv"]
                with mg.scope("scores"):
                    s = (q @ k.mT) / (width**0.5)
                    weights = F.softmax(s, -1)
                x = x + (weights @ v) @ p["wo"]
            with mg.scope("mlp"):
                x = x + F.gelu(F.layer_norm(x, (width,)) @ p["w1"]) @ p["w2"]
        loss = (x * x).mean()
    return loss


def cnn():
    """A network for the 8x8 digits, drawn with `draw(model, x)`."""
    nn = mg.nn
    mg.manual_seed(0)
    first = nn.Sequential(nn.Conv2d(1, 16, 3, padding=1), nn.BatchNorm2d(16), nn.ReLU(), nn.MaxPool2d(2))
    second = nn.Sequential(nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2))
    return draw(nn.Sequential(first, second, nn.Flatten(), nn.Linear(128, 10)), mg.data.digits().test_x[:2])


class Gpt(mg.nn.Module):
    """A small decoder that shares its embedding's weight with the output projection."""

    def __init__(self, layers=3):
        super().__init__()
        nn = mg.nn
        self.tokens, self.positions = nn.Embedding(27, 16), nn.Embedding(8, 16)
        self.blocks = nn.ModuleList(
            [nn.TransformerEncoderLayer(16, 4, 32, 0.0, batch_first=True, norm_first=True) for _ in range(layers)]
        )
        self.norm, self.head = nn.LayerNorm(16), nn.Linear(16, 27, bias=False)
        self.head.weight = self.tokens.weight

    def forward(self, tokens):
        count = tokens.shape[1]
        mask = mg.nn.Transformer.generate_square_subsequent_mask(count)
        x = self.tokens(tokens) + self.positions(mg.arange(count))
        for block in self.blocks:
            x = block(x, mask)
        return self.head(self.norm(x))


def gpt():
    """A language model of three layers."""
    mg.manual_seed(0)
    return draw(Gpt(), mg.tensor([[1, 2, 3, 4]]))


def captured_step():
    """A training step that `mg.jit` captured."""
    mg.manual_seed(0)
    model = mg.nn.Sequential(mg.nn.Linear(8, 16), mg.nn.ReLU(), mg.nn.Linear(16, 3))
    optimizer = mg.optim.SGD(model.parameters(), lr=0.1)

    @mg.jit
    def step(x, t):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), t)
        loss.backward()
        optimizer.step()
        return loss

    for _ in range(3):
        step(mg.randn(16, 8), mg.tensor([0, 1, 2, 0] * 4))
    return draw(step)


def broken_model():
    """A convolution that receives too few channels."""
    nn = mg.nn
    return draw(nn.Sequential(nn.Conv2d(1, 4, 3), nn.ReLU(), nn.Conv2d(8, 4, 3)), mg.ones(1, 1, 8, 8))
