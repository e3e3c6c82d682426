/**
 * Which operand cells a result cell was computed from, by the op's name and the shapes, for linking heatmaps. The
 * answer is a box, [from, to) in each dimension of the operand, or null for an op that is not in this table.
 */
import { floor, max, min } from "../base/math.js";

/** @typedef {[number, number][]} Box */
/** @typedef {{operands: number[][], result: number[]}} Shapes */
/** @typedef {(shapes: Shapes, cell: number[], attrs: Record<string, string>) => (Box | null)[] | null} Link */

/** Elementwise ops without a scalar formula in the trace. */
const ELEMENTWISE = new Set(
  (
    "bce_with_logits binary_cross_entropy bitwise_and bitwise_not bitwise_or bitwise_xor contiguous copy dropout " +
    "expand hinge_loss huber_loss kl_div l1_loss mse_loss to tril triu"
  ).split(" "),
);
const REDUCTIONS = new Set("all amax amin any argmax argmin logsumexp max mean min norm prod std sum var".split(" "));
const ALONG_DIMENSION = new Set("cumprod cumsum log_softmax softmax sort topk".split(" "));

/** @param {number} at @returns {[number, number]} */
const singleIndex = (at) => [at, at + 1];

/** @param {number[]} shape @returns {Box} */
const fullBox = (shape) => shape.map((size) => [0, size]);

/**
 * Return the operand cell that is broadcast to `cell`.
 * @param {number[]} shape @param {number[]} cell
 * @returns {Box}
 */
function broadcast(shape, cell) {
  const skip = cell.length - shape.length;
  return shape.map((size, axis) => singleIndex(size === 1 ? 0 : cell[axis + skip]));
}

/**
 * Parse the dimensions in an attribute, as non-negative indices; null for all, undefined if it cannot be parsed.
 * @param {string | undefined} text as Python writes it: "1", "-1", "(0, 1)", "None"
 * @param {number} rank
 * @returns {number[] | null | undefined}
 */
export function dimensions(text, rank) {
  if (text === undefined || text === "None" || text === "()") return null;
  if (!/^[[(]?\s*-?\d+(\s*,\s*-?\d+)*\s*,?\s*[\])]?$/.test(text)) return undefined;
  const axes = (text.match(/-?\d+/g) ?? []).map((digits) => Number(digits) + (digits.startsWith("-") ? rank : 0));
  return axes.every((axis) => axis >= 0 && axis < rank) ? axes : undefined;
}

/** @type {Link} */
function reduction({ operands: [shape], result }, cell, attrs) {
  const axes = dimensions(attrs.dim, shape.length);
  if (axes === undefined) return null;
  if (axes === null) return result.every((size) => size === 1) ? [fullBox(shape)] : null;
  const keepsDims = result.length === shape.length;
  let next = 0;
  return [shape.map((size, axis) => (axes.includes(axis) ? ((next += Number(keepsDims)), [0, size]) : singleIndex(cell[next++])))];
}

/** Matrix product: row times column. A vector has no dimension other than the one that is summed. @type {Link} */
function matrixProduct({ operands: [a, b] }, cell) {
  const columns = b.length > 1;
  const rows = a.length > 1;
  const batch = cell.slice(0, cell.length - Number(rows) - Number(columns));
  const at = cell.slice(batch.length);
  /** @type {Box} */
  const left = rows ? [...broadcast(a.slice(0, -2), batch), singleIndex(at[0]), [0, a[a.length - 1]]] : fullBox(a);
  /** @type {Box} */
  const right = columns
    ? [...broadcast(b.slice(0, -2), batch), [0, b[b.length - 2]], singleIndex(at[at.length - 1])]
    : fullBox(b);
  return [left, right];
}

/** a Wᵀ + c: the row of a, the row of W, the element of c. @type {Link} */
function affine({ operands: [a, weight, bias] }, cell) {
  const at = cell[cell.length - 1];
  /** @type {(Box | null)[]} */
  const boxes = [
    [...cell.slice(0, -1).map(singleIndex), [0, a[a.length - 1]]],
    [singleIndex(at), [0, weight[1]]],
  ];
  return bias ? [...boxes, broadcast(bias, cell)] : boxes;
}

/** The cell with the same row-major index. @type {Link} */
function reshape({ operands: [shape], result }, cell) {
  let flat = cell.reduce((sum, at, axis) => sum * result[axis] + at, 0);
  /** @type {Box} */
  const box = [];
  for (let axis = shape.length - 1; axis >= 0; axis -= 1) {
    box.unshift(singleIndex(flat % shape[axis]));
    flat = floor(flat / shape[axis]);
  }
  return [box];
}

/** @type {Link} */
function permutation({ operands: [shape] }, cell, { dims }) {
  const axes = dimensions(dims, shape.length);
  if (!axes || axes.length !== shape.length) return null;
  /** @type {Box} */
  const box = fullBox(shape);
  axes.forEach((axis, position) => (box[axis] = singleIndex(cell[position])));
  return [box];
}

/** All cells along the given dimensions. @type {Link} */
function alongDimension({ operands: [shape] }, cell, { dim }) {
  const axes = dimensions(dim, shape.length);
  if (!axes) return null;
  return [shape.map((size, axis) => (axes.includes(axis) ? [0, size] : singleIndex(cell[axis])))];
}

/** The operand that contains the index; null for the others. @type {Link} */
function concatenation({ operands, result }, cell, { dim }) {
  const axes = dimensions(dim, result.length);
  if (!axes) return null;
  let at = cell[axes[0]];
  return operands.map((shape) => {
    const size = shape[axes[0]];
    const isInside = at >= 0 && at < size;
    const box = isInside ? shape.map((_, axis) => singleIndex(axis === axes[0] ? at : cell[axis])) : null;
    at -= size;
    return box;
  });
}

/** @type {Link} */
function flip({ operands: [shape] }, cell, { dims }) {
  const axes = dimensions(dims, shape.length);
  if (!axes) return null;
  return [shape.map((size, axis) => singleIndex(axes.includes(axis) ? size - 1 - cell[axis] : cell[axis]))];
}

/**
 * Return the part of the last dimensions that a window covers. The attribute lists size, stride, padding on both sides,
 * dilation.
 * @param {string | undefined} text @param {number[]} shape @param {number[]} cell
 * @returns {Box | null}
 */
function windowBox(text, shape, cell) {
  const numbers = (text?.match(/-?\d+/g) ?? []).map(Number);
  const rank = numbers.length / 5;
  if (!rank || rank % 1 || rank > shape.length) return null;
  const [sizes, position] = [shape.slice(-rank), cell.slice(-rank)];
  return sizes.map((size, k) => {
    const from = position[k] * numbers[rank + k] - numbers[2 * rank + 2 * k];
    const to = from + (numbers[k] - 1) * numbers[4 * rank + k] + 1;
    return [max(0, from), min(size, to)];
  });
}

/** All channels of the group under the window, and the filters of this channel. @type {Link} */
function convolution({ operands: [a, filters, bias] }, cell, { window, groups }) {
  const box = windowBox(window, a, cell);
  const [channels, filtersPerGroup] = [filters[1], filters[0] / Number(groups)];
  if (!box || !filtersPerGroup) return null;
  const first = floor(cell[1] / filtersPerGroup) * channels;
  const boxes = [
    [singleIndex(cell[0]), /** @type {[number, number]} */ ([first, first + channels]), ...box],
    [singleIndex(cell[1]), ...fullBox(filters.slice(1))],
  ];
  return bias ? [...boxes, [singleIndex(cell[1])]] : boxes;
}

/** @type {Link} */
function pooling({ operands: [shape] }, cell, { windows }) {
  const box = windowBox(windows, shape, cell);
  return box && [[...cell.slice(0, cell.length - box.length).map(singleIndex), ...box]];
}

/** The cell that a key such as "[0, :, 1::2]" selects. @type {Link} */
function basicIndexing({ operands: [shape] }, cell, { key = "" }) {
  const parts = key.slice(1, -1).split(", ");
  if (!key.endsWith("]") || !parts.every((part) => /^(-?\d*(:-?\d*){0,2}|None|…)$/.test(part))) return null;
  const indexCount = parts.filter((part) => part !== "None" && part !== "…").length;
  const rest = parts.indexOf("…");
  parts.splice(rest < 0 ? parts.length : rest, rest < 0 ? 0 : 1, ...new Array(shape.length - indexCount).fill(":"));
  /** @type {Box} */
  const box = [];
  let at = 0;
  for (const part of parts) {
    const [start, stop, step = "1"] = part.split(":");
    const size = shape[box.length];
    if (part === "None") at += 1;
    else {
      const by = Number(step || 1);
      const from = start === "" ? (by < 0 ? size - 1 : 0) : Number(start);
      box.push(singleIndex((from < 0 ? from + size : from) + (stop === undefined ? 0 : by * cell[at++])));
    }
  }
  return [box];
}

/** The position of the index; which row of the table it selects depends on its value. @type {Link} */
const embedding = ({ operands: [, at] }, cell) => [null, cell.slice(0, at.length).map(singleIndex)];

/** @type {Link} */
function padding({ operands: [shape] }, cell, { pads }) {
  const before = (pads?.match(/-?\d+/g) ?? []).map(Number);
  if (before.length !== 2 * shape.length) return null;
  const index = cell.map((at, axis) => at - before[2 * axis]);
  return index.every((at, axis) => at >= 0 && at < shape[axis]) ? [index.map(singleIndex)] : [null];
}

/** @type {Record<string, Link>} */
const LINKS = {
  conv2d: convolution,
  max_pool: pooling,
  min_pool: pooling,
  index: basicIndexing,
  embedding: embedding,
  pad: padding,
  pick: (_, cell, { index }) => [[singleIndex(Number(index)), ...cell.map(singleIndex)]],
  gather: (shapes, cell, attrs) => [alongDimension(shapes, cell, attrs)?.[0] ?? null, cell.map(singleIndex)],
  matmul: matrixProduct,
  linear: affine,
  reshape: reshape,
  permute: permutation,
  cat: concatenation,
  flip: flip,
};

/**
 * Return the box of each operand from which the result's `cell` (an index in each dimension) was computed. It is null
 * for an operand that does not contribute; the function returns null for an unknown op.
 * @param {{name: string, js: string | null}} op an op with a scalar formula is elementwise
 * @param {Record<string, string>} attrs
 * @param {Shapes} shapes
 * @param {number[]} cell
 * @returns {(Box | null)[] | null}
 */
export function operandCells({ name, js }, attrs, shapes, cell) {
  if (cell.length !== shapes.result.length) return null;
  if (js !== null || ELEMENTWISE.has(name)) return shapes.operands.map((shape) => broadcast(shape, cell));
  if (REDUCTIONS.has(name)) return reduction(shapes, cell, attrs);
  if (ALONG_DIMENSION.has(name)) return alongDimension(shapes, cell, attrs);
  return Object.hasOwn(LINKS, name) ? LINKS[name](shapes, cell, attrs) : null;
}
