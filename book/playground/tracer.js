/**
 * Conversion of a tape to a trace, the player's data: version 2, as viz/minigrad_viz/trace/wire.py defines it. Values
 * come from the player's own engine, which computes a graph from its leaves, forward and backward.
 */

import { createEngine } from "../../viz/frontend/src/engine/engine.js";
import { formatPretty } from "../../viz/frontend/src/base/notation.js";
import { decode } from "../../viz/frontend/src/model/trace.js";

import { createNotes } from "./notes.js";

/** @typedef {import("./catalogue.js").Catalogue} Catalogue */
/** @typedef {import("./tape.js").Tape} Tape */
/** @typedef {import("../../viz/frontend/src/base/types.js").Graph} Graph */
/** @typedef {import("../../viz/frontend/src/base/types.js").Numbers} Numbers */
/** @typedef {import("../../viz/frontend/src/base/types.js").Template} Template */

/**
 * Create a tracer: a function from values of the leaves, by name, to the trace of a tape.
 * @param {Tape} tape @param {Catalogue} catalogue
 */
export function createTracer(tape, catalogue) {
  const skeleton = createSkeleton(tape, catalogue);
  const graph = decode(skeleton);
  const graphEngine = createEngine(graph);
  const leaves = new Map(graph.names.flatMap((name, at) => (tape.entries[at].kind === "l" ? [[name ?? "", at]] : [])));
  return {
    /** A key of the graph, equal for expressions with the same graph. */
    shape: JSON.stringify(skeleton),
    /** @param {ReadonlyMap<string, number>} numbers */
    trace(numbers) {
      const overrides = [...leaves].map(([name, at]) => /** @type {[number, number]} */ ([at, numbers.get(name) ?? 0]));
      return fillValues(skeleton, graph, graphEngine.run(new Map(overrides)));
    },
  };
}

// --- structure ------------------------------------------------------------------------------------------------------

/** Build a trace without values. @param {Tape} tape @param {Catalogue} catalogue */
function createSkeleton({ entries }, catalogue) {
  /** @type {string[]} */
  const names = [];
  /** @type {Template[]} */
  const formulas = [];
  /** @type {number[][]} by node: its formula, then those of its edges */
  const formulaIndices = [];
  const formulaIndex = createFormulaIndex(formulas);
  entries.forEach((entry) => {
    if (entry.op !== null && !names.includes(entry.op)) names.push(entry.op);
    formulaIndices.push(entry.op === null ? [-1] : formulaIndex(entry.op, catalogue, entry, entries));
  });
  const root = entries.length - 1;
  const edges = edgesOf(entries, catalogue);
  return {
    version: 2,
    sentence: "",
    outputs: [root],
    nodes: {
      kind: entries.map(({ kind }) => kind).join(""),
      name: Object.fromEntries(entries.flatMap(({ name }, at) => (name === null ? [] : [[at, name]]))),
      value: entries.map(({ kind, value }) => (kind === "l" ? 0 : jsonNumber(value))),
      state: entries.map(({ kind }) => (kind === "c" ? "b" : "n")).join(""),
      grad: {},
      block: entries.map(() => 0),
      line: {},
      stale: [],
      tensor: {},
      attrs: Object.fromEntries(entries.flatMap(({ attrs }, at) => (Object.keys(attrs).length ? [[at, formatAttributes(attrs)]] : []))),
      op: entries.map(({ op }) => (op === null ? -1 : names.indexOf(op))),
      formula: formulaIndices.map(([whole]) => whole),
    },
    edges: { ...edges, local: edges.operand.map(() => null), formula: formulaIndices.flatMap(([, ...local]) => local) },
    passes: [backwardPass(root, edges)],
    blocks: [{ name: "graph", outer: -1, kind: "graph" }],
    ops: names.map((name) => catalogue.op(name).record),
    formulas,
    notes: /** @type {import("./notes.js").TraceNote[]} */ ([]),
    arrays: [],
  };
}

/** Format attributes as Python does. @param {import("./catalogue.js").Attrs} attrs */
const formatAttributes = (attrs) =>
  Object.fromEntries(Object.entries(attrs).map(([name, x]) => [name, x === null ? "None" : formatFloat(x)]));

/** Format a float as Python does. @param {number} x */
function formatFloat(x) {
  if (!Number.isFinite(x)) return x > 0 ? "inf" : x < 0 ? "-inf" : "nan";
  const text = Object.is(x, -0) ? "-0" : String(x);
  return /^-?\d+$/.test(text) ? `${text}.0` : text;
}

/**
 * Return a function from a node to the indices of its formulas, which are stored once.
 * @param {Template[]} formulas
 * @returns {(op: string, catalogue: Catalogue, entry: import("./tape.js").Entry, entries: Tape["entries"]) => number[]}
 */
function createFormulaIndex(formulas) {
  /** @type {Map<string, number>} */
  const indices = new Map();
  const indexOf = (/** @type {Template | null} */ one) => {
    if (one === null) return -1;
    const key = `${one.text}\n${one.mathml}`;
    if (!indices.has(key)) indices.set(key, formulas.push(one) - 1);
    return indices.get(key) ?? -1;
  };
  return (op, catalogue, { operands, attrs }, entries) => {
    const constants = operands.map((at) => entries[at].value);
    const { whole, local } = catalogue.formulas(op, constants, attrs);
    return [whole, ...local].map(indexOf);
  };
}

/** Return the edges into each node, in operand order. @param {Tape["entries"]} entries @param {Catalogue} catalogue */
function edgesOf(entries, catalogue) {
  /** @type {{operand: number[], result: number[], slot: number[], flows: string}} */
  const edges = { operand: [], result: [], slot: [], flows: "" };
  entries.forEach(({ op, operands }, result) => {
    operands.forEach((operand, slot) => {
      edges.operand.push(operand);
      edges.result.push(result);
      edges.slot.push(slot);
      const rule = op !== null && catalogue.op(op).flows[slot];
      edges.flows += Number(rule && entries[operand].kind !== "c");
    });
  });
  return edges;
}

/**
 * Return the edges of the backward pass, in reverse tape order; their values are filled in later.
 * @param {number} root @param {{operand: number[], result: number[], flows: string}} edges
 */
function backwardPass(root, { operand, result, flows }) {
  const into = Array.from({ length: root + 1 }, () => /** @type {number[]} */ ([]));
  result.forEach((node, edge) => into[node].push(edge));
  const reached = new Set([root]);
  /** @type {number[]} */
  const edge = [];
  for (let node = root; node >= 0; node -= 1) {
    if (!reached.has(node)) continue;
    for (const edgeIndex of into[node]) {
      if (flows[edgeIndex] !== "1") continue;
      reached.add(operand[edgeIndex]);
      edge.push(edgeIndex);
    }
  }
  const none = edge.map(() => null);
  return { root, edge, upstream: none, contribution: none, total: none };
}

// --- values ---------------------------------------------------------------------------------------------------------

/** Convert a number to JSON. @param {unknown} x */
const jsonNumber = (x) => (typeof x !== "number" ? null : Number.isFinite(x) ? x : String(x));

/** @param {ReturnType<typeof createSkeleton>} skeleton @param {Graph} graph @param {Numbers} numbers */
function fillValues(skeleton, graph, numbers) {
  const column = (/** @type {ArrayLike<unknown>} */ all) => Array.from(all, jsonNumber);
  const { nodes, edges } = skeleton;
  return {
    ...skeleton,
    sentence: describeGraph(graph, Number(numbers.value[graph.outputs[0]])),
    nodes: { ...nodes, value: column(numbers.value) },
    edges: { ...edges, local: edges.operand.map((_, edge) => jsonNumber(numbers.local(edge))) },
    passes: numbers.runs.map(({ root, edge, upstream, contribution, total }) => ({
      root,
      edge: [...edge],
      upstream: column(upstream),
      contribution: column(contribution),
      total: column(total),
    })),
    notes: createNotes(graph, numbers),
  };
}

/** Describe the graph in one sentence. @param {Graph} graph @param {number} value of the output */
function describeGraph({ outputs: [root], kind, title }, value) {
  const parts = /** @type {[string, string][]} */ ([["leaf", "leaves"], ["operation", "operations"], ["constant", "constants"]]); // prettier-ignore
  const counts = parts.flatMap(([one, many], at) => {
    const count = kind.filter((found) => found === at).length;
    return count ? [`${count} ${count === 1 ? one : many}`] : [];
  });
  return `Graph of ${title(root)} = ${formatPretty(value)}: ${counts.join(", ")}.`;
}
