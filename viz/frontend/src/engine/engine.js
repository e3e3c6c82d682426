/**
 * The what-if engine: recomputes a graph, forward and backward, from changed leaves. Scalar operations use the formulas
 * in the trace's `ops`, tensor operations its `programs`, in float64; gradients flow in the order of the trace's
 * events. So every value equals what Python would compute.
 *
 * Some nodes cannot be recomputed: operations without a formula in the trace, and those whose formula does not
 * reproduce the value that Python computed. They keep their values while none of their inputs changes; afterwards they,
 * and everything that depends on them, have no value.
 */

import { compileExpression, interpretExpression } from "./expression.js";
import { tileCells, tileColumns } from "../base/tiles.js";
import { cellOf, leafOf, allElements } from "./keys.js";
import { compileProgram } from "./loops.js";
import { abs, max } from "../base/math.js";
import { formatPretty } from "../base/notation.js";
import { BLOCKED, BROKEN, CONSTANT, LEAF, OP } from "../model/trace.js";

/** @typedef {import("../base/types.js").Graph} Graph */
/** @typedef {import("../base/types.js").Numbers} Numbers */
/** @typedef {import("../base/types.js").Quantity} Quantity */
/** @typedef {import("../base/types.js").Run} Run */
/** @typedef {number | Float64Array} Elements a scalar, or the elements of a tensor in row-major order */
/** @typedef {(Elements | null)[]} Values of all nodes; null if unknown */

/**
 * The functions that compute an operation from `given`: the result, its gradient, the operands, the attributes. That
 * array is reused, because allocating one takes as long as the computation.
 * @typedef {object} Recipe
 * @property {any[]} given
 * @property {(given: any[]) => Elements | null} forward
 * @property {(((given: any[]) => Elements | null) | null)[]} rules by operand, its VJP
 */

/**
 * The state of an engine: recorded values, and for each node its recipe, or the reason why it cannot be recomputed;
 * null for leaves.
 * @typedef {{graph: Graph, base: Values, how: (Recipe | string | null)[]}} EngineState
 */

/** Values computed from changed leaves, and which nodes may differ from the recorded values. */
/** @typedef {{values: Values, changed: Uint8Array}} Forward */

/**
 * @typedef {object} Engine
 * @property {(node: number) => boolean} canRecompute whether a node can be recomputed, whichever leaf changes
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
export function createEngine(graph) {
  const { value, local, runs } = graph.numbers;
  const state = { graph, base: value.map(allElements), how: buildRecipes(graph) };
  const blocker = findBlockers(state);
  /** @type {Engine["output"]} */
  const output = (root, overrides) => sumElements(runForward(state, overrides).values[root]);
  return {
    canRecompute: (node) => blocker[node] < 0,
    why(node) {
      const from = blocker[node];
      if (from < 0) return null;
      const reason = /** @type {string} */ (state.how[from]);
      return from === node ? reason : `It depends on ${graph.title(from)}, which cannot be recomputed. ${reason}`;
    },
    output,
    run(overrides) {
      const forward = runForward(state, overrides);
      const { values, changed } = forward;
      const passes = runs.map((run) => runBackward(state, forward, run));
      if (!graph.tensors.size) {
        const localAt = (/** @type {number} */ edge) => (graph.flows[edge] ? edgeVjp(state, forward, edge, 1) : null);
        return /** @type {Numbers} */ ({ value: values, local: localAt, runs: passes });
      }
      return {
        value: values.map((x, node) => (changed[node] ? toCells(graph, node, x) : value[node])),
        local,
        runs: passes.map((run) => cellsOfRun(graph, run)),
      };
    },
    tangent(key, root, overrides = new Map()) {
      const forward = runForward(state, overrides);
      const [node, cell] = [leafOf(graph, key), cellOf(graph, key)];
      const elementOf = (/** @type {Elements | null} */ x) => (typeof x === "number" ? x : (x?.[cell] ?? NaN));
      const x = elementOf(forward.values[node]);
      const step = 6e-6 * max(1, abs(x)); // the cube root of the rounding error, which balances rounding and truncation
      const [above, below] = [x + step, x - step].map((to) => output(root, new Map(overrides).set(key, to)));
      const run = runs.find((one) => one.root === root);
      const slope = run ? elementOf(gradientOf(state, forward, run, node)) : NaN;
      const measured = (above - below) / (x + step - (x - step));
      return { x, y: sumElements(forward.values[root]), slope, measured };
    },
  };
}

/** @param {Elements | null} x */
const sumElements = (x) => (typeof x === "number" ? x : (x?.reduce((a, b) => a + b) ?? NaN));

// --- what can be recomputed -----------------------------------------------------------------------------------------

/** Return for each node its recipe, or the reason why it has none. @param {Graph} graph @returns {EngineState["how"]} */
function buildRecipes({ kind, op, ops, tensors, programs, attrs, numbers }) {
  /** @type {Recipe["forward"][]} */
  const compiledPrograms = [];
  const program = (/** @type {number} */ at) => (compiledPrograms[at] ??= compileProgram(programs[at]));
  const programsOf = (/** @type {number[]} */ [forward, ...rules]) => {
    try {
      return { given: [], forward: program(forward), rules: rules.map((at) => (at < 0 ? null : program(at))) };
    } catch {
      return null;
    }
  };
  /** @type {ReturnType<typeof buildRecipe>[]} */
  const recipes = [];
  return numbers.value.map((value, node) => {
    if (kind[node] === BROKEN) return "It was never computed.";
    if (kind[node] === LEAF || kind[node] === CONSTANT) {
      if (allElements(value) !== null) return null;
      return value ? "The trace omits some of its elements." : "Its values were not stored; use mg.record().";
    }
    const tensor = tensors.get(node);
    if (!tensor) return bindAttributes((recipes[op[node]] ??= buildRecipe(ops[op[node]])), attrs.get(node) ?? {});
    const { loops } = tensor;
    return (Array.isArray(loops) ? programsOf(loops) : loops) ?? "The trace has no formula for it.";
  });
}

/**
 * Return the recipe of a scalar operation, with the names of its attributes, or the reason why it has none.
 * @param {import("../base/types.js").OpInfo} op
 */
function buildRecipe({ name, js, rules, why }) {
  if (js === null) return why ?? `${name} has no scalar formula.`;
  const names = ["y", "g", ...OPERAND_LETTERS.slice(0, rules.length)];
  const first = names.length;
  const indexOfName = (/** @type {string} */ one) => (names.includes(one) ? names.indexOf(one) : names.push(one) - 1);
  const formula = (/** @type {string} */ text) => {
    const number = `(1 * ${text})`; // also converts a Boolean
    return compileExpression(number, (one) => `m[${indexOfName(one)}]`, (code) => `return ${code}`) ?? interpretExpression(number, indexOfName);
  };
  try {
    const [forward, ruleFunctions] = [formula(js), rules.map((rule) => (rule === null ? null : formula(rule)))];
    return { given: [], forward, rules: ruleFunctions, first, attributes: names.slice(first) };
  } catch (error) {
    return /** @type {Error} */ (error).message;
  }
}

/** @param {ReturnType<typeof buildRecipe>} recipe @param {Record<string, string>} attributes @returns {Recipe | string} */
function bindAttributes(recipe, attributes) {
  if (typeof recipe === "string" || !recipe.attributes.length) return recipe;
  const args = new Array(recipe.first).fill(NaN);
  for (const name of recipe.attributes) {
    const x = parseAttribute(attributes[name]);
    if (x === undefined) return `The trace has no value for “${name}”.`;
    args.push(x);
  }
  return { ...recipe, given: args };
}

/** Parse an attribute as a number; undefined if it is not one. @param {string | undefined} text */
function parseAttribute(text = "") {
  const words = { None: null, True: 1, False: 0, inf: Infinity, "-inf": -Infinity, nan: NaN };
  if (Object.hasOwn(words, text)) return words[/** @type {keyof typeof words} */ (text)];
  return text.trim() === "" || Number.isNaN(Number(text)) ? undefined : Number(text);
}

/** Return for each node its first input, itself included, that cannot be recomputed; -1: none. @param {EngineState} state */
function findBlockers(state) {
  const { count, start, operand } = state.graph;
  const blocker = new Int32Array(count).fill(-1);
  for (let node = 0; node < count; node += 1) {
    state.how[node] = mismatchReason(state, node) ?? state.how[node];
    if (typeof state.how[node] === "string") blocker[node] = node;
    for (let k = start[node]; k < start[node + 1] && blocker[node] < 0; k += 1) blocker[node] = blocker[operand[k]];
  }
  return blocker;
}

/**
 * Return why a node should not be recomputed: its formula differs from Python's value by more than the rounding in the
 * trace explains. That bound is measured by perturbing the operands in the sixth digit.
 * @param {EngineState} state @param {number} node
 */
function mismatchReason(state, node) {
  const { base, graph } = state;
  const recorded = elementsOf(base[node]);
  const computed = elementsOf(compute(state, node, base));
  if (!recorded.length || !computed.length || graph.stale.has(node)) return null;
  const firstMismatch = (/** @type {number} */ tolerance) =>
    computed.findIndex((/** @type {number} */ x, /** @type {number} */ k) => !Object.is(x, recorded[k]) && x !== recorded[k] && !(abs(x - recorded[k]) <= tolerance));
  let slack = 1e-5 * maxMagnitude(recorded, (x) => (abs(x) < Infinity ? x : 0));
  if (firstMismatch(slack) < 0) return null;
  for (const one of graph.operand.subarray(graph.start[node], graph.start[node + 1])) {
    const x = /** @type {Elements} */ (base[one]);
    const perturb = (/** @type {number} */ x, k = 0) => x * (1 + ((k * 7) % 5 < 2 ? 2e-6 : -2e-6));
    base[one] = typeof x === "number" ? perturb(x) : x.map(perturb);
    slack += 8 * maxMagnitude(elementsOf(compute(state, node, base)), (y, k) => y - computed[k] || 0);
    base[one] = x;
  }
  const at = firstMismatch(slack);
  return at < 0 ? null : `Its formula gives ${formatPretty(computed[at])} here, but Python computed ${formatPretty(recorded[at])}.`;
}

/**
 * Return the largest magnitude of `of` over `all`.
 * @param {ArrayLike<number>} all @param {(x: number, k: number) => number} of
 */
const maxMagnitude = (all, of) => Array.from(all, of).reduce((result, x) => max(result, abs(x)), 0);

/** @param {Elements | null} x @returns {Float64Array | number[]} */
const elementsOf = (x) => (typeof x === "number" ? [x] : (x ?? []));

// --- running ---------------------------------------------------------------------------------------------------------

/**
 * Fill in the arguments of a recipe at a node; null if a value is unknown.
 * @param {EngineState} again @param {Recipe} recipe @param {number} node @param {Values} values @param {Elements} g
 */
function fillArguments({ graph: { start, operand, slot } }, { given: args }, node, values, g) {
  args[0] = values[node] ?? NaN;
  args[1] = g;
  for (let edge = start[node]; edge < start[node + 1]; edge += 1) {
    const x = values[operand[edge]];
    if (x === null) return null;
    args[2 + slot[edge]] = x;
  }
  return args;
}

/**
 * Compute the value of an operation; null if that is impossible.
 * @param {EngineState} state @param {number} node @param {Values} values
 */
function compute(state, node, values) {
  const recipe = state.how[node];
  const args = typeof recipe !== "string" && recipe && fillArguments(state, recipe, node, values, NaN);
  return args ? recipe.forward(args) : null;
}

/**
 * Compute the VJP of an edge for a gradient g: by the rule, or by the recorded derivative if nothing changed.
 * @param {EngineState} state @param {Forward} forward @param {number} edge @param {Elements} g
 */
function edgeVjp(state, { values, changed }, edge, g) {
  const { graph, how } = state;
  const node = graph.result[edge];
  const recipe = how[node];
  const rule = typeof recipe !== "string" && values[node] !== null && recipe?.rules[graph.slot[edge]];
  const args = rule && fillArguments(state, recipe, node, values, g);
  if (args) return rule(args);
  const local = graph.numbers.local(edge);
  return changed[node] || local === null || typeof g !== "number" ? null : g * local;
}

/**
 * Compute all values after some leaves changed.
 * @param {EngineState} state @param {Map<number, number>} overrides @returns {Forward}
 */
function runForward(state, overrides) {
  const { graph, base } = state;
  const { count, kind, start, operand } = graph;
  const values = base.slice();
  const changed = new Uint8Array(count);
  for (const [key, x] of overrides) {
    const [node, cell] = [leafOf(graph, key), cellOf(graph, key)];
    const elements = elementsOf(values[node]).slice();
    if (kind[node] === OP || cell >= elements.length) throw new RangeError(`No such leaf or element: ${key}.`);
    if (Object.is(elements[cell], x)) continue;
    elements[cell] = x;
    values[node] = Array.isArray(elements) ? x : elements;
    changed[node] = 1;
  }
  for (let node = 0; node < count; node += 1) {
    if (kind[node] === LEAF || kind[node] === CONSTANT) continue;
    for (let edge = start[node]; edge < start[node + 1]; edge += 1) changed[node] |= changed[operand[edge]];
    if (!changed[node] && values[node] !== null) continue;
    values[node] = compute(state, node, values);
    if (values[node] !== null) changed[node] = 1;
  }
  return { values, changed };
}

/**
 * Replay the events of a backward pass; `last` maps each node to the last event that contributed to its gradient.
 * @param {EngineState} state @param {Forward} forward @param {Run} run
 */
function runBackward(state, forward, { root, edge }) {
  const { count, result, operand } = state.graph;
  // Numbers from the start: V8 stores such arrays unboxed.
  const [upstream, contribution, total] = [0, 1, 2].map(() => new Array(edge.length).fill(NaN));
  const last = new Int32Array(count).fill(-1);
  const y = forward.values[root];
  const seed = typeof y === "number" ? 1 : (y?.map(() => 1) ?? null);
  for (let k = 0; k < edge.length; k += 1) {
    const from = result[edge[k]];
    const to = operand[edge[k]];
    upstream[k] = from === root ? seed : total[last[from]];
    contribution[k] = upstream[k] === null ? null : edgeVjp(state, forward, edge[k], upstream[k]);
    total[k] = last[to] < 0 ? contribution[k] : addGradients(total[last[to]], contribution[k]);
    last[to] = k;
  }
  return { root, edge, upstream, contribution, total, last };
}

/**
 * Return the gradient of a node in a run.
 * @param {EngineState} state @param {Forward} forward @param {Run} run @param {number} node
 */
function gradientOf(state, forward, run, node) {
  const { total, last } = runBackward(state, forward, run);
  if (last[node] >= 0) return total[last[node]];
  if (node === run.root) return 1;
  return state.graph.state[node] === BLOCKED ? null : 0; // 0 if the root does not depend on it
}

/** @param {Elements | null} a @param {Elements | null} b */
function addGradients(a, b) {
  if (a === null || b === null) return null;
  return typeof a === "number" ? a + Number(b) : a.map((x, k) => x + elementsOf(b)[k]);
}

/**
 * Convert the arrays of a run to `Cells`.
 * @param {Graph} graph @param {ReturnType<typeof runBackward>} run @returns {Run}
 */
function cellsOfRun(graph, { root, edge, upstream, contribution, total }) {
  const cellsAt = (/** @type {Int32Array} */ ends) => (/** @type {Elements | null} */ x, /** @type {number} */ k) =>
    toCells(graph, ends[edge[k]], x);
  const [resultCells, operandCells] = [cellsAt(graph.result), cellsAt(graph.operand)];
  return { root, edge, upstream: upstream.map(resultCells), contribution: contribution.map(operandCells), total: total.map(operandCells) };
}

/**
 * Convert an array of a node to `Cells`; return a scalar unchanged.
 * @param {Graph} graph @param {number} node @param {Elements | null} x
 * @returns {Quantity | null}
 */
function toCells(graph, node, x) {
  if (x === null || typeof x === "number") return x;
  const { shape, dtype } = graph.tensors.get(node) ?? { shape: [], dtype: "float64" };
  const cols = (shape.length ? shape[shape.length - 1] : 1) * tileColumns(shape);
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
    cells: tileCells(x, shape),
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
