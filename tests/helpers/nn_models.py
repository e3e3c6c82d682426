"""Nested modules for the tests of `nn.Module`."""

import minigrad as mg
from minigrad import nn


class Block(nn.Module):
    def __init__(self, size):
        super().__init__()
        self.norm = nn.LayerNorm(size)
        self.fc = nn.Linear(size, size)

    def forward(self, x, scale=1.0):
        return x + self.fc(self.norm(x)).relu() * scale


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.blocks = nn.ModuleList([Block(4) for _ in range(2)])
        self.out = nn.Linear(4, 2)
        self.register_buffer("steps", mg.tensor(0))
        self.register_buffer("cache", mg.zeros(3), persistent=False)

    def forward(self, x):
        for block in self.blocks:
            x = block(x)
        return self.out(x)


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(5, 3)
        self.head = nn.Linear(3, 5, bias=False)
        self.head.weight = self.table.weight

    def forward(self, x):
        return self.head(self.table(x))
