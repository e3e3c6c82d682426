/**
 * Traces for tests, built without Python: a small scalar engine that records its operations.
 *
 *     const data = scalarTrace((t) => {
 *       const a = t.leaf("a", 2);
 *       return t.mul(a, t.add(a, t.constant(1)), "y");
 *     });
 */

import { decode } from "../src/model/trace.js";

/** For each op: its function, its local derivatives by (y, ...operands), and its formulas for the engine. */
const OPS = {
  add: { js: "(a + b)", rules: ["g", "g"], at: (a, b) => a + b, local: () => [1, 1] },
  mul: { js: "(a * b)", rules: ["(g * b)", "(g * a)"], at: (a, b) => a * b, local: (y, a, b) => [b, a] },
  tanh: { js: "Math.tanh(a)", rules: ["(g * (1 - (y * y)))"], at: Math.tanh, local: (y) => [1 - y * y] },
  detach: { js: "a", rules: [null], at: (a) => a, local: () => [null] },
};
const OP_NAMES = Object.keys(OPS);

/**
 * Trace what `build` computes: it receives the tape and returns the output, or a list of them. Nodes are indices.
 * @param {(t: ReturnType<typeof tapeOf>["tape"]) => number | number[]} build
 * @returns {any} parsed JSON
 */
export function scalarTrace(build) {
  const { tape, data } = tapeOf();
  data.outputs = [build(tape)].flat();
  const { nodes, edges } = data;
  data.sentence = `Graph of ${data.outputs.length} outputs.`;
  data.passes = data.outputs.map((root) => passFrom(root, data));
  nodes.state = [...nodes.state].map((state, node) => (state === "b" || !(node in nodes.grad) ? state : "f")).join("");
  edges.local = edges.local.map(jsonNumber);
  nodes.value = nodes.value.map(jsonNumber);
  for (const node of Object.keys(nodes.grad)) nodes.grad[node] = jsonNumber(nodes.grad[node]);
  return JSON.parse(JSON.stringify(data));
}

/** Convert a number to JSON. */
export function jsonNumber(x) {
  return x === null || Number.isFinite(x) ? x : String(x);
}

function tapeOf() {
  const nodes = { kind: "", op: [], name: {}, value: [], state: "", grad: {}, block: [], line: {}, stale: [] };
  Object.assign(nodes, { tensor: {}, formula: [], attrs: {} });
  const edges = { operand: [], result: [], slot: [], flows: "", local: [], formula: [] };
  const data = { version: 2, sentence: "", outputs: [], nodes, edges, passes: [], formulas: [], arrays: [], notes: [] };
  data.blocks = [{ name: "graph", outer: -1, kind: "graph" }];
  data.ops = Object.entries(OPS).map(([name, { js, rules }]) => ({ name, formula: js, js, rules, why: null }));
  let block = 0;
  const append = (kind, op, value, state, name) => {
    const node = nodes.op.push(op) - 1;
    nodes.kind += kind;
    nodes.value.push(value);
    nodes.state += state;
    nodes.block.push(block);
    nodes.formula.push(-1);
    if (name !== undefined) nodes.name[node] = name;
    return node;
  };
  const apply = (kind, op, operands, name) => {
    const { at, local } = OPS[op];
    const y = kind === "x" ? null : at(...operands.map((x) => nodes.value[x]));
    const locals = local(y, ...operands.map((x) => nodes.value[x]));
    const flows = operands.map((x, slot) => kind === "o" && nodes.state[x] !== "b" && locals[slot] !== null);
    const node = append(kind, OP_NAMES.indexOf(op), y, flows.includes(true) ? "n" : "b", name);
    operands.forEach((operand, slot) => {
      edges.operand.push(operand);
      edges.result.push(node);
      edges.slot.push(slot);
      edges.flows += Number(flows[slot]);
      edges.local.push(flows[slot] ? locals[slot] : null);
      edges.formula.push(-1);
    });
    return node;
  };
  const tape = {
    leaf: (name, value, blocked = false) => append("l", -1, value, blocked ? "b" : "n", name ?? undefined),
    constant: (value) => append("c", -1, value, "b", undefined),
    add: (a, b, name) => apply("o", "add", [a, b], name),
    mul: (a, b, name) => apply("o", "mul", [a, b], name),
    tanh: (a, name) => apply("o", "tanh", [a], name),
    detach: (a, name) => apply("o", "detach", [a], name),
    failing: (op, ...operands) => apply("x", op, operands, undefined),
    line: (node, text) => void (nodes.line[node] = text),
    scope: (name, inside) => {
      const outer = block;
      block = data.blocks.push({ name, outer, kind: "scope" }) - 1;
      const made = inside();
      block = outer;
      return made;
    },
  };
  return { tape, data };
}

/** Return the events of a backward pass, and store the gradients in `nodes.grad`. */
function passFrom(root, { nodes, edges }) {
  const pass = { root, edge: [], upstream: [], contribution: [], total: [] };
  const totals = new Map([[root, 1]]);
  for (let node = root; node >= 0; node -= 1) {
    if (!totals.has(node)) continue;
    for (let edge = 0; edge < edges.result.length; edge += 1) {
      if (edges.result[edge] !== node || edges.flows[edge] !== "1") continue;
      const contribution = totals.get(node) * edges.local[edge];
      const before = totals.get(edges.operand[edge]);
      const total = before === undefined ? contribution : before + contribution;
      totals.set(edges.operand[edge], total);
      pass.edge.push(edge);
      pass.upstream.push(jsonNumber(totals.get(node)));
      pass.contribution.push(jsonNumber(contribution));
      pass.total.push(jsonNumber(total));
    }
  }
  for (const [node, total] of totals) nodes.grad[node] = (nodes.grad[node] ?? 0) + total;
  return pass;
}

/**
 * Return a random graph of `size` ops over a few leaves.
 * @param {number} seed
 * @param {number} [size]
 */
export function randomTrace(seed, size = 12) {
  const random = randomFrom(seed);
  const pick = (list) => list[Math.floor(random() * list.length)];
  return scalarTrace((t) => {
    const made = [t.leaf("a", random() * 4 - 2), t.leaf("b", random() * 4 - 2), t.leaf(null, random(), true)];
    for (let i = 0; i < size; i += 1) {
      const kind = random();
      if (kind < 0.1) made.push(t.constant(Math.round(random() * 9)));
      else if (kind < 0.4) made.push(t.add(pick(made), pick(made)));
      else if (kind < 0.7) made.push(t.mul(pick(made), pick(made)));
      else if (kind < 0.75) made.push(t.detach(pick(made)));
      else made.push(t.tanh(pick(made)));
    }
    return random() < 0.3 ? [made[made.length - 1], pick(made)] : made[made.length - 1];
  });
}

/** Return a seeded random generator of floats in [0, 1). */
export function randomFrom(seed) {
  let state = (seed * 2654435761 + 12345) >>> 0;
  return () => {
    state = (Math.imul(state ^ (state >>> 15), 2246822519) + 0x9e3779b9) >>> 0;
    return (state >>> 8) / 2 ** 24;
  };
}

/** Return decoded `Cells`. @param {number[]} shape @param {number[]} cells @param {object} [more] @returns {any} */
export function array(shape, cells, more = {}) {
  const finite = cells.filter(Number.isFinite);
  const cols = shape.at(-1) ?? 1;
  const span = { min: Math.min(...finite), max: Math.max(...finite) };
  return {
    shape,
    dtype: "float32",
    size: cells.length,
    cells: Float64Array.from(cells),
    rows: cells.length / cols,
    cols,
    step: null,
    ...span,
    ...more,
  };
}

/** a is used three times, once in a square; 1.0 gets no gradient. */
export const shared = () =>
  decode(
    scalarTrace((t) => {
      const a = t.leaf("a", 2);
      const b = t.leaf("b", -3);
      const c = t.mul(a, b, "c");
      const d = t.add(c, t.constant(1));
      return t.mul(t.mul(a, a), d, "y");
    }),
  );
