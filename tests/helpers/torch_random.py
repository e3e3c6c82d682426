"""Random PyTorch programs: 10 to 60 calls on small tensors, with views, in-place writes and parts without grad."""

import random

__all__ = ["random_program"]

SHAPES = [(3, 4), (4,), (2, 3, 4), (3, 1), (4, 3), ()]
UNARY = [
    "relu",
    "tanh",
    "sigmoid",
    "sin",
    "cos",
    "neg",
    "abs",
    "square",
    "exp",
    "gelu",
    "softplus",
    "silu",
    "elu",
    "leaky_relu",
    "softsign",
]
BINARY = ["add", "sub", "mul", "div", "maximum", "minimum", "pow", "atan2"]


def random_program(seed):
    """Return a function of `torch` that runs program `seed` and returns its loss and its leaves; every call returns the
    same values.
    """

    def run(torch):
        rng = random.Random(seed)
        torch.manual_seed(seed)
        state = _Program(torch, rng)
        for _ in range(rng.randint(10, 60)):
            state.add_call()
        return state.loss(), state.leaves

    return run


class _Program:
    def __init__(self, torch, rng):
        self.torch, self.rng, self.functional = torch, rng, torch.nn.functional
        self.leaves = [torch.randn(rng.choice(SHAPES), requires_grad=True) for _ in range(rng.randint(2, 4))]
        self.pool = [*self.leaves, *(torch.randn(rng.choice(SHAPES)) for _ in range(rng.randint(0, 2)))]

    def add_call(self):
        """Run one random call, if it accepts the tensors that were drawn, and keep its results."""
        kinds = [self.unary] * 3 + [self.binary] * 3 + [self.view] * 3 + [self.in_place] * 2
        kinds += [self.reduce, self.join, self.several, self.layer, self.select, self.without_grad, self.custom]
        try:
            results = self.rng.choice(kinds)(self.rng.choice(self.pool))
        except (RuntimeError, IndexError, ValueError):
            return  # shapes that do not fit
        for x in results if isinstance(results, (list, tuple)) else [results]:
            if isinstance(x, self.torch.Tensor) and x.is_floating_point() and 0 < x.numel() <= 100:
                self.pool.append(x)

    def unary(self, x):
        name = self.rng.choice(UNARY)
        x = x.clamp(-3, 3) if name == "exp" else x
        return getattr(self.functional, name)(x) if hasattr(self.functional, name) else getattr(self.torch, name)(x)

    def binary(self, x):
        name, other = self.rng.choice(BINARY), self.rng.choice([*self.pool, 2.0, -0.5])
        if name == "pow":
            return x.abs() ** (self.rng.choice([2, 0.5, 3]))
        if isinstance(other, float):
            return x * other if name == "mul" else other - x
        return x @ other if self.rng.random() < 0.2 else getattr(self.torch, name)(x, other)

    def view(self, x):
        return self.rng.choice(
            [
                lambda: x.transpose(0, -1),
                lambda: x.reshape(-1),
                lambda: x.view(-1, x.shape[-1]),
                lambda: x.unsqueeze(self.rng.choice([0, -1])),
                lambda: x.squeeze(),
                lambda: x[..., 1:],
                lambda: x[0],
                lambda: x[..., ::2],
                lambda: x.expand(2, *x.shape),
                lambda: x.flatten(),
                lambda: x.t(),
                lambda: x.detach(),
                lambda: x.clone(),
                lambda: x.diagonal(),
                lambda: x.contiguous(),
            ]
        )()

    def in_place(self, x):
        if x.is_leaf and x.requires_grad:
            x = x * 1.0
            self.pool.append(x)
        other = self.rng.choice(self.pool)

        def write_to_view():
            x[..., 0] = 0.5

        def write_tensor_to_view():
            x.view(-1)[1:3] = other.reshape(-1)[:2]

        self.rng.choice(
            [
                lambda: x.add_(other),
                lambda: x.mul_(2.0),
                lambda: x.relu_(),
                lambda: x.copy_(other),
                lambda: x.zero_(),
                lambda: x.t().add_(1.0),
                lambda: x.view(-1)[:2].mul_(other.reshape(-1)[0]),
                lambda: x.masked_fill_(x > 0.5, 0.25),
                write_to_view,
                write_tensor_to_view,
            ]
        )()
        return x

    def reduce(self, x):
        dim = self.rng.choice([0, -1])
        return self.rng.choice(
            [
                lambda: x.sum(dim),
                lambda: x.mean(dim, keepdim=True),
                lambda: x.amax(dim),
                lambda: x.logsumexp(dim),
                lambda: x.cumsum(dim),
                lambda: x.std(),
                lambda: x.prod(dim),
                lambda: x.norm(),
                lambda: x.max(dim).values,
            ]
        )()

    def join(self, x):
        others = [y for y in self.pool if y.shape == x.shape][:3]
        return self.rng.choice([self.torch.cat, self.torch.stack])([x, *others], 0)

    def several(self, x):
        return self.rng.choice(
            [
                lambda: x.chunk(2, -1),
                lambda: x.unbind(0),
                lambda: x.split(1, -1),
                lambda: self.torch.max(x, -1),
                lambda: x.sort(-1),
                lambda: x.topk(1),
                lambda: self.torch.var_mean(x),
                lambda: self.torch.frexp(x.detach()),
            ]
        )()

    def layer(self, x):
        functional = self.functional
        weight = self.rng.choice([y for y in self.pool if y.ndim == 2] or [x])
        return self.rng.choice(
            [
                lambda: functional.softmax(x, -1),
                lambda: functional.log_softmax(x, 0),
                lambda: functional.layer_norm(x, x.shape[-1:]),
                lambda: functional.linear(x, weight),
                lambda: functional.dropout(x, 0.5),
                lambda: functional.cross_entropy(x, self.torch.zeros(x.shape[0], dtype=self.torch.int64)),
                lambda: functional.mse_loss(x, x.detach() + 1),
                lambda: functional.scaled_dot_product_attention(x, x, x),
                lambda: functional.normalize(x, dim=-1),
            ]
        )()

    def select(self, x):
        torch = self.torch
        return self.rng.choice(
            [
                lambda: torch.where(x > 0, x, x * 0.1),
                lambda: x[torch.tensor([0, 0])],
                lambda: x.index_select(0, torch.tensor([0])),
                lambda: x.gather(-1, torch.zeros_like(x, dtype=torch.int64)),
                lambda: x.masked_fill(x < 0, 1.0),
                lambda: x.clamp(-1, 1),
                lambda: x[x > 0],
                lambda: torch.roll(x, 1),
                lambda: torch.tril(x),
            ]
        )()

    def without_grad(self, x):
        with self.torch.no_grad():
            y = x * 2
            if self.rng.random() < 0.5:
                y.view(-1)[:1].add_(1)
        return y if self.rng.random() < 0.5 else x * y

    def custom(self, x):
        torch = self.torch

        class Scaled(torch.autograd.Function):
            @staticmethod
            def forward(ctx, a, factor, b):
                ctx.save_for_backward(a, b)
                ctx.factor = factor
                return a * b * factor

            @staticmethod
            def backward(ctx, grad):
                a, b = ctx.saved_tensors
                return grad * b * ctx.factor, None, (grad * a * ctx.factor).sum_to_size(b.shape)

        others = [y for y in self.pool if y.shape == x.shape]
        return Scaled.apply(x, 3.0, self.rng.choice(others))

    def loss(self):
        outputs = self.rng.sample(self.pool, min(len(self.pool), 4)) + self.pool[-1:]
        total = sum(leaf.sum() for leaf in self.leaves) * 0.125
        for x in outputs:
            try:
                total = total + self.torch.nan_to_num(x, 0.0, 1.0, -1.0).mean()
            except RuntimeError:  # an output of split that was modified in-place
                continue
        return total
