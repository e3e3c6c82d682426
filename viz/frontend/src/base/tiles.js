/**
 * Positions of an array's elements in its heatmap, whose matrices are tiled side by side as in
 * minigrad_viz/trace/arrays.py.
 */
import { ceil, floor, max, min } from "./math.js";

/** @typedef {import("./types.js").Cells} Cells */

/**
 * Return how many of an array's matrices (its last two dimensions) are tiled side by side, as Python's `grid` does.
 * @param {number[]} shape
 */
export function tilesAcross(shape) {
  const [channels, high, wide] = shape.slice(-3);
  if (shape.length < 3) return 1;
  const many = shape.slice(0, -2).reduce((all, side) => all * side, 1);
  let [best, across] = [Infinity, 1];
  for (let k = 1; k <= many && high * wide > 0; k += 1) {
    if (many % k || (channels % k && k % channels)) continue;
    const [tall, broad] = [(many / k) * high, k * wide];
    const length = max(tall, broad) / min(tall, broad);
    if (length <= best) [best, across] = [length, k];
    if (broad >= tall) break;
  }
  return across;
}

/**
 * Reorder an array's elements from row-major order into the order of its heatmap, or, with `back`, the other way.
 * @param {Float64Array} cells @param {number[]} shape @param {boolean} [back]
 */
export function tiled(cells, shape, back = false) {
  const across = tilesAcross(shape);
  if (across < 2) return cells;
  const [high, wide] = shape.slice(-2);
  return cells.map((_, at) => {
    const [row, col] = [floor(at / (wide * across)), at % (wide * across)];
    const [line, place] = [floor(at / wide), at % wide];
    const tile = floor(line / high);
    return back
      ? cells[((floor(tile / across) * high + (line % high)) * across + (tile % across)) * wide + place]
      : cells[((floor(row / high) * across + floor(col / wide)) * high + (row % high)) * wide + (col % wide)];
  });
}

/**
 * Return the full index of a displayed cell in the array.
 * @param {Cells} cells @param {number} row @param {number} col
 * @returns {number[]}
 */
export function placeOf({ shape, step }, row, col) {
  const [down, right] = [row * (step?.[0] ?? 1), col * (step?.[1] ?? 1)];
  const [high, wide] = [shape[shape.length - 2] ?? 1, shape[shape.length - 1] ?? 1];
  let tile = floor(down / high) * tilesAcross(shape) + floor(right / wide);
  const place = [down % high, right % wide].slice(-min(shape.length, 2));
  for (let axis = shape.length - 3; axis >= 0; axis -= 1) {
    place.unshift(tile % shape[axis]);
    tile = floor(tile / shape[axis]);
  }
  return shape.length ? place : [];
}

/**
 * Return the rectangles [row, col, rows, cols] of displayed cells inside a box, one for each matrix.
 * @param {Cells} cells
 * @param {[number, number][]} box
 * @returns {[number, number, number, number][]}
 */
export function rectanglesIn({ shape, step, rows, cols }, box) {
  const rank = shape.length;
  const [left, right] = box[rank - 1] ?? [0, 1];
  const [top, bottom] = box[rank - 2] ?? [0, 1];
  const [high, wide, across] = [shape[rank - 2] ?? 1, shape[rank - 1] ?? 1, tilesAcross(shape)];
  const [rowStep, colStep] = step ?? [1, 1];
  /** @type {[number, number, number, number][]} */
  const found = [];
  const visit = (/** @type {number} */ axis, /** @type {number} */ tile) => {
    if (axis < rank - 2) {
      for (let at = box[axis][0]; at < box[axis][1]; at += 1) visit(axis + 1, tile * shape[axis] + at);
      return;
    }
    const [down, along] = [floor(tile / across) * high, (tile % across) * wide];
    const [r0, c0] = [ceil((down + top) / rowStep), ceil((along + left) / colStep)];
    const r1 = min(rows, ceil((down + bottom) / rowStep));
    const c1 = min(cols, ceil((along + right) / colStep));
    if (r1 > r0 && c1 > c0) found.push([r0, c0, r1 - r0, c1 - c0]);
  };
  visit(0, 0);
  return found;
}
