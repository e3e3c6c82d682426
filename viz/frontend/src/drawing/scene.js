/**
 * The scene: what is visible of a graph, measured and placed. It does not depend on where the playback is, so stepping
 * never moves anything; the view draws it.
 */
import { ceil, max, min } from "../math.js";
import { alarmsOf, blockCard, contentsOf, nodeCard, numberRooms, partsOf } from "./cards.js";
import { TIP, heightAt } from "./curves.js";
import { scalesOf } from "./heatcolour.js";
import { textWidth } from "./measure.js";
import { nested } from "../layout/placing.js";
import { formulaText, pretty } from "../engine/notation.js";

/** @typedef {import("../types.js").Graph} Graph */
/** @typedef {import("../types.js").Numbers} Numbers */
/** @typedef {import("./cards.js").Card} Card */
/** @typedef {[number, number]} Point */

/**
 * What blocks.js says is visible. A wire joins two items and stands for all edges between them.
 * @typedef {{id: string, node: number, block: number, parent: number}} SeenItem
 * @typedef {{from: number, to: number, value: number, edges: number[]}} SeenWire
 * @typedef {{items: SeenItem[], wires: SeenWire[], itemOf: (node: number) => number}} Visible
 */

/**
 * An item with its place: (x, y) is the top left corner of a box of w × h, the second border of an output included.
 * @typedef {import("./viewport.js").Rect & {id: string, node: number, block: number, card: Card}} SceneItem
 * @typedef {{block: number, x: number, y: number, w: number, h: number, name: string}} Hull
 */

/**
 * A wire with its route from left to right. `label` is whether its local derivative stands on it, ending at `labelAt`;
 * `flows` is false where no gradient goes back.
 * @typedef {SeenWire & {points: Point[], flows: boolean, label: boolean, labelAt: Point}} SceneWire
 */

/**
 * @typedef {object} Scene
 * @property {number} width
 * @property {number} height
 * @property {SceneItem[]} items
 * @property {Hull[]} hulls outer ones first
 * @property {SceneWire[]} wires
 * @property {(node: number) => number} itemOf the item that shows a node or hides it in a block
 * @property {Int32Array} wireOf for each edge its wire, -1: hidden inside a block
 * @property {ReturnType<typeof contentsOf>} contents what lies in each block
 * @property {boolean} wordy whether a label also has the rule of the local derivative
 */

const LABELLED = 60; // up to so many items a label also carries the rule, where that is short
const NEAR = 15; // a label is at most so far above or below the end of its arrow
const PITCH = 11.5; // from one label to the next below
const MARGIN = 20;

/** The first node in a block, or deeper in it. @param {Graph} graph @param {number} block */
export const firstIn = (graph, block) =>
  graph.block.findIndex((at) => {
    while (at > block) at = graph.blocks[at].outer; // an outer block comes first
    return at === block;
  });

/**
 * What stands on an edge: the local derivative, with its rule where there is room.
 * @param {Graph} graph @param {Numbers} numbers @param {number} edge @param {boolean} wordy
 */
export function localText(graph, numbers, edge, wordy) {
  const local = numbers.local(edge);
  if (local === null) return "";
  const number = pretty(local);
  const at = graph.edgeFormula[edge];
  if (!wordy || at < 0) return number;
  const rule = formulaText(graph.formulas[at], partsOf(graph, graph.result[edge], 10));
  const text = `${rule} = ${number}`;
  return rule === number || /^[−-]?[\d.]+$/.test(rule) || textWidth(text, 11) > 100 ? number : text;
}

/**
 * The wires with those between two nodes taken apart, for a*a has two edges.
 * @param {Visible} seen
 */
function wiresOf(seen) {
  return seen.wires.flatMap((wire) => {
    const plain = seen.items[wire.from].node >= 0 && seen.items[wire.to].node >= 0;
    return plain ? wire.edges.map((edge) => ({ ...wire, edges: [edge] })) : [wire];
  });
}

/**
 * The scene of what is visible.
 * @param {Graph} graph
 * @param {Visible} seen
 * @param {typeof nested} [place] where boxes and wires go; another one is for tests
 * @returns {Scene}
 */
export function scene(graph, seen, place = nested) {
  const alarms = alarmsOf(graph);
  const contents = contentsOf(graph, alarms);
  const nodes = seen.items.filter((item) => item.node >= 0).map((item) => item.node);
  const rooms = numberRooms(graph, nodes);
  const scales = scalesOf(graph);
  const cards = seen.items.map(({ node, block }) => {
    const room = rooms.get(node);
    if (room === undefined) return blockCard(graph, block, contents[block]);
    return { ...nodeCard(graph, node, room, alarms), scale: scales.get(node) };
  });
  const ends = wiresOf(seen);
  const wordy = seen.items.length <= LABELLED;
  const labels = ends.map(({ to, edges }) =>
    edges.length > 1 || seen.items[to].node < 0 ? "" : localText(graph, graph.numbers, edges[0], wordy),
  );
  const widest = labels.reduce((most, label) => max(most, textWidth(label, 11)), 0);
  const sizes = cards.map((card) => /** @type {Point} */ ([card.w, card.h]));
  const placed = place(graph, seen, sizes, ends, { gapX: max(56, widest + 40), gapY: 18 });
  const items = seen.items.map((item, k) => {
    const [x, y] = placed.centers[k];
    const { w, h } = cards[k];
    return {
      id: item.id,
      node: item.node,
      block: item.block,
      x: x - w / 2 + MARGIN,
      y: y - h / 2 + MARGIN,
      w,
      h,
      card: cards[k],
    };
  });
  const wireOf = new Int32Array(graph.edgeCount).fill(-1);
  const wires = ends.map(({ from, to, value, edges }, k) => {
    for (const edge of edges) wireOf[edge] = k;
    const points = placed.routes[k].map(([x, y]) => /** @type {Point} */ ([x + MARGIN, y + MARGIN]));
    const flows = edges.some((edge) => graph.flows[edge]);
    return { from, to, value, edges, points, flows, label: labels[k] !== "", labelAt: /** @type {Point} */ ([0, 0]) };
  });
  placeLabels(wires, labels, items.length);
  const hulls = placed.hulls.map((hull) => ({
    ...hull,
    x: hull.x + MARGIN,
    y: hull.y + MARGIN,
    name: graph.blocks[hull.block].name,
  }));
  return {
    width: ceil(placed.width + 2 * MARGIN),
    height: ceil(placed.height + 2 * MARGIN),
    items,
    hulls,
    wires,
    itemOf: seen.itemOf,
    wireOf,
    contents,
    wordy,
  };
}

/**
 * Labels lie on their arrows, but near the ends of them, and clear of the other labels there.
 * @param {SceneWire[]} wires @param {string[]} labels @param {number} count
 */
function placeLabels(wires, labels, count) {
  /** @type {number[][]} */
  const into = Array.from({ length: count }, () => []);
  wires.forEach((wire, k) => wire.label && into[wire.to].push(k));
  for (const list of into) {
    const ports = list.map((k) => wires[k].points[wires[k].points.length - 1]);
    let heights = list.map((k, at) => {
      const [x, port] = ports[at];
      const y = heightAt(wires[k].points, x - TIP - 6 - textWidth(labels[k], 11) / 3);
      return min(max(y, port - NEAR), port + NEAR);
    });
    // Arrows from one place, or that cross: only at their ports are they apart.
    if (heights.some((y, at) => at > 0 && heights[at - 1] + PITCH > y)) heights = ports.map(([, y]) => y);
    list.forEach((k, at) => (wires[k].labelAt = [ports[at][0] - TIP - 6, heights[at]]));
  }
}
