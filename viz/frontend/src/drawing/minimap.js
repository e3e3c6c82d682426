/**
 * A minimap for a drawing larger than its viewport: all boxes, the active one, and the visible part. Pointing at it
 * moves the view. It has no keyboard interface, because the view scrolls and follows the steps by itself.
 */
import { max, min, round } from "../base/math.js";
import { dress, drawn, h, show } from "../base/dom.js";

/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./viewport.js").Rect} Rect */

const LEAST = 15; // items: fewer are found without a map

/** @param {{look: (x: number, y: number) => void}} listeners `look` scrolls to a point of the drawing */
export function minimap({ look }) {
  const boxes = drawn("path", { class: "boxes" });
  const now = drawn("rect", { class: "now" });
  const seen = drawn("rect", { class: "seen" });
  const point = (/** @type {PointerEvent} */ event) => {
    if (!event.buttons) return;
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM()?.inverse());
    look(at.x, at.y);
  };
  const hold = (/** @type {PointerEvent} */ event) => {
    svg.setPointerCapture(event.pointerId);
    point(event);
  };
  const svg = /** @type {SVGSVGElement} */ (
    drawn("svg", { onpointerdown: hold, onpointermove: point }, boxes, now, seen)
  );
  const element = h("div", { class: "minimap", "aria-hidden": "true" }, svg);
  const place = (/** @type {Element} */ rect, /** @type {Rect} */ box) => {
    const [x, y, width, height] = [box.x, box.y, box.w, box.h].map((length) => max(0, round(length)));
    dress(rect, { x, y, width, height });
  };
  const size = { width: 0, height: 0, items: 0 };
  return {
    element,
    /** @param {Scene} scene */
    setScene({ items, width, height }) {
      Object.assign(size, { width, height, items: items.length });
      dress(svg, { viewBox: `0 0 ${width} ${height}` });
      dress(boxes, { d: items.map(({ x, y, w, h: high }) => `M${x} ${y}h${w}v${high}h${-w}z`).join("") });
    },
    /** @param {Rect | null} item the active one */
    active: (item) => place(now, item ?? { x: 0, y: 0, w: 0, h: 0 }),
    /** @param {Rect} part the visible part of the drawing */
    frame(part) {
      show(element, size.items >= LEAST && (part.w < size.width - 1 || part.h < size.height - 1));
      const [x, y] = [max(0, part.x), max(0, part.y)];
      place(seen, { x, y, w: min(part.w, size.width - x), h: min(part.h, size.height - y) });
    },
  };
}
