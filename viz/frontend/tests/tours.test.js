import assert from "node:assert/strict";
import { test } from "node:test";
import { createTimeline } from "../src/model/history.js";
import { readStops } from "../src/model/tours.js";
import { decode } from "../src/model/trace.js";
import { scalarTrace } from "./helpers.js";

/** Positions: 1 c, 2 v₄, 3 y, 4 the seed, 5 y to v₄, 6 y to a, 7 v₄ to c, 8 c to a, 9 c to b. */
function stations(tours, more = {}) {
  const data = scalarTrace((t) => {
    const a = t.leaf("a", 2);
    const b = t.leaf("b", -3);
    const c = t.scope("layer", () => t.scope("cell", () => t.mul(a, b, "c")));
    return t.scope("last", () => t.scope("cell", () => t.mul(t.add(c, t.constant(1)), a, "y")));
  });
  const graph = decode({ ...data, tours, ...more });
  return readStops(graph, createTimeline(graph));
}

test("a trace without a tour has no stops", () => {
  assert.deepEqual(stations(undefined), []);
  assert.deepEqual(stations([]), []);
});

test("a stop becomes a position, blocks and a selection", () => {
  const tour = [
    { at: 0, text: "Look." },
    { at: 1, text: "Here.", select: "n2" },
    { at: 9, text: "That was it.", select: "b4" },
  ];
  assert.deepEqual(stations(tour), [
    { position: 0, text: "Look.", expand: [], select: null },
    { position: 1, text: "Here.", expand: [], select: "n2" },
    { position: 9, text: "That was it.", expand: [4, 3], select: "b4" },
  ]);
});

/** @type {[string, any, string][]} */
const WRONG = [
  ["a text", "no", "has no text."],
  ["nothing", null, "has no text."],
  ["nothing to say", { at: 0 }, "has no text."],
  ["a position behind the end", { at: 10, text: "" }, "is at position 10: expected 0 to 9."],
  ["half a position", { at: 0.5, text: "" }, "is at position 0.5: expected 0 to 9."],
  ["no place", { text: "" }, "is at position undefined: expected 0 to 9."],
  ["a node that is not there", { at: 0, text: "", select: "n6" }, 'selects "n6", which does not exist.'],
  ["a block that is not there", { at: 0, text: "", select: "b5" }, 'selects "b5", which does not exist.'],
  ["a name", { at: 0, text: "", select: "loss" }, 'selects "loss", which does not exist.'],
];

for (const [what, station, why] of WRONG) {
  test(`a stop with ${what} is rejected with the reason`, () => {
    const fine = { at: 0, text: "fine" };
    assert.throws(() => stations([fine, station]), { message: `Stop 2 of the tour ${why}` });
  });
}
