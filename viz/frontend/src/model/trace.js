/**
 * A trace from Python, version 2, made ready to be played: columns become typed arrays, and everything is checked, for
 * traces come from files too. Nothing after this needs to look whether an index is in range or an edge leads back.
 */

import { pretty, shortenName, subscript } from "../engine/notation.js";

/** @typedef {import("../types.js").Graph} Graph */
/** @typedef {import("../types.js").Run} Run */
/** @typedef {import("../types.js").Cells} Cells */
/**
 * What JSON.parse returned. Its names stand in quotes, since the build shortens others.
 * @typedef {Record<string, any>} Json
 */

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
 * The graph in a trace. Throws an Error that says what is wrong where `data` is not a trace of this version.
 * @param {unknown} data what JSON.parse returned
 * @returns {Graph}
 */
export function decode(data) {
  const trace = recordIn(data, "the trace");
  if (trace["version"] !== TRACE_VERSION) {
    refuse(`it is of version ${JSON.stringify(trace["version"])}, and this player reads version ${TRACE_VERSION}`);
  }
  const lists = decodeLists(trace);
  const nodes = decodeNodes(recordIn(trace["nodes"], "nodes"), lists);
  const edges = decodeEdges(recordIn(trace["edges"], "edges"), nodes.count, lists.formulas.length);
  const { value, known, grad, ...rest } = nodes;
  const { local, localKnown, ...ends } = edges;
  checkOps(rest, edges.start);
  const outputs = Array.from(indicesIn(trace["outputs"], null, nodes.count, 0, "outputs"));
  const passes = listIn(trace["passes"], "passes");
  const runs = passes.map((pass, at) => decodeRun(pass, at, nodes.count, edges, lists.arrays));
  const { names, kind } = rest;
  return {
    sentence: textIn(trace["sentence"], "sentence"),
    outputs,
    ...rest,
    ...ends,
    ...lists,
    outs: outsOf(edges.operand, nodes.count),
    notes: decodeNotes(trace["notes"], nodes.count, edges.edgeCount),
    numbers: { value, known, local, localKnown, grad, runs },
    tours: trace["tours"] === undefined ? [] : listIn(trace["tours"], "tours"),
    title: (node, limit = 24) => {
      const name = names[node];
      if (name !== null) return shortenName(name, limit);
      if (kind[node] !== CONSTANT) return `v${subscript(node)}`;
      return known[node] ? pretty(value[node]) : "?";
    },
  };
}

/**
 * The value of a node: a number or an array; null where it is not known.
 * @param {Graph} graph
 * @param {import("../types.js").Numbers} numbers
 * @param {number} node
 * @returns {import("../types.js").Quantity | null}
 */
export function valueOf(graph, numbers, node) {
  if (!numbers.known[node]) return null;
  const cells = numbers.cells?.get(node);
  if (cells) return cells;
  const tensor = graph.tensors.get(node);
  return tensor !== undefined && tensor.value >= 0 ? graph.arrays[tensor.value] : numbers.value[node];
}

// --- nodes and edges -------------------------------------------------------------------------------------------------

/** @param {Json} nodes @param {ReturnType<typeof decodeLists>} lists */
function decodeNodes(nodes, lists) {
  const kind = lettersIn(nodes["kind"], "locx", "nodes.kind");
  const count = kind.length;
  const { values: value, known } = numbersIn(nodes["value"], count, "nodes.value");
  const names = /** @type {(string | null)[]} */ (new Array(count).fill(null));
  eachIn(nodes["name"], count, "nodes.name", (node, name) => (names[node] = textIn(name, "nodes.name")));
  const state = lettersIn(nodes["state"], "nfbp", "nodes.state", count);
  const grad = new Float64Array(count).fill(NaN);
  eachIn(nodes["grad"], count, "nodes.grad", (node, x) => (grad[node] = numberIn(x, "nodes.grad")));
  const tensors = decodeTensors(nodes["tensor"], count, lists.arrays.length, lists.programs.length);
  for (const [node, tensor] of tensors) known[node] = known[node] || tensor.value >= 0 ? 1 : 0;
  return {
    count,
    kind,
    op: indicesIn(nodes["op"], count, lists.ops.length, -1, "nodes.op"),
    names,
    value,
    known,
    state,
    grad,
    block: indicesIn(nodes["block"], count, lists.blocks.length, 0, "nodes.block"),
    lines: linesIn(nodes["line"], count),
    stale: new Set(indicesIn(nodes["stale"], null, count, 0, "nodes.stale")),
    tensors,
    nodeFormula: indicesIn(nodes["formula"], count, lists.formulas.length, -1, "nodes.formula"),
    attrs: attrsIn(nodes["attrs"], count),
  };
}

/** @param {unknown} tensor @param {number} count @param {number} arrays @param {number} programs */
function decodeTensors(tensor, count, arrays, programs) {
  /** @type {Map<number, import("../types.js").TensorInfo>} */
  const tensors = new Map();
  eachIn(tensor, count, "nodes.tensor", (node, item) => {
    const what = `nodes.tensor ${node}`;
    const info = recordIn(item, what);
    const place = (/** @type {unknown} */ x, end = arrays) => (x === null ? -1 : indicesIn([x], 1, end, 0, what)[0]);
    const [shape, dtype] = [shapeIn(info["shape"], what), textIn(info["dtype"], what)];
    const { "loops": loops = null } = info;
    const how = Array.isArray(loops) ? loops.map((x) => place(x, programs)) : optionalText(loops, what);
    tensors.set(node, { shape, dtype, value: place(info["value"]), grad: place(info["grad"]), loops: how });
  });
  return tensors;
}

/** @param {Json} edges @param {number} count @param {number} formulas */
function decodeEdges(edges, count, formulas) {
  const operand = indicesIn(edges["operand"], null, count, 0, "edges.operand");
  const edgeCount = operand.length;
  const result = indicesIn(edges["result"], edgeCount, count, 0, "edges.result");
  const slot = indicesIn(edges["slot"], edgeCount, count + edgeCount, 0, "edges.slot");
  const start = new Int32Array(count + 1);
  for (let edge = 0; edge < edgeCount; edge += 1) {
    const to = result[edge];
    if (operand[edge] >= to) refuse(`edge ${edge} goes from node ${operand[edge]} back to node ${to}`);
    const same = edge > 0 && result[edge - 1] === to;
    if (edge > 0 && result[edge - 1] > to) refuse(`edge ${edge} into node ${to} comes after one into a later node`);
    if (same && slot[edge - 1] >= slot[edge]) refuse(`edge ${edge} into node ${to} is not in the order of the slots`);
    start[to + 1] += 1;
  }
  for (let node = 0; node < count; node += 1) start[node + 1] += start[node];
  const { values: local, known: localKnown } = numbersIn(edges["local"], edgeCount, "edges.local");
  const flows = lettersIn(edges["flows"], "01", "edges.flows", edgeCount);
  const edgeFormula = indicesIn(edges["formula"], edgeCount, formulas, -1, "edges.formula");
  return { edgeCount, operand, result, slot, start, flows, local, localKnown, edgeFormula };
}

/** @param {{kind: Uint8Array, op: Int32Array, count: number}} nodes @param {Int32Array} start */
function checkOps({ kind, op, count }, start) {
  for (let node = 0; node < count; node += 1) {
    const computed = kind[node] === OP || kind[node] === BROKEN;
    if (computed === op[node] < 0) refuse(`node ${node} is ${computed ? "computed by no op" : "no op, but has one"}`);
    if (!computed && start[node] < start[node + 1]) refuse(`node ${node} is no op, but edges lead to it`);
  }
}

/**
 * The edges that leave each node: one array for all, cut where the next node begins.
 * @param {Int32Array} operand
 * @param {number} count
 */
function outsOf(operand, count) {
  const from = new Int32Array(count + 1);
  for (let edge = 0; edge < operand.length; edge += 1) from[operand[edge] + 1] += 1;
  for (let node = 0; node < count; node += 1) from[node + 1] += from[node];
  const edges = new Int32Array(operand.length);
  const next = from.slice();
  for (let edge = 0; edge < operand.length; edge += 1) edges[next[operand[edge]]++] = edge;
  return (/** @type {number} */ node) => edges.subarray(from[node], from[node + 1]);
}

// --- backward passes -------------------------------------------------------------------------------------------------

/**
 * @param {unknown} pass
 * @param {number} at
 * @param {number} count
 * @param {ReturnType<typeof decodeEdges>} edges
 * @param {Cells[]} arrays
 * @returns {Run}
 */
function decodeRun(pass, at, count, edges, arrays) {
  const data = recordIn(pass, `pass ${at}`);
  const root = indicesIn([data["root"]], 1, count, 0, `the root of pass ${at}`)[0];
  const edge = indicesIn(data["edge"], null, edges.edgeCount, 0, `passes[${at}].edge`);
  checkEvents(root, edge, at, count, edges);
  const known = new Uint8Array(edge.length).fill(1);
  const read = (/** @type {string} */ name) =>
    quantitiesIn(data[name], edge.length, arrays.length, known, `passes[${at}].${name}`);
  const [upstream, contribution, total] = ["upstream", "contribution", "total"].map(read);
  const some = upstream.places || contribution.places || total.places;
  const placesOf = (/** @type {typeof upstream} */ x) => x.places ?? new Int32Array(edge.length).fill(-1);
  return {
    root,
    edge,
    upstream: upstream.values,
    contribution: contribution.values,
    total: total.values,
    known,
    arrays: some
      ? { upstream: placesOf(upstream), contribution: placesOf(contribution), total: placesOf(total) }
      : null,
  };
}

/**
 * Refuse a pass in which a node hands on a gradient that it does not have yet, or not whole.
 * @param {number} root
 * @param {Int32Array} edge
 * @param {number} at
 * @param {number} count
 * @param {ReturnType<typeof decodeEdges>} edges
 */
function checkEvents(root, edge, at, count, { operand, result, flows, edgeCount }) {
  const reached = new Uint8Array(count);
  const passed = new Uint8Array(count);
  const seen = new Uint8Array(edgeCount);
  reached[root] = 1;
  for (let k = 0; k < edge.length; k += 1) {
    const [over, from, to] = [edge[k], result[edge[k]], operand[edge[k]]];
    const where = `event ${k} of pass ${at} goes over edge ${over}`;
    if (!flows[over]) refuse(`${where}, where no gradient flows`);
    if (seen[over]) refuse(`${where} a second time`);
    if (!reached[from]) refuse(`${where}, but node ${from} has no gradient yet`);
    if (passed[to]) refuse(`${where}, but node ${to} has handed its gradient on before`);
    seen[over] = passed[from] = reached[to] = 1;
  }
}

/**
 * A column of numbers and arrays; where an item is null, `known` loses its 1.
 * @param {unknown} column
 * @param {number} length
 * @param {number} arrays
 * @param {Uint8Array} known
 * @param {string} what
 */
function quantitiesIn(column, length, arrays, known, what) {
  const items = listIn(column, what, length);
  const values = new Float64Array(length);
  /** @type {Int32Array | null} */
  let places = null;
  for (let k = 0; k < length; k += 1) {
    const item = items[k];
    if (typeof item === "number") {
      values[k] = item;
    } else if (item === null) {
      values[k] = NaN;
      known[k] = 0;
    } else if (typeof item === "object") {
      values[k] = NaN;
      places ??= new Int32Array(length).fill(-1);
      places[k] = indicesIn([/** @type {Json} */ (item)["array"]], 1, arrays, 0, `${what}[${k}].array`)[0];
    } else {
      values[k] = numberIn(item, what);
    }
  }
  return { values, places };
}

// --- what nodes and edges point at -----------------------------------------------------------------------------------

/** @param {Json} trace */
function decodeLists(trace) {
  return {
    blocks: listIn(trace["blocks"], "blocks").map(decodeBlock),
    ops: listIn(trace["ops"], "ops").map(decodeOp),
    formulas: listIn(trace["formulas"], "formulas").map((item, at) => {
      const { "text": text, "mathml": mathml } = recordIn(item, `formula ${at}`);
      return { text: textIn(text, `formula ${at}`), mathml: textIn(mathml, `formula ${at}`) };
    }),
    arrays: listIn(trace["arrays"], "arrays").map(decodeCells),
    programs: listIn(trace["programs"] ?? [], "programs").map((item, at) => recordIn(item, `program ${at}`)),
  };
}

/** @param {unknown} item @param {number} at @returns {import("../types.js").Block} */
function decodeBlock(item, at) {
  const data = recordIn(item, `block ${at}`);
  const { "name": name, "outer": outer, "kind": kind, "count": count = null, "line": line = null } = data;
  const inside = at === 0 ? outer === -1 : Number.isInteger(outer) && outer >= 0 && outer < at;
  if (!inside) refuse(`block ${at} is in block ${JSON.stringify(outer)}, which does not come before it`);
  if (!BLOCK_KINDS.includes(kind)) refuse(`block ${at} is of the kind ${JSON.stringify(kind)}`);
  return { name: textIn(name, `block ${at}`), outer, kind, count, line: optionalText(line, `block ${at}`) };
}

/** @param {unknown} item @param {number} at @returns {import("../types.js").OpInfo} */
function decodeOp(item, at) {
  const data = recordIn(item, `op ${at}`);
  const { "name": name, "formula": formula = null, "js": js = null, "rules": rules = [], "why": why = null } = data;
  const text = (/** @type {unknown} */ x) => optionalText(x, `op ${at}`);
  const texts = listIn(rules, `the rules of op ${at}`).map(text);
  return { name: textIn(name, `op ${at}`), formula: text(formula), js: text(js), rules: texts, why: text(why) };
}

/** @param {unknown} item @param {number} at @returns {Cells} */
function decodeCells(item, at) {
  const what = `array ${at}`;
  const data = recordIn(item, what);
  const size = (/** @type {unknown} */ x) =>
    Number.isInteger(x) && Number(x) >= 0 ? Number(x) : refuse(`a size of ${what} is ${JSON.stringify(x)}`);
  const figure = (/** @type {unknown} */ x) => (x === null || x === undefined ? null : numberIn(x, what));
  const [rows, cols] = [size(data["rows"]), size(data["cols"])];
  const step = data["step"] == null ? null : listIn(data["step"], `${what}.step`, 2).map(size);
  const all = size(data["size"]);
  if (step === null && rows * cols !== all) refuse(`${what} has ${rows * cols} cells for ${all} numbers, and no step`);
  return {
    shape: shapeIn(data["shape"], what),
    dtype: textIn(data["dtype"], what),
    size: all,
    cells: numbersIn(data["cells"], rows * cols, `the cells of ${what}`).values,
    rows,
    cols,
    step: step && [step[0], step[1]],
    min: figure(data["min"]),
    max: figure(data["max"]),
    mean: figure(data["mean"]),
    std: figure(data["std"]),
    hist: listIn(data["hist"], `the histogram of ${what}`).map(size),
    nan: size(data["nan"]),
    inf: size(data["inf"]),
  };
}

/** @param {unknown} notes @param {number} count @param {number} edgeCount @returns {import("../types.js").Note[]} */
function decodeNotes(notes, count, edgeCount) {
  return listIn(notes, "notes").map((item, at) => {
    const data = recordIn(item, `note ${at}`);
    const { "kind": kind, "node": node = null, "text": text, "nodes": nodes, "edges": edges = [] } = data;
    const where = node === null ? -1 : indicesIn([node], 1, count, 0, `note ${at}`)[0];
    return {
      kind: textIn(kind, `note ${at}`),
      node: where,
      text: textIn(text, `note ${at}`),
      nodes: Array.from(indicesIn(nodes ?? (where < 0 ? [] : [where]), null, count, 0, `note ${at}`)),
      edges: Array.from(indicesIn(edges, null, edgeCount, 0, `note ${at}`)),
    };
  });
}

// --- columns ---------------------------------------------------------------------------------------------------------

/** @param {string} why @returns {never} */
function refuse(why) {
  throw new Error(`This trace cannot be shown: ${why}.`);
}

/** @param {unknown} x @param {string} what @returns {Json} */
function recordIn(x, what) {
  if (x === undefined) refuse(`${what} is missing`);
  return typeof x === "object" && x !== null && !Array.isArray(x) ? x : refuse(`${what} is not an object`);
}

/** @param {unknown} x @param {string} what @param {number} [length] @returns {unknown[]} */
function listIn(x, what, length) {
  if (x === undefined) refuse(`${what} is missing`);
  if (!Array.isArray(x)) return refuse(`${what} is not a list`);
  if (length !== undefined && x.length !== length) refuse(`${what} has ${x.length} items instead of ${length}`);
  return x;
}

/** @param {unknown} x @param {string} what @returns {string} */
function textIn(x, what) {
  return typeof x === "string" ? x : refuse(`${what} holds ${JSON.stringify(x)} where a text should be`);
}

/** @param {unknown} x @param {string} what */
function optionalText(x, what) {
  return x === null ? null : textIn(x, what);
}

/** @param {unknown} x @param {string} what @returns {number} */
function numberIn(x, what) {
  if (typeof x === "number") return x;
  if (x === "NaN" || x === "Infinity" || x === "-Infinity") return Number(x);
  return refuse(`${what} holds ${JSON.stringify(x)} where a number should be`);
}

/** @param {unknown} x @param {string} what */
function shapeIn(x, what) {
  return listIn(x, `the shape of ${what}`).map((size) => numberIn(size, `the shape of ${what}`));
}

/**
 * A column of numbers; null, which is not known, becomes NaN.
 * @param {unknown} column
 * @param {number} length
 * @param {string} what
 */
function numbersIn(column, length, what) {
  const items = listIn(column, what, length);
  const values = new Float64Array(length);
  const known = new Uint8Array(length);
  for (let i = 0; i < length; i += 1) {
    const item = items[i];
    values[i] = item === null ? NaN : typeof item === "number" ? item : numberIn(item, what);
    known[i] = item === null ? 0 : 1;
  }
  return { values, known };
}

/**
 * A column of integers from `least` up to, but not including, `end`.
 * @param {unknown} column
 * @param {number | null} length null: any
 * @param {number} end
 * @param {number} least
 * @param {string} what
 */
function indicesIn(column, length, end, least, what) {
  const items = listIn(column, what, length ?? undefined);
  const indices = new Int32Array(items.length);
  for (let i = 0; i < items.length; i += 1) {
    const item = /** @type {number} */ (items[i]);
    if (!Number.isInteger(item) || item < least || item >= end) {
      refuse(`${what} holds ${JSON.stringify(item)}, which is not an integer from ${least} to ${end - 1}`);
    }
    indices[i] = item;
  }
  return indices;
}

/**
 * A text with a letter for each item, as the places of the letters in `letters`.
 * @param {unknown} text
 * @param {string} letters
 * @param {string} what
 * @param {number} [length]
 */
function lettersIn(text, letters, what, length) {
  if (text === undefined) refuse(`${what} is missing`);
  const column = textIn(text, what);
  if (length !== undefined && column.length !== length) {
    refuse(`${what} has ${column.length} letters instead of ${length}`);
  }
  const places = new Uint8Array(column.length);
  for (let i = 0; i < column.length; i += 1) {
    const place = letters.indexOf(column[i]);
    if (place < 0) refuse(`${what} has the letter ${JSON.stringify(column[i])}, which is none of "${letters}"`);
    places[i] = place;
  }
  return places;
}

/**
 * Call `put` for each item of a sparse column, ascending.
 * @param {unknown} x
 * @param {number} count
 * @param {string} what
 * @param {(node: number, item: unknown) => void} put
 */
function eachIn(x, count, what, put) {
  const items = recordIn(x, what);
  let met = 0;
  // Looking up each index is several times faster than Object.entries, which makes a text of each.
  for (let node = 0; node < count; node += 1) {
    const item = items[node];
    if (item === undefined) continue;
    met += 1;
    put(node, item);
  }
  const keys = Object.keys(items);
  if (keys.length === met) return;
  const strange = keys.find((key) => !(String(Number(key)) === key && Number(key) < count && Number(key) >= 0));
  refuse(`${what} has an item for node ${JSON.stringify(strange)}, and there are ${count} nodes`);
}

/** @param {unknown} x @param {number} count */
function linesIn(x, count) {
  /** @type {Map<number, string>} */
  const lines = new Map();
  eachIn(x, count, "nodes.line", (node, line) => lines.set(node, textIn(line, "nodes.line")));
  return lines;
}

/** @param {unknown} x @param {number} count */
function attrsIn(x, count) {
  /** @type {Map<number, Record<string, string>>} */
  const attrs = new Map();
  eachIn(x, count, "nodes.attrs", (node, item) => {
    const texts = recordIn(item, `nodes.attrs ${node}`);
    for (const text of Object.values(texts)) textIn(text, `nodes.attrs ${node}`);
    attrs.set(node, texts);
  });
  return attrs;
}
