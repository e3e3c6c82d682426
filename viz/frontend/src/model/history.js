/**
 * The history of a graph: every value in the order of its computation, forward, then backward. The state at a position
 * depends on the position alone, so stepping back is exact and a jump costs as much as a step.
 */

import { max, min, isInteger } from "../base/math.js";
import { formatPretty } from "../base/notation.js";
import { BLOCKED, BROKEN, CONSTANT, LEAF, OP, groupIndices } from "./trace.js";

/** @typedef {import("../base/types.js").Graph} Graph */
/** @typedef {import("../base/types.js").Timeline} Timeline */
/** @typedef {import("../base/types.js").Moment} Moment */
/** @typedef {import("../base/types.js").Quantity} Quantity */
/** @typedef {import("../base/types.js").StepSize} StepSize */

/**
 * Create the timeline of one backward pass, preceded by the forward pass. Nothing flows back from a blocked root.
 * @param {Graph} graph
 * @param {import("../base/types.js").Run | null} [run] of `graph.numbers.runs`, the first by default; null: forward only
 * @returns {Timeline}
 */
export function createTimeline(graph, run = graph.numbers.runs[0] ?? null) {
  const hasPass = run !== null && !(graph.state[run.root] === BLOCKED && run.edge.length === 0);
  const { root, edge } = hasPass ? run : { root: -1, edge: new Int32Array(0) };
  const { order, computed } = opsInOrder(graph);
  const forward = order.length;
  const seed = root < 0 ? -1 : forward + 1;
  const last = root < 0 ? forward : seed + edge.length;
  const events = groupIndices(edge.map((over) => graph.operand[over]), graph.count);
  const passed = new Int32Array(graph.edgeCount).fill(-1);
  for (let k = 0; k < edge.length; k += 1) passed[edge[k]] = seed + 1 + k;
  const edgeAt = (/** @type {number} */ p) => (p > forward + 1 ? edge[p - seed - 1] : -1);
  const resultAt = (/** @type {number} */ p) => (p > forward + 1 ? graph.result[edgeAt(p)] : -1);
  const contributions = (/** @type {number} */ node) => events.from[node + 1] - events.from[node];
  return {
    run: hasPass ? graph.numbers.runs.indexOf(run) : -1,
    root,
    length: last + 1,
    last,
    forward,
    seed,
    kindAt: (p) => (p === 0 ? "start" : p <= forward ? "forward" : p === seed ? "seed" : "edge"),
    nodeAt: (p) => (p === 0 ? -1 : p <= forward ? order[p - 1] : p === seed ? root : graph.operand[edgeAt(p)]),
    edgeAt,
    next(p, size) {
      let to = min(p + 1, last);
      while (size === "op" && to > forward + 1 && to < last && resultAt(to) === resultAt(to + 1)) to += 1;
      return to;
    },
    previous(p, size) {
      let to = max(p - 1, 0);
      while (size === "op" && p > forward + 1 && resultAt(to) === resultAt(p)) to -= 1;
      return to;
    },
    computedAt: (node) => computed[node],
    finalAt(node) {
      if (node === root) return seed;
      return contributions(node) ? seed + 1 + events.at(node)[contributions(node) - 1] : -1;
    },
    passedAt: (at) => passed[at],
    contributions,
    arrivals: events.at,
  };
}

/** Return the computed nodes in order, and the position at which each node is computed. @param {Graph} graph */
function opsInOrder({ count, kind }) {
  const order = new Int32Array(count);
  const computed = new Int32Array(count);
  let ops = 0;
  for (let node = 0; node < count; node += 1) {
    if (kind[node] !== OP && kind[node] !== BROKEN) continue;
    order[ops] = node;
    ops += 1;
    computed[node] = ops;
  }
  return { order: order.subarray(0, ops), computed };
}

/**
 * Create a playback at position 0. Replace `numbers` by what the engine computed from changed leaves.
 * @param {Graph} graph
 * @param {Timeline} moments
 * @param {import("../base/types.js").Numbers} [numbers]
 * @returns {import("../base/types.js").Playback}
 */
export function createPlayback(graph, moments, numbers = graph.numbers) {
  /** @type {import("../base/types.js").Playback} */
  const self = {
    graph,
    timeline: moments,
    position: 0,
    numbers,
    isUnavailable: () => false,
    seek(to) {
      if (!isInteger(to) || to < 0 || to > moments.last) {
        throw new RangeError(`Position ${to} is out of range: expected 0 to ${moments.last}.`);
      }
      const from = self.position;
      self.position = to;
      return from === to ? { nodes: [], edges: [] } : changedBetween(self, min(from, to), max(from, to));
    },
    isComputed(node) {
      const isUnknown = graph.kind[node] === OP && self.numbers.value[node] === null;
      return graph.runMode || isUnknown ? moments.computedAt(node) <= self.position : self.value(node) !== null;
    },
    value: (node) => (moments.computedAt(node) <= self.position ? self.numbers.value[node] : null),
    gradient: (node) => gradientAt(self, node),
    edgeState(edge) {
      const { position } = self;
      if (position > moments.forward) {
        const passed = moments.passedAt(edge);
        return passed === position ? "active" : passed >= 0 && passed < position ? "done" : "idle";
      }
      return position > 0 && moments.computedAt(graph.result[edge]) === position ? "active" : "idle";
    },
    moment: (position = self.position) => momentAt(self, position),
    sentence: () => describeMoment(self),
  };
  return self;
}

/**
 * Return the nodes and edges that take part in the moments between two positions.
 * @param {import("../base/types.js").Playback} self
 * @param {number} low
 * @param {number} high
 */
function changedBetween({ graph, timeline: moments }, low, high) {
  /** @type {Set<number>} */
  const nodes = new Set();
  /** @type {Set<number>} */
  const edges = new Set();
  for (let p = max(low, 1); p <= high; p += 1) {
    const node = moments.nodeAt(p);
    nodes.add(node);
    if (p <= moments.forward) {
      for (let edge = graph.start[node]; edge < graph.start[node + 1]; edge += 1) edges.add(edge);
    } else if (p > moments.seed) {
      edges.add(moments.edgeAt(p));
      nodes.add(graph.result[moments.edgeAt(p)]);
    }
  }
  return { nodes: [...nodes], edges: [...edges] };
}

// --- gradients -------------------------------------------------------------------------------------------------------

/**
 * @param {import("../base/types.js").Playback} self
 * @param {number} node
 * @returns {import("../base/types.js").Gradient}
 */
function gradientAt(self, node) {
  const { graph, timeline: moments, position } = self;
  if (node === moments.root) {
    const hasStarted = position >= moments.seed;
    return { state: hasStarted ? "final" : "none", met: 0, of: 0, value: hasStarted ? seedGradient(self) : null };
  }
  const of = moments.contributions(node);
  if (of === 0) return { state: graph.state[node] === BLOCKED ? "blocked" : "none", met: 0, of, value: null };
  const arrivals = moments.arrivals(node);
  const met = position > moments.seed ? countUpTo(arrivals, position - moments.seed - 1) : 0;
  if (met === 0) return { state: "none", met, of, value: null };
  return { state: met < of ? "partial" : "final", met, of, value: currentRun(self).total[arrivals[met - 1]] };
}

/** Count how many of the ascending `items` are at most `limit`. @param {Int32Array} items @param {number} limit */
function countUpTo(items, limit) {
  let [low, high] = [0, items.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (items[middle] <= limit) low = middle + 1;
    else high = middle;
  }
  return low;
}

/**
 * Return the initial gradient of the root: 1, or for a tensor an array of ones.
 * @param {import("../base/types.js").Playback} self
 */
function seedGradient(self) {
  const { edge, upstream } = currentRun(self);
  return edge.length ? upstream[0] : 1;
}

/** Return the backward pass of a playback. @param {import("../base/types.js").Playback} self */
export const currentRun = ({ numbers, timeline: { run } }) => numbers.runs[run];

// --- moments ---------------------------------------------------------------------------------------------------------

/**
 * @param {import("../base/types.js").Playback} self
 * @param {number} position
 * @returns {Moment}
 */
function momentAt(self, position) {
  const { timeline: moments, numbers } = self;
  const kind = moments.kindAt(position);
  const node = moments.nodeAt(position);
  const empty = { upstream: null, local: null, contribution: null, before: null, total: null };
  const moment = { kind, node, edge: -1, value: null, ...empty, met: 0, of: 0 };
  if (kind === "forward") return { ...moment, value: numbers.value[node] };
  if (kind === "seed") return { ...moment, total: seedGradient(self) };
  if (kind === "start") return moment;
  const k = position - moments.seed - 1;
  const edge = moments.edgeAt(position);
  const { upstream, contribution, total } = currentRun(self);
  const arrivals = moments.arrivals(node);
  const met = countUpTo(arrivals, k);
  return {
    ...moment,
    edge,
    upstream: upstream[k],
    local: numbers.local(edge),
    contribution: contribution[k],
    before: met > 1 ? total[arrivals[met - 2]] : null,
    total: total[k],
    met,
    of: arrivals.length,
  };
}

// --- descriptions ---------------------------------------------------------------------------------------------------

/** Describe the current moment for screen readers. @param {import("../base/types.js").Playback} self */
function describeMoment(self) {
  const { graph, timeline: moments, position } = self;
  const { kind, node, edge, upstream, local, contribution, before, total, met, of: count } = self.moment();
  const step = `Step ${position} of ${moments.last}, `;
  if (kind === "start") return `${step}start: ${describeStart(graph)}.`;
  if (kind === "forward") return `${step}forward: ${describeComputation(self, node)}`;
  const name = graph.title(node);
  if (kind === "seed") return `${step}backward: starts at ${name} with gradient ${describeQuantity(total)}.`;
  const result = graph.result[edge];
  const through = local === null ? `through ${opName(graph, result)} gives` : `times local ${formatPretty(local)} is`;
  const cells = asArray(upstream);
  const above = cells ? `, ${shapeText(cells)},` : ` ${describeQuantity(upstream)}`; // its values were read out when it was summed
  const product = `Upstream${above} ${through} ${describeQuantity(contribution)}`;
  const path = `${step}backward: ${graph.title(result)} to ${name}. ${product}`;
  if (count === 1) return `${path}, the gradient of ${name}.`;
  if (met === 1) return `${path}, the gradient of ${name} so far, 1 of ${count}.`;
  const becomes = describeQuantity(total);
  const sum = asArray(total) ? `, which becomes ${becomes}` : `: ${describeQuantity(before)} plus ${describeQuantity(contribution)} is ${becomes}`;
  return `${path}, added to the gradient of ${name}${sum}, ${met} of ${count}.`;
}

/** @param {Graph} graph */
function describeStart({ kind }) {
  const counts = [0, 0, 0, 0];
  for (const nodeKind of kind) counts[nodeKind] += 1;
  const [leaves, constants] = [counts[LEAF], counts[CONSTANT]];
  const texts = [];
  if (leaves) texts.push(leaves === 1 ? "1 leaf" : `${leaves} leaves`);
  if (constants) texts.push(constants === 1 ? "1 constant" : `${constants} constants`);
  return `${texts.join(" and ") || "nothing"} ${leaves + constants > 1 ? "are" : "is"} known`;
}

/** @param {import("../base/types.js").Playback} self @param {number} node */
function describeComputation({ graph, numbers }, node) {
  const { title, kind, names } = graph;
  const operands = Array.from(graph.operand.subarray(graph.start[node], graph.start[node + 1]), (operand) => {
    const x = numbers.value[operand];
    if (x === null || (kind[operand] === CONSTANT && names[operand] === null)) return title(operand);
    const cells = asArray(x);
    return cells ? `${title(operand)} (${shapeText(cells)})` : `${title(operand)} = ${describeQuantity(x)}`;
  });
  if (operands.length > 4) operands.splice(3, Infinity, `${operands.length - 3} more`);
  const last = operands.pop();
  const list = operands.length ? `${operands.join(", ")} and ${last}` : last;
  const text = `${opName(graph, node)}${list ? ` of ${list}` : ""}`;
  if (kind[node] !== BROKEN) {
    const value = numbers.value[node];
    return `${text} is ${title(node)}${value === null ? ", which was not stored" : ` = ${describeQuantity(value)}`}.`;
  }
  const error = graph.notes.find((note) => note.kind === "error" && note.node === node);
  return `${text} failed${error ? `: ${error.text}` : "."}`;
}

/** @param {Graph} graph @param {number} node */
function opName(graph, node) {
  return graph.ops[graph.op[node]].name;
}

/**
 * Describe a scalar or an array.
 * @param {Quantity | null} x
 * @returns {string}
 */
export function describeQuantity(x) {
  if (x === null) return "unknown";
  if (typeof x === "number") return formatPretty(x);
  if (asArray(x) === null) return formatPretty(x.cells[0]);
  const { min, max, nan, inf } = x;
  const nonFinite = [nan && `${nan} NaN`, inf && `${inf} infinite`].filter(Boolean).join(" and ");
  const isConstant = min === max && !nonFinite;
  const range = min === null ? "" : isConstant ? `, all ${formatPretty(min)}` : ` from ${formatPretty(min)} to ${formatPretty(max)}`;
  return `an array of ${shapeText(x)}${range}${nonFinite && `, ${nonFinite}`}`;
}

/** Return `x` if it is an array of more than one element. @param {Quantity | null} x */
function asArray(x) {
  return x === null || typeof x === "number" || x.size === 1 ? null : x;
}

/** @param {import("../base/types.js").Cells} x */
function shapeText({ shape }) {
  return shape.join(" by ");
}
