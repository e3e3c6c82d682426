/**
 * The drawing in SVG, for up to about 1,500 items. Elements are made once a scene; a step touches only what it changed.
 */
import { drawn } from "../panels/dom.js";
import { rampOf } from "./heatcolour.js";
import { lookOf, nodesOf, progressOf } from "./looks.js";
import { focusOf, overlay } from "./overlay.js";
import { PALETTE } from "./palette.js";
import { firstIn, localText } from "./scene.js";
import { coloursAt } from "./style.js";
import { attribute, makeItem, makeWire, paintBlock, paintNode, pictureMaker } from "./svgparts.js";
import { neighbour, wayOf } from "./roving.js";
import { textWidth } from "./measure.js";
import { viewport } from "./viewport.js";

/** @typedef {import("../types.js").Graph} Graph */
/** @typedef {import("../types.js").Playback} Playback */
/** @typedef {import("../types.js").Changed} Changed */
/** @typedef {import("./scene.js").Scene} Scene */

/**
 * @typedef {object} Listeners
 * @property {(id: string | null) => void} [select] an item was chosen: "n12", "b3", null for the ground
 * @property {(block: number) => void} [toggle] a block is to be opened or closed
 * @property {(id: string | null) => void} [hover] the mouse is over an item, or over none
 */

/**
 * @typedef {object} View
 * @property {HTMLElement} element
 * @property {(changed: Changed | null) => void} update draws what a step changed; null is everything, as in another theme
 * @property {() => void} renumber draws other numbers at the same moment, after what-if
 * @property {(scene: Scene, playback?: Playback) => void} setScene
 * @property {(id: string | null) => void} select
 * @property {(nodes: number[]) => void} mark rings around the items that show these nodes
 * @property {(id: string) => void} reveal scrolls an item into view
 * @property {(id: string) => void} focusItem
 * @property {(factor: number) => void} zoom
 * @property {() => void} fit
 * @property {() => import("./viewport.js").Rect} shown the part of the scene that is seen
 * @property {(x: number, y: number) => void} look puts a point of the scene into the middle
 * @property {() => void} destroy
 */

const SHEET = 80; // so many items, or wires, lie on a sheet

/**
 * @param {HTMLElement} host
 * @param {Graph} graph
 * @param {Playback} playback
 * @param {Scene} scene
 * @param {Listeners} [listeners]
 * @returns {View}
 */
export function svgView(host, graph, playback, scene, listeners = {}) {
  const port = viewport(host, () => keepTitles(now.frames, port.shown()));
  const { zoom, fit, shown, look, destroy } = port;
  port.stage.setAttribute("role", "group");
  port.stage.setAttribute("aria-label", graph.sentence);
  const above = overlay(graph);
  const now = stateOf(graph, playback, scene, above);
  const redraw = () => repaint(graph, now, port.view);
  const setScene = (/** @type {Scene} */ next, /** @type {Playback} */ played = now.playback) => {
    if (played !== now.playback) now.progress = progressOf(graph, played);
    Object.assign(now, { scene: next, playback: played });
    const focused = within(port.stage);
    const sheets = build(graph, now);
    redraw();
    port.resize(next.width, next.height, true);
    port.stage.replaceChildren(...sheets); // painted and sized by now, so that the browser lays them out once
    above.ring("focus", null);
    if (focused) now.items[now.places.get(now.focus) ?? 0].group.focus({ preventScroll: true });
  };
  const focusItem = (/** @type {string} */ id) => {
    const at = now.places.get(id);
    if (at === undefined) return;
    rove(now, id);
    now.items[at].group.focus({ preventScroll: true });
    port.reveal(now.scene.items[at]);
  };
  listen(port.stage, now, listeners, focusItem);
  setScene(scene);
  const active = scene.items[scene.itemOf(playback.moment().node)];
  if (active) {
    rove(now, active.id);
    port.reveal(active);
  }
  return {
    element: port.view,
    update(changed) {
      if (changed === null) return redraw();
      step(graph, now, changed);
      const { node } = now.playback.moment();
      if (node >= 0 && !within(port.stage)) rove(now, now.scene.items[now.scene.itemOf(node)].id);
      const rect = focusOf(now.scene, graph, now.playback.moment(), port.shown());
      if (rect) port.reveal(rect);
    },
    renumber: () => (unlike(now) ? redraw() : paintNumbers(graph, now)),
    setScene,
    select(id) {
      now.selected = id;
      above.ring("select", now.scene.items[now.places.get(id ?? "") ?? -1] ?? null);
    },
    mark: (nodes) => above.mark([...new Set(nodes.map(now.scene.itemOf))].map((at) => now.scene.items[at])),
    reveal(id) {
      const at = now.places.get(id);
      if (at !== undefined) port.reveal(now.scene.items[at]);
    },
    focusItem,
    ...{ zoom, fit, shown, look, destroy },
  };
}

/** @param {Graph} graph @param {Playback} playback @param {Scene} scene @param {ReturnType<typeof overlay>} above */
function stateOf(graph, playback, scene, above) {
  return {
    scene,
    playback,
    above,
    selected: /** @type {string | null} */ (null),
    focus: "",
    /** @type {ReturnType<typeof makeItem>[]} */ items: [],
    /** @type {ReturnType<typeof makeWire>[]} */ wires: [],
    /** @type {ReturnType<typeof makeFrame>[]} */ frames: [],
    /** @type {Map<string, number>} */ places: new Map(),
    progress: progressOf(graph, playback),
    values: playback.numbers.value,
    picture: pictureMaker(() => rampOf(PALETTE.light)),
  };
}

/** @typedef {ReturnType<typeof stateOf>} Drawing */

/**
 * Makes all elements of a scene, on sheets that lie on each other: a browser paints a sheet again only if something on
 * it changed, so what moves, and a box that changes, do not cost the painting of the whole.
 * @param {Graph} graph @param {Drawing} now
 */
function build(graph, now) {
  const { scene } = now;
  now.items = scene.items.map((item) => makeItem(graph, item));
  now.wires = scene.wires.map(makeWire);
  now.places = new Map(scene.items.map((item, at) => [item.id, at]));
  now.focus = successor(graph, now);
  now.items[now.places.get(now.focus) ?? -1]?.group.setAttribute("tabindex", "0");
  now.frames = scene.hulls.map(makeFrame);
  const frames = now.frames.map((frame) => frame.group);
  const wires = sheetsOf(now.wires, (wire) => [wire.line, wire.tip]);
  const labels = sheetsOf(now.wires, (wire) => (wire.label ? [wire.label] : []));
  const items = sheetsOf(now.items, (item) => [item.group]);
  const sheet = (/** @type {Node[]} */ parts) =>
    drawn("svg", { class: "mg-drawing", viewBox: `0 0 ${scene.width} ${scene.height}` }, ...parts);
  const all = [frames, ...wires, [now.above.under], ...labels, ...items, [now.above.layer]].map(sheet);
  for (const [k, one] of all.entries()) {
    if (k < 2 + wires.length + labels.length) one.setAttribute("aria-hidden", "true");
  }
  return all;
}

/** Whether the focus is in the drawing. @param {HTMLElement} stage */
const within = (stage) => stage.contains(/** @type {ShadowRoot} */ (stage.getRootNode()).activeElement ?? null);

/** Makes an item the one that Tab goes to. @param {Drawing} now @param {string} id */
function rove(now, id) {
  if (id === now.focus) return;
  now.items[now.places.get(now.focus) ?? -1]?.group.setAttribute("tabindex", "-1");
  now.items[now.places.get(id) ?? -1].group.setAttribute("tabindex", "0");
  now.focus = id;
}

/** What has the focus in a new scene: the same, or the block that hides it, or the first in a block now open.
 * @param {Graph} graph @param {Drawing} now */
function successor(graph, { scene, places, focus }) {
  if (places.has(focus)) return focus;
  const number = Number(focus.slice(1));
  const node = focus[0] === "b" ? firstIn(graph, number) : number;
  return scene.items[focus ? scene.itemOf(node) : 0].id;
}

/** What is drawn, a sheet's worth at a time. @template T @param {T[]} all @param {(one: T) => Node[]} partsOf */
function sheetsOf(all, partsOf) {
  const sheets = [];
  for (let at = 0; at < all.length; at += SHEET) sheets.push(all.slice(at, at + SHEET).flatMap(partsOf));
  return sheets;
}

/** The frame around an open block; its title closes it. @param {import("./scene.js").Hull} hull */
function makeFrame(hull) {
  const { x, y, w, h: high } = hull;
  const title = drawn("text", { x: x + 24, y: y + 15 });
  title.textContent = hull.name;
  const hint = drawn("title");
  hint.textContent = `Close ${hull.name}`;
  const bar = drawn("path", { class: "bar", d: `M${x} ${y + 22}v-16a6 6 0 0 1 6 -6h${w - 12}a6 6 0 0 1 6 6v16z` });
  const sign = drawn("path", { class: "sign", d: `M${x + 9} ${y + 11}h9` });
  const moved = drawn("g", {}, sign, title);
  const frame = drawn("g", { class: "frame", "data-frame": hull.block }, hint, bar, moved);
  const group = drawn("g", {}, drawn("rect", { class: "hull", x, y, width: w, height: high, rx: 6 }), frame);
  return { group, moved, x, most: Math.max(0, w - 34 - textWidth(hull.name, 11.5, true)) };
}

/**
 * Titles of frames stay in sight while the drawing is scrolled sideways.
 * @param {ReturnType<typeof makeFrame>[]} frames @param {import("./viewport.js").Rect} seen
 */
function keepTitles(frames, seen) {
  for (const { moved, x, most } of frames) {
    const by = Math.round(Math.max(0, Math.min(seen.x - x, most)));
    const transform = by ? `translate(${by} 0)` : "";
    if ((moved.getAttribute("transform") ?? "") !== transform) moved.setAttribute("transform", transform);
  }
}

/**
 * Paints everything: after a jump of the numbers, or where the theme may be another.
 * @param {Graph} graph @param {Drawing} now @param {Element} view
 */
function repaint(graph, now, view) {
  const ramp = rampOf(coloursAt(view));
  now.picture = pictureMaker(() => ramp);
  unlike(now);
  now.progress.count(nodesOf(graph));
  now.scene.items.forEach((item, at) => {
    if (item.node >= 0) paintNode(graph, item, now.items[at], lookOf(graph, now.playback, item.node), now.picture);
    else paintBlock(item, now.items[at], now.progress.done[item.block], graph.blocks[item.block].name);
  });
  now.wires.forEach((_, at) => paintWire(graph, now, at));
  now.above.show(now.scene, now.playback.moment(), false);
  now.above.ring("select", now.scene.items[now.places.get(now.selected ?? "") ?? -1] ?? null);
  now.above.ring("hover", null);
}

/**
 * Whether other nodes are known than when this was asked last: with other numbers some cannot be computed.
 * @param {{playback: Playback, values: unknown[]}} now
 */
export function unlike(now) {
  const before = now.values;
  now.values = now.playback.numbers.value;
  return before !== now.values && now.values.some((x, node) => (x === null) !== (before[node] === null));
}

/** Paints other numbers; all else is as it was. @param {Graph} graph @param {Drawing} now */
function paintNumbers(graph, now) {
  now.scene.items.forEach((item, at) => {
    if (item.node >= 0) paintNode(graph, item, now.items[at], lookOf(graph, now.playback, item.node), now.picture);
  });
  now.wires.forEach((wire, at) => wire.label && paintWire(graph, now, at));
  now.above.show(now.scene, now.playback.moment(), false);
}

/** Paints what a step changed. @param {Graph} graph @param {Drawing} now @param {Changed} changed */
function step(graph, now, changed) {
  const { scene, playback } = now;
  for (const block of now.progress.count(changed.nodes)) {
    const at = now.places.get(`b${block}`);
    if (at !== undefined)
      paintBlock(scene.items[at], now.items[at], now.progress.done[block], graph.blocks[block].name);
  }
  for (const node of changed.nodes) {
    const at = scene.itemOf(node);
    if (scene.items[at].node === node)
      paintNode(graph, scene.items[at], now.items[at], lookOf(graph, playback, node), now.picture);
  }
  const wires = new Set(changed.edges.map((edge) => scene.wireOf[edge]));
  for (const at of wires) if (at >= 0) paintWire(graph, now, at);
  now.above.show(scene, playback.moment(), true);
}

/**
 * Paints a wire: tinted where a gradient went back, faint where its result is not computed yet.
 * @param {Graph} graph @param {Drawing} now @param {number} at
 */
function paintWire(graph, now, at) {
  const wire = now.scene.wires[at];
  const parts = now.wires[at];
  const { playback } = now;
  const done = wire.edges.some((edge) => playback.edgeState(edge) === "done");
  const future = !wire.edges.some(
    (edge) => playback.known(graph.result[edge]) || playback.edgeState(edge) === "active",
  );
  const time = done ? " done" : future ? " future" : "";
  const state = `${wire.flows ? "" : " none"}${wire.edges.length > 1 ? " many" : ""}${time}`;
  attribute(parts.line, "class", `wire${state}`);
  attribute(parts.tip, "class", `tip${state}`);
  if (!parts.label) return;
  const told = playback.moment().edge === wire.edges[0]; // the words about the active edge say it
  const words = future || told ? "" : localText(graph, playback.numbers, wire.edges[0], now.scene.wordy);
  if (parts.label.textContent !== words) parts.label.textContent = words;
}

/**
 * Clicks, hovering, focus and arrow keys, for all items at once.
 * @param {HTMLElement} stage @param {Drawing} now @param {Listeners} listeners @param {(id: string) => void} focusItem
 */
function listen(stage, now, listeners, focusItem) {
  const itemAt = (/** @type {Event} */ event) => {
    const found = /** @type {Element} */ (event.target).closest("[data-id]");
    return now.scene.items[now.places.get(found?.getAttribute("data-id") ?? "") ?? -1] ?? null;
  };
  stage.addEventListener("click", (event) => {
    const frame = /** @type {Element} */ (event.target).closest("[data-frame]");
    if (frame) return listeners.toggle?.(Number(frame.getAttribute("data-frame")));
    const item = itemAt(event);
    listeners.select?.(item?.id ?? null);
    if (item && item.block >= 0) listeners.toggle?.(item.block);
  });
  stage.addEventListener("pointerover", (event) => {
    const item = itemAt(event);
    now.above.ring("hover", item);
    listeners.hover?.(item?.id ?? null);
  });
  stage.addEventListener("pointerleave", () => {
    now.above.ring("hover", null);
    listeners.hover?.(null);
  });
  stage.addEventListener("focusin", (event) => {
    const item = itemAt(event);
    if (item && item.id !== now.focus) focusItem(item.id);
    const seen = /** @type {Element} */ (event.target).matches(":focus-visible");
    now.above.ring("focus", seen ? item : null);
  });
  stage.addEventListener("focusout", () => now.above.ring("focus", null));
  stage.addEventListener("keydown", (event) => {
    const item = itemAt(event);
    if (!item || event.shiftKey || event.ctrlKey || event.metaKey || event.altKey) return;
    const way = wayOf(event.key);
    const to = way ? neighbour(now.scene, now.places.get(item.id) ?? -1, way) : -1;
    if (event.key !== "Enter" && !way) return;
    event.preventDefault();
    if (to >= 0) focusItem(now.scene.items[to].id);
    if (event.key !== "Enter") return;
    listeners.select?.(item.id);
    if (item.block >= 0) listeners.toggle?.(item.block);
  });
}
