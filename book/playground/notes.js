/**
 * The alarms of a graph: the origin of a NaN or an infinity, forward and backward; vanishing and exploding gradients;
 * and nodes that block gradients. Messages and thresholds equal those of viz/minigrad_viz/trace/alarms.py.
 */

import { partsOf } from "../../viz/frontend/src/drawing/cards.js";
import { formulaText, pretty } from "../../viz/frontend/src/base/notation.js";
import { LEAF } from "../../viz/frontend/src/model/trace.js";

/** @typedef {import("../../viz/frontend/src/base/types.js").Graph} Graph */
/** @typedef {import("../../viz/frontend/src/base/types.js").Numbers} Numbers */

/** @typedef {{kind: string, node: number, text: string, nodes?: number[], edges?: number[]}} TraceNote */

const SATURATED = 0.99; // threshold of |tanh|, and so of sigmoid: its derivative is below 2% of the largest
const [NEAR, FAR] = [3, 8]; // distance from the output, in operations, of the gradients that are compared
const SCALE = 1e6; // ratio beyond which a distant gradient vanishes or explodes relative to those near the output

/** @param {Graph} graph @param {Numbers} numbers @returns {TraceNote[]} */
export function notesOf(graph, { value, local, runs: [run] }) {
  const values = value.map(Number);
  return [
    ...notFinite(graph, values),
    ...gradientNotFinite(graph, local, run),
    ...faded(graph, run),
    ...dead(graph, values),
    ...saturated(graph, values),
  ];
}

/** @param {Graph} graph @param {number} node */
const operandsOf = ({ start, operand }, node) => [...operand.subarray(start[node], start[node + 1])];

/** @param {number} n @param {string} one @param {string} many */
const count = (n, one, many) => `${n} ${n === 1 ? one : many}`;

// --- NaN and infinities ----------------------------------------------------------------------------------------------

/**
 * Report the first harmful value that is not finite; if it is an infinity, also the first NaN.
 * @param {Graph} graph @param {number[]} values
 */
function notFinite(graph, values) {
  const bad = [...values.keys()].filter((node) => !Number.isFinite(values[node]));
  const harmful = harmfulOf(graph, values, bad);
  const first = bad.find((node) => harmful.has(node) || !putIn(graph, values, node));
  if (first === undefined) return [];
  const nan = Number.isNaN(values[first]) ? undefined : bad.find((node) => Number.isNaN(values[node]));
  return [first, nan].flatMap((node) => (node === undefined ? [] : [origin(graph, values, node, bad)]));
}

/**
 * Whether an infinity was intended: an input, or computed from one.
 * @param {Graph} graph @param {number[]} values @param {number} node
 */
function putIn(graph, values, node) {
  if (Number.isNaN(values[node])) return false;
  const attributed = Object.values(graph.attrs.get(node) ?? {}).some((text) => text.includes("inf"));
  return graph.op[node] < 0 || attributed || operandsOf(graph, node).some((one) => !Number.isFinite(values[one]));
}

/**
 * Return the non-finite nodes from which a path of such nodes leads to the output or a NaN.
 * @param {Graph} graph @param {number[]} values @param {number[]} bad
 */
function harmfulOf(graph, values, bad) {
  const wrong = new Set(bad);
  const found = new Set(bad.filter((node) => graph.outputs.includes(node) || Number.isNaN(values[node])));
  for (let node = graph.count - 1; node >= 0; node -= 1) {
    if (!found.has(node)) continue;
    for (const one of operandsOf(graph, node)) if (wrong.has(one)) found.add(one);
  }
  return found;
}

/** @param {Graph} graph @param {number[]} values @param {number} node @param {number[]} bad @returns {TraceNote} */
function origin(graph, values, node, bad) {
  const nan = Number.isNaN(values[node]);
  const touched = new Set([node]);
  for (const one of bad) if (operandsOf(graph, one).some((from) => touched.has(from))) touched.add(one);
  touched.delete(node);
  const from = graph.op[node] < 0 ? "an input value" : withNumbers(graph, values, node);
  const spread = touched.size > 1 ? ` It spread to ${count(touched.size, "node", "nodes")}.` : "";
  const text = `${graph.title(node)} is the first ${nan ? "NaN" : "infinity"}: ${from}.${spread}`;
  return { kind: nan ? "nan" : "inf", node, text, ...(touched.size && { nodes: [...touched] }) };
}

/**
 * Format how a node was computed, in names and in numbers.
 * @param {Graph} graph @param {number[]} values @param {number} node
 */
function withNumbers(graph, values, node) {
  const template = graph.formulas[graph.nodeFormula[node]];
  const [names, numbers] = [partsOf(graph, node), [values[node], ...operandsOf(graph, node).map((one) => values[one])]];
  const [formula, plugged] = [names, numbers].map((parts) => formulaText(template, parts));
  return formula === plugged ? formula : `${formula} = ${plugged}`;
}

/**
 * Report the first backward step whose product is not finite although its upstream gradient is.
 * @param {Graph} graph @param {Numbers["local"]} local @param {import("../../viz/frontend/src/base/types.js").Run} run
 * @returns {TraceNote[]}
 */
function gradientNotFinite({ operand, result, title }, local, { root, edge, upstream, contribution, total }) {
  const at = contribution.findIndex((product) => !Number.isFinite(product));
  if (at < 0) return [];
  const [to, from] = [operand[edge[at]], result[edge[at]]];
  const product = Number(contribution[at]);
  const way = `∂${title(root)}/∂${title(to)}, through ${title(from)}`;
  const how = `${pretty(Number(upstream[at]))} × ${pretty(local(edge[at]))} = ${pretty(product)}`;
  const text = `The first ${Number.isNaN(product) ? "NaN" : "infinity"} of the backward pass is in ${way}: ${how}.`;
  const reached = [...edge].slice(at).filter((_, k) => !Number.isFinite(total[at + k]));
  const nodes = [...new Set(reached.map((one) => operand[one]))];
  return [{ kind: "gradient", node: to, text, ...(nodes.length && { nodes }), edges: [edge[at]] }];
}

// --- vanishing and exploding gradients -------------------------------------------------------------------------------

/**
 * Report leaves far from the output whose gradients are tiny or huge compared with those near it.
 * @param {Graph} graph @param {import("../../viz/frontend/src/base/types.js").Run} run @returns {TraceNote[]}
 */
function faded(graph, run) {
  const away = distances(graph, run);
  const sizes = new Map([[run.root, 1]]);
  run.edge.forEach((edge, k) => sizes.set(graph.operand[edge], Math.abs(Number(run.total[k]))));
  const found = [...sizes].filter(([, size]) => size > 0 && Number.isFinite(size));
  const near = found.filter(([node]) => away[node] <= NEAR).map(([, size]) => size);
  const far = found.filter(([node]) => away[node] >= FAR && graph.kind[node] === LEAF);
  const [least, most] = [Math.min(...near), Math.max(...near)];
  const [small, large] = [far.filter(([, size]) => size < least / SCALE), far.filter(([, size]) => size > most * SCALE)];
  return [
    ...(small.length ? [farAway(graph, "vanishing", small.sort(([, a], [, b]) => a - b), away, least)] : []),
    ...(large.length ? [farAway(graph, "exploding", large.sort(([, a], [, b]) => b - a), away, most)] : []),
  ];
}

const FADED = {
  vanishing: ["tiny", "factors below 1", "it will hardly learn. Start with larger weights, use ReLU or residuals"],
  exploding: ["huge", "factors above 1", "an update will overshoot. Start with smaller weights, or clip gradients"],
};

/**
 * @param {Graph} graph @param {"vanishing" | "exploding"} kind @param {[number, number][]} found leaves and the magnitudes
 * of their gradients, the worst first @param {number[]} away @param {number} near @returns {TraceNote}
 */
function farAway(graph, kind, found, away, near) {
  const [[worst, size]] = found;
  const [what, why, remedy] = FADED[kind];
  const more = found.length > 1 ? ` The same applies to ${count(found.length - 1, "other leaf", "other leaves")}.` : "";
  const text =
    `The gradient of ${graph.title(worst)} is ${what}, ${pretty(size)} against ${pretty(near)} near the output: ` +
    `the ${away[worst]} operations between multiply ${why}; ${remedy}.${more}`;
  return { kind, node: worst, text, nodes: found.map(([node]) => node).sort((a, b) => a - b) };
}

/**
 * Return the shortest distance of each node from the root, in operations.
 * @param {Graph} graph @param {import("../../viz/frontend/src/base/types.js").Run} run
 */
function distances({ count, operand, result }, { root, edge }) {
  const away = Array.from({ length: count }, () => count);
  away[root] = 0;
  for (const one of edge) away[operand[one]] = Math.min(away[operand[one]], away[result[one]] + 1);
  return away;
}

// --- blocked gradients -----------------------------------------------------------------------------------------------

/** @param {Graph} graph @param {string} name */
const madeBy = ({ op, ops }, name) => [...op.keys()].filter((node) => ops[op[node]]?.name === name);

/** Report ReLUs if all of them are 0. @param {Graph} graph @param {number[]} values @returns {TraceNote[]} */
function dead(graph, values) {
  const nodes = madeBy(graph, "relu");
  if (!nodes.length || nodes.some((node) => values[node] !== 0)) return [];
  const one = nodes.length === 1;
  const which = one ? `${graph.title(nodes[0])} is` : `All ${nodes.length} ReLUs are`;
  const why = `${one ? "Its" : "Their"} input is negative and no gradient passes.`;
  const text = `${which} 0: dead. ${why} A smaller learning rate, or a positive bias, keeps them alive.`;
  return [{ kind: "dead", node: nodes[0], text, nodes }];
}

/**
 * Report tanh and sigmoid nodes in their flat regions.
 * @param {Graph} graph @param {number[]} values @returns {TraceNote[]}
 */
function saturated(graph, values) {
  const ends = /** @type {[string, number][]} */ ([["tanh", -SATURATED], ["sigmoid", 1 - SATURATED]]); // prettier-ignore
  const found = ends.flatMap(([name, low]) =>
    madeBy(graph, name)
      .filter((node) => values[node] > SATURATED || values[node] < low)
      .map((node) => ({ node, name })),
  );
  if (!found.length) return [];
  const [{ node, name }] = found;
  const more = found.length > 1 ? ` The same applies to ${count(found.length - 1, "more node", "more nodes")}.` : "";
  const text =
    `${graph.title(node)} is saturated: ${name} is flat there, its derivative near 0, so hardly any gradient passes. ` +
    `Smaller weights, or inputs of mean 0 and standard deviation 1, keep it in its steep part.${more}`;
  return [{ kind: "saturated", node, text, nodes: found.map((one) => one.node).sort((a, b) => a - b) }];
}
