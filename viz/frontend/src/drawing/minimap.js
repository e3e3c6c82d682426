/**
 * A minimap for a drawing larger than its viewport: all boxes, the active one, and the visible part. Pointing at it
 * moves the view. It has no keyboard interface, because the view scrolls and follows the steps by itself.
 */
import { max, min, round } from "../base/math.js";
import { setAttributes, createSvg, h, setVisible } from "../base/dom.js";

/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./viewport.js").Rect} Rect */

const MIN_ITEMS = 15; // items: fewer are found without a map

/** @param {{look: (x: number, y: number) => void}} listeners `scrollTo` scrolls to a point of the drawing */
export function minimap({ look: scrollTo }) {
  const boxes = createSvg("path", { class: "boxes" });
  const activeRect = createSvg("rect", { class: "now" });
  const visibleRect = createSvg("rect", { class: "seen" });
  const point = (/** @type {PointerEvent} */ event) => {
    if (!event.buttons) return;
    const at = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM()?.inverse());
    scrollTo(at.x, at.y);
  };
  const startDrag = (/** @type {PointerEvent} */ event) => {
    svg.setPointerCapture(event.pointerId);
    point(event);
  };
  const svg = /** @type {SVGSVGElement} */ (
    createSvg("svg", { onpointerdown: startDrag, onpointermove: point }, boxes, activeRect, visibleRect)
  );
  const element = h("div", { class: "minimap", "aria-hidden": "true" }, svg);
  const placeRect = (/** @type {Element} */ rect, /** @type {Rect} */ box) => {
    const [x, y, width, height] = [box.x, box.y, box.w, box.h].map((length) => max(0, round(length)));
    setAttributes(rect, { x, y, width, height });
  };
  const size = { width: 0, height: 0, items: 0 };
  return {
    element,
    /** @param {Scene} scene */
    setScene({ items, width, height }) {
      Object.assign(size, { width, height, items: items.length });
      setAttributes(svg, { viewBox: `0 0 ${width} ${height}` });
      setAttributes(boxes, { d: items.map(({ x, y, w, h: boxHeight }) => `M${x} ${y}h${w}v${boxHeight}h${-w}z`).join("") });
    },
    /** @param {Rect | null} item the active one */
    active: (item) => placeRect(activeRect, item ?? { x: 0, y: 0, w: 0, h: 0 }),
    /** @param {Rect} part the visible part of the drawing */
    frame(part) {
      setVisible(element, size.items >= MIN_ITEMS && (part.w < size.width - 1 || part.h < size.height - 1));
      const [x, y] = [max(0, part.x), max(0, part.y)];
      placeRect(visibleRect, { x, y, w: min(part.w, size.width - x), h: min(part.h, size.height - y) });
    },
  };
}
