/**
 * The drawing: cards, arrows, labels and frames as SVG elements, created once per scene; a step updates only what it
 * changed. In a scene with too many elements to move smoothly, only the visible ones exist; when it is too small to
 * read, a canvas shows the drawing (far.js).
 */
import { ceil, log10, max, min, round } from "../base/math.js";
import { BAR } from "../layout/placing.js";
import { dress, drawn, h, setText } from "../base/dom.js";
import { crosses, meet, paintFar } from "./far.js";
import { rampOf } from "./heatcolour.js";
import { layer } from "./layers.js";
import { lookOf, nodesOf, progressOf, strokesOf, timeOf } from "./looks.js";
import { focusOf, overlay } from "./overlay.js";
import { attribute, makeFrame, makeItem, makeWire, paintBlock, paintNode, pictureMaker, pointWire } from "./parts.js";
import { neighbour } from "./roving.js";
import { firstIn, localText } from "./scene.js";
import { coloursAt } from "./style.js";
import { READABLE, viewport } from "./viewport.js";

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

const MOST = 1500; // items up to which all elements exist: panning more takes longer than a frame
const NEAR = 0.42; // minimum scale at which a larger drawing has elements
const LARGER = 1.35; // maximum scale of small cards if there is room

/**
 * @param {HTMLElement} host @param {Graph} graph @param {Playback} playback @param {Scene} scene
 * @param {Listeners} listeners
 */
export function drawingView(host, graph, playback, scene, listeners) {
  const now = stateOf(host, graph, playback);
  const { port, above } = now;
  const itemNamed = (/** @type {string | null} */ id) => now.scene.items[now.places.get(id ?? "") ?? -1];
  const reveal = (/** @type {string} */ id) => itemNamed(id) && port.reveal(itemNamed(id));
  const setScene = (/** @type {Scene} */ next, played = now.playback) => {
    if (played !== now.playback) now.progress = progressOf(graph, played);
    Object.assign(now, { scene: next, playback: played });
    layOut(now);
  };
  host.append(now.away);
  dress(port.stage, { role: "group", "aria-label": graph.sentence });
  listen(now, listeners);
  setScene(scene);
  /** Follow the current moment with the view and the tab stop. */
  const accompany = (now.accompany = () => {
    const moment = now.playback.moment();
    if (moment.node >= 0 && !within(port.stage)) rove(now, now.scene.itemOf(moment.node));
    const { rect, away } = focusOf(now.scene, graph, moment, port.shown(), port.most());
    port.reveal(rect);
    const told = away.slice(0, 6).map((item) => `${item.x < rect.x ? "←" : "→"} ${item.card.name}`);
    setText(now.away, told.join("   "));
  });
  accompany();
  return {
    ...port,
    element: port.view,
    /** Draw the changes of a step; null redraws everything, as after a theme change. @param {Changed | null} changed */
    update(changed) {
      if (changed === null) return repaint(now);
      step(now, changed);
      accompany();
    },
    /** Redraw with other values at the same moment, after what-if. */
    renumber: () => paintAll(now),
    setScene,
    /** @param {string | null} id */
    select(id) {
      now.selected = id;
      above.ring("select", itemNamed(id));
    },
    /** Draw rings around the items that show these nodes. @param {number[]} nodes */
    mark: (nodes) => above.mark([...new Set(nodes.map(now.scene.itemOf))].map((at) => now.scene.items[at])),
    reveal,
    /** Move the focus along the edges; first into the drawing. @param {[number, number]} way down, and to the right */
    walk(way) {
      const at = now.places.get(now.focus) ?? 0;
      const to = within(port.stage) ? neighbour(now.scene, at, way) : at;
      if (to >= 0) goTo(now, now.scene.items[to]);
    },
    fit() {
      port.fit();
      accompany();
    },
    destroy() {
      cancelAnimationFrame(now.asked);
      port.destroy();
    },
  };
}

/** @typedef {ReturnType<typeof stateOf>} Drawing */

/** @param {HTMLElement} host @param {Graph} graph @param {Playback} playback */
function stateOf(host, graph, playback) {
  const ask = () => (now.asked ||= requestAnimationFrame(() => follow(now)));
  const now = {
    graph,
    playback,
    scene: /** @type {Scene} */ ({}),
    port: viewport(host, ask),
    above: overlay(graph),
    away: h("div.mg-away", { "aria-hidden": true }), // operands that are too far away to be shown
    canvas: /** @type {HTMLCanvasElement} */ (h("canvas")),
    /** The part of a large drawing that has elements, and its scale. */
    kept: { x: 0, y: 0, w: 0, h: 0, scale: 0 },
    ask,
    asked: 0,
    accompany() {},
    room: 0, // width of the visible part, on which the off-screen operands depend
    selected: /** @type {string | null} */ (null),
    focus: "",
    hover: /** @type {SceneItem | undefined} */ (undefined),
    /** @type {Map<string, number>} */ places: new Map(),
    progress: progressOf(graph, playback),
    /** @type {Record<string, string>} */ colours: {},
    picture: pictureMaker(new Uint8Array()),
    unit: 0, // size of a pixel in units of the drawing for zoomed-out items; else 0
    strokes: strokesOf(playback),
    ...{ frames: layer([], makeFrame), wires: layer([], makeWire) },
    items: layer(/** @type {SceneItem[]} */ ([]), (item) => makeItem(graph, item)),
  };
  return now;
}

/** Create the elements of a scene. @param {Drawing} now */
function layOut(now) {
  const { graph, scene, port, above } = now;
  const focused = within(port.stage);
  now.places = new Map(scene.items.map((item, at) => [item.id, at]));
  now.frames = layer(scene.hulls, (hull) => makeFrame(hull, now.unit));
  now.wires = layer(scene.wires, makeWire, (at, made) => paintWire(now, at, made));
  const make = (/** @type {SceneItem} */ item) => makeItem(graph, item, now.unit);
  now.items = layer(scene.items, make, (at, made) => paintItem(now, at, made));
  port.resize(scene.width, scene.height, scene.tight ? LARGER : 1);
  now.unit = unitAt(now);
  const focus = successor(now);
  now.focus = "";
  repaint(now);
  rove(now, focus);
  if (scene.items.length <= MOST) for (const one of [now.frames, now.wires, now.items]) one.keep(() => true);
  now.kept.scale = scene.items.length > MOST ? 0 : Infinity;
  follow(now);
  const sheet = (/** @type {SVGElement} */ part) => drawn("svg", { class: "mg-drawing" }, part);
  const silent = [...now.frames.sheets, ...now.wires.sheets, sheet(above.under), ...now.wires.tops];
  const all = [...silent, ...now.items.sheets, sheet(above.layer)];
  for (const one of silent) dress(one, { "aria-hidden": "true" });
  for (const one of all) dress(one, { viewBox: `0 0 ${scene.width} ${scene.height}` });
  port.stage.replaceChildren(now.canvas, ...all); // already painted and sized, so that the browser lays them out once
  above.ring("focus");
  if (focused) now.items.have(focus).group.focus({ preventScroll: true });
}

/** Update after the view moved. @param {Drawing} now */
function follow(now) {
  now.asked = 0;
  const unit = unitAt(now);
  if (unit !== now.unit) remake(now, unit);
  const large = max(1, READABLE / now.port.scale());
  now.port.stage.style.setProperty("--large", String(large));
  now.port.stage.classList.toggle("mg-far", unit > 0);
  now.port.view.toggleAttribute("data-far", unit > 0); // for the legend: a deeper :has() would be evaluated at each step
  if (now.above.enlarge(large)) show(now, false);
  const { w } = now.port.most();
  if (w !== now.room) {
    now.room = w;
    now.accompany();
  }
  if (now.scene.items.length > MOST) tend(now);
  keepTitles(now);
}

/** Return the size of a pixel in units of the drawing, at which text stays readable; quantised. @param {Drawing} now */
function unitAt({ port, scene }) {
  const scale = port.scale();
  return scale < READABLE || scene.tight ? max(0.9, 1.08 ** ceil(-log10(scale) / log10(1.08))) : 0;
}

/** Recreate items and frames for another scale. @param {Drawing} now @param {number} unit */
function remake(now, unit) {
  const { port, items, frames } = now;
  const focused = within(port.stage);
  now.unit = unit;
  for (const one of [frames, items]) {
    const there = one.made.map(Boolean);
    one.keep(() => false);
    one.keep((at) => there[at]);
  }
  const focus = now.places.get(now.focus) ?? 0;
  rove(now, focus);
  if (focused) items.have(focus).group.focus({ preventScroll: true });
}

/** Create the elements of the visible part and its surroundings. @param {Drawing} now */
function tend(now) {
  const { scene, port, kept } = now;
  const [seen, scale] = [port.shown(), port.scale()];
  const { x, y, w, h: high } = kept;
  const inside = x <= seen.x && y <= seen.y && x + w >= seen.x + seen.w && y + high >= seen.y + seen.h;
  if (inside && scale === kept.scale) return;
  const part = { x: seen.x - seen.w / 4, y: seen.y - seen.h / 4, w: 1.5 * seen.w, h: 1.5 * seen.h };
  const near = scale >= NEAR;
  const focus = now.places.get(now.focus);
  now.kept = { ...part, scale };
  now.frames.keep((at) => near && meet(scene.hulls[at], part));
  now.wires.keep((at) => near && crosses(scene.wires[at], part));
  now.items.keep((at) => at === focus || (near && meet(scene.items[at], part)));
  now.canvas.hidden = near;
  if (!near) paintFar(now.canvas, now, part, scale);
}

/** Whether the focus is in the drawing. @param {HTMLElement} stage */
const within = (stage) => stage.contains(/** @type {ShadowRoot} */ (stage.getRootNode()).activeElement ?? null);

/** Make an item the tab stop. @param {Drawing} now @param {number} at */
function rove(now, at) {
  const before = now.items.made[now.places.get(now.focus) ?? -1];
  if (before) dress(before.group, { tabindex: -1 });
  dress(now.items.have(at).group, { tabindex: 0 });
  now.focus = now.scene.items[at].id;
}

/**
 * Return the index of the item to focus in a new scene: the same one, the block that contains it, or the first item of
 * a block that is now open.
 * @param {Drawing} now
 */
function successor({ graph, scene, places, focus }) {
  const number = Number(focus.slice(1));
  return places.get(focus) ?? (focus ? scene.itemOf(focus[0] === "b" ? firstIn(graph, number) : number) : 0);
}

/** Keep titles of frames visible while the drawing is scrolled sideways. @param {Drawing} now */
function keepTitles({ frames, port }) {
  const left = port.shown().x;
  for (const frame of frames.made) {
    const by = frame ? round(max(0, min(left - frame.x, frame.most))) : 0;
    if (frame) attribute(frame.moved, "transform", `translate(${by})`);
  }
}

/** Paint everything after a theme change. @param {Drawing} now */
function repaint(now) {
  now.colours = coloursAt(now.port.view);
  now.picture = pictureMaker(rampOf(now.colours));
  paintAll(now);
}

/** Paint everything after values changed. @param {Drawing} now */
function paintAll(now) {
  now.strokes = strokesOf(now.playback);
  now.progress.count(nodesOf(now.graph));
  for (const { made, paint } of [now.wires, now.items]) made.forEach((_, at) => paint(at));
  show(now, false);
  now.above.ring("select", now.scene.items[now.places.get(now.selected ?? "") ?? -1]);
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
  if (now.kept.scale >= NEAR) return;
  now.kept.scale = 0;
  now.ask();
}

/** @param {Drawing} now @param {number} at @param {import("./parts.js").DrawnItem} made */
function paintItem({ graph, scene, playback, progress, picture, strokes }, at, made) {
  const item = scene.items[at];
  if (item.node >= 0) paintNode(graph, item, made, lookOf(graph, playback, item.node), picture, strokes.peaks);
  else paintBlock(item, made, progress.done[item.block], graph.blocks[item.block].name);
}

/**
 * Paint a wire. Its width shows the magnitude of the gradient; it is faint while its result is not computed.
 * @param {Drawing} now @param {number} at @param {ReturnType<typeof makeWire>} made
 */
function paintWire({ graph, scene, playback, strokes }, at, { group, over }) {
  const wire = scene.wires[at];
  const [edge, ...more] = wire.edges;
  const time = timeOf(playback, wire);
  const { width, opacity, way } = strokes.of(time === "done" ? wire.edges : []);
  const passing = playback.moment().edge;
  pointWire(group, wire, time === "done" || wire.edges.includes(passing));
  attribute(group, "class", `wire ${wire.flows ? "" : "none "}${more.length ? "many " : ""}${time} ${way}`);
  dress(group, { style: way && `--wide:${width}px;opacity:${opacity}` });
  const told = time === "future" || passing === edge; // the label of the active edge shows it
  if (over) setText(over, told ? "" : localText(graph, playback.numbers, edge, scene.wordy));
}

/** Handle clicks, hovering, focus and Enter for all items. @param {Drawing} now @param {Listeners} listeners */
function listen(now, { select, toggle }) {
  const { port, above } = now;
  const { stage } = port;
  /** Return the item of an event; by its position when zoomed out. @param {Event} event */
  const itemAt = (event) => {
    const id = /** @type {Element} */ (event.target).closest("[data-id]")?.getAttribute("data-id");
    const spot = port.spot(/** @type {MouseEvent} */ (event));
    return now.scene.items.find((item) => (id ? item.id === id : meet(item, spot)));
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
    if (item.id !== now.focus) goTo(now, item);
    above.ring("focus", /** @type {Element} */ (event.target).matches(":focus-visible") ? item : undefined);
  });
  stage.addEventListener("focusout", () => above.ring("focus"));
  dress(stage, {
    onclick(/** @type {MouseEvent} */ event) {
      const item = itemAt(event);
      if (item) return choose(item);
      const frame = now.scene.hulls.findLast((hull) => meet({ ...hull, h: BAR }, port.spot(event))); // the innermost
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
function goTo(now, item) {
  const at = now.scene.items.indexOf(item);
  rove(now, at);
  now.items.have(at).group.focus({ preventScroll: true });
  now.port.reveal(item);
}
