/**
 * What one player holds: a place in the timeline, what is selected and open, the reader's own numbers and stops. No
 * elements here: every change is told to those who listen, and the panels draw themselves again from it.
 */

import { startExpanded, reveal } from "../model/blocks.js";
import { breakpoint, firing, nextStop } from "../model/breakpoints.js";
import { engine } from "../engine/engine.js";
import { playback, timeline } from "../model/history.js";
import { numberAt } from "../engine/tensorengine.js";

/** @typedef {"moved"|"numbers"|"picked"|"pass"|"selected"|"expanded"|"playing"|"stops"|"predicting"|"options"|"panel"} What */
/** @typedef {{nodes: number[], edges: number[]} | null} Changed  null is everything */
/** @typedef {(what: What, changed: Changed) => void} Listener */
/** @typedef {{kind: string, value?: string | number}} Spec */

/**
 * @param {any} graph @param {Record<string, any>} [options]
 * @returns {any}
 */
export function createSession(graph, options = {}) {
  const s = {
    graph,
    line: /** @type {any} */ (null),
    playback: /** @type {any} */ (null),
    base: graph.numbers,
    /** which backward pass is played */
    pass: 0,
    /** @type {"edge"|"op"} */
    unit: "edge",
    speed: 1,
    playing: false,
    timer: 0,
    /** @type {string | null} "n12" or "b3" */
    selected: null,
    expanded: options.expanded ? new Set(options.expanded) : startExpanded(graph),
    /** @type {Map<number, number>} */
    overrides: new Map(),
    /** @type {Spec[]} */
    stops: [],
    stopped: "",
    /** In predict mode, how far the reader may go: what lies behind has to be predicted first. */
    limit: Infinity,
    engine: /** @type {any} */ (null),
    /** @type {number[]} the elements of leaves that the reader wants to change, as keys of `overrides`, the last one last */
    picked: [],
    /** the heatmaps of the inspector, by their labels */
    pictures: new Map(),
    /** @type {Set<Listener>} */
    listeners: new Set(),
  };
  choosePass(s, 0);
  moveTo(s, options.position ?? s.line.forward);
  return s;
}

/** @param {any} s @param {What} what @param {Changed} [changed] */
export function tell(s, what, changed = null) {
  for (const listener of s.listeners) listener(what, changed);
}

/** @param {any} s */
export const lastPosition = (s) => s.line.last;

/** Plays another backward pass, of another output. @param {any} s @param {number} pass */
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

/** Goes to a place in the timeline, or as near to it as predict mode lets. @param {any} s @param {number} position */
export function moveTo(s, position) {
  const target = Math.max(0, Math.min(Math.trunc(position) || 0, lastPosition(s), s.limit));
  if (target === s.playback.position) return false;
  s.stopped = "";
  const changed = s.playback.seek(target);
  tell(s, "moved", changed);
  if (s.playing) wind(s, 900);
  return true;
}

/**
 * Winds the clock: the next step is so many milliseconds away, at speed 1. Each move winds it anew, so that the players
 * of one widget, or of linked ones, which move each other, keep one pace.
 * @param {any} s
 * @param {number} wait
 */
function wind(s, wait) {
  clearTimeout(s.timer);
  s.timer = setTimeout(() => tick(s), wait / s.speed);
}

/**
 * One step, of an edge or of an operation with all its edges.
 * @param {any} s
 * @param {number} way
 * @param {string} [unit]
 */
export function stepBy(s, way, unit = s.unit) {
  const { line, playback: now } = s;
  return moveTo(s, way > 0 ? line.next(now.position, unit) : line.previous(now.position, unit));
}

/** @param {any} s @param {boolean} playing */
export function setPlaying(s, playing) {
  clearTimeout(s.timer);
  if (playing && s.playback.position >= lastPosition(s)) moveTo(s, 0);
  if (s.playing !== playing) {
    s.playing = playing;
    tell(s, "playing");
  }
  if (playing) wind(s, 350);
}

/** @param {any} s */
function tick(s) {
  const stop = s.stops.length ? nextStop(s.playback, s.stops, 1) : Infinity;
  if (moveTo(s, Math.min(stop, s.line.next(s.playback.position, s.unit)))) arrive(s);
  else setPlaying(s, false);
}

/** Playing ends at a stop and at the end, whoever made the move. @param {any} s */
export function arrive(s) {
  const [reached] = firing(s.playback, s.stops);
  if (reached) {
    s.stopped = `Stopped at ${breakpoint(reached).text}. `;
    tell(s, "moved", { nodes: [], edges: [] });
  }
  if (reached || s.playback.position >= lastPosition(s)) setPlaying(s, false);
}

/** The first positions where playing stops, for the scrubber. @param {any} s @param {number} [most] */
export function stopPositions(s, most = 200) {
  const fires = s.stops.map((/** @type {any} */ stop) => breakpoint(stop).on(s.playback));
  const found = [];
  for (let at = 1; fires.length && at <= s.line.last && found.length < most; at++) {
    if (fires.some((/** @type {any} */ fire) => fire(at))) found.push(at);
  }
  return found;
}

/** Selects "n12", a node, or "b3", a block; null selects nothing. @param {any} s @param {string | null} id */
export function select(s, id) {
  if (id !== null && id[0] === "n") {
    const open = reveal(s.graph, s.expanded, Number(id.slice(1)));
    if (open.size !== s.expanded.size) setExpanded(s, open);
  }
  if (s.selected === id) return;
  s.selected = id;
  tell(s, "selected");
}

/** The node that is selected, or -1. @param {any} s */
export const selectedNode = (s) => (s.selected?.[0] === "n" ? Number(s.selected.slice(1)) : -1);

/** The node that the present moment is about, or -1. @param {any} s */
export function activeNode(s) {
  const moment = s.playback.moment();
  return moment.kind === "start" || moment.node == null ? -1 : moment.node;
}

/** @param {any} s @param {Set<number>} expanded */
export function setExpanded(s, expanded) {
  s.expanded = expanded;
  tell(s, "expanded");
}

/** The what-if engine, compiled when it is first needed. @param {any} s */
export function engineOf(s) {
  s.engine ??= engine(s.graph);
  return s.engine;
}

/**
 * Gives a leaf, or an element of it, another number, or (null) its own back; everything is computed anew.
 * @param {any} s
 * @param {number} leaf
 * @param {number | null} value
 */
export function override(s, leaf, value) {
  if (value === null || value === numberAt(s.graph, s.base, leaf)) s.overrides.delete(leaf);
  else s.overrides.set(leaf, value);
  recompute(s);
}

/** Offers an element of a leaf to be changed. @param {any} s @param {number} key */
export function pick(s, key) {
  s.picked = [...s.picked.filter((/** @type {number} */ one) => one !== key), key];
  tell(s, "picked");
}

/** @param {any} s */
export function recompute(s) {
  applyOverrides(s);
  tell(s, "numbers");
}

/** @param {any} s */
function applyOverrides(s) {
  const on = s.overrides.size > 0;
  s.playback.numbers = on ? engineOf(s).run(s.overrides) : s.base;
  s.playback.unable = on ? (/** @type {number} */ node) => !s.engine.able(node) : () => false;
}

/** How fast it plays, and how far a step goes. @param {any} s @param {number} speed @param {string} unit */
export function setOptions(s, speed, unit) {
  s.speed = speed;
  s.unit = unit;
  tell(s, "options");
}

/** @param {any} s @param {Spec[]} stops */
export function setStops(s, stops) {
  s.stops = stops;
  tell(s, "stops");
}
