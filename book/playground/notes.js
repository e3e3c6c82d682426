/**
 * The alarms of a graph: the origin of a NaN or an infinity, forward and backward; vanishing and exploding gradients;
 * and nodes that block gradients. Messages and thresholds equal those of viz/minigrad_viz/trace/alarms.py.
 */

import { formulaParts } from "../../viz/frontend/src/drawing/cards.js";
import { formulaText, formatPretty } from "../../viz/frontend/src/base/notation.js";
import { LEAF } from "../../viz/frontend/src/model/trace.js";

/** @typedef {import("../../viz/frontend/src/base/types.js").Graph} Graph */
/** @typedef {import("../../viz/frontend/src/base/types.js").Numbers} Numbers */

/** @typedef {{kind: string, node: number, text: string, nodes?: number[], edges?: number[]}} TraceNote */

const SATURATED = 0.99; // threshold of |tanh|, and so of sigmoid: its derivative is below 2% of the largest
const [NEAR_DISTANCE, FAR_DISTANCE] = [3, 8]; // distance from the output, in operations, of the gradients that are compared
const MAX_RATIO = 1e6; // ratio beyond which a distant gradient vanishes or explodes relative to those near the output

/** @param {Graph} graph @param {Numbers} numbers @returns {TraceNote[]} */
export function createNotes(graph, { value, local, runs: [run] }) {
  const values = value.map(Number);
  return [
    ...findNonFinite(graph, values),
    ...findNonFiniteGradient(graph, local, run),
    ...findFaded(graph, run),
    ...findDeadRelus(graph, values),
    ...findSaturated(graph, values),
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
function findNonFinite(graph, values) {
  const nonFinite = [...values.keys()].filter((node) => !Number.isFinite(values[node]));
  const harmfulSet = harmfulNodes(graph, values, nonFinite);
  const first = nonFinite.find((node) => harmfulSet.has(node) || !isIntended(graph, values, node));
  if (first === undefined) return [];
  const nan = Number.isNaN(values[first]) ? undefined : nonFinite.find((node) => Number.isNaN(values[node]));
  return [first, nan].flatMap((node) => (node === undefined ? [] : [originNote(graph, values, node, nonFinite)]));
}

/**
 * Whether an infinity was intended: an input, or computed from one.
 * @param {Graph} graph @param {number[]} values @param {number} node
 */
function isIntended(graph, values, node) {
  if (Number.isNaN(values[node])) return false;
  const attributed = Object.values(graph.attrs.get(node) ?? {}).some((text) => text.includes("inf"));
  return graph.op[node] < 0 || attributed || operandsOf(graph, node).some((one) => !Number.isFinite(values[one]));
}

/**
 * Return the non-finite nodes from which a path of such nodes leads to the output or a NaN.
 * @param {Graph} graph @param {number[]} values @param {number[]} candidates
 */
function harmfulNodes(graph, values, candidates) {
  const candidateSet = new Set(candidates);
  const harmful = new Set(candidates.filter((node) => graph.outputs.includes(node) || Number.isNaN(values[node])));
  for (let node = graph.count - 1; node >= 0; node -= 1) {
    if (!harmful.has(node)) continue;
    for (const one of operandsOf(graph, node)) if (candidateSet.has(one)) harmful.add(one);
  }
  return harmful;
}

/** @param {Graph} graph @param {number[]} values @param {number} node @param {number[]} nonFinite @returns {TraceNote} */
function originNote(graph, values, node, nonFinite) {
  const nan = Number.isNaN(values[node]);
  const affected = new Set([node]);
  for (const one of nonFinite) if (operandsOf(graph, one).some((from) => affected.has(from))) affected.add(one);
  affected.delete(node);
  const from = graph.op[node] < 0 ? "an input value" : formulaWithNumbers(graph, values, node);
  const spreadText = affected.size > 1 ? ` It spread to ${count(affected.size, "node", "nodes")}.` : "";
  const text = `${graph.title(node)} is the first ${nan ? "NaN" : "infinity"}: ${from}.${spreadText}`;
  return { kind: nan ? "nan" : "inf", node, text, ...(affected.size && { nodes: [...affected] }) };
}

/**
 * Format how a node was computed, in names and in numbers.
 * @param {Graph} graph @param {number[]} values @param {number} node
 */
function formulaWithNumbers(graph, values, node) {
  const template = graph.formulas[graph.nodeFormula[node]];
  const [names, numbers] = [formulaParts(graph, node), [values[node], ...operandsOf(graph, node).map((one) => values[one])]];
  const [formula, numeric] = [names, numbers].map((parts) => formulaText(template, parts));
  return formula === numeric ? formula : `${formula} = ${numeric}`;
}

/**
 * Report the first backward step whose product is not finite although its upstream gradient is.
 * @param {Graph} graph @param {Numbers["local"]} local @param {import("../../viz/frontend/src/base/types.js").Run} run
 * @returns {TraceNote[]}
 */
function findNonFiniteGradient({ operand, result, title }, local, { root, edge, upstream, contribution, total }) {
  const at = contribution.findIndex((product) => !Number.isFinite(product));
  if (at < 0) return [];
  const [to, from] = [operand[edge[at]], result[edge[at]]];
  const product = Number(contribution[at]);
  const path = `∂${title(root)}/∂${title(to)}, through ${title(from)}`;
  const how = `${formatPretty(Number(upstream[at]))} × ${formatPretty(local(edge[at]))} = ${formatPretty(product)}`;
  const text = `The first ${Number.isNaN(product) ? "NaN" : "infinity"} of the backward pass is in ${path}: ${how}.`;
  const reached = [...edge].slice(at).filter((_, k) => !Number.isFinite(total[at + k]));
  const nodes = [...new Set(reached.map((one) => operand[one]))];
  return [{ kind: "gradient", node: to, text, ...(nodes.length && { nodes }), edges: [edge[at]] }];
}

// --- vanishing and exploding gradients -------------------------------------------------------------------------------

/**
 * Report leaves far from the output whose gradients are tiny or huge compared with those near it.
 * @param {Graph} graph @param {import("../../viz/frontend/src/base/types.js").Run} run @returns {TraceNote[]}
 */
function findFaded(graph, run) {
  const distance = distances(graph, run);
  const sizes = new Map([[run.root, 1]]);
  run.edge.forEach((edge, k) => sizes.set(graph.operand[edge], Math.abs(Number(run.total[k]))));
  const magnitudes = [...sizes].filter(([, size]) => size > 0 && Number.isFinite(size));
  const nearMagnitudes = magnitudes.filter(([node]) => distance[node] <= NEAR_DISTANCE).map(([, size]) => size);
  const farLeaves = magnitudes.filter(([node]) => distance[node] >= FAR_DISTANCE && graph.kind[node] === LEAF);
  const [minNear, maxNear] = [Math.min(...nearMagnitudes), Math.max(...nearMagnitudes)];
  const [vanishing, exploding] = [farLeaves.filter(([, size]) => size < minNear / MAX_RATIO), farLeaves.filter(([, size]) => size > maxNear * MAX_RATIO)];
  return [
    ...(vanishing.length ? [fadedNote(graph, "vanishing", vanishing.sort(([, a], [, b]) => a - b), distance, minNear)] : []),
    ...(exploding.length ? [fadedNote(graph, "exploding", exploding.sort(([, a], [, b]) => b - a), distance, maxNear)] : []),
  ];
}

const FADED_TEXTS = {
  vanishing: ["tiny", "factors below 1", "it will hardly learn. Start with larger weights, use ReLU or residuals"],
  exploding: ["huge", "factors above 1", "an update will overshoot. Start with smaller weights, or clip gradients"],
};

/**
 * @param {Graph} graph @param {"vanishing" | "exploding"} kind @param {[number, number][]} leaves leaves and the magnitudes
 * of their gradients, the worst first @param {number[]} distance @param {number} reference @returns {TraceNote}
 */
function fadedNote(graph, kind, leaves, distance, reference) {
  const [[worst, size]] = leaves;
  const [adjective, cause, remedy] = FADED_TEXTS[kind];
  const othersText = leaves.length > 1 ? ` The same applies to ${count(leaves.length - 1, "other leaf", "other leaves")}.` : "";
  const text =
    `The gradient of ${graph.title(worst)} is ${adjective}, ${formatPretty(size)} against ${formatPretty(reference)} near the output: ` +
    `the ${distance[worst]} operations between multiply ${cause}; ${remedy}.${othersText}`;
  return { kind, node: worst, text, nodes: leaves.map(([node]) => node).sort((a, b) => a - b) };
}

/**
 * Return the shortest distance of each node from the root, in operations.
 * @param {Graph} graph @param {import("../../viz/frontend/src/base/types.js").Run} run
 */
function distances({ count, operand, result }, { root, edge }) {
  const distance = Array.from({ length: count }, () => count);
  distance[root] = 0;
  for (const one of edge) distance[operand[one]] = Math.min(distance[operand[one]], distance[result[one]] + 1);
  return distance;
}

// --- blocked gradients -----------------------------------------------------------------------------------------------

/** @param {Graph} graph @param {string} name */
const nodesOfOp = ({ op, ops }, name) => [...op.keys()].filter((node) => ops[op[node]]?.name === name);

/** Report ReLUs if all of them are 0. @param {Graph} graph @param {number[]} values @returns {TraceNote[]} */
function findDeadRelus(graph, values) {
  const nodes = nodesOfOp(graph, "relu");
  if (!nodes.length || nodes.some((node) => values[node] !== 0)) return [];
  const one = nodes.length === 1;
  const subject = one ? `${graph.title(nodes[0])} is` : `All ${nodes.length} ReLUs are`;
  const explanation = `${one ? "Its" : "Their"} input is negative and no gradient passes.`;
  const text = `${subject} 0: dead. ${explanation} A smaller learning rate, or a positive bias, keeps them alive.`;
  return [{ kind: "dead", node: nodes[0], text, nodes }];
}

/**
 * Report tanh and sigmoid nodes in their flat regions.
 * @param {Graph} graph @param {number[]} values @returns {TraceNote[]}
 */
function findSaturated(graph, values) {
  const ends = /** @type {[string, number][]} */ ([["tanh", -SATURATED], ["sigmoid", 1 - SATURATED]]); // prettier-ignore
  const matches = ends.flatMap(([name, low]) =>
    nodesOfOp(graph, name)
      .filter((node) => values[node] > SATURATED || values[node] < low)
      .map((node) => ({ node, name })),
  );
  if (!matches.length) return [];
  const [{ node, name }] = matches;
  const othersText = matches.length > 1 ? ` The same applies to ${count(matches.length - 1, "more node", "more nodes")}.` : "";
  const text =
    `${graph.title(node)} is saturated: ${name} is flat there, its derivative near 0, so hardly any gradient passes. ` +
    `Smaller weights, or inputs of mean 0 and standard deviation 1, keep it in its steep part.${othersText}`;
  return [{ kind: "saturated", node, text, nodes: matches.map((one) => one.node).sort((a, b) => a - b) }];
}
