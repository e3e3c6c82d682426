/**
 * The scene: the visible part of a graph, measured and laid out. It does not depend on the position of the playback, so
 * stepping never moves anything; the view draws it.
 */
import { ceil, max, min } from "../base/math.js";
import { alarmsOf, blockCard, contentsOf, nodeCard, numberRooms, partsOf, tightCard } from "./cards.js";
import { TIP, heightAt } from "./curves.js";
import { scalesOf } from "./heatcolour.js";
import { textWidth } from "../base/measure.js";
import { BAR, nested } from "../layout/placing.js";
import { brief, formulaText } from "../base/notation.js";

/** @typedef {import("../base/types.js").Graph} Graph */
/** @typedef {import("../base/types.js").Numbers} Numbers */
/** @typedef {import("./cards.js").Card} Card */
/** @typedef {[number, number]} Point */

/**
 * The visible items, as model/blocks.js returns them. A wire joins two items and stands for all edges between them.
 * @typedef {{id: string, node: number, block: number, parent: number}} SeenItem
 * @typedef {{from: number, to: number, value: number, edges: number[]}} SeenWire
 * @typedef {{items: SeenItem[], wires: SeenWire[], itemOf: (node: number) => number}} Visible
 */

/**
 * An item with its position: (x, y) is the top left corner of a w × h box, including the second border of an output.
 * @typedef {import("./viewport.js").Rect} Rect
 * @typedef {Rect & {id: string, node: number, block: number, card: Card}} SceneItem
 * @typedef {{block: number, x: number, y: number, w: number, h: number, name: string}} Hull
 */

/**
 * A wire with its route from left to right. `label` is the box of its local derivative, or null; `flows` is false if no
 * gradient flows back.
 * @typedef {SeenWire & {points: Point[], flows: boolean, label: Rect | null}} SceneWire
 */

/**
 * @typedef {object} Scene
 * @property {number} width
 * @property {number} height
 * @property {SceneItem[]} items
 * @property {Hull[]} hulls outer ones first
 * @property {SceneWire[]} wires
 * @property {Rect[]} covered areas that labels must avoid: items, titles of frames, other labels
 * @property {(node: number) => number} itemOf index of the item that shows a node or contains it
 * @property {Int32Array} wireOf the wire of each edge, -1: hidden inside a block
 * @property {ReturnType<typeof contentsOf>} contents contents of each block
 * @property {boolean} wordy whether labels include the formula of the local derivative
 * @property {boolean} tight whether it is compact, with small cards and no labels
 */

const LABELLED = 60; // up to this many items, labels include the formula if it is short
const NEAR = 15; // largest vertical distance of a label from the end of its arrow
const PITCH = 15.5; // distance between labels, including subscripts and their background
const LINE = 11; // height of a label
const MARGIN = 20;

/** Return the first node in a block or its inner blocks. @param {Graph} graph @param {number} block */
export const firstIn = (graph, block) =>
  graph.block.findIndex((at) => {
    while (at > block) at = graph.blocks[at].outer; // an outer block comes first
    return at === block;
  });

/**
 * Return the label of an edge: the local derivative, with its formula if there is room.
 * @param {Graph} graph @param {Numbers} numbers @param {number} edge @param {boolean} wordy
 */
export function localText(graph, numbers, edge, wordy) {
  const local = numbers.local(edge);
  if (local === null) return "";
  const number = brief(local);
  const at = graph.edgeFormula[edge];
  if (!wordy || at < 0) return number;
  const rule = formulaText(graph.formulas[at], partsOf(graph, graph.result[edge], 10)).replaceAll(" / ", "/");
  const text = `${rule} = ${number}`;
  return rule === number || /^[−-]?[\d.]+$/.test(rule) || textWidth(text, 11) > 100 ? number : text;
}

/**
 * Split the wires between two nodes into single edges: a*a has two.
 * @param {Visible} seen
 */
function wiresOf(seen) {
  return seen.wires.flatMap((wire) => {
    const plain = seen.items[wire.from].node >= 0 && seen.items[wire.to].node >= 0;
    return plain ? wire.edges.map((edge) => ({ ...wire, edges: [edge] })) : [wire];
  });
}

/**
 * Lay out the visible part of a graph.
 * @param {Graph} graph
 * @param {Visible} seen
 * @param {boolean} [tight] compact
 * @param {typeof nested} [place] layout function, replaceable in tests
 * @returns {Scene}
 */
export function scene(graph, seen, tight = false, place = nested) {
  const alarms = alarmsOf(graph);
  const contents = contentsOf(graph, alarms);
  const nodes = seen.items.filter((item) => item.node >= 0).map((item) => item.node);
  const rooms = numberRooms(graph, nodes);
  const scales = scalesOf(graph);
  const cards = seen.items.map(({ node, block }) => {
    const room = rooms.get(node);
    const card =
      room === undefined
        ? blockCard(graph, block, contents[block])
        : { ...nodeCard(graph, node, room, alarms), scale: scales.get(node) };
    return tight ? tightCard(card, room) : card;
  });
  const ends = wiresOf(seen);
  const wordy = seen.items.length <= LABELLED;
  const labels = ends.map(({ to, edges }) =>
    tight || edges.length > 1 || seen.items[to].node < 0 ? "" : localText(graph, graph.numbers, edges[0], wordy),
  );
  const widths = labels.map((label) => textWidth(label, 11));
  const widest = widths.reduce((most, width) => max(most, width), 0);
  const sizes = cards.map((card) => /** @type {Point} */ ([card.w, card.h]));
  const gaps = tight ? { gapX: 34, gapY: 12 } : { gapX: max(56, widest + 40), gapY: 18 };
  const placed = place(graph, seen, sizes, ends, gaps);
  const items = seen.items.map(({ id, node, block }, k) => {
    const [x, y] = placed.centers[k];
    const card = cards[k];
    const { w, h } = card;
    return { id, node, block, x: x - w / 2 + MARGIN, y: y - h / 2 + MARGIN, w, h, card };
  });
  const wireOf = new Int32Array(graph.edgeCount).fill(-1);
  const wires = ends.map(({ from, to, value, edges }, k) => {
    for (const edge of edges) wireOf[edge] = k;
    const points = placed.routes[k].map(([x, y]) => /** @type {Point} */ ([x + MARGIN, y + MARGIN]));
    const flows = edges.some((edge) => graph.flows[edge]);
    return { from, to, value, edges, points, flows, label: /** @type {Rect | null} */ (null) };
  });
  placeLabels(wires, widths, items.length);
  const hulls = placed.hulls.map((hull) => ({
    ...hull,
    x: hull.x + MARGIN,
    y: hull.y + MARGIN,
    name: graph.blocks[hull.block].name,
  }));
  return {
    width: ceil(placed.width + 2 * MARGIN),
    height: ceil(placed.height + 2 * MARGIN + 6), // room for a label below the lowest box
    items,
    hulls,
    wires,
    covered: [...items, ...hulls.map((hull) => ({ ...hull, h: BAR })), ...wires.flatMap(({ label }) => label ?? [])],
    itemOf: seen.itemOf,
    wireOf,
    contents,
    wordy,
    tight,
  };
}

/**
 * Place labels on their arrows, near the arrowheads and clear of each other.
 * @param {SceneWire[]} wires @param {number[]} widths of the labels, 0 for none @param {number} count
 */
function placeLabels(wires, widths, count) {
  /** @type {number[][]} */
  const into = Array.from({ length: count }, () => []);
  wires.forEach((wire, k) => widths[k] && into[wire.to].push(k));
  for (const list of into) {
    const ports = list.map((k) => wires[k].points[wires[k].points.length - 1]);
    let heights = list.map((k, at) => {
      const [x, port] = ports[at];
      const y = heightAt(wires[k].points, x - TIP - 6 - widths[k] / 3);
      return min(max(y, port - NEAR), port + NEAR);
    });
    // Arrows with the same source, or that cross, are only apart at their ports, by hardly a line of text.
    const last = ports.length - 1;
    if (heights.some((y, at) => at > 0 && heights[at - 1] + PITCH > y))
      heights = ports.map((_, at) => (ports[0][1] + ports[last][1] - last * PITCH) / 2 + at * PITCH);
    list.forEach((k, at) => {
      const w = widths[k];
      wires[k].label = { x: ports[at][0] - TIP - 6 - w, y: heights[at] - LINE / 2, w, h: LINE };
    });
  }
}
