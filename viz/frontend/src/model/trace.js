/**
 * Decode and validate a trace from Python, version 2: columns become typed arrays. Traces come from files too, so
 * everything is checked here; the rest of the player can rely on valid indices and forward edges.
 */

import { pretty, shortenName, subscript } from "../base/notation.js";
import { Place, quoted, refuse } from "./place.js";

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
  const trace = new Place(data, "trace");
  const version = trace.at("version").found;
  if (version !== TRACE_VERSION) {
    refuse(`its version is ${quoted(version)}; this player reads version ${TRACE_VERSION}`);
  }
  const lists = {
    blocks: trace.at("blocks").asItems(readBlock),
    ops: trace.at("ops").asItems(readOp),
    formulas: trace.at("formulas").asItems((item) => {
      const [text, mathml] = [item.at("text").asText(), item.at("mathml").asText()];
      return { text, mathml, latex: item.at("latex").maybe() ?? text };
    }),
    arrays: trace.at("arrays").asItems(readCells),
    programs: trace.at("programs").or([], (programs) => programs.asItems((item) => item.record())),
  };
  const { value, ...nodes } = readNodes(trace.at("nodes"), lists);
  const { count, names, kind } = nodes;
  const { local, ...edges } = readEdges(trace.at("edges"), nodes, lists.formulas.length);
  return {
    sentence: trace.at("sentence").asText(),
    how: trace.at("how").maybe() ?? "",
    outputs: [...trace.at("outputs").indices(count)],
    ...lists,
    ...nodes,
    ...edges,
    outs: grouped(edges.operand, count).at,
    notes: trace.at("notes").asItems((note) => readNote(note, count, edges.edgeCount)),
    numbers: {
      value,
      local: (edge) => local[edge],
      runs: trace.at("passes").asItems((pass) => readRun(pass, count, edges, lists.arrays)),
    },
    tours: trace.at("tours").or([], (tours) => tours.asList()),
    title: (node, limit = 24) => {
      const name = names[node];
      if (name !== null) return shortenName(name, limit);
      if (kind[node] !== CONSTANT) return `v${subscript(node)}`;
      const x = value[node];
      return typeof x === "number" ? pretty(x) : "?";
    },
  };
}

/**
 * Group indices by key: those of a key are ascending, in one array for all keys, from `from[key]` on.
 * @param {Int32Array} keys from 0 up to, but not including, `count`
 * @param {number} count
 */
export function grouped(keys, count) {
  const from = new Int32Array(count + 1);
  for (const key of keys) from[key + 1] += 1;
  for (let key = 0; key < count; key += 1) from[key + 1] += from[key];
  const next = from.slice();
  const places = new Int32Array(keys.length);
  keys.forEach((key, place) => (places[next[key]++] = place));
  return { from, at: (/** @type {number} */ key) => places.subarray(from[key], from[key + 1]) };
}

// --- nodes and edges -------------------------------------------------------------------------------------------------

/** @param {Place} nodes @param {Pick<Graph, "arrays" | "programs" | "ops" | "blocks" | "formulas">} lists */
function readNodes(nodes, { arrays, programs, ops, blocks, formulas }) {
  const kind = nodes.at("kind").letters("locx");
  const count = kind.length;
  const value = nodes.at("value").column((item) => item.quantity([]), count);
  const named = nodes.at("name").sparse(count, (item) => item.asText());
  const tensors = nodes.at("tensor").sparse(count, (item, node) => {
    const place = item.at("value").or(null, (at) => at.asInteger(arrays.length));
    if (place !== null) value[node] = arrays[place];
    const loops = item.at("loops").or(null, (at) => {
      if (typeof at.found === "string") return at.found;
      return at.asItems((one) => one.or(-1, () => one.asInteger(programs.length)));
    });
    return { shape: sizes(item.at("shape")), dtype: item.at("dtype").asText(), loops };
  });
  return {
    count,
    kind,
    op: nodes.at("op").indices(ops.length, count, -1),
    short: nodes.at("short").or(new Map(), (all) => all.sparse(count, (item) => item.asText())),
    names: Array.from({ length: count }, (_, node) => named.get(node) ?? null),
    value,
    state: nodes.at("state").letters("nfbp", count),
    block: nodes.at("block").indices(blocks.length, count),
    lines: nodes.at("line").sparse(count, (item) => item.asText()),
    stale: new Set(nodes.at("stale").indices(count)),
    tensors,
    nodeFormula: nodes.at("formula").indices(formulas.length, count, -1),
    attrs: nodes.at("attrs").sparse(count, (item) => {
      for (const name of Object.keys(item.record())) item.at(name).asText();
      return item.record();
    }),
  };
}

/** @param {Place} edges @param {Pick<Graph, "count" | "kind" | "op">} nodes @param {number} formulas */
function readEdges(edges, { count, kind, op }, formulas) {
  const operand = edges.at("operand").indices(count);
  const edgeCount = operand.length;
  const result = edges.at("result").indices(count, edgeCount);
  const slot = edges.at("slot").indices(count + edgeCount, edgeCount);
  result.forEach((to, edge) => {
    if (operand[edge] >= to) refuse(`edge ${edge} goes from node ${operand[edge]} back to node ${to}`);
    const before = result[edge - 1];
    if (before > to) refuse(`edge ${edge} into node ${to} follows an edge into a later node`);
    if (before === to && slot[edge - 1] >= slot[edge]) {
      refuse(`edge ${edge} into node ${to} is not in slot order`);
    }
  });
  const start = grouped(result, count).from;
  kind.forEach((one, node) => {
    const computed = one === OP || one === BROKEN;
    if (computed === op[node] < 0) refuse(`node ${node} is ${computed ? "computed but has no op" : "not computed but has an op"}`);
    if (!computed && start[node] < start[node + 1]) refuse(`node ${node} is not computed but has incoming edges`);
  });
  return {
    edgeCount,
    operand,
    result,
    slot,
    start,
    flows: edges.at("flows").letters("01", edgeCount),
    local: edges.at("local").column((item) => item.or(null, () => item.asNumber()), edgeCount),
    edgeFormula: edges.at("formula").indices(formulas, edgeCount, -1),
  };
}

// --- backward passes -------------------------------------------------------------------------------------------------

/**
 * @param {Place} pass
 * @param {number} count
 * @param {Pick<Graph, "operand" | "result" | "flows" | "edgeCount">} edges
 * @param {Cells[]} arrays
 * @returns {Run}
 */
function readRun(pass, count, edges, arrays) {
  const root = pass.at("root").asInteger(count);
  const edge = pass.at("edge").indices(edges.edgeCount);
  checkEvents(pass.where, root, edge, count, edges);
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
  const seen = new Uint8Array(edgeCount);
  reached[root] = 1;
  edge.forEach((over, k) => {
    const [from, to] = [result[over], operand[over]];
    const why = !flows[over]
      ? ", where no gradient flows"
      : seen[over]
        ? " a second time"
        : !reached[from]
          ? `, but node ${from} has no gradient yet`
          : passed[to] && `, but node ${to} has already propagated its gradient`;
    if (why) refuse(`event ${k} of ${path} goes over edge ${over}${why}`);
    seen[over] = passed[from] = reached[to] = 1;
  });
}

// --- blocks, ops, arrays, notes -------------------------------------------------------------------------------------

/** @param {Place} item @param {number} at @returns {import("../base/types.js").Block} */
function readBlock(item, at) {
  const kind = item.at("kind").asText();
  if (!BLOCK_KINDS.includes(kind)) item.at("kind").refuse(`one of ${BLOCK_KINDS.join(", ")}`);
  return {
    name: item.at("name").asText(),
    outer: at ? item.at("outer").asInteger(at) : -1,
    kind: /** @type {import("../base/types.js").BlockKind} */ (kind),
    count: item.at("count").or(null, (count) => count.asInteger()),
    about: item.at("about").maybe(),
  };
}

/** @param {Place} item @returns {import("../base/types.js").OpInfo} */
function readOp(item) {
  return {
    name: item.at("name").asText(),
    formula: item.at("formula").maybe(),
    js: item.at("js").maybe(),
    rules: item.at("rules").or([], (rules) => rules.asItems((rule) => rule.maybe())),
    why: item.at("why").maybe(),
  };
}

/** @param {Place} item @returns {Cells} */
function readCells(item) {
  const [rows, cols, size] = ["rows", "cols", "size"].map((name) => item.at(name).asInteger());
  const step = item.at("step").or(null, (step) => sizes(step, 2));
  if (!step && rows * cols !== size) refuse(`${item.where} has ${rows * cols} cells for ${size} elements, and no step`);
  const figure = (/** @type {string} */ name) => item.at(name).or(null, (figure) => figure.asNumber());
  return {
    shape: sizes(item.at("shape")),
    dtype: item.at("dtype").asText(),
    size,
    cells: new Float64Array(item.at("cells").column((cell) => cell.asNumber(), rows * cols)),
    rows,
    cols,
    step: /** @type {[number, number] | null} */ (step),
    min: figure("min"),
    max: figure("max"),
    mean: figure("mean"),
    std: figure("std"),
    hist: sizes(item.at("hist")),
    nan: item.at("nan").asInteger(),
    inf: item.at("inf").asInteger(),
  };
}

/** @param {Place} list @param {number} [length] */
const sizes = (list, length) => [...list.indices(Infinity, length)];

/** @param {Place} note @param {number} count @param {number} edgeCount @returns {import("../base/types.js").Note} */
function readNote(note, count, edgeCount) {
  const node = note.at("node").or(-1, (node) => node.asInteger(count));
  return {
    kind: note.at("kind").asText(),
    node,
    text: note.at("text").asText(),
    nodes: note.at("nodes").or(node < 0 ? [] : [node], (nodes) => [...nodes.indices(count)]),
    edges: note.at("edges").or([], (edges) => [...edges.indices(edgeCount)]),
  };
}
