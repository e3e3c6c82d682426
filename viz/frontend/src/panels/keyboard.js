/**
 * Keyboard shortcuts. ← and → step, wherever the focus is in the player; with Alt the arrow keys follow the edges of
 * the drawing. Text fields keep their keys, and sliders their arrow keys.
 */

import { h } from "../base/dom.js";
import { keyDirection } from "../drawing/navigation.js";
import { inspectedNode, toggleBlock, toggleNodeBreakpoint } from "./inspector.js";
import { moveTo, select, selectedBlock, setPlaying, stepBy } from "./session.js";

/** @typedef {import("./session.js").Session} Session */

/** @typedef {(s: Session, parts: any, unit: "edge" | "op", drawing: boolean) => unknown} Act */

/**
 * Keys, their descriptions for the help, and their actions; `unit` is the step size, `drawing` whether the drawing has
 * the focus. `walk` handles the keys with Alt.
 * @type {[keys: string, text: string, acts: Record<string, Act>][]}
 */
const KEYS = [
  ["← →", "step back, step forward", {
    ArrowLeft: (s, parts, unit) => stepBy(s, -1, unit),
    ArrowRight: (s, parts, unit) => stepBy(s, 1, unit),
  }],
  ["Shift ← →", "step by an operation", {}],
  ["Home End", "first, last", { Home: (s) => moveTo(s, 0), End: (s) => moveTo(s, s.timeline.last) }],
  ["Space", "play, pause; in a tour: continue", {
    " ": (s, { tour }) => (tour.running ? tour.next() : setPlaying(s, !s.playing)),
  }],
  ["Alt ← → ↑ ↓", "move along the edges; Enter selects the node", {}],
  ["B", "breakpoint on the inspected node", { b: toggleNodeBreakpoint }],
  ["E", "expand or collapse the block", { e: toggleCurrentBlock }],
  ["+ − 0", "zoom in, zoom out; fit, and back", {
    "+": (s, { drawing }) => drawing.view.zoom(1.25),
    "-": (s, { drawing }) => drawing.view.zoom(0.8),
    0: (s, { drawing }) => drawing.view.fit(),
  }],
  ["P", "predict the next gradient", { p: (s, parts) => parts.toggle("predict") }],
  ["W T S A", "what if, table, breakpoints, alarms", {
    w: (s, parts) => parts.toggle("what-if"),
    t: (s, parts) => parts.toggle("table"),
    s: (s, parts) => parts.toggle("stops"),
    a: (s, parts) => parts.toggle("alarms"),
  }],
  ["/", "search", { "/": (s, parts) => parts.search() }],
  ["F", "presentation mode, full screen", { f: (s, parts) => parts.present() }],
  ["Esc", "close the inspector; leave the drawing", {
    Escape: (s, parts, unit, drawing) => (drawing ? parts.leaveDrawing() : select(s, null)),
  }],
  ["", "", { "?": (s, parts) => parts.help() }], // the help itself, which also has a button
];

/** Create the help dialog. */
export function helpDialog() {
  const rows = KEYS.filter(([keys]) => keys).map(([keys, text]) =>
    h("div.row", {}, h("dt", {}, h("kbd", {}, keys)), h("dd", {}, text)),
  );
  const element = h(
    "dialog.help",
    { label: "Shortcuts" },
    h("strong.title", {}, "Keyboard shortcuts"),
    h("dl", {}, ...rows),
    h("button.main", { onclick: () => element.close() }, "Close"),
  );
  return element;
}

/** Return the action of a key, or undefined. @param {string} key @returns {Act | undefined} */
function keyAction(key) {
  const name = key.length === 1 ? key.toLowerCase() : key;
  return KEYS.find(([, , acts]) => Object.hasOwn(acts, name))?.[2][name];
}

/** Open or close the selected block, or the one around the inspected node. @param {Session} s */
export function toggleCurrentBlock(s) {
  const chosen = selectedBlock(s);
  const block = chosen < 0 ? s.graph.block[inspectedNode(s)] : chosen;
  if (block > 0) toggleBlock(s, block);
}

/** @param {Session} s @param {any} parts @param {KeyboardEvent} event */
export function pressKey(s, parts, event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey) return;
  const target = /** @type {HTMLElement} */ (event.composedPath()[0]);
  if (parts.dialog.open) return event.stopPropagation();
  if (event.altKey) return walk(parts, event);
  if (event.key === "Enter" && submitForm(target)) return event.preventDefault();
  if (!isUnusedBy(target, event.key)) return;
  const act = keyAction(event.key);
  if (!act) return;
  event.preventDefault();
  event.stopPropagation();
  const item = "be".includes(event.key.toLowerCase()) ? target.closest("[data-id]") : null;
  if (item) select(s, item.getAttribute("data-id"));
  act(s, parts, event.shiftKey ? "op" : s.stepSize, parts.drawing.place.contains(target));
}

/**
 * Handle Alt and an arrow key, with which a browser would leave the page.
 * @param {any} parts @param {KeyboardEvent} event
 */
function walk(parts, event) {
  const direction = keyDirection(event.key);
  if (!direction) return;
  event.preventDefault();
  event.stopPropagation();
  parts.drawing.view.walk(direction);
}

/**
 * Submit a form on Enter, for pages that suppress the default action, as JupyterLab does around its outputs.
 * @param {HTMLElement} target @returns {boolean} whether there is a form
 */
function submitForm(target) {
  const form = target.localName === "input" && /** @type {HTMLInputElement} */ (target).form;
  if (form) form.requestSubmit();
  return Boolean(form);
}

/** Whether an element leaves a key to the player. @param {HTMLElement} target @param {string} key */
function isUnusedBy(target, key) {
  if (key === "Escape") return true;
  const tag = target.localName;
  if (tag === "button") return key !== " " && key !== "Enter";
  if (tag === "select" || tag === "textarea") return false;
  if (tag !== "input") return true;
  const slider = /** @type {HTMLInputElement} */ (target).type === "range";
  if (target.classList.contains("scrub")) return key !== "ArrowUp" && key !== "ArrowDown";
  return slider && key.length === 1;
}
