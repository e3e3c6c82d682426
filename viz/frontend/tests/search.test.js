import assert from "node:assert/strict";
import { test } from "node:test";
import { plainDigits } from "../src/base/notation.js";
import { outermostMatch, blockPath, search } from "../src/model/search.js";
import { decode } from "../src/model/trace.js";
import { scalarTrace } from "./helpers.js";

const net = () =>
  decode(
    scalarTrace((t) => {
      const w = t.leaf("w", 0.5); // 0
      const bias = t.leaf("row₁", -1 / 3); // 1
      const x = t.leaf("tanh", 2); // 2
      const h = t.scope("layer1", () => t.scope("cell", () => t.tanh(t.mul(w, x), "weight"))); // 3, 4
      t.line(h, "net.py:7: h = tanh(w * x)");
      const nan = t.add(h, t.leaf("n", NaN)); // 5, 6
      const inf = t.mul(t.constant(Infinity), bias); // 7, 8
      return t.scope("layer2", () => t.add(nan, inf, "out")); // 9
    }),
  );

/** @type {[string, string, number[]][]} */
const CASES = [
  ["an exact name before its beginning, that before the inside, that before code", "w", [0, 4, 1]],
  ["a name in other letters", "WEIGHT", [4]],
  ["digits below the line as they are typed", "row1", [1]],
  ["digits below the line as they are written", "row₁", [1]],
  ["a name before an op of that name", "tanh", [2, 4]],
  ["an op", "mul", [3, 8]],
  ["the beginning of an op", "mu", [3, 8]],
  ["a scope", "layer1", [3, 4]],
  ["a scope with those around it", "layer1/cell", [3, 4]],
  ["a part of a scope", "layer", [3, 4, 9]],
  ["a line of code", "net.py:7", [4]],
  ["a place on the tape", "v6", [6]],
  ["a place on the tape as it is written", "v₆", [6]],
  ["only nodes without a name are called by their place", "v4", []],
  ["a constant is called by its number", "v7", []],
  ["a number", "0.5", [0]],
  ["a number that was rounded", "-0.33", [1]],
  ["a number with a true minus sign", "−0.3", [1]],
  ["not the number without its sign", "0.33", []],
  ["a number without decimals, before scopes with it", "2", [2, 9]],
  ["a number without the zero before the point", ".5", [0]],
  ["NaN", "nan", [5, 6, 9]],
  ["infinity", "inf", [7]],
  ["minus infinity", "-inf", [8]],
  ["every word has to fit", "tanh layer1", [4]],
  ["words in any order", "cell mul", [3]],
  ["words that fit different nodes", "mul tanh", []],
  ["nothing", "", []],
  ["spaces", "   ", []],
  ["what is not there", "convolution", []],
];

for (const [what, text, nodes] of CASES) {
  test(`found: ${what}`, () => assert.deepEqual(search(net(), text), nodes));
}

test("numbers in scientific notation are found", () => {
  const graph = decode(scalarTrace((t) => [t.leaf("a", 1e-7), t.leaf("b", 2e-7), t.leaf("c", 1.5e10)]));
  assert.deepEqual(search(graph, "1e-7"), [0]);
  assert.deepEqual(search(graph, "1.5e10"), [2]);
});

test("patterns are matched literally", () => {
  const graph = decode(scalarTrace((t) => [t.leaf("w[0]", 1), t.leaf("w.*", 2), t.leaf("(", 3)]));
  assert.deepEqual(search(graph, "w[0"), [0]);
  assert.deepEqual(search(graph, ".*"), [1]);
  assert.deepEqual(search(graph, "("), [2]);
});

test("an array is found by its non-finite elements", () => {
  const data = scalarTrace((t) => t.leaf("a", 1));
  data.arrays = [{ shape: [2], dtype: "float32", size: 2, cells: [0, 0], rows: 1, cols: 2, min: 0, max: 0 }];
  Object.assign(data.arrays[0], { mean: 0, std: 0, hist: [2], nan: 1, inf: 0 });
  data.nodes.tensor = { 0: { shape: [2], dtype: "float32", value: 0, grad: null } };
  const graph = decode(data);
  assert.deepEqual(search(graph, "nan"), [0]);
  assert.deepEqual(search(graph, "inf"), []);
  assert.deepEqual(search(graph, "0.0"), []);
});

test("the best 50 are returned", () => {
  const graph = decode(
    scalarTrace((t) => [...Array.from({ length: 80 }, (_, i) => t.leaf(`my w${i}`, i)), t.leaf("w", 0)]),
  );
  const found = search(graph, "w");
  assert.equal(found.length, 50);
  assert.deepEqual(found.slice(0, 3), [80, 0, 1]);
});

test("scopes have paths, and the outermost match is found", () => {
  const graph = net();
  assert.deepEqual(graph.blocks.map((_, at) => blockPath(graph, at)), ["", "layer1", "layer1/cell", "layer2"]);
  assert.deepEqual([...outermostMatch(graph.blocks, [false, true, true, false])], [-1, 1, 1, -1]);
  assert.deepEqual([...outermostMatch(graph.blocks, [false, false, true, true])], [-1, -1, 2, 3]);
  assert.equal(plainDigits("w₁₂ v₀"), "w12 v0");
});

test("100,000 nodes are searched", () => {
  const graph = decode(scalarTrace((t) => t.tanh(t.leaf("a", 1), "y")));
  const many = 100_000;
  const value = Float64Array.from({ length: many }, (_, i) => i / 7);
  Object.assign(graph, {
    count: many,
    names: Array.from({ length: many }, (_, i) => (i % 3 ? null : `weight[${i}]`)),
    op: new Int32Array(many),
    block: new Int32Array(many),
    kind: new Uint8Array(many).fill(1),
    numbers: { ...graph.numbers, value, known: new Uint8Array(many).fill(1) },
  });
  const found = search(graph, "weight[5");
  assert.ok(found.length > 5 && found.every((node) => graph.names[node]?.startsWith("weight[5")));
  assert.deepEqual(search(graph, "weight[99999]"), [99_999]);
  assert.deepEqual(search(graph, "weight[99998]"), []); // every third has a name
});
