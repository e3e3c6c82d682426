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
export function tileColumns(shape) {
  const [channels, rows, cols] = shape.slice(-3);
  if (shape.length < 3) return 1;
  const count = shape.slice(0, -2).reduce((all, side) => all * side, 1);
  let [best, columns] = [Infinity, 1];
  for (let k = 1; k <= count && rows * cols > 0; k += 1) {
    if (count % k || (channels % k && k % channels)) continue;
    const [totalRows, totalCols] = [(count / k) * rows, k * cols];
    const length = max(totalRows, totalCols) / min(totalRows, totalCols);
    if (length <= best) [best, columns] = [length, k];
    if (totalCols >= totalRows) break;
  }
  return columns;
}

/**
 * Reorder an array's elements from row-major order into the order of its heatmap, or, with `inverse`, the other way.
 * @param {Float64Array} cells @param {number[]} shape @param {boolean} [inverse]
 */
export function tileCells(cells, shape, inverse = false) {
  const columns = tileColumns(shape);
  if (columns < 2) return cells;
  const [rows, cols] = shape.slice(-2);
  return cells.map((_, at) => {
    const [row, col] = [floor(at / (cols * columns)), at % (cols * columns)];
    const [line, offset] = [floor(at / cols), at % cols];
    const tile = floor(line / rows);
    return inverse
      ? cells[((floor(tile / columns) * rows + (line % rows)) * columns + (tile % columns)) * cols + offset]
      : cells[((floor(row / rows) * columns + floor(col / cols)) * rows + (row % rows)) * cols + (col % cols)];
  });
}

/**
 * Return the full index of a displayed cell in the array.
 * @param {Cells} cells @param {number} row @param {number} col
 * @returns {number[]}
 */
export function cellIndex({ shape, step }, row, col) {
  const [down, right] = [row * (step?.[0] ?? 1), col * (step?.[1] ?? 1)];
  const [rows, cols] = [shape[shape.length - 2] ?? 1, shape[shape.length - 1] ?? 1];
  let tile = floor(down / rows) * tileColumns(shape) + floor(right / cols);
  const index = [down % rows, right % cols].slice(-min(shape.length, 2));
  for (let axis = shape.length - 3; axis >= 0; axis -= 1) {
    index.unshift(tile % shape[axis]);
    tile = floor(tile / shape[axis]);
  }
  return shape.length ? index : [];
}

/**
 * Return the rectangles [row, col, rows, cols] of displayed cells inside a box, one for each matrix.
 * @param {Cells} cells
 * @param {[number, number][]} box
 * @returns {[number, number, number, number][]}
 */
export function cellRectangles({ shape, step, rows, cols }, box) {
  const rank = shape.length;
  const [left, right] = box[rank - 1] ?? [0, 1];
  const [top, bottom] = box[rank - 2] ?? [0, 1];
  const [tileRows, tileCols, columns] = [shape[rank - 2] ?? 1, shape[rank - 1] ?? 1, tileColumns(shape)];
  const [rowStep, colStep] = step ?? [1, 1];
  /** @type {[number, number, number, number][]} */
  const rectangles = [];
  const visit = (/** @type {number} */ axis, /** @type {number} */ tile) => {
    if (axis < rank - 2) {
      for (let at = box[axis][0]; at < box[axis][1]; at += 1) visit(axis + 1, tile * shape[axis] + at);
      return;
    }
    const [down, along] = [floor(tile / columns) * tileRows, (tile % columns) * tileCols];
    const [r0, c0] = [ceil((down + top) / rowStep), ceil((along + left) / colStep)];
    const r1 = min(rows, ceil((down + bottom) / rowStep));
    const c1 = min(cols, ceil((along + right) / colStep));
    if (r1 > r0 && c1 > c0) rectangles.push([r0, c0, r1 - r0, c1 - c0]);
  };
  visit(0, 0);
  return rectangles;
}
