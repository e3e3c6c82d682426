"""The engine: dtypes, shapes, operations, dispatch, storage, the graph, and its node types Value and Tensor."""
