/**
 * What-if: computes a graph of single numbers again (of tensors: see tensorengine.js), forward and backward, from changed leaves. The operations compute
 * as the trace says in its `ops`, a gradient travels in the order of the trace's own events, and every number is what
 * Python would have computed.
 *
 * Some nodes cannot be computed again: tensors, operations with no `js`, and those whose formula does not give the
 * number that Python computed. They keep their numbers while nothing that they come from is changed, and have none
 * else, as all that comes from them.
 */

import { expressionClosure, expressionSource, namesIn, readExpression } from "./expression.js";
import { pretty } from "./notation.js";
import { NUMERIC } from "./numeric.js";
import { tensorEngine } from "./tensorengine.js";
import { CONSTANT, FINAL, LEAF, OP } from "../model/trace.js";

/** @typedef {import("../types.js").Graph} Graph */
/** @typedef {import("../types.js").Numbers} Numbers */
/** @typedef {import("../types.js").Run} Run */
/** @typedef {import("./expression.js").Expression} Expression */

/**
 * One operation, made ready: how it computes, its rules, and the attributes that these name.
 * @typedef {object} Recipe
 * @property {Expression | null} forward
 * @property {(Expression | null)[]} rules
 * @property {string[]} attributes
 * @property {string | null} why it cannot be computed
 */

/**
 * Computes a node, and what an edge passes on of a gradient g.
 * @typedef {{compute: (node: number) => number, product: (edge: number, g: number) => number}} Machine
 */

/**
 * @typedef {object} Plan
 * @property {Graph} graph
 * @property {Recipe[]} recipes
 * @property {(number | null)[][]} attributes of each node that has any, in the order of its recipe
 * @property {(string | null)[]} why a node itself cannot be computed again
 * @property {Float64Array} value the numbers that the machine works on
 */

/**
 * @typedef {object} Engine
 * @property {(node: number) => boolean} able whether a node can be computed again, whatever leaf is changed
 * @property {(node: number) => string | null} why it cannot, in a sentence
 * @property {(overrides: Map<number, number>) => Numbers} run the numbers of the graph when leaves have other numbers
 * @property {(root: number, overrides: Map<number, number>) => number} output only a root, of many numbers their sum
 * @property {(leaf: number, root: number, overrides?: Map<number, number>) => Tangent} tangent
 */

/**
 * The root as a function of a leaf, at the leaf's number x: its value y, its slope by the chain rule (NaN without a
 * backward pass from there), and `measured` by central differences.
 * @typedef {{x: number, y: number, slope: number, measured: number}} Tangent
 */

const OPERAND_LETTERS = "abcdefhijk";

/**
 * The engine of a graph.
 * @param {Graph} graph
 * @param {{interpret?: boolean}} [options] interpret: make no code, as where a page's security policy forbids it
 * @returns {Engine}
 */
export function engine(graph, { interpret = false } = {}) {
  if (graph.tensors.size) return tensorEngine(graph, { interpret });
  const plan = planOf(graph);
  const machine = (interpret ? null : compiledMachine(plan)) ?? interpretedMachine(plan);
  for (let node = 0; node < graph.count; node += 1) {
    if (plan.why[node] === null && graph.kind[node] === OP) plan.why[node] = whyUnlike(plan, machine, node);
  }
  const source = sourcesOfInability(plan);
  const fresh = nodesWithFreshGradient(graph);
  /** @param {Map<number, number>} overrides */
  const run = (overrides) => {
    const forward = runForward(plan, machine, overrides);
    const { local, localKnown } = runLocals(plan, machine, forward);
    const grad = fresh.map((is) => (is ? 0 : NaN));
    const runs = graph.numbers.runs.map((one) => runBackward(plan, machine, forward, local, localKnown, one, grad));
    return { value: plan.value.slice(), known: forward.known, local, localKnown, grad, runs };
  };
  /** @type {Engine["output"]} */
  const output = (root, overrides) => {
    runForward(plan, machine, overrides);
    return plan.value[root];
  };
  return {
    able: (node) => source[node] < 0,
    why: (node) => inabilityText(plan, node, source[node]),
    run,
    output,
    tangent: (leaf, root, overrides = new Map()) => {
      const numbers = run(overrides);
      const x = numbers.value[leaf];
      const step = 6e-6 * Math.max(1, Math.abs(x)); // the cube root of the rounding error, where the two errors meet
      const [above, below] = [x + step, x - step].map((at) => output(root, new Map(overrides).set(leaf, at)));
      const measured = (above - below) / (x + step - (x - step));
      return { x, y: numbers.value[root], slope: slopeIn(graph, numbers, leaf, root), measured };
    },
  };
}

// --- what can be computed --------------------------------------------------------------------------------------------

/** @param {Graph} graph @returns {Plan} */
function planOf(graph) {
  const recipes = graph.ops.map(recipeOf);
  /** @type {(number | null)[][]} */
  const attributes = [];
  /** @type {(string | null)[]} */
  const why = [];
  for (let node = 0; node < graph.count; node += 1) {
    const recipe = graph.kind[node] === OP ? recipes[graph.op[node]] : null;
    why.push(whyNot(graph, node, recipe));
    if (why[node] !== null || recipe === null || !recipe.attributes.length) continue;
    const given = graph.attrs.get(node) ?? {};
    const found = recipe.attributes.map((name) => attributeNumber(given[name]));
    const missing = recipe.attributes.filter((_, k) => found[k] === undefined);
    if (missing.length) why[node] = `The trace has no number for “${missing[0]}”.`;
    attributes[node] = /** @type {(number | null)[]} */ (found);
  }
  return { graph, recipes, attributes, why, value: graph.numbers.value.slice() };
}

/** @param {import("../types.js").OpInfo} op @returns {Recipe} */
function recipeOf(op) {
  const none = { forward: null, rules: [], attributes: [] };
  if (op.js === null) return { ...none, why: op.why ?? `${op.name} has no formula for single numbers.` };
  try {
    const forward = readExpression(op.js);
    const rules = op.rules.map((rule) => (rule === null ? null : readExpression(rule)));
    const names = new Set([forward, ...rules].flatMap((tree) => (tree === null ? [] : [...namesIn(tree)])));
    const attributes = [...names].filter((name) => name !== "g" && name !== "y" && !isOperandLetter(name));
    return { forward, rules, attributes, why: null };
  } catch (error) {
    return { ...none, why: /** @type {Error} */ (error).message };
  }
}

/** @param {string} name */
function isOperandLetter(name) {
  return name.length === 1 && OPERAND_LETTERS.includes(name);
}

/** Why a node itself cannot be computed. @param {Graph} graph @param {number} node @param {Recipe | null} recipe */
function whyNot(graph, node, recipe) {
  const { kind, numbers } = graph;
  if (kind[node] === LEAF || kind[node] === CONSTANT) return numbers.known[node] ? null : "Its number is not known.";
  if (recipe === null) return "It was never computed.";
  return recipe.why;
}

/** What the text of an attribute says; undefined if that is no number. @param {string | undefined} text */
function attributeNumber(text) {
  if (text === undefined || text.trim() === "") return undefined;
  const words = { None: null, True: 1, False: 0, inf: Infinity, "-inf": -Infinity, nan: NaN };
  if (Object.hasOwn(words, text)) return words[/** @type {keyof typeof words} */ (text)];
  const x = Number(text);
  return Number.isNaN(x) ? undefined : x;
}

/**
 * Why a node is not to be computed again: its formula gives another number than Python did, by more than the rounding
 * of the numbers in a trace can explain. That is measured: how much a change in the sixth digit changes the result.
 * @param {Plan} plan
 * @param {Machine} machine
 * @param {number} node
 */
function whyUnlike({ graph, value }, machine, node) {
  const { numbers, start, operand, stale } = graph;
  if (!numbers.known[node] || stale.has(node)) return null;
  for (let edge = start[node]; edge < start[node + 1]; edge += 1) if (!numbers.known[operand[edge]]) return null;
  const [found, said] = [machine.compute(node), numbers.value[node]];
  let slack = 1e-5 * Math.abs(said) + 1e-300;
  if (Object.is(found, said) || Math.abs(found - said) <= slack) return null;
  for (let edge = start[node]; edge < start[node + 1]; edge += 1) {
    const x = value[operand[edge]];
    for (const factor of [1 - 1e-6, 1 + 1e-6]) {
      value[operand[edge]] = x * factor;
      slack += 2 * Math.abs(machine.compute(node) - found);
    }
    value[operand[edge]] = x;
  }
  if (found === said || Math.abs(found - said) <= slack) return null;
  return `Its formula gives ${pretty(found)} here, and Python computed ${pretty(said)}.`;
}

/** For each node the first on the way to it that cannot be computed again; -1: there is none. @param {Plan} plan */
function sourcesOfInability({ graph, why }) {
  const source = new Int32Array(graph.count).fill(-1);
  for (let node = 0; node < graph.count; node += 1) {
    if (why[node] !== null) source[node] = node;
    for (let edge = graph.start[node]; edge < graph.start[node + 1] && source[node] < 0; edge += 1) {
      source[node] = source[graph.operand[edge]];
    }
  }
  return source;
}

/** @param {Plan} plan @param {number} node @param {number} source */
function inabilityText({ graph, why }, node, source) {
  if (source < 0) return null;
  const title = graph.title(source);
  return source === node ? why[node] : `It is computed from ${title}, which cannot be computed again. ${why[source]}`;
}

// --- machines --------------------------------------------------------------------------------------------------------

/**
 * A machine of generated code: one function with a case for each operation, one with a case for each rule. Null where
 * the page forbids it.
 * @param {Plan} plan
 * @returns {Machine | null}
 */
function compiledMachine({ graph, recipes, attributes, value }) {
  const cases = recipes.map((recipe, op) => {
    const names = new Map([["g", "g"], ["y", "y"]]);
    [...OPERAND_LETTERS].forEach((letter, k) => names.set(letter, `v[x[s + ${k}]]`));
    recipe.attributes.forEach((name, k) => names.set(name, `t[i][${k}]`));
    const rules = recipe.rules.map((rule, slot) => rule && `case ${slot}: return +${expressionSource(rule, names)};`);
    const forward = recipe.forward && `case ${op}: return +${expressionSource(recipe.forward, names)};`;
    return { forward, rules: `case ${op}: switch (e - s) { ${rules.filter(Boolean).join("\n")} } break;` };
  });
  const source = `"use strict";
    return [
      (i) => { const s = start[i]; switch (op[i]) { ${cases.map((c) => c.forward ?? "").join("\n")} } return NaN; },
      (e, g) => {
        const i = result[e], s = start[i], y = v[i];
        switch (op[i]) { ${cases.map((c) => c.rules).join("\n")} }
        return NaN;
      },
    ];`;
  const { start, operand, result, op } = graph;
  const given = { N: NUMERIC, start, x: operand, result, op, t: attributes, v: value };
  try {
    const [compute, product] = new Function(...Object.keys(given), source)(...Object.values(given));
    return { compute, product };
  } catch (error) {
    if (error instanceof EvalError) return null; // what a Content-Security-Policy raises
    throw error;
  }
}

/** The same by interpretation. @param {Plan} plan @returns {Machine} */
function interpretedMachine({ graph, recipes, attributes, value }) {
  const { start, operand, result, op } = graph;
  const programs = recipes.map((recipe) => {
    const names = [...OPERAND_LETTERS, "g", "y", ...recipe.attributes];
    const places = new Map(names.map((name, place) => [name, place]));
    const close = (/** @type {Expression | null} */ tree) => tree && expressionClosure(tree, places);
    return { forward: close(recipe.forward), rules: recipe.rules.map(close) };
  });
  /** @type {(number | null)[]} */
  const frame = [];
  const first = OPERAND_LETTERS.length;
  const fill = (/** @type {number} */ node, /** @type {number} */ g) => {
    for (let edge = start[node]; edge < start[node + 1]; edge += 1) frame[edge - start[node]] = value[operand[edge]];
    frame[first] = g;
    frame[first + 1] = value[node];
    attributes[node]?.forEach((x, k) => (frame[first + 2 + k] = x));
    return programs[op[node]];
  };
  return {
    compute: (node) => Number(fill(node, NaN).forward?.(frame) ?? NaN),
    product: (edge, g) => {
      const node = result[edge];
      return Number(fill(node, g).rules[edge - start[node]]?.(frame) ?? NaN);
    },
  };
}

// --- running ---------------------------------------------------------------------------------------------------------

/**
 * Which nodes have a number after a run, and which may have another one than in the trace.
 * @typedef {{known: Uint8Array, changed: Uint8Array}} Forward
 */

/**
 * Compute all nodes into plan.value.
 * @param {Plan} plan
 * @param {Machine} machine
 * @param {Map<number, number>} overrides
 * @returns {Forward}
 */
function runForward({ graph, why, value }, machine, overrides) {
  const { count, kind, start, operand, numbers } = graph;
  value.set(numbers.value);
  const known = numbers.known.slice();
  const changed = new Uint8Array(count);
  for (const [node, x] of overrides) {
    if (kind[node] === OP) throw new RangeError(`Node ${node} is no leaf with one number.`);
    changed[node] = Object.is(x, value[node]) ? 0 : 1;
    value[node] = x;
  }
  for (let node = 0; node < count; node += 1) {
    if (kind[node] === LEAF || kind[node] === CONSTANT) continue;
    let [all, some] = [1, 0];
    for (let edge = start[node]; edge < start[node + 1]; edge += 1) {
      all &= known[operand[edge]];
      some |= changed[operand[edge]] | (known[operand[edge]] ^ numbers.known[operand[edge]]);
    }
    changed[node] = some;
    if (why[node] === null && all) {
      value[node] = machine.compute(node);
      known[node] = 1;
    } else if (some) {
      value[node] = NaN;
      known[node] = 0;
    }
  }
  return { known, changed };
}

/**
 * The local derivative of each edge: computed, or the trace's where nothing that it depends on was changed.
 * @param {Plan} plan
 * @param {Machine} machine
 * @param {Forward} forward
 */
function runLocals({ graph, why }, machine, { known, changed }) {
  const { result, flows, numbers, start } = graph;
  const local = new Float64Array(graph.edgeCount).fill(NaN);
  const localKnown = new Uint8Array(graph.edgeCount);
  for (let edge = 0; edge < graph.edgeCount; edge += 1) {
    const node = result[edge];
    if (!flows[edge]) continue;
    if (why[node] === null && known[node] && hasRule(graph, node, edge - start[node])) {
      local[edge] = machine.product(edge, 1);
      localKnown[edge] = 1;
    } else if (!changed[node]) {
      local[edge] = numbers.local[edge];
      localKnown[edge] = numbers.localKnown[edge];
    }
  }
  return { local, localKnown };
}

/** @param {Graph} graph @param {number} node @param {number} slot */
function hasRule(graph, node, slot) {
  return graph.ops[graph.op[node]].rules[slot] !== null;
}

/**
 * The events of one backward pass again. What it adds to the gradients is added to `grad`.
 * @param {Plan} plan
 * @param {Machine} machine
 * @param {Forward} forward
 * @param {Float64Array} local
 * @param {Uint8Array} localKnown
 * @param {Run} run
 * @param {Float64Array} grad
 * @returns {Run}
 */
function runBackward({ graph, why }, machine, forward, local, localKnown, { root, edge }, grad) {
  const { result, operand } = graph;
  const count = edge.length;
  const [upstream, contribution, total] = [0, 1, 2].map(() => new Float64Array(count));
  const known = new Uint8Array(count);
  const gradient = new Float64Array(graph.count).fill(-0); // the one number that, added to, leaves even a −0 as it is
  const lost = new Uint8Array(graph.count);
  gradient[root] = 1;
  for (let k = 0; k < count; k += 1) {
    const over = edge[k];
    const [from, to] = [result[over], operand[over]];
    const g = gradient[from];
    const ruled = why[from] === null && forward.known[from];
    if (lost[from] || !localKnown[over]) {
      lost[to] = 1;
      upstream[k] = lost[from] ? NaN : g;
      contribution[k] = total[k] = NaN;
      continue;
    }
    upstream[k] = g;
    contribution[k] = ruled ? machine.product(over, g) : g * local[over];
    gradient[to] += contribution[k];
    total[k] = lost[to] ? NaN : gradient[to];
    known[k] = lost[to] ? 0 : 1;
  }
  for (let node = 0; node < graph.count; node += 1) grad[node] += lost[node] ? NaN : gradient[node];
  return { root, edge, upstream, contribution, total, known, arrays: null };
}

/**
 * The nodes whose .grad in the trace is what its passes add up to, each once. Others hold more or less than that, of
 * passes that the trace does not know.
 * @param {Graph} graph
 */
function nodesWithFreshGradient({ count, state, operand, numbers }) {
  const sums = new Float64Array(count);
  for (const run of numbers.runs) {
    const totals = new Float64Array(count);
    totals[run.root] = 1;
    run.edge.forEach((edge, k) => (totals[operand[edge]] = run.total[k]));
    totals.forEach((total, node) => (sums[node] += total));
  }
  return numbers.grad.map((x, node) => {
    const same = Object.is(x, sums[node]) || Math.abs(x - sums[node]) <= 1e-5 * Math.abs(x);
    return Number(same && state[node] === FINAL);
  });
}

/** @param {Graph} graph @param {Numbers} numbers @param {number} leaf @param {number} root */
function slopeIn(graph, numbers, leaf, root) {
  if (leaf === root) return 1;
  const run = numbers.runs.find((one) => one.root === root);
  if (run === undefined) return NaN;
  for (let k = run.edge.length - 1; k >= 0; k -= 1) if (graph.operand[run.edge[k]] === leaf) return run.total[k];
  return 0;
}
