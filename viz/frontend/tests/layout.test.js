/**
 * The layered layout in JavaScript. tests/viz/layout/test_layout_parity.py checks that its coordinates equal Python's.
 */

import assert from "node:assert/strict";
import { test } from "node:test";

import { layout, roundCoordinate } from "../src/layout/layered.js";

/** @type {[number, number]} */
const BOX = [40, 30];

test("two edges of a square arrive at separate ports", () => {
  const drawn = layout([BOX, BOX], [[0, 1], [0, 1]], { gapX: 50 });
  assert.deepEqual(drawn.routes, [[[40, 15], [90, 9]], [[40, 15], [90, 21]]]);
  assert.deepEqual(drawn.centers, [[20, 15], [110, 15]]);
});

test("an empty graph has no size, and one node fills the drawing", () => {
  assert.deepEqual(layout([], []), { width: 0, height: 0, centers: [], routes: [], ranks: [] });
  assert.deepEqual(layout([BOX], []), { width: 40, height: 30, centers: [[20, 15]], routes: [], ranks: [0] });
});

test("a link between given ports is level if nothing else pulls", () => {
  const drawn = layout([[60, 100], [60, 120]], [[0, 1]], { ports: { leaveOffset: [35], arriveOffset: [-40] } });
  assert.deepEqual(drawn.routes, [[[60, 85], [108, 85]]]);
});

test("pinned nodes are alone in the outer columns", () => {
  const ports = { first: new Map([[0, 7], [1, 0]]), last: new Set([5, 6]) };
  const drawn = layout(Array(7).fill(BOX), [[0, 3], [2, 3], [1, 4], [3, 4], [3, 5], [4, 6]], { ports });
  assert.deepEqual(drawn.ranks, [0, 0, 1, 2, 3, 4, 4]);
});

test("a chain of 100,000 nodes is level, and needs no recursion", () => {
  const nodes = 100_000;
  const drawn = layout(Array(nodes).fill(BOX), Array.from({ length: nodes - 1 }, (_, at) => [at, at + 1]));
  assert.equal(drawn.height, 30);
  assert.ok(drawn.routes.every((route) => route.length === 2));
});

test("invalid input is rejected", () => {
  const refused = (/** @type {() => void} */ run, /** @type {string} */ message) =>
    assert.throws(run, { name: "RangeError", message });
  refused(() => layout([BOX, BOX], [[1, 0]]), "edge (1, 0) points backward: expected nodes in tape order, inputs first");
  refused(() => layout([BOX, BOX], [[0, 2]]), "edge (0, 2) names a missing node: there are 2 nodes");
  refused(() => layout([[-1, 3]], []), "node 0 has size (-1, 3); expected finite, non-negative values");
  refused(() => layout([[3, NaN]], []), "node 0 has size (3, NaN); expected finite, non-negative values");
});

test("rounding is Python's: to nearest, ties to even", () => {
  const cases = [[0.125, 0.12], [0.375, 0.38], [2.675, 2.67], [1.005, 1], [-0.125, -0.12], [-1.236, -1.24], [7, 7]];
  for (const [given, rounded] of cases) assert.equal(roundCoordinate(given), rounded);
});
