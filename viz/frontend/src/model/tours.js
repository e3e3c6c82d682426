/** A scripted tour of a lesson: stops with captions. Python has resolved the positions; here they are checked. */

import { ancestorsOf } from "./blocks.js";
import { isInteger } from "../base/math.js";

/** @typedef {import("../base/types.js").Graph} Graph */
/** @typedef {import("../base/types.js").Timeline} Timeline */
/** @typedef {import("../base/types.js").TourStop} Station */

/**
 * Read the stops of the tour in a trace; none if there is no tour. A stop is {at, text, select?}: a position, a
 * caption, and a node "n3" or a block "b2" to select; the block is opened. Throws an Error for an invalid stop.
 * @param {Graph} graph
 * @param {Timeline} moments
 * @returns {Station[]}
 */
export function readStops(graph, moments) {
  return graph.tours.map((item, i) => {
    const where = `Stop ${i + 1} of the tour`;
    const { at, text, select = null } = /** @type {Record<string, any>} */ (item ?? {});
    if (typeof text !== "string") throw new Error(`${where} has no text.`);
    if (!isInteger(at) || at < 0 || at > moments.last) {
      throw new Error(`${where} is at position ${JSON.stringify(at)}: expected 0 to ${moments.last}.`);
    }
    return { position: at, text, select, expand: select === null ? [] : blocksToOpen(graph, select, where) };
  });
}

/**
 * Return the blocks to open for a selected block: itself and its ancestors. Selecting a node opens its blocks anyway.
 * @param {Graph} graph @param {unknown} select @param {string} where
 */
function blocksToOpen(graph, select, where) {
  const [, kind, digits] = /^([nb])(\d+)$/.exec(String(select)) ?? [];
  const index = Number(digits);
  if (kind === undefined || index >= (kind === "n" ? graph.count : graph.blocks.length)) {
    throw new Error(`${where} selects ${JSON.stringify(select)}, which does not exist.`);
  }
  return ancestorsOf(graph, kind === "b" ? index : 0);
}
