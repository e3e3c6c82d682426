"""Simulate how colours look with dichromatic vision."""

__all__ = ["MATRICES", "matvec", "simulate"]

# Matrices for linear RGB from Machado, Oliveira and Fernandes (2009), "A physiologically-based model for simulation
# of color vision deficiency", at full severity.
MATRICES = {
    "all three": [[1, 0, 0], [0, 1, 0], [0, 0, 1]],
    "protanopia": [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]],
    "deuteranopia": [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.01182, 0.04294, 0.968881]],
    "tritanopia": [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.3039]],
}


def matvec(matrix, vector):
    """Return the product of a matrix and a vector."""
    return [sum(a * b for a, b in zip(row, vector, strict=True)) for row in matrix]


def simulate(colour, kind):
    """Return how an sRGB colour, three integers up to 255, looks with a kind of `MATRICES`: linear RGB, each in [0,
    1]."""
    channels = [channel / 255 for channel in colour]
    linear = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels]
    return [min(1.0, max(0.0, c)) for c in matvec(MATRICES[kind], linear)]
