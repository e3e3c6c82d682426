/**
 * What lies above the SVG drawing: the glow of what is active, the gradient that flows back over an edge with its
 * product, and the rings of hover, selection and focus. A handful of elements that move, so a step costs little.
 */
import { curvePath, middleOf, samplesOf, tipPath } from "./curves.js";
import { drawn } from "../panels/dom.js";
import { productText, scalarOf } from "./looks.js";
import { textWidth } from "./measure.js";
import { pretty } from "../engine/notation.js";
import { cornerOf } from "./svgparts.js";
import { calm } from "./viewport.js";

/** @typedef {import("../types.js").Graph} Graph */
/** @typedef {import("../types.js").Moment} Moment */
/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./scene.js").SceneItem} SceneItem */
/** @typedef {import("./curves.js").Point} Point */

/** Where words may go, from the middle of their wire; nearer is better. */
const BESIDE = [0, -14, 14, -26, 26, -44, 44, -64, 64, -90].flatMap((dy) =>
  [0, -36, 36, -90, 90].map((dx) => [dx, dy]),
);
const TRAVEL = 600; // milliseconds from one end of an edge to the other

/**
 * The place of the words about the edge that is active: on its wire, or beside it where they hide no box; below the
 * block that hides the edge.
 * @param {Scene} scene @param {Graph} graph @param {number} edge @param {number} wide @returns {[number, number]}
 */
export function wordsAt(scene, graph, edge, wide) {
  const wire = scene.wireOf[edge];
  const box = scene.items[scene.itemOf(graph.operand[edge])];
  const source = scene.items[scene.itemOf(graph.result[edge])];
  const [x, y] = wire >= 0 ? middleOf(scene.wires[wire].points) : [box.x + box.w / 2, box.y + box.h + 8];
  const half = wide / 2 + 4;
  const within = (/** @type {number} */ a, /** @type {number} */ most, /** @type {number} */ room) =>
    Math.max(room, Math.min(most - room, a));
  const [left, right, top, bottom] = [x - 2 * half - 40, x + 2 * half + 40, y - 100, y + 100];
  const near = scene.items.filter(
    (one) => one.x < right && one.x + one.w > left && one.y < bottom && one.y + one.h > top,
  );
  let best = /** @type {[number, number]} */ ([x, y]);
  let least = Infinity;
  for (const [dx, dy] of BESIDE) {
    const [cx, cy] = [within(x + dx, scene.width, half), within(y + dy, scene.height, 14)];
    let hidden = Math.hypot(dx, dy) * 4;
    for (const item of near) {
      const weight = item === box || item === source ? 4 : 1; // their numbers are what the words are about
      const across = Math.min(cx + half, item.x + item.w + 4) - Math.max(cx - half, item.x - 4);
      const down = Math.min(cy + 12, item.y + item.h + 4) - Math.max(cy - 12, item.y - 4);
      if (across > 0 && down > 0) hidden += weight * across * down;
    }
    if (hidden < least) [least, best] = [hidden, [cx, cy]];
  }
  return best;
}

/** The line from a wire to the words beside it; none where they lie on it. @param {Point} from @param {Point} to */
export function leaderPath([x, y], [toX, toY]) {
  const end = toY + Math.sign(y - toY) * 10;
  return Math.abs(y - toY) < 18 ? "" : `M${x} ${y}L${x + (toX - x) * 0.3} ${end}`;
}

/**
 * What of a moment should be in view: the item, the words on the edge and the other end, as far as there is room.
 * @param {Scene} scene @param {Graph} graph @param {Moment} moment
 * @param {import("./viewport.js").Rect} seen how much fits
 * @returns {import("./viewport.js").Rect}
 */
export function focusOf(scene, graph, moment, seen) {
  if (moment.node < 0) return scene.items.reduce((first, one) => (one.x < first.x ? one : first));
  let rect = /** @type {import("./viewport.js").Rect} */ (scene.items[scene.itemOf(moment.node)]);
  if (moment.edge < 0) return rect;
  const wide = wordsWidth(productText(moment));
  const [x, y] = wordsAt(scene, graph, moment.edge, wide);
  const more = [{ x: x - wide / 2, y: y - 10, w: wide, h: 20 }, scene.items[scene.itemOf(graph.result[moment.edge])]];
  for (const one of more) {
    const [left, top] = [Math.min(rect.x, one.x), Math.min(rect.y, one.y)];
    const w = Math.max(rect.x + rect.w, one.x + one.w) - left;
    const h = Math.max(rect.y + rect.h, one.y + one.h) - top;
    if (w < 0.9 * seen.w && h < 0.85 * seen.h) rect = { x: left, y: top, w, h };
  }
  return rect;
}

/** How wide the words about an edge are, with the ground around them. @param {string} words */
export const wordsWidth = (words) => textWidth(words, 12, true) * 0.93 + 14;

/** The wires into a node that can be seen. @param {Scene} scene @param {Graph} graph @param {number} node */
export function wiresInto(scene, graph, node) {
  /** @type {Set<number>} */
  const found = new Set();
  for (let edge = graph.start[node]; edge < graph.start[node + 1]; edge += 1) {
    if (scene.wireOf[edge] >= 0) found.add(scene.wireOf[edge]);
  }
  return [...found].map((wire) => scene.wires[wire]);
}

/**
 * Puts a rectangle around an item, or hides it.
 * @param {Element} ring @param {SceneItem | null} item @param {number} out
 */
function surround(ring, item, out) {
  ring.setAttribute("visibility", item ? "visible" : "hidden");
  if (!item) return;
  const [w, high] = [item.w + 2 * out, item.h + 2 * out];
  const box = { x: item.x - out, y: item.y - out, width: w, height: high, rx: cornerOf(item) + out };
  for (const [key, value] of Object.entries(box)) ring.setAttribute(key, String(value));
}

/** The elements of what is active. */
function activeParts() {
  const pill = (/** @type {number} */ y) =>
    drawn("g", {}, drawn("rect", { class: "pill", rx: 10 }), drawn("text", { y }));
  const parts = {
    flow: drawn("path", { class: "flow" }),
    point: drawn("path", { class: "point" }),
    leader: drawn("path", { class: "leader" }),
    glow: drawn("rect", { class: "halo" }),
    core: drawn("rect", { class: "core" }),
    traveller: pill(4.3),
    words: pill(4.3),
  };
  const { flow, ...above } = parts;
  const run = /** @type {Animation | null} */ (null);
  return { ...parts, group: drawn("g", {}, ...Object.values(above)), run };
}

/** Makes the layer: `under` belongs below the labels and items, `layer` on top of all. @param {Graph} graph */
export function overlay(graph) {
  const active = activeParts();
  const marks = drawn("g", {});
  const rings = {
    hover: drawn("rect", { class: "hover" }),
    select: drawn("rect", { class: "select" }),
    focus: drawn("rect", { class: "focus" }),
  };
  for (const ring of Object.values(rings)) surround(ring, null, 0);
  const hidden = { class: "overlay", "aria-hidden": "true" };
  return {
    layer: drawn("g", hidden, marks, active.group, ...Object.values(rings)),
    under: drawn("g", hidden, active.flow),
    /** @param {"hover" | "select" | "focus"} kind @param {SceneItem | null} item */
    ring: (kind, item) => surround(rings[kind], item, { hover: 3, select: 6, focus: 9 }[kind]),
    /** @param {SceneItem[]} items */
    mark(items) {
      const made = items.map(() => drawn("rect", { class: "select" }));
      made.forEach((ring, k) => surround(ring, items[k], 4));
      marks.replaceChildren(...made);
    },
    /** @param {Scene} scene @param {Moment} moment @param {boolean} moving whether something may travel */
    show: (scene, moment, moving) => showMoment(active, graph, scene, moment, moving),
  };
}

/**
 * @param {ReturnType<typeof activeParts>} active
 * @param {Graph} graph @param {Scene} scene @param {Moment} moment @param {boolean} moving
 */
function showMoment(active, graph, scene, moment, moving) {
  active.run?.cancel();
  active.run = null;
  const way = moment.kind === "edge" || moment.kind === "seed" ? "backward" : "forward";
  active.group.setAttribute("class", way);
  active.flow.setAttribute("class", `flow ${way}`);
  for (const part of [active.words, active.traveller]) part.setAttribute("visibility", "hidden");
  for (const part of [active.flow, active.point, active.leader]) part.setAttribute("d", "");
  const item = moment.node < 0 ? null : scene.items[scene.itemOf(moment.node)];
  surround(active.glow, item, 5);
  surround(active.core, item, 2);
  if (item === null) return;
  if (moment.kind === "forward") {
    const curves = wiresInto(scene, graph, moment.node).map((wire) => curvePath(wire.points));
    active.flow.setAttribute("d", curves.join(""));
  }
  if (moment.kind !== "edge") return;
  const wire = scene.wires[scene.wireOf[moment.edge]] ?? null;
  if (wire) {
    const [x, y] = wire.points[0];
    active.flow.setAttribute("d", curvePath(wire.points));
    active.point.setAttribute("d", tipPath([x + 1, y], -1, 1.6));
  }
  say(active.words, productText(moment), (wide) => {
    const [x, y] = wordsAt(scene, graph, moment.edge, wide);
    if (wire) active.leader.setAttribute("d", leaderPath(middleOf(wire.points), [x, y]));
    return [x, y];
  });
  const product = scalarOf(moment.contribution);
  if (!wire || !moving || typeof product !== "number" || calm(active.group)) return;
  say(active.traveller, pretty(product), () => wire.points[0]);
  active.run = travel(active.traveller, samplesOf(wire.points).reverse());
}

/**
 * Writes words on a pill.
 * @param {Element} pill @param {string} words @param {(wide: number) => [number, number]} place
 */
function say(pill, words, place) {
  if (!words) return;
  const wide = wordsWidth(words);
  const [ground, text] = pill.children;
  text.textContent = words;
  for (const [key, value] of Object.entries({ x: -wide / 2, y: -10, width: wide, height: 20 }))
    ground.setAttribute(key, String(value));
  const [x, y] = place(wide);
  pill.setAttribute("transform", `translate(${x} ${y})`);
  pill.setAttribute("visibility", "visible");
}

/**
 * Moves an element along points, and hides it where they end.
 * @param {Element} element @param {[number, number][]} points
 */
function travel(element, points) {
  const frames = points.map(([x, y]) => ({ transform: `translate(${x}px,${y}px)` }));
  const run = element.animate(frames, { duration: TRAVEL, easing: "ease-in-out" });
  run.onfinish = () => element.setAttribute("visibility", "hidden");
  return run;
}
