"""The engine: dtypes, shapes, operations, dispatch, storage, the graph and its two faces, Value and Tensor."""
