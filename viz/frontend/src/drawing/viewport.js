/**
 * A viewport for a drawing larger than its container. It uses native scrolling, so that touch, keys, scroll bars and
 * assistive technology work; it adds zoom by ctrl + wheel and pinch, and dragging by mouse.
 */
import { ceil, exp, finite, hypot, max, min } from "../base/math.js";
import { dress, h } from "../base/dom.js";

/** @typedef {{x: number, y: number, w: number, h: number}} Rect */

/** @typedef {ReturnType<typeof viewport>} Viewport */

export const READABLE = 0.85; // minimum scale at which full cards are shown
const WHOLE = 0.25; // minimum scale at which the whole drawing is fitted: cards show little more than their names
const [RIBBON, LOW] = [0.4, 140]; // except for a drawing that would be lower than LOW pixels
const [LEAST, MOST] = [0.004, 4];
const ROOM = 28; // padding around the revealed part
const EDGE = 4; // minimum padding
const FARTHEST = 0.5; // minimum scale that the view chooses by itself

/** Whether the user prefers reduced motion. */
export const calm = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/**
 * Track the scroll position and the scale of the view.
 * @param {HTMLElement} view @param {HTMLElement} stage @param {() => void} moved
 */
function lens(view, stage, moved) {
  // Sizes and scroll positions are cached: reading them during a step would force a synchronous layout.
  const at = { width: 1, height: 1, most: 1, scale: 1, left: 0, top: 0, w: 0, h: 0, margin: 0 };
  const scrolled = () => {
    Object.assign(at, { left: view.scrollLeft, top: view.scrollTop });
    moved();
  };
  const lookAround = () => {
    Object.assign(at, { w: view.clientWidth, h: view.clientHeight, margin: stage.offsetLeft });
    scrolled();
  };
  const apply = (scale = at.scale) => {
    at.scale = max(LEAST, min(MOST, scale));
    stage.style.width = `${ceil(at.width * at.scale)}px`;
    stage.style.height = `${ceil(at.height * at.scale)}px`;
    lookAround();
  };
  /**
   * Scroll so that a point of the drawing is at a point of the view.
   * @param {number[]} point @param {number[]} place
   */
  const put = ([x, y], [left, top]) => {
    view.scrollLeft = x * at.scale + at.margin - left;
    view.scrollTop = y * at.scale - top;
    scrolled();
  };
  const middle = () => [at.w / 2, at.h / 2];
  return {
    ...{ at, scrolled, lookAround, apply, middle },
    scale: () => at.scale,
    /** Zoom around a point of the view, in pixels. @param {number} factor @param {number[]} [place] */
    zoom(factor, place = middle()) {
      const point = [(at.left + place[0] - at.margin) / at.scale, (at.top + place[1]) / at.scale];
      apply(at.scale * factor);
      put(point, place);
    },
    /** Fit the drawing; if it is fitted already, zoom to a readable scale. */
    fit() {
      const all = min(view.clientWidth / at.width, roomBelow(view) / at.height, at.most);
      apply(at.scale > 1.01 * all ? all : max(all, READABLE));
    },
    /** Centre a point of the drawing. @param {number} x @param {number} y */
    look: (x, y) => put([x, y], middle()),
    /** Return the visible part of the drawing. @returns {Rect} */
    shown() {
      const [x, y, w, h] = [at.left - at.margin, at.top, at.w, at.h].map((length) => length / at.scale);
      return { x, y, w, h };
    },
    /** Return the point of the drawing under the mouse. @param {MouseEvent} event @returns {Rect} */
    spot(event) {
      const { left, top } = stage.getBoundingClientRect();
      return { x: (event.clientX - left) / at.scale, y: (event.clientY - top) / at.scale, w: 0, h: 0 };
    },
  };
}

/**
 * Create a scrollable view of a stage, which has the size of the zoomed drawing.
 * @param {HTMLElement} host
 * @param {() => void} moved called after scrolling, zooming and resizing
 */
export function viewport(host, moved) {
  const stage = /** @type {HTMLElement} */ (h("div", { class: "mg-stage" }));
  const view = /** @type {HTMLElement} */ (h("div", { class: "mg-view" }, stage));
  host.append(view);
  const { at, apply, lookAround, scrolled, ...eye } = lens(view, stage, moved);
  let wanted = /** the part to bring into view @type {Rect | null} */ (null); // what is to be in view
  let placed = false;
  let zoomed = false; // by the user, which ends automatic fitting
  let came = false; // whether the first scroll, which is instant, is done
  let asked = 0;
  const follow = () => {
    asked = 0;
    if (!wanted || !placed) return;
    const room = min(at.w / (wanted.w + 2 * EDGE), at.h / (wanted.h + 2 * EDGE));
    if (!zoomed && room < at.scale) apply(max(room, min(at.scale, FARTHEST)));
    scrollTo(view, at, wanted, came && !calm() ? "smooth" : "instant");
    came = true;
  };
  const start = () => {
    if (zoomed || !view.clientWidth) return lookAround();
    placed = true;
    const whole = min(view.clientWidth / at.width, roomBelow(view) / at.height, document.fullscreenElement ? 2 : at.most);
    apply(whole < (whole * at.height < LOW ? RIBBON : WHOLE) ? READABLE : whole);
    follow();
    lookAround();
  };
  const zoom = (/** @type {number} */ factor, place = eye.middle()) => {
    zoomed = true;
    eye.zoom(factor, place);
  };
  const fit = () => ((zoomed = true), eye.fit());
  listenTo(view, zoom, scrolled);
  drag(view);
  const observer = new ResizeObserver(start);
  observer.observe(view);
  return {
    ...{ view, stage, ...eye, zoom, fit },
    /** Set the size and the maximum fitted scale. @param {number} width @param {number} height @param {number} most */
    resize(width, height, most) {
      Object.assign(at, { width, height, most });
      wanted = null;
      if (zoomed || !view.clientWidth) apply();
      else start();
    },
    /** Bring a part of the drawing into view by scrolling, or by zooming out if it is too large. @param {Rect} rect */
    reveal(rect) {
      wanted = rect; // scrolling forces a layout: once a frame
      if (placed) asked ||= requestAnimationFrame(follow);
    },
    /** Return how much is visible at the smallest scale that the view chooses by itself. @returns {Rect} */
    most() {
      const least = zoomed ? at.scale : min(at.scale, FARTHEST);
      return { x: 0, y: 0, w: at.w / least, h: at.h / least };
    },
    destroy() {
      observer.disconnect();
      view.remove();
    },
  };
}

/** Return the maximum height of the view: from its style, or else its current height. @param {HTMLElement} view */
function roomBelow(view) {
  const most = parseFloat(getComputedStyle(view).maxHeight);
  return finite(most) && most > 0 ? most : max(view.clientHeight, 200);
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
    if (size + 2 * ROOM > room) return from >= now && from + size <= now + room ? now : from - max(0, (room - size) / 2);
    if (from - ROOM < now) return from - ROOM - (room - size) / 4;
    return from + size + ROOM > now + room ? from + size + ROOM - room + (room - size) / 4 : now;
  };
  const left = along(at.left, at.w, rect.x * at.scale + at.margin, rect.w * at.scale);
  const top = along(at.top, at.h, rect.y * at.scale, rect.h * at.scale);
  if (left === at.left && top === at.top) return;
  view.scrollTo({ left, top, behavior });
}

/**
 * Zoom by ctrl + wheel, which includes trackpad pinches, and by two fingers.
 * @param {HTMLElement} view @param {Viewport["zoom"]} zoom @param {() => void} scrolled
 */
function listenTo(view, zoom, scrolled) {
  const place = (/** @type {{clientX: number, clientY: number}} */ { clientX, clientY }) => {
    const { left, top } = view.getBoundingClientRect();
    return [clientX - left, clientY - top];
  };
  view.addEventListener("scroll", scrolled, { passive: true });
  view.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoom(exp(-max(-60, min(60, event.deltaY)) / 150), place(event));
    },
    { passive: false },
  );
  let apart = 0;
  const touch = (/** @type {TouchEvent} */ event) => {
    if (event.touches.length !== 2) return void (apart = 0);
    event.preventDefault();
    const [a, b] = [place(event.touches[0]), place(event.touches[1])];
    const now = hypot(a[0] - b[0], a[1] - b[1]);
    if (apart) zoom(now / apart, [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2]);
    apart = now;
  };
  for (const name of /** @type {const} */ (["touchstart", "touchmove", "touchend"]))
    view.addEventListener(name, touch, { passive: false });
}

/** Drag the view with the mouse; a drag is not a click. @param {HTMLElement} view */
function drag(view) {
  let from = /** @type {{x: number, y: number, left: number, top: number} | null} */ (null);
  let moving = false;
  const up = () => {
    from = null;
    view.classList.remove("mg-dragged");
    setTimeout(() => (moving = false)); // after the click that ends the drag
  };
  dress(view, {
    onpointerdown(/** @type {PointerEvent} */ event) {
      const bar = event.offsetX > view.clientWidth || event.offsetY > view.clientHeight;
      if (event.pointerType !== "mouse" || event.button || (event.target === view && bar)) return;
      from = { x: event.clientX, y: event.clientY, left: view.scrollLeft, top: view.scrollTop };
    },
    onpointermove(/** @type {PointerEvent} */ event) {
      if (!from) return;
      const [dx, dy] = [event.clientX - from.x, event.clientY - from.y];
      if (!moving && hypot(dx, dy) < 5) return;
      if (!moving) {
        view.setPointerCapture(event.pointerId);
        view.classList.add("mg-dragged");
        moving = true;
      }
      view.scrollTo(from.left - dx, from.top - dy);
    },
    onpointerup: up,
    onpointercancel: up,
  });
  view.addEventListener("click", (event) => moving && event.stopPropagation(), true);
}
