"""The texts of kernels: snippets, loops around them, and loops that are fused and joined."""
