"""What runs a graph without Python: `Tape` for graphs of Values, `jit` for steps of tensors."""
