/** Appearance of items and wires at a moment, for both views: text and states, no elements. */
import { abs, finite, max, sqrt } from "../base/math.js";
import { sumText } from "./cards.js";
import { bracketed, brief, pretty } from "../base/notation.js";
import { BLOCKED, BROKEN, CONSTANT, OP } from "../model/trace.js";

/** @typedef {import("../base/types.js").Graph} Graph */
/** @typedef {import("../base/types.js").Playback} Playback */
/** @typedef {import("../base/types.js").Quantity} Quantity */
/** @typedef {import("../base/types.js").Cells} Cells */

/**
 * The appearance of a node at a moment. A quantity is a number to write, cells to draw as a heatmap, or null.
 * @typedef {{pale: boolean, unable: boolean, value: Quantity | null, grad: Quantity | null, sign: string, sum: string,
 *   state: "wait" | "partial" | "final" | "blocked"}} Look
 */

/** Unwrap a single-element array. @param {Quantity | null} x @returns {Quantity | null} */
export const scalarOf = (x) => (x !== null && typeof x !== "number" && x.size === 1 ? x.cells[0] : x);

/** @param {Graph} graph @param {Playback} playback @param {number} node @returns {Look} */
export function lookOf(graph, playback, node) {
  const pale = graph.kind[node] === OP && !playback.known(node);
  const gradient = playback.gradient(node);
  const state = gradient.state === "none" ? "wait" : gradient.state;
  const sign = state === "wait" ? "—" : state === "blocked" ? "blocked" : "";
  const grad = sign ? null : scalarOf(gradient.value);
  const sum = state === "partial" || state === "final" ? sumText(gradient.met, gradient.of, state === "final") : "";
  const value = pale ? null : scalarOf(playback.value(node));
  return { pale, unable: playback.unable(node), value, grad, sign, sum, state };
}

/**
 * Return the progress of a wire: "done" if a gradient has flowed back over it, "future" if its result is not computed
 * yet.
 * @param {Playback} playback @param {{edges: number[]}} wire
 */
export function timeOf(playback, { edges }) {
  const states = edges.map(playback.edgeState);
  if (states.includes("done")) return "done";
  const begun = states.includes("active") || edges.some((edge) => playback.known(playback.graph.result[edge]));
  return begun ? "" : "future";
}

/**
 * Return the largest magnitude and the sign: 0 for mixed signs, 2 for values that are not finite.
 * @param {Quantity | null} x
 */
function magnitudeOf(x) {
  const [low, high] = typeof x === "number" ? [x, x] : [x?.min ?? 0, x?.max ?? 0];
  const size = max(abs(low), abs(high));
  if (!finite(size) || (typeof x !== "number" && x && x.nan + x.inf)) return { size: 0, sign: 2 };
  return { size, sign: low >= 0 ? Number(high > 0) : high > 0 ? 0 : -1 };
}

/**
 * Compute the strokes of edges that a gradient has flowed back over: width and opacity grow with the square root of the
 * contribution's fraction of the largest one, as the colours of heatmaps do, and the hue shows its sign. Mirrors
 * minigrad_viz/pictures/strokes.py. `peaks` are the largest scalar value and gradient.
 * @param {Playback} playback
 */
export function strokesOf({ numbers, timeline: { run } }) {
  const { edge, contribution, total } = numbers.runs[run] ?? { edge: [], contribution: [], total: [] };
  /** @type {Map<number, {size: number, sign: number}>} */
  const passed = new Map();
  contribution.forEach((x, k) => passed.set(edge[k], magnitudeOf(x)));
  let most = 0;
  for (const { size } of passed.values()) most = max(most, size);
  const peak = (/** @type {(Quantity | null)[]} */ all) =>
    all.reduce((/** @type {number} */ high, x) => (typeof x === "number" ? max(high, magnitudeOf(x).size) : high), 0) || 1;
  const stroke = (/** @type {number} */ share, /** @type {string} */ way) => {
    return { way, width: 1 + 4 * share, opacity: 0.55 + 0.45 * share };
  };
  return {
    most,
    peaks: [peak(numbers.value), peak(total)],
    /** Return the stroke of several edges drawn as one. @param {number[]} edges */
    of(edges) {
      const all = edges.flatMap((one) => passed.get(one) ?? []);
      const size = all.reduce((high, one) => max(high, one.size), 0);
      const [first] = all;
      if (all.some(({ sign }) => sign > 1)) return stroke(1, "bad");
      const same = all.every(({ sign }) => sign === first.sign);
      return stroke(most && sqrt(size / most), !first ? "" : !size ? "zero" : same ? WAYS[first.sign + 1] : "mixed");
    },
  };
}

const WAYS = ["negative", "mixed", "positive"];

/** Format a quantity for a screen reader. @param {Quantity | null} x */
function spoken(x) {
  if (x === null) return "unknown";
  return typeof x === "number" ? pretty(x) : `a tensor of shape ${x.shape.join(" by ")}`;
}

/**
 * Return the label of a node for screen readers.
 * @param {Graph} graph @param {Look} look @param {number} node @param {string} rule
 */
export function spokenNode(graph, look, node, rule) {
  const kind = ["leaf", "operation", "constant", "operation that raised an error"][graph.kind[node]];
  const name = `${graph.title(node, 60)}${rule}, ${kind}`;
  if (graph.kind[node] === BROKEN) return name;
  if (look.pale) return `${name}, not computed yet`;
  const value = `${name}, value ${spoken(look.value)}`;
  if (graph.kind[node] === CONSTANT) return value;
  if (look.state === "wait") return `${value}, gradient not computed yet`;
  if (look.state === "blocked") return `${value}, gets no gradient`;
  const sum = look.state === "partial" ? ` so far, ${look.sum.replace("Σ ", "")} contributions` : "";
  return `${value}, gradient ${spoken(look.grad)}${sum}`;
}

/** Return the text on the edge that a gradient flows over. @param {import("../base/types.js").Moment} moment */
export function productText(moment) {
  const { upstream, local, contribution } = moment;
  const [up, down] = [scalarOf(upstream), scalarOf(contribution)];
  if (typeof up === "number" && local !== null && typeof down === "number") {
    return `${brief(up)} × ${bracketed(local)} = ${brief(down)}`;
  }
  if (down === null) return "";
  return typeof down === "number" ? `+ ${bracketed(down)}` : `+ [${down.shape.join("×")}]`;
}

/** Whether a node can receive a gradient. @param {Graph} graph @param {number} node */
export const hasGradient = (graph, node) => graph.kind[node] !== CONSTANT && graph.state[node] !== BLOCKED;

/**
 * How many of a block's operations are computed and gradients are final, and their totals.
 * @typedef {{forward: number, backward: number, of: number, gradients: number}} Done
 */

/**
 * Track the progress of each block as nodes change: how many of its nodes are computed, and how many gradients are
 * final.
 * @param {Graph} graph
 * @param {Playback} playback
 */
export function progressOf(graph, playback) {
  const done = graph.blocks.map(() => ({ forward: 0, backward: 0, of: 0, gradients: 0 }));
  const seen = new Uint8Array(graph.count);
  for (let node = 0; node < graph.count; node += 1) {
    const [ops, gradients] = [
      Number(graph.kind[node] === OP),
      Number(hasGradient(graph, node) && graph.kind[node] !== BROKEN),
    ];
    for (let block = graph.block[node]; block >= 0; block = graph.blocks[block].outer) {
      done[block].of += ops;
      done[block].gradients += gradients;
    }
  }
  /** Recount `nodes`; return the blocks that changed. @param {Iterable<number>} nodes */
  const count = (nodes) => {
    /** @type {Set<number>} */
    const changed = new Set();
    for (const node of nodes) {
      const forward = Number(graph.kind[node] === OP && playback.known(node));
      const backward = Number(hasGradient(graph, node) && playback.gradient(node).state === "final");
      const now = forward + 2 * backward;
      if (now === seen[node]) continue;
      const [up, back] = [forward - (seen[node] & 1), backward - (seen[node] >> 1)];
      seen[node] = now;
      for (let block = graph.block[node]; block >= 0; block = graph.blocks[block].outer) {
        done[block].forward += up;
        done[block].backward += back;
        changed.add(block);
      }
    }
    return changed;
  };
  return { done, count };
}

/** Yield every node, for an initial count. @param {Graph} graph */
export function* nodesOf(graph) {
  for (let node = 0; node < graph.count; node += 1) yield node;
}
