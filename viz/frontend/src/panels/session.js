/**
 * The state of a player: the position, the selection, the open blocks, the user's values and breakpoints. No elements:
 * listeners are notified of every change, and the panels re-render from the state.
 */

import { covers, startExpanded, reveal } from "../model/blocks.js";
import { breakpoint, firing, nextStop } from "../model/breakpoints.js";
import { engine } from "../engine/engine.js";
import { playback, timeline } from "../model/history.js";
import { numberAt } from "../engine/keys.js";
import { ceil, max, min } from "../base/math.js";

/** Milliseconds per step at speed 1: in a small graph, and at least; and the longest total duration. */
const [CALM, BRIEF, LONGEST] = [800, 250, 59_000];

/** Changes that are not part of the public state. @typedef {"stops" | "predicting" | "panel"} Inner */
/** @typedef {"moved"|"numbers"|"picked"|"pass"|"selected"|"expanded"|"playing"|"options"|Inner} What */
/** @typedef {{nodes: number[], edges: number[]} | null} Changed null: everything */
/** @typedef {(what: What, changed: Changed) => void} Listener */
/** @typedef {import("../base/types.js").BreakpointSpec} Spec */

/**
 * @typedef {object} Session
 * @property {import("../base/types.js").Graph} graph
 * @property {number} pass index of the backward pass
 * @property {number} root root of the backward pass
 * @property {import("../base/types.js").Timeline} line
 * @property {import("../base/types.js").Playback} playback
 * @property {import("../base/types.js").Numbers} base values of the trace
 * @property {import("../base/types.js").StepSize} unit
 * @property {number} speed
 * @property {boolean} playing
 * @property {any} timer
 * @property {string | null} selected "n12", "b3" or "step"
 * @property {Set<number>} expanded
 * @property {Map<number, number>} overrides the user's values of leaves and elements
 * @property {number[]} picked keys of the leaf elements chosen for editing, in order
 * @property {import("../engine/engine.js").Engine | null} engine compiled on first use
 * @property {Spec[]} stops
 * @property {string} stopped message of the breakpoint that was reached
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
  const line = timeline(graph);
  /** @type {Session} */
  const s = {
    graph,
    line,
    playback: playback(graph, line),
    base: graph.numbers,
    pass: 0,
    root: -1,
    unit: "edge",
    speed: 1,
    playing: false,
    timer: 0,
    selected: null,
    expanded: options.expanded ? new Set(options.expanded) : startExpanded(graph),
    overrides: new Map(),
    picked: [],
    engine: null,
    stops: [],
    stopped: "",
    limit: Infinity,
    score: { right: 0, asked: 0, tries: 0 },
    pictures: new Map(),
    scales: null,
    listeners: new Set(),
  };
  choosePass(s, 0);
  moveTo(s, options.position ?? s.line.forward);
  return s;
}

/** @param {Session} s @param {What} what @param {Changed} [changed] */
export function tell(s, what, changed = null) {
  for (const listener of s.listeners) listener(what, changed);
}

/** @param {Session} s */
export const lastPosition = (s) => s.line.last;

/** Select the backward pass of an output. @param {Session} s @param {number} pass */
export function choosePass(s, pass) {
  s.pass = pass;
  s.limit = Infinity;
  s.line = timeline(s.graph, s.base.runs[pass] ?? null);
  s.playback = playback(s.graph, s.line, s.base);
  s.root = s.base.runs[pass]?.root ?? s.graph.outputs[0];
  applyOverrides(s);
  s.playback.seek(s.line.forward);
  tell(s, "pass");
}

/**
 * Go to a position, limited to the timeline and by predict mode.
 * @param {Session} s @param {number} position
 */
export function moveTo(s, position) {
  const target = max(0, min(Math.trunc(position) || 0, lastPosition(s), s.limit));
  if (target === s.playback.position) return false;
  s.stopped = "";
  const changed = s.playback.seek(target);
  tell(s, "moved", changed);
  if (s.playing) wind(s, pace(s).wait);
  return true;
}

/**
 * Schedule the next step in `wait` ms at speed 1. Each move reschedules it, so that linked players, which move each
 * other, stay in sync.
 * @param {Session} s
 * @param {number} wait
 */
function wind(s, wait) {
  clearTimeout(s.timer);
  s.timer = setTimeout(() => tick(s), wait / s.speed);
}

/**
 * Step by an edge, or by an operation with all its edges.
 * @param {Session} s
 * @param {number} way
 * @param {import("../base/types.js").StepSize} [unit]
 */
export function stepBy(s, way, unit = s.unit) {
  const { line, playback: now } = s;
  return moveTo(s, way > 0 ? line.next(now.position, unit) : line.previous(now.position, unit));
}

/** @param {Session} s @param {boolean} playing */
export function setPlaying(s, playing) {
  clearTimeout(s.timer);
  if (playing && s.playback.position >= lastPosition(s)) moveTo(s, 0);
  if (s.playing !== playing) {
    s.playing = playing;
    tell(s, "playing");
  }
  if (playing) wind(s, 350);
}

/** Return the duration of a step at speed 1, and how many steps are combined. @param {Session} s */
function pace({ line }) {
  const many = max(1, ceil((line.last * BRIEF) / LONGEST));
  return { many, wait: min(CALM, LONGEST / ceil(line.last / many)) };
}

/** @param {Session} s */
function tick(s) {
  const stop = s.stops.length ? nextStop(s.playback, s.stops, 1) : Infinity;
  if (moveTo(s, min(stop, nextPlayed(s)))) arrive(s);
  else setPlaying(s, false);
}

/**
 * Return the next position while playing: several steps on for a long history, and to the end of a closed block.
 * @param {Session} s
 */
function nextPlayed(s) {
  const { line, unit, graph } = s;
  const { many } = pace(s);
  let to = s.playback.position;
  for (let k = 0; k < many; k += 1) to = line.next(to, unit);
  if (many < 2) return to;
  const closed = covers(graph, s.expanded);
  const boxAt = (/** @type {number} */ at) => closed[graph.block[line.nodeAt(at)]];
  while (to < line.last && boxAt(to) >= 0 && boxAt(to + 1) === boxAt(to)) to += 1;
  return to;
}

/** Stop playing at a breakpoint and at the end, whichever player moved. @param {Session} s */
export function arrive(s) {
  const [reached] = firing(s.playback, s.stops);
  if (reached) {
    s.stopped = `Stopped at ${breakpoint(reached).text}. `;
    tell(s, "moved", { nodes: [], edges: [] });
  }
  if (reached || s.playback.position >= lastPosition(s)) setPlaying(s, false);
}

/** Return the first positions where breakpoints fire, for the scrubber. @param {Session} s @param {number} [most] */
export function stopPositions(s, most = 200) {
  const fires = s.stops.map((stop) => breakpoint(stop).on(s.playback));
  const found = [];
  for (let at = 1; fires.length && at <= s.line.last && found.length < most; at++) {
    if (fires.some((fire) => fire(at))) found.push(at);
  }
  return found;
}

/**
 * Select a node "n12", a block "b3", or "step", the node of each step; null deselects.
 * @param {Session} s @param {string | null} id
 */
export function select(s, id) {
  if (id !== null && id[0] === "n") {
    const open = reveal(s.graph, s.expanded, Number(id.slice(1)));
    if (open.size !== s.expanded.size) setExpanded(s, open);
  }
  if (s.selected === id) return;
  s.selected = id;
  tell(s, "selected");
}

/** Return the index of the selection if it is of this kind; else -1. @param {"n" | "b"} kind */
const selectedOf = (kind) => (/** @type {Session} */ { selected }) =>
  selected?.[0] === kind ? Number(selected.slice(1)) : -1;

/** Return the selected node, or -1. */
export const selectedNode = selectedOf("n");

/** Return the selected block, or -1. */
export const selectedBlock = selectedOf("b");

/** Return the node of the current moment, or -1. @param {Session} s */
export function activeNode(s) {
  const moment = s.playback.moment();
  return moment.kind === "start" || moment.node == null ? -1 : moment.node;
}

/** @param {Session} s @param {Set<number>} expanded */
export function setExpanded(s, expanded) {
  s.expanded = expanded;
  tell(s, "expanded");
}

/** Return the what-if engine, compiled on first use. @param {Session} s */
export function engineOf(s) {
  s.engine ??= engine(s.graph);
  return s.engine;
}

/**
 * Set the value of a leaf or an element, or reset it (null), and recompute.
 * @param {Session} s
 * @param {number} leaf
 * @param {number | null} value
 */
export function override(s, leaf, value) {
  if (value === null || value === numberAt(s.graph, s.base, leaf)) s.overrides.delete(leaf);
  else s.overrides.set(leaf, value);
  recompute(s);
}

/** Offer an element of a leaf for editing. @param {Session} s @param {number} key */
export function pick(s, key) {
  s.picked = [...s.picked.filter((one) => one !== key), key];
  tell(s, "picked");
}

/** @param {Session} s */
export function recompute(s) {
  applyOverrides(s);
  tell(s, "numbers");
}

/** @param {Session} s */
function applyOverrides(s) {
  const on = s.overrides.size > 0;
  s.playback.numbers = on ? engineOf(s).run(s.overrides) : s.base;
  s.playback.unable = on ? (node) => !engineOf(s).able(node) : () => false;
}

/**
 * Set the playback speed and the step size.
 * @param {Session} s @param {number} speed @param {Session["unit"]} unit
 */
export function setOptions(s, speed, unit) {
  s.speed = speed;
  s.unit = unit;
  tell(s, "options");
}

/** @param {Session} s @param {Spec[]} stops */
export function setStops(s, stops) {
  s.stops = stops;
  tell(s, "stops");
}
