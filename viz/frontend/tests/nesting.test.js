/** Nested frames in JavaScript. tests/viz/layout/test_layout_parity.py checks that their coordinates equal Python's. */

import assert from "node:assert/strict";
import { test } from "node:test";

import { nest } from "../src/layout/nesting.js";

/** @type {[number, number]} */
const BOX = [40, 30];

test("an edge into an open block goes through a port of its frame", () => {
  const drawn = nest([BOX, [60, 18], BOX], [-1, -1, 1], [[0, 2]]);
  assert.deepEqual(drawn.boxes, [[0, 30, 40, 30], [88, 0, 100, 72], [136, 30, 40, 30]]);
  assert.deepEqual(drawn.depths, [0, 0, 1]);
  assert.deepEqual(drawn.routes, [[[40, 45], [136, 45]]]);
});

test("a hundred nested frames need no recursion", () => {
  const depth = 100;
  const outer = [...Array.from({ length: depth }, (_, at) => at - 1), depth - 1, -1];
  const drawn = nest([...Array(depth).fill([60, 18]), BOX, BOX], outer, [[depth, depth + 1]]);
  assert.equal(drawn.depths[depth], depth);
  assert.equal(drawn.routes[0].length, 2);
});

test("typed arrays are accepted", () => {
  const drawn = nest([BOX, BOX], Int32Array.of(-1, -1), [[0, 1]], { ports: { wires: Int32Array.of(7) } });
  assert.deepEqual(drawn.routes, [[[40, 15], [88, 15]]]);
});

test("invalid input is rejected", () => {
  const refused = (/** @type {() => void} */ run, /** @type {string} */ message) =>
    assert.throws(run, { name: "RangeError", message });
  const three = [BOX, BOX, BOX];
  refused(() => nest(three, [-1, 2, -1], []), "item 1 is inside item 2; expected an earlier item, or -1");
  refused(() => nest(three, [-1, 0, -1], [[0, 2]]), "edge (0, 2) must connect two of 3 items that are not frames");
  refused(
    () => nest([...three, BOX], [-1, 0, -1, 0], [[1, 2], [2, 3]]),
    "the edges form a cycle through item 0; expected blocks without cycles",
  );
});
