/**
 * The state of a player: the position, the selection, the open blocks, the user's values and breakpoints. No elements:
 * listeners are notified of every change, and the panels re-render from the state.
 */

import { outermostClosed, startExpanded, openAround } from "../model/blocks.js";
import { breakpoint, firingBreakpoints, nextStop } from "../model/breakpoints.js";
import { createEngine } from "../engine/engine.js";
import { createPlayback, createTimeline } from "../model/history.js";
import { valueAt } from "../engine/keys.js";
import { ceil, max, min } from "../base/math.js";

/** Milliseconds per step at speed 1: in a small graph, and at least; and the longest total duration. */
const [MAX_STEP_MS, MIN_STEP_MS, MAX_TOTAL_MS] = [800, 250, 59_000];

/** Changes that are not part of the public state. @typedef {"stops" | "predicting" | "panel"} Inner */
/** @typedef {"moved"|"numbers"|"picked"|"pass"|"selected"|"expanded"|"playing"|"options"|Inner} Change */
/** @typedef {{nodes: number[], edges: number[]} | null} Changed null: everything */
/** @typedef {(what: Change, changed: Changed) => void} Listener */
/** @typedef {import("../base/types.js").BreakpointSpec} Spec */

/**
 * @typedef {object} Session
 * @property {import("../base/types.js").Graph} graph
 * @property {number} pass index of the backward pass
 * @property {number} root root of the backward pass
 * @property {import("../base/types.js").Timeline} timeline
 * @property {import("../base/types.js").Playback} playback
 * @property {import("../base/types.js").Numbers} recorded values of the trace
 * @property {import("../base/types.js").StepSize} stepSize
 * @property {number} speed
 * @property {boolean} playing
 * @property {any} timer
 * @property {string | null} selected "n12", "b3" or "step"
 * @property {Set<number>} expanded
 * @property {Map<number, number>} overrides the user's values of leaves and elements
 * @property {number[]} picked keys of the leaf elements chosen for editing, in order
 * @property {import("../engine/engine.js").Engine | null} engine compiled on first use
 * @property {Spec[]} breakpoints
 * @property {string} stopMessage message of the breakpoint that was reached
 * @property {number} limit in predict mode, the last position that the user may reach
 * @property {{right: number, asked: number, tries: number}} score of predictions
 * @property {Map<string, any>} pictures heatmaps of the inspector, by label
 * @property {Map<number, number> | null} scales scales of their colours, by node
 * @property {Set<Listener>} listeners
 */

/**
 * @param {import("../base/types.js").Graph} graph @param {Record<string, any>} [options]
 * @returns {Session}
 */
export function createSession(graph, options = {}) {
  const line = createTimeline(graph);
  /** @type {Session} */
  const s = {
    graph,
    timeline: line,
    playback: createPlayback(graph, line),
    recorded: graph.numbers,
    pass: 0,
    root: -1,
    stepSize: "edge",
    speed: 1,
    playing: false,
    timer: 0,
    selected: null,
    expanded: options.expanded ? new Set(options.expanded) : startExpanded(graph),
    overrides: new Map(),
    picked: [],
    engine: null,
    breakpoints: [],
    stopMessage: "",
    limit: Infinity,
    score: { right: 0, asked: 0, tries: 0 },
    pictures: new Map(),
    scales: null,
    listeners: new Set(),
  };
  choosePass(s, 0);
  moveTo(s, options.position ?? s.timeline.forward);
  return s;
}

/** @param {Session} s @param {Change} change @param {Changed} [changed] */
export function notify(s, change, changed = null) {
  for (const listener of s.listeners) listener(change, changed);
}

/** @param {Session} s */
export const lastPosition = (s) => s.timeline.last;

/** Select the backward pass of an output. @param {Session} s @param {number} pass */
export function choosePass(s, pass) {
  s.pass = pass;
  s.limit = Infinity;
  s.timeline = createTimeline(s.graph, s.recorded.runs[pass] ?? null);
  s.playback = createPlayback(s.graph, s.timeline, s.recorded);
  s.root = s.recorded.runs[pass]?.root ?? s.graph.outputs[0];
  applyOverrides(s);
  s.playback.seek(s.timeline.forward);
  notify(s, "pass");
}

/**
 * Go to a position, limited to the timeline and by predict mode.
 * @param {Session} s @param {number} position
 */
export function moveTo(s, position) {
  const target = max(0, min(Math.trunc(position) || 0, lastPosition(s), s.limit));
  if (target === s.playback.position) return false;
  s.stopMessage = "";
  const changed = s.playback.seek(target);
  notify(s, "moved", changed);
  if (s.playing) scheduleStep(s, pace(s).wait);
  return true;
}

/**
 * Schedule the next step in `wait` ms at speed 1. Each move reschedules it, so that linked players, which move each
 * other, stay in sync.
 * @param {Session} s
 * @param {number} wait
 */
function scheduleStep(s, wait) {
  clearTimeout(s.timer);
  s.timer = setTimeout(() => tick(s), wait / s.speed);
}

/**
 * Step by an edge, or by an operation with all its edges.
 * @param {Session} s
 * @param {number} direction
 * @param {import("../base/types.js").StepSize} [unit]
 */
export function stepBy(s, direction, unit = s.stepSize) {
  const { timeline: line, playback: now } = s;
  return moveTo(s, direction > 0 ? line.next(now.position, unit) : line.previous(now.position, unit));
}

/** @param {Session} s @param {boolean} playing */
export function setPlaying(s, playing) {
  clearTimeout(s.timer);
  if (playing && s.playback.position >= lastPosition(s)) moveTo(s, 0);
  if (s.playing !== playing) {
    s.playing = playing;
    notify(s, "playing");
  }
  if (playing) scheduleStep(s, 350);
}

/** Return the duration of a step at speed 1, and how many steps are combined. @param {Session} s */
function pace({ timeline: line }) {
  const stepsPerTick = max(1, ceil((line.last * MIN_STEP_MS) / MAX_TOTAL_MS));
  return { many: stepsPerTick, wait: min(MAX_STEP_MS, MAX_TOTAL_MS / ceil(line.last / stepsPerTick)) };
}

/** @param {Session} s */
function tick(s) {
  const stop = s.breakpoints.length ? nextStop(s.playback, s.breakpoints, 1) : Infinity;
  if (moveTo(s, min(stop, nextPosition(s)))) stopIfReached(s);
  else setPlaying(s, false);
}

/**
 * Return the next position while playing: several steps on for a long history, and to the end of a closed block.
 * @param {Session} s
 */
function nextPosition(s) {
  const { timeline: line, stepSize, graph } = s;
  const { many: stepsPerTick } = pace(s);
  let to = s.playback.position;
  for (let k = 0; k < stepsPerTick; k += 1) to = line.next(to, stepSize);
  if (stepsPerTick < 2) return to;
  const closed = outermostClosed(graph, s.expanded);
  const boxAt = (/** @type {number} */ at) => closed[graph.block[line.nodeAt(at)]];
  while (to < line.last && boxAt(to) >= 0 && boxAt(to + 1) === boxAt(to)) to += 1;
  return to;
}

/** Stop playing at a breakpoint and at the end, whichever player moved. @param {Session} s */
export function stopIfReached(s) {
  const [reached] = firingBreakpoints(s.playback, s.breakpoints);
  if (reached) {
    s.stopMessage = `Stopped at ${breakpoint(reached).text}. `;
    notify(s, "moved", { nodes: [], edges: [] });
  }
  if (reached || s.playback.position >= lastPosition(s)) setPlaying(s, false);
}

/** Return the first positions where breakpoints fire, for the scrubber. @param {Session} s @param {number} [limit] */
export function breakpointPositions(s, limit = 200) {
  const tests = s.breakpoints.map((stop) => breakpoint(stop).on(s.playback));
  const positions = [];
  for (let at = 1; tests.length && at <= s.timeline.last && positions.length < limit; at++) {
    if (tests.some((fire) => fire(at))) positions.push(at);
  }
  return positions;
}

/**
 * Select a node "n12", a block "b3", or "step", the node of each step; null deselects.
 * @param {Session} s @param {string | null} id
 */
export function select(s, id) {
  if (id !== null && id[0] === "n") {
    const open = openAround(s.graph, s.expanded, Number(id.slice(1)));
    if (open.size !== s.expanded.size) setExpanded(s, open);
  }
  if (s.selected === id) return;
  s.selected = id;
  notify(s, "selected");
}

/** Return the index of the selection if it is of this kind; else -1. @param {"n" | "b"} kind */
const selectedIndex = (kind) => (/** @type {Session} */ { selected }) =>
  selected?.[0] === kind ? Number(selected.slice(1)) : -1;

/** Return the selected node, or -1. */
export const selectedNode = selectedIndex("n");

/** Return the selected block, or -1. */
export const selectedBlock = selectedIndex("b");

/** Return the node of the current moment, or -1. @param {Session} s */
export function activeNode(s) {
  const moment = s.playback.moment();
  return moment.kind === "start" || moment.node == null ? -1 : moment.node;
}

/** @param {Session} s @param {Set<number>} expanded */
export function setExpanded(s, expanded) {
  s.expanded = expanded;
  notify(s, "expanded");
}

/** Return the what-if engine, compiled on first use. @param {Session} s */
export function getEngine(s) {
  s.engine ??= createEngine(s.graph);
  return s.engine;
}

/**
 * Set the value of a leaf or an element, or reset it (null), and recompute.
 * @param {Session} s
 * @param {number} leaf
 * @param {number | null} value
 */
export function setOverride(s, leaf, value) {
  if (value === null || value === valueAt(s.graph, s.recorded, leaf)) s.overrides.delete(leaf);
  else s.overrides.set(leaf, value);
  recompute(s);
}

/** Offer an element of a leaf for editing. @param {Session} s @param {number} key */
export function offerElement(s, key) {
  s.picked = [...s.picked.filter((one) => one !== key), key];
  notify(s, "picked");
}

/** @param {Session} s */
export function recompute(s) {
  applyOverrides(s);
  notify(s, "numbers");
}

/** @param {Session} s */
function applyOverrides(s) {
  const on = s.overrides.size > 0;
  s.playback.numbers = on ? getEngine(s).run(s.overrides) : s.recorded;
  s.playback.isUnavailable = on ? (node) => !getEngine(s).canRecompute(node) : () => false;
}

/**
 * Set the playback speed and the step size.
 * @param {Session} s @param {number} speed @param {Session["stepSize"]} unit
 */
export function setOptions(s, speed, unit) {
  s.speed = speed;
  s.stepSize = unit;
  notify(s, "options");
}

/** @param {Session} s @param {Spec[]} breakpoints */
export function setBreakpoints(s, breakpoints) {
  s.breakpoints = breakpoints;
  notify(s, "stops");
}
