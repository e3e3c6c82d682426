/**
 * What-if for tensors: the same as engine.js, by the loops that the trace has of each operation. All is computed with
 * the precision of float64.
 */

import { expressionClosure, expressionSource, readExpression } from "./expression.js";
import { tiled, tilesAcross } from "../drawing/heatcolour.js";
import { pretty } from "./notation.js";
import { NUMERIC } from "./numeric.js";
import { BLOCKED, BROKEN, CONSTANT, LEAF, valueOf } from "../model/trace.js";

/** @typedef {import("../types.js").Graph} Graph */
/** @typedef {import("../types.js").Cells} Cells */
/** @typedef {(Float64Array | null)[]} Arrays of each node, row by row */
/** @typedef {{n: number[], o: number[], x: number[][], by?: "max" | "min", f: (frame: number[]) => any}} Loop */
/** @typedef {(given: Arrays) => Float64Array} Program of the output, its gradient and the operands */

const NAMES = "abcdefhijk";

/** An element of a leaf, as a key among leaves. @param {Graph} graph @param {number} node @param {number} cell */
export const elementKey = ({ count }, node, cell) => node + count * (cell + 1);

/** The leaf of a key. @param {Graph} graph @param {number} key */
export const leafOf = ({ count }, key) => key % count;

/** The place in its leaf, row by row; -1 for the number of a leaf. @param {Graph} graph @param {number} key */
export const cellOf = ({ count }, key) => Math.floor(key / count) - 1;

/** The number of a key. @param {Graph} graph @param {import("../types.js").Numbers} numbers @param {number} key */
export function numberAt(graph, numbers, key) {
  const x = valueOf(graph, numbers, leafOf(graph, key));
  if (x === null || typeof x === "number") return x ?? NaN;
  return tiled(x.cells, x.shape, true)[Math.max(0, cellOf(graph, key))];
}

/** Whether the elements of a node can be changed, or its one number. @param {Graph} graph @param {number} node */
export function isFree(graph, node) {
  const float = graph.tensors.get(node)?.dtype.startsWith("float") ?? true;
  return graph.kind[node] === LEAF && float && wholeArray(graph, node) !== null;
}

/**
 * The key of a name such as “a” or “w[0, 1]”; -1: there is none.
 * @param {Graph} graph @param {string} name @param {(node: number) => string} [nameOf]
 */
export function keyNamed(graph, name, nameOf = (node) => graph.names[node] ?? graph.title(node)) {
  const [, stem, inside] = name.match(/^(.*?)\s*\[([\d\s,]*)\]\s*$/s) ?? [];
  for (let node = 0; node < graph.count; node += 1) {
    if (graph.kind[node] !== LEAF || !isFree(graph, node)) continue;
    const own = nameOf(node);
    const shape = graph.tensors.get(node)?.shape;
    if (own === name && !shape) return node;
    if (own === name && shape?.every((size) => size === 1)) return elementKey(graph, node, 0);
    if (own !== stem || !shape) continue;
    const place = inside.split(",").map((text) => (text.trim() === "" ? NaN : Number(text)));
    if (place.length !== shape.length || !place.every((at, k) => at < shape[k])) return -1;
    return elementKey(graph, node, place.reduce((sum, at, k) => sum * shape[k] + at, 0)); // prettier-ignore
  }
  return -1;
}

/**
 * What to call the leaf or the element of a key. @param {Graph} graph @param {number} key
 * @param {string} [name] of the leaf
 */
export function keyTitle(graph, key, name = graph.title(leafOf(graph, key))) {
  const cell = cellOf(graph, key);
  const { shape = [] } = graph.tensors.get(leafOf(graph, key)) ?? {};
  if (cell < 0 || !shape.length) return name;
  let rest = cell;
  const place = shape.map((_, k) => {
    const size = shape.slice(k + 1).reduce((a, b) => a * b, 1);
    const at = Math.floor(rest / size);
    rest -= at * size;
    return at;
  });
  return `${name}[${place.join(", ")}]`;
}

/**
 * @param {Graph} graph
 * @param {{interpret?: boolean}} options
 * @returns {import("./engine.js").Engine}
 */
export function tensorEngine(graph, { interpret = false }) {
  const { count, numbers } = graph;
  /** @type {(Program | undefined)[]} */
  const made = [];
  const base = Array.from({ length: count }, (_, node) => wholeArray(graph, node));
  const e = {
    graph,
    base,
    program: (/** @type {number} */ at) => (made[at] ??= programOf(graph.programs[at], interpret)),
    why: base.map((array, node) => whyNotTensor(graph, node, array)),
  };
  const source = sourcesOf(e);
  /** @type {(root: number, overrides: Map<number, number>) => number} */
  const output = (root, overrides) => forward(e, overrides).arrays[root]?.reduce((a, b) => a + b) ?? NaN;
  return {
    able: (node) => source[node] < 0,
    why: (node) =>
      source[node] < 0 || source[node] === node
        ? e.why[node]
        : `It is computed from ${graph.title(source[node])}, which cannot be computed again. ${e.why[source[node]]}`,
    output,
    run(overrides) {
      const { arrays, changed } = forward(e, overrides);
      /** @type {Map<number, Cells>} */
      const cells = new Map();
      const known = numbers.known.slice();
      arrays.forEach((array, node) => {
        if (changed[node]) known[node] = array ? 1 : 0;
        if (changed[node] && array) cells.set(node, cellsOf(graph, node, array));
      });
      const runs = numbers.runs.map((run) => ({ ...run, arrays: null, cells: backward(e, run, arrays).cells }));
      return { ...numbers, known, runs, cells };
    },
    tangent(key, root, overrides = new Map()) {
      const { arrays } = forward(e, overrides);
      const [node, cell] = [leafOf(graph, key), Math.max(0, cellOf(graph, key))];
      const x = arrays[node]?.[cell] ?? NaN;
      const step = 6e-6 * Math.max(1, Math.abs(x));
      const [above, below] = [x + step, x - step].map((at) => output(root, new Map(overrides).set(key, at)));
      const run = numbers.runs.find((one) => one.root === root);
      const gradient = run && backward(e, run, arrays).gradient[node];
      const nothing = run && gradient === undefined && graph.state[node] !== BLOCKED; // not blocked, but never reached
      const slope = nothing ? 0 : (gradient?.[cell] ?? NaN);
      return { x, y: output(root, overrides), slope, measured: (above - below) / (x + step - (x - step)) };
    },
  };
}

/**
 * What computes a graph again: its arrays as recorded, its programs, and by node why not.
 * @typedef {{graph: Graph, base: Arrays, program: (at: number) => Program, why: (string | null)[]}} Again
 */

/** By node, the first one on its way that cannot be computed again; -1: there is none. @param {Again} e */
function sourcesOf(e) {
  const { count, start, operand, tensors } = e.graph;
  const source = new Int32Array(count).fill(-1);
  for (let node = 0; node < count; node += 1) {
    if (e.why[node] === null && e.base[node] && tensors.get(node)?.loops) {
      e.why[node] = whyUnlikeArray(e.graph, node, e.base, (at, arrays) => compute(e, at, arrays));
    }
    if (e.why[node] !== null) source[node] = node;
    for (let k = start[node]; k < start[node + 1] && source[node] < 0; k += 1) source[node] = source[operand[k]];
  }
  return source;
}

/**
 * What a program is given: the node, its gradient, its operands.
 * @param {Again} e @param {number} node @param {Arrays} arrays @param {Float64Array | null} [g]
 */
function given({ graph: { start, operand, slot } }, node, arrays, g = null) {
  const memory = [arrays[node], g];
  for (let edge = start[node]; edge < start[node + 1]; edge += 1) memory[2 + slot[edge]] = arrays[operand[edge]];
  return memory;
}

/** @param {Again} e @param {number} node @param {Arrays} arrays */
function compute(e, node, arrays) {
  return e.program(/** @type {number[]} */ (e.graph.tensors.get(node)?.loops)[0])(given(e, node, arrays));
}

/** All arrays with other numbers in some leaves, and which have changed. @param {Again} e @param {Map<number, number>} overrides */
function forward(e, overrides) {
  const { count, kind, start, operand } = e.graph;
  const arrays = e.base.slice();
  const changed = new Uint8Array(count);
  for (const [key, x] of overrides) {
    const [node, cell] = [leafOf(e.graph, key), Math.max(0, cellOf(e.graph, key))];
    const array = e.base[node];
    if (kind[node] !== LEAF || !array || cell >= array.length) throw new RangeError(`There is no element ${key}.`);
    if (!changed[node]) arrays[node] = array.slice();
    changed[node] = 1;
    /** @type {Float64Array} */ (arrays[node])[cell] = x;
  }
  for (let node = 0; node < count; node += 1) {
    if (kind[node] === LEAF || kind[node] === CONSTANT) continue;
    let all = true;
    for (let edge = start[node]; edge < start[node + 1]; edge += 1) {
      all &&= arrays[operand[edge]] !== null;
      changed[node] |= changed[operand[edge]];
    }
    if (changed[node] || !e.base[node]) arrays[node] = all && e.why[node] === null ? compute(e, node, arrays) : null;
  }
  return { arrays, changed };
}

/** A backward pass over such arrays. @param {Again} e @param {import("../types.js").Run} run @param {Arrays} arrays */
function backward(e, { root, edge }, arrays) {
  const { result, operand, slot, tensors } = e.graph;
  /** @type {(Float64Array | null | undefined)[]} */
  const gradient = [];
  gradient[root] = arrays[root] && new Float64Array(arrays[root].length).fill(1);
  /** @type {Record<"upstream" | "contribution" | "total", (Cells | null)[]>} */
  const cells = { upstream: [], contribution: [], total: [] };
  const show = (/** @type {Float64Array | null} */ x, /** @type {number} */ node) => x && cellsOf(e.graph, node, x);
  edge.forEach((over, k) => {
    const [from, to] = [result[over], operand[over]];
    const [g, before] = [gradient[from] ?? null, gradient[to]];
    const at = e.why[from] === null ? Number(tensors.get(from)?.loops?.[1 + slot[over]]) : -1;
    const ready = g && at >= 0 && given(e, from, arrays, g);
    const product = ready && ready.every((x) => x !== null) ? e.program(at)(ready) : null;
    const total = product && (before === undefined ? product : before && before.map((x, i) => x + product[i]));
    gradient[to] = total;
    cells.upstream[k] = show(g, from);
    cells.contribution[k] = show(product, to);
    cells.total[k] = show(total, to);
  });
  return { cells, gradient };
}

/** All numbers of a node; null if the trace does not have them all. @param {Graph} graph @param {number} node */
function wholeArray({ tensors, arrays, numbers }, node) {
  const tensor = tensors.get(node);
  if (!tensor) return numbers.known[node] ? Float64Array.of(numbers.value[node]) : null;
  const cells = tensor.value < 0 ? null : arrays[tensor.value];
  return cells && !cells.step ? tiled(cells.cells, cells.shape, true) : null;
}

/** @param {Graph} graph @param {number} node @param {Float64Array | null} array */
function whyNotTensor({ kind, tensors, numbers }, node, array) {
  if (kind[node] === BROKEN) return "It was never computed.";
  if (kind[node] !== LEAF && kind[node] !== CONSTANT) {
    const how = tensors.get(node)?.loops ?? "The trace does not say how it is computed.";
    return typeof how === "string" ? how : null;
  }
  if (array) return null;
  return numbers.known[node] ? "The trace has not all of its numbers." : "Its numbers were not kept; under mg.record() they are.";
}

/**
 * Why a node is not to be computed again: its loops give other numbers than Python, by more than the rounding of
 * operands to six digits does to them.
 * @param {Graph} graph @param {number} node @param {Arrays} base
 * @param {(node: number, arrays: Arrays) => Float64Array} compute
 */
function whyUnlikeArray(graph, node, base, compute) {
  const operands = [...graph.operand.subarray(graph.start[node], graph.start[node + 1])];
  if (graph.stale.has(node) || operands.some((one) => !base[one])) return null;
  const [found, said] = [compute(node, base), /** @type {Float64Array} */ (base[node])];
  const large = said.reduce((most, x) => (Math.abs(x) < Infinity ? Math.max(most, Math.abs(x)) : most), 0);
  const unlike = (/** @type {number} */ slack) =>
    found.findIndex((x, k) => !Object.is(x, said[k]) && x !== said[k] && !(Math.abs(x - said[k]) <= slack));
  if (unlike(1e-5 * large) < 0) return null;
  const nudged = base.slice();
  for (const one of operands) nudged[one] = base[one]?.map((x, k) => x * (1 + ((k * 7) % 5 < 2 ? 2e-6 : -2e-6))) ?? null;
  const moved = compute(node, nudged).reduce((most, x, k) => Math.max(most, Math.abs(x - found[k]) || 0), 0);
  const at = unlike(1e-5 * large + 8 * moved);
  return at < 0 ? null : `Its loops give ${pretty(found[at])} here, and Python computed ${pretty(said[at])}.`;
}

/** @param {Record<string, any>} data as the trace has it @param {boolean} interpret @returns {Program} */
function programOf({ first, sizes, result, loops }, interpret) {
  const steps = loops.map((/** @type {any} */ loop) => {
    const tree = readExpression(loop.f);
    try {
      if (!interpret) return new Function("N", "m", loopSource(loop, tree));
    } catch (error) {
      if (!(error instanceof EvalError)) throw error; // what a Content-Security-Policy raises
    }
    const f = expressionClosure(tree, new Map([...NAMES].map((name, k) => [name, k])));
    return (/** @type {any} */ _, /** @type {Arrays} */ memory) => runLoop({ ...loop, f }, memory);
  });
  return (given) => {
    const memory = given.slice();
    sizes.forEach((/** @type {number | [number]} */ size, /** @type {number} */ k) => {
      memory[first + k] = Array.isArray(size) ? Float64Array.from({ length: size[0] }, (_, i) => i) : null;
    });
    steps.forEach((/** @type {any} */ step, /** @type {number} */ k) => {
      const { o, by } = loops[k];
      const empty = by === "max" ? -Infinity : by ? Infinity : -0; // to −0 even a −0 can be added
      memory[o[0]] ??= new Float64Array(sizes[o[0] - first]).fill(empty);
      step(NUMERIC, memory);
    });
    return /** @type {Float64Array} */ (memory[result]);
  };
}

/**
 * A loop as code over memory m. Whatever the trace holds, only numbers and what `readExpression` knows get into it.
 * @param {any} loop @param {import("./expression.js").Expression} tree
 */
function loopSource({ n, o, x, by }, tree) {
  const place = (/** @type {number[]} */ [, offset, ...strides], /** @type {string} */ name) =>
    [`${name}[${Number(offset)}`, ...strides.map((by, d) => `i${d} * ${Number(by)}`)].join(" + ") + "]";
  const views = [o, ...x];
  const named = views.map((view, k) => `const m${k} = m[${Number(view[0])}];`).join("");
  const names = new Map([...NAMES].map((name, k) => [name, x[k] ? place(x[k], `m${k + 1}`) : "NaN"]));
  const [out, y] = [place(o, "m0"), expressionSource(tree, names)];
  const sum = by === "max" || by === "min" ? `N.${by}(${out}, ${y})` : `${out} + ${y}`;
  const around = n.map((/** @type {number} */ size, /** @type {number} */ d) => {
    return `for (let i${d} = 0; i${d} < ${Number(size)}; i${d} += 1)`;
  });
  return `"use strict"; ${named} ${around.join(" ")} ${out} = ${sum};`;
}

/** @param {Loop} loop @param {Arrays} memory */
function runLoop({ n, o, x, by, f }, memory) {
  const out = /** @type {Float64Array} */ (memory[o[0]]);
  const reads = x.map((view) => /** @type {Float64Array} */ (memory[view[0]]));
  const at = x.map((view) => view[1]);
  const done = n.map(() => 0);
  const frame = x.map(() => 0);
  let to = o[1];
  for (let d = 0; d >= 0; ) {
    for (let k = 0; k < at.length; k += 1) frame[k] = reads[k][at[k]];
    out[to] = by ? NUMERIC[by](out[to], f(frame)) : out[to] + f(frame);
    for (d = n.length - 1; d >= 0; d -= 1) {
      done[d] += 1;
      const by = done[d] < n[d] ? 1 : 1 - n[d];
      to += by * o[d + 2];
      for (let k = 0; k < at.length; k += 1) at[k] += by * x[k][d + 2];
      if (by === 1) break;
      done[d] = 0;
    }
  }
}

/**
 * An array of a node as a picture.
 * @param {Graph} graph @param {number} node @param {Float64Array} cells @returns {Cells}
 */
function cellsOf(graph, node, cells) {
  const { shape, dtype } = graph.tensors.get(node) ?? { shape: [], dtype: "float64" };
  const cols = (shape.length ? shape[shape.length - 1] : 1) * tilesAcross(shape);
  let [low, high, nan, inf] = [Infinity, -Infinity, 0, 0];
  for (let k = 0; k < cells.length; k += 1) {
    const x = cells[k];
    if (x - x !== 0) {
      if (x !== x) nan += 1;
      else inf += 1;
      continue;
    }
    if (x < low) low = x;
    if (x > high) high = x;
  }
  const [min, max] = low <= high ? [low, high] : [null, null];
  const picture = { cells: tiled(cells, shape), rows: cells.length / cols, cols, step: null };
  return { shape, dtype, size: cells.length, ...picture, min, max, mean: null, std: null, hist: [], nan, inf };
}
