"""Neural networks. `nn.scalar` builds them from single Values, so that each weight can be looked at."""

from minigrad.nn import scalar

__all__ = ["scalar"]
