/** The container of the drawing and its minimap. */

import { collapseAll, expandAll, visibleItems } from "../model/blocks.js";
import { h, tag } from "../base/dom.js";
import { inspectedNode, toggleBlock } from "./inspector.js";
import { questionPosition } from "./prediction.js";
import { minimap } from "../drawing/minimap.js";
import { firstNodeIn, scene } from "../drawing/scene.js";
import { select, selectedBlock, setExpanded } from "./session.js";
import { createView } from "../drawing/view.js";
import { READABLE } from "../drawing/viewport.js";

/** @typedef {import("./session.js").Session} Session */
/** @typedef {import("../drawing/scene.js").Scene} Scene */
/** @typedef {ReturnType<typeof createView>} View */
/** @typedef {{view: View, drawing: Scene}} StageState both are there from the first `update` on */

const MAX_LARGE_ITEMS = 100; // items: more do not fit with large cards
const MAX_EXPANDED = 5000; // nodes up to which opening all blocks is useful

/** @param {Session} s */
export function stage(s) {
  const container = h("div.place");
  const listeners = {
    select: (/** @type {string | null} */ id) => select(s, id),
    toggle: (/** @type {number} */ block) => toggleBlock(s, block),
  };
  const element = h("div.canvas", {}, container);
  const state = /** @type {StageState} */ (/** @type {unknown} */ ({ view: null, drawing: null }));
  const maps = createMinimap(s, element, state);
  return {
    element,
    place: container,
    zoom: zoomButtons(s, () => state.view),
    get view() {
      return state.view;
    },
    /** @param {string} change @param {any} changed */
    update(change, changed) {
      const isRebuilt = !state.view || change === "expanded" || change === "pass";
      if (isRebuilt) updateDrawing(s, container, state, maps, listeners);
      maps.active();
      if (change === "moved") state.view.update(changed);
      if (change === "numbers" && !isRebuilt) state.view.renumber();
      const next = questionPosition(s);
      if (next >= 0) state.view.reveal(state.drawing.items[state.drawing.itemOf(s.timeline.nodeAt(next))].id);
      if (change !== "selected" && change !== "expanded") return;
      state.view.select(s.selected);
      const id = s.selected || change === "expanded" ? shownItem(s, state.drawing) : null;
      if (id !== null) state.view.reveal(id);
    },
    /** Repaint after a theme change. */
    repaint() {
      state.view?.update(null);
    },
    destroy() {
      maps.watch?.disconnect();
      state.view?.destroy();
    },
  };
}

/**
 * Create the minimap below the drawing, and keep it in sync.
 * @param {Session} s @param {HTMLElement} element @param {StageState} state
 */
function createMinimap(s, element, state) {
  const map = minimap({ look: (x, y) => state.view.centreOn(x, y) });
  element.append(map.element);
  const active = () => {
    const { node } = s.playback.moment();
    map.active(node < 0 ? null : state.drawing.items[state.drawing.itemOf(node)]);
  };
  const frame = () => map.frame(state.view.shown());
  return { map, frame, active, watch: /** @type {ResizeObserver | null} */ (null) };
}

/**
 * Create or update the drawing.
 * @param {Session} s @param {HTMLElement} container @param {StageState} state
 * @param {ReturnType<typeof createMinimap>} maps @param {import("../drawing/view.js").Listeners} listeners
 */
function updateDrawing(s, container, state, maps, listeners) {
  const visible = visibleItems(s.graph, s.expanded);
  const largeScene = visible.items.length > MAX_LARGE_ITEMS ? null : scene(s.graph, visible);
  const drawing = largeScene && largeScene.width * READABLE <= container.clientWidth ? largeScene : scene(s.graph, visible, true);
  state.drawing = drawing;
  maps.map.setScene(drawing);
  if (state.view) return state.view.setScene(drawing, s.playback);
  const view = createView(container, s.graph, s.playback, drawing, listeners);
  state.view = view;
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
  const node = block < 0 ? inspectedNode(s) : firstNodeIn(s.graph, block);
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
    blocks && s.graph.count <= MAX_EXPANDED && button("⊞", "Expand all blocks", () => setExpanded(s, expandAll(s.graph))),
    button("−", "Zoom out (−)", () => view().zoom(0.8)),
    button("⤢", "Fit, and back (0)", () => view().fit()),
    button("+", "Zoom in (+)", () => view().zoom(1.25)),
  );
}
