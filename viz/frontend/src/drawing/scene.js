/**
 * The scene: the visible part of a graph, measured and laid out. It does not depend on the position of the playback, so
 * stepping never moves anything; the view draws it.
 */
import { ceil, max, min } from "../base/math.js";
import { alarmLevels, blockCard, blockContents, nodeCard, numberWidths, formulaParts, compactCard } from "./cards.js";
import { ARROW_LENGTH, yAt } from "./curves.js";
import { tensorScales } from "./heatcolour.js";
import { textWidth } from "../base/measure.js";
import { TITLE_HEIGHT, layoutScene } from "../layout/scenelayout.js";
import { formatBrief, formulaText } from "../base/notation.js";

/** @typedef {import("../base/types.js").Graph} Graph */
/** @typedef {import("../base/types.js").Numbers} Numbers */
/** @typedef {import("./cards.js").Card} Card */
/** @typedef {[number, number]} Point */

/**
 * The visible items, as model/blocks.js returns them. A wire joins two items and stands for all edges between them.
 * @typedef {{id: string, node: number, block: number, parent: number}} VisibleItem
 * @typedef {{from: number, to: number, value: number, edges: number[]}} VisibleWire
 * @typedef {{items: VisibleItem[], wires: VisibleWire[], itemOf: (node: number) => number}} Visible
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
 * @typedef {VisibleWire & {points: Point[], flows: boolean, label: Rect | null}} SceneWire
 */

/**
 * @typedef {object} Scene
 * @property {number} width
 * @property {number} height
 * @property {SceneItem[]} items
 * @property {Hull[]} hulls outer ones first
 * @property {SceneWire[]} wires
 * @property {Rect[]} occupied areas that labels must avoid: items, titles of frames, other labels
 * @property {(node: number) => number} itemOf index of the item that shows a node or contains it
 * @property {Int32Array} wireOf the wire of each edge, -1: hidden inside a block
 * @property {ReturnType<typeof blockContents>} contents contents of each block
 * @property {boolean} showFormulas whether labels include the formula of the local derivative
 * @property {boolean} isCompact whether it is compact, with small cards and no labels
 */

const MAX_LABELLED_ITEMS = 60; // up to this many items, labels include the formula if it is short
const MAX_LABEL_SHIFT = 15; // largest vertical distance of a label from the end of its arrow
const LABEL_PITCH = 15.5; // distance between labels, including subscripts and their background
const LABEL_HEIGHT = 11; // height of a label
const MARGIN = 20;

/** Return the first node in a block or its inner blocks. @param {Graph} graph @param {number} block */
export const firstNodeIn = (graph, block) =>
  graph.block.findIndex((at) => {
    while (at > block) at = graph.blocks[at].outer; // an outer block comes first
    return at === block;
  });

/**
 * Return the label of an edge: the local derivative, with its formula if there is room.
 * @param {Graph} graph @param {Numbers} numbers @param {number} edge @param {boolean} showFormulas
 */
export function edgeLabel(graph, numbers, edge, showFormulas) {
  const local = numbers.local(edge);
  if (local === null) return "";
  const number = formatBrief(local);
  const at = graph.edgeFormula[edge];
  if (!showFormulas || at < 0) return number;
  const rule = formulaText(graph.formulas[at], formulaParts(graph, graph.result[edge], 10)).replaceAll(" / ", "/");
  const text = `${rule} = ${number}`;
  return rule === number || /^[−-]?[\d.]+$/.test(rule) || textWidth(text, 11) > 100 ? number : text;
}

/**
 * Split the wires between two nodes into single edges: a*a has two.
 * @param {Visible} visible
 */
function splitWires(visible) {
  return visible.wires.flatMap((wire) => {
    const joinsNodes = visible.items[wire.from].node >= 0 && visible.items[wire.to].node >= 0;
    return joinsNodes ? wire.edges.map((edge) => ({ ...wire, edges: [edge] })) : [wire];
  });
}

/**
 * Lay out the visible part of a graph.
 * @param {Graph} graph
 * @param {Visible} visible
 * @param {boolean} [isCompact] compact
 * @param {typeof layoutScene} [computeLayout] layout function, replaceable in tests
 * @returns {Scene}
 */
export function scene(graph, visible, isCompact = false, computeLayout = layoutScene) {
  const alarms = alarmLevels(graph);
  const contents = blockContents(graph, alarms);
  const nodes = visible.items.filter((item) => item.node >= 0).map((item) => item.node);
  const numberSizes = numberWidths(graph, nodes);
  const scales = tensorScales(graph);
  const cards = visible.items.map(({ node, block }) => {
    const room = numberSizes.get(node);
    const card =
      room === undefined
        ? blockCard(graph, block, contents[block])
        : { ...nodeCard(graph, node, room, alarms), scale: scales.get(node) };
    return isCompact ? compactCard(card, room) : card;
  });
  const ends = splitWires(visible);
  const showFormulas = visible.items.length <= MAX_LABELLED_ITEMS;
  const labels = ends.map(({ to, edges }) =>
    isCompact || edges.length > 1 || visible.items[to].node < 0 ? "" : edgeLabel(graph, graph.numbers, edges[0], showFormulas),
  );
  const widths = labels.map((label) => textWidth(label, 11));
  const widest = widths.reduce((most, width) => max(most, width), 0);
  const sizes = cards.map((card) => /** @type {Point} */ ([card.w, card.h]));
  const gaps = isCompact ? { gapX: 34, gapY: 12 } : { gapX: max(56, widest + 40), gapY: 18 };
  const layout = computeLayout(graph, visible, sizes, ends, gaps);
  const items = visible.items.map(({ id, node, block }, k) => {
    const [x, y] = layout.centers[k];
    const card = cards[k];
    const { w, h } = card;
    return { id, node, block, x: x - w / 2 + MARGIN, y: y - h / 2 + MARGIN, w, h, card };
  });
  const wireOf = new Int32Array(graph.edgeCount).fill(-1);
  const wires = ends.map(({ from, to, value, edges }, k) => {
    for (const edge of edges) wireOf[edge] = k;
    const points = layout.routes[k].map(([x, y]) => /** @type {Point} */ ([x + MARGIN, y + MARGIN]));
    const flows = edges.some((edge) => graph.flows[edge]);
    return { from, to, value, edges, points, flows, label: /** @type {Rect | null} */ (null) };
  });
  placeLabels(wires, widths, items.length);
  const hulls = layout.hulls.map((hull) => ({
    ...hull,
    x: hull.x + MARGIN,
    y: hull.y + MARGIN,
    name: graph.blocks[hull.block].name,
  }));
  return {
    width: ceil(layout.width + 2 * MARGIN),
    height: ceil(layout.height + 2 * MARGIN + 6), // room for a label below the lowest box
    items,
    hulls,
    wires,
    occupied: [...items, ...hulls.map((hull) => ({ ...hull, h: TITLE_HEIGHT })), ...wires.flatMap(({ label }) => label ?? [])],
    itemOf: visible.itemOf,
    wireOf,
    contents,
    showFormulas,
    isCompact,
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
      const y = yAt(wires[k].points, x - ARROW_LENGTH - 6 - widths[k] / 3);
      return min(max(y, port - MAX_LABEL_SHIFT), port + MAX_LABEL_SHIFT);
    });
    // Arrows with the same source, or that cross, are only apart at their ports, by hardly a line of text.
    const last = ports.length - 1;
    if (heights.some((y, at) => at > 0 && heights[at - 1] + LABEL_PITCH > y))
      heights = ports.map((_, at) => (ports[0][1] + ports[last][1] - last * LABEL_PITCH) / 2 + at * LABEL_PITCH);
    list.forEach((k, at) => {
      const w = widths[k];
      wires[k].label = { x: ports[at][0] - ARROW_LENGTH - 6 - w, y: heights[at] - LABEL_HEIGHT / 2, w, h: LABEL_HEIGHT };
    });
  }
}
