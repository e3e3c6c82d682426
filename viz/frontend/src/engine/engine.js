/**
 * The what-if engine: recomputes a graph, forward and backward, from changed leaves. Scalar operations use the formulas
 * in the trace's `ops`, tensor operations its `programs`, in float64; gradients flow in the order of the trace's
 * events. So every value equals what Python would compute.
 *
 * Some nodes cannot be recomputed: operations without a formula in the trace, and those whose formula does not
 * reproduce the value that Python computed. They keep their values while none of their inputs changes; afterwards they,
 * and everything that depends on them, have no value.
 */

import { compiled, interpreted } from "./expression.js";
import { tiled, tilesAcross } from "../base/tiles.js";
import { cellOf, leafOf, wholeOf } from "./keys.js";
import { programOf } from "./loops.js";
import { abs, max } from "../base/math.js";
import { pretty } from "../base/notation.js";
import { BLOCKED, BROKEN, CONSTANT, LEAF, OP } from "../model/trace.js";

/** @typedef {import("../base/types.js").Graph} Graph */
/** @typedef {import("../base/types.js").Numbers} Numbers */
/** @typedef {import("../base/types.js").Quantity} Quantity */
/** @typedef {import("../base/types.js").Run} Run */
/** @typedef {number | Float64Array} Held a scalar, or the elements of a tensor in row-major order */
/** @typedef {(Held | null)[]} Values of all nodes; null if unknown */

/**
 * The functions that compute an operation from `given`: the result, its gradient, the operands, the attributes. That
 * array is reused, because allocating one takes as long as the computation.
 * @typedef {object} Recipe
 * @property {any[]} given
 * @property {(given: any[]) => Held | null} forward
 * @property {(((given: any[]) => Held | null) | null)[]} rules by operand, its VJP
 */

/**
 * The state of an engine: recorded values, and for each node its recipe, or the reason why it cannot be recomputed;
 * null for leaves.
 * @typedef {{graph: Graph, base: Values, how: (Recipe | string | null)[]}} Again
 */

/** Values computed from changed leaves, and which nodes may differ from the recorded values. */
/** @typedef {{values: Values, changed: Uint8Array}} Forward */

/**
 * @typedef {object} Engine
 * @property {(node: number) => boolean} able whether a node can be recomputed, whichever leaf changes
 * @property {(node: number) => string | null} why it cannot be recomputed
 * @property {(overrides: Map<number, number>) => Numbers} run all values of the graph for other leaf values
 * @property {(root: number, overrides: Map<number, number>) => number} output the value of a root; the sum of a tensor
 * @property {(key: number, root: number, overrides?: Map<number, number>) => Tangent} tangent
 */

/**
 * The root as a function of a leaf or an element, at its value x: the root's value y, the derivative `slope` by the
 * chain rule (NaN without a backward pass from that root), and `measured` by central differences.
 * @typedef {{x: number, y: number, slope: number, measured: number}} Tangent
 */

const OPERAND_LETTERS = "abcdefhijk";

/**
 * Create the engine of a graph. Leaves and elements are identified by keys: see keys.js.
 * @param {Graph} graph
 * @returns {Engine}
 */
export function engine(graph) {
  const { value, local, runs } = graph.numbers;
  const again = { graph, base: value.map(wholeOf), how: recipesOf(graph) };
  const source = sourcesOfInability(again);
  /** @type {Engine["output"]} */
  const output = (root, overrides) => sumOf(runForward(again, overrides).values[root]);
  return {
    able: (node) => source[node] < 0,
    why(node) {
      const from = source[node];
      if (from < 0) return null;
      const own = /** @type {string} */ (again.how[from]);
      return from === node ? own : `It depends on ${graph.title(from)}, which cannot be recomputed. ${own}`;
    },
    output,
    run(overrides) {
      const forward = runForward(again, overrides);
      const { values, changed } = forward;
      const found = runs.map((run) => runBackward(again, forward, run));
      if (!graph.tensors.size) {
        const localAt = (/** @type {number} */ edge) => (graph.flows[edge] ? productOf(again, forward, edge, 1) : null);
        return /** @type {Numbers} */ ({ value: values, local: localAt, runs: found });
      }
      return {
        value: values.map((x, node) => (changed[node] ? shown(graph, node, x) : value[node])),
        local,
        runs: found.map((run) => picturesOf(graph, run)),
      };
    },
    tangent(key, root, overrides = new Map()) {
      const forward = runForward(again, overrides);
      const [node, cell] = [leafOf(graph, key), cellOf(graph, key)];
      const at = (/** @type {Held | null} */ x) => (typeof x === "number" ? x : (x?.[cell] ?? NaN));
      const x = at(forward.values[node]);
      const step = 6e-6 * max(1, abs(x)); // the cube root of the rounding error, which balances rounding and truncation
      const [above, below] = [x + step, x - step].map((to) => output(root, new Map(overrides).set(key, to)));
      const run = runs.find((one) => one.root === root);
      const slope = run ? at(gradientOf(again, forward, run, node)) : NaN;
      const measured = (above - below) / (x + step - (x - step));
      return { x, y: sumOf(forward.values[root]), slope, measured };
    },
  };
}

/** @param {Held | null} x */
const sumOf = (x) => (typeof x === "number" ? x : (x?.reduce((a, b) => a + b) ?? NaN));

// --- what can be recomputed -----------------------------------------------------------------------------------------

/** Return for each node its recipe, or the reason why it has none. @param {Graph} graph @returns {Again["how"]} */
function recipesOf({ kind, op, ops, tensors, programs, attrs, numbers }) {
  /** @type {Recipe["forward"][]} */
  const made = [];
  const program = (/** @type {number} */ at) => (made[at] ??= programOf(programs[at]));
  const programsOf = (/** @type {number[]} */ [forward, ...rules]) => {
    try {
      return { given: [], forward: program(forward), rules: rules.map((at) => (at < 0 ? null : program(at))) };
    } catch {
      return null;
    }
  };
  /** @type {ReturnType<typeof recipeOf>[]} */
  const recipes = [];
  return numbers.value.map((value, node) => {
    if (kind[node] === BROKEN) return "It was never computed.";
    if (kind[node] === LEAF || kind[node] === CONSTANT) {
      if (wholeOf(value) !== null) return null;
      return value ? "The trace omits some of its elements." : "Its values were not stored; use mg.record().";
    }
    const tensor = tensors.get(node);
    if (!tensor) return withAttributes((recipes[op[node]] ??= recipeOf(ops[op[node]])), attrs.get(node) ?? {});
    const { loops } = tensor;
    return (Array.isArray(loops) ? programsOf(loops) : loops) ?? "The trace has no formula for it.";
  });
}

/**
 * Return the recipe of a scalar operation, with the names of its attributes, or the reason why it has none.
 * @param {import("../base/types.js").OpInfo} op
 */
function recipeOf({ name, js, rules, why }) {
  if (js === null) return why ?? `${name} has no scalar formula.`;
  const names = ["y", "g", ...OPERAND_LETTERS.slice(0, rules.length)];
  const first = names.length;
  const place = (/** @type {string} */ one) => (names.includes(one) ? names.indexOf(one) : names.push(one) - 1);
  const formula = (/** @type {string} */ text) => {
    const number = `(1 * ${text})`; // also converts a Boolean
    return compiled(number, (one) => `m[${place(one)}]`, (code) => `return ${code}`) ?? interpreted(number, place);
  };
  try {
    const [forward, made] = [formula(js), rules.map((rule) => (rule === null ? null : formula(rule)))];
    return { given: [], forward, rules: made, first, attributes: names.slice(first) };
  } catch (error) {
    return /** @type {Error} */ (error).message;
  }
}

/** @param {ReturnType<typeof recipeOf>} recipe @param {Record<string, string>} texts @returns {Recipe | string} */
function withAttributes(recipe, texts) {
  if (typeof recipe === "string" || !recipe.attributes.length) return recipe;
  const given = new Array(recipe.first).fill(NaN);
  for (const name of recipe.attributes) {
    const x = attributeNumber(texts[name]);
    if (x === undefined) return `The trace has no value for “${name}”.`;
    given.push(x);
  }
  return { ...recipe, given };
}

/** Parse an attribute as a number; undefined if it is not one. @param {string | undefined} text */
function attributeNumber(text = "") {
  const words = { None: null, True: 1, False: 0, inf: Infinity, "-inf": -Infinity, nan: NaN };
  if (Object.hasOwn(words, text)) return words[/** @type {keyof typeof words} */ (text)];
  return text.trim() === "" || Number.isNaN(Number(text)) ? undefined : Number(text);
}

/** Return for each node its first input, itself included, that cannot be recomputed; -1: none. @param {Again} again */
function sourcesOfInability(again) {
  const { count, start, operand } = again.graph;
  const source = new Int32Array(count).fill(-1);
  for (let node = 0; node < count; node += 1) {
    again.how[node] = whyUnlike(again, node) ?? again.how[node];
    if (typeof again.how[node] === "string") source[node] = node;
    for (let k = start[node]; k < start[node + 1] && source[node] < 0; k += 1) source[node] = source[operand[k]];
  }
  return source;
}

/**
 * Return why a node should not be recomputed: its formula differs from Python's value by more than the rounding in the
 * trace explains. That bound is measured by perturbing the operands in the sixth digit.
 * @param {Again} again @param {number} node
 */
function whyUnlike(again, node) {
  const { base, graph } = again;
  const said = listOf(base[node]);
  const found = listOf(compute(again, node, base));
  if (!said.length || !found.length || graph.stale.has(node)) return null;
  const unlike = (/** @type {number} */ slack) =>
    found.findIndex((/** @type {number} */ x, /** @type {number} */ k) => !Object.is(x, said[k]) && x !== said[k] && !(abs(x - said[k]) <= slack));
  let slack = 1e-5 * largest(said, (x) => (abs(x) < Infinity ? x : 0));
  if (unlike(slack) < 0) return null;
  for (const one of graph.operand.subarray(graph.start[node], graph.start[node + 1])) {
    const x = /** @type {Held} */ (base[one]);
    const nudged = (/** @type {number} */ x, k = 0) => x * (1 + ((k * 7) % 5 < 2 ? 2e-6 : -2e-6));
    base[one] = typeof x === "number" ? nudged(x) : x.map(nudged);
    slack += 8 * largest(listOf(compute(again, node, base)), (y, k) => y - found[k] || 0);
    base[one] = x;
  }
  const at = unlike(slack);
  return at < 0 ? null : `Its formula gives ${pretty(found[at])} here, but Python computed ${pretty(said[at])}.`;
}

/**
 * Return the largest magnitude of `of` over `all`.
 * @param {ArrayLike<number>} all @param {(x: number, k: number) => number} of
 */
const largest = (all, of) => Array.from(all, of).reduce((most, x) => max(most, abs(x)), 0);

/** @param {Held | null} x @returns {Float64Array | number[]} */
const listOf = (x) => (typeof x === "number" ? [x] : (x ?? []));

// --- running ---------------------------------------------------------------------------------------------------------

/**
 * Fill in the arguments of a recipe at a node; null if a value is unknown.
 * @param {Again} again @param {Recipe} recipe @param {number} node @param {Values} values @param {Held} g
 */
function givenTo({ graph: { start, operand, slot } }, { given }, node, values, g) {
  given[0] = values[node] ?? NaN;
  given[1] = g;
  for (let edge = start[node]; edge < start[node + 1]; edge += 1) {
    const x = values[operand[edge]];
    if (x === null) return null;
    given[2 + slot[edge]] = x;
  }
  return given;
}

/**
 * Compute the value of an operation; null if that is impossible.
 * @param {Again} again @param {number} node @param {Values} values
 */
function compute(again, node, values) {
  const recipe = again.how[node];
  const given = typeof recipe !== "string" && recipe && givenTo(again, recipe, node, values, NaN);
  return given ? recipe.forward(given) : null;
}

/**
 * Compute the VJP of an edge for a gradient g: by the rule, or by the recorded derivative if nothing changed.
 * @param {Again} again @param {Forward} forward @param {number} edge @param {Held} g
 */
function productOf(again, { values, changed }, edge, g) {
  const { graph, how } = again;
  const node = graph.result[edge];
  const recipe = how[node];
  const rule = typeof recipe !== "string" && values[node] !== null && recipe?.rules[graph.slot[edge]];
  const given = rule && givenTo(again, recipe, node, values, g);
  if (given) return rule(given);
  const local = graph.numbers.local(edge);
  return changed[node] || local === null || typeof g !== "number" ? null : g * local;
}

/**
 * Compute all values after some leaves changed.
 * @param {Again} again @param {Map<number, number>} overrides @returns {Forward}
 */
function runForward(again, overrides) {
  const { graph, base } = again;
  const { count, kind, start, operand } = graph;
  const values = base.slice();
  const changed = new Uint8Array(count);
  for (const [key, x] of overrides) {
    const [node, cell] = [leafOf(graph, key), cellOf(graph, key)];
    const own = listOf(values[node]).slice();
    if (kind[node] === OP || cell >= own.length) throw new RangeError(`No such leaf or element: ${key}.`);
    if (Object.is(own[cell], x)) continue;
    own[cell] = x;
    values[node] = Array.isArray(own) ? x : own;
    changed[node] = 1;
  }
  for (let node = 0; node < count; node += 1) {
    if (kind[node] === LEAF || kind[node] === CONSTANT) continue;
    for (let edge = start[node]; edge < start[node + 1]; edge += 1) changed[node] |= changed[operand[edge]];
    if (!changed[node] && values[node] !== null) continue;
    values[node] = compute(again, node, values);
    if (values[node] !== null) changed[node] = 1;
  }
  return { values, changed };
}

/**
 * Replay the events of a backward pass; `last` maps each node to the last event that contributed to its gradient.
 * @param {Again} again @param {Forward} forward @param {Run} run
 */
function runBackward(again, forward, { root, edge }) {
  const { count, result, operand } = again.graph;
  // Numbers from the start: V8 stores such arrays unboxed.
  const [upstream, contribution, total] = [0, 1, 2].map(() => new Array(edge.length).fill(NaN));
  const last = new Int32Array(count).fill(-1);
  const y = forward.values[root];
  const seed = typeof y === "number" ? 1 : (y?.map(() => 1) ?? null);
  for (let k = 0; k < edge.length; k += 1) {
    const from = result[edge[k]];
    const to = operand[edge[k]];
    upstream[k] = from === root ? seed : total[last[from]];
    contribution[k] = upstream[k] === null ? null : productOf(again, forward, edge[k], upstream[k]);
    total[k] = last[to] < 0 ? contribution[k] : added(total[last[to]], contribution[k]);
    last[to] = k;
  }
  return { root, edge, upstream, contribution, total, last };
}

/**
 * Return the gradient of a node in a run.
 * @param {Again} again @param {Forward} forward @param {Run} run @param {number} node
 */
function gradientOf(again, forward, run, node) {
  const { total, last } = runBackward(again, forward, run);
  if (last[node] >= 0) return total[last[node]];
  if (node === run.root) return 1;
  return again.graph.state[node] === BLOCKED ? null : 0; // 0 if the root does not depend on it
}

/** @param {Held | null} a @param {Held | null} b */
function added(a, b) {
  if (a === null || b === null) return null;
  return typeof a === "number" ? a + Number(b) : a.map((x, k) => x + listOf(b)[k]);
}

/**
 * Convert the arrays of a run to `Cells`.
 * @param {Graph} graph @param {ReturnType<typeof runBackward>} run @returns {Run}
 */
function picturesOf(graph, { root, edge, upstream, contribution, total }) {
  const shownAt = (/** @type {Int32Array} */ ends) => (/** @type {Held | null} */ x, /** @type {number} */ k) =>
    shown(graph, ends[edge[k]], x);
  const [there, here] = [shownAt(graph.result), shownAt(graph.operand)];
  return { root, edge, upstream: upstream.map(there), contribution: contribution.map(here), total: total.map(here) };
}

/**
 * Convert an array of a node to `Cells`; return a scalar unchanged.
 * @param {Graph} graph @param {number} node @param {Held | null} x
 * @returns {Quantity | null}
 */
function shown(graph, node, x) {
  if (x === null || typeof x === "number") return x;
  const { shape, dtype } = graph.tensors.get(node) ?? { shape: [], dtype: "float64" };
  const cols = (shape.length ? shape[shape.length - 1] : 1) * tilesAcross(shape);
  let [min, max, nan, inf] = [Infinity, -Infinity, 0, 0];
  for (const one of x) {
    if (one - one !== 0) {
      if (one !== one) nan += 1;
      else inf += 1;
    } else {
      if (one < min) min = one;
      if (one > max) max = one;
    }
  }
  return {
    shape,
    dtype,
    size: x.length,
    cells: tiled(x, shape),
    rows: x.length / cols,
    cols,
    step: null,
    min: min <= max ? min : null,
    max: min <= max ? max : null,
    mean: null,
    std: null,
    hist: [],
    nan,
    inf,
  };
}
