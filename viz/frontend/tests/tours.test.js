import assert from "node:assert/strict";
import { test } from "node:test";
import { timeline } from "../src/history.js";
import { stationsOf } from "../src/tours.js";
import { decode } from "../src/trace.js";
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
  return stationsOf(graph, timeline(graph));
}

/** @param {unknown} at */
const position = (at) => stations([{ at, text: "" }])[0].position;

test("a trace without a tour has no stations", () => {
  assert.deepEqual(stations(undefined), []);
  assert.deepEqual(stations([]), []);
});

test("a station becomes a position, blocks and what is selected", () => {
  const tour = [
    { at: 0, text: "Look." },
    { at: { node: "c", phase: "forward" }, text: "Here.", expand: ["layer/cell"], select: "c" },
    { at: "end", text: "That was it.", expand: ["last", "cell"], select: "layer" },
  ];
  assert.deepEqual(stations(tour), [
    { position: 0, text: "Look.", expand: [], select: null },
    { position: 1, text: "Here.", expand: [2, 1], select: "n2" },
    { position: 9, text: "That was it.", expand: [3, 2, 1, 4], select: "b1" },
  ]);
});

test("positions are given by number, by node and by edge", () => {
  assert.deepEqual(["start", "seed", "end"].map(position), [0, 4, 9]);
  assert.deepEqual([0, 5, 9].map(position), [0, 5, 9]);
  assert.equal(position({ node: "y", phase: "forward" }), 3);
  assert.equal(position({ node: "v4", phase: "forward" }), 2);
  assert.equal(position({ node: "v₄", phase: "backward" }), 5);
  assert.equal(position({ node: "a", phase: "backward" }), 8);
  assert.equal(position({ node: "y", phase: "backward" }), 4);
  assert.equal(position({ edge: ["a", "c"] }), 8);
  assert.equal(position({ edge: ["c", "a"] }), 8);
});

test("of two edges between the same nodes the first to be passed is meant", () => {
  const data = scalarTrace((t) => {
    const a = t.leaf("a", 2);
    return t.mul(a, a, "y");
  });
  const graph = decode({ ...data, tours: [{ at: { edge: ["y", "a"] }, text: "" }] });
  assert.equal(stationsOf(graph, timeline(graph))[0].position, 3);
});

const ways = 'Write a position, "start", "seed", "end", {"node": name, "phase": "forward" or "backward"} or ' +
  '{"edge": [name, name]}.';

/** @type {[string, any, string][]} */
const WRONG = [
  ["a text", "no", "is not an object."],
  ["nothing to say", { at: 0 }, "has no text."],
  ["a position behind the end", { at: 10, text: "" }, "is at position 10: they go from 0 to 9."],
  ["half a position", { at: 0.5, text: "" }, "is at position 0.5: they go from 0 to 9."],
  ["no place", { text: "" }, `is at undefined. ${ways}`],
  ["another phase", { at: { node: "a", phase: "up" }, text: "" }, `is at {"node":"a","phase":"up"}. ${ways}`],
  ["another node", { at: { node: "z", phase: "forward" }, text: "" },
    "names the node “z”, which is not there. There are: a, b, c, y."],
  ["a place on the tape that has a name", { at: { node: "v2", phase: "forward" }, text: "" },
    "names the node “v2”, which is not there. There are: a, b, c, y."],
  ["a number for a node", { at: { edge: [1, "a"] }, text: "" },
    "names the node 1, which is not there. There are: a, b, c, y."],
  ["a gradient that never comes", { at: { node: "v3", phase: "backward" }, text: "" },
    "is where the gradient of “v3” is final, and it gets none in this pass."],
  ["an edge that is not there", { at: { edge: ["a", "b"] }, text: "" },
    "is at the edge from “a” to “b”: there is none."],
  ["an edge that passes nothing", { at: { edge: ["v3", "v4"] }, text: "" },
    "is at the edge from “v3” to “v4”: no gradient goes over it in this pass."],
  ["a scope that is not there", { at: 0, text: "", expand: ["attention"] },
    "opens the scope “attention”, which is not there. There are: layer, layer/cell, last, last/cell."],
  ["one scope without a list", { at: 0, text: "", expand: "layer" }, "has no list of scopes in “expand”."],
  ["a selection that is not there", { at: 0, text: "", select: "z" },
    "names the node “z”, which is not there. There are: a, b, c, y."],
];

for (const [what, station, why] of WRONG) {
  test(`a station with ${what} is refused with the reason`, () => {
    const fine = { at: 0, text: "fine" };
    assert.throws(() => stations([fine, station]), { message: `Station 2 of the tour ${why}` });
  });
}

test("without a backward pass there is no seed", () => {
  const message = `Station 1 of the tour is at "seed". ${ways}`;
  assert.throws(() => stations([{ at: "seed", text: "" }], { passes: [] }), { message });
});

test("of many names eight are told", () => {
  const data = scalarTrace((t) => Array.from({ length: 12 }, (_, i) => t.leaf(`w${i}`, i)));
  const graph = decode({ ...data, tours: [{ at: 0, text: "", select: "z" }] });
  const message =
    "Station 1 of the tour names the node “z”, which is not there. " +
    "There are: w0, w1, w2, w3, w4, w5, w6, w7, and 4 more.";
  assert.throws(() => stationsOf(graph, timeline(graph)), { message });
});
