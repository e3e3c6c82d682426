import assert from "node:assert/strict";
import { test } from "node:test";
import { dimensions, operandCells } from "../src/drawing/operandcells.js";

/**
 * @param {string} op @param {number[][]} operands @param {number[]} result @param {number[]} cell
 * @param {Record<string, string>} [attrs]
 */
const link = (op, operands, result, cell, attrs = {}) =>
  operandCells({ name: op, js: op === "add" || op === "mul" ? "" : null }, attrs, { operands, result }, cell);

test("a cell of a product comes from a row and a column", () => {
  assert.deepEqual(
    link(
      "matmul",
      [
        [2, 3],
        [3, 4],
      ],
      [2, 4],
      [1, 2],
    ),
    [
      [
        [1, 2],
        [0, 3],
      ],
      [
        [0, 3],
        [2, 3],
      ],
    ],
  );
});

test("a batched product broadcasts the leading dimensions", () => {
  const boxes = link(
    "matmul",
    [
      [5, 2, 3],
      [3, 4],
    ],
    [5, 2, 4],
    [3, 1, 2],
  );
  assert.deepEqual(boxes, [
    [
      [3, 4],
      [1, 2],
      [0, 3],
    ],
    [
      [0, 3],
      [2, 3],
    ],
  ]);
});

test("all elements of a vector in a product are summed", () => {
  assert.deepEqual(link("matmul", [[3], [3]], [], []), [[[0, 3]], [[0, 3]]]);
  assert.deepEqual(link("matmul", [[2, 3], [3]], [2], [1]), [
    [
      [1, 2],
      [0, 3],
    ],
    [[0, 3]],
  ]);
  assert.deepEqual(link("matmul", [[3], [3, 4]], [4], [2]), [
    [[0, 3]],
    [
      [0, 3],
      [2, 3],
    ],
  ]);
});

test("a cell of a broadcast operand is used many times", () => {
  assert.deepEqual(link("add", [[2, 3], [3]], [2, 3], [1, 2]), [
    [
      [1, 2],
      [2, 3],
    ],
    [[2, 3]],
  ]);
  assert.deepEqual(
    link(
      "mul",
      [
        [2, 1],
        [1, 3],
      ],
      [2, 3],
      [1, 2],
    ),
    [
      [
        [1, 2],
        [0, 1],
      ],
      [
        [0, 1],
        [2, 3],
      ],
    ],
  );
  assert.deepEqual(link("add", [[2], []], [2], [1]), [[[1, 2]], []]);
});

test("a sum uses all cells along its dimensions", () => {
  assert.deepEqual(link("sum", [[2, 3]], [], [], { dim: "None" }), [
    [
      [0, 2],
      [0, 3],
    ],
  ]);
  assert.deepEqual(link("sum", [[2, 3]], [2], [1], { dim: "1" }), [
    [
      [1, 2],
      [0, 3],
    ],
  ]);
  assert.deepEqual(link("mean", [[2, 3]], [1, 3], [0, 2], { dim: "(0,)", keepdim: "True" }), [
    [
      [0, 2],
      [2, 3],
    ],
  ]);
  assert.deepEqual(link("sum", [[2, 3, 4]], [3], [1], { dim: "(0, -1)" }), [
    [
      [0, 2],
      [1, 2],
      [0, 4],
    ],
  ]);
});

test("shape operations map a cell", () => {
  assert.deepEqual(link("reshape", [[2, 3]], [3, 2], [1, 1]), [
    [
      [1, 2],
      [0, 1],
    ],
  ]);
  assert.deepEqual(link("permute", [[2, 3]], [3, 2], [2, 1], { dims: "(1, 0)" }), [
    [
      [1, 2],
      [2, 3],
    ],
  ]);
  assert.deepEqual(link("flip", [[2, 3]], [2, 3], [0, 0], { dims: "(1,)" }), [
    [
      [0, 1],
      [2, 3],
    ],
  ]);
  assert.deepEqual(
    link(
      "cat",
      [
        [2, 3],
        [1, 3],
      ],
      [3, 3],
      [2, 0],
      { dim: "0" },
    ),
    [
      null,
      [
        [0, 1],
        [0, 1],
      ],
    ],
  );
});

test("a linear layer uses a row of its input, a row of its weight, a cell of its bias", () => {
  assert.deepEqual(link("linear", [[5, 3], [4, 3], [4]], [5, 4], [2, 1]), [
    [
      [2, 3],
      [0, 3],
    ],
    [
      [1, 2],
      [0, 3],
    ],
    [[1, 2]],
  ]);
});

test("unknown ops are not guessed", () => {
  assert.equal(
    link(
      "conv2d",
      [
        [1, 1, 4, 4],
        [1, 1, 3, 3],
      ],
      [1, 1, 2, 2],
      [0, 0, 0, 0],
    ),
    null,
  );
  assert.equal(link("sum", [[2, 3]], [2], [1], { dim: "'rows'" }), null);
  assert.equal(link("sum", [[2, 3]], [2], [1]), null);
  assert.equal(link("toString", [[2]], [2], [0]), null);
});

test("dimensions are parsed as Python writes them", () => {
  assert.deepEqual(dimensions("-1", 3), [2]);
  assert.deepEqual(dimensions("(0, 2)", 3), [0, 2]);
  assert.equal(dimensions("None", 3), null);
  assert.equal(dimensions("5", 3), undefined);
});

test("a cell of a convolution comes from a window of the channels of its group, and its filter", () => {
  const window = "size (3, 3), stride (2, 2), padding ((1, 1), (1, 1)), dilation (1, 1)";
  const shapes = [[2, 4, 6, 6], [6, 2, 3, 3], [6]];
  const [image, filter, bias] = link("conv2d", shapes, [2, 6, 3, 3], [1, 4, 0, 1], { window, groups: "2" }) ?? [];
  assert.deepEqual(image, [
    [1, 2],
    [2, 4],
    [0, 2],
    [1, 4],
  ]);
  assert.deepEqual(filter, [
    [4, 5],
    [0, 2],
    [0, 3],
    [0, 3],
  ]);
  assert.deepEqual(bias, [[4, 5]]);
});

test("a cell of a pooling comes from its window", () => {
  const windows = "size (2,), stride (2,), padding ((0, 0),), dilation (1,)";
  assert.deepEqual(link("max_pool", [[3, 6]], [3, 3], [1, 2], { windows }), [
    [
      [1, 2],
      [4, 6],
    ],
  ]);
});

test("an index is parsed as in Python", () => {
  const cases = /** @type {[string, number[], number[], number[]][]} */ ([
    ["[0]", [3, 4], [2], [0, 2]],
    ["[:, -1]", [3, 4], [2], [2, 3]],
    ["[1:3, ::-1]", [3, 4], [1, 0], [2, 3]],
    ["[…, None, 1]", [2, 3, 4], [1, 2, 0], [1, 2, 1]],
    ["[None, 1, 0:4:2]", [3, 4], [0, 1], [1, 2]],
  ]);
  for (const [key, shape, cell, place] of cases)
    assert.deepEqual(
      link("index", [shape], cell, cell, { key }),
      [place.map((at) => [at, at + 1])],
      key,
    );
});

test("embedding, pad and pick are linked to their source", () => {
  assert.deepEqual(link("embedding", [[5, 8], [6]], [6, 8], [2, 3]), [null, [[2, 3]]]);
  assert.deepEqual(link("pad", [[2]], [4], [0], { pads: "((1, 1),)" }), [null]);
  assert.deepEqual(link("pad", [[2]], [4], [2], { pads: "((1, 1),)" }), [[[1, 2]]]);
  assert.deepEqual(link("pick", [[2, 3]], [3], [2], { index: "1" }), [
    [
      [1, 2],
      [2, 3],
    ],
  ]);
});
