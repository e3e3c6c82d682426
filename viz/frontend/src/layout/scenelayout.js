/** Positions of the boxes and wires of a scene: nesting.js, applied to the visible items and the frames around them. */
import { textWidth } from "../base/measure.js";
import { nest } from "./nesting.js";

/** @typedef {[number, number]} Point */
/**
 * Centres of items, routes of wires, and frames of open blocks, outer ones first; (0, 0) is the top left corner.
 * @typedef {{width: number, height: number, centers: Point[], routes: Point[][],
 *   hulls: {block: number, x: number, y: number, w: number, h: number}[]}} SceneLayout
 */

export const TITLE_HEIGHT = 22; // height of a frame's title

/**
 * @param {import("../base/types.js").Graph} graph
 * @param {{items: {parent: number}[]}} visible
 * @param {Point[]} sizes of the items
 * @param {{from: number, to: number, value: number}[]} ends of the wires
 * @param {{gapX: number, gapY: number}} gaps
 * @returns {SceneLayout}
 */
export function layoutScene(graph, visible, sizes, ends, { gapX, gapY }) {
  /** @type {Map<number, number>} */
  const frames = new Map();
  /** @type {Point[]} */
  const all = [];
  /** @type {number[]} */
  const outer = [];
  const frameOf = (/** @type {number} */ block) => {
    const closed = [];
    for (let at = block; at > 0 && !frames.has(at); at = graph.blocks[at].outer) closed.push(at);
    for (const at of closed.reverse()) {
      outer.push(frames.get(graph.blocks[at].outer) ?? -1);
      frames.set(at, all.length);
      all.push([textWidth(graph.blocks[at].name, 11.5, true) + 36, TITLE_HEIGHT]);
    }
    return frames.get(block) ?? -1;
  };
  const itemIndices = visible.items.map((item, k) => {
    outer.push(frameOf(item.parent));
    return all.push(sizes[k]) - 1;
  });
  const edges = ends.map(({ from, to }) => /** @type {Point} */ ([itemIndices[from], itemIndices[to]]));
  const ports = { wires: ends.map((wire) => wire.value) };
  const layout = nest(all, outer, edges, { gapX, gapY, padding: 14, ports });
  const box = (/** @type {number} */ at) => layout.boxes[at];
  return {
    width: layout.width,
    height: layout.height,
    centers: itemIndices.map((at) => [box(at)[0] + box(at)[2] / 2, box(at)[1] + box(at)[3] / 2]),
    routes: layout.routes,
    hulls: [...frames].map(([block, at]) => ({ block, x: box(at)[0], y: box(at)[1], w: box(at)[2], h: box(at)[3] })),
  };
}
