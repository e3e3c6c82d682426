/**
 * What lies above the drawing: the glow of what is active, the gradient that flows back over an edge with its
 * product, and the rings of hover, selection and focus. A handful of elements that move, so a step costs little.
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

/** Where words may go, from the middle of their wire; nearer is better. */
const [ACROSS, DOWN] = [170, 120];
const BESIDE = [0, -14, 14, -26, 26, -44, 44, -64, 64, -90, 90, -DOWN, DOWN].flatMap((dy) =>
  [0, -36, 36, -90, 90, -ACROSS, ACROSS].map((dx) => [dx, dy]),
);
const TRAVEL = 600; // milliseconds from one end of an edge to the other

/**
 * The place of the words about the edge that is active: on its wire, or beside it where they hide no box and no other
 * words; below the block that hides the edge.
 * @param {Scene} scene @param {Graph} graph @param {number} edge @param {number} wide @param {number} [large] how many times as large as from near
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
  const own = scene.wires[wire]?.label; // which gives way to them
  const near = scene.covered.filter((one) => one !== own && meet(one, around));
  let best = /** @type {[number, number]} */ ([x, y]);
  let least = Infinity;
  for (const [dx, dy] of BESIDE) {
    const [cx, cy] = [within(x + dx * large, scene.width, half), within(y + dy * large, scene.height, high)];
    let hidden = hypot(dx, dy);
    for (const item of near) {
      if (hidden >= least) break;
      const end = item === box || item === source; // their numbers are what the words are about
      const covers = (/** @type {number} */ gap) => {
        const across = min(cx + half, item.x + item.w + gap) - max(cx - half, item.x - gap);
        const down = min(cy + high, item.y + item.h + gap) - max(cy - high, item.y - gap);
        return max(0, across) * max(0, down);
      };
      hidden += covers(2) * (end ? 4 : 1);
      if (!end) hidden += covers(12) / 8; // beside another box they seem to be about that
    }
    if (hidden < least) [least, best] = [hidden, [cx, cy]];
  }
  return best;
}

/** The line from a wire to the words beside it; none where they lie on it. @param {Point} from @param {Point} to */
export function leaderPath([x, y], [toX, toY]) {
  const end = toY + sign(y - toY) * 10;
  return abs(y - toY) < 18 ? "" : `M${x} ${y}L${x + (toX - x) * 0.3} ${end}`;
}

/**
 * What of a moment is to be in view: the node with its operands, or both ends of the edge; and the words on that, as far
 * as there is room. `away` are the items that would be too far away.
 * @param {Scene} scene @param {Graph} graph @param {Moment} moment
 * @param {import("./viewport.js").Rect} seen how much fits @param {import("./viewport.js").Rect} most from farther away
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
 * @param {Element} ring @param {SceneItem | null} [item] @param {number} [out]
 */
function surround(ring, item, out = 0) {
  const box = item && { x: item.x - out, y: item.y - out, width: item.w + 2 * out, height: item.h + 2 * out };
  dress(ring, { visibility: item ? "visible" : "hidden", ...box, rx: item && cornerOf(item) + out });
}

/** The elements of what is active. */
function activeParts() {
  const pill = () => drawn("g", {}, drawn("rect", { class: "pill", y: -10, height: 20, rx: 10 }), text("", 0, 4.3));
  const above = {
    ...{ point: path("point"), leader: path("leader"), glow: drawn("rect", { class: "halo" }) },
    ...{ core: drawn("rect", { class: "core" }), traveller: pill(), words: pill() },
  };
  const group = drawn("g", {}, ...Object.values(above));
  return { ...above, group, flow: path("flow"), large: 1, run: /** @type {Animation | null} */ (null) };
}

/** Makes the layer: `under` belongs below the labels and items, `layer` on top of all. @param {Graph} graph */
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
    /** Lets words be seen from afar, too; returns whether they change. @param {number} large how many times as large */
    enlarge(large) {
      if (large === active.large) return false;
      active.large = large;
      return true;
    },
    /**
     * @param {Scene} scene @param {Moment} moment @param {boolean} moving whether something may travel
     * @param {number} wide the width of an edge that a gradient goes over
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

/** Writes words on a pill. @param {Element} pill @param {string} words @param {Point} at @param {number} large */
function say(pill, words, [x, y], large) {
  const wide = wordsWidth(words);
  const [ground, label] = pill.children;
  label.textContent = words;
  dress(ground, { x: -wide / 2, width: wide });
  dress(pill, { transform: `translate(${x} ${y}) scale(${large})`, visibility: "visible" });
}

/**
 * Moves an element along points, and hides it where they end.
 * @param {Element} element @param {Point[]} points @param {number} large
 */
function travel(element, points, large) {
  const frames = points.map(([x, y]) => ({ transform: `translate(${x}px,${y}px) scale(${large})` }));
  const run = element.animate(frames, { duration: TRAVEL, easing: "ease-in-out" });
  run.onfinish = () => dress(element, { visibility: "hidden" });
  return run;
}
