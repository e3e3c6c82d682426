"""Code generation for Taichi kernels: snippets, loops around them, fusion and megakernels."""
