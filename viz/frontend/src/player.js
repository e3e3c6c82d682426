/**
 * The player, in a shadow root. `mount` is its public interface; its "change" event reports the state, which the
 * player's setters accept.
 */

import { alarms } from "./panels/alarmlist.js";
import { controls } from "./panels/controls.js";
import { fill, h, keepFocus, tag } from "./base/dom.js";
import { finder } from "./panels/finder.js";
import { inspector } from "./panels/inspector.js";
import { legend } from "./panels/legend.js";
import { helpOverlay, pressKey } from "./panels/keyboard.js";
import { canAsk, predicting, setPredicting } from "./panels/predicting.js";
import { saying } from "./panels/saying.js";
import {
  arrive,
  createSession,
  moveTo,
  recompute,
  select,
  setExpanded,
  setOptions,
  setPlaying,
  stepBy,
  tell,
} from "./panels/session.js";
import { shellStyle } from "./panels/shellstyle.js";
import { stage } from "./panels/stage.js";
import { stops } from "./panels/stops.js";
import { drawingStyle, followTheme } from "./drawing/style.js";
import { table } from "./panels/table.js";
import { tour } from "./panels/tourbar.js";
import { decode } from "./model/trace.js";
import { calm } from "./drawing/viewport.js";
import { keyNamed, keyTitle, leafOf, numberAt } from "./engine/keys.js";
import { whatIf } from "./panels/whatif.js";

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
 * @typedef {object} Looks
 * @property {boolean} [autoplay] unless the user prefers reduced motion
 * @property {"light" | "dark" | "auto"} [theme]
 * @property {number | null} [height] maximum height of the drawing, in pixels
 * @property {string[] | null} [show] the parts to include, of PANELS, "inspector" and "transport"; default: all
 */

/** @typedef {{[key in keyof State]?: State[key] | null} & Looks} Options */

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
  "what-if": whatIf,
  table,
  stops,
  alarms,
  search: finder,
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
  const { draw, keys, drawing } = assemble(host, s, options, focus);
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
  const update = (/** @type {string} */ what, /** @type {any} */ changed) => {
    keepFocus(root, () => fill(app, ...draw(what, changed), keys.dialog));
    drawing.update(what, changed);
    if (what === "picked") focus(".current [type=range]");
  };
  update("numbers", null);
  drawing.update("selected", null);
  s.listeners.add(update);
  const { position, expanded, playing, ...rest } = options;
  restore(s, {
    .../** @type {Partial<State>} */ (rest),
    playing: playing || (options.autoplay && !calm()) || false,
  });
  return playerOf(s, host, app, () => {
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
function assemble(host, s, options, focus) {
  const shown = (/** @type {string} */ name) => !options.show || options.show.includes(name);
  const dialog = helpOverlay();
  const help = () => dialog.showModal();
  const present = () => (document.fullscreenElement ? document.exitFullscreen() : host.requestFullscreen());
  const drawing = stage(s);
  const guide = tour(s);
  const inspect = inspector(s);
  const inspected = shown("inspector");
  const able = (/** @type {string} */ name) => (name !== "predict" || canAsk(s)) && (name !== "what-if" || !s.graph.how);
  const names = Object.keys(TITLES).filter((name) => shown(name) && able(name));
  const { toggle, search, bar, panel } = tabs(s, names, drawing, focus);
  /** @type {Draw[]} */
  const parts = [
    guide.draw,
    ...(shown("transport") ? [controls(s, help)] : []),
    bar,
    saying(s),
    predicting(s),
    () => tag("div.stage", {}, drawing.element),
    legend(s),
    panel,
    () => inspected && s.selected !== null && inspect(),
  ];
  const leaveDrawing = () => (select(s, null), focus(".key.play"));
  return {
    drawing,
    keys: { tour: guide, drawing, dialog, help, present, leaveDrawing, toggle, search },
    draw: (/** @type {string} */ what, /** @type {any} */ changed) => parts.map((part) => part(what, changed)),
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
  const seen = /** @type {Record<string, import("./base/dom.js").Child>} */ ({});
  const toggle = (/** @type {string} */ name) => {
    if (!names.includes(name)) return;
    if (name === "predict") {
      setPredicting(s, s.limit === Infinity);
      focus("#mg-answer");
    } else {
      open = open === name ? "" : name;
      tell(s, "panel");
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
    bar(what) {
      if (what === "picked" && names.includes("what-if")) open = "what-if";
      return tag("div.tabs", { role: "group", label: "Panels" }, ...names.map(button), drawing.zoom);
    },
    /** @type {Draw} */
    panel(what, changed) {
      drawing.element.classList.toggle("short", open !== ""); // so that both are visible
      if (open) {
        panels[open] ??= PANELS[open](s, highlight);
        seen[open] = panels[open](what, changed);
      }
      return tag("div", {}, ...Object.keys(seen).map((name) => tag("div", { hidden: name !== open }, seen[name])));
    },
  };
}

/**
 * Create the public interface.
 * @param {Session} s @param {HTMLElement} host @param {HTMLElement} app @param {() => void} destroy
 */
function playerOf(s, host, app, destroy) {
  const state = () => stateOfPlayer(s);
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
      const again = new KeyboardEvent(event.type, { key: event.key, shiftKey: event.shiftKey, cancelable: true });
      if (!app.dispatchEvent(again)) event.preventDefault();
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
    value: (node) => s.playback.value(nodeCalled(s, node)),
    /**
     * Return the gradient of a node: its state, and how many contributions have arrived.
     * @param {string | number} node @returns {import("./base/types.js").Gradient}
     */
    gradient: (node) => s.playback.gradient(nodeCalled(s, node)),
    /** @param {number} block */
    expand: (block) => setExpanded(s, new Set([...s.expanded, block])),
    /** @param {"change"} event @param {(state: State) => void} listener @returns {() => void} removes the listener */
    on(event, listener) {
      const hear = (/** @type {string} */ what) => !["stops", "predicting", "panel"].includes(what) && listener(state());
      s.listeners.add(hear);
      return () => s.listeners.delete(hear);
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

/** @typedef {ReturnType<typeof playerOf>} Player */

/** @param {Session} s @param {string | number} node @returns {number} */
function nodeCalled({ graph }, node) {
  const same = (/** @type {string | null} */ name, /** @type {number} */ at) => (name ?? graph.title(at)) === node;
  const place = typeof node === "number" ? node : graph.names.findIndex(same);
  if (graph.kind[place] === undefined) throw new Error(`No such node: ${JSON.stringify(node)}.`);
  return place;
}

/** Return the full name of a leaf or an element. @param {Session} s @param {number} key */
const keyName = ({ graph }, key) => keyTitle(graph, key, graph.names[leafOf(graph, key)] ?? undefined);

/** @param {Session} s @returns {State} */
function stateOfPlayer(s) {
  return {
    position: s.playback.position,
    playing: s.playing,
    speed: s.speed,
    granularity: s.unit,
    values: Object.fromEntries([...s.overrides].map(([key, value]) => [keyName(s, key), value])),
    selected: s.selected,
    expanded: [...s.expanded].sort((a, b) => a - b),
  };
}

/** @param {Session} s @param {Partial<State>} part */
function restore(s, part) {
  if (part.speed || part.granularity) setOptions(s, part.speed || s.speed, part.granularity || s.unit);
  if (part.values) setValues(s, part.values);
  if (part.expanded) setExpanded(s, new Set(part.expanded));
  if (part.position != null && moveTo(s, part.position) && s.playing) arrive(s);
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
    const key = keyNamed(s.graph, name);
    if (key < 0) throw new Error(`No scalar leaf or element is called ${JSON.stringify(name)}.`);
    if (value !== null && value !== numberAt(s.graph, s.base, key)) leaves.set(key, value);
  }
  const same =
    leaves.size === s.overrides.size && [...leaves].every(([leaf, value]) => s.overrides.get(leaf) === value);
  if (same) return;
  s.overrides = leaves;
  recompute(s);
}
