"""A variational autoencoder: the reparametrisation trick, and the divergence from a normal distribution."""

import torch
from torch import nn, optim
from torch.nn import functional as F


class VAE(nn.Module):
    def __init__(self, size=64, hidden=20, latent=4):
        super().__init__()
        self.size = size
        self.fc1 = nn.Linear(size, hidden)
        self.fc21 = nn.Linear(hidden, latent)
        self.fc22 = nn.Linear(hidden, latent)
        self.fc3 = nn.Linear(latent, hidden)
        self.fc4 = nn.Linear(hidden, size)

    def encode(self, x):
        h1 = F.relu(self.fc1(x))
        return self.fc21(h1), self.fc22(h1)

    def reparameterize(self, mu, logvar):
        std = torch.exp(0.5 * logvar)
        eps = torch.randn_like(std)
        return mu + eps * std

    def decode(self, z):
        h3 = F.relu(self.fc3(z))
        return torch.sigmoid(self.fc4(h3))

    def forward(self, x):
        mu, logvar = self.encode(x.view(-1, self.size))
        z = self.reparameterize(mu, logvar)
        return self.decode(z), mu, logvar


def loss_function(recon_x, x, mu, logvar):
    BCE = F.binary_cross_entropy(recon_x, x.view(recon_x.shape), reduction="sum")
    KLD = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
    return BCE + KLD


def make():
    return VAE()


def loss_of(model, data):
    recon_batch, mu, logvar = model(data)
    return torch.cat([recon_batch, mu, logvar], dim=1), loss_function(recon_batch, data, mu, logvar)


def train(model, data):
    optimizer = optim.Adam(model.parameters(), lr=1e-3)
    scheduler = optim.lr_scheduler.LambdaLR(optimizer, lr_lambda=lambda epoch: 0.95**epoch)
    train_loss, losses = 0, []
    for _ in range(3):
        model.train()
        optimizer.zero_grad()
        recon_batch, mu, logvar = model(data)
        loss = loss_function(recon_batch, data, mu, logvar)
        loss.backward()
        train_loss += loss.item()
        optimizer.step()
        scheduler.step()
        losses.append(loss.item() / len(data))
    with torch.no_grad():
        sample = model.decode(torch.randn(5, 4).to(data.device)).cpu()
    return [*losses, train_loss, *sample.view(5, 1, 8, 8).flatten().tolist()]
