/** Appearance of items and wires at a moment, for both views: text and states, no elements. */
import { abs, isFinite, max, sqrt } from "../base/math.js";
import { formatSum } from "./cards.js";
import { parenthesize, formatBrief, formatPretty } from "../base/notation.js";
import { BLOCKED, BROKEN, CONSTANT, OP } from "../model/trace.js";

/** @typedef {import("../base/types.js").Graph} Graph */
/** @typedef {import("../base/types.js").Playback} Playback */
/** @typedef {import("../base/types.js").Quantity} Quantity */
/** @typedef {import("../base/types.js").Cells} Cells */

/**
 * The appearance of a node at a moment. A quantity is a number to write, cells to draw as a heatmap, or null.
 * @typedef {{isPending: boolean, isUnavailable: boolean, value: Quantity | null, grad: Quantity | null, placeholder: string, sum: string,
 *   state: "wait" | "partial" | "final" | "blocked"}} Look
 */

/** Unwrap a single-element array. @param {Quantity | null} x @returns {Quantity | null} */
export const unwrapScalar = (x) => (x !== null && typeof x !== "number" && x.size === 1 ? x.cells[0] : x);

/** @param {Graph} graph @param {Playback} playback @param {number} node @returns {Look} */
export function nodeAppearance(graph, playback, node) {
  const isPending = graph.kind[node] === OP && !playback.isComputed(node);
  const gradient = playback.gradient(node);
  const state = gradient.state === "none" ? "wait" : gradient.state;
  const placeholder = state === "wait" ? "—" : state === "blocked" ? "blocked" : "";
  const grad = placeholder ? null : unwrapScalar(gradient.value);
  const sum = state === "partial" || state === "final" ? formatSum(gradient.met, gradient.of, state === "final") : "";
  const value = isPending ? null : unwrapScalar(playback.value(node));
  return { isPending, isUnavailable: playback.isUnavailable(node), value, grad, placeholder, sum, state };
}

/**
 * Return the progress of a wire: "done" if a gradient has flowed back over it, "future" if its result is not computed
 * yet.
 * @param {Playback} playback @param {{edges: number[]}} wire
 */
export function wireProgress(playback, { edges }) {
  const states = edges.map(playback.edgeState);
  if (states.includes("done")) return "done";
  const hasStarted = states.includes("active") || edges.some((edge) => playback.isComputed(playback.graph.result[edge]));
  return hasStarted ? "" : "future";
}

/**
 * Return the largest magnitude and the sign: 0 for mixed signs, 2 for values that are not finite.
 * @param {Quantity | null} x
 */
function magnitudeAndSign(x) {
  const [low, high] = typeof x === "number" ? [x, x] : [x?.min ?? 0, x?.max ?? 0];
  const size = max(abs(low), abs(high));
  if (!isFinite(size) || (typeof x !== "number" && x && x.nan + x.inf)) return { size: 0, sign: 2 };
  return { size, sign: low >= 0 ? Number(high > 0) : high > 0 ? 0 : -1 };
}

/**
 * Compute the strokes of edges that a gradient has flowed back over: width and opacity grow with the square root of the
 * contribution's fraction of the largest one, as the colours of heatmaps do, and the hue shows its sign. Mirrors
 * minigrad_viz/pictures/strokes.py. `peaks` are the largest scalar value and gradient.
 * @param {Playback} playback
 */
export function edgeStrokes({ numbers, timeline: { run } }) {
  const { edge, contribution, total } = numbers.runs[run] ?? { edge: [], contribution: [], total: [] };
  /** @type {Map<number, {size: number, sign: number}>} */
  const contributions = new Map();
  contribution.forEach((x, k) => contributions.set(edge[k], magnitudeAndSign(x)));
  let largest = 0;
  for (const { size } of contributions.values()) largest = max(largest, size);
  const peak = (/** @type {(Quantity | null)[]} */ all) =>
    all.reduce((/** @type {number} */ high, x) => (typeof x === "number" ? max(high, magnitudeAndSign(x).size) : high), 0) || 1;
  const stroke = (/** @type {number} */ fraction, /** @type {string} */ way) => {
    return { way, width: 1 + 4 * fraction, opacity: 0.55 + 0.45 * fraction };
  };
  return {
    most: largest,
    peaks: [peak(numbers.value), peak(total)],
    /** Return the stroke of several edges drawn as one. @param {number[]} edges */
    of(edges) {
      const all = edges.flatMap((one) => contributions.get(one) ?? []);
      const size = all.reduce((high, one) => max(high, one.size), 0);
      const [first] = all;
      if (all.some(({ sign }) => sign > 1)) return stroke(1, "bad");
      const isUniform = all.every(({ sign }) => sign === first.sign);
      return stroke(largest && sqrt(size / largest), !first ? "" : !size ? "zero" : isUniform ? SIGN_CLASSES[first.sign + 1] : "mixed");
    },
  };
}

const SIGN_CLASSES = ["negative", "mixed", "positive"];

/** Format a quantity for a screen reader. @param {Quantity | null} x */
function quantityText(x) {
  if (x === null) return "unknown";
  return typeof x === "number" ? formatPretty(x) : `a tensor of shape ${x.shape.join(" by ")}`;
}

/**
 * Return the label of a node for screen readers.
 * @param {Graph} graph @param {Look} appearance @param {number} node @param {string} rule
 */
export function nodeLabel(graph, appearance, node, rule) {
  const kind = ["leaf", "operation", "constant", "operation that raised an error"][graph.kind[node]];
  const name = `${graph.title(node, 60)}${rule}, ${kind}`;
  if (graph.kind[node] === BROKEN) return name;
  if (appearance.isPending) return `${name}, not computed yet`;
  const value = `${name}, value ${quantityText(appearance.value)}`;
  if (graph.kind[node] === CONSTANT) return value;
  if (appearance.state === "wait") return `${value}, gradient not computed yet`;
  if (appearance.state === "blocked") return `${value}, gets no gradient`;
  const sum = appearance.state === "partial" ? ` so far, ${appearance.sum.replace("Σ ", "")} contributions` : "";
  return `${value}, gradient ${quantityText(appearance.grad)}${sum}`;
}

/** Return the text on the edge that a gradient flows over. @param {import("../base/types.js").Moment} moment */
export function productText(moment) {
  const { upstream, local, contribution } = moment;
  const [upstreamValue, contributionValue] = [unwrapScalar(upstream), unwrapScalar(contribution)];
  if (typeof upstreamValue === "number" && local !== null && typeof contributionValue === "number") {
    return `${formatBrief(upstreamValue)} × ${parenthesize(local)} = ${formatBrief(contributionValue)}`;
  }
  if (contributionValue === null) return "";
  return typeof contributionValue === "number" ? `+ ${parenthesize(contributionValue)}` : `+ [${contributionValue.shape.join("×")}]`;
}

/** Whether a node can receive a gradient. @param {Graph} graph @param {number} node */
export const canHaveGradient = (graph, node) => graph.kind[node] !== CONSTANT && graph.state[node] !== BLOCKED;

/**
 * How many of a block's operations are computed and gradients are final, and their totals.
 * @typedef {{forward: number, backward: number, of: number, gradients: number}} BlockProgress
 */

/**
 * Track the progress of each block as nodes change: how many of its nodes are computed, and how many gradients are
 * final.
 * @param {Graph} graph
 * @param {Playback} playback
 */
export function trackProgress(graph, playback) {
  const progress = graph.blocks.map(() => ({ forward: 0, backward: 0, of: 0, gradients: 0 }));
  const states = new Uint8Array(graph.count);
  for (let node = 0; node < graph.count; node += 1) {
    const [ops, gradients] = [
      Number(graph.kind[node] === OP),
      Number(canHaveGradient(graph, node) && graph.kind[node] !== BROKEN),
    ];
    for (let block = graph.block[node]; block >= 0; block = graph.blocks[block].outer) {
      progress[block].of += ops;
      progress[block].gradients += gradients;
    }
  }
  /** Recount `nodes`; return the blocks that changed. @param {Iterable<number>} nodes */
  const count = (nodes) => {
    /** @type {Set<number>} */
    const changed = new Set();
    for (const node of nodes) {
      const forward = Number(graph.kind[node] === OP && playback.isComputed(node));
      const backward = Number(canHaveGradient(graph, node) && playback.gradient(node).state === "final");
      const now = forward + 2 * backward;
      if (now === states[node]) continue;
      const [forwardChange, backwardChange] = [forward - (states[node] & 1), backward - (states[node] >> 1)];
      states[node] = now;
      for (let block = graph.block[node]; block >= 0; block = graph.blocks[block].outer) {
        progress[block].forward += forwardChange;
        progress[block].backward += backwardChange;
        changed.add(block);
      }
    }
    return changed;
  };
  return { done: progress, count };
}

/** Yield every node, for an initial count. @param {Graph} graph */
export function* allNodes(graph) {
  for (let node = 0; node < graph.count; node += 1) yield node;
}
