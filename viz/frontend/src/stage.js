/** The place of the drawing: chooses SVG or canvas by how much there is to see, and gives what changed to it. */

import { collapseAll, expandAll, visible } from "./blocks.js";
import { canvasView } from "./canvas.js";
import { h } from "./dom.js";
import { shownNode, toggleBlock } from "./inspector.js";
import { minimap } from "./minimap.js";
import { overview } from "./overview.js";
import { firstIn, scene } from "./scene.js";
import { select, setExpanded } from "./session.js";
import { svgView } from "./svg.js";

const SVG_UP_TO = 1500; // items: panning more of them takes longer than a frame
const MAP_FROM = 400; // nodes: of fewer the map shows boxes, not nodes
const MOST_OPEN = 5000; // nodes that are worth seeing all at once

/** @param {any} s */
export function stage(s) {
  const place = h("div", { class: "place" });
  const listeners = {
    select: (/** @type {string | null} */ id) => select(s, id),
    toggle: (/** @type {number} */ block) => toggleBlock(s, block),
  };
  let view = /** @type {any} */ (null);
  let large = false;
  let drawing = /** @type {any} */ (null);
  const element = h("div", { class: "canvas" }, place);
  const map =
    s.graph.count < MAP_FROM
      ? null
      : overview(element, s.graph, s.playback, { reveal: (node) => select(s, `n${node}`) });
  const mini = map ? null : minimap({ look: (x, y) => view.look(x, y) });
  if (mini) element.append(mini.element);
  const frame = () => {
    mini?.frame(view.shown());
    map?.frame(seenNodes(drawing, view.shown()));
  };
  const active = () => {
    const { node } = s.playback.moment();
    mini?.active(node < 0 ? null : drawing.items[drawing.itemOf(node)]);
  };
  const watch = new ResizeObserver(frame);
  const build = () => {
    drawing = scene(s.graph, visible(s.graph, s.expanded));
    const wide = drawing.items.length > SVG_UP_TO;
    mini?.setScene(drawing);
    if (view && wide === large) return view.setScene(drawing, s.playback);
    watch.disconnect();
    view?.destroy();
    large = wide;
    view = (wide ? canvasView : svgView)(place, s.graph, s.playback, drawing, listeners);
    view.element.addEventListener("scroll", frame, { passive: true });
    for (const sized of [view.element, view.element.firstChild]) watch.observe(sized);
  };
  return {
    element,
    place,
    zoom: zoomButtons(s, () => view),
    get view() {
      return view;
    },
    /** @param {string} what @param {any} changed */
    update(what, changed) {
      if (!view || what === "expanded" || what === "pass") build();
      active();
      if (what === "moved") for (const one of [view, map]) one?.update(changed);
      if (what === "numbers") for (const one of [view, map]) one?.update(null);
      if (what === "pass") map?.setPlayback(s.playback);
      if (what === "numbers" || what === "expanded") grey(s, place);
      if (what !== "selected" && what !== "expanded") return;
      view.select(s.selected);
      const id = s.selected || what === "expanded" ? shownItem(s, drawing) : null;
      if (id !== null) view.reveal(id);
    },
    destroy() {
      watch.disconnect();
      view?.destroy();
      map?.destroy();
    },
  };
}

/**
 * The item to look at: of what is selected (an open block: of the first node inside), or else of the present moment.
 * @param {any} s
 * @param {any} drawing
 */
function shownItem(s, drawing) {
  const { selected, graph } = s;
  const node = selected?.[0] === "b" ? firstIn(graph, Number(selected.slice(1))) : shownNode(s);
  return node < 0 ? null : drawing.items[drawing.itemOf(node)].id;
}

/**
 * The nodes whose cards are seen.
 * @param {any} drawing
 * @param {{x: number, y: number, w: number, h: number}} seen
 * @returns {number[]}
 */
function seenNodes(drawing, { x, y, w, h: high }) {
  const inside = drawing.items.filter(
    (/** @type {any} */ item) =>
      item.node >= 0 && item.x < x + w && x < item.x + item.w && item.y < y + high && y < item.y + item.h,
  );
  return inside.map((/** @type {any} */ item) => item.node);
}

/** @param {any} s @param {() => any} view */
function zoomButtons(s, view) {
  const button = (/** @type {string} */ sign, /** @type {string} */ label, /** @type {() => void} */ act) =>
    h("button", { class: "quiet", "aria-label": label, title: label, onclick: act }, sign);
  const blocks = s.graph.blocks.length > 1;
  return h(
    "div",
    { class: "zoom", role: "group", "aria-label": "View" },
    blocks && button("⊟", "Close all blocks", () => setExpanded(s, collapseAll())),
    blocks && s.graph.count <= MOST_OPEN && button("⊞", "Open all blocks", () => setExpanded(s, expandAll(s.graph))),
    button("−", "Smaller", () => view().zoom(0.8)),
    button("⤢", "Fit", () => view().fit()),
    button("+", "Larger", () => view().zoom(1.25)),
  );
}

/**
 * While a leaf holds another number, what cannot be computed again is grey.
 * @param {any} s
 * @param {HTMLElement} place
 */
function grey(s, place) {
  if (s.engine === null) return;
  for (const item of place.querySelectorAll("[data-id^=n]")) {
    const node = Number(item.getAttribute("data-id")?.slice(1));
    item.toggleAttribute("data-unable", s.playback.unable(node));
  }
}
