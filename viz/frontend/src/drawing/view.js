/**
 * The drawing: cards, arrows, labels and frames as SVG elements, created once per scene; a step updates only what it
 * changed. In a scene with too many elements to move smoothly, only the visible ones exist; when it is too small to
 * read, a canvas shows the drawing (overview.js).
 */
import { ceil, log10, max, min, round } from "../base/math.js";
import { TITLE_HEIGHT } from "../layout/scenelayout.js";
import { setAttributes, createSvg, h, setText } from "../base/dom.js";
import { wireIntersects, intersects, paintOverview } from "./overview.js";
import { colourRamp } from "./heatcolour.js";
import { createLayer } from "./layers.js";
import { nodeAppearance, allNodes, trackProgress, edgeStrokes, wireProgress } from "./appearance.js";
import { focusRect, overlay } from "./overlay.js";
import { setAttribute, createFrame, createItem, createWire, paintBlock, paintNode, thumbnailCache, orientWire } from "./elements.js";
import { neighbour } from "./navigation.js";
import { firstNodeIn, edgeLabel } from "./scene.js";
import { currentColours } from "./style.js";
import { READABLE, createViewport } from "./viewport.js";

/** @typedef {import("../base/types.js").Graph} Graph */
/** @typedef {import("../base/types.js").Playback} Playback */
/** @typedef {import("../base/types.js").Changed} Changed */
/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./scene.js").SceneItem} SceneItem */

/**
 * @typedef {object} Listeners
 * @property {(id: string | null) => void} select an item was clicked: "n12", "b3", null for the background
 * @property {(block: number) => void} toggle a block should open or close
 */

const MAX_ITEMS = 1500; // items up to which all elements exist: panning more takes longer than a frame
const MIN_ELEMENT_SCALE = 0.42; // minimum scale at which a larger drawing has elements
const MAX_COMPACT_SCALE = 1.35; // maximum scale of small cards if there is room

/**
 * @param {HTMLElement} host @param {Graph} graph @param {Playback} playback @param {Scene} scene
 * @param {Listeners} listeners
 */
export function createView(host, graph, playback, scene, listeners) {
  const now = createState(host, graph, playback);
  const { port, above } = now;
  const itemById = (/** @type {string | null} */ id) => now.scene.items[now.indexById.get(id ?? "") ?? -1];
  const reveal = (/** @type {string} */ id) => itemById(id) && port.reveal(itemById(id));
  const setScene = (/** @type {Scene} */ next, newPlayback = now.playback) => {
    if (newPlayback !== now.playback) now.progress = trackProgress(graph, newPlayback);
    Object.assign(now, { scene: next, playback: newPlayback });
    renderScene(now);
  };
  host.append(now.away);
  setAttributes(port.stage, { role: "group", "aria-label": graph.sentence });
  addListeners(now, listeners);
  setScene(scene);
  /** Follow the current moment with the view and the tab stop. */
  const followMoment = (now.accompany = () => {
    const moment = now.playback.moment();
    if (moment.node >= 0 && !hasFocus(port.stage)) setTabStop(now, now.scene.itemOf(moment.node));
    const { rect, away: offscreen } = focusRect(now.scene, graph, moment, port.shown(), port.most());
    port.reveal(rect);
    const labels = offscreen.slice(0, 6).map((item) => `${item.x < rect.x ? "←" : "→"} ${item.card.name}`);
    setText(now.away, labels.join("   "));
  });
  followMoment();
  return {
    ...port,
    element: port.view,
    /** Draw the changes of a step; null redraws everything, as after a theme change. @param {Changed | null} changed */
    update(changed) {
      if (changed === null) return repaint(now);
      step(now, changed);
      followMoment();
    },
    /** Redraw with other values at the same moment, after what-if. */
    renumber: () => paintAll(now),
    setScene,
    /** @param {string | null} id */
    select(id) {
      now.selected = id;
      above.ring("select", itemById(id));
    },
    /** Draw rings around the items that show these nodes. @param {number[]} nodes */
    mark: (nodes) => above.mark([...new Set(nodes.map(now.scene.itemOf))].map((at) => now.scene.items[at])),
    reveal,
    /** Move the focus along the edges; first into the drawing. @param {[number, number]} way down, and to the right */
    walk(way) {
      const at = now.indexById.get(now.focus) ?? 0;
      const to = hasFocus(port.stage) ? neighbour(now.scene, at, way) : at;
      if (to >= 0) focusItem(now, now.scene.items[to]);
    },
    fit() {
      port.fit();
      followMoment();
    },
    destroy() {
      cancelAnimationFrame(now.asked);
      port.destroy();
    },
  };
}

/** @typedef {ReturnType<typeof createState>} Drawing */

/** @param {HTMLElement} host @param {Graph} graph @param {Playback} playback */
function createState(host, graph, playback) {
  const requestUpdate = () => (now.asked ||= requestAnimationFrame(() => updateView(now)));
  const now = {
    graph,
    playback,
    scene: /** @type {Scene} */ ({}),
    port: createViewport(host, requestUpdate),
    above: overlay(graph),
    away: h("div.mg-away", { "aria-hidden": true }), // operands that are too far away to be shown
    canvas: /** @type {HTMLCanvasElement} */ (h("canvas")),
    /** The part of a large drawing that has elements, and its scale. */
    rendered: { x: 0, y: 0, w: 0, h: 0, scale: 0 },
    requestUpdate,
    asked: 0,
    accompany() {},
    room: 0, // width of the visible part, on which the off-screen operands depend
    selected: /** @type {string | null} */ (null),
    focus: "",
    hover: /** @type {SceneItem | undefined} */ (undefined),
    /** @type {Map<string, number>} */ indexById: new Map(),
    progress: trackProgress(graph, playback),
    /** @type {Record<string, string>} */ colours: {},
    picture: thumbnailCache(new Uint8Array()),
    unit: 0, // size of a pixel in units of the drawing for zoomed-out items; else 0
    strokes: edgeStrokes(playback),
    ...{ frames: createLayer([], createFrame), wires: createLayer([], createWire) },
    items: createLayer(/** @type {SceneItem[]} */ ([]), (item) => createItem(graph, item)),
  };
  return now;
}

/** Create the elements of a scene. @param {Drawing} now */
function renderScene(now) {
  const { graph, scene, port, above } = now;
  const focused = hasFocus(port.stage);
  now.indexById = new Map(scene.items.map((item, at) => [item.id, at]));
  now.frames = createLayer(scene.hulls, (hull) => createFrame(hull, now.unit));
  now.wires = createLayer(scene.wires, createWire, (at, made) => paintWire(now, at, made));
  const make = (/** @type {SceneItem} */ item) => createItem(graph, item, now.unit);
  now.items = createLayer(scene.items, make, (at, made) => paintItem(now, at, made));
  port.resize(scene.width, scene.height, scene.isCompact ? MAX_COMPACT_SCALE : 1);
  now.unit = pixelUnit(now);
  const focus = nextFocus(now);
  now.focus = "";
  repaint(now);
  setTabStop(now, focus);
  if (scene.items.length <= MAX_ITEMS) for (const one of [now.frames, now.wires, now.items]) one.keepOnly(() => true);
  now.rendered.scale = scene.items.length > MAX_ITEMS ? 0 : Infinity;
  updateView(now);
  const sheet = (/** @type {SVGElement} */ part) => createSvg("svg", { class: "mg-drawing" }, part);
  const silent = [...now.frames.sheets, ...now.wires.sheets, sheet(above.under), ...now.wires.tops];
  const all = [...silent, ...now.items.sheets, sheet(above.layer)];
  for (const one of silent) setAttributes(one, { "aria-hidden": "true" });
  for (const one of all) setAttributes(one, { viewBox: `0 0 ${scene.width} ${scene.height}` });
  port.stage.replaceChildren(now.canvas, ...all); // already painted and sized, so that the browser lays them out once
  above.ring("focus");
  if (focused) now.items.ensure(focus).group.focus({ preventScroll: true });
}

/** Update after the view moved. @param {Drawing} now */
function updateView(now) {
  now.asked = 0;
  const unit = pixelUnit(now);
  if (unit !== now.unit) recreate(now, unit);
  const scale = max(1, READABLE / now.port.scale());
  now.port.stage.style.setProperty("--large", String(scale));
  now.port.stage.classList.toggle("mg-far", unit > 0);
  now.port.view.toggleAttribute("data-far", unit > 0); // for the legend: a deeper :has() would be evaluated at each step
  if (now.above.setScale(scale)) show(now, false);
  const { w } = now.port.most();
  if (w !== now.room) {
    now.room = w;
    now.accompany();
  }
  if (now.scene.items.length > MAX_ITEMS) renderVisible(now);
  pinTitles(now);
}

/** Return the size of a pixel in units of the drawing, at which text stays readable; quantised. @param {Drawing} now */
function pixelUnit({ port, scene }) {
  const scale = port.scale();
  return scale < READABLE || scene.isCompact ? max(0.9, 1.08 ** ceil(-log10(scale) / log10(1.08))) : 0;
}

/** Recreate items and frames for another scale. @param {Drawing} now @param {number} unit */
function recreate(now, unit) {
  const { port, items, frames } = now;
  const focused = hasFocus(port.stage);
  now.unit = unit;
  for (const one of [frames, items]) {
    const existing = one.elements.map(Boolean);
    one.keepOnly(() => false);
    one.keepOnly((at) => existing[at]);
  }
  const focus = now.indexById.get(now.focus) ?? 0;
  setTabStop(now, focus);
  if (focused) items.ensure(focus).group.focus({ preventScroll: true });
}

/** Create the elements of the visible part and its surroundings. @param {Drawing} now */
function renderVisible(now) {
  const { scene, port, rendered } = now;
  const [visible, scale] = [port.shown(), port.scale()];
  const { x, y, w, h: height } = rendered;
  const isInside = x <= visible.x && y <= visible.y && x + w >= visible.x + visible.w && y + height >= visible.y + visible.h;
  if (isInside && scale === rendered.scale) return;
  const part = { x: visible.x - visible.w / 4, y: visible.y - visible.h / 4, w: 1.5 * visible.w, h: 1.5 * visible.h };
  const isNear = scale >= MIN_ELEMENT_SCALE;
  const focus = now.indexById.get(now.focus);
  now.rendered = { ...part, scale };
  now.frames.keepOnly((at) => isNear && intersects(scene.hulls[at], part));
  now.wires.keepOnly((at) => isNear && wireIntersects(scene.wires[at], part));
  now.items.keepOnly((at) => at === focus || (isNear && intersects(scene.items[at], part)));
  now.canvas.hidden = isNear;
  if (!isNear) paintOverview(now.canvas, now, part, scale);
}

/** Whether the focus is in the drawing. @param {HTMLElement} stage */
const hasFocus = (stage) => stage.contains(/** @type {ShadowRoot} */ (stage.getRootNode()).activeElement ?? null);

/** Make an item the tab stop. @param {Drawing} now @param {number} at */
function setTabStop(now, at) {
  const before = now.items.elements[now.indexById.get(now.focus) ?? -1];
  if (before) setAttributes(before.group, { tabindex: -1 });
  setAttributes(now.items.ensure(at).group, { tabindex: 0 });
  now.focus = now.scene.items[at].id;
}

/**
 * Return the index of the item to focus in a new scene: the same one, the block that contains it, or the first item of
 * a block that is now open.
 * @param {Drawing} now
 */
function nextFocus({ graph, scene, indexById, focus }) {
  const number = Number(focus.slice(1));
  return indexById.get(focus) ?? (focus ? scene.itemOf(focus[0] === "b" ? firstNodeIn(graph, number) : number) : 0);
}

/** Keep titles of frames visible while the drawing is scrolled sideways. @param {Drawing} now */
function pinTitles({ frames, port }) {
  const left = port.shown().x;
  for (const frame of frames.elements) {
    const shift = frame ? round(max(0, min(left - frame.x, frame.maxShift))) : 0;
    if (frame) setAttribute(frame.header, "transform", `translate(${shift})`);
  }
}

/** Paint everything after a theme change. @param {Drawing} now */
function repaint(now) {
  now.colours = currentColours(now.port.view);
  now.picture = thumbnailCache(colourRamp(now.colours));
  paintAll(now);
}

/** Paint everything after values changed. @param {Drawing} now */
function paintAll(now) {
  now.strokes = edgeStrokes(now.playback);
  now.progress.count(allNodes(now.graph));
  for (const { elements, paint } of [now.wires, now.items]) elements.forEach((_, at) => paint(at));
  show(now, false);
  now.above.ring("select", now.scene.items[now.indexById.get(now.selected ?? "") ?? -1]);
}

/** Paint the changes of a step. @param {Drawing} now @param {Changed} changed */
function step(now, { nodes, edges }) {
  const { scene } = now;
  now.progress.count(nodes);
  for (const at of new Set(nodes.map(scene.itemOf))) now.items.paint(at);
  for (const at of new Set(edges.map((edge) => scene.wireOf[edge]))) now.wires.paint(at);
  show(now, true);
}

/** Show the active moment. @param {Drawing} now @param {boolean} moving whether to animate */
function show(now, moving) {
  const moment = now.playback.moment();
  const { width } = now.strokes.of(moment.edge < 0 ? [] : [moment.edge]);
  now.above.show(now.scene, moment, moving, width);
  if (now.rendered.scale >= MIN_ELEMENT_SCALE) return;
  now.rendered.scale = 0;
  now.requestUpdate();
}

/** @param {Drawing} now @param {number} at @param {import("./elements.js").DrawnItem} drawn */
function paintItem({ graph, scene, playback, progress, picture, strokes }, at, drawn) {
  const item = scene.items[at];
  if (item.node >= 0) paintNode(graph, item, drawn, nodeAppearance(graph, playback, item.node), picture, strokes.peaks);
  else paintBlock(item, drawn, progress.done[item.block], graph.blocks[item.block].name);
}

/**
 * Paint a wire. Its width shows the magnitude of the gradient; it is faint while its result is not computed.
 * @param {Drawing} now @param {number} at @param {ReturnType<typeof createWire>} made
 */
function paintWire({ graph, scene, playback, strokes }, at, { group, over }) {
  const wire = scene.wires[at];
  const [edge, ...otherEdges] = wire.edges;
  const time = wireProgress(playback, wire);
  const { width, opacity, way: signClass } = strokes.of(time === "done" ? wire.edges : []);
  const passing = playback.moment().edge;
  orientWire(group, wire, time === "done" || wire.edges.includes(passing));
  setAttribute(group, "class", `wire ${wire.flows ? "" : "none "}${otherEdges.length ? "many " : ""}${time} ${signClass}`);
  setAttributes(group, { style: signClass && `--wide:${width}px;opacity:${opacity}` });
  const isLabelled = time === "future" || passing === edge; // the label of the active edge shows it
  if (over) setText(over, isLabelled ? "" : edgeLabel(graph, playback.numbers, edge, scene.showFormulas));
}

/** Handle clicks, hovering, focus and Enter for all items. @param {Drawing} now @param {Listeners} listeners */
function addListeners(now, { select, toggle }) {
  const { port, above } = now;
  const { stage } = port;
  /** Return the item of an event; by its position when zoomed out. @param {Event} event */
  const itemAt = (event) => {
    const id = /** @type {Element} */ (event.target).closest("[data-id]")?.getAttribute("data-id");
    const spot = port.spot(/** @type {MouseEvent} */ (event));
    return now.scene.items.find((item) => (id ? item.id === id : intersects(item, spot)));
  };
  const choose = (/** @type {SceneItem} */ { id, block }) => {
    select(id);
    if (block >= 0) toggle(block);
  };
  const hover = (/** @type {SceneItem | undefined} */ item) => {
    if (item === now.hover) return;
    now.hover = item;
    stage.style.cursor = item ? "pointer" : "";
    above.ring("hover", item);
  };
  stage.addEventListener("focusin", (event) => {
    const item = itemAt(event);
    if (!item) return;
    if (item.id !== now.focus) focusItem(now, item);
    above.ring("focus", /** @type {Element} */ (event.target).matches(":focus-visible") ? item : undefined);
  });
  stage.addEventListener("focusout", () => above.ring("focus"));
  setAttributes(stage, {
    onclick(/** @type {MouseEvent} */ event) {
      const item = itemAt(event);
      if (item) return choose(item);
      const frame = now.scene.hulls.findLast((hull) => intersects({ ...hull, h: TITLE_HEIGHT }, port.spot(event))); // the innermost
      if (frame) toggle(frame.block);
      else select(null);
    },
    onpointermove: (/** @type {Event} */ event) => hover(itemAt(event)),
    onpointerleave: () => hover(undefined),
    onkeydown(/** @type {KeyboardEvent} */ event) {
      const item = itemAt(event);
      if (!item || event.key !== "Enter" || event.shiftKey || event.ctrlKey || event.metaKey || event.altKey) return;
      event.preventDefault();
      choose(item);
    },
  });
}

/** Focus an item. @param {Drawing} now @param {SceneItem} item */
function focusItem(now, item) {
  const at = now.scene.items.indexOf(item);
  setTabStop(now, at);
  now.items.ensure(at).group.focus({ preventScroll: true });
  now.port.reveal(item);
}
