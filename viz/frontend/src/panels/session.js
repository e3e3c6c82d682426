/**
 * What one player holds: a place in the timeline, what is selected and open, the user's own numbers and stops. No
 * elements here: every change is told to those who listen, and the panels draw themselves again from it.
 */

import { covers, startExpanded, reveal } from "../model/blocks.js";
import { breakpoint, firing, nextStop } from "../model/breakpoints.js";
import { engine } from "../engine/engine.js";
import { playback, timeline } from "../model/history.js";
import { numberAt } from "../engine/keys.js";
import { ceil, max, min } from "../base/math.js";

/** Of playing at speed 1, in milliseconds: a step in a small graph, one that can just be seen, and all of any graph. */
const [CALM, BRIEF, LONGEST] = [800, 250, 59_000];

/** What is of no concern to who keeps the state. @typedef {"stops" | "predicting" | "panel"} Inner */
/** @typedef {"moved"|"numbers"|"picked"|"pass"|"selected"|"expanded"|"playing"|"options"|Inner} What */
/** @typedef {{nodes: number[], edges: number[]} | null} Changed  null is everything */
/** @typedef {(what: What, changed: Changed) => void} Listener */
/** @typedef {import("../base/types.js").BreakpointSpec} Spec */

/**
 * @typedef {object} Session
 * @property {import("../base/types.js").Graph} graph
 * @property {number} pass which backward pass is played
 * @property {number} root where that begins
 * @property {import("../base/types.js").Timeline} line
 * @property {import("../base/types.js").Playback} playback
 * @property {import("../base/types.js").Numbers} base those of the trace
 * @property {import("../base/types.js").StepSize} unit
 * @property {number} speed
 * @property {boolean} playing
 * @property {any} timer
 * @property {string | null} selected "n12", "b3" or "step"
 * @property {Set<number>} expanded
 * @property {Map<number, number>} overrides the user's own numbers, of leaves and of elements
 * @property {number[]} picked the elements of leaves that the user wants to change, as keys of `overrides`, in order
 * @property {import("../engine/engine.js").Engine | null} engine compiled when it is first needed
 * @property {Spec[]} stops
 * @property {string} stopped the stop that was reached, in a sentence
 * @property {number} limit in predict mode, how far the user may go: what lies behind has to be predicted first
 * @property {{right: number, asked: number, tries: number}} score of predictions
 * @property {Map<string, any>} pictures the heatmaps of the inspector, by their labels
 * @property {Map<number, number> | null} scales of their colours, by node
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

/** Plays another backward pass, of another output. @param {Session} s @param {number} pass */
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
 * Goes to a place in the timeline, or as near to it as predict mode lets.
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
 * Winds the clock: the next step is so many milliseconds away, at speed 1. Each move winds it anew, so that the players
 * of one widget, or of linked ones, which move each other, keep one pace.
 * @param {Session} s
 * @param {number} wait
 */
function wind(s, wait) {
  clearTimeout(s.timer);
  s.timer = setTimeout(() => tick(s), wait / s.speed);
}

/**
 * One step, of an edge or of an operation with all its edges.
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

/** How long a step is seen at speed 1, and how many are made at once. @param {Session} s */
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

/** Where playing goes next; of a long history by several steps, and to the end of a closed block. @param {Session} s */
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

/** Playing ends at a stop and at the end, whoever made the move. @param {Session} s */
export function arrive(s) {
  const [reached] = firing(s.playback, s.stops);
  if (reached) {
    s.stopped = `Stopped at ${breakpoint(reached).text}. `;
    tell(s, "moved", { nodes: [], edges: [] });
  }
  if (reached || s.playback.position >= lastPosition(s)) setPlaying(s, false);
}

/** The first positions where playing stops, for the scrubber. @param {Session} s @param {number} [most] */
export function stopPositions(s, most = 200) {
  const fires = s.stops.map((stop) => breakpoint(stop).on(s.playback));
  const found = [];
  for (let at = 1; fires.length && at <= s.line.last && found.length < most; at++) {
    if (fires.some((fire) => fire(at))) found.push(at);
  }
  return found;
}

/** Selects "n12", a node, "b3", a block, or "step", the node that each step is about; null selects nothing. @param {Session} s @param {string | null} id */
export function select(s, id) {
  if (id !== null && id[0] === "n") {
    const open = reveal(s.graph, s.expanded, Number(id.slice(1)));
    if (open.size !== s.expanded.size) setExpanded(s, open);
  }
  if (s.selected === id) return;
  s.selected = id;
  tell(s, "selected");
}

/** What is selected, if it is of that kind; or -1. @param {"n" | "b"} kind */
const selectedOf = (kind) => (/** @type {Session} */ { selected }) =>
  selected?.[0] === kind ? Number(selected.slice(1)) : -1;

/** The node that is selected, or -1. */
export const selectedNode = selectedOf("n");

/** The block that is selected, or -1. */
export const selectedBlock = selectedOf("b");

/** The node that the present moment is about, or -1. @param {Session} s */
export function activeNode(s) {
  const moment = s.playback.moment();
  return moment.kind === "start" || moment.node == null ? -1 : moment.node;
}

/** @param {Session} s @param {Set<number>} expanded */
export function setExpanded(s, expanded) {
  s.expanded = expanded;
  tell(s, "expanded");
}

/** The what-if engine, compiled when it is first needed. @param {Session} s */
export function engineOf(s) {
  s.engine ??= engine(s.graph);
  return s.engine;
}

/**
 * Gives a leaf, or an element of it, another number, or (null) its own back; everything is computed anew.
 * @param {Session} s
 * @param {number} leaf
 * @param {number | null} value
 */
export function override(s, leaf, value) {
  if (value === null || value === numberAt(s.graph, s.base, leaf)) s.overrides.delete(leaf);
  else s.overrides.set(leaf, value);
  recompute(s);
}

/** Offers an element of a leaf to be changed. @param {Session} s @param {number} key */
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
 * How fast it plays, and how far a step goes.
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
