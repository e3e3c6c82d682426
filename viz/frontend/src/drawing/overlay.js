/**
 * Elements above the drawing: the glow of the active item, the gradient that flows back over an edge with its product,
 * and the rings of hover, selection and focus. They are few and reused, so a step costs little.
 */
import { abs, hypot, max, min, sign } from "../base/math.js";
import { curvePath, midpointOf, samplePoints, arrowheadPath } from "./curves.js";
import { setAttributes, createSvg } from "../base/dom.js";
import { intersects } from "./overview.js";
import { productText, unwrapScalar } from "./appearance.js";
import { textWidth } from "../base/measure.js";
import { formatBrief } from "../base/notation.js";
import { cornerRadius, path, text } from "./elements.js";
import { prefersReducedMotion } from "./viewport.js";

/** @typedef {import("../base/types.js").Graph} Graph */
/** @typedef {import("../base/types.js").Moment} Moment */
/** @typedef {import("./scene.js").Scene} Scene */
/** @typedef {import("./scene.js").SceneItem} SceneItem */
/** @typedef {import("./curves.js").Point} Point */

/** Candidate offsets of a label from the midpoint of its wire, nearest first. */
const [MAX_DX, MAX_DY] = [170, 120];
const LABEL_OFFSETS = [0, -14, 14, -26, 26, -44, 44, -64, 64, -90, 90, -MAX_DY, MAX_DY].flatMap((dy) =>
  [0, -36, 36, -90, 90, -MAX_DX, MAX_DX].map((dx) => [dx, dy]),
);
const TRAVEL_MS = 600; // milliseconds to travel along an edge

/**
 * Return the position of the label of the active edge: on its wire, or nearby where it hides no box and no other label;
 * below the block if that hides the edge.
 * @param {Scene} scene @param {Graph} graph @param {number} edge @param {number} width @param {number} [scale] scale factor
 * @returns {[number, number]}
 */
export function labelPosition(scene, graph, edge, width, scale = 1) {
  const wire = scene.wireOf[edge];
  const box = scene.items[scene.itemOf(graph.operand[edge])];
  const source = scene.items[scene.itemOf(graph.result[edge])];
  const [x, y] = wire >= 0 ? midpointOf(scene.wires[wire].points) : [box.x + box.w / 2, box.y + box.h + 8];
  const halfWidth = width / 2 + 4;
  const halfHeight = 10 * scale;
  const clamp = (/** @type {number} */ a, /** @type {number} */ size, /** @type {number} */ margin) =>
    max(margin, min(size - margin, a));
  const [maxX, maxY] = [MAX_DX * scale + halfWidth, MAX_DY * scale + 12];
  const searchArea = { x: x - maxX, y: y - maxY, w: 2 * maxX, h: 2 * maxY };
  const ownLabel = scene.wires[wire]?.label; // yields to the active edge's label
  const obstacles = scene.occupied.filter((one) => one !== ownLabel && intersects(one, searchArea));
  let best = /** @type {[number, number]} */ ([x, y]);
  let lowestCost = Infinity;
  for (const [dx, dy] of LABEL_OFFSETS) {
    const [cx, cy] = [clamp(x + dx * scale, scene.width, halfWidth), clamp(y + dy * scale, scene.height, halfHeight)];
    let cost = hypot(dx, dy);
    for (const item of obstacles) {
      if (cost >= lowestCost) break;
      const end = item === box || item === source; // their numbers are what the label is about
      const overlap = (/** @type {number} */ gap) => {
        const across = min(cx + halfWidth, item.x + item.w + gap) - max(cx - halfWidth, item.x - gap);
        const down = min(cy + halfHeight, item.y + item.h + gap) - max(cy - halfHeight, item.y - gap);
        return max(0, across) * max(0, down);
      };
      cost += overlap(2) * (end ? 4 : 1);
      if (!end) cost += overlap(12) / 8; // near another box the label would seem to be about that one
    }
    if (cost < lowestCost) [lowestCost, best] = [cost, [cx, cy]];
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
 * label if it fits. `offscreen` are the items that are too far away.
 * @param {Scene} scene @param {Graph} graph @param {Moment} moment
 * @param {import("./viewport.js").Rect} visibleSize the visible size @param {import("./viewport.js").Rect} maxVisible the largest visible size when zoomed out
 */
export function focusRect(scene, graph, { node, edge, ...moment }, visibleSize, maxVisible) {
  const itemOf = (/** @type {number} */ one) => scene.items[scene.itemOf(one)];
  const offscreen = /** @type {SceneItem[]} */ ([]);
  const start = () => scene.items.reduce((first, one) => (one.x < first.x ? one : first));
  let rect = /** @type {import("./viewport.js").Rect} */ (node < 0 ? start() : itemOf(node));
  const add = (/** @type {import("./viewport.js").Rect} */ one, limit = maxVisible) => {
    const [x, y] = [min(rect.x, one.x), min(rect.y, one.y)];
    const w = max(rect.x + rect.w, one.x + one.w) - x;
    const h = max(rect.y + rect.h, one.y + one.h) - y;
    const fits = w < 0.9 * limit.w && h < 0.85 * limit.h;
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
  for (const one of ends) if (!add(one)) offscreen.push(one);
  if (edge >= 0) {
    const width = labelWidth(productText({ ...moment, node, edge }));
    const [x, y] = labelPosition(scene, graph, edge, width);
    add({ x: x - width / 2, y: y - 10, w: width, h: 20 }, visibleSize);
  }
  return { rect, away: offscreen };
}

/** Return the width of an edge's label, with its background. @param {string} label */
export const labelWidth = (label) => textWidth(label, 12, true) * 0.93 + 14;

/** Return the visible wires into a node. @param {Scene} scene @param {Graph} graph @param {number} node */
export function wiresInto(scene, graph, node) {
  /** @type {Set<number>} */
  const indices = new Set();
  for (let edge = graph.start[node]; edge < graph.start[node + 1]; edge += 1) {
    if (scene.wireOf[edge] >= 0) indices.add(scene.wireOf[edge]);
  }
  return [...indices].map((wire) => scene.wires[wire]);
}

/**
 * Place a ring around an item, or hide it.
 * @param {Element} ring @param {SceneItem | null} [item] @param {number} [margin]
 */
function placeRing(ring, item, margin = 0) {
  const box = item && { x: item.x - margin, y: item.y - margin, width: item.w + 2 * margin, height: item.h + 2 * margin };
  setAttributes(ring, { visibility: item ? "visible" : "hidden", ...box, rx: item && cornerRadius(item) + margin });
}

/** Create the elements of the active moment. */
function activeElements() {
  const createPill = () => createSvg("g", {}, createSvg("rect", { class: "pill", y: -10, height: 20, rx: 10 }), text("", 0, 4.3));
  const elements = {
    ...{ point: path("point"), leader: path("leader"), glow: createSvg("rect", { class: "halo" }) },
    ...{ core: createSvg("rect", { class: "core" }), traveller: createPill(), words: createPill() },
  };
  const group = createSvg("g", {}, ...Object.values(elements));
  return { ...elements, group, flow: path("flow"), large: 1, run: /** @type {Animation | null} */ (null) };
}

/** Create the overlay: `under` goes below labels and items, `layer` on top of everything. @param {Graph} graph */
export function overlay(graph) {
  const active = activeElements();
  const marks = createSvg("g", {});
  const rings = ["hover", "select", "focus"].map((className) => createSvg("rect", { class: className, visibility: "hidden" }));
  const [layer, under] = [[marks, active.group, ...rings], [active.flow]].map((parts) =>
    createSvg("g", { class: "overlay", "aria-hidden": "true" }, ...parts),
  );
  const [hover, select, focus] = rings;
  return {
    layer,
    under,
    /** @param {"hover" | "select" | "focus"} kind @param {SceneItem | null} [item] */
    ring: (kind, item) => placeRing({ hover, select, focus }[kind], item, { hover: 3, select: 6, focus: 9 }[kind]),
    /** @param {SceneItem[]} items */
    mark(items) {
      const ringElements = items.map((item) => {
        const ring = createSvg("rect", { class: "select" });
        placeRing(ring, item, 4);
        return ring;
      });
      marks.replaceChildren(...ringElements);
    },
    /**
     * Scale the labels so that they stay readable when zoomed out; return whether they change.
     * @param {number} scale scale factor
     */
    setScale(scale) {
      if (scale === active.large) return false;
      active.large = scale;
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
 * @param {ReturnType<typeof activeElements>} active
 * @param {Graph} graph @param {Scene} scene @param {Moment} moment @param {boolean} moving @param {number} width
 */
function showMoment(active, graph, scene, moment, moving, width) {
  const { flow, point, leader, words, traveller, large } = active;
  active.run?.cancel();
  const direction = moment.kind === "edge" || moment.kind === "seed" ? "backward" : "forward";
  const number = unwrapScalar(moment.contribution);
  const sign = typeof number === "number" && number < 0 ? " negative" : "";
  setAttributes(active.group, { class: direction + sign });
  for (const part of [words, traveller]) setAttributes(part, { visibility: "hidden" });
  for (const part of [point, leader]) setAttributes(part, { d: "" });
  const item = moment.node < 0 ? null : scene.items[scene.itemOf(moment.node)];
  placeRing(active.glow, item, 5);
  placeRing(active.core, item, 2);
  const wire = scene.wires[scene.wireOf[moment.edge]];
  const wires = moment.kind === "forward" ? wiresInto(scene, graph, moment.node) : wire ? [wire] : [];
  setAttributes(flow, { style: direction === "backward" && `--wide:${width}px`, class: `flow ${direction}${sign}`, d: wires.map(({ points }) => curvePath(points, direction === "backward")).join("") });
  if (moment.kind !== "edge") return;
  const product = productText(moment);
  const at = labelPosition(scene, graph, moment.edge, labelWidth(product) * large, large);
  if (product) showLabel(words, product, at, large);
  const from = wire ? midpointOf(wire.points) : item && [item.x + item.w / 2, at[1] < item.y ? item.y : item.y + item.h];
  setAttributes(leader, { d: product && from && leaderPath(/** @type {Point} */ (from), at) });
  if (!wire) return;
  const [[x, y]] = wire.points;
  setAttributes(point, { d: arrowheadPath([x + 1, y], -1, 1.6) });
  if (!moving || typeof number !== "number" || prefersReducedMotion()) return;
  showLabel(traveller, formatBrief(number), [x, y], large);
  active.run = animateAlong(traveller, samplePoints(wire.points).reverse(), large);
}

/** Show a label. @param {Element} pill @param {string} content @param {Point} at @param {number} large */
function showLabel(pill, content, [x, y], large) {
  const width = labelWidth(content);
  const [background, label] = pill.children;
  label.textContent = content;
  setAttributes(background, { x: -width / 2, width: width });
  setAttributes(pill, { transform: `translate(${x} ${y}) scale(${large})`, visibility: "visible" });
}

/**
 * Animate an element along points, then hide it.
 * @param {Element} element @param {Point[]} points @param {number} scale
 */
function animateAlong(element, points, scale) {
  const frames = points.map(([x, y]) => ({ transform: `translate(${x}px,${y}px) scale(${scale})` }));
  const animation = element.animate(frames, { duration: TRAVEL_MS, easing: "ease-in-out" });
  animation.onfinish = () => setAttributes(element, { visibility: "hidden" });
  return animation;
}
