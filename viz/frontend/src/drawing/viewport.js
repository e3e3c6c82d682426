/**
 * Looking at a drawing that is larger than its place: the browser's own scrolling, so that touch, keys, scroll bars and
 * assistive technology work as everywhere; with zoom by ctrl + wheel and pinch, and dragging by mouse.
 */
import { h } from "../panels/dom.js";

/** @typedef {{x: number, y: number, w: number, h: number}} Rect */

/**
 * @typedef {object} Viewport
 * @property {HTMLElement} view what scrolls
 * @property {HTMLElement} stage what is put into it, as large as the zoomed drawing
 * @property {() => number} scale
 * @property {(width: number, height: number, keep: boolean) => void} resize how large the drawing is; `keep` the zoom
 * @property {(factor: number, at?: [number, number]) => void} zoom around a point of the view, in pixels
 * @property {() => void} fit
 * @property {(rect: Rect) => void} reveal scrolls a part of the drawing into view, if it is not there
 * @property {() => Rect} shown the part of the drawing that is seen
 * @property {(x: number, y: number) => void} look puts a point of the drawing into the middle
 * @property {() => void} destroy
 */

const READABLE = 0.85; // of the natural size
const WHOLE = 0.8; // a little smaller still, where then all of it is seen
const [LEAST, MOST] = [0.004, 4];
const ROOM = 28; // around what is revealed

/** Whether the reader asked for little movement. @param {Element} element */
export function calm(element) {
  return element.ownerDocument.defaultView?.matchMedia("(prefers-reduced-motion: reduce)").matches ?? false;
}

/**
 * A view of a stage, its zoom, and what is seen through it.
 * @param {HTMLElement} view
 * @param {HTMLElement} stage
 * @param {() => void} moved
 */
function lens(view, stage, moved) {
  // Sizes and scrolling are remembered: to ask for them in a step would make the browser lay out in the middle of it.
  const at = { width: 1, height: 1, scale: 1, placed: false, left: 0, top: 0, w: 0, h: 0, margin: 0 };
  let wanted = /** @type {Rect | null} */ (null);
  let asked = 0;
  const follow = () => {
    asked = 0;
    if (wanted) scrollTo(view, at, wanted, calm(view) ? "instant" : "smooth");
    wanted = null;
  };
  const remember = () => Object.assign(at, { left: view.scrollLeft, top: view.scrollTop });
  const lookAround = () => {
    Object.assign(at, { w: view.clientWidth, h: view.clientHeight, margin: stage.offsetLeft });
    remember();
    moved();
  };

  const apply = (/** @type {number} */ scale) => {
    at.scale = Math.max(LEAST, Math.min(MOST, scale));
    stage.style.width = `${Math.ceil(at.width * at.scale)}px`;
    stage.style.height = `${Math.ceil(at.height * at.scale)}px`;
    lookAround();
  };
  const start = () => {
    if (at.placed || !view.clientWidth) return;
    at.placed = true;
    const whole = view.clientWidth / at.width;
    apply(whole < WHOLE ? READABLE : Math.min(1, whole));
    if (wanted) scrollTo(view, at, wanted, "instant");
    wanted = null;
    lookAround();
  };
  /** @type {Viewport["zoom"]} */
  const zoom = (factor, [x, y] = [view.clientWidth / 2, view.clientHeight / 2]) => {
    const before = at.scale;
    const [left, top] = [(view.scrollLeft + x - stage.offsetLeft) / before, (view.scrollTop + y) / before];
    apply(before * factor);
    view.scrollLeft = left * at.scale - x + stage.offsetLeft;
    view.scrollTop = top * at.scale - y;
    remember();
    moved();
  };
  const scrolled = () => {
    remember();
    moved();
  };
  const reveal = (/** @type {Rect} */ rect) => {
    wanted = rect;
    if (at.placed) asked ||= requestAnimationFrame(follow); // scrolling makes the browser lay out: once a frame
  };
  return { at, apply, start, zoom, scrolled, lookAround, reveal };
}

/**
 * @param {HTMLElement} host
 * @param {() => void} [moved] hears of scrolling, zooming and another size of the place
 * @returns {Viewport}
 */
export function viewport(host, moved = () => {}) {
  const stage = h("div", { class: "mg-stage" });
  const view = h("div", { class: "mg-view" }, stage);
  host.append(view);
  const { at, apply, start, zoom, scrolled, lookAround, reveal } = lens(view, stage, moved);
  const end = listenTo(view, zoom, scrolled);
  const observer = new ResizeObserver(() => {
    start();
    lookAround();
  });
  observer.observe(view);
  return {
    view,
    stage,
    scale: () => at.scale,
    resize(width, height, keep) {
      Object.assign(at, { width, height, placed: keep && at.placed });
      if (at.placed) apply(at.scale);
      else if (view.clientWidth) start();
      else apply(1);
    },
    zoom,
    fit: () => apply(Math.min(view.clientWidth / at.width, roomBelow(view) / at.height, 1)),
    reveal,
    look(x, y) {
      view.scrollLeft = x * at.scale + at.margin - at.w / 2;
      view.scrollTop = y * at.scale - at.h / 2;
    },
    shown: () => ({
      x: (at.left - at.margin) / at.scale,
      y: at.top / at.scale,
      w: at.w / at.scale,
      h: at.h / at.scale,
    }),
    destroy() {
      observer.disconnect();
      end();
      view.remove();
    },
  };
}

/** How high the view may become: what its style allows, or else what it is. @param {HTMLElement} view */
function roomBelow(view) {
  const most = parseFloat(getComputedStyle(view).maxHeight);
  return Number.isFinite(most) && most > 0 ? most : Math.max(view.clientHeight, 200);
}

/**
 * @param {HTMLElement} view
 * @param {{left: number, top: number, w: number, h: number, margin: number, scale: number}} at
 * @param {Rect} rect
 * @param {ScrollBehavior} behavior
 */
function scrollTo(view, at, rect, behavior) {
  const along = (
    /** @type {number} */ now,
    /** @type {number} */ room,
    /** @type {number} */ from,
    /** @type {number} */ size,
  ) => {
    if (size + 2 * ROOM > room) return from >= now && from + size <= now + room ? now : from - ROOM;
    if (from - ROOM < now) return from - ROOM - (room - size) / 4;
    return from + size + ROOM > now + room ? from + size + ROOM - room + (room - size) / 4 : now;
  };
  const left = along(at.left, at.w, rect.x * at.scale + at.margin, rect.w * at.scale);
  const top = along(at.top, at.h, rect.y * at.scale, rect.h * at.scale);
  if (left === at.left && top === at.top) return;
  view.scrollTo({ left, top, behavior });
}

/**
 * Wheel with ctrl (which a pinch on a trackpad is, too), two fingers, and dragging with the mouse.
 * @param {HTMLElement} view @param {Viewport["zoom"]} zoom @param {() => void} moved @returns {() => void} ends it
 */
function listenTo(view, zoom, moved) {
  const place = (/** @type {{clientX: number, clientY: number}} */ event) => {
    const box = view.getBoundingClientRect();
    return /** @type {[number, number]} */ ([event.clientX - box.left, event.clientY - box.top]);
  };
  const wheel = (/** @type {WheelEvent} */ event) => {
    if (!event.ctrlKey) return;
    event.preventDefault();
    zoom(Math.exp(-Math.max(-60, Math.min(60, event.deltaY)) / 150), place(event));
  };
  let apart = 0;
  const touch = (/** @type {TouchEvent} */ event) => {
    if (event.touches.length !== 2) return void (apart = 0);
    event.preventDefault();
    const [a, b] = [place(event.touches[0]), place(event.touches[1])];
    const now = Math.hypot(a[0] - b[0], a[1] - b[1]);
    if (apart) zoom(now / apart, [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2]);
    apart = now;
  };
  const release = dragging(view);
  view.addEventListener("wheel", wheel, { passive: false });
  view.addEventListener("scroll", moved, { passive: true });
  for (const name of /** @type {const} */ (["touchstart", "touchmove", "touchend"]))
    view.addEventListener(name, touch, { passive: false });
  return () => {
    release();
    view.removeEventListener("wheel", wheel);
    view.removeEventListener("scroll", moved);
    for (const name of /** @type {const} */ (["touchstart", "touchmove", "touchend"]))
      view.removeEventListener(name, touch);
  };
}

/**
 * Moves the view while the mouse button is held; a drag is no click.
 * @param {HTMLElement} view
 * @returns {() => void} ends it
 */
function dragging(view) {
  let from = /** @type {{x: number, y: number, left: number, top: number, id: number} | null} */ (null);
  let moving = false;
  const down = (/** @type {PointerEvent} */ event) => {
    const bar = event.offsetX > view.clientWidth || event.offsetY > view.clientHeight;
    if (event.pointerType !== "mouse" || event.button || (event.target === view && bar)) return;
    from = { x: event.clientX, y: event.clientY, left: view.scrollLeft, top: view.scrollTop, id: event.pointerId };
  };
  const move = (/** @type {PointerEvent} */ event) => {
    if (!from) return;
    const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
    if (!moving && Math.hypot(dx, dy) < 5) return;
    if (!moving) {
      view.setPointerCapture(from.id);
      view.classList.add("mg-dragged");
      moving = true;
    }
    view.scrollLeft = from.left - dx;
    view.scrollTop = from.top - dy;
  };
  const up = () => {
    from = null;
    view.classList.remove("mg-dragged");
    setTimeout(() => (moving = false)); // after the click that ends the drag
  };
  const click = (/** @type {Event} */ event) => moving && event.stopPropagation();
  view.addEventListener("pointerdown", down);
  view.addEventListener("pointermove", move);
  view.addEventListener("pointerup", up);
  view.addEventListener("pointercancel", up);
  view.addEventListener("click", click, true);
  return () => {
    view.removeEventListener("pointerdown", down);
    view.removeEventListener("pointermove", move);
    view.removeEventListener("pointerup", up);
    view.removeEventListener("pointercancel", up);
    view.removeEventListener("click", click, true);
  };
}
