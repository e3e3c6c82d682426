/**
 * A viewport for a drawing larger than its container. It uses native scrolling, so that touch, keys, scroll bars and
 * assistive technology work; it adds zoom by ctrl + wheel and pinch, and dragging by mouse.
 */
import { ceil, exp, isFinite, hypot, max, min } from "../base/math.js";
import { setAttributes, h } from "../base/dom.js";

/** @typedef {{x: number, y: number, w: number, h: number}} Rect */

/** @typedef {ReturnType<typeof createViewport>} Viewport */

export const READABLE = 0.85; // minimum scale at which full cards are shown
const MIN_FIT_SCALE = 0.25; // minimum scale at which the whole drawing is fitted: cards show little more than their names
const [MIN_RIBBON_SCALE, RIBBON_HEIGHT] = [0.4, 140]; // except for a drawing that would be lower than LOW pixels
const [MIN_SCALE, MAX_SCALE] = [0.004, 4];
const REVEAL_PADDING = 28; // padding around the revealed part
const MIN_PADDING = 4; // minimum padding
const MIN_AUTO_SCALE = 0.5; // minimum scale that the view chooses by itself

/** Whether the user prefers reduced motion. */
export const prefersReducedMotion = () => matchMedia("(prefers-reduced-motion: reduce)").matches;

/**
 * Track the scroll position and the scale of the view.
 * @param {HTMLElement} view @param {HTMLElement} stage @param {() => void} onMove
 */
function createLens(view, stage, onMove) {
  // Sizes and scroll positions are cached: reading them during a step would force a synchronous layout.
  const state = { width: 1, height: 1, most: 1, scale: 1, left: 0, top: 0, w: 0, h: 0, margin: 0 };
  const readScroll = () => {
    Object.assign(state, { left: view.scrollLeft, top: view.scrollTop });
    onMove();
  };
  const readSize = () => {
    Object.assign(state, { w: view.clientWidth, h: view.clientHeight, margin: stage.offsetLeft });
    readScroll();
  };
  const apply = (scale = state.scale) => {
    state.scale = max(MIN_SCALE, min(MAX_SCALE, scale));
    stage.style.width = `${ceil(state.width * state.scale)}px`;
    stage.style.height = `${ceil(state.height * state.scale)}px`;
    readSize();
  };
  /**
   * Scroll so that a point of the drawing is at a point of the view.
   * @param {number[]} point @param {number[]} place
   */
  const alignPoint = ([x, y], [left, top]) => {
    view.scrollLeft = x * state.scale + state.margin - left;
    view.scrollTop = y * state.scale - top;
    readScroll();
  };
  const centre = () => [state.w / 2, state.h / 2];
  return {
    ...{ at: state, scrolled: readScroll, lookAround: readSize, apply, middle: centre },
    scale: () => state.scale,
    /** Zoom around a point of the view, in pixels. @param {number} factor @param {number[]} [position] */
    zoom(factor, position = centre()) {
      const point = [(state.left + position[0] - state.margin) / state.scale, (state.top + position[1]) / state.scale];
      apply(state.scale * factor);
      alignPoint(point, position);
    },
    /** Fit the drawing; if it is fitted already, zoom to a readable scale. */
    fit() {
      const all = min(view.clientWidth / state.width, maxViewHeight(view) / state.height, state.most);
      apply(state.scale > 1.01 * all ? all : max(all, READABLE));
    },
    /** Centre a point of the drawing. @param {number} x @param {number} y */
    centreOn: (x, y) => alignPoint([x, y], centre()),
    /** Return the visible part of the drawing. @returns {Rect} */
    shown() {
      const [x, y, w, h] = [state.left - state.margin, state.top, state.w, state.h].map((length) => length / state.scale);
      return { x, y, w, h };
    },
    /** Return the point of the drawing under the mouse. @param {MouseEvent} event @returns {Rect} */
    spot(event) {
      const { left, top } = stage.getBoundingClientRect();
      return { x: (event.clientX - left) / state.scale, y: (event.clientY - top) / state.scale, w: 0, h: 0 };
    },
  };
}

/**
 * Create a scrollable view of a stage, which has the size of the zoomed drawing.
 * @param {HTMLElement} host
 * @param {() => void} onMove called after scrolling, zooming and resizing
 */
export function createViewport(host, onMove) {
  const stage = /** @type {HTMLElement} */ (h("div", { class: "mg-stage" }));
  const view = /** @type {HTMLElement} */ (h("div", { class: "mg-view" }, stage));
  host.append(view);
  const { at: state, apply, lookAround, scrolled, ...eye } = createLens(view, stage, onMove);
  let target = /** the part to bring into view @type {Rect | null} */ (null); // what is to be in view
  let isFitted = false;
  let isUserZoomed = false; // by the user, which ends automatic fitting
  let hasScrolled = false; // whether the first scroll, which is instant, is done
  let frameRequest = 0;
  const revealTarget = () => {
    frameRequest = 0;
    if (!target || !isFitted) return;
    const maxScale = min(state.w / (target.w + 2 * MIN_PADDING), state.h / (target.h + 2 * MIN_PADDING));
    if (!isUserZoomed && maxScale < state.scale) apply(max(maxScale, min(state.scale, MIN_AUTO_SCALE)));
    scrollTo(view, state, target, hasScrolled && !prefersReducedMotion() ? "smooth" : "instant");
    hasScrolled = true;
  };
  const fitInitially = () => {
    if (isUserZoomed || !view.clientWidth) return lookAround();
    isFitted = true;
    const fitScale = min(view.clientWidth / state.width, maxViewHeight(view) / state.height, document.fullscreenElement ? 2 : state.most);
    apply(fitScale < (fitScale * state.height < RIBBON_HEIGHT ? MIN_RIBBON_SCALE : MIN_FIT_SCALE) ? READABLE : fitScale);
    revealTarget();
    lookAround();
  };
  const zoom = (/** @type {number} */ factor, place = eye.middle()) => {
    isUserZoomed = true;
    eye.zoom(factor, place);
  };
  const fit = () => ((isUserZoomed = true), eye.fit());
  addZoomListeners(view, zoom, scrolled);
  enableDragging(view);
  const observer = new ResizeObserver(fitInitially);
  observer.observe(view);
  return {
    ...{ view, stage, ...eye, zoom, fit },
    /** Set the size and the maximum fitted scale. @param {number} width @param {number} height @param {number} most */
    resize(width, height, most) {
      Object.assign(state, { width, height, most });
      target = null;
      if (isUserZoomed || !view.clientWidth) apply();
      else fitInitially();
    },
    /** Bring a part of the drawing into view by scrolling, or by zooming out if it is too large. @param {Rect} rect */
    reveal(rect) {
      target = rect; // scrolling forces a layout: once a frame
      if (isFitted) frameRequest ||= requestAnimationFrame(revealTarget);
    },
    /** Return how much is visible at the smallest scale that the view chooses by itself. @returns {Rect} */
    most() {
      const minScale = isUserZoomed ? state.scale : min(state.scale, MIN_AUTO_SCALE);
      return { x: 0, y: 0, w: state.w / minScale, h: state.h / minScale };
    },
    destroy() {
      observer.disconnect();
      view.remove();
    },
  };
}

/** Return the maximum height of the view: from its style, or else its current height. @param {HTMLElement} view */
function maxViewHeight(view) {
  const maxHeight = parseFloat(getComputedStyle(view).maxHeight);
  return isFinite(maxHeight) && maxHeight > 0 ? maxHeight : max(view.clientHeight, 200);
}

/**
 * @param {HTMLElement} view
 * @param {{left: number, top: number, w: number, h: number, margin: number, scale: number}} at
 * @param {Rect} rect
 * @param {ScrollBehavior} behavior
 */
function scrollTo(view, at, rect, behavior) {
  const scrollOffset = (
    /** @type {number} */ now,
    /** @type {number} */ viewSize,
    /** @type {number} */ from,
    /** @type {number} */ size,
  ) => {
    if (size + 2 * REVEAL_PADDING > viewSize) return from >= now && from + size <= now + viewSize ? now : from - max(0, (viewSize - size) / 2);
    if (from - REVEAL_PADDING < now) return from - REVEAL_PADDING - (viewSize - size) / 4;
    return from + size + REVEAL_PADDING > now + viewSize ? from + size + REVEAL_PADDING - viewSize + (viewSize - size) / 4 : now;
  };
  const left = scrollOffset(at.left, at.w, rect.x * at.scale + at.margin, rect.w * at.scale);
  const top = scrollOffset(at.top, at.h, rect.y * at.scale, rect.h * at.scale);
  if (left === at.left && top === at.top) return;
  view.scrollTo({ left, top, behavior });
}

/**
 * Zoom by ctrl + wheel, which includes trackpad pinches, and by two fingers.
 * @param {HTMLElement} view @param {Viewport["zoom"]} zoom @param {() => void} scrolled
 */
function addZoomListeners(view, zoom, scrolled) {
  const positionOf = (/** @type {{clientX: number, clientY: number}} */ { clientX, clientY }) => {
    const { left, top } = view.getBoundingClientRect();
    return [clientX - left, clientY - top];
  };
  view.addEventListener("scroll", scrolled, { passive: true });
  view.addEventListener(
    "wheel",
    (event) => {
      if (!event.ctrlKey) return;
      event.preventDefault();
      zoom(exp(-max(-60, min(60, event.deltaY)) / 150), positionOf(event));
    },
    { passive: false },
  );
  let lastDistance = 0;
  const touch = (/** @type {TouchEvent} */ event) => {
    if (event.touches.length !== 2) return void (lastDistance = 0);
    event.preventDefault();
    const [a, b] = [positionOf(event.touches[0]), positionOf(event.touches[1])];
    const distance = hypot(a[0] - b[0], a[1] - b[1]);
    if (lastDistance) zoom(distance / lastDistance, [(a[0] + b[0]) / 2, (a[1] + b[1]) / 2]);
    lastDistance = distance;
  };
  for (const name of /** @type {const} */ (["touchstart", "touchmove", "touchend"]))
    view.addEventListener(name, touch, { passive: false });
}

/** Drag the view with the mouse; a drag is not a click. @param {HTMLElement} view */
function enableDragging(view) {
  let start = /** @type {{x: number, y: number, left: number, top: number} | null} */ (null);
  let isDragging = false;
  const endDrag = () => {
    start = null;
    view.classList.remove("mg-dragged");
    setTimeout(() => (isDragging = false)); // after the click that ends the drag
  };
  setAttributes(view, {
    onpointerdown(/** @type {PointerEvent} */ event) {
      const bar = event.offsetX > view.clientWidth || event.offsetY > view.clientHeight;
      if (event.pointerType !== "mouse" || event.button || (event.target === view && bar)) return;
      start = { x: event.clientX, y: event.clientY, left: view.scrollLeft, top: view.scrollTop };
    },
    onpointermove(/** @type {PointerEvent} */ event) {
      if (!start) return;
      const [dx, dy] = [event.clientX - start.x, event.clientY - start.y];
      if (!isDragging && hypot(dx, dy) < 5) return;
      if (!isDragging) {
        view.setPointerCapture(event.pointerId);
        view.classList.add("mg-dragged");
        isDragging = true;
      }
      view.scrollTo(start.left - dx, start.top - dy);
    },
    onpointerup: endDrag,
    onpointercancel: endDrag,
  });
  view.addEventListener("click", (event) => isDragging && event.stopPropagation(), true);
}
