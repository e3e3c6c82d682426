/** The place of the drawing: chooses SVG or canvas by how much there is to see, and gives what changed to it. */

import { visible } from "./blocks.js";
import { canvasView } from "./canvas.js";
import { h } from "./dom.js";
import { toggleBlock } from "./inspector.js";
import { scene } from "./scene.js";
import { select } from "./session.js";
import { svgView } from "./svg.js";

const SVG_UP_TO = 1500;

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
    const seen = visible(s.graph, s.expanded);
    const drawing = scene(s.graph, seen);
    const wide = seen.items.length > SVG_UP_TO;
    if (view && wide === large) return view.setScene(drawing);
    view?.destroy();
    large = wide;
    view = (wide ? canvasView : svgView)(place, s.graph, s.playback, drawing, listeners);
  };
  const zoomBy = (/** @type {string} */ sign, /** @type {string} */ label, /** @type {() => void} */ act) =>
    h("button", { class: "quiet", "aria-label": label, title: label, onclick: act }, sign);
  const zoom = h(
    "div",
    { class: "zoom" },
    zoomBy("−", "Smaller", () => view.zoom(0.8)),
    zoomBy("⤢", "Fit", () => view.fit()),
    zoomBy("+", "Larger", () => view.zoom(1.25)),
  );
  return {
    element: h("div", { class: "canvas" }, place, zoom),
    place,
    get view() {
      return view;
    },
    /** @param {string} what @param {any} changed */
    update(what, changed) {
      if (!view || what === "expanded") build();
      if (what === "moved") view.update(changed);
      else if (what === "numbers") view.update(null);
      if (what === "selected" || what === "expanded") {
        view.select(s.selected);
        if (s.selected) view.reveal(s.selected);
      }
    },
    destroy: () => view?.destroy(),
  };
}
