import assert from "node:assert/strict";
import { test } from "node:test";
import { createPlayback, createTimeline } from "../src/model/history.js";
import { formatPretty } from "../src/base/notation.js";
import { decode } from "../src/model/trace.js";
import { randomFrom, randomTrace, scalarTrace, shared } from "./helpers.js";

const played = (graph = shared()) => createPlayback(graph, createTimeline(graph));

test("the timeline lists the moments", () => {
  const { timeline: line } = played();
  const kinds = Array.from({ length: line.length }, (_, p) => line.kindAt(p));
  const four = (/** @type {string} */ kind) => [kind, kind, kind, kind];
  assert.deepEqual(kinds, ["start", ...four("forward"), "seed", ...four("edge"), "edge", "edge", "edge"]);
  const nodes = Array.from({ length: line.length }, (_, p) => line.nodeAt(p));
  assert.deepEqual(nodes, [-1, 2, 4, 5, 6, 6, 5, 4, 0, 0, 2, 0, 1]);
  const edges = Array.from({ length: line.length }, (_, p) => line.edgeAt(p));
  assert.deepEqual(edges, [-1, -1, -1, -1, -1, -1, 6, 7, 4, 5, 2, 0, 1]);
  assert.deepEqual([line.run, line.root, line.forward, line.seed, line.last, line.length], [0, 6, 4, 5, 12, 13]);
});

test("nodes and edges know their positions", () => {
  const { timeline: line } = played();
  assert.deepEqual([0, 1, 2, 3, 4, 5, 6].map(line.computedAt), [0, 0, 1, 0, 2, 3, 4]);
  assert.deepEqual([0, 1, 2, 3, 4, 5, 6].map(line.finalAt), [11, 12, 10, -1, 7, 6, 5]);
  assert.deepEqual([0, 1, 2, 3, 4, 5, 6, 7].map(line.passedAt), [11, 12, 10, -1, 8, 9, 6, 7]);
  assert.deepEqual([0, 1, 2, 3, 4, 5, 6].map(line.contributions), [3, 1, 1, 0, 1, 1, 0]);
});

test("an op step includes all edges of a node, forward and backward", () => {
  const { timeline: line } = played();
  assert.deepEqual(walk(0, (p) => line.next(p, "edge"), line.last), [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12]);
  assert.deepEqual(walk(0, (p) => line.next(p, "op"), line.last), [1, 2, 3, 4, 5, 7, 9, 10, 12]);
  assert.deepEqual(walk(12, (p) => line.previous(p, "op"), 0), [10, 9, 7, 5, 4, 3, 2, 1, 0]);
  assert.deepEqual(walk(12, (p) => line.previous(p, "edge"), 0), [11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0]);
  assert.deepEqual([line.next(6, "op"), line.previous(6, "op"), line.previous(8, "op")], [7, 5, 7]);
  assert.deepEqual([line.next(12, "op"), line.next(12, "edge"), line.previous(0, "op")], [12, 12, 0]);
});

/** @param {number} from @param {(p: number) => number} step @param {number} end */
function walk(from, step, end) {
  const path = [];
  for (let p = from; p !== end; ) path.push((p = step(p)));
  return path;
}

test("a gradient is none, then partial, then final", () => {
  const now = played();
  const states = Array.from({ length: now.timeline.length }, (_, position) => {
    now.seek(position);
    const { state, met, of, value } = now.gradient(0);
    return `${state} ${met}/${of} ${value}`;
  });
  assert.deepEqual(states.slice(0, 8), new Array(8).fill("none 0/3 null"));
  const [second, final] = ["partial 2/3 -20", "final 3/3 -32"];
  assert.deepEqual(states.slice(8), ["partial 1/3 -10", second, second, final, final]);
});

test("the root is final from the seed on, a constant is blocked from the start", () => {
  const now = played();
  const root = () => now.gradient(6);
  now.seek(4);
  assert.deepEqual(root(), { state: "none", met: 0, of: 0, value: null });
  assert.deepEqual(now.gradient(3), { state: "blocked", met: 0, of: 0, value: null });
  now.seek(5);
  assert.deepEqual(root(), { state: "final", met: 0, of: 0, value: 1 });
  now.seek(12);
  assert.deepEqual(root(), { state: "final", met: 0, of: 0, value: 1 });
  assert.deepEqual(now.gradient(3), { state: "blocked", met: 0, of: 0, value: null });
});

test("each pass of several has its own timeline and counts", () => {
  const graph = decode(
    scalarTrace((t) => {
      const a = t.leaf("a", 2);
      const b = t.leaf("b", 3);
      return [t.mul(a, a, "y"), t.mul(a, b, "z"), b];
    }),
  );
  const [y, z, b] = graph.numbers.runs.map((run) => createPlayback(graph, createTimeline(graph, run)));
  for (const now of [y, z, b]) now.seek(now.timeline.last);
  assert.deepEqual([y, z, b].map((now) => now.timeline.last), [5, 5, 3]);
  assert.deepEqual(y.gradient(0), { state: "final", met: 2, of: 2, value: 4 });
  assert.deepEqual(y.gradient(1), { state: "none", met: 0, of: 0, value: null }, "flows, but not from y");
  assert.deepEqual(y.gradient(3), { state: "none", met: 0, of: 0, value: null });
  assert.deepEqual(z.gradient(0), { state: "final", met: 1, of: 1, value: 3 });
  assert.deepEqual(z.gradient(2), { state: "none", met: 0, of: 0, value: null });
  assert.deepEqual(b.gradient(1), { state: "final", met: 0, of: 0, value: 1 });
  assert.equal(b.sentence(), "Step 3 of 3, backward: starts at b with gradient 1.0.");
});

test("without a backward pass there is only forward", () => {
  const graph = decode(scalarTrace((t) => t.detach(t.add(t.leaf("a", 1), t.leaf("b", 2)), "y")));
  const line = createTimeline(graph, null);
  assert.deepEqual([line.run, line.root, line.forward, line.seed, line.last], [-1, -1, 2, -1, 2]);
  assert.deepEqual(walk(0, (p) => line.next(p, "op"), line.last), [1, 2]);
  assert.deepEqual(walk(2, (p) => line.previous(p, "op"), 0), [1, 0]);
  const now = createPlayback(graph, line);
  now.seek(2);
  assert.equal(now.sentence(), "Step 2 of 2, forward: detach of v₂ = 3.0 is y = 3.0.");
  assert.deepEqual(now.gradient(3), { state: "blocked", met: 0, of: 0, value: null });
  assert.deepEqual(now.gradient(0), { state: "none", met: 0, of: 0, value: null });
  assert.equal(createTimeline(decode({ ...scalarTrace((t) => t.leaf("a", 1)), passes: [] })).last, 0);
});

test("a pass from a blocked root has no backward steps", () => {
  const now = played(decode(scalarTrace((t) => t.detach(t.leaf("a", 1), "y"))));
  assert.deepEqual([now.timeline.run, now.timeline.root, now.timeline.seed, now.timeline.last], [-1, -1, -1, 1]);
  now.seek(1);
  assert.equal(now.gradient(1).state, "blocked");
});

test("the first node of the tape may be the root", () => {
  const now = played(decode(scalarTrace((t) => t.leaf("a", 1))));
  assert.deepEqual([now.timeline.root, now.timeline.seed, now.timeline.last], [0, 1, 1]);
  now.seek(1);
  assert.deepEqual(now.gradient(0), { state: "final", met: 0, of: 0, value: 1 });
});

test("values are known from their position on", () => {
  const now = played();
  now.seek(2);
  assert.deepEqual([0, 1, 2, 3, 4, 5, 6].map(now.isComputed), [true, true, true, true, true, false, false]);
  assert.deepEqual([0, 2, 4, 5].map(now.value), [2, -6, -5, null]);
});

test("an edge is active at its moment, and done once the gradient has flowed over it", () => {
  const now = played();
  const states = (/** @type {number} */ position) => {
    now.seek(position);
    return Array.from({ length: 8 }, (_, edge) => now.edgeState(edge)[0]).join("");
  };
  assert.equal(states(0), "iiiiiiii");
  assert.equal(states(1), "aaiiiiii");
  assert.equal(states(4), "iiiiiiaa");
  assert.equal(states(5), "iiiiiiii");
  assert.equal(states(6), "iiiiiiai");
  assert.equal(states(9), "iiiidadd");
  assert.equal(states(12), "dadidddd");
});

test("a moment has all values of the chain rule", () => {
  const now = played();
  const none = { upstream: null, local: null, contribution: null, before: null, total: null };
  assert.deepEqual(now.moment(), { kind: "start", node: -1, edge: -1, value: null, ...none, met: 0, of: 0 });
  now.seek(1);
  assert.deepEqual(now.moment(), { kind: "forward", node: 2, edge: -1, value: -6, ...none, met: 0, of: 0 });
  assert.deepEqual(now.moment(5), { kind: "seed", node: 6, edge: -1, value: null, ...none, total: 1, met: 0, of: 0 });
  const first = { upstream: -5, local: 2, contribution: -10, before: null, total: -10, met: 1, of: 3 };
  assert.deepEqual(now.moment(8), { kind: "edge", node: 0, edge: 4, value: null, ...first });
  const third = { upstream: 4, local: -3, contribution: -12, before: -20, total: -32, met: 3, of: 3 };
  assert.deepEqual(now.moment(11), { kind: "edge", node: 0, edge: 0, value: null, ...third });
});

test("a step reports what it changed", () => {
  const now = played();
  assert.deepEqual(now.seek(0), { nodes: [], edges: [] });
  assert.deepEqual(now.seek(1), { nodes: [2], edges: [0, 1] });
  assert.deepEqual(now.seek(2), { nodes: [2, 4], edges: [0, 1, 2, 3] });
  now.seek(10);
  assert.deepEqual(now.seek(11), { nodes: [2, 4, 0], edges: [2, 0] });
  assert.deepEqual(now.seek(10), { nodes: [2, 4, 0], edges: [2, 0] });
});

test("an invalid position is rejected", () => {
  const now = played();
  for (const position of [-1, 13, 1.5, NaN]) {
    assert.throws(() => now.seek(position), { message: `Position ${position} is out of range: expected 0 to 12.` });
  }
  assert.equal(now.position, 0);
});

test("numbers can be replaced", () => {
  const graph = shared();
  const now = createPlayback(graph, createTimeline(graph));
  now.seek(1);
  const value = graph.numbers.value.slice();
  value[0] = 10;
  value[2] = -30;
  now.numbers = { ...graph.numbers, value };
  assert.equal(now.sentence(), "Step 1 of 12, forward: mul of a = 10.0 and b = −3.0 is c = −30.0.");
  assert.equal(now.value(2), -30);
});

test("in 500 random graphs every path to a position leads to the same state", () => {
  for (let seed = 0; seed < 500; seed += 1) {
    const graph = decode(randomTrace(seed));
    for (const run of graph.numbers.runs) checkPlayback(graph, run, seed);
  }
});

/** @param {import("../src/base/types.js").Graph} graph @param {import("../src/base/types.js").Run} run @param {number} seed */
function checkPlayback(graph, run, seed) {
  const line = createTimeline(graph, run);
  const fresh = Array.from({ length: line.length }, (_, position) => {
    const now = createPlayback(graph, line);
    now.seek(position);
    assert.deepEqual(stateOf(now), expectedState(graph, run, position), `seed ${seed}, position ${position}`);
    return stateOf(now);
  });
  const now = createPlayback(graph, line);
  const shown = stateOf(now);
  const random = randomFrom(seed);
  const there = Array.from({ length: line.length }, (_, p) => p);
  const jumps = there.map(() => Math.floor(random() * line.length));
  for (const position of [...there, ...there.reverse(), ...jumps]) {
    const { nodes, edges } = now.seek(position);
    assert.equal(new Set(nodes).size, nodes.length);
    assert.equal(new Set(edges).size, edges.length);
    const state = stateOf(now);
    for (const node of nodes) shown.nodes[node] = state.nodes[node];
    for (const edge of edges) shown.edges[edge] = state.edges[edge];
    assert.deepEqual(shown, fresh[position], `seed ${seed}: what changed was not told at ${position}`);
  }
}

/** Return the visible state. @param {import("../src/base/types.js").Playback} now */
function stateOf(now) {
  const { count, edgeCount } = now.graph;
  const node = (/** @type {unknown} */ _, /** @type {number} */ i) => {
    const { state, met, of, value } = now.gradient(i);
    return `${now.isComputed(i)} ${now.value(i)} ${state} ${met}/${of} ${value}`;
  };
  return {
    nodes: Array.from({ length: count }, node),
    edges: Array.from({ length: edgeCount }, (_, edge) => now.edgeState(edge)),
  };
}

/**
 * Compute the same state by replaying all steps.
 * @param {import("../src/base/types.js").Graph} graph
 * @param {import("../src/base/types.js").Run} run
 * @param {number} position
 */
function expectedState(graph, run, position) {
  const ops = Array.from({ length: graph.count }, (_, node) => node).filter((node) => graph.op[node] >= 0);
  const known = Array.from({ length: graph.count }, (_, node) => graph.op[node] < 0);
  const edges = new Array(graph.edgeCount).fill("idle");
  const [met, of] = [new Array(graph.count).fill(0), new Array(graph.count).fill(0)];
  const value = new Array(graph.count).fill(null);
  for (const edge of run.edge) of[graph.operand[edge]] += 1;
  for (let p = 1; p <= position; p += 1) {
    for (const [edge, state] of edges.entries()) {
      if (state === "active") edges[edge] = p > ops.length + 1 && met[graph.operand[edge]] ? "done" : "idle";
    }
    if (p <= ops.length) {
      known[ops[p - 1]] = true;
      for (const [edge, result] of graph.result.entries()) if (result === ops[p - 1]) edges[edge] = "active";
    } else if (p === ops.length + 1) {
      value[run.root] = 1;
    } else {
      const edge = run.edge[p - ops.length - 2];
      const operand = graph.operand[edge];
      edges[edge] = "active";
      met[operand] += 1;
      value[operand] = (value[operand] ?? 0) + value[graph.result[edge]] * Number(graph.numbers.local(edge));
    }
  }
  const stateAt = (/** @type {number} */ i) => {
    if (of[i] === 0 && graph.state[i] === 2) return "blocked";
    if (of[i] === 0 && i !== run.root) return "none";
    return value[i] === null ? "none" : met[i] < of[i] ? "partial" : "final";
  };
  const nodes = known.map((is, i) => {
    const number = is ? graph.numbers.value[i] : null;
    return `${is} ${number} ${stateAt(i)} ${met[i]}/${of[i]} ${value[i]}`;
  });
  return { nodes, edges };
}

test("a step in a graph of 20,000 nodes visits only its own nodes and edges", () => {
  const graph = decode(chainTrace(20_000));
  const now = createPlayback(graph, createTimeline(graph));
  for (let p = 1; p <= now.timeline.last; p += 1) {
    const { nodes, edges } = now.seek(p);
    assert.ok(nodes.length <= 5 && edges.length <= 4);
    now.gradient(nodes[0]);
  }
  assert.equal(formatPretty(/** @type {number} */ (now.gradient(0).value)), "1.0");
});

/** x + 1 + 1 + … @param {number} count */
function chainTrace(count) {
  const data = scalarTrace((t) => t.add(t.leaf("x", 1), t.constant(1)));
  const list = (/** @type {number} */ n, /** @type {(i: number) => unknown} */ item) =>
    Array.from({ length: n }, (_, i) => item(i));
  const ones = list(count - 1, () => 1);
  const none = list(count - 1, () => -1);
  Object.assign(data.nodes, { kind: `l${"o".repeat(count - 1)}`, op: [-1, ...list(count - 1, () => 2)] });
  Object.assign(data.nodes, { value: list(count, () => 0), state: "n".repeat(count), grad: {}, name: {} });
  Object.assign(data.nodes, { block: list(count, () => 0), formula: list(count, () => -1) });
  const chain = { operand: list(count - 1, (i) => i), result: list(count - 1, (i) => i + 1) };
  data.edges = { ...chain, slot: list(count - 1, () => 0), flows: "1".repeat(count - 1), local: ones, formula: none };
  data.outputs = [count - 1];
  const edge = list(count - 1, (i) => count - 2 - i);
  data.passes = [{ root: count - 1, edge, upstream: ones, contribution: ones, total: ones }];
  return data;
}
