import assert from "node:assert/strict";
import { test } from "node:test";
import { BLOCKED, BROKEN, CONSTANT, FINAL, LEAF, OP, decode } from "../src/model/trace.js";
import { scalarTrace } from "./helpers.js";

const small = () =>
  scalarTrace((t) => {
    const a = t.leaf("a", 2);
    const c = t.scope("inner", () => t.mul(a, a));
    t.line(c, "lesson.py:3: c = a * a");
    return t.add(c, t.constant(1), "y");
  });

test("columns become typed arrays", () => {
  const graph = decode(small());
  assert.equal(graph.count, 4);
  assert.equal(graph.edgeCount, 4);
  assert.deepEqual([...graph.kind], [LEAF, OP, CONSTANT, OP]);
  assert.deepEqual([...graph.op], [-1, 1, -1, 0]);
  assert.deepEqual(graph.names, ["a", null, null, "y"]);
  assert.deepEqual([...graph.state], [FINAL, FINAL, BLOCKED, FINAL]);
  assert.deepEqual([...graph.block], [0, 1, 0, 0]);
  assert.deepEqual(graph.blocks[1], { name: "inner", outer: 0, kind: "scope", count: null, about: null });
  assert.deepEqual([...graph.start], [0, 0, 2, 2, 4]);
  assert.deepEqual([...graph.operand], [0, 0, 1, 2]);
  assert.deepEqual([...graph.flows], [1, 1, 1, 0]);
  assert.deepEqual([...graph.numbers.value], [2, 4, 1, 5]);
  assert.deepEqual([0, 1, 2, 3].map(graph.numbers.local), [2, 2, 1, null]);
  assert.deepEqual([...graph.numbers.runs[0].edge], [2, 0, 1]);
  assert.deepEqual([...graph.numbers.runs[0].total], [1, 2, 4]);
  assert.deepEqual([...graph.lines], [[1, "lesson.py:3: c = a * a"]]);
  assert.deepEqual(graph.tours, []);
});

test("outgoing edges are found, two for a*a", () => {
  const graph = decode(small());
  const outs = [0, 1, 2, 3].map((node) => [...graph.outgoing(node)]);
  assert.deepEqual(outs, [[0, 1], [2], [3], []]);
});

test("titles are names, values of constants, or indices", () => {
  const graph = decode(small());
  assert.deepEqual([0, 1, 2, 3].map((node) => graph.title(node)), ["a", "v₁", "1.0", "y"]);
  const data = small();
  data.nodes.value[2] = null;
  assert.equal(decode(data).title(2), "?", "a tensor that was not kept");
});

test("numbers that JSON cannot represent are strings", () => {
  const data = small();
  data.nodes.value = ["NaN", "Infinity", "-Infinity", null];
  const { numbers } = decode(data);
  assert.deepEqual([...numbers.value], [NaN, Infinity, -Infinity, null]);
});

test("a tensor's value is its array, or null if the op raised", () => {
  const data = withArrays();
  const graph = decode(data);
  const [value, unknown, number] = graph.numbers.value;
  assert.ok(value !== null && typeof value === "object");
  assert.deepEqual(value.shape, [2, 2]);
  assert.deepEqual([...value.cells], [1, NaN, 3, Infinity]);
  assert.deepEqual([value.step, value.min, value.mean], [[1, 2], 1, null]);
  assert.deepEqual([unknown, number], [null, 1]);
  assert.deepEqual(graph.numbers.runs[0].total, [1, 2, value]);
  assert.deepEqual(graph.numbers.runs[0].upstream, [1, 1, null]);
  const broken = decode(scalarTrace((t) => t.failing("tanh", t.leaf("a", 1))));
  assert.equal(broken.kind[1], BROKEN);
  assert.equal(broken.numbers.value[1], null);
});

function withArrays() {
  const data = small();
  const figures = { min: 1, max: 3, mean: null, std: 1, hist: [1, 1], nan: 1, inf: 1 };
  data.arrays = [{ shape: [2, 2], dtype: "float32", size: 4, cells: [1, "NaN", 3, "Infinity"], rows: 2, cols: 2 }];
  Object.assign(data.arrays[0], figures, { step: [1, 2] });
  data.nodes.tensor = { 0: { shape: [2, 2], dtype: "float32", value: 0, grad: null } };
  data.nodes.tensor[1] = { shape: [], dtype: "float32", value: null, grad: null };
  data.nodes.value[0] = data.nodes.value[1] = null;
  data.passes[0].total[2] = { array: 0 };
  data.passes[0].upstream[2] = null;
  return data;
}

test("arrays may be in any column of a pass", () => {
  for (const column of ["upstream", "contribution", "total"]) {
    const data = withArrays();
    data.arrays.push(data.arrays[0]);
    data.passes = small().passes;
    data.passes[0][column][1] = { array: 1 };
    const { arrays, numbers } = decode(data);
    const [expected] = decode(small()).numbers.runs;
    /** @type {any} */ (expected)[column][1] = arrays[1];
    assert.deepEqual(numbers.runs[0], expected);
  }
});

test("notes have an origin and affected nodes", () => {
  const data = small();
  data.notes = [
    { kind: "nan", node: 1, text: "v₁ is the first NaN.", nodes: [1, 3], edges: [2] },
    { kind: "partial", node: null, text: "Not all." },
    { kind: "dead", node: 0, text: "dead" },
  ];
  const [nan, partial, dead] = decode(data).notes;
  assert.deepEqual(nan, { kind: "nan", node: 1, text: "v₁ is the first NaN.", nodes: [1, 3], edges: [2] });
  assert.deepEqual([partial.node, partial.nodes], [-1, []]);
  assert.deepEqual(dead.nodes, [0]);
});

/** @type {[string, (data: any) => unknown, string][]} what is invalid, how to make it so, and the message */
const SPOILED = [
  ["another version", (d) => (d.version = 1), "its version is 1; this player reads version 2"],
  ["no version", (d) => delete d.version, "its version is undefined; this player reads version 2"],
  ["no nodes", (d) => delete d.nodes, "trace.nodes is missing"],
  ["nodes as a list", (d) => (d.nodes = []), "trace.nodes is []; expected an object"],
  ["no column", (d) => delete d.edges.slot, "trace.edges.slot is missing"],
  ["no letters", (d) => delete d.nodes.state, "trace.nodes.state is missing"],
  ["a column too short", (d) => d.nodes.value.pop(), "trace.nodes.value has 3 items; expected 4"],
  ["letters too short", (d) => (d.nodes.state = "n"), "trace.nodes.state has 1 items; expected 4"],
  ["another letter", (d) => (d.nodes.kind = "loc?"), 'trace.nodes.kind is "?"; expected one of the letters locx'],
  ["a text for a number", (d) => (d.nodes.value[0] = "2"), 'trace.nodes.value is "2"; expected a number'],
  ["a number for a text", (d) => (d.nodes.name[0] = 2), "trace.nodes.name.0 is 2; expected a string"],
  ["a line that is none", (d) => (d.nodes.line[0] = null), "trace.nodes.line.0 is null; expected a string"],
  ["a node too many", (d) => (d.nodes.name[9] = "z"), "trace.nodes.name is 9; expected an integer from 0 to 3"],
  ["an op that is not there", (d) => (d.nodes.op[1] = 9), "trace.nodes.op is 9; expected an integer from -1 to 3"],
  ["half an index", (d) => (d.outputs = [0.5]), "trace.outputs is 0.5; expected an integer from 0 to 3"],
  ["an op without an op", (d) => (d.nodes.op[1] = -1), "node 1 is computed but has no op"],
  ["a leaf with an op", (d) => (d.nodes.op[0] = 0), "node 0 is not computed but has an op"],
  ["an edge into a leaf", (d) => Object.assign(d.nodes, { kind: "llco", op: [-1, -1, -1, 0] }),
    "node 1 is not computed but has incoming edges"],
  ["an edge back", (d) => (d.edges.operand[0] = 3), "edge 0 goes from node 3 back to node 1"],
  ["an edge to itself", (d) => (d.edges.operand[0] = 1), "edge 0 goes from node 1 back to node 1"],
  ["edges not by result", (d) => Object.assign(d.edges, { operand: [0, 0, 0, 2], result: [1, 3, 1, 3] }),
    "edge 2 into node 1 follows an edge into a later node"],
  ["slots out of order", (d) => (d.edges.slot = [1, 0, 0, 1]), "edge 1 into node 1 is not in slot order"],
  ["an event where nothing flows", (d) => (d.edges.flows = "0111"),
    "event 1 of trace.passes[0] goes over edge 0, where no gradient flows"],
  ["an event twice", (d) => (d.passes[0].edge = [2, 0, 0]), "event 2 of trace.passes[0] goes over edge 0 a second time"],
  ["an event too early", (d) => (d.passes[0].edge = [0, 1, 2]),
    "event 0 of trace.passes[0] goes over edge 0, but node 1 has no gradient yet"],
  ["events not as many as totals", (d) => d.passes[0].total.pop(), "trace.passes[0].total has 2 items; expected 3"],
  ["an array that is not there", (d) => (d.passes[0].total[0] = { array: 0 }),
    "trace.passes[0].total.array is 0; expected an integer from 0 to -1"],
  ["a root that is not there", (d) => (d.passes[0].root = 4),
    "trace.passes[0].root is 4; expected an integer from 0 to 3"],
  ["a block outside", (d) => (d.blocks[1].outer = 1), "trace.blocks[1].outer is 1; expected an integer from 0 to 0"],
  ["two whole graphs", (d) => (d.blocks[1].outer = -1), "trace.blocks[1].outer is -1; expected an integer from 0 to 0"],
  ["a kind of block", (d) => (d.blocks[1].kind = "box"), 'trace.blocks[1].kind is "box"; expected one of graph, scope, fold, run'],
  ["cells left out in silence", (d) => (d.arrays = [{ ...withArrays().arrays[0], step: undefined, size: 6 }]),
    "trace.arrays[0] has 4 cells for 6 elements, and no step"],
  ["cells that are missing", (d) => (d.arrays = [{ ...withArrays().arrays[0], rows: 3 }]),
    "trace.arrays[0].cells has 4 items; expected 6"],
  ["a size that is none", (d) => (d.arrays = [{ ...withArrays().arrays[0], nan: -1 }]), "trace.arrays[0].nan is -1; expected an integer from 0 to Infinity"],
  ["a note nowhere", (d) => (d.notes = [{ kind: "nan", node: 7, text: "" }]),
    "trace.notes[0].node is 7; expected an integer from 0 to 3"],
  ["a version of any length", (d) => (d.version = "9".repeat(9000)), `its version is "${"9".repeat(58)}…; this player reads version 2`],
  ["a nest for an index", (d) => (d.outputs = [nested()]), "trace.outputs is deeply nested data; expected an integer from 0 to 3"],
  ["a nest for a text", (d) => (d.sentence = nested()), "trace.sentence is deeply nested data; expected a string"],
  ["an index that is no number", (d) => (d.outputs = [{ toString: 1, valueOf: 1 }]),
    'trace.outputs is {"toString":1,"valueOf":1}; expected an integer from 0 to 3'],
  ["tours that are none", (d) => (d.tours = "no"), 'trace.tours is "no"; expected a list'],
];

/** So deep that it can be formatted neither as JSON nor as a string. */
function nested() {
  let list = [];
  for (let k = 0; k < 100_000; k += 1) list = [list];
  return list;
}

for (const [what, spoil, why] of SPOILED) {
  test(`a trace with ${what} is rejected with the reason`, () => {
    const data = small();
    spoil(data);
    assert.throws(() => decode(data), { message: `This trace cannot be shown: ${why}.` });
  });
}

test("data that is not a trace is rejected", () => {
  for (const data of [null, 3, "trace", []]) {
    const why = `trace is ${JSON.stringify(data)}; expected an object`;
    assert.throws(() => decode(data), { message: `This trace cannot be shown: ${why}.` });
  }
  assert.throws(() => decode(undefined), { message: "This trace cannot be shown: trace is missing." });
});

test("a node may not receive a contribution after it has propagated its gradient", () => {
  const data = scalarTrace((t) => {
    const a = t.leaf("a", 2);
    const b = t.tanh(a);
    return t.mul(b, t.tanh(b), "y");
  });
  assert.deepEqual(data.passes[0].edge, [2, 3, 1, 0]);
  data.passes[0].edge = [2, 0, 3, 1];
  const why = "event 3 of trace.passes[0] goes over edge 1, but node 1 has already propagated its gradient";
  assert.throws(() => decode(data), { message: `This trace cannot be shown: ${why}.` });
});

test("100,000 nodes are decoded", () => {
  const graph = decode(longTrace(100_000));
  assert.equal(graph.count, 100_000);
  assert.equal(graph.numbers.value[graph.outputs[0]], 99_999 / 7);
  assert.equal(graph.numbers.runs[0].edge.length, 180_000);
});

/** Additions in a chain, of leaves that are used nine times each. @param {number} count */
function longTrace(count) {
  const leaves = count / 10;
  const edges = 2 * (count - leaves);
  const list = (/** @type {number} */ n, /** @type {(i: number) => unknown} */ item) =>
    Array.from({ length: n }, (_, i) => item(i));
  const results = list(edges, (i) => leaves + (i >> 1));
  const operands = list(edges, (i) => (i % 2 && i > 1 ? leaves + (i >> 1) - 1 : (i >> 1) % leaves));
  const order = list(edges, (i) => edges - 1 - (i ^ 1));
  const ones = list(edges, () => 1.5);
  const data = scalarTrace((t) => t.leaf("a", 2));
  Object.assign(data.nodes, {
    kind: "l".repeat(leaves) + "o".repeat(count - leaves),
    op: list(count, (i) => (i < leaves ? -1 : 0)),
    value: list(count, (i) => i / 7),
    state: "n".repeat(count),
    grad: {},
    block: list(count, () => 0),
    formula: list(count, () => -1),
  });
  const formula = list(edges, () => -1);
  Object.assign(data.edges, { operand: operands, result: results, slot: list(edges, (i) => i % 2), formula });
  Object.assign(data.edges, { flows: "1".repeat(edges), local: ones });
  data.outputs = [count - 1];
  data.passes = [{ root: count - 1, edge: order, upstream: ones, contribution: ones, total: ones }];
  return data;
}

test("a constant without a stored value is titled ?", () => {
  const data = scalarTrace((t) => t.mul(t.leaf("a", 2), t.constant(3)));
  data.nodes.value[1] = null;
  assert.equal(decode(data).title(1), "?");
});
