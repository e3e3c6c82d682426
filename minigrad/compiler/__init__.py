"""Execution of a graph without Python: `Tape` for graphs of Values, `jit` for steps on tensors."""
