/**
 * Elements above the drawing: the glow of the active item, the gradient that flows back over an edge with its product,
 * and the rings of hover, selection and focus. They are few and reused, so a step costs little.
 */
import { abs, hypot, max, min, sign } from "../base/math.js";
import { curvePath, middleOf, samplesOf, tipPath } from "./curves.js";
import { dress, drawn } from "../base/dom.js";
import { meet } from "./far.js";
import { productText, scalarOf } from "./looks.js";
import { textWidth } from "../base/measure.js";
import { brief } from "../base/notation.js";
import { cornerOf, path, text } from "./parts.js";
import { calm } from "./viewport.js";

/** @typedef {import("../base/types.js").Graph} Graph */
/** @typedef {import("../base/types.js").Moment} Moment */
/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./scene.js").SceneItem} SceneItem */
/** @typedef {import("./curves.js").Point} Point */

/** Candidate offsets of a label from the midpoint of its wire, nearest first. */
const [ACROSS, DOWN] = [170, 120];
const BESIDE = [0, -14, 14, -26, 26, -44, 44, -64, 64, -90, 90, -DOWN, DOWN].flatMap((dy) =>
  [0, -36, 36, -90, 90, -ACROSS, ACROSS].map((dx) => [dx, dy]),
);
const TRAVEL = 600; // milliseconds to travel along an edge

/**
 * Return the position of the label of the active edge: on its wire, or nearby where it hides no box and no other label;
 * below the block if that hides the edge.
 * @param {Scene} scene @param {Graph} graph @param {number} edge @param {number} wide @param {number} [large] scale factor
 * @returns {[number, number]}
 */
export function wordsAt(scene, graph, edge, wide, large = 1) {
  const wire = scene.wireOf[edge];
  const box = scene.items[scene.itemOf(graph.operand[edge])];
  const source = scene.items[scene.itemOf(graph.result[edge])];
  const [x, y] = wire >= 0 ? middleOf(scene.wires[wire].points) : [box.x + box.w / 2, box.y + box.h + 8];
  const half = wide / 2 + 4;
  const high = 10 * large;
  const within = (/** @type {number} */ a, /** @type {number} */ most, /** @type {number} */ room) =>
    max(room, min(most - room, a));
  const [far, down] = [ACROSS * large + half, DOWN * large + 12];
  const around = { x: x - far, y: y - down, w: 2 * far, h: 2 * down };
  const own = scene.wires[wire]?.label; // yields to the active edge's label
  const near = scene.covered.filter((one) => one !== own && meet(one, around));
  let best = /** @type {[number, number]} */ ([x, y]);
  let least = Infinity;
  for (const [dx, dy] of BESIDE) {
    const [cx, cy] = [within(x + dx * large, scene.width, half), within(y + dy * large, scene.height, high)];
    let hidden = hypot(dx, dy);
    for (const item of near) {
      if (hidden >= least) break;
      const end = item === box || item === source; // their numbers are what the label is about
      const covers = (/** @type {number} */ gap) => {
        const across = min(cx + half, item.x + item.w + gap) - max(cx - half, item.x - gap);
        const down = min(cy + high, item.y + item.h + gap) - max(cy - high, item.y - gap);
        return max(0, across) * max(0, down);
      };
      hidden += covers(2) * (end ? 4 : 1);
      if (!end) hidden += covers(12) / 8; // near another box the label would seem to be about that one
    }
    if (hidden < least) [least, best] = [hidden, [cx, cy]];
  }
  return best;
}

/**
 * Return the line from a wire to its label; none if the label lies on the wire.
 * @param {Point} from @param {Point} to
 */
export function leaderPath([x, y], [toX, toY]) {
  const end = toY + sign(y - toY) * 10;
  return abs(y - toY) < 18 ? "" : `M${x} ${y}L${x + (toX - x) * 0.3} ${end}`;
}

/**
 * Return the rectangle to bring into view at a moment: the node with its operands, or both ends of the edge, and its
 * label if it fits. `away` are the items that are too far away.
 * @param {Scene} scene @param {Graph} graph @param {Moment} moment
 * @param {import("./viewport.js").Rect} seen the visible size @param {import("./viewport.js").Rect} most the largest visible size when zoomed out
 */
export function focusOf(scene, graph, { node, edge, ...moment }, seen, most) {
  const itemOf = (/** @type {number} */ one) => scene.items[scene.itemOf(one)];
  const away = /** @type {SceneItem[]} */ ([]);
  const start = () => scene.items.reduce((first, one) => (one.x < first.x ? one : first));
  let rect = /** @type {import("./viewport.js").Rect} */ (node < 0 ? start() : itemOf(node));
  const add = (/** @type {import("./viewport.js").Rect} */ one, room = most) => {
    const [x, y] = [min(rect.x, one.x), min(rect.y, one.y)];
    const w = max(rect.x + rect.w, one.x + one.w) - x;
    const h = max(rect.y + rect.h, one.y + one.h) - y;
    const fits = w < 0.9 * room.w && h < 0.85 * room.h;
    if (fits) rect = { x, y, w, h };
    return fits;
  };
  const ends = new Set(
    edge >= 0
      ? [itemOf(graph.result[edge])]
      : moment.kind === "forward"
        ? Array.from(graph.operand.subarray(graph.start[node], graph.start[node + 1]), itemOf)
        : [],
  );
  for (const one of ends) if (!add(one)) away.push(one);
  if (edge >= 0) {
    const wide = wordsWidth(productText({ ...moment, node, edge }));
    const [x, y] = wordsAt(scene, graph, edge, wide);
    add({ x: x - wide / 2, y: y - 10, w: wide, h: 20 }, seen);
  }
  return { rect, away };
}

/** Return the width of an edge's label, with its background. @param {string} words */
export const wordsWidth = (words) => textWidth(words, 12, true) * 0.93 + 14;

/** Return the visible wires into a node. @param {Scene} scene @param {Graph} graph @param {number} node */
export function wiresInto(scene, graph, node) {
  /** @type {Set<number>} */
  const found = new Set();
  for (let edge = graph.start[node]; edge < graph.start[node + 1]; edge += 1) {
    if (scene.wireOf[edge] >= 0) found.add(scene.wireOf[edge]);
  }
  return [...found].map((wire) => scene.wires[wire]);
}

/**
 * Place a ring around an item, or hide it.
 * @param {Element} ring @param {SceneItem | null} [item] @param {number} [out]
 */
function surround(ring, item, out = 0) {
  const box = item && { x: item.x - out, y: item.y - out, width: item.w + 2 * out, height: item.h + 2 * out };
  dress(ring, { visibility: item ? "visible" : "hidden", ...box, rx: item && cornerOf(item) + out });
}

/** Create the elements of the active moment. */
function activeParts() {
  const pill = () => drawn("g", {}, drawn("rect", { class: "pill", y: -10, height: 20, rx: 10 }), text("", 0, 4.3));
  const above = {
    ...{ point: path("point"), leader: path("leader"), glow: drawn("rect", { class: "halo" }) },
    ...{ core: drawn("rect", { class: "core" }), traveller: pill(), words: pill() },
  };
  const group = drawn("g", {}, ...Object.values(above));
  return { ...above, group, flow: path("flow"), large: 1, run: /** @type {Animation | null} */ (null) };
}

/** Create the overlay: `under` goes below labels and items, `layer` on top of everything. @param {Graph} graph */
export function overlay(graph) {
  const active = activeParts();
  const marks = drawn("g", {});
  const rings = ["hover", "select", "focus"].map((look) => drawn("rect", { class: look, visibility: "hidden" }));
  const [layer, under] = [[marks, active.group, ...rings], [active.flow]].map((parts) =>
    drawn("g", { class: "overlay", "aria-hidden": "true" }, ...parts),
  );
  const [hover, select, focus] = rings;
  return {
    layer,
    under,
    /** @param {"hover" | "select" | "focus"} kind @param {SceneItem | null} [item] */
    ring: (kind, item) => surround({ hover, select, focus }[kind], item, { hover: 3, select: 6, focus: 9 }[kind]),
    /** @param {SceneItem[]} items */
    mark(items) {
      const made = items.map((item) => {
        const ring = drawn("rect", { class: "select" });
        surround(ring, item, 4);
        return ring;
      });
      marks.replaceChildren(...made);
    },
    /**
     * Scale the labels so that they stay readable when zoomed out; return whether they change.
     * @param {number} large scale factor
     */
    enlarge(large) {
      if (large === active.large) return false;
      active.large = large;
      return true;
    },
    /**
     * @param {Scene} scene @param {Moment} moment @param {boolean} moving whether to animate
     * @param {number} wide the stroke width of the active edge
     */
    show: (scene, moment, moving, wide) => showMoment(active, graph, scene, moment, moving, wide),
  };
}

/**
 * @param {ReturnType<typeof activeParts>} active
 * @param {Graph} graph @param {Scene} scene @param {Moment} moment @param {boolean} moving @param {number} wide
 */
function showMoment(active, graph, scene, moment, moving, wide) {
  const { flow, point, leader, words, traveller, large } = active;
  active.run?.cancel();
  const way = moment.kind === "edge" || moment.kind === "seed" ? "backward" : "forward";
  const number = scalarOf(moment.contribution);
  const sign = typeof number === "number" && number < 0 ? " negative" : "";
  dress(active.group, { class: way + sign });
  for (const part of [words, traveller]) dress(part, { visibility: "hidden" });
  for (const part of [point, leader]) dress(part, { d: "" });
  const item = moment.node < 0 ? null : scene.items[scene.itemOf(moment.node)];
  surround(active.glow, item, 5);
  surround(active.core, item, 2);
  const wire = scene.wires[scene.wireOf[moment.edge]];
  const wires = moment.kind === "forward" ? wiresInto(scene, graph, moment.node) : wire ? [wire] : [];
  dress(flow, { style: way === "backward" && `--wide:${wide}px`, class: `flow ${way}${sign}`, d: wires.map(({ points }) => curvePath(points, way === "backward")).join("") });
  if (moment.kind !== "edge") return;
  const product = productText(moment);
  const at = wordsAt(scene, graph, moment.edge, wordsWidth(product) * large, large);
  if (product) say(words, product, at, large);
  const from = wire ? middleOf(wire.points) : item && [item.x + item.w / 2, at[1] < item.y ? item.y : item.y + item.h];
  dress(leader, { d: product && from && leaderPath(/** @type {Point} */ (from), at) });
  if (!wire) return;
  const [[x, y]] = wire.points;
  dress(point, { d: tipPath([x + 1, y], -1, 1.6) });
  if (!moving || typeof number !== "number" || calm()) return;
  say(traveller, brief(number), [x, y], large);
  active.run = travel(traveller, samplesOf(wire.points).reverse(), large);
}

/** Show a label. @param {Element} pill @param {string} words @param {Point} at @param {number} large */
function say(pill, words, [x, y], large) {
  const wide = wordsWidth(words);
  const [ground, label] = pill.children;
  label.textContent = words;
  dress(ground, { x: -wide / 2, width: wide });
  dress(pill, { transform: `translate(${x} ${y}) scale(${large})`, visibility: "visible" });
}

/**
 * Animate an element along points, then hide it.
 * @param {Element} element @param {Point[]} points @param {number} large
 */
function travel(element, points, large) {
  const frames = points.map(([x, y]) => ({ transform: `translate(${x}px,${y}px) scale(${large})` }));
  const run = element.animate(frames, { duration: TRAVEL, easing: "ease-in-out" });
  run.onfinish = () => dress(element, { visibility: "hidden" });
  return run;
}
