/**
 * All keys. ← and → step, wherever in the player the focus is; with Alt the arrows walk along the edges of the drawing.
 * A field that is typed into keeps its keys, and a slider its arrows.
 */

import { h } from "../base/dom.js";
import { wayOf } from "../drawing/roving.js";
import { shownNode, toggleBlock, toggleNodeStop } from "./inspector.js";
import { moveTo, select, selectedBlock, setPlaying, stepBy } from "./session.js";

/** @typedef {import("./session.js").Session} Session */

const KEYS = [
  ["← →", "step back, step forward"],
  ["Shift ← →", "step a whole operation"],
  ["Home End", "first, last"],
  ["Space", "play, pause; in a tour: go on"],
  ["Alt ← → ↑ ↓", "walk along the edges; Enter selects the node"],
  ["B", "stop here: a breakpoint on the node shown"],
  ["E", "expand or collapse the block"],
  ["+ − 0", "larger, smaller; all of it, and back"],
  ["P", "predict the next gradient"],
  ["W T S A", "what if, table, stops, alarms"],
  ["/", "search"],
  ["F", "present: large, on the whole screen"],
  ["Esc", "close the inspector; leave the drawing"],
];

/** The overlay that says which keys there are. */
export function helpOverlay() {
  const rows = KEYS.map(([keys, text]) =>
    h("div.row", {}, h("dt", {}, h("kbd", {}, keys)), h("dd", {}, text)),
  );
  const element = h(
    "dialog.help",
    { label: "Keys" },
    h("strong.title", {}, "Keys"),
    h("dl", {}, ...rows),
    h("button.main", { onclick: () => element.close() }, "Close"),
  );
  return element;
}

/**
 * What a key does, or undefined.
 * @param {Session} s @param {any} parts @param {KeyboardEvent} event
 * @param {boolean} drawing whether the drawing has the focus
 * @returns {(() => unknown) | undefined}
 */
function meaning(s, parts, event, drawing) {
  const unit = event.shiftKey ? "op" : s.unit;
  /** @type {Record<string, () => unknown>} */
  const keys = {
    ArrowLeft: () => stepBy(s, -1, unit),
    ArrowRight: () => stepBy(s, 1, unit),
    Home: () => moveTo(s, 0),
    End: () => moveTo(s, s.line.last),
    " ": () => (parts.tour.running ? parts.tour.next() : setPlaying(s, !s.playing)),
    b: () => toggleNodeStop(s),
    e: () => toggleBlockAt(s),
    p: () => parts.toggle("predict"),
    w: () => parts.toggle("what-if"),
    t: () => parts.toggle("table"),
    s: () => parts.toggle("stops"),
    a: () => parts.toggle("alarms"),
    "/": () => parts.search(),
    f: () => parts.present(),
    "+": () => parts.drawing.view.zoom(1.25),
    "-": () => parts.drawing.view.zoom(0.8),
    0: () => parts.drawing.view.fit(),
    "?": () => parts.help(),
    Escape: () => (drawing ? parts.leaveDrawing() : select(s, null)),
  };
  return keys[event.key.length === 1 ? event.key.toLowerCase() : event.key];
}

/** Opens or closes the selected block, or the one around the node shown. @param {Session} s */
export function toggleBlockAt(s) {
  const chosen = selectedBlock(s);
  const block = chosen < 0 ? s.graph.block[shownNode(s)] : chosen;
  if (block > 0) toggleBlock(s, block);
}

/** @param {Session} s @param {any} parts @param {KeyboardEvent} event */
export function pressKey(s, parts, event) {
  if (event.defaultPrevented || event.ctrlKey || event.metaKey) return;
  const target = /** @type {HTMLElement} */ (event.composedPath()[0]);
  if (parts.dialog.open) return event.stopPropagation();
  if (event.altKey) return walk(parts, event);
  if (event.key === "Enter" && submit(target)) return event.preventDefault();
  if (!free(target, event.key)) return;
  const act = meaning(s, parts, event, parts.drawing.place.contains(target));
  if (!act) return;
  event.preventDefault();
  event.stopPropagation();
  const item = "be".includes(event.key.toLowerCase()) ? target.closest("[data-id]") : null;
  if (item) select(s, item.getAttribute("data-id"));
  act();
}

/** Alt and an arrow: else a browser would leave the page. @param {any} parts @param {KeyboardEvent} event */
function walk(parts, event) {
  const way = wayOf(event.key);
  if (!way) return;
  event.preventDefault();
  event.stopPropagation();
  parts.drawing.view.walk(way);
}

/**
 * What Enter does in a field by itself, but not where a page refuses line breaks, as JupyterLab around its outputs.
 * @param {HTMLElement} target @returns {boolean} whether there is a form to submit
 */
function submit(target) {
  const form = target.localName === "input" && /** @type {HTMLInputElement} */ (target).form;
  if (form) form.requestSubmit();
  return Boolean(form);
}

/** Whether an element leaves a key to the player. @param {HTMLElement} target @param {string} key */
function free(target, key) {
  if (key === "Escape") return true;
  const tag = target.localName;
  if (tag === "button") return key !== " " && key !== "Enter";
  if (tag === "select" || tag === "textarea") return false;
  if (tag !== "input") return true;
  const slider = /** @type {HTMLInputElement} */ (target).type === "range";
  if (target.classList.contains("scrub")) return key !== "ArrowUp" && key !== "ArrowDown";
  return slider && key.length === 1;
}
