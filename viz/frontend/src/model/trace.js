/**
 * Decode and validate a trace from Python, version 2: columns become typed arrays. Traces come from files too, so
 * everything is checked here; the rest of the player can rely on valid indices and forward edges.
 */

import { formatPretty, shortenName, subscript } from "../base/notation.js";
import { Field, formatJson, rejectTrace } from "./field.js";

/** @typedef {import("../base/types.js").Graph} Graph */
/** @typedef {import("../base/types.js").Run} Run */
/** @typedef {import("../base/types.js").Cells} Cells */

export const LEAF = 0;
export const OP = 1;
export const CONSTANT = 2;
export const BROKEN = 3;

export const NONE = 0;
export const FINAL = 1;
export const BLOCKED = 2;
export const FREED = 3;

const TRACE_VERSION = 2;
const BLOCK_KINDS = ["graph", "scope", "fold", "run"];

/**
 * Decode a trace. Throws an Error with the reason if `data` is not a valid trace of this version.
 * @param {unknown} data parsed JSON
 * @returns {Graph}
 */
export function decode(data) {
  const trace = new Field(data, "trace");
  const version = trace.at("version").data;
  if (version !== TRACE_VERSION) {
    rejectTrace(`its version is ${formatJson(version)}; this player reads version ${TRACE_VERSION}`);
  }
  const tables = {
    blocks: trace.at("blocks").asItems(readBlock),
    ops: trace.at("ops").asItems(readOp),
    formulas: trace.at("formulas").asItems((item) => {
      const [text, mathml] = [item.at("text").asString(), item.at("mathml").asString()];
      return { text, mathml, latex: item.at("latex").asOptionalString() ?? text };
    }),
    arrays: trace.at("arrays").asItems(readCells),
    programs: trace.at("programs").orElse([], (programs) => programs.asItems((item) => item.asObject())),
  };
  const { value, ...nodes } = readNodes(trace.at("nodes"), tables);
  const { count, names, kind } = nodes;
  const { local, ...edges } = readEdges(trace.at("edges"), nodes, tables.formulas.length);
  return {
    sentence: trace.at("sentence").asString(),
    runMode: trace.at("how").asOptionalString() ?? "",
    outputs: [...trace.at("outputs").indices(count)],
    ...tables,
    ...nodes,
    ...edges,
    outgoing: groupIndices(edges.operand, count).at,
    notes: trace.at("notes").asItems((note) => readNote(note, count, edges.edgeCount)),
    numbers: {
      value,
      local: (edge) => local[edge],
      runs: trace.at("passes").asItems((pass) => readRun(pass, count, edges, tables.arrays)),
    },
    tours: trace.at("tours").orElse([], (tours) => tours.asList()),
    title: (node, limit = 24) => {
      const name = names[node];
      if (name !== null) return shortenName(name, limit);
      if (kind[node] !== CONSTANT) return `v${subscript(node)}`;
      const x = value[node];
      return typeof x === "number" ? formatPretty(x) : "?";
    },
  };
}

/**
 * Group indices by key: those of a key are ascending, in one array for all keys, from `from[key]` on.
 * @param {Int32Array} keys from 0 up to, but not including, `count`
 * @param {number} count
 */
export function groupIndices(keys, count) {
  const from = new Int32Array(count + 1);
  for (const key of keys) from[key + 1] += 1;
  for (let key = 0; key < count; key += 1) from[key + 1] += from[key];
  const next = from.slice();
  const indices = new Int32Array(keys.length);
  keys.forEach((key, place) => (indices[next[key]++] = place));
  return { from, at: (/** @type {number} */ key) => indices.subarray(from[key], from[key + 1]) };
}

// --- nodes and edges -------------------------------------------------------------------------------------------------

/** @param {Field} nodes @param {Pick<Graph, "arrays" | "programs" | "ops" | "blocks" | "formulas">} lists */
function readNodes(nodes, { arrays, programs, ops, blocks, formulas }) {
  const kind = nodes.at("kind").letters("locx");
  const count = kind.length;
  const value = nodes.at("value").column((item) => item.quantity([]), count);
  const names = nodes.at("name").sparse(count, (item) => item.asString());
  const tensors = nodes.at("tensor").sparse(count, (item, node) => {
    const arrayIndex = item.at("value").orElse(null, (at) => at.asInteger(arrays.length));
    if (arrayIndex !== null) value[node] = arrays[arrayIndex];
    const loops = item.at("loops").orElse(null, (at) => {
      if (typeof at.data === "string") return at.data;
      return at.asItems((one) => one.orElse(-1, () => one.asInteger(programs.length)));
    });
    return { shape: integers(item.at("shape")), dtype: item.at("dtype").asString(), loops };
  });
  return {
    count,
    kind,
    op: nodes.at("op").indices(ops.length, count, -1),
    shortNames: nodes.at("short").orElse(new Map(), (all) => all.sparse(count, (item) => item.asString())),
    names: Array.from({ length: count }, (_, node) => names.get(node) ?? null),
    value,
    state: nodes.at("state").letters("nfbp", count),
    block: nodes.at("block").indices(blocks.length, count),
    lines: nodes.at("line").sparse(count, (item) => item.asString()),
    stale: new Set(nodes.at("stale").indices(count)),
    tensors,
    nodeFormula: nodes.at("formula").indices(formulas.length, count, -1),
    attrs: nodes.at("attrs").sparse(count, (item) => {
      for (const name of Object.keys(item.asObject())) item.at(name).asString();
      return item.asObject();
    }),
  };
}

/** @param {Field} edges @param {Pick<Graph, "count" | "kind" | "op">} nodes @param {number} formulas */
function readEdges(edges, { count, kind, op }, formulas) {
  const operand = edges.at("operand").indices(count);
  const edgeCount = operand.length;
  const result = edges.at("result").indices(count, edgeCount);
  const slot = edges.at("slot").indices(count + edgeCount, edgeCount);
  result.forEach((to, edge) => {
    if (operand[edge] >= to) rejectTrace(`edge ${edge} goes from node ${operand[edge]} back to node ${to}`);
    const before = result[edge - 1];
    if (before > to) rejectTrace(`edge ${edge} into node ${to} follows an edge into a later node`);
    if (before === to && slot[edge - 1] >= slot[edge]) {
      rejectTrace(`edge ${edge} into node ${to} is not in slot order`);
    }
  });
  const start = groupIndices(result, count).from;
  kind.forEach((one, node) => {
    const computed = one === OP || one === BROKEN;
    if (computed === op[node] < 0) rejectTrace(`node ${node} is ${computed ? "computed but has no op" : "not computed but has an op"}`);
    if (!computed && start[node] < start[node + 1]) rejectTrace(`node ${node} is not computed but has incoming edges`);
  });
  return {
    edgeCount,
    operand,
    result,
    slot,
    start,
    flows: edges.at("flows").letters("01", edgeCount),
    local: edges.at("local").column((item) => item.orElse(null, () => item.asNumber()), edgeCount),
    edgeFormula: edges.at("formula").indices(formulas, edgeCount, -1),
  };
}

// --- backward passes -------------------------------------------------------------------------------------------------

/**
 * @param {Field} pass
 * @param {number} count
 * @param {Pick<Graph, "operand" | "result" | "flows" | "edgeCount">} edges
 * @param {Cells[]} arrays
 * @returns {Run}
 */
function readRun(pass, count, edges, arrays) {
  const root = pass.at("root").asInteger(count);
  const edge = pass.at("edge").indices(edges.edgeCount);
  checkEvents(pass.path, root, edge, count, edges);
  const read = (/** @type {string} */ name) => pass.at(name).column((item) => item.quantity(arrays), edge.length);
  return { root, edge, upstream: read("upstream"), contribution: read("contribution"), total: read("total") };
}

/**
 * Reject a pass in which a node propagates a gradient that is not complete yet.
 * @param {string} path
 * @param {number} root
 * @param {Int32Array} edge
 * @param {number} count
 * @param {Pick<Graph, "operand" | "result" | "flows" | "edgeCount">} edges
 */
function checkEvents(path, root, edge, count, { operand, result, flows, edgeCount }) {
  const reached = new Uint8Array(count);
  const passed = new Uint8Array(count);
  const usedEdges = new Uint8Array(edgeCount);
  reached[root] = 1;
  edge.forEach((over, k) => {
    const [from, to] = [result[over], operand[over]];
    const reason = !flows[over]
      ? ", where no gradient flows"
      : usedEdges[over]
        ? " a second time"
        : !reached[from]
          ? `, but node ${from} has no gradient yet`
          : passed[to] && `, but node ${to} has already propagated its gradient`;
    if (reason) rejectTrace(`event ${k} of ${path} goes over edge ${over}${reason}`);
    usedEdges[over] = passed[from] = reached[to] = 1;
  });
}

// --- blocks, ops, arrays, notes -------------------------------------------------------------------------------------

/** @param {Field} item @param {number} at @returns {import("../base/types.js").Block} */
function readBlock(item, at) {
  const kind = item.at("kind").asString();
  if (!BLOCK_KINDS.includes(kind)) item.at("kind").reject(`one of ${BLOCK_KINDS.join(", ")}`);
  return {
    name: item.at("name").asString(),
    outer: at ? item.at("outer").asInteger(at) : -1,
    kind: /** @type {import("../base/types.js").BlockKind} */ (kind),
    count: item.at("count").orElse(null, (count) => count.asInteger()),
    about: item.at("about").asOptionalString(),
  };
}

/** @param {Field} item @returns {import("../base/types.js").OpInfo} */
function readOp(item) {
  return {
    name: item.at("name").asString(),
    formula: item.at("formula").asOptionalString(),
    js: item.at("js").asOptionalString(),
    rules: item.at("rules").orElse([], (rules) => rules.asItems((rule) => rule.asOptionalString())),
    why: item.at("why").asOptionalString(),
  };
}

/** @param {Field} item @returns {Cells} */
function readCells(item) {
  const [rows, cols, size] = ["rows", "cols", "size"].map((name) => item.at(name).asInteger());
  const step = item.at("step").orElse(null, (step) => integers(step, 2));
  if (!step && rows * cols !== size) rejectTrace(`${item.path} has ${rows * cols} cells for ${size} elements, and no step`);
  const statistic = (/** @type {string} */ name) => item.at(name).orElse(null, (figure) => figure.asNumber());
  return {
    shape: integers(item.at("shape")),
    dtype: item.at("dtype").asString(),
    size,
    cells: new Float64Array(item.at("cells").column((cell) => cell.asNumber(), rows * cols)),
    rows,
    cols,
    step: /** @type {[number, number] | null} */ (step),
    min: statistic("min"),
    max: statistic("max"),
    mean: statistic("mean"),
    std: statistic("std"),
    hist: integers(item.at("hist")),
    nan: item.at("nan").asInteger(),
    inf: item.at("inf").asInteger(),
  };
}

/** @param {Field} list @param {number} [length] */
const integers = (list, length) => [...list.indices(Infinity, length)];

/** @param {Field} note @param {number} count @param {number} edgeCount @returns {import("../base/types.js").Note} */
function readNote(note, count, edgeCount) {
  const node = note.at("node").orElse(-1, (node) => node.asInteger(count));
  return {
    kind: note.at("kind").asString(),
    node,
    text: note.at("text").asString(),
    nodes: note.at("nodes").orElse(node < 0 ? [] : [node], (nodes) => [...nodes.indices(count)]),
    edges: note.at("edges").orElse([], (edges) => [...edges.indices(edgeCount)]),
  };
}
