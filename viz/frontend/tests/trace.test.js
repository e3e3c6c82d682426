import assert from "node:assert/strict";
import { test } from "node:test";
import { BLOCKED, BROKEN, CONSTANT, FINAL, LEAF, OP, decode, valueOf } from "../src/model/trace.js";
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
  assert.deepEqual(graph.blocks[1], { name: "inner", outer: 0, kind: "scope", count: null, line: null });
  assert.deepEqual([...graph.start], [0, 0, 2, 2, 4]);
  assert.deepEqual([...graph.operand], [0, 0, 1, 2]);
  assert.deepEqual([...graph.flows], [1, 1, 1, 0]);
  assert.deepEqual([...graph.numbers.value], [2, 4, 1, 5]);
  assert.deepEqual([...graph.numbers.local], [2, 2, 1, NaN]);
  assert.deepEqual([...graph.numbers.localKnown], [1, 1, 1, 0]);
  assert.deepEqual([...graph.numbers.grad], [4, 1, NaN, 1]);
  assert.deepEqual([...graph.numbers.runs[0].edge], [2, 0, 1]);
  assert.deepEqual([...graph.numbers.runs[0].total], [1, 2, 4]);
  assert.equal(graph.numbers.runs[0].arrays, null);
  assert.deepEqual([...graph.lines], [[1, "lesson.py:3: c = a * a"]]);
  assert.deepEqual(graph.tours, []);
});

test("the edges that leave a node are found, a*a with two", () => {
  const graph = decode(small());
  const outs = [0, 1, 2, 3].map((node) => [...graph.outs(node)]);
  assert.deepEqual(outs, [[0, 1], [2], [3], []]);
});

test("a node is called by its name, a constant by its number, others by their place", () => {
  const graph = decode(small());
  assert.deepEqual([0, 1, 2, 3].map((node) => graph.title(node)), ["a", "v₁", "1.0", "y"]);
  const data = small();
  data.nodes.value[2] = null;
  assert.equal(decode(data).title(2), "?", "a tensor that was not kept");
});

test("what JSON has no numbers for comes as text", () => {
  const data = small();
  data.nodes.value = ["NaN", "Infinity", "-Infinity", null];
  const { numbers } = decode(data);
  assert.deepEqual([...numbers.value], [NaN, Infinity, -Infinity, NaN]);
  assert.deepEqual([...numbers.known], [1, 1, 1, 0]);
});

test("a tensor's value is its array, one that raised has none", () => {
  const data = withArrays();
  const graph = decode(data);
  const value = valueOf(graph, graph.numbers, 0);
  assert.ok(value !== null && typeof value === "object");
  assert.deepEqual(value.shape, [2, 2]);
  assert.deepEqual([...value.cells], [1, NaN, 3, Infinity]);
  assert.deepEqual([value.step, value.min, value.mean], [[1, 2], 1, null]);
  assert.equal(valueOf(graph, graph.numbers, 1), null);
  assert.equal(valueOf(graph, graph.numbers, 2), 1);
  assert.deepEqual([...(graph.numbers.runs[0].arrays?.total ?? [])], [-1, -1, 0]);
  assert.deepEqual([...graph.numbers.runs[0].known], [1, 1, 0]);
  const broken = decode(scalarTrace((t) => t.failing("tanh", t.leaf("a", 1))));
  assert.equal(broken.kind[1], BROKEN);
  assert.equal(valueOf(broken, broken.numbers, 1), null);
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
    const { arrays } = decode(data).numbers.runs[0];
    const places = ["upstream", "contribution", "total"].map((one) => [.../** @type {any} */ (arrays)[one]]);
    const expected = (/** @type {string} */ one) => (one === column ? [-1, 1, -1] : [-1, -1, -1]);
    assert.deepEqual(places, ["upstream", "contribution", "total"].map(expected));
  }
});

test("notes say where they begin and what they concern", () => {
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

/** @type {[string, (data: any) => unknown, string][]} how to spoil a trace, and what is said then */
const SPOILED = [
  ["another version", (d) => (d.version = 1), "it is of version 1, and this player reads version 2"],
  ["no version", (d) => delete d.version, "it is of version undefined, and this player reads version 2"],
  ["no nodes", (d) => delete d.nodes, "nodes is missing"],
  ["nodes as a list", (d) => (d.nodes = []), "nodes is not an object"],
  ["no column", (d) => delete d.edges.slot, "edges.slot is missing"],
  ["no letters", (d) => delete d.nodes.state, "nodes.state is missing"],
  ["a column too short", (d) => d.nodes.value.pop(), "nodes.value has 3 items instead of 4"],
  ["letters too short", (d) => (d.nodes.state = "n"), "nodes.state has 1 letters instead of 4"],
  ["another letter", (d) => (d.nodes.kind = "loc?"), 'nodes.kind has the letter "?", which is none of "locx"'],
  ["a text for a number", (d) => (d.nodes.value[0] = "2"), 'nodes.value holds "2" where a number should be'],
  ["a number for a text", (d) => (d.nodes.name[0] = 2), "nodes.name holds 2 where a text should be"],
  ["a line that is none", (d) => (d.nodes.line[0] = null), "nodes.line holds null where a text should be"],
  ["a node too many", (d) => (d.nodes.name[9] = "z"), 'nodes.name has an item for node "9", and there are 4 nodes'],
  ["an op that is not there", (d) => (d.nodes.op[1] = 9), "nodes.op holds 9, which is not an integer from -1 to 3"],
  ["half an index", (d) => (d.outputs = [0.5]), "outputs holds 0.5, which is not an integer from 0 to 3"],
  ["an op without an op", (d) => (d.nodes.op[1] = -1), "node 1 is computed by no op"],
  ["a leaf with an op", (d) => (d.nodes.op[0] = 0), "node 0 is no op, but has one"],
  ["an edge into a leaf", (d) => Object.assign(d.nodes, { kind: "llco", op: [-1, -1, -1, 0] }),
    "node 1 is no op, but edges lead to it"],
  ["an edge back", (d) => (d.edges.operand[0] = 3), "edge 0 goes from node 3 back to node 1"],
  ["an edge to itself", (d) => (d.edges.operand[0] = 1), "edge 0 goes from node 1 back to node 1"],
  ["edges not by result", (d) => Object.assign(d.edges, { operand: [0, 0, 0, 2], result: [1, 3, 1, 3] }),
    "edge 2 into node 1 comes after one into a later node"],
  ["slots out of order", (d) => (d.edges.slot = [1, 0, 0, 1]), "edge 1 into node 1 is not in the order of the slots"],
  ["an event where nothing flows", (d) => (d.edges.flows = "0111"),
    "event 1 of pass 0 goes over edge 0, where no gradient flows"],
  ["an event twice", (d) => (d.passes[0].edge = [2, 0, 0]), "event 2 of pass 0 goes over edge 0 a second time"],
  ["an event too early", (d) => (d.passes[0].edge = [0, 1, 2]),
    "event 0 of pass 0 goes over edge 0, but node 1 has no gradient yet"],
  ["events not as many as totals", (d) => d.passes[0].total.pop(), "passes[0].total has 2 items instead of 3"],
  ["an array that is not there", (d) => (d.passes[0].total[0] = { array: 0 }),
    "passes[0].total[0].array holds 0, which is not an integer from 0 to -1"],
  ["a root that is not there", (d) => (d.passes[0].root = 4),
    "the root of pass 0 holds 4, which is not an integer from 0 to 3"],
  ["a block outside", (d) => (d.blocks[1].outer = 1), "block 1 is in block 1, which does not come before it"],
  ["two whole graphs", (d) => (d.blocks[1].outer = -1), "block 1 is in block -1, which does not come before it"],
  ["a kind of block", (d) => (d.blocks[1].kind = "box"), 'block 1 is of the kind "box"'],
  ["cells left out in silence", (d) => (d.arrays = [{ ...withArrays().arrays[0], step: undefined, size: 6 }]),
    "array 0 has 4 cells for 6 numbers, and no step"],
  ["cells that are missing", (d) => (d.arrays = [{ ...withArrays().arrays[0], rows: 3 }]),
    "the cells of array 0 has 4 items instead of 6"],
  ["a size that is none", (d) => (d.arrays = [{ ...withArrays().arrays[0], nan: -1 }]), "a size of array 0 is -1"],
  ["a note nowhere", (d) => (d.notes = [{ kind: "nan", node: 7, text: "" }]),
    "note 0 holds 7, which is not an integer from 0 to 3"],
  ["tours that are none", (d) => (d.tours = "no"), "tours is not a list"],
];

for (const [what, spoil, why] of SPOILED) {
  test(`a trace with ${what} is refused with the reason`, () => {
    const data = small();
    spoil(data);
    assert.throws(() => decode(data), { message: `This trace cannot be shown: ${why}.` });
  });
}

test("what is no trace at all is refused", () => {
  for (const data of [null, 3, "trace", []]) {
    assert.throws(() => decode(data), { message: "This trace cannot be shown: the trace is not an object." });
  }
  assert.throws(() => decode(undefined), { message: "This trace cannot be shown: the trace is missing." });
});

test("a node may not receive after it has handed on", () => {
  const data = scalarTrace((t) => {
    const a = t.leaf("a", 2);
    const b = t.tanh(a);
    return t.mul(b, t.tanh(b), "y");
  });
  assert.deepEqual(data.passes[0].edge, [2, 3, 1, 0]);
  data.passes[0].edge = [2, 0, 3, 1];
  const why = "event 3 of pass 0 goes over edge 1, but node 1 has handed its gradient on before";
  assert.throws(() => decode(data), { message: `This trace cannot be shown: ${why}.` });
});

test("100,000 nodes are decoded in less than 250 ms", () => {
  const data = longTrace(100_000);
  const times = [0, 1, 2].map(() => {
    const before = process.cpuUsage(); // of this process: other tests run beside it
    decode(data);
    return process.cpuUsage(before).user / 1000;
  });
  assert.ok(Math.min(...times) < 250, `${Math.min(...times)} ms`);
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

test("a constant whose number was not kept is called ?", () => {
  const data = scalarTrace((t) => t.mul(t.leaf("a", 2), t.constant(3)));
  data.nodes.value[1] = null;
  assert.equal(decode(data).title(1), "?");
});
