"""PyTorch networks for benchmarks: ResNet-18, and GPT-2 with 124 million parameters. Each returns a loss function."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.nn import functional

__all__ = ["gpt2", "resnet18"]


class ResidualBlock(nn.Module):
    """Two convolutions and a shortcut; see He et al., "Deep Residual Learning for Image Recognition" (2015)."""

    def __init__(self, inputs: int, outputs: int, stride: int) -> None:
        super().__init__()
        self.conv1, self.bn1 = nn.Conv2d(inputs, outputs, 3, stride, 1, bias=False), nn.BatchNorm2d(outputs)
        self.conv2, self.bn2 = nn.Conv2d(outputs, outputs, 3, 1, 1, bias=False), nn.BatchNorm2d(outputs)
        self.shortcut = nn.Sequential()
        if stride != 1:
            self.shortcut = nn.Sequential(nn.Conv2d(inputs, outputs, 1, stride, bias=False), nn.BatchNorm2d(outputs))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = functional.relu(self.bn1(self.conv1(x)), inplace=True)
        return functional.relu(self.bn2(self.conv2(y)) + self.shortcut(x))


def resnet18() -> tuple[nn.Module, Callable[[], torch.Tensor]]:
    """Return ResNet-18 and a function that computes its loss on eight images of 224 x 224 pixels."""
    stages: list[nn.Module] = []
    inputs = 64
    for outputs in (64, 128, 256, 512):
        first = ResidualBlock(inputs, outputs, 1 if outputs == 64 else 2)
        stages.append(nn.Sequential(first, ResidualBlock(outputs, outputs, 1)))
        inputs = outputs
    stem = [nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)]
    model = nn.Sequential(*stem, *stages, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(512, 1000))
    images, labels = torch.randn(8, 3, 224, 224), torch.arange(8)
    return model, lambda: functional.cross_entropy(model(images), labels)


class TransformerBlock(nn.Module):
    """Causal self-attention and a perceptron; see Radford et al., "Language Models are Unsupervised Multitask Learners"
    (2019).
    """

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads = heads
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.qkv, self.proj = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.mlp = nn.Sequential(nn.Linear(width, 4 * width), nn.GELU(approximate="tanh"), nn.Linear(4 * width, width))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, time, width = x.shape
        parts = self.qkv(self.ln_1(x)).split(width, 2)
        q, k, v = (part.view(batch, time, self.heads, width // self.heads).transpose(1, 2) for part in parts)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.proj(y.transpose(1, 2).reshape(batch, time, width))
        return x + self.mlp(self.ln_2(x))


class GPT2(nn.Module):
    """GPT-2 small: 12 layers, 768 channels, 12 heads, and an embedding that is also the output layer."""

    def __init__(self, words: int = 50_257, context: int = 1024, width: int = 768, layers: int = 12) -> None:
        super().__init__()
        self.wte, self.wpe = nn.Embedding(words, width), nn.Embedding(context, width)
        self.h = nn.Sequential(*(TransformerBlock(width, 12) for _ in range(layers)))
        self.ln_f, self.head = nn.LayerNorm(width), nn.Linear(width, words, bias=False)
        self.head.weight = self.wte.weight

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        x = self.wte(tokens) + self.wpe(torch.arange(tokens.shape[1]))
        logits: Any = self.head(self.ln_f(self.h(x)))
        return logits


def gpt2() -> tuple[nn.Module, Callable[[], torch.Tensor]]:
    """Return GPT-2 small and a function that computes its loss on two sequences of 128 tokens."""
    model = GPT2()
    tokens = torch.randint(50_257, (2, 129))
    inputs, targets = tokens[:, :-1], tokens[:, 1:].reshape(-1)
    return model, lambda: functional.cross_entropy(model(inputs).flatten(0, 1), targets)
