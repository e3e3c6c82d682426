/** The place of the drawing: chooses SVG or canvas by how much there is to see, and gives what changed to it. */

import { collapseAll, expandAll, visible } from "./blocks.js";
import { canvasView } from "./canvas.js";
import { h } from "./dom.js";
import { toggleBlock } from "./inspector.js";
import { scene } from "./scene.js";
import { select, setExpanded } from "./session.js";
import { svgView } from "./svg.js";

const SVG_UP_TO = 1500; // items: panning more of them takes longer than a frame
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
  const build = () => {
    const drawing = scene(s.graph, visible(s.graph, s.expanded));
    const wide = drawing.items.length > SVG_UP_TO;
    if (view && wide === large) return view.setScene(drawing, s.playback);
    view?.destroy();
    large = wide;
    view = (wide ? canvasView : svgView)(place, s.graph, s.playback, drawing, listeners);
  };
  return {
    element: h("div", { class: "canvas" }, place, zoomButtons(s, () => view)),
    place,
    get view() {
      return view;
    },
    /** @param {string} what @param {any} changed */
    update(what, changed) {
      if (!view || what === "expanded" || what === "pass") build();
      if (what === "moved") view.update(changed);
      if (what === "numbers") view.update(null);
      if (what === "numbers" || what === "expanded") grey(s, place);
      if (what !== "selected" && what !== "expanded") return;
      view.select(s.selected);
      if (s.selected) view.reveal(s.selected);
    },
    destroy: () => view?.destroy(),
  };
}

/** @param {any} s @param {() => any} view */
function zoomButtons(s, view) {
  const button = (/** @type {string} */ sign, /** @type {string} */ label, /** @type {() => void} */ act) =>
    h("button", { class: "quiet", "aria-label": label, title: label, onclick: act }, sign);
  const blocks = s.graph.blocks.length > 1;
  return h(
    "div",
    { class: "zoom" },
    blocks && button("⊟", "Close all blocks", () => setExpanded(s, collapseAll())),
    blocks && s.graph.count <= MOST_OPEN && button("⊞", "Open all blocks", () => setExpanded(s, expandAll(s.graph))),
    button("−", "Smaller", () => view().zoom(0.8)),
    button("⤢", "Fit", () => view().fit()),
    button("+", "Larger", () => view().zoom(1.25)),
  );
}

/** While a leaf holds another number, what cannot be computed again is grey. @param {any} s @param {HTMLElement} place */
function grey(s, place) {
  if (s.engine === null) return;
  for (const item of place.querySelectorAll("[data-id^=n]")) {
    const node = Number(item.getAttribute("data-id")?.slice(1));
    item.toggleAttribute("data-unable", s.overrides.size > 0 && s.engine.why(node) !== null);
  }
}
