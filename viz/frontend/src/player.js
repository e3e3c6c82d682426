/**
 * The player: everything around the drawing, in a shadow root. `mount` is the whole interface; what happens inside is
 * told
 * by one event, "change", whose state the setters of the player take.
 */

import { alarms } from "./panels/alarmlist.js";
import { controls, passChoice } from "./panels/controls.js";
import { h, show } from "./panels/dom.js";
import { finder } from "./panels/finder.js";
import { inspector } from "./panels/inspector.js";
import { helpOverlay, pressKey } from "./panels/keyboard.js";
import { predicting, setPredicting } from "./panels/predicting.js";
import { saying } from "./panels/saying.js";
import {
  arrive,
  choosePass,
  createSession,
  moveTo,
  recompute,
  select,
  setExpanded,
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

/**
 * What a widget keeps in step: `selected` is "n12", a node, or "b3", a block; `values` are the reader's own, by leaf.
 * @typedef {object} State
 * @property {number} position
 * @property {boolean} playing
 * @property {number} speed 0.25 … 4
 * @property {"edge" | "op"} granularity of a step
 * @property {Record<string, number>} values
 * @property {string | null} selected
 * @property {number[]} expanded blocks that are open
 */

/**
 * A state to begin with (the end of the forward pass if there is no position), and how the player looks.
 * @typedef {object} Looks
 * @property {boolean} [autoplay] unless the reader asked for little movement
 * @property {"light" | "dark" | "auto"} [theme]
 * @property {number | null} [height] of the drawing at most, in pixels
 * @property {string[] | null} [show] of PANELS, "inspector" and "transport" those that there are; all if not given
 */

/** @typedef {{[key in keyof State]?: State[key] | null} & Looks} Options */

const PANELS = ["predict", "what-if", "table", "stops", "alarms", "search"];
const TITLES = {
  predict: "Predict",
  "what-if": "What if",
  table: "Table",
  stops: "Stops",
  alarms: "Alarms",
  search: "Search",
};

/**
 * Puts a player into an element.
 * @param {HTMLElement} host @param {any} traceData as JSON has it @param {Options} [options]
 */
export function mount(host, traceData, options = {}) {
  const s = createSession(decode(traceData), options);
  const root = host.shadowRoot ?? host.attachShadow({ mode: "open" });
  const parts = assemble(s, options);
  const style = h("style", {}, drawingStyle() + shellStyle());
  root.replaceChildren(style, parts.app, parts.dialog);
  host.dataset.lmSuppressShortcuts = "true";
  if (options.height) host.style.setProperty("--mg-view-height", `${options.height}px`);
  let unfollow = () => {};
  if (options.theme === "light" || options.theme === "dark") host.dataset.mgTheme = options.theme;
  else unfollow = followTheme(host, parts.stage.repaint);
  const press = (/** @type {Event} */ event) => pressKey(s, parts.keys, /** @type {KeyboardEvent} */ (event));
  root.addEventListener("keydown", press);
  s.listeners.add(parts.update);
  for (const what of ["numbers", "options", "selected"]) parts.update(what, null);
  parts.tour.start();
  const { position, expanded, playing, ...rest } = options;
  restore(s, {
    .../** @type {Partial<State>} */ (rest),
    playing: playing || (options.autoplay && !calm()) || false,
  });
  return playerOf(s, host, () => {
    setPlaying(s, false);
    unfollow();
    root.removeEventListener("keydown", press);
    parts.stage.destroy();
    root.replaceChildren();
  });
}

/**
 * What lies behind the toggles.
 * @param {any} s
 * @param {ReturnType<typeof stage>} drawing
 * @returns {Record<string, any>}
 */
function panelsOf(s, drawing) {
  const highlight = (/** @type {number[]} */ nodes) => drawing.view.mark(nodes);
  return {
    "what-if": whatIf(s),
    table: table(s),
    stops: stops(s),
    alarms: alarms(s, highlight),
    search: finder(s, highlight),
  };
}

/** Makes all parts and puts them in their places. @param {any} s @param {Options} options */
function assemble(s, options) {
  const shown = (/** @type {string} */ name) => !options.show || options.show.includes(name);
  const dialog = helpOverlay();
  const help = () => dialog.showModal();
  const parts = {
    controls: controls(s, help),
    saying: saying(s),
    predict: predicting(s),
    tour: tour(s),
    stage: stage(s),
    inspector: inspector(s),
  };
  const panels = panelsOf(s, parts.stage);
  const tabs = tabsOf(s, PANELS.filter(shown), panels, parts);
  parts.controls.element.append(passChoice(s, (pass) => choosePass(s, pass)));
  show(parts.controls.element, shown("transport"));
  show(parts.inspector.element, shown("inspector"));
  const middle = h(
    "div",
    { class: shown("inspector") ? "stage" : "stage alone" },
    parts.stage.element,
    parts.inspector.element,
  );
  const { tour: guide, controls: bar, saying: say, predict } = parts;
  const inside = [
    guide.element,
    bar.element,
    say.element,
    predict.element,
    middle,
    tabs.element,
    ...Object.values(panels).map((panel) => panel.element),
  ];
  const app = h("div", { class: "app", role: "group", "aria-label": `Player: ${s.graph.sentence}` }, ...inside);
  const leaveDrawing = () => (select(s, null), bar.play.focus());
  const keys = {
    tour: guide,
    stage: parts.stage.place,
    dialog,
    help,
    leaveDrawing,
    toggle: tabs.toggle,
    open: tabs.open,
  };
  const always = [parts.stage, bar, guide, say, predict, ...(shown("inspector") ? [parts.inspector] : [])];
  return {
    app,
    dialog,
    keys,
    stage: parts.stage,
    tour: guide,
    /** @param {any} what @param {any} changed */
    update(what, changed) {
      for (const part of always) part.update(what, changed);
      tabs.update(what, changed);
    },
  };
}

/**
 * The toggles, and the one panel that is open. A panel that is closed is not kept up to date.
 * @param {any} s @param {string[]} names @param {Record<string, any>} panels @param {any} parts
 */
function tabsOf(s, names, panels, parts) {
  let open = "";
  const alarmCount = s.graph.notes.length;
  const buttons = names.map((name) => {
    const title = /** @type {Record<string, string>} */ (TITLES)[name];
    const button = h("button", { onclick: () => toggle(name) }, title);
    if (name === "alarms" && alarmCount) button.append(h("span", { class: "warn" }, ` ! ${alarmCount}`));
    return button;
  });
  for (const panel of Object.values(panels)) panel.element.hidden = true;
  /** @param {string} name */
  function toggle(name) {
    if (!names.includes(name)) return;
    if (name === "predict") {
      setPredicting(s, s.limit === Infinity);
      return void (s.limit < Infinity && parts.predict.input.focus());
    }
    open = open === name ? "" : name;
    for (const [key, panel] of Object.entries(panels)) show(panel.element, key === open);
    if (open) panels[open].update("numbers", null);
    panels[open]?.input?.focus();
    draw();
  }
  function draw() {
    buttons.forEach((button, i) => {
      if (names[i] === "predict") button.setAttribute("aria-pressed", String(s.limit < Infinity));
      else button.setAttribute("aria-expanded", String(names[i] === open));
    });
  }
  draw();
  return {
    element: h("div", { class: "tabs", role: "group", "aria-label": "Panels" }, ...buttons, parts.stage.zoom),
    toggle,
    /** @param {string} name */
    open(name) {
      if (open !== name) toggle(name);
      else panels[name].input.focus();
    },
    /** @param {string} what @param {any} changed */
    update(what, changed) {
      if (what === "picked" && open !== "what-if") toggle("what-if");
      if (open) panels[open].update(what, changed);
      if (what === "predicting" || what === "pass") draw();
    },
  };
}

/** What the outside may do. @param {any} s @param {HTMLElement} host @param {() => void} destroy */
function playerOf(s, host, destroy) {
  const state = () => stateOfPlayer(s);
  return {
    element: host,
    state,
    /** Takes a state back, or a part of it. @param {Partial<State>} part */
    restore: (part) => restore(s, part),
    play: () => setPlaying(s, true),
    pause: () => setPlaying(s, false),
    /** @param {number} way @param {"edge" | "op"} [unit] */
    step: (way, unit) => stepBy(s, way, unit),
    /** Gives a leaf another number; null gives it its own back. @param {string} name @param {number | null} value */
    set: (name, value) => restore(s, { values: /** @type {any} */ ({ ...state().values, [name]: value }) }),
    /** What happens at the position, in full numbers. @returns {import("./types.js").Moment} */
    moment: () => s.playback.moment(),
    /**
     * What is in a node, given by name or place; null while it is not known.
     * @param {string | number} node @returns {import("./types.js").Quantity | null}
     */
    value: (node) => s.playback.value(nodeCalled(s, node)),
    /**
     * The gradient of a node: its state, and how much of it has arrived.
     * @param {string | number} node @returns {import("./types.js").Gradient}
     */
    gradient: (node) => s.playback.gradient(nodeCalled(s, node)),
    /** @param {number} block */
    expand: (block) => setExpanded(s, new Set([...s.expanded, block])),
    /** @param {"change"} event @param {(state: State) => void} listener @returns {() => void} ends it */
    on(event, listener) {
      const hear = (/** @type {string} */ what) => what !== "stops" && what !== "predicting" && listener(state());
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

/** @param {any} s @param {string | number} node @returns {number} */
function nodeCalled({ graph }, node) {
  const same = (/** @type {string | null} */ name, /** @type {number} */ at) => (name ?? graph.title(at)) === node;
  const place = typeof node === "number" ? node : graph.names.findIndex(same);
  if (graph.kind[place] === undefined) throw new Error(`There is no node ${JSON.stringify(node)}.`);
  return place;
}

/** The name of a leaf or of an element, whole. @param {any} s @param {number} key */
const keyName = ({ graph }, key) => keyTitle(graph, key, graph.names[leafOf(graph, key)] ?? undefined);

/** @param {any} s @returns {State} */
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

/** @param {any} s @param {Partial<State>} part */
function restore(s, part) {
  if (part.speed) s.speed = part.speed;
  if (part.granularity) s.unit = part.granularity;
  if (part.speed || part.granularity) tell(s, "options");
  if (part.values) setValues(s, part.values);
  if (part.expanded) setExpanded(s, new Set(part.expanded));
  if (part.position != null && moveTo(s, part.position) && s.playing) arrive(s);
  if (part.selected !== undefined) select(s, part.selected);
  if (part.playing !== undefined && part.playing !== s.playing) setPlaying(s, part.playing);
}

/**
 * The numbers of leaves and elements, by name; one that is not there has its own.
 * @param {any} s
 * @param {Record<string, number | null>} values
 */
function setValues(s, values) {
  const leaves = new Map();
  for (const [name, value] of Object.entries(values)) {
    const key = keyNamed(s.graph, name);
    if (key < 0) throw new Error(`There is no leaf ${JSON.stringify(name)} that holds one number, nor such an element.`);
    if (value !== null && value !== numberAt(s.graph, s.base, key)) leaves.set(key, value);
  }
  const same =
    leaves.size === s.overrides.size && [...leaves].every(([leaf, value]) => s.overrides.get(leaf) === value);
  if (same) return;
  s.overrides = leaves;
  recompute(s);
}
