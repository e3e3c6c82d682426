/** The container of the drawing and its minimap. */

import { collapseAll, expandAll, visible } from "../model/blocks.js";
import { h, tag } from "../base/dom.js";
import { shownNode, toggleBlock } from "./inspector.js";
import { asked } from "./predicting.js";
import { minimap } from "../drawing/minimap.js";
import { firstIn, scene } from "../drawing/scene.js";
import { select, selectedBlock, setExpanded } from "./session.js";
import { drawingView } from "../drawing/view.js";
import { READABLE } from "../drawing/viewport.js";

/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("../drawing/scene.js").Scene} Scene */
/** @typedef {ReturnType<typeof drawingView>} View */
/** @typedef {{view: View, drawing: Scene}} Look both are there from the first `update` on */

const MANY = 100; // items: more do not fit with large cards
const MOST_OPEN = 5000; // nodes up to which opening all blocks is useful

/** @param {Session} s */
export function stage(s) {
  const place = h("div.place");
  const listeners = {
    select: (/** @type {string | null} */ id) => select(s, id),
    toggle: (/** @type {number} */ block) => toggleBlock(s, block),
  };
  const element = h("div.canvas", {}, place);
  const look = /** @type {Look} */ (/** @type {unknown} */ ({ view: null, drawing: null }));
  const maps = mapOf(s, element, look);
  return {
    element,
    place,
    zoom: zoomButtons(s, () => look.view),
    get view() {
      return look.view;
    },
    /** @param {string} what @param {any} changed */
    update(what, changed) {
      const fresh = !look.view || what === "expanded" || what === "pass";
      if (fresh) build(s, place, look, maps, listeners);
      maps.active();
      if (what === "moved") look.view.update(changed);
      if (what === "numbers" && !fresh) look.view.renumber();
      const next = asked(s);
      if (next >= 0) look.view.reveal(look.drawing.items[look.drawing.itemOf(s.line.nodeAt(next))].id);
      if (what !== "selected" && what !== "expanded") return;
      look.view.select(s.selected);
      const id = s.selected || what === "expanded" ? shownItem(s, look.drawing) : null;
      if (id !== null) look.view.reveal(id);
    },
    /** Repaint after a theme change. */
    repaint() {
      look.view?.update(null);
    },
    destroy() {
      maps.watch?.disconnect();
      look.view?.destroy();
    },
  };
}

/**
 * Create the minimap below the drawing, and keep it in sync.
 * @param {Session} s @param {HTMLElement} element @param {Look} look
 */
function mapOf(s, element, look) {
  const map = minimap({ look: (x, y) => look.view.look(x, y) });
  element.append(map.element);
  const active = () => {
    const { node } = s.playback.moment();
    map.active(node < 0 ? null : look.drawing.items[look.drawing.itemOf(node)]);
  };
  const frame = () => map.frame(look.view.shown());
  return { map, frame, active, watch: /** @type {ResizeObserver | null} */ (null) };
}

/**
 * Create or update the drawing.
 * @param {Session} s @param {HTMLElement} place @param {Look} look
 * @param {ReturnType<typeof mapOf>} maps @param {import("../drawing/view.js").Listeners} listeners
 */
function build(s, place, look, maps, listeners) {
  const seen = visible(s.graph, s.expanded);
  const wide = seen.items.length > MANY ? null : scene(s.graph, seen);
  const drawing = wide && wide.width * READABLE <= place.clientWidth ? wide : scene(s.graph, seen, true);
  look.drawing = drawing;
  maps.map.setScene(drawing);
  if (look.view) return look.view.setScene(drawing, s.playback);
  const view = drawingView(place, s.graph, s.playback, drawing, listeners);
  look.view = view;
  view.element.addEventListener("scroll", maps.frame, { passive: true });
  maps.watch = new ResizeObserver(maps.frame); // created after the view's own observer, so it is notified after the view has resized
  for (const sized of [view.element, view.element.firstElementChild]) if (sized) maps.watch.observe(sized);
}

/**
 * Return the item to scroll to: that of the selection (for an open block, of its first node), or of the current moment.
 * @param {Session} s
 * @param {Scene} drawing
 */
function shownItem(s, drawing) {
  const block = selectedBlock(s);
  const node = block < 0 ? shownNode(s) : firstIn(s.graph, block);
  return node < 0 ? null : drawing.items[drawing.itemOf(node)].id;
}

/** @param {Session} s @param {() => View} view */
function zoomButtons(s, view) {
  const button = (/** @type {string} */ sign, /** @type {string} */ title, /** @type {() => void} */ onclick) =>
    tag("button.quiet", { label: title, title, onclick }, sign);
  const blocks = s.graph.blocks.length > 1;
  return tag(
    "div.zoom",
    { role: "group", label: "View" },
    blocks && button("⊟", "Collapse all blocks", () => setExpanded(s, collapseAll())),
    blocks && s.graph.count <= MOST_OPEN && button("⊞", "Expand all blocks", () => setExpanded(s, expandAll(s.graph))),
    button("−", "Zoom out (−)", () => view().zoom(0.8)),
    button("⤢", "Fit, and back (0)", () => view().fit()),
    button("+", "Zoom in (+)", () => view().zoom(1.25)),
  );
}
