"""Forty PyTorch models, each as a function that returns the loss and the parameters: convolutional, recurrent and
attention nets, generative models, higher-order gradients, and what autograd treats specially.
"""

import numpy as np

from torch_programs import PROGRAMS, load_program

__all__ = ["MODELS"]

MODELS = {}
"""By name, a function of `torch`."""


def model(function):
    """Register a model under the name of its function."""
    MODELS[function.__name__] = function
    return function


def _of_program(program):
    def run(torch):
        code = load_program(program.file, "torch")
        net = getattr(code, program.make)()
        data = [torch.tensor(array) for array in program.arrays(np.random.default_rng(3))]
        return code.loss_of(net, *data)[1], list(net.parameters())

    return run


MODELS |= {program.name.replace(" ", "_"): _of_program(program) for program in PROGRAMS}


def _classify(torch, net, x, classes=3):
    """Return the cross entropy of a net's output for fixed classes, and its parameters."""
    target = torch.arange(len(x)) % classes
    return torch.nn.functional.cross_entropy(net(x), target), list(net.parameters())


@model
def perceptron(torch):
    nn = torch.nn
    return _classify(torch, nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 3)), torch.randn(6, 4))


@model
def deep_perceptron_with_dropout(torch):
    nn = torch.nn
    layers = [layer for _ in range(6) for layer in (nn.Linear(8, 8), nn.GELU(), nn.Dropout(0.2))]
    return _classify(torch, nn.Sequential(*layers, nn.Linear(8, 3)), torch.randn(5, 8))


@model
def vgg(torch):
    nn = torch.nn
    features = [
        layer
        for channels in ((3, 8), (8, 12))
        for layer in (nn.Conv2d(*channels, 3, padding=1), nn.BatchNorm2d(channels[1]), nn.ReLU(True), nn.MaxPool2d(2))
    ]
    net = nn.Sequential(*features, nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(48, 3))
    return _classify(torch, net, torch.randn(4, 3, 12, 12))


@model
def depthwise_separable(torch):
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(3, 6, 3, stride=2), nn.ReLU6(), nn.Conv2d(6, 6, 3, groups=6), nn.Hardswish(), nn.Conv2d(6, 3, 1),
        nn.AdaptiveAvgPool2d(1), nn.Flatten(),
    )  # fmt: skip
    return _classify(torch, net, torch.randn(2, 3, 11, 11))


@model
def squeeze_and_excitation(torch):
    nn = torch.nn

    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.conv, self.squeeze, self.excite = nn.Conv2d(3, 8, 3), nn.Linear(8, 2), nn.Linear(2, 8)
            self.head = nn.Linear(8, 3)

        def forward(self, x):
            x = torch.relu(self.conv(x))
            gate = torch.sigmoid(self.excite(torch.relu(self.squeeze(x.mean((2, 3))))))
            return self.head((x * gate[:, :, None, None]).amax((2, 3)))

    return _classify(torch, Block(), torch.randn(3, 3, 7, 7))


@model
def dense_connections(torch):
    nn = torch.nn
    layers = nn.ModuleList([nn.Linear(4 * (k + 1), 4) for k in range(4)])
    x = features = torch.randn(5, 4)
    for layer in layers:
        features = torch.cat([features, torch.relu(layer(features))], 1)
    return (features[:, -4:] - x).square().mean(), list(layers.parameters())


@model
def group_norm_net(torch):
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv2d(2, 8, 3), nn.GroupNorm(4, 8), nn.SiLU(), nn.Conv2d(8, 3, 3), nn.InstanceNorm2d(3, affine=True),
        nn.Flatten(2), nn.AdaptiveMaxPool1d(1), nn.Flatten(),
    )  # fmt: skip
    return _classify(torch, net, torch.randn(3, 2, 8, 8))


@model
def one_dimensional_convolutions(torch):
    nn = torch.nn
    net = nn.Sequential(
        nn.Conv1d(2, 4, 3, dilation=2, padding="same"), nn.LeakyReLU(0.1), nn.AvgPool1d(2), nn.ConvTranspose1d(4, 3, 2),
        nn.Softplus(), nn.Flatten(), nn.LazyLinear(3),
    )  # fmt: skip
    return _classify(torch, net, torch.randn(4, 2, 10))


def _recurrent(kind, **options):
    def run(torch):
        nn = torch.nn
        cell, head = getattr(nn, kind)(3, 5, batch_first=True, **options), nn.LazyLinear(3)
        output, _ = cell(torch.randn(2, 6, 3))
        loss = nn.functional.cross_entropy(head(output[:, -1]), torch.tensor([0, 2]))
        return loss, [*cell.parameters(), *head.parameters()]

    return run


MODELS["rnn"] = _recurrent("RNN")
MODELS["gru_bidirectional"] = _recurrent("GRU", bidirectional=True)
MODELS["lstm_two_layers"] = _recurrent("LSTM", num_layers=2)


@model
def lstm_cell_loop(torch):
    cell, head = torch.nn.LSTMCell(2, 4), torch.nn.Linear(4, 1)
    h, c = torch.zeros(3, 4), torch.zeros(3, 4)
    loss = 0
    for x in torch.randn(5, 3, 2):
        h, c = cell(x, (h, c))
        loss = loss + head(h).square().mean()
    return loss, [*cell.parameters(), *head.parameters()]


@model
def sequence_to_sequence_with_attention(torch):
    nn = torch.nn
    encoder, decoder, head = nn.GRU(3, 4), nn.GRUCell(3, 4), nn.Linear(8, 2)
    memory, state = encoder(torch.randn(5, 2, 3))
    state, loss = state[0], 0
    for x in torch.randn(3, 2, 3):
        state = decoder(x, state)
        weights = torch.softmax(torch.einsum("tbh,bh->bt", memory, state), -1)
        context = torch.einsum("bt,tbh->bh", weights, memory)
        loss = loss + head(torch.cat([state, context], -1)).logsumexp(-1).mean()
    return loss, [*encoder.parameters(), *decoder.parameters(), *head.parameters()]


@model
def transformer_encoder(torch):
    nn = torch.nn
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.1, batch_first=True)
    net = nn.TransformerEncoder(layer, 2)
    x = torch.randn(2, 5, 8)
    mask = torch.zeros(2, 5, dtype=torch.bool)
    mask[1, 3:] = True
    return net(x, src_key_padding_mask=mask).square().mean(), list(net.parameters())


@model
def transformer_decoder(torch):
    nn = torch.nn
    net = nn.TransformerDecoder(nn.TransformerDecoderLayer(8, 2, 16, dropout=0.0, norm_first=True), 2)
    causal = nn.Transformer.generate_square_subsequent_mask(4)
    output = net(torch.randn(4, 2, 8), torch.randn(6, 2, 8), tgt_mask=causal)
    return output.tanh().mean(), list(net.parameters())


@model
def vision_transformer(torch):
    nn = torch.nn

    class ViT(nn.Module):
        def __init__(self):
            super().__init__()
            self.patch = nn.Conv2d(3, 8, 4, stride=4)
            self.token, self.position = nn.Parameter(torch.randn(1, 1, 8)), nn.Parameter(torch.randn(1, 5, 8))
            self.attention, self.norm, self.head = nn.MultiheadAttention(8, 2), nn.LayerNorm(8), nn.Linear(8, 3)

        def forward(self, x):
            x = self.patch(x).flatten(2).transpose(1, 2)
            x = torch.cat([self.token.expand(len(x), -1, -1), x], 1) + self.position
            y = self.norm(x).transpose(0, 1)
            x = x + self.attention(y, y, y, need_weights=False)[0].transpose(0, 1)
            return self.head(x[:, 0])

    return _classify(torch, ViT(), torch.randn(2, 3, 8, 8))


@model
def rotary_attention_with_shared_embedding(torch):
    nn = torch.nn
    embedding, query, value = nn.Embedding(7, 8), nn.Linear(8, 8, bias=False), nn.Linear(8, 8, bias=False)
    tokens = torch.tensor([[1, 2, 3, 1], [4, 0, 6, 6]])
    x = embedding(tokens)
    q = query(x).view(2, 4, 2, 4).transpose(1, 2)
    angle = torch.arange(4.0)[:, None] * torch.tensor([1.0, 0.1])
    rotation = torch.polar(torch.ones_like(angle), angle)
    q = torch.view_as_real(torch.view_as_complex(q.reshape(2, 2, 4, 2, 2)) * rotation).flatten(3)
    v = value(x).view(2, 4, 2, 4).transpose(1, 2)
    y = nn.functional.scaled_dot_product_attention(q, q, v, is_causal=True).transpose(1, 2).reshape(2, 4, 8)
    loss = nn.functional.cross_entropy((y @ embedding.weight.T).view(-1, 7), tokens.view(-1))
    return loss, [embedding.weight, query.weight, value.weight]


@model
def mixture_of_experts(torch):
    nn = torch.nn
    router, experts = nn.Linear(4, 3), nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
    x = torch.randn(6, 4)
    weights, chosen = torch.softmax(router(x), -1).topk(2)
    output = torch.zeros_like(x)
    for k, expert in enumerate(experts):
        rows, slot = (chosen == k).nonzero(as_tuple=True)
        output.index_add_(0, rows, expert(x[rows]) * weights[rows, slot, None])
    return output.square().sum(), [*router.parameters(), *experts.parameters()]


@model
def graph_convolution(torch):
    nn = torch.nn
    first, second = nn.Linear(3, 5), nn.Linear(5, 2)
    edges = torch.tensor([[0, 1, 2, 3, 0], [1, 2, 3, 0, 2]])
    x = torch.randn(4, 3)
    for layer in (first, second):
        messages = layer(x)[edges[0]]
        x = torch.zeros(4, messages.shape[1]).scatter_add(0, edges[1][:, None].expand_as(messages), messages).relu()
    return x.std() + x.amax(), [*first.parameters(), *second.parameters()]


@model
def gan_step(torch):
    nn = torch.nn
    generator = nn.Sequential(nn.Linear(2, 6), nn.ReLU(), nn.Linear(6, 3))
    critic = nn.Sequential(nn.utils.spectral_norm(nn.Linear(3, 6)), nn.LeakyReLU(0.2), nn.Linear(6, 1))
    real, fake = torch.randn(4, 3), generator(torch.randn(4, 2))
    bce = nn.functional.binary_cross_entropy_with_logits
    critic_loss = bce(critic(real), torch.ones(4, 1)) + bce(critic(fake.detach()), torch.zeros(4, 1))
    return critic_loss + bce(critic(fake), torch.ones(4, 1)), [*generator.parameters(), *critic.parameters()]


@model
def wasserstein_gradient_penalty(torch):
    nn = torch.nn
    critic = nn.Sequential(nn.Linear(3, 6), nn.Tanh(), nn.Linear(6, 1))
    x = torch.randn(4, 3, requires_grad=True)
    (slope,) = torch.autograd.grad(critic(x).sum(), x, create_graph=True)
    return ((slope.norm(dim=1) - 1) ** 2).mean(), [*critic.parameters(), x]


@model
def siren_second_derivative(torch):
    nn = torch.nn
    layers = nn.ModuleList([nn.Linear(1, 8), nn.Linear(8, 8), nn.Linear(8, 1)])
    x = torch.linspace(-1, 1, 7)[:, None].requires_grad_()
    y = layers[2](torch.sin(3 * layers[1](torch.sin(3 * layers[0](x)))))
    (first,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad(first.sum(), x, create_graph=True)
    return ((second + y) ** 2).mean(), [*layers.parameters(), x]


@model
def maml_inner_loop(torch):
    weight, bias = torch.randn(3, 2, requires_grad=True), torch.zeros(3, requires_grad=True)
    x, y = torch.randn(5, 2), torch.randn(5, 3)
    fast = [weight, bias]
    for _ in range(2):
        loss = torch.nn.functional.mse_loss(torch.nn.functional.linear(x, *fast), y)
        grads = torch.autograd.grad(loss, fast, create_graph=True)
        fast = [w - 0.1 * g for w, g in zip(fast, grads, strict=True)]
    return torch.nn.functional.mse_loss(torch.nn.functional.linear(-x, *fast), y), [weight, bias]


@model
def normalizing_flow(torch):
    nn = torch.nn
    nets = nn.ModuleList([nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 4)) for _ in range(3)])
    z, log_det = torch.randn(5, 4), torch.zeros(5)
    for net in nets:
        a, b = z.chunk(2, 1)
        shift, scale = net(a).chunk(2, 1)
        z, log_det = torch.cat([b * scale.tanh().exp() + shift, a], 1), log_det + scale.tanh().sum(1)
    return (0.5 * z.square().sum(1) - log_det).mean(), list(nets.parameters())


@model
def diffusion_step(torch):
    nn = torch.nn
    net = nn.Sequential(nn.Linear(3, 8), nn.SiLU(), nn.Linear(8, 2))
    x, noise, t = torch.randn(6, 2), torch.randn(6, 2), torch.rand(6, 1)
    noisy = (1 - t).sqrt() * x + t.sqrt() * noise
    return nn.functional.huber_loss(net(torch.cat([noisy, t], 1)), noise), list(net.parameters())


@model
def policy_gradient(torch):
    policy, value = torch.nn.Linear(4, 3), torch.nn.Linear(4, 1)
    states, returns = torch.randn(8, 4), torch.randn(8)
    choices = torch.distributions.Categorical(logits=policy(states))
    actions = choices.sample()
    advantage = returns - value(states).squeeze(1)
    loss = -(choices.log_prob(actions) * advantage.detach()).mean() + advantage.square().mean()
    return loss - 0.01 * choices.entropy().mean(), [*policy.parameters(), *value.parameters()]


@model
def contrastive_pairs(torch):
    net = torch.nn.Linear(4, 3)
    a, b = (torch.nn.functional.normalize(net(torch.randn(5, 4)), dim=1) for _ in range(2))
    logits = a @ b.T / 0.1
    target = torch.arange(5)
    entropy = torch.nn.functional.cross_entropy
    return (entropy(logits, target) + entropy(logits.T, target)) / 2, list(net.parameters())


@model
def straight_through_quantizer(torch):
    class Round(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, levels):
            return torch.round(x * levels) / levels

        @staticmethod
        def backward(ctx, grad):
            return grad, None

    encoder, decoder = torch.nn.Linear(3, 2), torch.nn.Linear(2, 3)
    x = torch.randn(4, 3)
    return (decoder(Round.apply(encoder(x), 4)) - x).abs().mean(), [*encoder.parameters(), *decoder.parameters()]


@model
def checkpointed_blocks(torch):
    from torch.utils.checkpoint import checkpoint

    blocks = torch.nn.ModuleList([torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Tanh()) for _ in range(3)])
    x = torch.randn(2, 4)
    for block in blocks:
        x = checkpoint(block, x, use_reentrant=False)
    return x.sum(), list(blocks.parameters())


@model
def mixed_precision(torch):
    net = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 2))
    with torch.autocast("cpu", dtype=torch.bfloat16):
        loss = net(torch.randn(3, 4)).float().square().mean()
    return loss, list(net.parameters())


@model
def in_place_masks_and_views(torch):
    weight = torch.randn(4, 4, requires_grad=True)
    x = torch.randn(3, 4) @ weight
    x[:, 0] *= 2
    x[1].neg_()
    x.T[2].add_(1.0)
    x.masked_fill_(x > 2, 2.0)
    return x.cumsum(1).square().mean(), [weight]


@model
def complex_spectrum(torch):
    signal = torch.randn(8, requires_grad=True)
    filtered = torch.fft.ifft(torch.fft.fft(signal) * torch.exp(1j * torch.linspace(0, 1, 8))).real
    return filtered.square().sum() + torch.linalg.matrix_norm(torch.outer(signal, signal)), [signal]
