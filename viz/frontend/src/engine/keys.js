/** Keys of the values that what-if can change: a scalar leaf, or an element of a leaf. Keys are integers. */

import { tileCells } from "../base/tiles.js";
import { floor, max } from "../base/math.js";
import { LEAF } from "../model/trace.js";

/** @typedef {import("../base/types.js").Graph} Graph */

/** Return the key of an element of a leaf. @param {Graph} graph @param {number} node @param {number} cell */
export const elementKey = ({ count }, node, cell) => node + count * (cell + 1);

/** Return the leaf of a key. @param {Graph} graph @param {number} key */
export const leafOf = ({ count }, key) => key % count;

/** Return the row-major index of a key's element; 0 for a scalar leaf. @param {Graph} graph @param {number} key */
export const cellOf = ({ count }, key) => max(0, floor(key / count) - 1);

/**
 * Return a scalar, or the elements of an array in row-major order; null if not all are known.
 * @param {import("../base/types.js").Quantity | null} x
 */
export function allElements(x) {
  if (x === null || typeof x === "number") return x;
  return x.step ? null : tileCells(x.cells, x.shape, true);
}

/**
 * Return the value of a key.
 * @param {Graph} graph @param {import("../base/types.js").Numbers} numbers @param {number} key
 */
export function valueAt(graph, numbers, key) {
  const x = allElements(numbers.value[leafOf(graph, key)]);
  return typeof x === "number" ? x : (x?.[cellOf(graph, key)] ?? NaN);
}

/** Whether the value or the elements of a node can be changed. @param {Graph} graph @param {number} node */
export function isEditable({ kind, tensors, numbers }, node) {
  const float = tensors.get(node)?.dtype.startsWith("float") ?? true;
  return kind[node] === LEAF && float && allElements(numbers.value[node]) !== null;
}

/**
 * Return the key of a name such as “a” or “w[0, 1]”; -1 if there is none.
 * @param {Graph} graph @param {string} name @param {(node: number) => string} [nameOf]
 */
export function findKey(graph, name, nameOf = (node) => graph.names[node] ?? graph.title(node)) {
  const [, stem, indices] = name.match(/^(.*?)\s*\[([\d\s,]*)\]\s*$/s) ?? [];
  for (let node = 0; node < graph.count; node += 1) {
    if (!isEditable(graph, node)) continue;
    const title = nameOf(node);
    const shape = graph.tensors.get(node)?.shape;
    if (title === name && !shape) return node;
    if (title === name && shape?.every((size) => size === 1)) return elementKey(graph, node, 0);
    if (title !== stem || !shape) continue;
    const index = indices.split(",").map((text) => (text.trim() === "" ? NaN : Number(text)));
    if (index.length !== shape.length || !index.every((at, k) => at < shape[k])) return -1;
    return elementKey(graph, node, index.reduce((sum, at, k) => sum * shape[k] + at, 0)); // prettier-ignore
  }
  return -1;
}

/**
 * Return the name of a key's leaf or element.
 * @param {Graph} graph @param {number} key
 * @param {string} [name] the leaf's name
 */
export function keyTitle(graph, key, name = graph.title(leafOf(graph, key))) {
  const { shape } = graph.tensors.get(leafOf(graph, key)) ?? {};
  if (!shape?.length) return name;
  let rest = cellOf(graph, key);
  /** @type {number[]} */
  const index = [];
  for (const size of [...shape].reverse()) {
    index.unshift(rest % size);
    rest = floor(rest / size);
  }
  return `${name}[${index.join(", ")}]`;
}
