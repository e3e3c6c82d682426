/**
 * Breakpoints: an op, a name, a scope, a large or non-finite value, a second contribution to a gradient. A breakpoint
 * fires at fixed positions of a timeline, in either direction.
 */

import { currentRun } from "./history.js";
import { abs, isFinite, max } from "../base/math.js";
import { plainDigits, shortenName } from "../base/notation.js";
import { outermostMatch, blockPath } from "./search.js";

/** @typedef {import("../base/types.js").Playback} Playback */
/** @typedef {import("../base/types.js").BreakpointSpec} BreakpointSpec */
/** @typedef {import("../base/types.js").Quantity} Quantity */
/** @typedef {(position: number) => boolean} Test */

/** Examples for the kinds that take a name. @type {Record<string, string>} */
const EXAMPLES = { op: "tanh", name: "w0", scope: "attention" };

/**
 * Create a breakpoint: its description, and whether it fires. Throws an Error for an invalid specification.
 * @param {BreakpointSpec} spec
 */
export function breakpoint({ kind, value }) {
  const make = TESTS[kind];
  if (make === undefined) throw new Error(`Unknown kind of breakpoint: “${kind}”.`);
  if (EXAMPLES[kind] && (typeof value !== "string" || value.trim() === "")) {
    throw new Error(`Which ${kind}? Write, for example, “${kind} ${EXAMPLES[kind]}”.`);
  }
  if (kind === "gradient-above" && !(typeof value === "number" && value >= 0)) {
    throw new Error("The limit must be a non-negative number, as in “|grad| > 10”.");
  }
  return {
    text: describeBreakpoint(kind, value),
    /** @param {Playback} playback */
    on: (playback) => make(playback, value),
  };
}

/**
 * Return the next position, forward (1) or backward (-1), where a breakpoint fires, or else the end in that direction.
 * @param {Playback} playback
 * @param {BreakpointSpec[]} specs
 * @param {number} direction
 */
export function nextStop(playback, specs, direction) {
  const tests = specs.map((spec) => breakpoint(spec).on(playback));
  const end = direction > 0 ? playback.timeline.last : 0;
  let position = playback.position;
  while (position !== end) {
    position += direction > 0 ? 1 : -1;
    if (tests.some((test) => test(position))) return position;
  }
  return end;
}

/**
 * Return the breakpoints that fire at a position.
 * @param {Playback} playback
 * @param {BreakpointSpec[]} specs
 * @param {number} [position]
 */
export function firingBreakpoints(playback, specs, position = playback.position) {
  return specs.filter((spec) => breakpoint(spec).on(playback)(position));
}

/**
 * Return the position for "run to node": the next one where its value is computed or its gradient becomes final; if
 * both are past, the later one.
 * @param {Playback} playback
 * @param {number} node
 */
export function runToPosition({ timeline, position }, node) {
  const [computed, final] = [timeline.computedAt(node), timeline.finalAt(node)];
  return computed > position || final < 0 ? computed : final;
}

/** @param {import("../base/types.js").BreakpointKind} kind @param {string | number | null} value */
function describeBreakpoint(kind, value) {
  if (kind === "not-finite") return "NaN or Inf";
  if (kind === "second-contribution") return "second contribution";
  return kind === "gradient-above" ? `|grad| > ${value}` : `${kind} ${shortenName(String(value).trim(), 60)}`;
}

// --- conditions -------------------------------------------------------------------------------------------------------

/** @type {Record<string, (playback: Playback, value: any) => Test>} */
const TESTS = {
  op: whereOp,
  name: whereName,
  scope: whereScope,
  "gradient-above": whereGradient,
  "not-finite": whereNotFinite,
  "second-contribution": whereAdded,
};

/**
 * Return the active node: the one computed, or the one whose gradient is propagated.
 * @param {Playback} playback
 * @param {number} position
 */
function activeNodeAt({ graph, timeline }, position) {
  const edge = timeline.edgeAt(position);
  return edge < 0 ? timeline.nodeAt(position) : graph.result[edge];
}

/**
 * Fires where such an op is computed, and where its gradient starts to propagate.
 * @type {(p: Playback, v: any) => Test}
 */
function whereOp(playback, value) {
  const { graph, timeline } = playback;
  const opName = String(value).trim().toLowerCase();
  const ops = graph.ops.map(({ name }) => name.toLowerCase() === opName);
  return (position) => {
    if (timeline.kindAt(position) === "start" || timeline.kindAt(position) === "seed") return false;
    const node = activeNodeAt(playback, position);
    const isFirst = timeline.kindAt(position - 1) !== "edge" || activeNodeAt(playback, position - 1) !== node;
    return ops[graph.op[node]] === true && isFirst;
  };
}

/**
 * Fires where such a node is computed, and where its gradient receives a contribution.
 * @type {(p: Playback, v: any) => Test}
 */
function whereName({ graph, timeline }, value) {
  const target = plainDigits(String(value).trim());
  /** @type {Set<number>} */
  const nodes = new Set();
  for (let node = 0; node < graph.count; node += 1) {
    const name = graph.names[node] ?? `v${node}`;
    if (plainDigits(name) === target) nodes.add(node);
  }
  return (position) => nodes.has(timeline.nodeAt(position));
}

/** Fires where such a scope is entered, forward and backward. @type {(p: Playback, v: any) => Test} */
function whereScope(playback, value) {
  const { graph, timeline } = playback;
  const target = String(value).trim();
  const matches = graph.blocks.map((block, at) => {
    const path = blockPath(graph, at);
    return at > 0 && (block.name === target || path === target || path.endsWith(`/${target}`));
  });
  const inside = outermostMatch(graph.blocks, matches);
  const scopeAt = (/** @type {number} */ position) => inside[graph.block[activeNodeAt(playback, position)]];
  return (position) => {
    if (position === 0 || scopeAt(position) < 0) return false;
    const isFirst = position === 1 || position === timeline.seed;
    return isFirst || scopeAt(position) !== scopeAt(position - 1);
  };
}

/** Fires where a gradient's magnitude exceeds the limit. @type {(p: Playback, v: any) => Test} */
function whereGradient(playback, value) {
  const { seed } = playback.timeline;
  return (position) => {
    if (seed < 0 || position < seed) return false;
    const total = position === seed ? playback.moment(seed).total : currentRun(playback).total[position - seed - 1];
    return maxMagnitude(total) > value;
  };
}

/** Fires where a value, a contribution or a sum is NaN or infinite. @type {(p: Playback, v: any) => Test} */
function whereNotFinite(playback) {
  const { timeline } = playback;
  return (position) => {
    const kind = timeline.kindAt(position);
    if (kind === "forward") return hasNonFinite(playback.numbers.value[timeline.nodeAt(position)]);
    if (kind !== "edge") return false;
    const k = position - timeline.seed - 1;
    const { contribution, total } = currentRun(playback);
    return hasNonFinite(contribution[k]) || hasNonFinite(total[k]);
  };
}

/** Fires where a second contribution is added to a gradient. @type {(p: Playback, v: any) => Test} */
function whereAdded(playback) {
  const { timeline } = playback;
  return (position) => {
    if (timeline.edgeAt(position) < 0) return false;
    const arrivals = timeline.arrivals(timeline.nodeAt(position));
    return arrivals.length > 1 && arrivals[1] === position - timeline.seed - 1;
  };
}

/** Return the largest magnitude in `x`; 0 if it is unknown. @param {Quantity | null} x */
function maxMagnitude(x) {
  if (x === null) return 0;
  if (typeof x === "number") return abs(x);
  return x.inf ? Infinity : max(abs(x.min ?? 0), abs(x.max ?? 0));
}

/** Whether `x` contains a NaN or an infinity. @param {Quantity | null} x */
function hasNonFinite(x) {
  if (x === null) return false;
  return typeof x === "number" ? !isFinite(x) : x.nan > 0 || x.inf > 0;
}
