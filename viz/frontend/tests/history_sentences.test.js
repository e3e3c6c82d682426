/** The description of each moment for screen readers. */
import assert from "node:assert/strict";
import { test } from "node:test";
import { describeQuantity, createPlayback, createTimeline } from "../src/model/history.js";
import { decode } from "../src/model/trace.js";
import { scalarTrace, shared } from "./helpers.js";

const played = (graph = shared()) => createPlayback(graph, createTimeline(graph));

const SENTENCES = [
  "Step 0 of 12, start: 2 leaves and 1 constant are known.",
  "Step 1 of 12, forward: mul of a = 2.0 and b = −3.0 is c = −6.0.",
  "Step 2 of 12, forward: add of c = −6.0 and 1.0 is v₄ = −5.0.",
  "Step 3 of 12, forward: mul of a = 2.0 and a = 2.0 is v₅ = 4.0.",
  "Step 4 of 12, forward: mul of v₅ = 4.0 and v₄ = −5.0 is y = −20.0.",
  "Step 5 of 12, backward: starts at y with gradient 1.0.",
  "Step 6 of 12, backward: y to v₅. Upstream 1.0 times local −5.0 is −5.0, the gradient of v₅.",
  "Step 7 of 12, backward: y to v₄. Upstream 1.0 times local 4.0 is 4.0, the gradient of v₄.",
  "Step 8 of 12, backward: v₅ to a. Upstream −5.0 times local 2.0 is −10.0, the gradient of a so far, 1 of 3.",
  "Step 9 of 12, backward: v₅ to a. Upstream −5.0 times local 2.0 is −10.0, " +
    "added to the gradient of a: −10.0 plus −10.0 is −20.0, 2 of 3.",
  "Step 10 of 12, backward: v₄ to c. Upstream 4.0 times local 1.0 is 4.0, the gradient of c.",
  "Step 11 of 12, backward: c to a. Upstream 4.0 times local −3.0 is −12.0, " +
    "added to the gradient of a: −20.0 plus −12.0 is −32.0, 3 of 3.",
  "Step 12 of 12, backward: c to b. Upstream 4.0 times local 2.0 is 8.0, the gradient of b.",
];

test("every position has a description", () => {
  const now = played();
  const said = SENTENCES.map((_, position) => {
    now.seek(position);
    return now.sentence();
  });
  assert.deepEqual(said, SENTENCES);
  assert.equal(now.timeline.last, SENTENCES.length - 1);
});

test("an op that raised is described", () => {
  const data = scalarTrace((t) => t.failing("mul", t.leaf("a", 1), t.leaf("b", 2)));
  data.passes = [];
  const now = played(decode(data));
  now.seek(1);
  assert.equal(now.sentence(), "Step 1 of 1, forward: mul of a = 1.0 and b = 2.0 failed.");
  data.notes = [{ kind: "error", node: 2, text: "the inner sizes 3 and 4 differ." }];
  const told = played(decode(data));
  told.seek(1);
  const why = "the inner sizes 3 and 4 differ.";
  assert.equal(told.sentence(), `Step 1 of 1, forward: mul of a = 1.0 and b = 2.0 failed: ${why}`);
  assert.equal(told.isComputed(2), false);
});

test("arrays are described", () => {
  const now = played(decode(tensorTrace()));
  const said = Array.from({ length: now.timeline.length }, (_, position) => {
    now.seek(position);
    return now.sentence();
  });
  const x = "an array of 2 by 3 from −1.0 to 2.0, 1 NaN and 2 infinite";
  assert.deepEqual(said, [
    "Step 0 of 5, start: 1 leaf is known.",
    "Step 1 of 5, forward: tanh of x (2 by 3) is h = an array of 6, all 0.5.",
    "Step 2 of 5, forward: add of h (6) and h (6) is s = 7.0.",
    `Step 3 of 5, backward: starts at s with gradient ${x}.`,
    `Step 4 of 5, backward: s to h. Upstream, 2 by 3, through add gives ${x}, the gradient of h so far, 1 of 2.`,
    "Step 5 of 5, backward: s to h. Upstream 1.0 through add gives unknown, added to the gradient of h, " +
      "which becomes an array of 6, all 0.5, 2 of 2.",
  ]);
  assert.equal(now.gradient(1).value, now.graph.arrays[1]);
});

/** s = sum of h twice, h = tanh(x): local derivatives of tensors are null. */
function tensorTrace() {
  const data = scalarTrace((t) => {
    const h = t.tanh(t.leaf("x", 0), "h");
    return t.add(h, h, "s");
  });
  const none = { dtype: "float32", min: null, max: null, mean: null, std: null, hist: [], nan: 0, inf: 0 };
  const x = { shape: [2, 3], size: 6, cells: [0, 0, 0, 0, 0, 0], rows: 2, cols: 3, ...none };
  data.arrays = [{ ...x, min: -1, max: 2, nan: 1, inf: 2 }, { ...x, shape: [6], rows: 1, cols: 6, min: 0.5, max: 0.5 }];
  data.arrays.push({ ...none, shape: [], size: 1, cells: [7], rows: 1, cols: 1 });
  const tensor = (/** @type {number} */ value) => {
    return { shape: data.arrays[value].shape, dtype: "float32", value, grad: null };
  };
  data.nodes.tensor = { 0: tensor(0), 1: tensor(1), 2: tensor(2) };
  data.nodes.value = [null, null, null];
  data.edges.local = [null, null, null];
  const total = [{ array: 0 }, { array: 1 }];
  data.passes = [{ root: 2, edge: [1, 2], upstream: [{ array: 0 }, 1], contribution: [{ array: 0 }, null], total }];
  return data;
}

test("a value that was not stored is described", () => {
  const data = scalarTrace((t) => t.tanh(t.tanh(t.leaf("a", 1))));
  data.nodes.value[1] = null;
  const now = played(decode(data));
  now.seek(1);
  assert.equal(now.sentence(), "Step 1 of 5, forward: tanh of a = 1.0 is v₁, which was not stored.");
  now.seek(2);
  assert.equal(now.sentence(), "Step 2 of 5, forward: tanh of v₁ is v₂ = 0.642015.");
});

test("a constant array is described as such, unless it has a NaN", () => {
  const array = { shape: [3], dtype: "float32", size: 3, rows: 1, cols: 3, cells: new Float64Array([4, 4, NaN]) };
  const figures = { step: null, min: 4, max: 4, mean: 4, std: 0, hist: [], nan: 0, inf: 0 };
  assert.equal(describeQuantity({ ...array, ...figures }), "an array of 3, all 4.0");
  assert.equal(describeQuantity({ ...array, ...figures, nan: 1 }), "an array of 3 from 4.0 to 4.0, 1 NaN");
});

test("the first three of many operands are named, the others counted", () => {
  const data = scalarTrace((t) => {
    const leaves = [1, 2, 3, 4, 5].map((x) => t.leaf(`w${x}`, x));
    return t.add(leaves[0], leaves[1], "y");
  });
  data.edges = { operand: [0, 1, 2, 3, 4], result: [5, 5, 5, 5, 5], slot: [0, 1, 2, 3, 4], flows: "11111" };
  Object.assign(data.edges, { local: [1, 1, 1, 1, 1], formula: [-1, -1, -1, -1, -1] });
  const now = played(decode(data));
  now.seek(1);
  assert.equal(now.sentence(), "Step 1 of 4, forward: add of w1 = 1.0, w2 = 2.0, w3 = 3.0 and 2 more is y = 3.0.");
});
