/**
 * The player, in a shadow root. `mount` is its public interface; its "change" event reports the state, which the
 * player's setters accept.
 */

import { alarmsPanel } from "./panels/alarmlist.js";
import { controls } from "./panels/controls.js";
import { setChildren, h, keepFocus, tag } from "./base/dom.js";
import { searchPanel } from "./panels/finder.js";
import { inspector } from "./panels/inspector.js";
import { legend } from "./panels/legend.js";
import { helpDialog, pressKey } from "./panels/keyboard.js";
import { hasQuestion, predictPanel, setPredicting } from "./panels/prediction.js";
import { captionPanel } from "./panels/caption.js";
import {
  stopIfReached,
  createSession,
  moveTo,
  recompute,
  select,
  setExpanded,
  setOptions,
  setPlaying,
  stepBy,
  notify,
} from "./panels/session.js";
import { shellStyle } from "./panels/shellstyle.js";
import { stage } from "./panels/stage.js";
import { breakpointsPanel } from "./panels/breakpointlist.js";
import { drawingStyle, followTheme } from "./drawing/style.js";
import { tablePanel } from "./panels/table.js";
import { createTour } from "./panels/tourbar.js";
import { decode } from "./model/trace.js";
import { prefersReducedMotion } from "./drawing/viewport.js";
import { findKey, keyTitle, leafOf, valueAt } from "./engine/keys.js";
import { whatIfPanel } from "./panels/whatif.js";

/** @typedef {import("./panels/session.js").Session} Session */

/**
 * The state that widgets synchronise: `selected` is a node "n12", a block "b3", or "step", the node of each step;
 * `values` are the user's, by leaf.
 * @typedef {object} State
 * @property {number} position
 * @property {boolean} playing
 * @property {number} speed 0.25 … 4
 * @property {"edge" | "op"} granularity the step size
 * @property {Record<string, number>} values
 * @property {string | null} selected
 * @property {number[]} expanded the open blocks
 */

/**
 * The appearance of the player; the other options are its initial state (by default the end of the forward pass).
 * @typedef {object} Appearance
 * @property {boolean} [autoplay] unless the user prefers reduced motion
 * @property {"light" | "dark" | "auto"} [theme]
 * @property {number | null} [height] maximum height of the drawing, in pixels
 * @property {string[] | null} [show] the parts to include, of PANELS, "inspector" and "transport"; default: all
 */

/** @typedef {{[key in keyof State]?: State[key] | null} & Appearance} Options */

const TITLES = /** @type {Record<string, string>} */ ({
  predict: "Predict",
  "what-if": "What if",
  table: "Table",
  stops: "Breakpoints",
  alarms: "Alarms",
  search: "Search",
});

/** Panel factories; each returns a function that describes the panel at the current moment. */
const PANELS = /** @type {Record<string, (s: any, highlight: (nodes: number[]) => void) => Draw>} */ ({
  "what-if": whatIfPanel,
  table: tablePanel,
  stops: breakpointsPanel,
  alarms: alarmsPanel,
  search: searchPanel,
});

/** @typedef {(what: string, changed: any) => import("./base/dom.js").Child} Draw */

/**
 * Mount a player in an element.
 * @param {HTMLElement} host @param {any} traceData parsed JSON @param {Options} [options]
 */
export function mount(host, traceData, options = {}) {
  const s = createSession(decode(traceData), options);
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const onkeydown = (/** @type {KeyboardEvent} */ event) => pressKey(s, keys, event);
  const label = `Player: ${s.graph.sentence}`;
  const app = h("div.app", { role: "group", label, onkeydown, tabindex: -1 }); // a click anywhere focuses it, so that it receives keys
  const focus = (/** @type {string} */ selector) => app.querySelector(selector)?.focus();
  const { draw, keys, drawing } = createParts(host, s, options, focus);
  root.replaceChildren(h("style", {}, drawingStyle() + shellStyle()), app);
  host.dataset.lmSuppressShortcuts = "true";
  if (options.height) host.style.setProperty("--mg-view-height", `${options.height}px`);
  const repaint = () => {
    drawing.repaint();
    for (const one of s.pictures.values()) one.redraw();
  };
  let unfollow = () => {};
  if (options.theme === "light" || options.theme === "dark") host.dataset.mgTheme = options.theme;
  else unfollow = followTheme(host, repaint);
  keys.tour.start();
  if (options.position) moveTo(s, options.position);
  const update = (/** @type {string} */ change, /** @type {any} */ changed) => {
    keepFocus(root, () => setChildren(app, ...draw(change, changed), keys.dialog));
    drawing.update(change, changed);
    if (change === "picked") focus(".current [type=range]");
  };
  update("numbers", null);
  drawing.update("selected", null);
  s.listeners.add(update);
  const { position, expanded, playing, ...rest } = options;
  restore(s, {
    .../** @type {Partial<State>} */ (rest),
    playing: playing || (options.autoplay && !prefersReducedMotion()) || false,
  });
  return createPlayer(s, host, app, () => {
    setPlaying(s, false);
    unfollow();
    drawing.destroy();
    root.replaceChildren();
  });
}

/**
 * Create the parts of the player.
 * @param {HTMLElement} host @param {Session} s @param {Options} options @param {(selector: string) => void} focus
 */
function createParts(host, s, options, focus) {
  const isShown = (/** @type {string} */ name) => !options.show || options.show.includes(name);
  const dialog = helpDialog();
  const help = () => dialog.showModal();
  const present = () => (document.fullscreenElement ? document.exitFullscreen() : host.requestFullscreen());
  const drawing = stage(s);
  const tourBar = createTour(s);
  const inspect = inspector(s);
  const hasInspector = isShown("inspector");
  const isAvailable = (/** @type {string} */ name) => (name !== "predict" || hasQuestion(s)) && (name !== "what-if" || !s.graph.runMode);
  const names = Object.keys(TITLES).filter((name) => isShown(name) && isAvailable(name));
  const { toggle, search, bar, panel } = tabs(s, names, drawing, focus);
  /** @type {Draw[]} */
  const parts = [
    tourBar.draw,
    ...(isShown("transport") ? [controls(s, help)] : []),
    bar,
    captionPanel(s),
    predictPanel(s),
    () => tag("div.stage", {}, drawing.element),
    legend(s),
    panel,
    () => hasInspector && s.selected !== null && inspect(),
  ];
  const leaveDrawing = () => (select(s, null), focus(".key.play"));
  return {
    drawing,
    keys: { tour: tourBar, drawing, dialog, help, present, leaveDrawing, toggle, search },
    draw: (/** @type {string} */ change, /** @type {any} */ changed) => parts.map((part) => part(change, changed)),
  };
}

/**
 * Create the tabs and the open panel. A panel is created on first use, and not updated while it is closed.
 * @param {Session} s @param {string[]} names @param {ReturnType<typeof stage>} drawing
 * @param {(selector: string) => void} focus
 */
function tabs(s, names, drawing, focus) {
  let open = "";
  const alarmCount = s.graph.notes.length;
  const highlight = (/** @type {number[]} */ nodes) => drawing.view.mark(nodes);
  const panels = /** @type {Record<string, Draw>} */ ({});
  const rendered = /** @type {Record<string, import("./base/dom.js").Child>} */ ({});
  const toggle = (/** @type {string} */ name) => {
    if (!names.includes(name)) return;
    if (name === "predict") {
      setPredicting(s, s.limit === Infinity);
      focus("#mg-answer");
    } else {
      open = open === name ? "" : name;
      notify(s, "panel");
      focus("[type=search]");
      drawing.element.parentElement?.parentElement?.querySelector(".panel:not([hidden] *)")?.scrollIntoView({ block: "nearest" });
    }
  };
  const button = (/** @type {string} */ name) => {
    const state = name === "predict" ? { "aria-pressed": s.limit < Infinity } : { "aria-expanded": name === open };
    const alarmed = name === "alarms" && alarmCount > 0 && tag("span.warn", {}, ` ! ${alarmCount}`);
    return tag("button", { ...state, onclick: () => toggle(name) }, TITLES[name], alarmed);
  };
  return {
    toggle,
    search: () => (open === "search" ? focus("[type=search]") : toggle("search")),
    /** @type {Draw} */
    bar(change) {
      if (change === "picked" && names.includes("what-if")) open = "what-if";
      return tag("div.tabs", { role: "group", label: "Panels" }, ...names.map(button), drawing.zoom);
    },
    /** @type {Draw} */
    panel(change, changed) {
      drawing.element.classList.toggle("short", open !== ""); // so that both are visible
      if (open) {
        panels[open] ??= PANELS[open](s, highlight);
        rendered[open] = panels[open](change, changed);
      }
      return tag("div", {}, ...Object.keys(rendered).map((name) => tag("div", { hidden: name !== open }, rendered[name])));
    },
  };
}

/**
 * Create the public interface.
 * @param {Session} s @param {HTMLElement} host @param {HTMLElement} app @param {() => void} destroy
 */
function createPlayer(s, host, app, destroy) {
  const state = () => getState(s);
  return {
    element: host,
    state,
    /** Restore a state, or a part of it. @param {Partial<State>} part */
    restore: (part) => restore(s, part),
    play: () => setPlaying(s, true),
    pause: () => setPlaying(s, false),
    /** Focus the player, and handle a key that was pressed elsewhere. @param {KeyboardEvent} event */
    press(event) {
      app.focus({ preventScroll: true });
      const copy = new KeyboardEvent(event.type, { key: event.key, shiftKey: event.shiftKey, cancelable: true });
      if (!app.dispatchEvent(copy)) event.preventDefault();
    },
    /** @param {number} way @param {"edge" | "op"} [unit] */
    step: (way, unit) => stepBy(s, way, unit),
    /** Set the value of a leaf; null resets it. @param {string} name @param {number | null} value */
    set: (name, value) => restore(s, { values: /** @type {any} */ ({ ...state().values, [name]: value }) }),
    /** Return the current moment, at full precision. @returns {import("./base/types.js").Moment} */
    moment: () => s.playback.moment(),
    /**
     * Return the value of a node, given by name or index; null while unknown.
     * @param {string | number} node @returns {import("./base/types.js").Quantity | null}
     */
    value: (node) => s.playback.value(findNode(s, node)),
    /**
     * Return the gradient of a node: its state, and how many contributions have arrived.
     * @param {string | number} node @returns {import("./base/types.js").Gradient}
     */
    gradient: (node) => s.playback.gradient(findNode(s, node)),
    /** @param {number} block */
    expand: (block) => setExpanded(s, new Set([...s.expanded, block])),
    /** @param {"change"} event @param {(state: State) => void} listener @returns {() => void} removes the listener */
    on(event, listener) {
      const onChange = (/** @type {string} */ what) => !["stops", "predicting", "panel"].includes(what) && listener(state());
      s.listeners.add(onChange);
      return () => s.listeners.delete(onChange);
    },
    destroy() {
      destroy();
      s.listeners.clear();
    },
    get position() {
      return s.playback.position;
    },
    set position(position) {
      moveTo(s, position);
    },
  };
}

/** @typedef {ReturnType<typeof createPlayer>} Player */

/** @param {Session} s @param {string | number} node @returns {number} */
function findNode({ graph }, node) {
  const same = (/** @type {string | null} */ name, /** @type {number} */ at) => (name ?? graph.title(at)) === node;
  const index = typeof node === "number" ? node : graph.names.findIndex(same);
  if (graph.kind[index] === undefined) throw new Error(`No such node: ${JSON.stringify(node)}.`);
  return index;
}

/** Return the full name of a leaf or an element. @param {Session} s @param {number} key */
const keyName = ({ graph }, key) => keyTitle(graph, key, graph.names[leafOf(graph, key)] ?? undefined);

/** @param {Session} s @returns {State} */
function getState(s) {
  return {
    position: s.playback.position,
    playing: s.playing,
    speed: s.speed,
    granularity: s.stepSize,
    values: Object.fromEntries([...s.overrides].map(([key, value]) => [keyName(s, key), value])),
    selected: s.selected,
    expanded: [...s.expanded].sort((a, b) => a - b),
  };
}

/** @param {Session} s @param {Partial<State>} part */
function restore(s, part) {
  if (part.speed || part.granularity) setOptions(s, part.speed || s.speed, part.granularity || s.stepSize);
  if (part.values) setValues(s, part.values);
  if (part.expanded) setExpanded(s, new Set(part.expanded));
  if (part.position != null && moveTo(s, part.position) && s.playing) stopIfReached(s);
  if (part.selected !== undefined) select(s, part.selected);
  if (part.playing !== undefined && part.playing !== s.playing) setPlaying(s, part.playing);
}

/**
 * Set the values of leaves and elements by name; all others are reset.
 * @param {Session} s
 * @param {Record<string, number | null>} values
 */
function setValues(s, values) {
  const leaves = new Map();
  for (const [name, value] of Object.entries(values)) {
    const key = findKey(s.graph, name);
    if (key < 0) throw new Error(`No scalar leaf or element is called ${JSON.stringify(name)}.`);
    if (value !== null && value !== valueAt(s.graph, s.recorded, key)) leaves.set(key, value);
  }
  const same =
    leaves.size === s.overrides.size && [...leaves].every(([leaf, value]) => s.overrides.get(leaf) === value);
  if (same) return;
  s.overrides = leaves;
  recompute(s);
}
